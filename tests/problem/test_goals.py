import pytest

from checkrein import AtLeast, AtMost
from checkrein.problem.goals import Direction, Goal, Unit


@pytest.mark.parametrize(
    ("constraint", "direction"), [(AtMost("c", 2, name="n"), Direction.AT_MOST), (AtLeast("c", 2), Direction.AT_LEAST)]
)
def test_a_constraints_goal_has_its_name_its_limit_and_its_sign(constraint, direction):
    goal = Goal.of(constraint, Unit.PER_STEP, "50% of behavior")
    assert goal == Goal(constraint.name, direction, Unit.PER_STEP, 2.0, "50% of behavior")
    assert goal.direction.sign == constraint.sign


def test_what_is_maximised_is_the_negative_of_what_is_minimised_inside():
    assert (Direction.MINIMISE.sign, Direction.MAXIMISE.sign) == (1.0, -1.0)
