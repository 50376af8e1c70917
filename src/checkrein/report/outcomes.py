"""What the log shows of a cost, as a row of the report says it."""

from typing import TypedDict

from checkrein.problem.goals import Goal
from checkrein.problem.outcomes import Ends, Outcome, ends_of, within
from checkrein.report.model import Estimate
from checkrein.report.words import goal_in_words, unit_in_words


class AsOutcome(TypedDict):
    """What the log shows of a cost, in words and numbers of a row."""

    goal: str
    unit: str
    share: bool
    events: int | None
    of_episodes: int | None


def as_outcome(goal: Goal, discount: float, outcome: Outcome | None) -> AsOutcome:
    """Say what a cost's values are of; outcome: None where no log was read."""
    share = outcome is not None and outcome.yes_or_no
    return AsOutcome(
        goal=goal_in_words(goal, share=share),
        unit=unit_in_words(goal.unit, discount, share=share),
        share=share,
        events=None if outcome is None else outcome.events,
        of_episodes=None if outcome is None else outcome.episodes,
    )


def range_of(goal: Goal, outcome: Outcome | None) -> Ends | None:
    """Return the least and the largest value that there can be, in the user's sign; None where no log was read."""
    return None if outcome is None else ends_of(goal.direction.sign, outcome.range)


def possible(estimate: Estimate, goal: Goal, outcome: Outcome | None) -> Estimate:
    """Return an estimate moved to what its cost can be, and nothing of what is farther off than its error."""
    ends, error = range_of(goal, outcome), estimate.standard_error
    learning, held_out = (within(value, ends, error) for value in (estimate.learning, estimate.held_out))
    return estimate.model_copy(update={"learning": learning, "held_out": held_out})
