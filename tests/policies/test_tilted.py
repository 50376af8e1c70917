import numpy as np
import pytest

from checkrein.functions import Polynomial
from checkrein.policies import LogisticPolicy, TiltedPolicy, load_policy, save_policy
from checkrein.policies.logistic import fit_logistic, logistic
from checkrein.policies.tilted import REACH, fading, tilted

RNG = np.random.default_rng(0)
FEATURES = np.column_stack([np.ones(20_000), RNG.normal(size=(20_000, 2))])
WEIGHTS = np.array([[0.2, -0.1, 0.0], [0.5, -0.5, 0.3], [0.0, 1.0, -0.4]])
CHANCES = logistic(FEATURES, WEIGHTS)
ACTIONS = (RNG.random(len(FEATURES))[:, None] > CHANCES.cumsum(axis=1)).sum(axis=1)


def test_logistic_regression_finds_who_wrote_the_log():
    found = logistic(FEATURES, fit_logistic(FEATURES, ACTIONS, np.ones(len(ACTIONS)), 3))
    assert np.abs(found - CHANCES).max() < 0.05
    assert found.mean(axis=0) == pytest.approx(np.bincount(ACTIONS) / len(ACTIONS), abs=1e-4)


def test_an_action_that_was_never_logged_has_no_chance():
    found = logistic(FEATURES, fit_logistic(FEATURES, ACTIONS, np.ones(len(ACTIONS)), 5))
    assert (found[:, 3:] == 0).all()
    assert found.sum(axis=1) == pytest.approx(1)


def test_without_a_tilt_behavior_goes_on():
    assert tilted(CHANCES, np.zeros_like(CHANCES), fading(FEATURES, 1.0)) == pytest.approx(CHANCES)


def test_no_odds_change_by_more_than_the_reach():
    found = tilted(CHANCES, 100 * RNG.normal(size=CHANCES.shape), fading(FEATURES, np.inf))
    odds = np.log(found / CHANCES)
    assert np.ptp(odds, axis=1).max() <= 2 * REACH + 1e-9


def test_tilts_fade_where_the_log_is_thin():
    tilt = np.tile([1.0, -1.0, 0.0], (len(FEATURES), 1))
    change = np.abs(tilted(CHANCES, tilt, fading(FEATURES, 2.0)) - CHANCES).max(axis=1)
    full = np.abs(tilted(CHANCES, tilt, fading(FEATURES, np.inf)) - CHANCES).max(axis=1)
    norms = (FEATURES**2).sum(axis=1)
    assert change[norms <= 2.0] == pytest.approx(full[norms <= 2.0])
    assert (change[norms > 6.0] < 0.6 * full[norms > 6.0]).all()


def test_both_kinds_are_read_back_as_they_were(tmp_path):
    states = RNG.normal(size=(7, 2))
    for policy in (
        LogisticPolicy(Polynomial(1), WEIGHTS),
        TiltedPolicy(Polynomial(1), WEIGHTS, 0.5 * WEIGHTS, 3.0),
    ):
        save_policy(policy, tmp_path / "policy.npz")
        assert (load_policy(tmp_path / "policy.npz").probabilities(states) == policy.probabilities(states)).all()
