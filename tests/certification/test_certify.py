import json
import re

import numpy as np
import pytest

from certification.cases import Tilted, bandit_log, circling, coin, coin_log, failed, graph_log, harm, judged
from checkrein import AtLeast, AtMost, MixturePolicy, TabularPolicy
from checkrein.base.errors import ArgumentError, DataError, ProblemError, StorageError
from checkrein.certification import BootstrapFQE, Certificate, EpisodeScoreBound
from checkrein.certification.certify import alpha_spent, fingerprint
from checkrein_studies import graph
from problems import rows_of

LOG = coin_log(400)  # of a coin(0.5), which costs 0.15; what a coin(0.4) costs is 0.12


def test_a_limit_far_above_passes_and_says_by_what_bound():
    found = judged(coin(0.4), LOG, harm(0.3))
    assert (found.verdict, failed(found), found.advice) == ("pass", set(), [])
    assert found.constraints[0].verdict == "pass"
    assert found.bounds["harm"] <= 0.3
    assert re.search(r"harm: its upper bound 0\.1\d+ keeps the limit 0\.3", found.reason)
    assert found.guarantee == "asymptotic"
    assert (found.episodes, found.method, found.look) == (400, "fqe-studentised", 1)


def test_a_limit_far_below_fails_and_says_what_would_pass():
    found = judged(coin(0.4), LOG, harm(0.02))
    assert found.verdict == "fail"
    assert re.search(r"even its other bound, 0\.\d+, breaks the limit 0\.02", found.reason)
    assert "learn again with more margin" in found.advice[0]


def test_a_limit_just_above_the_estimate_is_left_open_and_more_episodes_would_tell():
    estimate = judged(coin(0.4), LOG, harm(0.3)).estimates["harm"]
    found = judged(coin(0.4), LOG, harm(estimate + 0.01))
    assert found.verdict == "inconclusive"
    assert failed(found) == set()
    assert "but its upper bound" in found.reason
    needed = int(re.search(r"about ([\d,]+) episodes", found.advice[0])[1].replace(",", ""))
    width = found.bounds["harm"] - estimate
    assert needed == pytest.approx(400 * (width / 0.01) ** 2, abs=1)
    truth, quick = 0.4 * 0.3, BootstrapFQE("t")
    many = [judged(coin(0.4), coin_log(2 * needed, seed=s), harm(truth + 0.01), method=quick) for s in range(10)]
    assert np.mean([each.verdict == "pass" for each in many]) > 0.5


@pytest.mark.parametrize("name", ["fqe-studentised", "dr-t", "pdis-studentised"])
@pytest.mark.parametrize("limit", [0.02, 0.1])
@pytest.mark.parametrize("seeds", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_the_advised_limit_passes_on_the_same_data(limit, name, seeds):
    for seed in range(seeds):
        log = coin_log(400, seed=seed)
        first = judged(coin(0.4), log, harm(limit), method=name, seed=seed)
        advised = re.search(r"a limit of (\S+) would pass", " ".join(first.advice))[1]
        again = judged(coin(0.4), log, harm(float(advised)), method=name, seed=seed)
        assert again.verdict == "pass"
        assert again.bounds == first.bounds
        assert float(advised) == pytest.approx(first.bounds["harm"], rel=0.01)


def test_a_benefit_is_bounded_from_below():
    assert judged(coin(0.4), LOG, AtLeast("benefit", 0.7)).verdict == "pass"
    assert judged(coin(0.4), LOG, AtLeast("benefit", 0.98)).verdict == "fail"
    found = judged(coin(0.4), LOG, AtLeast("benefit", 0.875))
    assert found.verdict == "inconclusive"
    one = found.constraints[0]
    assert one.bound < one.estimate < one.other_bound
    assert "its lower bound" in one.reason
    advised = float(re.search(r"a limit of (\S+) would pass", one.advice)[1])
    assert advised <= one.bound
    assert judged(coin(0.4), LOG, AtLeast("benefit", advised)).verdict == "pass"
    mirrored = judged(coin(0.4), LOG, harm(0.125)).constraints[0]
    assert one.bound == pytest.approx(1 - mirrored.bound)


def test_all_constraints_must_pass():
    assert judged(coin(0.4), LOG, harm(0.3), AtLeast("benefit", 0.7)).verdict == "pass"
    mixed = judged(coin(0.4), LOG, harm(0.3), AtLeast("benefit", 0.98))
    assert mixed.verdict == "fail"
    assert [c.verdict for c in mixed.constraints] == ["pass", "fail"]
    assert mixed.reason.startswith("benefit: ")
    assert judged(coin(0.4), LOG, harm(0.3), AtLeast("benefit", 0.875)).verdict == "inconclusive"


def test_all_looks_together_spend_no_more_than_was_permitted():
    assert alpha_spent(0.05, None) == 0.05
    assert alpha_spent(0.05, 1) == pytest.approx(0.04)
    looks = [alpha_spent(0.05, look) for look in range(1, 60)]
    assert sum(looks) <= 0.05 + 1e-15
    assert sum(looks) == pytest.approx(0.05)
    assert sorted(looks, reverse=True) == looks
    with pytest.raises(ArgumentError, match="look is 0: the first is 1"):
        alpha_spent(0.05, 0)


def test_a_later_look_asks_for_more():
    certificates = [judged(coin(0.4), LOG, harm(0.3), method="pdis-t", look=look) for look in (None, 1, 2, 3)]
    bounds = [found.bounds["harm"] for found in certificates]
    assert sorted(set(bounds)) == bounds
    assert [found.look for found in certificates] == [1, 1, 2, 3]
    assert [found.alpha for found in certificates] == pytest.approx([0.05, 0.04, 0.005, 0.0025])


def test_a_look_that_may_hardly_err_still_has_a_bound():
    first, late = (judged(coin(0.4), coin_log(60), harm(0.3), look=look) for look in (1, 12))
    assert late.alpha < 5e-6
    assert first.bounds["harm"] < late.bounds["harm"] < np.inf


def test_a_mixture_is_judged_as_a_mixture_and_not_as_its_average():
    mdp, log = graph_log(400, slip=0.0)
    high, low = graph.constant_policy(mdp, 0.9), graph.constant_policy(mdp, 0.1)
    both = 1.0 * ((log.states % 2 == 1) & (log.actions == 0))  # up, and up again: one member's habit
    log = log.with_costs({"upper": both})
    mixture, average = MixturePolicy((high, low), [0.5, 0.5]), graph.constant_policy(mdp, 0.5)
    of = {
        name: judged(policy, log, AtMost("upper", 50.0), discount=mdp.discount).estimates["upper"]
        for name, policy in {"mixture": mixture, "average": average, "high": high, "low": low}.items()
    }
    assert of["mixture"] == pytest.approx(0.5 * of["high"] + 0.5 * of["low"])
    assert of["mixture"] > 1.2 * of["average"]
    weighed = judged(mixture, log, AtMost("upper", 50.0), discount=mdp.discount, method="pdis-t")
    assert weighed.estimates["upper"] > 1.1 * of["average"]


def test_the_same_seed_gives_the_same_certificate_and_another_one_nearly_so():
    one, same, other = (judged(coin(0.4), LOG, harm(0.2), seed=seed) for seed in (0, 0, 1))
    assert one == same
    assert one.bounds != other.bounds
    assert one.bounds["harm"] == pytest.approx(other.bounds["harm"], rel=0.1)
    assert one.estimates == other.estimates


def test_the_order_of_rows_does_not_matter():
    order = np.random.default_rng(0).permutation(400)
    shuffled = rows_of(LOG, order, initial_states=None, initial_weights=None, propensities=LOG.propensities[order])
    for name in ("fqe-studentised", "pdis-t"):
        mine, theirs = (judged(coin(0.4), log, harm(0.2), method=name) for log in (LOG, shuffled))
        assert mine.bounds == pytest.approx(theirs.bounds)


def test_a_certificate_is_read_as_it_was_written(tmp_path):
    for limit in (0.3, 0.125, 0.02):
        found = judged(coin(0.4), LOG, harm(limit), AtLeast("benefit", 0.5))
        found.write(tmp_path / "certificate.json")
        assert Certificate.read(tmp_path / "certificate.json") == found


def test_a_certificate_without_bounds_has_no_nan_in_its_json(tmp_path):
    found = judged(TabularPolicy(np.tile([1.0, 0.0], (2, 1))), circling(), harm(1e6))
    path = tmp_path / "certificate.json"
    found.write(path)

    def refuse(word):
        raise AssertionError(word)

    assert json.loads(path.read_text(), parse_constant=refuse)["constraints"][0]["bound"] is None
    assert Certificate.read(path) == found


def test_a_damaged_certificate_is_said_to_be_damaged(tmp_path):
    path = tmp_path / "certificate.json"
    with pytest.raises(StorageError, match="does not exist"):
        Certificate.read(path)
    judged(coin(0.4), LOG, harm(0.3)).write(path)
    whole = path.read_text()
    for damage in (whole[: len(whole) // 2], whole.replace('"pass"', '"perhaps"'), "", "[]"):
        path.write_text(damage)
        with pytest.raises(StorageError, match="is not a certificate"):
            Certificate.read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StorageError, match="is not a certificate"):
        Certificate.read(path)
    with pytest.raises(StorageError):
        Certificate.read(tmp_path)


def test_fingerprints_are_of_what_a_policy_does_not_of_which_object_does_it():
    assert fingerprint(coin(0.4), LOG) == fingerprint(coin(0.4), LOG)
    assert fingerprint(coin(0.4), LOG) != fingerprint(coin(0.41), LOG)
    mixture = MixturePolicy((coin(0.3), coin(0.5)), [0.5, 0.5])
    assert fingerprint(mixture, LOG) != fingerprint(coin(0.4), LOG)
    assert fingerprint(mixture, LOG) == fingerprint(MixturePolicy((coin(0.3), coin(0.5)), [0.5, 0.5]), LOG)
    found = judged(coin(0.4), LOG, harm(0.3))
    assert found.policy == fingerprint(coin(0.4), LOG)
    assert found.dataset == LOG.fingerprint
    features = bandit_log(50)
    assert fingerprint(Tilted([[0.0, 1.0]]), features) == fingerprint(Tilted([[0.0, 1.0]]), features)
    assert fingerprint(Tilted([[0.0, 1.0]]), features) != fingerprint(Tilted([[0.0, 2.0]]), features)


def test_what_cannot_be_certified_is_said():
    for confidence in (0.5, 1.0, 1.2, float("nan")):
        with pytest.raises(ArgumentError, match="confidence is"):
            judged(coin(0.4), LOG, harm(0.3), confidence=confidence)
    with pytest.raises(ArgumentError, match="nothing to certify"):
        judged(coin(0.4), LOG)
    with pytest.raises(ArgumentError, match="no method is called 'best'"):
        judged(coin(0.4), LOG, harm(0.3), method="best")
    with pytest.raises(ProblemError, match="no cost is called 'harmm'"):
        judged(coin(0.4), LOG, AtMost("harmm", 0.3))
    with pytest.raises(ProblemError, match="discount"):
        judged(coin(0.4), LOG, harm(0.3), discount=1.5)
    with pytest.raises(ArgumentError, match="look is 0"):
        judged(coin(0.4), LOG, harm(0.3), look=0)
    with pytest.raises(DataError, match="episodes"):
        judged(coin(0.4), LOG.compressed(), harm(0.3))
    with pytest.raises(ArgumentError, match="probabilities have shape"):
        judged(TabularPolicy(np.full((1, 3), 1 / 3)), LOG, harm(0.3))


def test_one_episode_cannot_be_held_against_others():
    for name in ("fqe-studentised", "pdis-t"):
        with pytest.raises(DataError, match="1 episode cannot be cross-fitted"):
            judged(coin(0.4), coin_log(1), harm(5.0), method=name)


def test_weights_of_episodes_count():
    heavy = rows_of(LOG, weights=1.0 + 9 * (LOG.cost("harm") > 0), initial_states=None, initial_weights=None)
    assert judged(coin(0.4), heavy, harm(0.3)).estimates["harm"] > 0.3


def test_a_method_of_ones_own_is_used_as_it_is():
    method = EpisodeScoreBound("pdis", "betting", largest_weight=1.2)
    found = judged(coin(0.4), LOG, harm(0.3, range=(0, 1)), method=method)
    assert (found.verdict, found.method, found.guarantee) == ("pass", "pdis-betting", "finite-sample")
