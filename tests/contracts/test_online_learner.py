"""Every online learner passes these: a new one is a line in LEARNERS."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from checkrein import CuttingPlane, ExponentiatedGradient, OnlineGradientDescent, rounds
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

BOUND = 5.0
LEARNERS = {
    "exponentiated gradient": ExponentiatedGradient(BOUND, 0.1),
    "online gradient descent": OnlineGradientDescent(BOUND, 0.1),
    "cutting plane": CuttingPlane(BOUND),
    "cutting plane, plain": CuttingPlane(BOUND, central=False),
    "cutting plane, scaled": CuttingPlane(BOUND, scales=(1.0, 2.0, 0.5)),
}


class Played(NamedTuple):
    multipliers: np.ndarray
    objective: float
    violation: np.ndarray
    lower: float


def answer(learner, violation):
    """The multipliers before and after one policy with this violation."""
    state = learner.init(3)
    before = learner.multipliers(state)
    after = learner.multipliers(learner.update(state, Played(before, 0.0, np.array(violation), 0.0)))
    return before, after


OBJECTIVES = np.array([0.0, 1.0, 1.3, 0.4, 2.0])  # of five policies, and what each violates
VIOLATIONS = np.array([[1.0, 0.6, -0.5], [-0.8, 0.5, -0.5], [0.7, -1.0, -0.4], [0.5, 0.2, -0.1], [-0.5, -0.5, -0.5]])


def least_cost():
    """The best mixture of the five within all limits, by a linear program: the value of the game."""
    found = linprog(OBJECTIVES, A_ub=VIOLATIONS.T, b_ub=np.zeros(3), A_eq=np.ones((1, 5)), b_eq=[1.0])
    return float(found.fun)


def check_multipliers_find_the_value_of_a_game(learner, most_rounds=400):
    """The best lower bound of the multipliers played, or of their mean, comes within 5 % of what no price leaves."""
    value, state, lower = least_cost(), learner.init(3), -np.inf
    dual = lambda multipliers: float((OBJECTIVES + VIOLATIONS @ multipliers).min())  # noqa: E731
    left = value - dual(np.zeros(3))
    total = np.zeros(3)
    for played in range(1, most_rounds + 1):
        multipliers = learner.multipliers(state)
        total += multipliers
        lower = max(lower, dual(multipliers))
        if value - max(lower, dual(total / played)) <= 0.05 * left:
            break
        best = int(np.argmin(OBJECTIVES + VIOLATIONS @ multipliers))
        state = learner.update(state, Played(multipliers, OBJECTIVES[best], VIOLATIONS[best], lower))
    assert left > 0.5
    assert dual(total / played) <= value + 1e-9
    assert value - max(lower, dual(total / played)) <= 0.05 * left


def check_a_violated_constraint_raises_its_multiplier(learner):
    before, after = answer(learner, [1.0, -1.0, -1.0])
    assert after[0] > before[0]
    assert (after[1:] <= before[1:]).all() or isinstance(learner, CuttingPlane)  # which starts at zero everywhere


def check_multipliers_stay_in_the_learners_own_ball(learner):
    rng, state = np.random.default_rng(0), learner.init(3)
    for _ in range(30):
        multipliers = learner.multipliers(state)
        assert (multipliers >= 0).all()
        for violation in rng.normal(size=(20, 3)):
            assert multipliers @ violation <= learner.worst_multipliers(violation) @ violation + 1e-9
        objective, violation = rng.normal(), rng.normal(size=3)
        state = learner.update(state, Played(multipliers, objective, violation, -10.0))


def check_the_worst_multipliers_are_the_worst_of_the_ball(learner):
    """No point of the ball hurts more, and the bound is used up; where nothing is violated, none hurts."""
    assert learner.worst_multipliers(np.array([-1.0, 0.0, -2.0])).tolist() == [0, 0, 0]
    for place in range(3):
        alone = np.where(np.arange(3) == place, 2.0, -1.0)
        scale = getattr(learner, "scales", None) or (1.0, 1.0, 1.0)
        expected = np.where(np.arange(3) == place, BOUND / scale[place], 0.0)
        assert learner.worst_multipliers(alone) == pytest.approx(expected)


def check_states_are_values(learner):
    state = learner.init(3)
    before = learner.multipliers(state).copy()
    played = Played(before, 0.0, np.ones(3), 0.0)
    once, again = (learner.multipliers(learner.update(state, played)) for _ in range(2))
    assert np.array_equal(once, again)
    assert np.array_equal(learner.multipliers(state), before)


@pytest.fixture(params=LEARNERS.values(), ids=LEARNERS.keys())
def learner(request):
    return request.param


def test_multipliers_find_the_value_of_a_game(learner):
    check_multipliers_find_the_value_of_a_game(learner)


def test_a_violated_constraint_raises_its_multiplier_and_a_slack_one_lowers_it(learner):
    check_a_violated_constraint_raises_its_multiplier(learner)


def test_multipliers_are_never_negative_and_stay_in_the_learners_own_ball(learner):
    check_multipliers_stay_in_the_learners_own_ball(learner)


def test_the_worst_multipliers_are_the_worst_of_the_ball(learner):
    check_the_worst_multipliers_are_the_worst_of_the_ball(learner)


def test_states_are_values_that_an_update_leaves_alone(learner):
    check_states_are_values(learner)


def test_no_constraints_are_no_obstacle():
    for learner in (ExponentiatedGradient(1, 1), OnlineGradientDescent(1, 1), CuttingPlane(1)):
        problem = exact_problem(random_mdp(0, n_states=10), [])
        first = next(rounds(problem, **PLAYERS, learner=learner))
        assert first.multipliers.size == 0
        assert first.gap == pytest.approx(0, abs=1e-12)


def test_a_slack_problem_needs_no_price(learner):
    mdp = random_mdp(0, n_constraints=3, n_states=10)
    slack = [type(limit)(limit.cost, 100.0) for limit in binding_limits(mdp)]
    game = rounds(exact_problem(mdp, slack), **PLAYERS, learner=learner)
    last = [next(game) for _ in range(40)][-1]
    assert last.mixture.objective == pytest.approx(mdp.optimum(objective="c").values["c"], abs=1e-6)
