"""Every online learner passes these."""

from typing import NamedTuple

import numpy as np
import pytest

from checkrein import CuttingPlane, ExponentiatedGradient, OnlineGradientDescent, rounds
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

BOUND = 5.0
LEARNERS = {
    "exponentiated gradient": ExponentiatedGradient(BOUND, 0.3),
    "online gradient descent": OnlineGradientDescent(BOUND, 0.3),
    "cutting plane": CuttingPlane(BOUND),
    "cutting plane, plain": CuttingPlane(BOUND, central=False),
    "cutting plane, scaled": CuttingPlane(BOUND, scales=(1.0, 2.0, 0.5)),
}


class Played(NamedTuple):
    multipliers: np.ndarray
    objective: float
    violation: np.ndarray
    lower: float


@pytest.fixture(params=LEARNERS.values(), ids=LEARNERS.keys())
def learner(request):
    return request.param


def answer(learner, violation):
    """The multipliers before and after one policy with this violation."""
    state = learner.init(3)
    before = learner.multipliers(state)
    after = learner.multipliers(learner.update(state, Played(before, 0.0, np.array(violation), 0.0)))
    return before, after


def test_a_violated_constraint_raises_its_multiplier_and_a_slack_one_lowers_it(learner):
    before, after = answer(learner, [1.0, -1.0, -1.0])
    assert after[0] > before[0]
    assert (after[1:] <= before[1:]).all() or isinstance(learner, CuttingPlane)  # which starts at zero everywhere


def test_multipliers_are_never_negative_and_stay_in_the_learners_own_ball(learner):
    rng, state = np.random.default_rng(0), learner.init(3)
    for _ in range(30):
        multipliers = learner.multipliers(state)
        assert (multipliers >= 0).all()
        for violation in rng.normal(size=(20, 3)):
            assert multipliers @ violation <= learner.worst_multipliers(violation) @ violation + 1e-9
        objective, violation = rng.normal(), rng.normal(size=3)
        state = learner.update(state, Played(multipliers, objective, violation, -10.0))


def test_the_worst_multipliers_are_zero_where_nothing_is_violated(learner):
    assert learner.worst_multipliers(np.array([-1.0, 0.0, -2.0])).tolist() == [0, 0, 0]


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


def test_states_are_values_that_an_update_leaves_alone(learner):
    state = learner.init(3)
    before = learner.multipliers(state).copy()
    played = Played(before, 0.0, np.ones(3), 0.0)
    assert np.array_equal(
        learner.multipliers(learner.update(state, played)), learner.multipliers(learner.update(state, played))
    )
    assert np.array_equal(learner.multipliers(state), before)
