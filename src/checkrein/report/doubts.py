"""doubts: what a reader should know before a verdict is trusted."""

from collections.abc import Sequence

from checkrein.report.model import LEARNED, CostRow, Estimate
from checkrein.report.words import amount

FAR = 4.0  # standard errors between what was learned for and what was found ...
WILD = 0.5  # ... which is then also this share of the larger of the two
FEW_EVENTS = 100  # fewer say little of how often something happens ...
RARE = 0.1  # ... where no more than this share of episodes has it


def doubts_of(rows: Sequence[CostRow]) -> list[str]:
    """Return what the costs themselves give reason to doubt; rows: the objective's first."""
    return [said for row in rows for said in (*_impossible(row), *_unlike(row), *_rare(row))]


def counted_in_words(row: CostRow) -> str:
    """Return how many episodes have any of it: "46 of 10,000 episodes"; empty where that was not counted."""
    return "" if row.events is None or row.of_episodes is None else f"{row.events:,} of {row.of_episodes:,} episodes"


def _impossible(row: CostRow) -> list[str]:
    """Say where no estimate can be shown, because it lies where no value can."""
    found = row.values.get(LEARNED)
    if found is None or found.learning is not None or found.held_out is not None:
        return []
    return [f"{row.name}: the estimate lies beyond all that it can be, and is not shown. Nothing is known of it"]


def _unlike(row: CostRow) -> list[str]:
    """Say where the estimate that chose the policy and the one that judges it have little to do with each other."""
    found = row.values.get(LEARNED, Estimate(learning=None, held_out=None))
    if found.learning is None or found.held_out is None:
        return []
    gap, size = abs(found.learning - found.held_out), max(abs(found.learning), abs(found.held_out))
    if gap <= WILD * size or (found.standard_error is not None and gap <= FAR * found.standard_error):
        return []
    learning, held_out = (amount(value, share=row.share) for value in (found.learning, found.held_out))
    return [
        f"{row.name}: the learning part promised {learning}, the held-out part says {held_out}. The policy rests on "
        "what the learning part got wrong: ask for more evidence (min_count, min_probability), take fewer state "
        "columns, or log more"
    ]


def _rare(row: CostRow) -> list[str]:
    """Say on how few events a claim rests."""
    if row.events is None or row.of_episodes is None:
        return []
    lacking = row.of_episodes - row.events
    often = row.share and lacking < row.events  # what nearly every episode has is as hard to tell
    few = lacking if often else row.events
    if few >= FEW_EVENTS or few > RARE * row.of_episodes:
        return []
    how, which = ("nearly always there", "without") if often else ("rare", "with")
    return [
        f"{row.name} is {how}: all that is said of it rests on the {few:,} of {row.of_episodes:,} episodes {which} it"
    ]
