import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.base.errors import ArgumentError
from checkrein.theory import (
    corrected,
    empirical_constraint_excess,
    exponentiated_gradient_gap,
    exponentiated_gradient_rate,
    exponentiated_gradient_rounds,
    online_gradient_descent_gap,
    online_gradient_descent_rate,
    online_gradient_descent_rounds,
)
from theory.monotone import counts, positive, require_growing, require_shrinking

GAME = {"bound": positive, "n_constraints": counts, "constraint_range": positive}


@given(st.fixed_dictionaries({"gap": st.floats(1e-3, 1e3), **GAME}))
@pytest.mark.parametrize("rounds", [exponentiated_gradient_rounds, online_gradient_descent_rounds])
def test_rounds_grow_with_everything_but_the_gap(rounds, arguments):
    require_growing(rounds, arguments, ["bound", "n_constraints", "constraint_range"])
    require_shrinking(rounds, arguments, ["gap"])


@given(st.fixed_dictionaries({"rounds": counts, **GAME}))
@pytest.mark.parametrize("gap", [exponentiated_gradient_gap, online_gradient_descent_gap])
def test_the_gap_grows_with_everything_but_the_rounds_and_falls_as_one_over_their_root(gap, arguments):
    require_growing(gap, arguments, ["bound", "n_constraints", "constraint_range"])
    four_times = gap(**arguments | {"rounds": 4 * arguments["rounds"]})
    assert four_times == pytest.approx(gap(**arguments) / 2)


@given(st.fixed_dictionaries({"gap": st.floats(1e-3, 1.0), **GAME}))
@pytest.mark.parametrize("rounds", [exponentiated_gradient_rounds, online_gradient_descent_rounds])
def test_half_the_gap_takes_four_times_the_rounds(rounds, arguments):
    half = rounds(**arguments | {"gap": arguments["gap"] / 2})
    assert 4 * (rounds(**arguments) - 1) <= half <= 4 * rounds(**arguments)


@given(st.fixed_dictionaries({"gap": st.floats(1e-3, 1.0), **GAME}))
def test_the_rounds_and_the_rate_of_a_gap_reach_it_and_fewer_rounds_do_not(arguments):
    gap, bound, m, size = (arguments[name] for name in ("gap", *GAME))
    rate = exponentiated_gradient_rate(gap=gap, bound=bound, constraint_range=size)
    needed = exponentiated_gradient_rounds(**arguments)
    given_game = {"bound": bound, "n_constraints": m, "constraint_range": size}
    assert exponentiated_gradient_gap(rounds=needed, rate=rate, **given_game) <= gap * (1 + 1e-9)
    if needed > 1:
        assert exponentiated_gradient_gap(rounds=needed - 1, rate=rate, **given_game) > gap * (1 - 1e-9)
    rate = online_gradient_descent_rate(gap=gap, n_constraints=m, constraint_range=size)
    needed = online_gradient_descent_rounds(**arguments)
    assert online_gradient_descent_gap(rounds=needed, rate=rate, **given_game) <= gap * (1 + 1e-9)


@given(st.fixed_dictionaries({"rounds": counts, **GAME}), st.floats(0.1, 10))
@pytest.mark.parametrize("gap", [exponentiated_gradient_gap, online_gradient_descent_gap])
def test_no_rate_beats_the_default_one(gap, arguments, factor):
    m, size = arguments["n_constraints"], arguments["constraint_range"]
    exponentiated = math.sqrt(math.log(m + 1) / arguments["rounds"]) / size
    best = {
        exponentiated_gradient_gap: exponentiated,
        online_gradient_descent_gap: arguments["bound"] / (size * math.sqrt(m * arguments["rounds"])),
    }[gap]
    assert gap(**arguments) <= gap(**arguments, rate=best * factor) * (1 + 1e-9)


def test_the_numbers_worked_by_hand():
    game = {"bound": 10.0, "n_constraints": 1, "constraint_range": 0.5}
    assert exponentiated_gradient_rate(gap=0.1, bound=10.0, constraint_range=0.5) == pytest.approx(0.01)
    assert exponentiated_gradient_rounds(gap=0.1, **game) == math.ceil(40_000 * math.log(2)) == 27_726
    assert online_gradient_descent_rounds(gap=0.1, **game) == 10_000
    assert exponentiated_gradient_gap(rounds=100, **game) == pytest.approx(20 * math.sqrt(math.log(2) / 100))


EXCESS = {"tolerance": st.floats(0, 10), "bound": positive, "objective_bound": positive, "constraint_range": positive}


@given(st.fixed_dictionaries(EXCESS))
@pytest.mark.parametrize("excess", [empirical_constraint_excess, corrected.empirical_constraint_excess])
def test_the_excess_over_a_limit_shrinks_with_the_multipliers_bound_alone(excess, arguments):
    def value(**changed):
        return excess(**changed).value

    require_growing(value, arguments, ["tolerance", "objective_bound"])
    require_shrinking(value, arguments, ["bound"])
    assert value(**arguments | {"bound": 2 * arguments["bound"]}) == pytest.approx(value(**arguments) / 2)
    assert corrected.empirical_constraint_excess(**arguments).value <= empirical_constraint_excess(**arguments).value


def test_an_excess_that_no_policy_could_reach_is_vacuous():
    small, large = (
        empirical_constraint_excess(tolerance=0.1, bound=bound, objective_bound=1.0, constraint_range=0.5)
        for bound in (10.0, 4.0)
    )
    assert (small.value, small.vacuous) == (pytest.approx(0.22), False)
    assert (large.value, large.vacuous) == (pytest.approx(0.55), True)
    assert "vacuous" in large.words
    assert "vacuous" not in small.words


@pytest.mark.parametrize("name", ["gap", "bound", "constraint_range"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_number_that_must_be_above_zero_is_named(name, value):
    arguments = {"gap": 0.1, "bound": 1.0, "constraint_range": 1.0, "n_constraints": 1} | {name: value}
    with pytest.raises(ArgumentError, match=name):
        exponentiated_gradient_rounds(**arguments)
