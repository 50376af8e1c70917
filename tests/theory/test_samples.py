import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.base.errors import ArgumentError
from checkrein.theory import corrected, sample_size, smallest_epsilon, value_bound
from checkrein.theory.samples import PRINTED
from theory.monotone import counts, deltas, require_growing, require_shrinking

QUESTION = {
    "delta": deltas,
    "regressions": counts,
    "value_bound": st.floats(0.1, 100),
    "dimension": counts,
    "realisable": st.booleans(),
    "constants": st.sampled_from([PRINTED, corrected.CONSTANTS]),
}


@given(st.fixed_dictionaries({"epsilon": st.floats(1e-3, 10), **QUESTION}))
def test_rows_grow_with_everything_but_epsilon_and_delta(arguments):
    require_growing(sample_size, arguments, ["regressions", "value_bound", "dimension"])
    require_shrinking(sample_size, arguments, ["epsilon", "delta"])
    assert sample_size(**arguments | {"realisable": False}) >= sample_size(**arguments | {"realisable": True})


@given(st.fixed_dictionaries({"epsilon": st.floats(1e-3, 0.1), **QUESTION}))
def test_half_the_epsilon_takes_four_times_the_rows_up_to_the_logarithm(arguments):
    epsilon, dimension = arguments["epsilon"], arguments["dimension"]
    ratio = sample_size(**arguments | {"epsilon": epsilon / 2}) / sample_size(**arguments)
    assert ratio >= 4 * (1 - 1e-3)
    split = 1 if arguments["realisable"] else 2
    inside = split * arguments["constants"].covering * (arguments["value_bound"] / epsilon) ** 2
    assert ratio <= 4 * (1 + math.log(4) / math.log(inside)) * (1 + 1e-3), dimension


@given(st.fixed_dictionaries({"rows": st.integers(1, 10**9), **QUESTION}))
def test_the_smallest_epsilon_inverts_the_sample_size(arguments):
    rows = arguments.pop("rows")
    epsilon = smallest_epsilon(rows=rows, **arguments).value
    assert sample_size(epsilon=epsilon, **arguments) <= rows
    assert sample_size(epsilon=epsilon * (1 - 1e-9), **arguments) >= rows


@given(st.fixed_dictionaries({"rows": st.integers(1, 10**9), **QUESTION}))
def test_more_rows_guarantee_a_smaller_epsilon(arguments):
    require_shrinking(lambda **changed: smallest_epsilon(**changed).value, arguments, ["rows"])


@given(st.fixed_dictionaries({"epsilon": st.floats(1e-3, 10), **QUESTION}), st.floats(0.01, 100))
def test_the_corrected_sample_size_does_not_depend_on_the_unit_of_costs(arguments, unit):
    arguments |= {"constants": corrected.CONSTANTS}
    scaled = {name: arguments[name] * unit for name in ("epsilon", "value_bound")}
    assert sample_size(**arguments | scaled) == pytest.approx(sample_size(**arguments), rel=1e-6, abs=1)


def failure(n, *, epsilon, regressions, value_bound, dimension):
    """What the appendix says of the probability that one of the regressions fails, in the general case."""
    cover = 14 * math.e * (dimension + 1) * (640 * value_bound**2 / epsilon**2) ** dimension
    first = cover * math.exp(-n * epsilon**2 / (48 * 214 * value_bound**4))
    return regressions * (first + math.exp(-3 / 416 * n * epsilon**2 / value_bound**2))


@given(
    st.fixed_dictionaries(
        {
            "epsilon": st.floats(0.05, 1),
            "regressions": counts,
            "value_bound": st.floats(0.05, 3),
            "dimension": st.integers(1, 8),
        }
    ),
    deltas,
)
def test_the_general_case_keeps_the_failures_of_the_appendix_below_delta(arguments, delta):
    n = sample_size(delta=delta, realisable=False, **arguments)
    assert failure(n, **arguments) <= delta * (1 + 1e-9)


def test_the_numbers_worked_by_hand():
    question = {"delta": 0.05, "regressions": 50, "value_bound": 1.0, "dimension": 4}
    inside = math.log(1000) + 4 * math.log(32_000) + math.log(70 * math.e)
    assert sample_size(epsilon=0.1, **question) == math.ceil(513_600 * inside) == 27_554_751
    assert value_bound(step_cost=0.1, discount=0.9) == pytest.approx(1.0)


def test_an_epsilon_above_twice_the_values_is_vacuous():
    question = {"delta": 0.05, "regressions": 50, "value_bound": 1.0, "dimension": 4}
    assert smallest_epsilon(rows=1000, **question).vacuous
    assert not smallest_epsilon(rows=10**7, **question).vacuous


@pytest.mark.parametrize(
    ("name", "value"),
    [("delta", 0.0), ("delta", 1.0), ("epsilon", 0.0), ("dimension", 0), ("dimension", 1.5), ("regressions", 0)],
)
def test_an_argument_out_of_its_range_is_named(name, value):
    arguments = {"epsilon": 0.1, "delta": 0.05, "regressions": 50, "value_bound": 1.0, "dimension": 4}
    with pytest.raises(ArgumentError, match=name):
        sample_size(**arguments | {name: value})


def test_a_discount_of_one_has_no_bound_on_values():
    with pytest.raises(ArgumentError, match="discount is 1"):
        value_bound(step_cost=1.0, discount=1)
