"""The study of random constrained MDPs, and the solutions it compares with, against other solvers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from checkrein import AtMost, Dataset, TabularMDP, TabularPolicy
from checkrein.reproduction import reproduce
from checkrein_studies.cmdp_found import CAREFUL, OURS, Mean, Run
from checkrein_studies.cmdp_protocol import Case, binding_cmdp, moves_of, plug_in, skilled_behavior
from checkrein_studies.cmdp_study import RandomCmdps
from checkrein_studies.cmdp_study_page import LOOKS, findings
from checkrein_studies.optidice import Model, chi_square, conservative, worst_cost

LIMIT = 0.1


def _drawn(seed, n_states):
    sizes = {"n_states": n_states, "n_actions": 4, "discount": 0.95}
    return Case.draw(seed, **sizes, limit=LIMIT, behavior_limit=0.09, skill=0.9)


@pytest.fixture(scope="module", params=[0, 3000])
def case(request):
    return _drawn(request.param, 50)


def test_the_limit_binds_and_behavior_keeps_one_of_its_own(case):
    best = case.mdp.optimum(objective="loss", constraints=[AtMost("cost", LIMIT)])
    assert best.values["cost"] == pytest.approx(LIMIT)
    assert case.mdp.optimum(objective="loss").values["cost"] > LIMIT
    assert case.mdp.values(case.behavior)["cost"] == pytest.approx(0.09, abs=1e-6)
    assert case.judged(case.behavior) == pytest.approx({"return": 0, "cost": 0.09}, abs=1e-6)
    assert case.judged(best.policy) == pytest.approx({"return": 1, "cost": LIMIT})


def test_behavior_is_as_skilled_as_was_asked_for(case):
    uniform = TabularPolicy.uniform(case.mdp.n_states, case.mdp.n_actions)
    worst, best = case.mdp.values(uniform)["loss"], _best(case.mdp, 0.09)["loss"]
    skill = (case.mdp.values(case.behavior)["loss"] - worst) / (best - worst)
    assert 0.85 < skill <= 0.9


def test_one_action_of_each_state_is_free_and_one_state_is_the_goal(case):
    costs, loss = case.mdp.costs["cost"] / (1 - case.mdp.discount), case.mdp.costs["loss"]
    assert (costs == 0).any(axis=1).all()
    assert costs.max() <= 1
    ends = np.flatnonzero(case.mdp.transitions.sum(axis=(1, 2)) == 0)
    assert ends.tolist() == np.flatnonzero(loss.any(axis=1)).tolist()
    assert ends.size == 1
    assert (loss[ends] == -1).all()
    others = np.delete(case.mdp.transitions, ends, axis=0)
    assert ((others > 0).sum(axis=2) == 4).all()
    assert others.sum(axis=2) == pytest.approx(1)
    assert case.mdp.n_states == 49


def test_the_goal_is_paid_in_the_log(case):
    log = case.problem(200, 50, np.random.default_rng(0)).dataset
    assert log.first_rows().size == 200
    paid = log.cost("loss") < 0
    assert paid.any()
    assert (paid == np.asarray(log.terminals)).all()


def test_seeds_tell_mdps_apart():
    first, same, other = (binding_cmdp(seed, n_states=12) for seed in (5, 5, 6))
    assert (first.transitions == same.transitions).all()
    assert (first.costs["cost"] == same.costs["cost"]).all()
    assert (first.transitions != other.transitions).any()


def test_what_was_never_tried_terminates():
    steps = {"states": [0, 0, 0, 1], "actions": [0, 0, 0, 1], "next_states": [1, 1, 0, 0]}
    others = {"costs": {"loss": np.zeros(4)}, "initial_states": [0], "n_actions": 2, "n_states": 2}
    log = Dataset.from_arrays(**steps, **others, terminals=[False, False, False, True])
    moves = moves_of(log, 2)
    assert moves[0, 0] == pytest.approx([1 / 3, 2 / 3])
    assert not moves[0, 1].any()
    assert not moves[1].any()


def test_the_plug_in_program_of_the_truth_is_the_optimum(case):
    assert case.judged(plug_in(case.mdp, case.mdp.transitions, LIMIT)) == pytest.approx({"return": 1, "cost": LIMIT})


@pytest.fixture(scope="module")
def tiny():
    """Return an MDP of three states and termination, and a policy."""
    rng = np.random.default_rng(1)
    moves = 0.9 * rng.dirichlet(np.ones(3), (3, 2))
    costs = {"loss": -0.2 * rng.random((3, 2)), "cost": 0.2 * rng.random((3, 2))}
    return TabularMDP(moves, costs, np.eye(3)[0], 0.8), TabularPolicy(rng.dirichlet([2, 2], 3))


@pytest.mark.parametrize("alpha", [0.03, 0.3, 3.0])
@pytest.mark.parametrize("tightness", [0.4, 0.9, 2.0])
def test_the_chi_square_solution_is_that_of_another_solver(tiny, alpha, tightness):
    mdp, behavior = tiny
    model = Model.of(mdp)
    least, own = mdp.optimum(objective="cost").values["cost"], mdp.values(behavior)["cost"]
    limit = least + tightness * (own - least)
    data = model.logged(behavior)
    gained, paid = model.rewards.ravel(), model.costs.ravel()
    found = minimize(
        lambda w: alpha * data @ (w - 1) ** 2 / 2 - data @ (w * gained),
        np.ones(data.size),
        jac=lambda w: data * (alpha * (w - 1) - gained),
        bounds=[(0, None)] * data.size,
        constraints=[
            {"type": "eq", "fun": lambda w: model.flow @ (data * w) - model.begins},
            {"type": "ineq", "fun": lambda w: limit - data @ (w * paid)},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert found.success
    ours = chi_square(model, behavior, alpha=alpha, limit=limit)
    assert ours.table == pytest.approx(model.policy(data * found.x).table, abs=1e-4)
    assert mdp.values(ours)["cost"] <= limit + 1e-6


def test_much_regularisation_leaves_behavior_as_it_is_and_little_finds_the_optimum(tiny):
    mdp, behavior = tiny
    model, limit = Model.of(mdp), mdp.values(behavior)["cost"] + 1e-3
    still = chi_square(model, behavior, alpha=1e6, limit=limit)
    assert still.table == pytest.approx(behavior.table, abs=1e-4)
    bold = chi_square(model, behavior, alpha=1e-5, limit=limit)
    assert mdp.values(bold) == pytest.approx(_best(mdp, limit), abs=1e-4)


def test_solutions_from_logs_keep_flow_and_limit_in_their_model(case):
    for size in (10, 1000):
        model = _learned(case, size)
        solution = chi_square(model, case.behavior, alpha=1 / size, limit=LIMIT)
        assert _cost(model, solution) <= LIMIT + 1e-4


def test_conservative_solutions_cost_less_in_their_model_the_larger_the_ball():
    case = _drawn(2, 20)
    model = _learned(case, 200)
    bold = chi_square(model, case.behavior, alpha=1 / 200, limit=LIMIT)
    careful = [conservative(model, case.behavior, alpha=1 / 200, limit=LIMIT, radius=radius) for radius in (1e-4, 1e-3)]
    costs = [_cost(model, policy) for policy in (bold, *careful)]
    assert costs[0] > costs[1] > costs[2]


def test_the_worst_cost_is_that_of_another_solver(tiny):
    mdp, behavior = tiny
    model = Model.of(mdp)
    data = model.logged(behavior)
    other = TabularPolicy.uniform(3, 2)
    ratios = model.occupancy(other) / data
    at = np.append(0.0, np.ones(4))
    worst = [worst_cost(model, ratios, data, radius, at)[0] for radius in (1e-8, 1e-3, 1e-2)]
    assert worst[0] == pytest.approx(mdp.values(other)["cost"], abs=1e-4)
    assert worst[0] < worst[1] < worst[2]
    assert worst[2] == pytest.approx(_most_nearby(model, ratios, data, 1e-2), abs=1e-5)


def _most_nearby(model, ratios, data, radius):
    """Search the ball itself for the highest cost: distributions of transitions that keep the flow of the ratios."""
    moves = model.transitions.reshape(-1, 4)
    pair, after = np.nonzero(moves)
    probabilities = data[pair] * moves[pair, after]
    weighed = ratios[pair]
    into = model.discount * (after == np.arange(4)[:, None]) - (pair // 2 == np.arange(4)[:, None])
    found = minimize(
        lambda p: -p @ (weighed * model.costs.ravel()[pair]),
        probabilities,
        bounds=[(1e-12, 1)] * probabilities.size,
        constraints=[
            {"type": "eq", "fun": lambda p: into @ (p * weighed) + model.begins},
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "ineq", "fun": lambda p: radius - p @ np.log(p / probabilities)},
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.success
    return -found.fun


def test_a_behavior_of_less_skill_is_warmer():
    mdp = binding_cmdp(2, n_states=12)
    better, worse = (skilled_behavior(mdp, skill=skill) for skill in (0.9, 0.6))
    assert mdp.values(better)["loss"] < mdp.values(worse)["loss"]
    assert max(mdp.values(policy)["cost"] for policy in (better, worse)) <= 0.09 + 1e-4


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("random-cmdps")
    return reproduce(replace(RandomCmdps.quick(), runs=1), out, name="random-cmdps", command=""), out


@pytest.mark.slow
def test_a_small_study_writes_every_run(quick):
    _, out = quick
    results = json.loads((out / "results.json").read_text())
    study = replace(RandomCmdps.quick(), runs=1)
    runs = results["numbers"]["runs"]
    assert [(run["seed"] - study.seed, run["size"]) for run in runs] == [
        (number, size) for number in range(study.runs) for size in study.sizes
    ]
    for run in runs:
        assert set(run["judged"]) == set(LOOKS)
        if not run["certified"]:
            assert run["judged"][OURS] == run["behavior"]
        else:
            assert run["bound"] <= study.limit
    assert set(results["numbers"]["violation"]) == set(LOOKS)


def _run(seed, *, certified=True, cost=0.095, ours=0.8, careful=0.7):
    judged = {way: {"return": 0.75, "cost": 0.101} for way in LOOKS}
    judged |= {OURS: {"return": ours, "cost": cost}, CAREFUL: {"return": careful, "cost": 0.098}}
    tightened = [{"return": careful, "cost": 0.098}] * len(RandomCmdps().tighter)
    return Run(seed, 200, judged, tightened, {"return": 0.0, "cost": 0.09}, certified, 3, 1.0, 0.09, 0.099, "")


def _failing(runs):
    found = findings(replace(RandomCmdps(), sizes=(200,), runs=len(runs)), runs)
    return [claim.what for claim in found.claims if not claim.holds]


def test_claims_fail_where_they_should():
    good = [_run(seed, ours=0.8 + 0.01 * (seed % 3)) for seed in range(20)]
    assert _failing(good) == []
    assert (
        _failing([*good[1:], replace(good[0], judged=good[0].judged | {OURS: {"return": 0.8, "cost": 0.1 + 1e-10}})])
        == []
    )
    assert _failing([*good[2:], *(_run(seed, cost=0.1001) for seed in (0, 1))]) == [
        "200 episodes: certified policies that break the limit"
    ]
    below = [_run(seed, ours=0.6 + 0.01 * (seed % 3)) for seed in range(20)]
    assert _failing(below) == [
        "200 episodes: return of what is deployed less that of C-OptiDICE where it is as safe",
    ]
    behind = [_run(seed, ours=-0.1 - 0.01 * (seed % 3), careful=-1) for seed in range(20)]
    assert "200 episodes: return of what is deployed, behavior's being 0" in _failing(behind)
    assert "200 episodes: share certified" in _failing([_run(seed, certified=False) for seed in range(3)])


def test_means_know_their_error():
    mean = Mean.of(np.array([1.0, 3.0]))
    assert (mean.value, mean.error) == pytest.approx((2.0, 1.0))
    assert Mean.of(np.array([1.0])).error == np.inf


def _best(mdp, limit):
    return mdp.optimum(objective="loss", constraints=[AtMost("cost", limit)]).values


def _learned(case, size):
    problem = case.problem(size, 50, np.random.default_rng(size))
    return Model.of(case.mdp, moves_of(problem.dataset, case.mdp.n_states))


def _cost(model, policy):
    return model.occupancy(policy) @ model.costs.ravel()
