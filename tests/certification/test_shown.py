"""What people are shown of a certificate: no bound that is not believed, no value that cannot be."""

import math

import pytest

from checkrein.problem.outcomes import within
from report.certificates import FAILED, certificate, passing


def one_of(values, ends):
    """A certificate of one limit; values: estimate, standard error, bound, other bound."""
    found = passing()
    estimate, error, bound, other = values
    changes = {"estimate": estimate, "standard_error": error, "bound": bound, "other_bound": other, "range": ends}
    return certificate([found.constraints[0].model_copy(update=changes)])


def test_no_bound_is_shown_where_a_check_failed():
    found = passing()
    doubted = certificate(found.constraints, checks=[FAILED])
    assert all(c.bound is not None for c in doubted.constraints)
    assert [(c.bound, c.other_bound) for c in doubted.as_shown.constraints] == [(None, None)] * 2
    assert found.as_shown == found


def test_an_estimate_far_beyond_what_its_cost_can_be_is_not_shown_nor_its_bounds():
    (shown,) = one_of((-323.8, 12.0, -300.0, -350.0), (0.0, 1.0)).as_shown.constraints
    assert (shown.estimate, shown.bound, shown.other_bound) == (None, None, None)


def test_an_estimate_within_its_error_of_what_can_be_is_moved_there():
    (shown,) = one_of((-0.001, 0.002, 0.004, -0.005), (0.0, 1.0)).as_shown.constraints
    assert (shown.estimate, shown.bound, shown.other_bound) == (0.0, 0.004, 0.0)


@pytest.mark.parametrize("value", [None, math.nan, 0.4])
def test_what_is_unknown_or_possible_stays(value):
    found = within(value, (0.0, 1.0), 0.1)
    assert found is value or found == value
    assert within(7.0, None) == 7.0
