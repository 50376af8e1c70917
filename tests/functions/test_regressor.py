import contextlib
import io
import json
import sys
import zipfile

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, MultiTaskLasso, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from checkrein import FQE, GreedyPolicy, Linear, Polynomial, Regressor, TabularPolicy
from checkrein.base import storage
from checkrein.base.errors import ArgumentError, MissingExtraError, StorageError
from checkrein.functions import RegressorQ
from checkrein.functions.regressor import _weights_name
from problems import problem_of, random_log

RNG = np.random.default_rng(0)
N = 300
STATES, ACTIONS, COSTS = RNG.normal(size=(N, 2)), RNG.integers(0, 2, N), RNG.normal(size=(N, 2)) * [1, 1e4]
WEIGHTS, EQUAL = RNG.integers(0, 4, N).astype(float), np.ones(N)
QUADRATIC = make_pipeline(StandardScaler(), PolynomialFeatures(2), make_pipeline(StandardScaler(), LinearRegression()))


class Constant(RegressorMixin, BaseEstimator):
    """A user's own regressor, which nobody has vetted."""

    def fit(self, states, targets):
        self.mean_ = targets.mean()
        return self

    def predict(self, states):
        return np.full(len(states), self.mean_)


def fit(estimator, *, targets=COSTS, weights=EQUAL, n_actions=2, seed=0):
    design = Regressor(estimator).design(STATES, ACTIONS, weights, n_actions=n_actions)
    return design.fit(targets, rng=np.random.default_rng(seed))


def test_least_squares_in_a_pipeline_equals_the_linear_class():
    linear = Linear(Polynomial(2)).design(STATES, ACTIONS, WEIGHTS, n_actions=2).fit(COSTS, rng=RNG)
    assert fit(QUADRATIC, weights=WEIGHTS)(STATES) == pytest.approx(linear(STATES), rel=1e-8, abs=1e-8)


def test_an_estimator_sees_standard_units_and_answers_in_those_of_the_costs():
    """Kernel ridge shrinks to 0: without centring, a mean of a million would shrink too."""
    q = fit(KernelRidge(alpha=1e9), targets=COSTS + 1e6)
    for action in (0, 1):
        mean = COSTS[action == ACTIONS].mean(axis=0) + 1e6
        assert q(STATES)[:, action] == pytest.approx(np.tile(mean, (N, 1)), rel=1e-6)


@pytest.mark.parametrize(
    ("estimator", "models"), [(Ridge(), 1), (GradientBoostingRegressor(n_estimators=3), 2), (MultiTaskLasso(), 1)]
)
def test_costs_are_fitted_at_once_where_the_estimator_can(estimator, models):
    assert [len(each) for each in fit(estimator).models] == [models, models]
    assert fit(estimator)(STATES).shape == (N, 2, 2)
    assert fit(estimator, targets=COSTS[:, :1])(STATES).shape == (N, 2, 1)


def test_an_action_never_logged_is_zero():
    q = fit(Ridge(), n_actions=3)
    assert not q(STATES)[:, 2].any()


def test_rows_without_weight_need_no_weights():
    kept = WEIGHTS > 0
    q = fit(KNeighborsRegressor(3), weights=kept.astype(float))
    alone = Regressor(KNeighborsRegressor(3)).design(STATES[kept], ACTIONS[kept], EQUAL[kept], n_actions=2)
    assert np.array_equal(q(STATES), alone.fit(COSTS[kept], rng=RNG)(STATES))


def test_an_estimator_without_weights_is_named_where_they_differ():
    with pytest.raises(
        ArgumentError, match=r"KNeighborsRegressor takes no sample_weight.*from 1 to 3.*repeat the rows"
    ):
        fit(KNeighborsRegressor(), weights=WEIGHTS)


def test_weights_reach_the_last_step_of_nested_pipelines():
    assert _weights_name(QUADRATIC) == "pipeline__linearregression__sample_weight"
    assert _weights_name(make_pipeline(StandardScaler(), KNeighborsRegressor())) is None


def test_every_random_state_comes_from_the_generator():
    estimator = make_pipeline(StandardScaler(), RandomForestRegressor(3, random_state=5))
    q = fit(estimator)
    assert np.array_equal(q(STATES), fit(estimator)(STATES))
    assert not np.array_equal(q(STATES), fit(estimator, seed=1)(STATES))
    seeds = [model.get_params()["randomforestregressor__random_state"] for models in q.models for model in models]
    assert len({5, *seeds}) == 3
    assert estimator.get_params()["randomforestregressor__random_state"] == 5


@pytest.mark.parametrize("states", [RNG.integers(0, 9, N), RNG.integers(0, 255, (N, 2, 3), dtype=np.uint8)])
def test_finite_states_and_images_are_vectors(states):
    q = Regressor(Ridge()).design(states, ACTIONS, EQUAL, n_actions=2).fit(COSTS, rng=RNG)
    assert q(states[:5]).shape == (5, 2, 2)


@pytest.mark.parametrize("estimator", [Ridge(), QUADRATIC, KernelRidge(kernel="rbf")])
def test_saved_models_give_the_same_values(estimator, tmp_path):
    pytest.importorskip("skops", reason="the extra skops is not installed")
    q = fit(estimator, n_actions=3)
    storage.save(GreedyPolicy(q), tmp_path / "policy.npz")
    again = storage.load(tmp_path / "policy.npz").q
    assert isinstance(again, RegressorQ)
    assert np.array_equal(again(STATES), q(STATES))


@pytest.mark.parametrize(
    ("estimator", "name"),
    [(Constant(), "test_regressor.Constant"), (HistGradientBoostingRegressor(max_iter=2), "TreePredictor")],
)
def test_what_could_not_be_loaded_is_not_saved(estimator, name, tmp_path):
    pytest.importorskip("skops", reason="the extra skops is not installed")
    with pytest.raises(StorageError, match=rf"{name}.*nothing untrusted is saved or loaded"):
        storage.save(fit(estimator), tmp_path / "q.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_untrusted_types_is_not_opened(tmp_path):
    skops = pytest.importorskip("skops.io", reason="the extra skops is not installed")
    arrays = {"array0": np.frombuffer(skops.dumps(((Constant(),),)), dtype=np.uint8), "array1": np.zeros((1, 1))}
    fields = {"models": {"array": "array0"}, "centre": {"array": "array1"}, "scale": {"array": "array1"}}
    tree = json.dumps({"type": "RegressorQ", "fields": fields})
    np.savez(tmp_path / "q.npz", **{"tree.json": np.array(tree)}, **arrays)
    with pytest.raises(
        StorageError, match=r"test_regressor.Constant, which skops does not trust, and nothing untrusted"
    ):
        storage.load(tmp_path / "q.npz")
    np.savez(tmp_path / "q.npz", **{"tree.json": np.array(tree)}, **arrays | {"array0": np.zeros(9, dtype=np.uint8)})
    with pytest.raises(StorageError, match="the models are damaged"):
        storage.load(tmp_path / "q.npz")


def models_file(folder, written):
    """A file of models as a stranger may write it."""
    arrays = {"array0": np.frombuffer(written, dtype=np.uint8), "array1": np.zeros((2, 1))}
    fields = {"models": {"array": "array0"}, "centre": {"array": "array1"}, "scale": {"array": "array1"}}
    tree = json.dumps({"type": "RegressorQ", "fields": fields})
    np.savez(folder / "q.npz", **{"tree.json": np.array(tree)}, **arrays)
    return folder / "q.npz"


def test_models_that_would_become_far_larger_are_not_opened(tmp_path):
    pytest.importorskip("skops.io", reason="the extra skops is not installed")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 50_000_000)
    with pytest.raises(StorageError, match="say that they are 50,000,000 when unpacked"):
        storage.load(models_file(tmp_path, bomb.getvalue()))


@pytest.mark.parametrize("content", [{"a": 1}, (), ((1,), (2,)), ((Ridge(),),), [Ridge()]], ids=repr)
def test_what_is_no_model_is_not_taken_for_one(content, tmp_path):
    skops = pytest.importorskip("skops.io", reason="the extra skops is not installed")
    with pytest.raises(StorageError, match="the models are damaged"):
        storage.load(models_file(tmp_path, skops.dumps(content)))


def test_however_a_schema_is_damaged_there_is_one_message(tmp_path):
    skops = pytest.importorskip("skops.io", reason="the extra skops is not installed")
    rng = np.random.default_rng(0)
    whole = zipfile.ZipFile(io.BytesIO(skops.dumps(((Ridge(),), (Ridge(),)))))
    parts = {name: whole.read(name) for name in whole.namelist()}
    for _ in range(60):
        schema = bytearray(parts["schema.json"])
        for place in rng.integers(len(schema), size=3):
            schema[place] = rng.choice(list(b'{}[]":,0aN'))
        damaged = io.BytesIO()
        with zipfile.ZipFile(damaged, "w") as archive:
            for name, content in (parts | {"schema.json": bytes(schema)}).items():
                archive.writestr(name, content)
        with contextlib.suppress(StorageError):
            storage.load(models_file(tmp_path, damaged.getvalue()))


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'checkrein\[skops\]'"):
        storage.save(fit(Ridge()), tmp_path / "q.npz")


def test_it_plugs_into_fitted_evaluation():
    problem, policy = problem_of(random_log(0), discount=0.7), TabularPolicy.uniform(6, 3)
    values = FQE(Regressor(LinearRegression()), iterations=60)(problem, policy, rng=RNG)
    exact = FQE(Linear(lambda states: np.stack([np.ones(len(states)), states], axis=1)))(problem, policy, rng=RNG)
    assert values.objective == pytest.approx(exact.objective, rel=1e-6)
    assert values.constraints == pytest.approx(exact.constraints, rel=1e-6)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (object(), "lacks fit, predict"),
        (Ridge, "is a class"),
        (StandardScaler(), "StandardScaler and lacks predict"),
        (LogisticRegression(), "LogisticRegression is a classifier"),
    ],
)
def test_what_is_not_a_regressor_is_refused(estimator, message):
    with pytest.raises(ArgumentError, match=message):
        Regressor(estimator)
