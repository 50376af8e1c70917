import numpy as np
import pytest

from checkrein import AtLeast, AtMost, Dataset, Problem
from checkrein.evaluation import event_rates
from checkrein.evaluation.event_rates import Rows, posterior
from checkrein.evaluation.shrinkage import Shrinkage, leading


def one_step(rates, counts, seed, cost=1.0):
    """One row an episode: pairs with these rates (S, A), each logged so often."""
    rng = np.random.default_rng(seed)
    pair = np.repeat(np.arange(rates.size), counts.ravel())
    return Dataset.from_arrays(
        states=pair // rates.shape[1],
        actions=pair % rates.shape[1],
        next_states=pair // rates.shape[1],
        costs={"c": np.zeros(pair.size), "g": cost * (rng.random(pair.size) < rates.ravel()[pair])},
        terminals=np.ones(pair.size),
        episodes=np.arange(pair.size),
        n_states=rates.shape[0],
        n_actions=rates.shape[1],
    )


def problem_of(log, constraint=None):
    return Problem(log, objective="c", constraints=[constraint or AtMost("g", 1.0)], discount=1.0)


def shares(log, name="g"):
    pair, size = log.states * log.n_actions + log.actions, log.n_states * log.n_actions
    return np.bincount(pair, log.cost(name), size) / np.maximum(np.bincount(pair, minlength=size), 1)


def test_a_shrunk_rate_is_nearer_to_the_truth_than_what_a_pair_shows():
    raw, shrunk = [], []
    for seed in range(20):
        rates = np.random.default_rng([seed, 1]).beta(2.0, 98.0, (30, 3))
        log = one_step(rates, np.full((30, 3), 60), seed)
        own = shares(log)
        raw.append(((own - rates.ravel()) ** 2).mean())
        shrunk.append(((own + Shrinkage.of(problem_of(log)).shift[:, 1] - rates.ravel()) ** 2).mean())
    assert np.mean(shrunk) < 0.6 * np.mean(raw)  # the best that a known prior could do is 0.43


def test_of_pairs_that_showed_nothing_the_seldom_logged_are_trusted_less():
    counts = np.tile([[20], [200], [2000]], (20, 2))
    log = one_step(np.full((60, 2), 0.004), counts, seed=0)
    shrinkage = Shrinkage.of(problem_of(log))
    clean = shares(log) == 0
    assert (shrinkage.shift[clean, 1] > 0).all()
    seldom, often = (np.eye(120)[np.flatnonzero(clean & (counts.ravel() == n))[0]] for n in (20, 200))
    variances = [shrinkage.missed(visits).variance[1] for visits in (seldom, often)]
    assert variances[0] > variances[1] > 0


def test_costs_that_vary_all_the_time_are_left_alone():
    rng = np.random.default_rng(0)
    log = one_step(np.full((10, 2), 0.5), np.full((10, 2), 50), seed=0)
    log = log.with_costs({"c": np.zeros(len(log)), "g": rng.integers(0, 2, len(log))})
    missed = Shrinkage.of(problem_of(log)).missed(np.ones(20))
    assert (missed.expected == 0).all()
    assert (missed.variance == 0).all()


def test_a_rare_move_into_a_state_where_the_cost_is_paid_later_counts_like_a_rare_cost():
    """Twenty states end at once but for 1 % that slide into state 20, where 1 is paid; the slide itself is free."""
    rng = np.random.default_rng(0)
    begun = np.repeat(np.arange(20), 200)
    slides = rng.random(begun.size) < 0.01
    episode = np.arange(begun.size)
    n_slides = int(slides.sum())
    log = Dataset.from_arrays(
        states=np.append(begun, np.full(n_slides, 20)),
        actions=np.zeros(begun.size + n_slides, dtype=int),
        next_states=np.append(np.where(slides, 20, begun), np.full(n_slides, 20)),
        costs={"c": np.zeros(begun.size + n_slides), "g": np.append(np.zeros(begun.size), np.ones(n_slides))},
        terminals=np.append(~slides, np.ones(n_slides, dtype=bool)),
        episodes=np.append(episode, episode[slides]),
        steps=np.append(np.zeros(begun.size, dtype=int), np.ones(n_slides, dtype=int)),
    )
    shown = np.bincount(begun, slides, 21) / 200
    shift = Shrinkage.of(problem_of(log)).shift[:, 1]
    clean = np.flatnonzero(shown[:20] == 0)
    assert clean.size > 0
    assert (shift[clean] > 0.003).all()
    assert np.abs(shown[:20] + shift[:20] - 0.01).max() < np.abs(shown[:20] - 0.01).max()


def test_the_size_of_a_rare_cost_scales_what_was_missed():
    small, large = (
        Shrinkage.of(problem_of(one_step(np.full((20, 2), 0.01), np.full((20, 2), 80), 0, cost)))
        for cost in (1.0, 50.0)
    )
    visits = np.full(40, 0.1)
    one, other = small.missed(visits), large.missed(visits)
    assert other.expected[1] == pytest.approx(50 * one.expected[1])
    assert other.variance[1] == pytest.approx(50**2 * one.variance[1])
    assert other.third[1] == pytest.approx(50**3 * one.third[1])


def test_a_rare_benefit_is_shrunk_towards_less_of_it():
    log = one_step(np.full((20, 2), 0.01), np.full((20, 2), 80), 0)
    lucky = shares(log).argmax()
    shift = Shrinkage.of(problem_of(log, AtLeast("g", 0.1))).shift[:, 1]
    assert shift[lucky] > 0  # signed: less of a benefit is dearer


def test_one_more_event_weighs_as_the_visits_do():
    """Behavior's own visits weigh each event by one over the episodes; twice as many visits to all, by twice that."""
    log = one_step(np.full((20, 2), 0.01), np.full((20, 2), 80), 0)
    shrinkage = Shrinkage.of(problem_of(log))
    visits, size = np.full(40, 80 / len(log)), shrinkage.sizes[1]
    assert size == pytest.approx(1, abs=0.03)  # of costs 0 and 1
    assert shrinkage.one_more(visits).expected == pytest.approx([0.0, size / len(log)])
    assert shrinkage.one_more(2 * visits).expected == pytest.approx([0.0, 2 * size / len(log)])
    assert shrinkage.one_more(visits).variance == pytest.approx([0.0, (size / len(log)) ** 2])


def test_one_more_event_weighs_as_in_the_pair_that_the_policy_leans_on():
    counts = np.full((20, 2), 80)
    counts[0, 0] = 10
    shrinkage = Shrinkage.of(problem_of(one_step(np.full((20, 2), 0.3), counts, 0)))
    visits = np.full(40, 0.02)
    visits[0] = 1.0
    assert shrinkage.sizes[1] == pytest.approx(1, abs=0.03)  # however common it is
    assert shrinkage.one_more(visits).expected[1] == pytest.approx(0.1, rel=0.05)  # of ten rows, one more


def test_costs_that_never_vary_within_a_pair_have_no_events():
    log = one_step(np.full((20, 2), 0.3), np.full((20, 2), 80), 0)
    fixed = log.with_costs({"c": 0.1 * log.states, "g": 0.1 * log.states + log.actions})
    np.testing.assert_array_equal(Shrinkage.of(problem_of(fixed)).sizes, 0.0)


def test_weights_count_like_repeated_rows():
    rows = Rows(np.array([0, 0, 1, 1]), np.full(4, -1), np.array([3.0, 2.0, 5.0, 4.0]), 2, 1)
    happens = np.array([True, False, False, False])
    times = rows.weights.astype(int)
    repeated = Rows(np.repeat(rows.pair, times), np.full(14, -1), np.ones(14), 2, 1)
    ours, theirs = posterior(rows, happens), posterior(repeated, np.repeat(happens, times))
    np.testing.assert_allclose(ours.shift, theirs.shift)
    for one, other in zip(ours.visited(np.array([2.0, 0.5])), theirs.visited(np.array([2.0, 0.5])), strict=True):
        np.testing.assert_allclose(one, other)


def test_of_many_pairs_beliefs_are_computed_anew_and_are_the_same(monkeypatch):
    log = one_step(np.full((20, 2), 0.05), np.full((20, 2), 80), 0)
    visits = np.random.default_rng(0).uniform(size=40)
    whole = Shrinkage.of(problem_of(log))
    assert max(len(level.rates.weights) for levels in whole.levels for level in levels) > 4
    monkeypatch.setattr(event_rates, "REMEMBERED", 39)
    monkeypatch.setattr(event_rates, "BLOCK", 100)
    parts = Shrinkage.of(problem_of(log))
    np.testing.assert_allclose(parts.shift, whole.shift, rtol=1e-12)
    for one, other in zip(parts.missed(visits), whole.missed(visits), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_copies_in_one_cluster_count_once():
    log = one_step(np.full((20, 2), 0.01), np.full((20, 2), 80), 0)
    rows = np.tile(np.arange(len(log)), 5)
    fields = {name: getattr(log, name)[rows] for name in ("states", "actions", "next_states", "terminals")}
    copied = Dataset.from_arrays(
        **fields,
        costs={name: log.cost(name)[rows] for name in log.cost_names},
        episodes=np.arange(rows.size),
        clusters=rows,
    )
    visits = np.full(40, 0.1)
    one, many = (Shrinkage.of(problem_of(each)) for each in (log, copied))
    for ours, theirs in zip(one.missed(visits), many.missed(visits), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    np.testing.assert_allclose(one.counts, many.counts)


def test_the_unit_of_a_cost_does_not_matter_however_small():
    small, usual = (
        Shrinkage.of(problem_of(one_step(np.full((20, 2), 0.01), np.full((20, 2), 80), 0, cost)))
        for cost in (1e-12, 1.0)
    )
    visits = np.full(40, 0.1)
    assert small.missed(visits).expected[1] == pytest.approx(1e-12 * usual.missed(visits).expected[1])


def test_a_log_that_never_says_what_follows_has_nothing_rare():
    log = one_step(np.full((5, 2), 0.1), np.full((5, 2), 10), 0)
    cut_off = Dataset.from_arrays(
        states=log.states,
        actions=log.actions,
        next_states=log.next_states,
        costs={name: log.cost(name) for name in log.cost_names},
        terminals=np.zeros(len(log)),
        next_observed=np.zeros(len(log), dtype=bool),
        episodes=log.episodes,
        n_states=5,
        n_actions=2,
    )
    assert (Shrinkage.of(problem_of(cut_off)).shift == 0).all()


def test_one_pair_that_a_policy_leans_on_leads_and_many_that_tell_nothing_do_not_outweigh_it():
    counts = np.array([200.0, *np.full(40, 2000.0)])
    weights = np.array([1 / 200, *np.full(40, 0.5 / 2000)])
    assert leading(weights, counts, power=4) == pytest.approx(1 / 200, rel=0.02)
    assert leading(weights, counts, power=2) < 0.7 / 200
    assert leading(np.full(5, 0.3), counts[:5], power=2) == pytest.approx(0.3)
    assert leading(np.zeros(0), np.zeros(0), power=4) == 0


def test_a_cost_that_never_varies_within_a_pair_is_known_from_one_row():
    """A dose: of 40 actions one costs, which is rare in the log, and certain where it is chosen."""
    log = one_step(np.zeros((5, 40)), np.full((5, 40), 20), seed=0)
    dosed = log.with_costs({"c": np.zeros(len(log)), "g": 1.0 * (log.actions == 7)})
    assert not Shrinkage.of(problem_of(dosed)).shift.any()
    rng = np.random.default_rng(0)
    harmed = log.with_costs({"c": np.zeros(len(log)), "g": 1.0 * (rng.random(len(log)) < 1 / 40)})
    assert Shrinkage.of(problem_of(harmed)).shift[:, 1].any()
