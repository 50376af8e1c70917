import numpy as np
import pytest

from checkrein import FQE, FQI, AtMost, Dataset, Iteration, Linear, Problem, Support, Tabular, Trees, Watch
from checkrein.base.errors import DivergenceError
from checkrein.bellman.iteration import BoundedQ, RegressionTask, default_iterations, fitted_iteration
from checkrein.bellman.targets import evaluation_targets
from checkrein.data.split import split_episodes
from problems import random_log

RNG = np.random.default_rng(0)


def problem_of(log, discount=0.9):
    return Problem(log, objective="c", constraints=[AtMost("g0", 1.0)], discount=discount)


class Uniform:
    def probabilities(self, states):
        return np.full((len(states), 3), 1 / 3)


class Overshooting:
    """A class whose every fit comes out too large, as extrapolation can."""

    def __init__(self, factor):
        self.factor = factor

    def design(self, states, actions, weights, *, n_actions):
        tabular = Tabular().design(states, actions, weights, n_actions=n_actions)
        factor = self.factor

        class Design:
            def fit(self, targets, *, rng, start=None):
                return tabular.fit(factor * targets, rng=rng)

        return Design()


def test_every_iteration_is_told_of_with_errors_that_settle_and_the_value_that_is_returned():
    mine, held = split_episodes(random_log(0, episodes=200), holdout=0.5, seed=0)
    problem, told = problem_of(mine), []
    values = FQE(Tabular(), 60, watch=Watch(told.append, problem_of(held)))(problem, Uniform(), rng=RNG)
    assert [event.index for event in told] == list(range(1, 61))
    assert all(isinstance(event, Iteration) and event.iterations == 60 for event in told)
    assert told[-1].value == pytest.approx([values.objective, *values.constraints])
    assert told[-1].error == pytest.approx(told[-2].error, rel=1e-3)
    assert (told[-1].held_out > told[-1].error).all()  # the noise of rows that the fit has not seen


def test_best_responses_tell_of_their_iterations_too():
    problem, told = problem_of(random_log(0)), []
    policy = FQI(Tabular(), 40, watch=Watch(told.append))(problem, np.array([0.5]), rng=RNG)
    starts = problem.transitions.initial_states
    expected = np.average(policy.q(starts)[..., 0].min(axis=1), weights=problem.transitions.initial_weights)
    assert len(told) == 40
    assert told[-1].held_out is None
    assert told[-1].value[0] == pytest.approx(expected, rel=1e-6)


def test_of_q_functions_that_are_refined_the_one_of_least_bellman_error_is_returned():
    problem, made = problem_of(random_log(0)), []
    rows = problem.transitions
    design = Tabular().design(rows.states, rows.actions, rows.weights, n_actions=3)
    exact = FQE(Tabular(), support=Support(0, 0)).q(problem, Uniform(), rng=RNG)

    def refined(q):
        made.append(exact if len(made) == 1 else lambda states: q(states) + 5)
        return made[-1]

    log = RegressionTask(problem, evaluation_targets(problem, Uniform(), Support(0, 0).of(problem))[1], ("c", "g0"))
    found = fitted_iteration(
        design, log, iterations=4, rng=RNG, allowed=problem.value_range(), bounded=False, refined=refined
    )
    assert len(made) == 4
    assert found is exact


def test_values_stay_within_what_costs_allow():
    problem = problem_of(random_log(0))
    q = FQE(Overshooting(1.08), 300).q(problem, Uniform(), rng=RNG)
    low, high = problem.value_range()
    assert isinstance(q, BoundedQ)
    values = q(problem.transitions.states)
    assert (values >= low - 1e-12).all()
    assert (values <= high + 1e-12).all()


def test_values_that_run_away_are_named():
    log = random_log(0)
    rare = log.with_costs({"c": 1.0 * (RNG.random(len(log)) < 0.05), "g0": np.zeros(len(log))})
    with pytest.raises(DivergenceError, match="runs away: after .* of the rows are valued at the most that c allows"):
        FQE(Overshooting(1.5), 300, Support(0, 0))(problem_of(rare), Uniform(), rng=RNG)


def test_linear_iterations_that_diverge_are_named():
    """Two states with features 1 and 2, logged off-policy: the classic example."""
    log = Dataset.from_arrays(
        states=np.array([[1.0], [2.0]]),
        actions=[0, 0],
        next_states=np.array([[2.0], [2.0]]),
        costs={"c": [1.0, 0.0], "g0": [0.0, 0.0]},
        terminals=[False, False],
        initial_states=np.array([[1.0]]),
        weights=[10.0, 1e-3],
        n_actions=3,
    )
    with pytest.raises(DivergenceError, match="diverges: after .* iterations, values of c are"):
        FQE(Linear(np.asarray), 300, Support(0, 0))(problem_of(log, 0.95), First(), rng=RNG)


class First:
    def probabilities(self, states):
        return np.tile([1.0, 0.0, 0.0], (len(states), 1))


def test_a_constant_cost_is_no_divergence():
    log = random_log(0)
    steady = log.with_costs({"c": np.ones(len(log)), "g0": np.ones(len(log))})
    endless = Dataset.from_arrays(
        states=steady.states,
        actions=steady.actions,
        next_states=steady.next_states,
        costs={"c": np.ones(len(log)), "g0": np.ones(len(log))},
        terminals=np.zeros(len(log), dtype=bool),
        episodes=steady.episodes,
        n_actions=3,
    )
    values = FQE(Trees(5), 80, Support(0, 0))(problem_of(endless), Uniform(), rng=RNG)
    assert values.objective == pytest.approx(10, rel=1e-3)


def test_the_default_number_of_iterations_leaves_little_to_come():
    problem = problem_of(random_log(0), 0.9)
    assert 0.9 ** default_iterations(problem) <= 0.01 < 0.9 ** (default_iterations(problem) - 1)
    assert default_iterations(problem_of(random_log(0), 0.9999)) == 300
    assert default_iterations(problem_of(random_log(0), 1.0)) == random_log(0).longest_episode()


def test_a_round_goes_on_from_the_last_one_only_in_classes_that_gain_by_it():
    problem = Problem(random_log(0), objective="c", constraints=[], discount=0.9)
    functions = Trees(3, freeze_after=2)
    first = FQI(functions, 5)(problem, np.zeros(0), rng=np.random.default_rng(0))
    second = FQI(functions, 5)(problem, np.zeros(0), rng=np.random.default_rng(0), start=first)
    assert first.q.q.fits == second.q.q.fits == 5
