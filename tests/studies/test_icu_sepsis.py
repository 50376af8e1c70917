"""ICU-Sepsis: facts of the exact MDP, the support rule, the package that may be missing, and the study in small."""

import importlib.metadata
import importlib.util
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from checkrein import Dataset, Support
from checkrein.base.errors import CheckreinError
from checkrein.reproduction import reproduce
from checkrein.selection.fixed_sequence import CertifiedPolicy
from checkrein_studies import sepsis, sepsis_study
from checkrein_studies.sepsis import DEAD, DEATH, DRUGS, FLUIDS, Departures, Logged
from checkrein_studies.sepsis_found import Found, Judged
from checkrein_studies.sepsis_study import IcuSepsis
from checkrein_studies.sepsis_study_page import findings

installed = pytest.mark.skipif(
    importlib.util.find_spec("icu_sepsis") is None, reason=f"the matrices are missing: {sepsis.INSTALL}"
)
STAY, GO = 0, 1


def test_without_the_package_the_command_is_named():
    absent = importlib.metadata.PackageNotFoundError(sepsis.PACKAGE)
    with (
        mock.patch.object(importlib.metadata, "distribution", side_effect=absent),
        pytest.raises(CheckreinError, match="pip install --no-deps icu-sepsis"),
    ):
        sepsis.assets()


@installed
def test_the_package_is_read_and_not_imported():
    sepsis.load()
    assert "icu_sepsis" not in sys.modules
    assert sepsis.load() is sepsis.load()


@installed
def test_the_matrices_are_those_of_the_package():
    mdp, clinicians = sepsis.load()
    assert (mdp.n_states, mdp.n_actions) == (716, 25)
    assert mdp.available[:DEAD].any(axis=1).all()
    assert mdp.transitions[:DEAD].sum(axis=2) == pytest.approx(1)
    assert not mdp.transitions[DEAD:].any()
    assert not any(cost[DEAD:].any() for cost in mdp.costs.values())
    assert (mdp.costs[DEATH] == mdp.transitions[:, :, DEAD]).all()
    assert [mdp.costs[drug][0, 13] for drug in DRUGS] == [0.5, 0.75]
    assert [mdp.costs[drug].max() for drug in DRUGS] == [1, 1]
    assert clinicians.table.sum(axis=1) == pytest.approx(1)


@installed
def test_what_is_not_admissible_leads_where_the_admissible_does_on_average():
    mdp, _ = sepsis.load()
    for state in (0, 100, 712):
        allowed = mdp.available[state]
        mean = mdp.transitions[state, allowed].mean(axis=0)
        assert mdp.transitions[state, ~allowed] == pytest.approx(np.tile(mean, ((~allowed).sum(), 1)))


@installed
def test_the_clinicians_values_and_limits():
    ward = sepsis.load()
    values = ward.mdp.values(ward.clinicians)
    assert values == pytest.approx({DEATH: 0.21816, FLUIDS: 4.25272, DRUGS[1]: 0.80899}, abs=5e-6)
    allowed = sepsis.limits(ward, 0.5)
    assert [limit.cost for limit in allowed] == list(DRUGS)
    assert [limit.limit for limit in allowed] == pytest.approx([values[drug] / 2 for drug in DRUGS])


@installed
def test_logged_deaths_are_what_happened_and_every_episode_ends():
    ward = sepsis.load()
    log = sepsis.log(ward, episodes=500, seed=0)
    assert log.cost(DEATH).tolist() == (log.next_states == DEAD).astype(float).tolist()
    assert log.terminals.tolist() == (log.next_states >= DEAD).tolist()
    assert log.terminals.sum() == 500
    assert log.states.max() < DEAD
    means = [log.cost(name).sum() / 500 for name in (DEATH, *DRUGS)]
    assert means == pytest.approx([0.218, 4.25, 0.81], abs=0.25)
    assert log == sepsis.log(ward, episodes=500, seed=0)
    assert log != sepsis.log(ward, episodes=500, seed=1)


def circling_log(times=5):
    """In state 0, either action is logged; 0 always stays, 1 leads on to state 1, where both end the episode."""
    moves = [(0, STAY, 0, False), (0, GO, 1, False), (1, STAY, 1, True), (1, GO, 1, True)] * times
    states, actions, next_states, terminals = (np.array(column) for column in zip(*moves, strict=True))
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=next_states,
        costs={"c": np.zeros(len(moves))},
        terminals=terminals,
        episodes=np.repeat(np.arange(2 * times), 2),
        n_actions=2,
        n_states=3,
    )


def allowed_by(rule, log):
    return rule.fit(log).allowed(np.arange(3)).tolist()


def test_circling_is_no_evidence():
    every = np.ones((3, 2), dtype=bool)
    for count in (1, 5, 50):
        assert allowed_by(Departures(count, admissible=every), circling_log()) == [
            [False, True],
            [True, True],
            [False] * 2,
        ]


def test_what_is_not_admissible_is_never_allowed():
    some = np.array([[True, False], [False, True], [True, True]])
    for count in (1, 5, 50):
        assert allowed_by(Departures(count, admissible=some), circling_log()) == [
            [False] * 2,
            [False, True],
            [False] * 2,
        ]


def test_any_logged_action_is_supported_unless_it_only_circles():
    """States 0 and 1 lead to each other by STAY, 0 to itself by GO; from 1, GO leads to the end."""
    moves = [(0, STAY, 1, False), (1, STAY, 0, False), (0, GO, 0, False), (1, GO, 1, True)]
    states, actions, next_states, terminals = (np.array(column) for column in zip(*moves, strict=True))
    log = Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=next_states,
        costs={"c": np.zeros(4)},
        terminals=terminals,
        n_actions=2,
        n_states=3,
        initial_states=[0],
    )
    assert allowed_by(Support(1), log) == [[True, True], [True, True], [False] * 2]
    assert allowed_by(Logged(1), log) == [[True, False], [False, True], [False] * 2]
    ending = log.select(np.array([True, False, False, True]))
    assert allowed_by(Logged(1), ending) == allowed_by(Support(1), ending)


def test_a_rule_is_scaled_without_its_mask_being_lost():
    rule = Departures(10, admissible=np.zeros((3, 2), dtype=bool))
    scaled = replace(rule, min_count=4)
    assert scaled.min_count == 4
    assert scaled.admissible is rule.admissible
    assert "4 times" in scaled.words(finite=True)
    assert hash(scaled) != hash(rule)


@pytest.mark.slow
@installed
def test_where_nothing_is_certified_the_clinicians_go_on(tmp_path):
    study = replace(IcuSepsis.quick(), frontier=(), episodes=2000, large_episodes=2000)
    with mock.patch.object(sepsis_study, "learn_certified", return_value=CertifiedPolicy((), "nothing was tried")):
        done = reproduce(study, tmp_path, name="icu-sepsis", command="")
    (log,) = done.findings.numbers["logs"]
    ward = sepsis.load()
    assert log["true"] == ward.mdp.values(ward.clinicians)
    assert not log["certified"]
    assert not done.findings.holds


@installed
def test_certificates_of_policies_that_break_a_limit_are_counted():
    ward = sepsis.load()
    study = IcuSepsis(exact=(), frontier=(), logs=10, large_logs=0)
    values = {DEATH: 0.15, FLUIDS: 3.0, DRUGS[1]: 0.5}
    kept = Judged(study.episodes, 0, True, values, values, values, "", (), {}, 0.0)
    broken = replace(kept, true=values | {FLUIDS: 3.3})
    refused = replace(broken, certified=False)
    found = Found(study, ward, [], [], [kept] * 7 + [broken] * 2 + [refused])
    assert len(found.false) == 2
    by_words = {claim.what: claim for claim in findings(found).claims}
    (false,) = (claim for words, claim in by_words.items() if "though a limit is broken" in words)
    assert (false.wanted, false.measured, false.holds) == ("at most 2", "2", True)
