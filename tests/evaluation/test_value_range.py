"""Values stay within what costs and the horizon allow, in every class."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import FQE, LSTDQ, AtMost, Dataset, Linear, Polynomial, Problem, Support, Trees
from checkrein.evaluation.draws import draws
from checkrein.evaluation.refits import Refits
from problems import problem_of, random_log

STEPS = 4


class Always:
    """The second action, wherever."""

    def probabilities(self, states):
        return np.tile([0.0, 1.0], (len(states), 1))


def steep(seed, discount, episodes=40):
    """A harm that is never negative and falls steeply in the state; all begin far out, where a line goes below zero."""
    rng = np.random.default_rng(seed)
    n = episodes * STEPS
    states = np.repeat(rng.normal(size=episodes), STEPS)[:, None]
    actions = rng.integers(0, 2, n)
    harm = np.exp(-2 * states[:, 0]) * (1 + actions)
    log = Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states,
        costs={"harm": harm, "gain": -harm},
        terminals=np.arange(n) % STEPS == STEPS - 1,
        episodes=np.arange(n) // STEPS,
        initial_states=np.array([[3.0], [4.0]]),
        n_actions=2,
    )
    return Problem(log, objective="harm", constraints=[AtMost("gain", 0.0)], discount=discount)


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("evaluator", [FQE(Linear(Polynomial(1))), LSTDQ(Linear(Polynomial(1)))], ids=["fqe", "lstdq"])
def test_a_linear_class_never_values_a_cost_below_zero_that_is_never_negative(discount, evaluator):
    for seed in range(5):
        problem = steep(seed, discount)
        below = evaluator.q(problem, Always(), rng=None)(problem.transitions.initial_states)[:, 1, 0]
        assert (below < 0).all()  # the line itself
        values = evaluator(problem, Always(), rng=None).row
        assert values == pytest.approx([0, 0])
        refits = Refits.of(problem, Always(), evaluator.functions, evaluator.support)
        assert refits.point()[0] == pytest.approx([0, 0])
        assert (refits(draws(40, 20, np.random.default_rng(0))).values[:, 0] >= 0).all()


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_nor_above_what_the_dearest_step_costs_all_along(discount):
    problem = steep(0, discount)
    far = replace(
        problem, dataset=replace(problem.dataset, initial_states=np.array([[-90.0]]), initial_weights=np.ones(1))
    )
    horizon = STEPS if discount == 1 else 1 / (1 - discount)
    values = LSTDQ(Linear(Polynomial(1)), Support(0, 0))(far, Always(), rng=None).row
    assert values[0] == pytest.approx(horizon * problem.dataset.cost("harm").max())
    assert values[1] == pytest.approx(-values[0])


def test_at_discount_one_values_over_features_reach_no_further_than_the_longest_episode():
    problem = steep(0, 1.0)
    low, high = problem.value_range()
    dearest = problem.dataset.cost("harm").max()
    assert low.tolist() == [0, -STEPS * dearest]
    assert high.tolist() == [STEPS * dearest, 0]
    values = FQE(Trees(2))(problem, Always(), rng=np.random.default_rng(0)).row
    assert ((low <= values) & (values <= high)).all()


def test_at_discount_one_tables_may_chain_moves_into_longer_episodes_than_were_logged():
    problem = problem_of(random_log(0), discount=1.0)
    low, high = problem.value_range()
    assert (low == 0).all()
    assert (high == np.inf).all()
