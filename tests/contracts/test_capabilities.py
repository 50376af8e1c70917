"""What a class may offer beyond its protocol keeps its word: a new one is a line in CLASSES."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from checkrein import Ensemble, FrozenFeatures, Linear, Neural, Polynomial, Regressor, Tabular, Trees
from checkrein.base import storage
from checkrein.base.errors import ArgumentError
from checkrein.base.storage import Packed
from checkrein.protocols import BatchedDesign, ConservativeDesign, EncodingQ, ExactDesign, WarmDesign

RNG = np.random.default_rng(0)
STATES = RNG.uniform(-1, 1, (400, 2))
ACTIONS = (RNG.random(400) < 0.1).astype(int)  # the second action is rare
TARGETS = np.column_stack([STATES[:, 0] + ACTIONS, STATES[:, 1] ** 2])
NETWORK = Neural((16,), steps=80, batch=64, rate=1e-2)

CLASSES = {
    "tabular": Tabular(),
    "linear": Linear(Polynomial(2)),
    "trees": Trees(3),
    "regressor": Regressor(LinearRegression()),
    "neural": NETWORK,
    "ensemble": Ensemble(NETWORK, 2),
    "frozen features": FrozenFeatures(Polynomial(2), Linear(Polynomial(1), ridge=1e-9)),
    "frozen features, network": FrozenFeatures(Polynomial(1), NETWORK),
}
OFFERS = {
    ExactDesign: {"tabular", "linear", "frozen features"},
    BatchedDesign: {"neural", "frozen features, network"},
    ConservativeDesign: {"neural", "ensemble", "frozen features, network"},
}


def design_of(name):
    states = np.arange(400) % 5 if name == "tabular" else STATES
    return CLASSES[name].design(states, ACTIONS, np.ones(400), n_actions=2)


def fitted(design, start=None):
    return design.fit(TARGETS, rng=np.random.default_rng(0), start=start)


def error(q):
    return float(((q(STATES)[np.arange(400), ACTIONS] - TARGETS) ** 2).mean())


@pytest.mark.parametrize("capability", OFFERS, ids=lambda kind: kind.__name__)
def test_a_design_offers_what_its_class_can_do_and_nothing_else(capability):
    assert {name for name in CLASSES if isinstance(design_of(name), capability)} == OFFERS[capability]


@pytest.mark.parametrize("name", ["neural", "ensemble", "frozen features, network"])
def test_a_warm_design_goes_on_from_where_it_was(name):
    design = design_of(name)
    assert isinstance(design, WarmDesign)
    assert design.warm
    once = fitted(design)
    assert error(fitted(design, start=once)) < 0.7 * error(once)


@pytest.mark.parametrize("name", ["trees", "frozen features"])
def test_others_are_not_warm(name):
    design = design_of(name)
    assert not (isinstance(design, WarmDesign) and design.warm)


@pytest.mark.parametrize("name", sorted(OFFERS[ConservativeDesign]))
def test_a_conservative_design_raises_what_was_seldom_taken_against_what_was(name):
    design = design_of(name)
    assert isinstance(design, ConservativeDesign)
    plain, careful = (fitted(one)(STATES)[..., 0].mean(axis=0) for one in (design, design.conservative(5.0)))
    assert careful[1] - careful[0] > plain[1] - plain[0] + 0.1


def test_an_encoding_q_is_linear_in_its_features():
    q = fitted(design_of("neural"))
    assert isinstance(q, EncodingQ)
    features = np.column_stack([q.encoder()(STATES), np.ones(400)])
    values = q(STATES).reshape(400, -1)
    solution, *_ = np.linalg.lstsq(features, values, rcond=None)
    assert features @ solution == pytest.approx(values, abs=1e-4)


def test_what_is_packed_comes_back_the_same(tmp_path):
    q = fitted(design_of("regressor"))
    assert isinstance(q, Packed)
    storage.save(q, tmp_path / "q.npz")
    assert storage.load(tmp_path / "q.npz")(STATES) == pytest.approx(q(STATES))


def test_what_only_some_members_of_an_ensemble_could_do_is_refused_with_a_reason():
    with pytest.raises(ArgumentError, match="has no gradients to penalise"):
        Ensemble(Trees(2), 2).design(STATES, ACTIONS, np.ones(400), n_actions=2).conservative(1.0)
