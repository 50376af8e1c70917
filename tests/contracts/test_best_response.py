"""Every best response passes these: a new one is a line in RESPONSES."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import oracles
from checkrein import (
    FQI,
    LSPI,
    Ensemble,
    FrozenFeatures,
    Linear,
    Neural,
    OneHot,
    Polynomial,
    Regressor,
    Tabular,
    TabularPolicy,
    Trees,
)
from checkrein.protocols import ManyResponses
from contracts.worlds import SIGNS, cut_off_log, problem_of
from problems import random_policy

STATES, DISCOUNT = 6, 0.9
PRICES = np.array([[0.0, 0.0], [2.0, 0.3], [0.3, 2.0], [0.0, 4.0]])  # each has an answer of its own


class Case(NamedTuple):
    """A best response and its regret: at most this share of what a policy taken at random loses."""

    response: Any
    regret: float = 1e-8


ONE_HOT = Linear(OneHot(STATES))
NETWORK = Neural((16,), steps=20, batch=64, rate=1e-2)
RESPONSES = {
    "fqi, tabular": Case(FQI(Tabular())),
    "fqi, iterated": Case(FQI(Tabular(), iterations=150)),
    "fqi, linear": Case(FQI(ONE_HOT)),
    "fqi, frozen features": Case(FQI(FrozenFeatures(OneHot(STATES), Linear(Polynomial(1), ridge=1e-9)))),
    "fqi, trees": Case(FQI(Trees(1, min_leaf=1e-9, freeze_after=1), iterations=60)),
    "fqi, regressor": Case(FQI(Regressor(DecisionTreeRegressor()), iterations=30), 0.01),
    "fqi, ensemble": Case(FQI(Ensemble(Trees(1, min_leaf=1e-9), 2), iterations=20), 0.05),
    "fqi, network": Case(FQI(NETWORK, iterations=25), 0.1),
    "lspi, tabular": Case(LSPI(Tabular())),
    "lspi, linear": Case(LSPI(ONE_HOT)),
}


def scattered_log():
    """The cut-off log with two pairs never taken: what they cost, the log does not know."""
    log = cut_off_log()
    never = [(log.states == 1) & (log.actions == 0), (log.states == 4) & (log.actions == 2)]
    return log.select(~np.any(never, axis=0))


LOG = scattered_log()
EVERYWHERE = np.arange(STATES)
CHANCE = random_policy(3, LOG)


def answer(case, prices, start=None):
    """What a response answers (S, A), and what it costs beyond the least, as a share of what chance costs beyond."""
    policy = case.response(problem_of(LOG, DISCOUNT), prices, rng=np.random.default_rng(0), start=start)
    table = policy.probabilities(EVERYWHERE)
    mix = np.append(1.0, prices) * SIGNS
    costs = [oracles.evaluate(LOG, one, DISCOUNT, sweeps=400) @ mix for one in (TabularPolicy(table), CHANCE)]
    least = oracles.least_cost(LOG, mix, DISCOUNT, sweeps=400)
    return table, (costs[0] - least) / (costs[1] - least)


def check_answers_are_best(case, prices=PRICES[1:3]):
    """Of the log's own MDP: weights count, a cut-off is no end, the future counts, each price belongs to its cost."""
    for each in prices:
        _, regret = answer(case, each)
        assert -1e-9 <= regret <= case.regret


def check_only_logged_actions_are_taken(case):
    _, _, logged = oracles.empirical_mdp(LOG)
    for prices in PRICES[[1, 3]]:
        table, _ = answer(case, prices)
        assert table.sum(axis=1) == pytest.approx(np.ones(STATES))
        assert (table[~logged] == 0).all()


def check_a_start_changes_nothing_but_the_time(case):
    start = case.response(problem_of(LOG, DISCOUNT), PRICES[3], rng=np.random.default_rng(1))
    _, regret = answer(case, PRICES[1], start=start)
    assert regret <= case.regret


@pytest.fixture(params=RESPONSES.values(), ids=RESPONSES.keys())
def case(request):
    return request.param


BY_CHANCE = ("fqi, regressor", "fqi, ensemble", "fqi, network")


@pytest.fixture(
    params=[pytest.param(RESPONSES[n], id=n, marks=[pytest.mark.slow] * (n in BY_CHANCE)) for n in RESPONSES]
)
def usual(request):
    """Every best response, but in quick runs only those that need no long iteration."""
    return request.param


def test_answers_are_best(case):
    check_answers_are_best(case)


def test_only_logged_actions_are_taken(usual):
    check_only_logged_actions_are_taken(usual)


def test_a_start_changes_nothing_but_the_time(usual):
    check_a_start_changes_nothing_but_the_time(usual)


def test_every_price_has_an_answer_of_its_own():
    tables = [answer(RESPONSES["fqi, tabular"], prices)[0] for prices in PRICES]
    assert len({table.tobytes() for table in tables}) == len(PRICES)


@pytest.mark.parametrize("name", ["fqi, tabular", "lspi, tabular", "fqi, network"])
def test_many_multipliers_are_answered_like_each(name):
    case = RESPONSES[name]
    assert isinstance(case.response, ManyResponses)
    problem, rng = problem_of(LOG, DISCOUNT), np.random.default_rng(0)
    for prices, policy in zip(PRICES[1:3], case.response.responses(problem, PRICES[1:3], rng=rng), strict=True):
        _, regret = answer(Case(lambda *_, found=policy, **__: found), prices)
        assert regret <= case.regret
