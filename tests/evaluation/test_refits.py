from dataclasses import replace

import numpy as np
import pytest

from checkrein import FQE, AtLeast, AtMost, Dataset, MixturePolicy, Problem, Support, Tabular, TabularPolicy
from checkrein.base.errors import ArgumentError, EndlessPolicyError
from checkrein.certification.intervals import standard_errors
from checkrein.evaluation import refits as refits_module
from checkrein.evaluation import tabular_refits
from checkrein.evaluation.draws import draws
from checkrein.evaluation.refits import FAINT, Refits
from checkrein.functions import Linear
from checkrein.functions.features import OneHot
from checkrein.problem import Episodes
from evaluation.references import log_of, policy_near_uniform, world
from problems import random_mdp, rows_of

DISCOUNT = 0.9
CLASSES = [Tabular(), Linear(OneHot(5), ridge=0.7)]


def rng(seed=0):
    return np.random.default_rng(seed)


def problem_of(dataset, discount=DISCOUNT):
    constraints = [AtMost("g0", 1.0), AtLeast("c", 0.0, name="benefit")]
    return Problem(dataset, objective="c", constraints=constraints, discount=discount)


def varying(dataset, seed=0):
    """The same log, its costs other ones each time a transition is made."""
    noise = rng(seed).standard_normal((2, len(dataset)))
    return dataset.with_costs(
        {name: dataset.cost(name) + extra for name, extra in zip(("c", "g0"), noise, strict=True)}
    )


def awkward_log(seed=0):
    """Cut-offs, next states that were not observed, weights, costs that vary, a state and an action hardly seen."""
    dataset = varying(log_of(world(seed), episodes=40, seed=seed, max_steps=5))
    rare = (dataset.states == 3) & (dataset.actions == 2)
    return replace(
        rows_of(
            dataset,
            actions=np.where(rare, 1, dataset.actions),
            weights=1.0 + dataset.episodes % 3,
            initial_states=None,
            initial_weights=None,
            next_observed=dataset.steps < 4,
        )
    )


def many_states():
    mdp = random_mdp(1, n_states=400, n_actions=2, successors=4, ending=0.1, discount=DISCOUNT)
    return mdp.simulate(TabularPolicy.uniform(400, 2), episodes=800, max_steps=30, rng=rng(0))


def elsewhere(dataset):
    """The same log, judged from initial states that are not its episodes' own."""
    return rows_of(
        dataset, initial_states=[0, 1, 4], initial_weights=[1.0, 2.0, 0.5], next_observed=dataset.next_observed
    )


LOGS = {
    "whole": lambda: log_of(world(), episodes=40, seed=0),
    "cut off": lambda: log_of(world(1, ending=0.0), episodes=30, seed=1, max_steps=4),
    "varying costs": lambda: varying(log_of(world(), episodes=40, seed=0)),
    "awkward": awkward_log,
    "given starts": lambda: elsewhere(awkward_log(1)),
    "weighed starts": lambda: rows_of(
        log_of(world(), episodes=20, seed=3), initial_weights=np.arange(20) + 1.0
    ),  # the episodes' own, but not as they count
}


def policies():
    one, other = policy_near_uniform(world(), 1), policy_near_uniform(world(), 2)
    return {"one": one, "mixture": MixturePolicy((one, MixturePolicy((other, one), [0.5, 0.5])), [0.3, 0.7])}


def fqe(problem, policy, functions, support=None):
    values = FQE(functions, support=support or Support())(problem, policy, rng=rng())
    return values.row


@pytest.mark.parametrize("functions", CLASSES, ids=["table", "linear"])
@pytest.mark.parametrize("policy", policies().values(), ids=policies())
@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_at_the_logs_own_weights_a_refit_is_fqe(log, policy, functions):
    problem = problem_of(log())
    values, _ = Refits.of(problem, policy, functions).point()
    assert values == pytest.approx(fqe(problem, policy, functions), rel=1e-9)


@pytest.mark.parametrize("functions", CLASSES, ids=["table", "linear"])
def test_what_the_support_rule_refuses_is_valued_at_its_worst(functions):
    problem = problem_of(awkward_log())
    policy, strict = policy_near_uniform(world(), 1), Support(min_count=12)
    values, _ = Refits.of(problem, policy, functions, strict).point()
    assert values == pytest.approx(fqe(problem, policy, functions, strict), rel=1e-9)
    assert (values > Refits.of(problem, policy, functions).point()[0]).all()


def test_without_a_support_rule_an_action_that_was_never_logged_is_still_at_its_worst():
    dataset = log_of(world(), episodes=30, seed=0)
    never = rows_of(dataset, actions=np.minimum(dataset.actions, 1))
    problem, policy = problem_of(never), TabularPolicy(np.eye(3)[np.full(5, 2)])
    values, influence = Refits.of(problem, policy, Tabular(), Support(0, 0)).point()
    assert values == pytest.approx(problem.worst())
    assert influence == pytest.approx(0)


@pytest.mark.parametrize("functions", CLASSES, ids=["table", "linear"])
@pytest.mark.parametrize("log", [LOGS["awkward"], LOGS["given starts"], LOGS["whole"]])
def test_a_replicate_is_fqe_on_the_log_with_its_weights(log, functions):
    dataset, policy = log(), policies()["mixture"]
    problem = problem_of(dataset)
    episodes = Episodes.of(problem)
    drawn = draws(len(episodes), 5, rng(1))
    found = Refits.of(problem, policy, functions)(drawn)
    for values, times in zip(found.values, drawn, strict=True):
        each = (times + FAINT)[np.searchsorted(episodes.labels, dataset.episodes)]
        own = len(dataset.initial_states) == len(episodes)
        starts = {"initial_weights": dataset.initial_weights * (times + FAINT)} if own else {}
        weighed = replace(dataset, weights=dataset.weights * each, **starts)
        assert values == pytest.approx(fqe(problem_of(weighed), policy, functions), rel=1e-7)


@pytest.mark.parametrize("functions", CLASSES, ids=["table", "linear"])
@pytest.mark.parametrize("log", [LOGS["awkward"], LOGS["given starts"], LOGS["cut off"]])
def test_the_influence_of_an_episode_is_how_fast_values_change_with_its_weight(log, functions):
    problem = problem_of(log())
    refits = Refits.of(problem, policies()["mixture"], functions)
    _, influence = refits.point()
    total, step = refits.weights.sum(), 1e-4
    for episode in (0, 7, 19):
        nudge = step * np.eye(refits.weights.size)[episode]
        more, less = (refits._refit((refits.weights + sign * nudge)[None])[0][0] for sign in (1, -1))
        assert total * (more - less) / (2 * step) == pytest.approx(influence[episode], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_influences_in_tables_have_mean_zero(log):
    refits = Refits.of(problem_of(log()), policies()["mixture"], Tabular())
    _, influence = refits.point()
    assert refits.weights @ influence == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("functions", [Tabular(), Linear(OneHot(5), ridge=0.01)], ids=["table", "linear"])
def test_standard_errors_are_the_spread_over_logs_and_over_replicates(functions):
    mdp, policy = world(5, ending=0.4), policy_near_uniform(world(5), 1)
    values, errors, theirs = [], [], []
    for seed in range(200):
        refits = Refits.of(problem_of(varying(log_of(mdp, episodes=150, seed=seed), seed)), policy, functions)
        value, influence = refits.point()
        values.append(value)
        errors.append(standard_errors(influence, refits.weights))
        theirs.append(refits(draws(150, 1, rng(seed))).errors[0])
    spread = np.std(values, axis=0)
    assert np.sqrt(np.mean(np.square(errors), axis=0)) == pytest.approx(spread, rel=0.15)
    assert np.sqrt(np.mean(np.square(theirs), axis=0)) == pytest.approx(spread, rel=0.15)
    replicates = refits(draws(150, 1000, rng(0))).values
    assert replicates.std(axis=0) == pytest.approx(errors[-1], rel=0.15)


@pytest.mark.parametrize("functions", CLASSES, ids=["table", "linear"])
def test_blocks_of_any_size_give_the_same(functions, monkeypatch):
    refits = Refits.of(problem_of(awkward_log()), policies()["mixture"], functions)
    drawn = draws(40, 23, rng(0))
    whole = refits(drawn)
    monkeypatch.setattr(refits_module, "CHUNK", 5 * max(member.size for member, _ in refits.members))
    blocks = refits(drawn)
    assert blocks.values == pytest.approx(whole.values, rel=1e-12)
    assert blocks.errors == pytest.approx(whole.errors, rel=1e-12)
    assert [column.shape for column in refits(drawn[:0])] == [(0, 3), (0, 3)]


def test_an_episode_without_weight_counts_for_nothing():
    dataset = log_of(world(), episodes=30, seed=0)
    without = dataset.part(dataset.episodes != 7)
    silent = rows_of(dataset, weights=1.0 * (dataset.episodes != 7), initial_states=None, initial_weights=None)
    drawn = draws(30, 4, rng(0))
    policy = policy_near_uniform(world(), 1)
    for functions in CLASSES:
        both = [Refits.of(problem_of(log), policy, functions) for log in (without, silent)]
        assert both[0].point()[0] == pytest.approx(both[1].point()[0])
        for mine, theirs in zip(both[0](np.delete(drawn, 7, axis=1)), both[1](drawn), strict=True):
            assert mine == pytest.approx(theirs)


def test_visits_sum_to_the_expected_discounted_steps():
    mdp = world()
    dataset = log_of(mdp, episodes=40, seed=0).with_costs({"c": np.ones(len(log_of(mdp, episodes=40, seed=0)))})
    problem = Problem(dataset, objective="c", constraints=[], discount=DISCOUNT)
    for policy in policies().values():
        refits = Refits.of(problem, policy, Tabular())
        assert refits.occupancy().occupancy.sum() == pytest.approx(refits.point()[0][0])
        assert refits.occupancy().share(0.5) == 0
        assert refits.occupancy().share(np.inf) == 1


def test_visits_and_costs_make_the_value():
    problem, policy = problem_of(awkward_log()), policies()["one"]
    found = Refits.of(problem, policy, Tabular())
    occupancy, rows = found.occupancy(), problem.transitions
    value = 0.0
    for state, action, often, count in zip(*occupancy, strict=True):
        pair = (rows.states == state) & (rows.actions == action)
        assert count == pytest.approx(rows.weights[pair].sum())
        paid = np.average(problem.row_costs[pair, 1], weights=rows.weights[pair]) if count else problem.worst()[1]
        value += often * paid
    assert value == pytest.approx(found.point()[0][1])


def test_pairs_without_evidence_are_visited_but_have_no_count():
    problem = problem_of(awkward_log())
    occupancy = Refits.of(problem, policies()["one"], Tabular()).occupancy()
    unseen = occupancy.counts == 0
    assert list(zip(occupancy.states[unseen], occupancy.actions[unseen], strict=True)) == [(3, 2)]
    assert occupancy.occupancy[unseen] > 0
    assert occupancy.share(0.5) == pytest.approx(occupancy.occupancy[unseen].sum() / occupancy.occupancy.sum())


class Nearest:
    """A class of functions without a closed form."""

    def design(self, states, actions, weights, *, n_actions):
        raise NotImplementedError


def test_a_class_without_a_closed_form_is_refused():
    with pytest.raises(ArgumentError, match="Nearest has no closed form.*use Tabular or Linear"):
        Refits.of(problem_of(awkward_log()), policies()["one"], Nearest())


def circle(seed, n_states=7):
    """A log of action 0, which circles for ever by chance, and of action 1, which ends."""
    generator = rng(seed)
    states = generator.integers(0, n_states, 400)
    actions = generator.integers(0, 2, 400)
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=generator.integers(0, n_states, 400),
        costs={"c": generator.random(400), "g0": generator.random(400)},
        terminals=actions == 1,
        episodes=np.arange(400) // 10,
        n_states=n_states,
    )


@pytest.mark.parametrize("seed", range(5))
def test_at_discount_1_a_policy_that_never_ends_has_no_value(seed):
    problem = problem_of(circle(seed), discount=1.0)
    with pytest.raises(EndlessPolicyError, match="at discount 1"):
        Refits.of(problem, TabularPolicy(np.tile([1.0, 0.0], (7, 1))), Tabular()).point()
    ends = TabularPolicy(np.tile([0.9, 0.1], (7, 1)))
    values, _ = Refits.of(problem, ends, Tabular()).point()
    assert values == pytest.approx(fqe(problem, ends, Tabular()))


@pytest.mark.parametrize("log", [LOGS["awkward"], LOGS["given starts"], LOGS["cut off"], many_states])
def test_refits_of_many_states_are_solved_sparsely_with_the_same_values(log, monkeypatch):
    dataset = log()
    problem, policy = problem_of(dataset), TabularPolicy.uniform(dataset.n_states, dataset.n_actions)
    drawn = draws(len(Episodes.of(problem)), 3, rng(0))
    dense = Refits.of(problem, policy, Tabular())
    monkeypatch.setattr(tabular_refits, "DENSE_STATES", 0)
    sparse = Refits.of(problem, policy, Tabular())
    for mine, theirs in zip((*sparse(drawn), *sparse.point()), (*dense(drawn), *dense.point()), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-8, abs=1e-8)
    for mine, theirs in zip(sparse.occupancy(), dense.occupancy(), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-8, abs=1e-10)
