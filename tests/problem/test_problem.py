import numpy as np
import pytest

from checkrein import AtLeast, AtMost, Dataset, Problem, Values
from checkrein.base.errors import ProblemError
from problems import problem_of, random_log

LOG = random_log(0)


def test_costs_and_limits_are_signed_so_that_less_is_better():
    problem = Problem(LOG, objective="c", constraints=[AtMost("g0", 1.5), AtLeast("g1", 0.5)], discount=0.9)
    assert problem.limits.tolist() == [1.5, -0.5]
    rows = problem.transitions
    assert problem.row_costs == pytest.approx(np.column_stack([rows.cost("c"), rows.cost("g0"), -rows.cost("g1")]))
    assert problem.named(Values(3.0, np.array([1.0, -2.0]))) == {"c": 3.0, "g0": 1.0, "g1": 2.0}


def test_two_constraints_on_one_cost_are_told_apart_by_name():
    both = [AtMost("g0", 2.0, name="upper"), AtLeast("g0", 1.0, name="lower")]
    assert [c.name for c in Problem(LOG, objective="c", constraints=both, discount=0.9).constraints] == [
        "upper",
        "lower",
    ]


def test_worst_values_are_what_the_costs_allow_at_the_discount():
    rows = Dataset.from_arrays(
        states=[0, 1, 0],
        actions=[0, 0, 0],
        next_states=[1, 0, 1],
        costs={"c": [1.0, 3.0, 2.0], "g": [-1.0, -4.0, -2.0]},
        terminals=[False, True, False],
        episodes=[0, 0, 1],
    )
    problem = Problem(rows, objective="c", constraints=[AtMost("g", 0.0)], discount=0.9)
    assert problem.worst() == pytest.approx([30.0, -1.0])  # a benefit is at its least when the episode ends at once
    undiscounted = Problem(rows, objective="c", constraints=[AtLeast("g", 0.0)], discount=1.0)
    assert undiscounted.worst() == pytest.approx([6.0, 8.0])  # the longest logged episode has two steps


def test_rows_without_a_future_are_left_out_of_regressions():
    rows = Dataset.from_arrays(
        states=[0, 0, 1],
        actions=[0, 1, 0],
        next_states=[1, 1, 1],
        costs={"c": [1.0, 2.0, 3.0]},
        terminals=[False, True, False],
        next_observed=[False, False, True],
        initial_states=[0],
    )
    kept = Problem(rows, objective="c", constraints=[], discount=0.9).transitions
    assert sorted(zip(kept.states.tolist(), kept.actions.tolist(), strict=True)) == [(0, 1), (1, 0)]


def test_nothing_to_learn_from_is_said():
    rows = Dataset.from_arrays(
        states=[0], actions=[0], next_states=[0], costs={"c": [1.0]}, terminals=[False], next_observed=[False],
        initial_states=[0],
    )  # fmt: skip
    with pytest.raises(ProblemError, match="no transition has a next state or is terminal"):
        _ = Problem(rows, objective="c", constraints=[], discount=0.9).transitions


BAD = {
    "objective": ({"objective": "d"}, "no cost is called 'd': the dataset has c, g0, g1"),
    "constraint": ({"constraints": [AtMost("h", 1.0)]}, "no cost is called 'h'"),
    "twice": ({"constraints": [AtMost("g0", 1.0), AtLeast("g0", 0.5)]}, "two constraints are called 'g0'"),
    "no constraint": ({"constraints": ["g0"]}, "'g0' is not a constraint"),
    "discount 0": ({"discount": 0.0}, r"the discount is 0.0: it must lie in \(0, 1\]"),
    "discount 1.5": ({"discount": 1.5}, r"the discount is 1.5"),
    "discount NaN": ({"discount": float("nan")}, "the discount is nan"),
    "discount text": ({"discount": "high"}, "the discount is high"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD.keys())
def test_bad_problems_raise_a_problem_error_that_shows_the_numbers(change, message):
    good = {"objective": "c", "constraints": [AtMost("g0", 1.0)], "discount": 0.9}
    with pytest.raises(ProblemError, match=message):
        Problem(LOG, **good | change)


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), "much", None, True])
def test_a_limit_that_is_no_finite_number_is_refused(limit):
    with pytest.raises(ProblemError, match=f"the limit on 'g' is {limit!r}"):
        AtMost("g", limit)


def test_what_depends_on_the_problem_alone_is_built_once():
    problem, built = problem_of(LOG), []
    for _ in range(3):
        problem.once("key", lambda: built.append(1))
    assert len(built) == 1


def test_a_declared_range_is_the_worst_that_is_assumed():
    log = random_log(0)
    limits = [AtMost("g0", 1.0, range=(0, 3)), AtLeast("g1", 1.0, range=(0.5, 7))]
    problem = Problem(log, objective="c", constraints=limits, discount=0.9)
    assert problem.worst()[1:].tolist() == [3.0, -0.5]
    with pytest.raises(ProblemError, match="least and its largest"):
        AtMost("g0", 1.0, range=(2, 1))


def test_sums_that_differ_by_rounding_do_not_vary():
    log = random_log(0)
    lengths = np.bincount(log.episodes)
    shares = (1 / lengths)[log.episodes]  # sums of 1 to rounding, of 0.1 + ... + 0.1
    same = log.with_costs({"c": shares, "g0": log.cost("g0")})
    problem = Problem(same, objective="c", constraints=[AtMost("g0", 1.0)], discount=1.0)
    assert problem.spread[0] == 1
    assert problem.spread[1] == pytest.approx(same.returns(1.0)[:, 1].std())


def test_other_limits_share_what_the_log_was_made_into_and_nothing_that_rests_on_limits():
    problem = problem_of(random_log(0), limits=(0.5, 0.5))
    at_first = problem.once("of limits", problem.limits.tolist)
    of_log = problem.once("of the log", object, any_limits=True)
    other = problem.with_limits([0.2, 0.7])
    assert [c.limit for c in other.constraints] == [0.2, 0.7]
    assert other.limits.tolist() == [0.2, 0.7]
    assert problem.limits.tolist() == [0.5, 0.5]
    assert other.once("of limits", other.limits.tolist) != at_first
    assert other.once("of the log", object, any_limits=True) is of_log
    assert other.transitions is problem.transitions
    assert other.row_costs is problem.row_costs
    with pytest.raises(ProblemError):
        problem.with_limits([np.nan, 0.5])
