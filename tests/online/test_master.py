import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from checkrein.online.centre import central_multipliers
from checkrein.online.master import best_mixture


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), t=st.integers(1, 8), m=st.integers(0, 4), scale=st.sampled_from([1e-6, 1.0, 1e5]))
def test_the_program_and_its_prices_agree(seed, t, m, scale):
    """Strong duality: the mixture against the worst multipliers equals the prices against the best policy."""
    rng = np.random.default_rng(seed)
    objectives, violations = rng.normal(size=t), scale * rng.normal(size=(t, m))
    bounds = rng.uniform(0.5, 5.0, m) / scale
    found = best_mixture(objectives, violations, bounds)
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1)
    worst = max(0.0, *(bounds * (found.weights @ violations))) if m else 0.0
    assert found.weights @ objectives + worst == pytest.approx(found.value, abs=1e-8)
    assert (objectives + violations @ found.prices).min() == pytest.approx(found.value, abs=1e-7)
    assert (found.prices / bounds).sum() <= 1 + 1e-7


def test_two_policies_are_mixed_to_meet_the_limit_exactly():
    found = best_mixture(np.array([0.0, 1.0]), np.array([[0.3], [-0.1]]), np.array([100.0]))
    assert found.weights == pytest.approx([0.25, 0.75])
    assert found.prices == pytest.approx([2.5])


def test_equal_objectives_are_no_obstacle():
    found = best_mixture(np.array([1e-17, 0.0]), np.array([[0.5], [0.1]]), np.array([10.0]))
    assert found.weights == pytest.approx([0.0, 1.0])


def test_the_centre_maximises_the_product_of_slacks():
    """One constraint and one policy: the region is a triangle, whose centre has a closed form to compare with."""
    centre = central_multipliers(np.array([0.0]), np.array([[1.0]]), np.array([2.0]), 0.0)[0]

    def product(multiplier):  # height is integrated out: best at half of what the policy allows
        return -np.log(multiplier) - np.log(2 - multiplier) - 2 * np.log(multiplier / 2)

    assert centre == pytest.approx(minimize_scalar(product, bounds=(0.01, 1.99), method="bounded").x, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 5))
def test_the_centre_could_still_raise_the_lower_bound_and_units_do_not_matter(seed, m):
    rng = np.random.default_rng(seed)
    objectives, violations, bounds = rng.normal(size=6), rng.normal(size=(6, m)), np.full(m, 3.0)
    lower = objectives.min() - 0.5
    centre = central_multipliers(objectives, violations, bounds, lower)
    assert (centre > 0).all()
    assert (centre / bounds).sum() < 1
    assert (objectives + violations @ centre).min() > lower
    units = 10.0 ** rng.integers(-3, 4, m)
    scaled = central_multipliers(objectives, violations * units, bounds / units, lower)
    assert scaled * units == pytest.approx(centre, rel=1e-3)


def test_where_nothing_is_left_to_search_there_is_no_centre():
    assert central_multipliers(np.array([0.0]), np.array([[-1.0]]), np.array([2.0]), 0.0) is None
