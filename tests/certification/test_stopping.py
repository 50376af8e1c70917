"""Logs that stop at an event: what they stop at is lost, and must not be passed over."""

import numpy as np
import pytest

from checkrein import AtMost, Dataset, Problem, TabularPolicy, certify
from checkrein.certification.stopping import stopping_of

HARM, ENDS, LIMIT = 0.2, 0.25, 0.56  # the truth is .2 / .25 = .8


def log(seed, stopping, *, episodes=400, harm=HARM, numeric=False):
    """Episodes that end by chance, and of which the log loses sight after a step, with or without harm, so often."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        stops = False
        while not stops:
            harmed, ends = rng.random() < harm, rng.random() < ENDS
            lost = not ends and rng.random() < stopping[int(harmed)]
            rows.append((episode, rng.integers(2), harmed, ends, not lost))
            stops = ends or lost
    of, actions, harmed, ends, seen = map(np.array, zip(*rows, strict=True))
    states = rng.normal(size=(len(of), 2)) if numeric else np.zeros(len(of), int)
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states,
        costs={"harm": harmed},
        terminals=ends,
        next_observed=seen,
        episodes=of,
        n_actions=2,
        n_states=None if numeric else 1,
    )


def asked(dataset, limit=LIMIT):
    return Problem(dataset, objective=None, constraints=[AtMost("harm", limit)], discount=1.0)


def test_a_log_that_stops_at_harm_is_no_evidence_that_harm_is_rare():
    coin = TabularPolicy(np.full((1, 2), 0.5))
    for seed in range(3):
        found = certify(coin, log(seed, (0.0, 0.8)), constraints=[AtMost("harm", LIMIT)], discount=1.0, seed=seed)
        assert found.verdict == "inconclusive"
        (failed,) = [check for check in found.checks if not check.ok]
        assert failed.name == "where the log stops"
        assert "more of harm than like rows that go on" in failed.words


def test_it_is_noticed_where_states_are_numbers_too():
    assert stopping_of(asked(log(0, (0.0, 0.8), numeric=True))).p[-1] < 1e-10


@pytest.mark.parametrize(("harm", "lost"), [(0.2, 0.3), (0.2, 0.02), (0.01, 0.3), (0.002, 0.1)])
def test_a_log_that_loses_sight_by_chance_is_seldom_doubted(harm, lost):
    found = [stopping_of(asked(log(seed, (lost, lost), harm=harm, episodes=150))) for seed in range(120)]
    p = np.array([one.p[-1] for one in found if one is not None])
    assert (p < 1e-4).sum() == 0  # what forbids a pass
    assert (p < 0.01).sum() <= 5  # what is said: P(more than 5 of 120 at 1 %) = .0015


def test_what_rows_cost_beyond_others_is_their_mean_by_a_plain_loop():
    dataset = log(3, (0.1, 0.5))
    found = stopping_of(asked(dataset))
    stops, goes_on = (~dataset.terminals & (dataset.next_observed == seen) for seen in (False, True))
    harm, excess = dataset.cost("harm"), []
    for row in np.flatnonzero(stops):
        alike = goes_on & (dataset.actions == dataset.actions[row])
        excess.append(harm[row] - harm[alike].mean())
    assert found.rows == len(excess)
    assert found.excess[-1] == pytest.approx(np.mean(excess))


def test_logs_whose_episodes_end_are_not_asked():
    assert stopping_of(asked(log(0, (0.0, 0.0)))) is None


def test_steps_that_always_cost_the_same_are_alike():
    dataset = log(0, (0.3, 0.3))
    costs = {"harm": np.full(len(dataset.actions), 0.1)}
    kept = {name: getattr(dataset, name) for name in ("states", "actions", "next_states", "terminals", "next_observed")}
    same = Dataset.from_arrays(**kept, episodes=dataset.episodes, costs=costs, n_actions=2, n_states=1)
    assert stopping_of(asked(same)).p[-1] == 1.0
