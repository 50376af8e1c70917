import json
import sys
from dataclasses import replace

import exportable
import numpy as np
import pytest

from checkrein import (
    FQE,
    FQI,
    AdmissibleActions,
    AtMost,
    CuttingPlane,
    Dataset,
    GreedyPolicy,
    Linear,
    MixturePolicy,
    Neural,
    Polynomial,
    Problem,
    SoftminPolicy,
    Trees,
    solve,
)
from checkrein.base.errors import CheckreinError, MissingExtraError, StorageError
from checkrein.deploy import export_json, export_onnx, onnx_export
from checkrein.deploy.agreement import close_calls
from checkrein.deploy.portable import portable
from checkrein.functions import LinearQ
from checkrein.functions.learned_features import learn_features
from checkrein.policies import (
    ChoiceMask,
    EveryAction,
    LogisticPolicy,
    MajorityPolicy,
    RestrictedPolicy,
    TiltedPolicy,
    members_of,
)
from checkrein.policies.logistic import fit_logistic
from checkrein.problem import Episodes

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def run(path, states):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["probabilities", "weights"], {"states": states})


def require_equal(policy, path, states):
    """Exact for greedy members away from ties, 1e-6 for probabilities."""
    probabilities, weights = run(path, states)
    members = members_of(policy)
    unclear = close_calls(portable(policy, None, models=True), states)
    assert unclear.mean() < 0.001
    assert weights.tolist() == [weight for _, weight in members]
    for place, (member, _) in enumerate(members):
        clear = ~unclear[place]
        expected = member.probabilities(states)[clear]
        if isinstance(member, GreedyPolicy):
            assert np.array_equal(probabilities[place][clear], expected)
        assert np.abs(probabilities[place][clear] - expected).max() < 1e-6


@pytest.mark.parametrize("policy", exportable.EVERY.values(), ids=exportable.EVERY.keys())
def test_onnxruntime_gives_our_probabilities(policy, tmp_path):
    export_onnx(policy, None, tmp_path / "policy.onnx")
    require_equal(policy, tmp_path / "policy.onnx", exportable.states_for(policy))
    assert list(tmp_path.iterdir()) == [tmp_path / "policy.onnx"]


def test_equal_values_go_to_the_first_allowed_action_as_ours_do(tmp_path):
    weights = np.tile(np.random.default_rng(0).normal(size=(1, 10, 1)), (exportable.A, 1, 1))
    weights[2] *= 1 + 1e-13  # a difference of no weight
    policy = GreedyPolicy(LinearQ(Polynomial(2), weights), exportable.behavior(0.2))
    export_onnx(policy, None, tmp_path / "policy.onnx")
    states = np.random.default_rng(1).normal(size=(3000, exportable.D))
    assert np.array_equal(run(tmp_path / "policy.onnx", states)[0][0], policy.probabilities(states))


def test_a_solution_learned_from_features_is_exported_whole(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    states, actions = rng.normal(size=(n, 2)) * [1, 30] + [0, 50], rng.integers(0, 3, n)
    costs = {"c": (states[:, 0] - actions + 1) ** 2, "g": 1.0 * (actions == 2)}
    log = Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states[rng.permutation(n)],
        costs=costs,
        terminals=rng.random(n) < 0.2,
        episodes=np.arange(n),
    )
    problem = Problem(log, objective="c", constraints=[AtMost("g", 0.5)], discount=0.8)
    functions = Linear(Polynomial(2), ridge=1e-3)
    solution = solve(
        problem, best_response=FQI(functions, iterations=30), evaluator=FQE(functions), learner=CuttingPlane(20.0),
        tolerance=1e-3, max_rounds=10,
    )  # fmt: skip
    export_onnx(solution.policy, None, tmp_path / "policy.onnx")
    require_equal(solution.policy, tmp_path / "policy.onnx", states)


def log_of_numbers(n=1500):
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(n, 2)) * [1, 30] + [0, 50], rng.integers(0, 3, n)
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=states[rng.permutation(n)],
        costs={"c": (states[:, 0] - actions + 1) ** 2, "g": 1.0 * (actions == 2)},
        terminals=rng.random(n) < 0.2,
        episodes=np.arange(n),
    )


MODELS = {
    "trees": Trees(8, 5, freeze_after=4),
    "network": Neural((16, 8), steps=40, batch=128),
    "one layer": Neural((), steps=40, batch=128),
}


@pytest.mark.parametrize("functions", MODELS.values(), ids=MODELS)
def test_trees_and_networks_are_exported_as_they_decide(functions, tmp_path):
    problem = Problem(log_of_numbers(), objective="c", constraints=[AtMost("g", 0.5)], discount=0.8)
    members = [FQI(functions, 4)(problem, np.array([price]), rng=np.random.default_rng(1)) for price in (0.0, 1.0, 3.0)]
    members.append(SoftminPolicy(members[0].q, 0.5, members[0].support))
    mixture = MixturePolicy(tuple(members), np.array([0.4, 0.3, 0.2, 0.1]))
    states = np.random.default_rng(2).normal(size=(2000, 2)) * [2, 60] + [0, 50]
    for policy in (mixture, MajorityPolicy(MixturePolicy(tuple(members[:3]), np.array([0.4, 0.35, 0.25])))):
        export_onnx(policy, None, tmp_path / "policy.onnx")
        require_equal(policy, tmp_path / "policy.onnx", states)
    assert len({tuple(member.probabilities(states).argmax(axis=1)) for member in members[:3]}) > 1
    with pytest.raises(StorageError, match="export --format onnx"):
        export_json(mixture, None, tmp_path / "policy.json")


def test_trees_that_see_more_than_they_split_by_and_an_action_never_logged_are_exported(tmp_path):
    log = log_of_numbers(60)
    problem = Problem(replace(log, n_actions=4), objective="c", constraints=[], discount=0.8)
    policy = FQI(Trees(3, 40), 2)(problem, np.zeros(0), rng=np.random.default_rng(0))  # roots that are leaves
    export_onnx(policy, None, tmp_path / "policy.onnx")
    require_equal(policy, tmp_path / "policy.onnx", log.states)


@pytest.mark.parametrize(
    ("width", "kind"),
    [(2, "network"), (14, "network"), (2, "products"), (2, "columns")],  # of 14 columns the squares alone
)
def test_policies_near_behavior_are_exported_with_their_features(width, kind, tmp_path):
    rng = np.random.default_rng(0)
    log = log_of_numbers(600)
    wide = np.hstack([log.states, rng.normal(size=(600, width - 2))])
    log = replace(log, states=wide, next_states=wide[rng.permutation(600)], initial_states=wide)
    features = learn_features(Episodes.of(Problem(log, objective="c", constraints=[], discount=0.8)), rng, kind)
    q = features(wide).shape[1]
    behavior = fit_logistic(features(wide), log.actions, log.weights, 4)  # the last action was never logged
    tilt = rng.normal(size=(q, 4))
    policy = MixturePolicy(
        (LogisticPolicy(features, behavior), TiltedPolicy(features, behavior, tilt, 1.5 * q)), np.array([0.5, 0.5])
    )
    export_onnx(policy, None, tmp_path / "policy.onnx")
    require_equal(policy, tmp_path / "policy.onnx", wide * 2)


def test_what_is_asked_of_every_state_is_not_written(tmp_path):
    admissible = AdmissibleActions(exportable.behavior(0.2))
    restricted = RestrictedPolicy(exportable.RULES["greedy"], admissible)
    chosen = GreedyPolicy(exportable.linear_q(1), ChoiceMask(EveryAction(exportable.A), (admissible,)))
    for policy in (restricted, chosen):
        with pytest.raises(StorageError, match=r"admissible.*keep the run folder"):
            export_onnx(policy, None, tmp_path / "policy.onnx")


def test_the_model_says_what_its_numbers_stand_for(tmp_path):
    export_onnx(exportable.TABLES["mixture"], exportable.FINITE, tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"), providers=["CPUExecutionProvider"])
    words = json.loads(session.get_modelmeta().custom_metadata_map["checkrein"])
    assert tuple(words["actions"]) == exportable.ACTIONS
    assert words["states"]["combinations"] == exportable.FINITE.combinations.tolist()
    assert [(i.name, i.type) for i in session.get_inputs()] == [("states", "tensor(int64)")]
    assert session.get_outputs()[0].shape == [4, "n", 4]


def test_a_model_that_disagrees_is_not_written(tmp_path, monkeypatch):
    honest = onnx_export.portable

    def mistaken(policy, encoding, **choices):
        form = honest(policy, encoding, **choices)
        object.__setattr__(form.members[0], "degree", 1)
        object.__setattr__(form.members[0], "weights", -form.members[0].weights)
        return form

    monkeypatch.setattr(onnx_export, "portable", mistaken)
    with pytest.raises(StorageError, match="the ONNX model gives action .* member 0 of the policy gives .*not written"):
        export_onnx(exportable.RULES["greedy"], None, tmp_path / "policy.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_names_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx.reference", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'checkrein\[onnx\]'") as caught:
        export_onnx(exportable.TABLES["table"], None, tmp_path / "policy.onnx")
    assert isinstance(caught.value, CheckreinError)
    assert list(tmp_path.iterdir()) == []
