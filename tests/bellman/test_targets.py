"""Terminal and truncated, seen and unseen, discounted and not."""

import numpy as np
import pytest

from checkrein import FQE, FQI, LSPI, LSTDQ, AtMost, Dataset, Linear, OneHot, Problem, Support, Tabular, TabularPolicy
from checkrein.base.errors import ArgumentError, DivergenceError, EndlessPolicyError
from problems import random_log, random_mdp

RNG = np.random.default_rng(0)


def log_of(rows, *, n_states, costs=None, **kwargs):
    """Rows of (state, action, next state, terminal)."""
    states, actions, next_states, terminals = (np.array(column) for column in zip(*rows, strict=True))
    costs = {"c": np.ones(len(rows))} if costs is None else costs
    return Dataset.from_arrays(
        states=states, actions=actions, next_states=next_states, terminals=terminals, costs=costs,
        initial_states=[0], n_states=n_states, **kwargs,
    )  # fmt: skip


def objective(log, policy, evaluator=None, discount=0.9):
    problem = Problem(log, objective="c", constraints=[], discount=discount)
    return (evaluator or FQE(Tabular()))(problem, policy, rng=RNG).objective


ONLY = TabularPolicy(np.ones((3, 1)))


def test_a_terminal_step_keeps_its_cost_and_has_no_future():
    log = log_of([(0, 0, 1, False), (1, 0, 2, True)], n_states=3)
    assert objective(log, ONLY) == pytest.approx(1 + 0.9)


def test_a_truncated_step_goes_on_from_its_next_state():
    log = log_of([(0, 0, 1, False), (1, 0, 0, False)], n_states=2)  # cut off on its way back to the start
    assert objective(log, TabularPolicy(np.ones((2, 1)))) == pytest.approx(1 / (1 - 0.9))


def test_a_truncated_step_without_a_next_state_is_left_out():
    rows = [(0, 0, 1, False), (1, 0, 1, False), (1, 0, 2, True)]
    log = log_of(rows, n_states=3, next_observed=[True, False, True], costs={"c": [1.0, 100.0, 1.0]})
    assert objective(log, ONLY) == pytest.approx(1 + 0.9)


TWO_WAYS = [(0, 0, 1, False), (0, 1, 1, True), (1, 0, 1, True)]  # action 1 was never logged in state 1


def test_what_was_never_logged_is_never_chosen_though_it_would_cost_nothing():
    log = log_of(TWO_WAYS, n_states=2)
    problem = Problem(log, objective="c", constraints=[], discount=0.9)
    for respond in (FQI(Tabular()), FQI(Tabular(), iterations=20), LSPI(Linear(OneHot(2)))):
        assert respond(problem, np.zeros(0), rng=RNG).actions(np.array([1])).tolist() == [0]
    trusting = FQI(Tabular(), support=Support(0, 0))(problem, np.zeros(0), rng=RNG)
    assert trusting.actions(np.array([1])).tolist() == [1]


@pytest.mark.parametrize("iterations", [None, 300])
def test_what_was_never_logged_is_valued_at_its_worst(iterations):
    log = log_of(TWO_WAYS, n_states=2)
    policy = TabularPolicy(np.array([[1.0, 0.0], [0.25, 0.75]]))
    worst = 1 / (1 - 0.9)
    assert objective(log, policy, FQE(Tabular(), iterations=iterations)) == pytest.approx(
        1 + 0.9 * (0.25 * 1 + 0.75 * worst)
    )
    trusting = FQE(Tabular(), iterations=iterations, support=Support(0, 0))
    assert objective(log, policy, trusting) == pytest.approx(1 + 0.9 * 0.25)


def test_a_state_that_was_never_left_in_the_log_is_at_its_worst_for_both_players():
    log = log_of([(0, 0, 1, False), (0, 1, 2, False), (2, 0, 2, True)], n_states=3)
    problem = Problem(log, objective="c", constraints=[], discount=0.9)
    for respond in (FQI(Tabular()), FQI(Tabular(), iterations=20)):
        policy = respond(problem, np.zeros(0), rng=RNG)
        assert policy.actions(np.array([0])).tolist() == [1]  # not into the unknown
    into = TabularPolicy(np.tile([1.0, 0.0], (3, 1)))
    assert objective(log, into) == pytest.approx(1 + 0.9 * 10)


def test_the_combination_lock_promises_nothing_that_was_not_logged():
    """Each step costs 1 and leads on or back to the start; the log never shows what opens the last door."""
    n = 8
    rows = [(x, 0, 0, False) for x in range(n)] + [(x, 1, x + 1, False) for x in range(n - 1)]
    problem = Problem(log_of(rows, n_states=n, n_actions=2), objective="c", constraints=[], discount=0.9)
    honest, trusting = (
        FQI(Tabular(), support=support)(problem, np.zeros(0), rng=RNG) for support in (Support(), Support(0, 0))
    )
    assert honest.actions(np.arange(n))[-1] == 0
    assert trusting.actions(np.arange(n)).tolist() == [1] * n  # it believes that the door costs nothing
    assert FQE(Tabular())(problem, honest, rng=RNG).objective == pytest.approx(10.0)
    assert FQE(Tabular())(problem, trusting, rng=RNG).objective == pytest.approx(10.0)  # the worst, not less


ENDING = random_mdp(3, n_states=8, ending=0.25, discount=1.0)


def test_at_discount_one_everything_works_where_every_policy_ends():
    log = ENDING.exact_log()
    problem = Problem(log, objective="c", constraints=[AtMost("g0", 9.0)], discount=1.0)
    best = ENDING.optimum(objective="c").values["c"]
    for respond, evaluate in (
        (FQI(Tabular()), FQE(Tabular())),
        (LSPI(Linear(OneHot(8))), LSTDQ(Linear(OneHot(8)))),
        (FQI(Tabular(), iterations=300), FQE(Tabular(), iterations=300)),
    ):
        policy = respond(problem, np.zeros(1), rng=RNG)
        assert evaluate(problem, policy, rng=RNG).objective == pytest.approx(best, abs=1e-8)


CIRCLE = [(0, 0, 1, False), (1, 0, 0, False), (1, 1, 2, True), (2, 0, 2, True)]


@pytest.mark.parametrize("respond", [FQI(Tabular()), LSPI(Tabular()), LSPI(Linear(OneHot(3)))])
def test_at_discount_one_states_in_which_a_policy_can_circle_are_named(respond):
    problem = Problem(log_of(CIRCLE, n_states=3), objective="c", constraints=[], discount=1.0)
    with pytest.raises(EndlessPolicyError, match=r"can circle for ever in 2 states \(0, 1\).*discount below 1"):
        respond(problem, np.zeros(0), rng=RNG)


def test_at_discount_one_a_policy_that_ends_is_valued_though_another_would_not():
    log = log_of(CIRCLE, n_states=3)
    leave = TabularPolicy(np.array([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]))
    assert objective(log, leave, discount=1.0) == pytest.approx(4.0)  # two steps a lap, two laps on average
    stay = TabularPolicy(np.tile([1.0, 0.0], (3, 1)))
    with pytest.raises(EndlessPolicyError, match=r"this policy need not end.*\(0, 1\)"):
        objective(log, stay, discount=1.0)


def test_at_discount_one_features_that_do_not_end_are_found_by_their_spectrum():
    """Their spectral radius is 1, give or take the last digits."""
    states = np.array([[1.0], [2.0]])
    log = Dataset.from_arrays(
        states=states, actions=[0, 0], next_states=states[::-1], costs={"c": [1, 1]}, terminals=[0, 0],
        initial_states=states[:1],
    )  # fmt: skip
    problem = Problem(log, objective="c", constraints=[], discount=1.0)
    with pytest.raises(DivergenceError, match="spectral radius"):
        LSTDQ(Linear())(problem, _Only(), rng=RNG)


class _Only:
    def probabilities(self, states):
        return np.ones((len(states), 1))


class Averager:
    """A function class without closed forms."""

    def design(self, states, actions, weights, *, n_actions):
        tabular = Tabular().design(states, actions, weights, n_actions=n_actions)
        return type("Plain", (), {"fit": staticmethod(tabular.fit)})()


def test_classes_without_closed_forms_work_by_iteration():
    log = random_log(0)
    problem = Problem(log, objective="c", constraints=[], discount=0.9)
    policy = FQI(Averager(), iterations=200)(problem, np.zeros(0), rng=RNG)
    exact = FQI(Tabular())(problem, np.zeros(0), rng=RNG)
    assert FQE(Averager(), iterations=200)(problem, policy, rng=RNG).objective == pytest.approx(
        FQE(Tabular())(problem, exact, rng=RNG).objective, abs=1e-6
    )
    by_default = FQE(Averager())(problem, FQI(Averager())(problem, np.zeros(0), rng=RNG), rng=RNG).objective
    assert by_default == pytest.approx(FQE(Tabular())(problem, exact, rng=RNG).objective, rel=0.02)
    for call in (
        lambda: LSPI(Averager())(problem, np.zeros(0), rng=RNG),
        lambda: LSTDQ(Averager())(problem, policy, rng=RNG),
    ):
        with pytest.raises(ArgumentError, match="iterations="):
            call()


@pytest.mark.parametrize("build", [FQI, FQE])
def test_no_iterations_are_refused(build):
    with pytest.raises(ArgumentError, match="iterations is 0"):
        build(Tabular(), iterations=0)
