from dataclasses import replace

import numpy as np
import pytest

from checkrein.base import storage
from checkrein.base.errors import ArgumentError
from checkrein.functions.learned_features import LearnedFeatures, learn_features, sums_ahead
from checkrein.problem import Episodes
from numeric_worlds import logged

LOG = Episodes.of(logged(0, 800))


def learned(**changes):
    return learn_features(LOG, np.random.default_rng(0), **changes)


def test_features_are_a_constant_and_directions_without_correlation_of_size_one():
    made = learned()(LOG.states)
    assert (made[:, 0] == 1).all()
    assert made[:, 1:].mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert np.cov(made[:, 1:].T, bias=True) == pytest.approx(np.eye(made.shape[1] - 1), abs=1e-6)


def test_the_network_adds_what_products_cannot_say():
    target = np.exp(0.5 * LOG.states[:, 0]) * (LOG.states[:, 1] > 0)
    left = []
    for kind in ("products", "network"):
        made = learned(kind=kind)(LOG.states)
        left.append(np.var(target - made @ np.linalg.lstsq(made, target, rcond=None)[0]))
    assert left[1] < 0.1 * left[0]


def test_a_column_that_never_varies_is_no_direction():
    problem = logged(1, 100)
    log = Episodes.of(problem)
    still = np.column_stack([log.states, np.full(len(log.states), 3.0)])
    wider = replace(log, states=still, next_states=np.column_stack([log.next_states, np.full(len(still), 3.0)]))
    made = learn_features(wider, np.random.default_rng(0), kind="products")(still)
    assert np.isfinite(made).all()
    assert made.shape[1] == learn_features(log, np.random.default_rng(0), kind="products")(log.states).shape[1]


def test_features_are_the_same_after_a_night_on_disk(tmp_path):
    features = learned()
    storage.save(features, tmp_path / "features.npz")
    again = storage.load(tmp_path / "features.npz")
    assert isinstance(again, LearnedFeatures)
    assert (again(LOG.states[:9]) == features(LOG.states[:9])).all()


def test_sums_ahead_stop_where_the_episode_does():
    costs = np.arange(1.0, len(LOG.actions) + 1)[:, None]
    sums = sums_ahead(LOG, costs, 2)[:, 0]
    assert sums[:3].tolist() == [3.0, 5.0, 3.0]


def test_images_are_refused():
    problem = logged(1, 50)
    log = Episodes.of(problem)
    with pytest.raises(ArgumentError, match=r"states have shape \(2, 2\)"):
        learn_features(replace(log, states=np.zeros((len(log.states), 2, 2))), np.random.default_rng(0))
