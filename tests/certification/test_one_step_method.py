"""certify(method="one-step"), where states are numbers and where they are finite."""

import numpy as np
import pytest

from checkrein import AtMost, certify
from checkrein.certification import OneStepBound
from checkrein.evaluation.feature_one_step import FeatureNuisances
from checkrein.functions import Polynomial
from checkrein.policies import TiltedPolicy
from numeric_worlds import logged, true_values


def more_for_the_ill(strength=0.8):
    """A policy near behavior, from a log of its own, that treats more often, the ill above all."""
    nuisances = FeatureNuisances(logged(50, 1500), Polynomial(2))
    tilt = np.zeros_like(nuisances.behavior.weights)
    tilt[0], tilt[1] = [-strength, strength], [-strength, strength]
    return TiltedPolicy(nuisances.features, nuisances.behavior.weights, tilt, np.inf)


def judged(policy, limit, seed=3, **settings):
    data = logged(seed, 1200, **settings).dataset
    return certify(policy, data, objective="ill", constraints=[AtMost("dose", limit)], discount=1.0, method="one-step")


def test_a_policy_with_room_passes_and_is_shown_better():
    policy = more_for_the_ill()
    found = judged(policy, limit=1.15 * true_values(policy)[1])
    assert found.verdict == "pass"
    assert found.method == "one-step"
    assert found.objective.verdict == "better"


def test_a_policy_that_breaks_its_limit_does_not_pass():
    policy = more_for_the_ill()
    assert judged(policy, limit=0.95 * true_values(policy)[1]).verdict != "pass"


@pytest.mark.parametrize("settings", [{}, {"propensities": True}, {"hidden": 0.5}])
def test_estimates_are_near_the_truth_whatever_the_state_lacks(settings):
    policy = more_for_the_ill()
    problem = logged(4, 1500, **settings)
    values, errors = OneStepBound().estimate(problem, policy, rng=np.random.default_rng(0))
    truth = true_values(policy, hidden=settings.get("hidden", 0.0))
    assert np.abs(values - [truth[0], truth[1]]) / errors == pytest.approx(0, abs=3.5)
