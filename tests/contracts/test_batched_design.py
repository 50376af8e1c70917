"""Every design that fits several models at once passes these (BatchedDesign and BatchedQ): a line in BATCHED."""

import numpy as np
import pytest

from contracts.classes import ACTIONS, CASES, N_ACTIONS, design_of, logged

BATCHED = {name: CASES[name] for name in ("neural", "neural, finite states", "neural, noisy updates")}


def check_each_model_learns_its_own_targets(case):
    """Three models with targets of their own, none of which another comes near: a tenth of the variance may be left."""
    truth = case.truth(case.states)
    wanted = np.stack([truth, -truth, truth[:, ::-1]])
    rng = np.random.default_rng(0)
    q = design_of(case).fit_many(np.stack([logged(one) for one in wanted]), models=3, rng=rng)
    found = q.members(case.states)
    assert found.shape == (3, len(ACTIONS), N_ACTIONS, 3)
    left = ((found - wanted) ** 2).mean(axis=(1, 2)) / wanted.var(axis=(1, 2))
    assert (left <= case.unexplained).all()
    assert q(case.states) == pytest.approx(found.mean(axis=0), rel=1e-5, abs=1e-6)
    for number in range(3):
        assert q.member(number)(case.states) == pytest.approx(found[number], rel=1e-4, abs=1e-5)


def check_models_of_the_same_targets_differ_by_chance_alone(case):
    truth = case.truth(case.states)
    q = design_of(case).fit_many(logged(truth)[None], models=3, rng=np.random.default_rng(0))
    found = q.members(case.states)
    left = ((found - truth) ** 2).mean(axis=(1, 2)) / truth.var(axis=(0, 1))
    assert (left <= case.unexplained).all()
    assert not np.array_equal(found[0], found[1])


@pytest.fixture(params=BATCHED.values(), ids=BATCHED.keys())
def case(request):
    return request.param


def test_each_model_learns_its_own_targets(case):
    check_each_model_learns_its_own_targets(case)


def test_models_of_the_same_targets_differ_by_chance_alone(case):
    check_models_of_the_same_targets_differ_by_chance_alone(case)
