"""In states without evidence what is known still counts: best responses choose by it, as evaluators value it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from checkrein import (
    FQE,
    FQI,
    LSPI,
    AtMost,
    Dataset,
    Disagreement,
    KLDivergence,
    Problem,
    StateActionCost,
    Tabular,
    TabularPolicy,
    TotalVariation,
)

RNG = np.random.default_rng(0)
GRID = [
    np.array([[u, 1 - u] for u in point]) for point in product((0.0, 0.5, 1.0), (0.0, 0.5, 1.0), (0.1, 0.5, 0.9, 1.0))
]


def log_that_stops_in_state_2():
    """From state 0 half of the episodes go on to state 1, half to state 2, which no row begins in."""
    rng = np.random.default_rng(1)
    rows = []
    for episode in range(60):
        action, following = rng.integers(2), 1 if rng.random() < 0.5 else 2
        rows.append((0, action, following, False, episode, 0.1 * action))
        if following == 1:
            last = rng.integers(2)
            rows.append((1, last, 0, True, episode, 1 - 0.5 * last))
    states, actions, next_states, terminals, episodes, costs = map(np.array, zip(*rows, strict=True))
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=next_states,
        terminals=terminals,
        episodes=episodes,
        costs={"c": costs},
        n_states=3,
        n_actions=2,
    )


LOG = log_that_stops_in_state_2()
REFERENCE = TabularPolicy([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]])
COSTS = {
    "a dose": StateActionCost(np.array([[0.0, 0.1], [0.0, 0.1], [1.0, 0.2]])),
    "a guideline": Disagreement([0, 0, 1]),
    "kl divergence": KLDivergence(REFERENCE),
    "total variation": TotalVariation(REFERENCE),
}


@pytest.mark.parametrize("response", [FQI(Tabular()), LSPI(Tabular())], ids=["fqi", "lspi"])
@pytest.mark.parametrize("price", [0.0, 1e-9, 1.0, 1e6])
@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("cost", COSTS)
def test_no_policy_is_valued_better_than_the_best_response(cost, discount, price, response):
    problem = Problem(LOG, objective="c", constraints=[AtMost(COSTS[cost], 0.5)], discount=discount)
    prices = np.array([1.0, price])
    evaluate = FQE(Tabular())
    found = prices @ evaluate(problem, response(problem, prices[1:], rng=RNG), rng=RNG).row
    for table in GRID:
        other = prices @ evaluate(problem, TabularPolicy(table), rng=RNG).row
        assert found <= other + 1e-9 * (1 + abs(other))


def test_where_nothing_was_logged_the_cheapest_known_step_is_taken():
    problem = Problem(LOG, objective="c", constraints=[AtMost(COSTS["a dose"], 0.5)], discount=0.9)
    policy = FQI(Tabular())(problem, np.ones(1), rng=RNG)
    assert policy.probabilities(np.array([2])).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("iterations", [None, 20])
def test_a_divergence_that_is_infinite_only_where_the_log_never_leads_is_no_matter(iterations):
    """State 3 is in no row: what a policy does there is not asked."""
    log = replace(LOG, n_states=4)
    reference = TabularPolicy([*REFERENCE.table.tolist(), [1.0, 0.0]])
    policy = TabularPolicy([*REFERENCE.table.tolist(), [0.0, 1.0]])
    problem = Problem(log, objective="c", constraints=[AtMost(KLDivergence(reference), 1.0)], discount=0.9)
    assert np.isfinite(FQE(Tabular(), iterations)(problem, policy, rng=RNG).row).all()
