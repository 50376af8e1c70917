"""What a cost may offer beyond its protocol keeps its word: a new one is a line in COSTS."""

import numpy as np
import pytest

from checkrein import (
    AtMost,
    Disagreement,
    Entropy,
    EverEntered,
    KLDivergence,
    Problem,
    StateActionCost,
    Switching,
    TabularPolicy,
    TotalVariation,
)
from checkrein.base import storage
from checkrein.problem import LoggedCost
from checkrein.protocols import (
    BoundedCost,
    DeferredCost,
    KnownCost,
    MemoryCost,
    NamedCost,
    PenaltyCost,
    RowCost,
    SumBoundedCost,
)
from contracts.own_costs import Squared, Surprisal
from contracts.worlds import BEHAVIOR, DISCOUNT, MDP, OTHER, census

LOG = census()
SOMETIMES = TabularPolicy(np.where(np.arange(MDP.n_states)[:, None] == 1, [[1.0, 0.0]], BEHAVIOR.table))
COSTS = {
    "logged": LoggedCost("g0"),
    "of rows": Squared("g0"),
    "of the policy": Surprisal(),
    "kl divergence": KLDivergence(SOMETIMES),
    "entropy": Entropy(),
    "total variation": TotalVariation(OTHER),
    "disagreement": Disagreement(OTHER),
    "of state and action": StateActionCost(MDP.costs["g0"] ** 3),
    "switching": Switching(),
    "ever entered": EverEntered({3, 4}),
}
PACKAGES_OWN = COSTS.keys() - {"of rows", "of the policy"}
OF_THE_POLICY = {"kl divergence", "entropy", "total variation"}
OFFERS = {
    RowCost: COSTS.keys() - OF_THE_POLICY - {"of the policy"},
    NamedCost: {"logged", "of state and action", "ever entered"},
    BoundedCost: PACKAGES_OWN,
    SumBoundedCost: {"ever entered"},
    KnownCost: PACKAGES_OWN - {"logged", "ever entered"},
    PenaltyCost: OF_THE_POLICY,
    DeferredCost: PACKAGES_OWN - {"logged", "entropy"},
    MemoryCost: {"switching", "ever entered"},
}


def offering(capability):
    return pytest.mark.parametrize("name", sorted(OFFERS[capability]))


def stated(name):
    """A problem with the cost, and the cost as the problem has it: it has seen the log."""
    problem = Problem(LOG, objective=None, constraints=[AtMost(COSTS[name], 1.0)], discount=DISCOUNT)
    return problem, problem.constraints[0].cost


def policies_over(log):
    """Two policies over the log's states, whatever of the past has joined them."""
    for policy in (SOMETIMES, TabularPolicy(np.eye(2)[SOMETIMES.table.argmax(axis=1)])):
        yield TabularPolicy(policy.table[np.arange(log.n_states) % MDP.n_states])


@pytest.mark.parametrize("capability", OFFERS, ids=lambda kind: kind.__name__)
def test_a_cost_offers_what_it_can_do_and_nothing_else(capability):
    assert {name for name, cost in COSTS.items() if isinstance(cost, capability)} == OFFERS[capability]


@offering(NamedCost)
def test_a_constraint_is_called_as_its_cost(name):
    assert AtMost(COSTS[name], 1.0).name == COSTS[name].name != ""


@offering(BoundedCost)
def test_no_step_lies_beyond_the_range_of_a_bounded_cost_and_the_range_is_not_idle(name):
    problem, cost = stated(name)
    low, high = cost.step_range(problem.dataset)
    for policy in policies_over(problem.dataset):
        steps = cost.per_step(problem.dataset, policy)
        assert low - 1e-12 <= steps.min()
        assert steps.max() <= high + 1e-12
    assert low < high < np.inf


@offering(SumBoundedCost)
def test_no_sum_lies_beyond_the_range_of_a_cost_whose_sums_are_bounded(name):
    problem, cost = stated(name)
    steps = cost.per_step(problem.dataset, next(policies_over(problem.dataset)))
    sums = np.bincount(problem.dataset.episodes, steps)
    assert (sums.min(), sums.max()) == pytest.approx(cost.sum_range())
    assert problem.constraints[0].range == cost.sum_range()


@offering(KnownCost)
def test_a_known_cost_says_of_logged_actions_what_their_rows_cost(name):
    problem, cost = stated(name)
    log = problem.dataset
    for policy in policies_over(log):
        every = cost.per_action(log.states, policy)
        assert every.shape == (len(log), log.n_actions)
        assert every[np.arange(len(log)), log.actions] == pytest.approx(cost.per_step(log, policy), abs=1e-12)


@offering(PenaltyCost)
def test_a_penalty_is_what_the_policy_pays_and_forbids_what_is_infinite(name):
    problem, cost = stated(name)
    states = np.arange(problem.dataset.n_states)
    for policy in policies_over(problem.dataset):
        paid = cost.penalty(states).paid(policy.probabilities(states))
        assert paid == pytest.approx(cost.per_action(states, policy)[:, 0], abs=1e-12)
    for action in range(2):
        paid = cost.penalty(states).paid(np.tile(np.eye(2)[action], (states.size, 1)))
        assert (np.isfinite(paid) == np.broadcast_to(cost.permitted(states), (states.size, 2))[:, action]).all()


@offering(DeferredCost)
def test_what_has_seen_the_log_stays_as_it_is_on_a_part_of_it(name):
    problem, cost = stated(name)
    log = problem.dataset
    part = log.part(log.episodes % 2 == 0)
    again = cost.resolved(part)
    assert storage.digest(again) == storage.digest(cost)
    policy = next(policies_over(log))
    assert (again.per_step(part, policy) == cost.per_step(log, policy)[log.episodes % 2 == 0]).all()


@offering(MemoryCost)
def test_what_a_cost_remembers_joins_the_states_and_leaves_their_own_part(name):
    problem, cost = stated(name)
    log, memory = problem.dataset, problem.dataset.memory
    assert cost.memory == memory
    assert (memory.own(log.states) == LOG.states).all()
    assert (memory.own(log.next_states) == LOG.next_states).all()
    assert log.n_states > LOG.n_states
    assert stated("entropy")[0].dataset.memory is None
