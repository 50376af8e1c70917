"""The theorems as functions of their arguments; test_truth.py holds them against fitted iterations."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.base.errors import ArgumentError
from checkrein.theory import corrected, end_to_end, fqe_error, fqi_error, joint_bound
from theory.monotone import counts, discounts, positive, require_growing, require_shrinking

SINGLE = {
    "epsilon": positive,
    "iterations": counts,
    "discount": discounts,
    "value_bound": positive,
    "concentration": st.floats(1, 1e4),
    "inherent_error": st.floats(0, 10),
}
WHOLE = {
    "epsilon": positive,
    "iterations": counts,
    "discount": discounts,
    "objective_bound": positive,
    "constraint_bound": positive,
    "bound": positive,
    "tolerance": st.floats(0, 10),
    "concentration": st.floats(1, 1e4),
}
ERRORS = [fqe_error, fqi_error, corrected.fqe_error, corrected.fqi_error]


def value(calculate):
    return lambda **arguments: calculate(**arguments).value


@given(st.fixed_dictionaries(SINGLE))
@pytest.mark.parametrize("error", ERRORS)
def test_the_error_grows_with_everything_but_the_iterations(error, arguments):
    growing = ["epsilon", "discount", "value_bound", "concentration", "inherent_error"]
    require_growing(value(error), arguments, growing)
    require_shrinking(value(error), arguments, ["iterations"])


@given(st.fixed_dictionaries(SINGLE))
@pytest.mark.parametrize("error", ERRORS)
def test_the_error_is_linear_in_epsilon_and_goes_with_the_root_of_the_concentration(error, arguments):
    far = arguments | {"iterations": 10**6, "inherent_error": 0.0}  # nothing is left of where the iteration began
    once = error(**far).value
    assert error(**far | {"epsilon": 2 * far["epsilon"]}).value == pytest.approx(2 * once)
    assert error(**far | {"concentration": 4 * far["concentration"]}).value == pytest.approx(2 * once)
    assert error(**far | {"epsilon": 0.0, "inherent_error": far["epsilon"]}).value == pytest.approx(2 * once)


@given(st.fixed_dictionaries(WHOLE))
@pytest.mark.parametrize("which", ["objective", "constraint"])
def test_the_end_to_end_excess_grows_with_errors_and_values_and_shrinks_with_iterations(which, arguments):
    both = arguments | {"evaluation_concentration": arguments["concentration"]}
    for whole, given_ in ((end_to_end, arguments), (corrected.end_to_end, both)):

        def excess(whole=whole, **changed):
            return getattr(whole(**changed), which).value

        growing = ["epsilon", "discount", "objective_bound", "constraint_bound", "tolerance", "concentration"]
        require_growing(excess, given_, growing)
        require_shrinking(excess, given_, ["iterations"])
    require_growing(lambda **changed: end_to_end(**changed).objective.value, arguments, ["bound"])
    require_growing(lambda **changed: corrected.end_to_end(**changed).objective.value, both, ["bound"])


@given(st.fixed_dictionaries(WHOLE))
def test_the_printed_excess_over_a_limit_is_always_vacuous(arguments):
    assert end_to_end(**arguments).constraint.vacuous


def test_the_corrected_excess_over_a_limit_need_not_be_vacuous():
    arguments = {"epsilon": 1e-6, "iterations": 1000, "discount": 0.9, "objective_bound": 1.0, "constraint_bound": 1.0}
    arguments |= {"bound": 10.0, "tolerance": 0.01, "concentration": 2.0}
    excess = corrected.end_to_end(**arguments, evaluation_concentration=2.0)
    assert not excess.constraint.vacuous
    assert not excess.objective.vacuous
    assert excess.constraint.value == pytest.approx(0.2, abs=0.01)


@given(st.fixed_dictionaries(WHOLE))
def test_the_printed_objective_covers_its_own_parts_from_discount_0_382_on(arguments):
    joint = joint_bound(**{name: arguments[name] for name in ("objective_bound", "constraint_bound", "bound")})
    parts = {name: arguments[name] for name in ("epsilon", "iterations", "discount", "concentration")}
    learning = fqi_error(value_bound=joint, **parts).value
    evaluation = fqe_error(value_bound=joint, **parts).value
    said = end_to_end(**arguments).objective.value
    own = arguments["tolerance"] + learning + (2 + arguments["bound"]) * evaluation
    if arguments["discount"] >= 0.382:
        assert said >= own * (1 - 1e-9)
    elif arguments["discount"] <= 0.31:
        assert said < own


def test_the_numbers_worked_by_hand():
    arguments = {"epsilon": 0.1, "iterations": 50, "discount": 0.9, "value_bound": 1.0, "concentration": 4.0}
    shift, start = 0.2, 2 * 0.9**25
    printed = math.sqrt(0.9) / 0.1**1.5 * (shift + start / math.sqrt(0.1))
    assert printed == pytest.approx(19.62, abs=0.01)
    assert fqe_error(**arguments).value == pytest.approx(printed)
    assert fqi_error(**arguments).value == pytest.approx(1800 * (shift + start))
    assert corrected.fqe_error(**arguments).value == pytest.approx(2.0 + 2 * 0.9**50)
    assert corrected.fqi_error(**arguments).value == pytest.approx(40.0 + 40 * 0.9**50)


def test_a_missed_pair_makes_every_bound_infinite_and_vacuous():
    arguments = {"epsilon": 0.1, "iterations": 50, "discount": 0.9, "value_bound": 1.0, "concentration": math.inf}
    assert all(error(**arguments).vacuous and error(**arguments).value == math.inf for error in ERRORS)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("epsilon", -0.1),
        ("iterations", 0),
        ("iterations", 2.5),
        ("discount", 1.0),
        ("discount", 0.0),
        ("value_bound", 0.0),
        ("concentration", 0.0),
        ("concentration", math.nan),
        ("inherent_error", -1.0),
        ("inherent_error", math.inf),
    ],
)
@pytest.mark.parametrize("error", ERRORS)
def test_an_argument_out_of_its_range_is_named(error, name, wrong):
    arguments = {"epsilon": 0.1, "iterations": 50, "discount": 0.9, "value_bound": 1.0, "concentration": 4.0}
    with pytest.raises(ArgumentError, match=name):
        error(**arguments | {name: wrong})
