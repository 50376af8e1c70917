from dataclasses import replace

import numpy as np
import pytest

from checkrein import (
    FQE,
    LSTDQ,
    AtMost,
    CuttingPlane,
    Dataset,
    Disagreement,
    Linear,
    Problem,
    StateActionCost,
    Tabular,
    TabularMDP,
    TabularPolicy,
    certify,
    evaluate,
    solve,
)
from checkrein.evaluation import TabularModel
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.policies import Support
from problems import PLAYERS, random_log, random_mdp

RNG = np.random.default_rng(0)


def solved(mdp, limit):
    problem = Problem(mdp.exact_log(), objective="c", constraints=[limit], discount=mdp.discount)
    return solve(problem, learner=CuttingPlane(50.0), tolerance=1e-7, max_rounds=100, **PLAYERS)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["0-1", "loss", "actions", "partly known"])
def test_a_limit_on_disagreement_has_the_linear_programs_optimum(kind, seed):
    mdp = random_mdp(seed, n_constraints=1, n_states=12)
    rng = np.random.default_rng(seed)
    taken = rng.integers(mdp.n_actions, size=mdp.n_states)
    expert = rng.dirichlet(np.ones(mdp.n_actions), mdp.n_states)
    loss = rng.random((mdp.n_actions, mdp.n_actions))
    table = {"0-1": 1 - expert, "loss": expert @ loss.T, "actions": taken[:, None] != np.arange(mdp.n_actions)}
    cost = {"0-1": Disagreement(TabularPolicy(expert)), "loss": Disagreement(TabularPolicy(expert), loss)}
    known = np.arange(mdp.n_states) % 2 == 1
    table["partly known"] = table["actions"] * known[:, None]
    cost |= {"actions": Disagreement(taken), "partly known": Disagreement(np.where(known, taken, -1))}
    exact = TabularMDP(mdp.transitions, {**mdp.costs, "it": 1.0 * table[kind]}, mdp.initial, mdp.discount)
    least, free = (exact.optimum(objective=name).values["it"] for name in ("it", "c"))
    limit = AtMost("it", 0.5 * (least + free))
    best = exact.optimum(objective="c", constraints=[limit])
    solution = solved(mdp, replace(limit, cost=cost[kind]))
    assert solution.values["c"] == pytest.approx(best.values["c"], abs=1e-5)
    assert solution.multipliers["it"] == pytest.approx(best.multipliers["it"], rel=1e-3)


@pytest.mark.parametrize("given", ["a table", "a function"])
def test_a_cost_of_state_and_action_is_a_column_of_the_same_numbers(given):
    mdp = random_mdp(5, n_constraints=1, n_states=9)
    table = np.random.default_rng(5).normal(size=(mdp.n_states, mdp.n_actions))
    known = StateActionCost(table if given == "a table" else lambda states, actions: table[states, actions])
    exact = TabularMDP(mdp.transitions, {**mdp.costs, "it": table}, mdp.initial, mdp.discount)
    limit = AtMost("it", 0.5 * sum(exact.optimum(objective=name).values["it"] for name in ("it", "c")))
    best = exact.optimum(objective="c", constraints=[limit])
    assert solved(mdp, replace(limit, cost=known)).values["c"] == pytest.approx(best.values["c"], abs=1e-6)


def one_step_log():
    """Offers made once each: in state 0 action 2 was never made."""
    return Dataset.from_arrays(
        states=[0, 0, 0, 1, 1, 1],
        actions=[0, 1, 0, 0, 1, 2],
        next_states=[0, 0, 0, 1, 1, 1],
        costs={"click": [0, 1, 0, 0, 0, 1]},
        terminals=np.ones(6, dtype=bool),
        episodes=np.arange(6),
        n_actions=3,
    )


PRICE = np.array([[1.0, 2.0, 7.0], [1.0, 2.0, 7.0]])
UNSEEN = TabularPolicy([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])  # takes what was never logged
WAYS = {
    "fqe": FQE(Tabular()),
    "iterations": FQE(Tabular(), iterations=5),
    "lstdq": LSTDQ(Tabular()),
    "model": TabularModel(),
    "linear": FQE(Linear()),
}


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_known_of_an_action_that_was_never_logged_is_exact_where_nothing_follows(way, discount):
    log = one_step_log()
    problem = Problem(
        log, objective="click", constraints=[AtMost(StateActionCost(PRICE), 9.0, name="price")], discount=discount
    )
    if way == "linear":
        features = np.eye(2)[log.states]
        log = replace(log, states=features, next_states=features, initial_states=features, n_states=None)
        offered = StateActionCost(lambda states, actions: PRICE[states.argmax(axis=1), actions])
        problem = Problem(log, objective="click", constraints=[AtMost(offered, 9.0, name="price")], discount=discount)
        policy = _OfFeatures()
    else:
        policy = UNSEEN
    values = WAYS[way](problem, policy, rng=RNG)
    assert values.constraints[0] == pytest.approx(0.5 * 7.0 + 0.5 * 1.5)


class _OfFeatures:
    def probabilities(self, states):
        return UNSEEN.table[states.argmax(axis=1)]


def test_an_unlogged_action_pays_its_known_step_and_then_the_worst_that_may_follow():
    log = random_log(3, episodes=40, n_actions=3)
    kept = log.part(~np.isin(log.episodes, log.episodes[(log.states == 0) & (log.actions == 2)]))
    price = np.arange(18.0).reshape(6, 3)
    never = TabularPolicy(np.eye(3)[[2, 0, 0, 0, 0, 0]])
    problem = Problem(
        kept, objective=None, constraints=[AtMost(StateActionCost(price), 1.0, name="price")], discount=0.8
    )
    q = FQE(Tabular()).q(problem, never, rng=RNG)
    assert q(np.array([0]))[0, 2, 1] == price[0, 2]  # of what was never logged the step is known, and nothing else
    start = replace(kept, initial_states=np.array([0]), initial_weights=np.ones(1))
    found = FQE(Tabular())(replace(problem, dataset=start), never, rng=RNG).constraints[0]
    assert found == pytest.approx(price[0, 2] + 0.8 * price.max() / (1 - 0.8))  # episodes were cut off: no horizon


def test_the_scores_of_one_step_values_know_the_step_too():
    log = one_step_log()
    cost = AtMost(StateActionCost(PRICE), 9.0, name="price")
    problem = Problem(log, objective=None, constraints=[cost], discount=1.0)
    scores = TabularNuisances.of(problem, Support()).score(problem, UNSEEN).scores
    assert scores[:, 1].mean() == pytest.approx(0.5 * 7.0 + 0.5 * 1.5)
    certificate = certify(UNSEEN, log, constraints=[cost], discount=1.0, method="fqe-t")
    assert certificate.estimates["price"] == pytest.approx(0.5 * 7.0 + 0.5 * 1.5)


def test_evaluate_takes_costs_that_are_known():
    found = evaluate(UNSEEN, one_step_log(), costs=["click", StateActionCost(PRICE)], discount=1.0, estimators=["fqe"])
    assert found.value("fqe", "StateActionCost") == pytest.approx(0.5 * 7.0 + 0.5 * 1.5)
