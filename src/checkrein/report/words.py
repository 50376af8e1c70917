"""Numbers, goals and units as a reader wants them, and which values break their limit."""

import math
from collections.abc import Sequence

from checkrein.certification.certificate import Verdict
from checkrein.certification.survival import LARGEST, Survival
from checkrein.problem.goals import Direction, Goal, Unit
from checkrein.report.model import CostRow

NONE = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
SIGNS: dict[Verdict, str] = {"pass": "✓", "fail": "✕", "inconclusive": "?"}
SHARE = "share of episodes"  # the unit of what an episode has or has not
ROUNDING = 1e-12  # a smaller number is what sums leave of 0
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Return four significant digits, whole numbers whole, powers of ten beyond 1e-4 and 1e7; rounding is 0."""
    if value is None or math.isnan(value):
        return NONE
    sign = MINUS if value < 0 else ""
    if math.isinf(value):
        return f"{sign}∞"
    magnitude = abs(float(f"{value:.4g}"))
    if magnitude < ROUNDING:
        return "0"
    if 1e-4 <= magnitude < 1e7:
        decimals = max(0, 3 - math.floor(math.log10(magnitude)))
        return sign + _without_zeros(f"{abs(value):,.{decimals}f}")
    digits, exponent = f"{magnitude:.3e}".split("e")
    return f"{sign}{_without_zeros(digits)}{TIMES}10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def percent(share: float | None) -> str:
    """Return a share as a percentage with one decimal."""
    return NONE if share is None or not math.isfinite(share) else f"{_without_zeros(f'{abs(100 * share):.1f}')}%"


def percentage(share: float) -> str:
    """Return a share as a percentage with the digits it has, up to four: of what was chosen rather than measured."""
    return f"{number(100 * share)}%"


def amount(value: float | None, *, share: bool = False) -> str:
    """Return a value as people say it: a share of episodes in per cent, to three digits."""
    if not share or value is None or not math.isfinite(value):
        return number(value)
    return f"{number(float(f'{100 * value:.3g}'))}%"


def apart(difference: float | None, *, share: bool = False) -> str:
    """Return a difference of two such values: of shares in percentage points."""
    if not share or difference is None or not math.isfinite(difference):
        return number(difference)
    points = number(float(f"{100 * difference:.3g}"))
    return f"{points} point" if points == "1" else f"{points} points"


def span_in_words(low: float, high: float, *, share: bool = False, joined: str = "to") -> str:
    """Return an interval of differences, its unit said once."""
    scaled = float(f"{100 * low:.3g}") if share else low
    return f"{number(scaled)} {joined} {apart(high, share=share)}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def sentence(text: str) -> str:
    """Return the same text with a capital at its start."""
    return text[:1].upper() + text[1:]


def goal_in_words(goal: Goal, *, share: bool = False) -> str:
    """Return what is wanted of a cost: "minimise", "at most 1.5", "at most 2%"."""
    if goal.limit is None:
        return str(goal.direction)
    return f"{goal.direction} {amount(goal.limit, share=True) if share else f'{goal.limit:.4g}'}"


def unit_in_words(unit: Unit, discount: float, *, share: bool = False) -> str:
    """Return what a value is of; share: whether every episode has it or has it not."""
    if share and unit is Unit.SUM:
        return SHARE
    if unit is Unit.PER_STEP:
        return f"average per step, discounted by {discount}"
    return "expected sum per episode" if discount == 1 else f"expected sum, discounted by {discount}"


def odds_in_words(claim: Survival) -> str:
    """Return the largest odds ratio that a claim survives, rounded down; a dash where there is none."""
    if claim.odds_ratio is None or not claim.varies:
        return NONE
    return f"over {LARGEST:g}" if claim.odds_ratio >= LARGEST else f"{claim.odds_ratio:.2f}"


def is_floor(row: CostRow) -> bool:
    """Tell whether the limit is one to stay above."""
    return row.direction is Direction.AT_LEAST


def breach(row: CostRow, value: float | None) -> str | None:
    """Return "over" or "below" where a value breaks its limit, else None: both compared as shown, at four digits."""
    if row.limit is None or value is None or math.isnan(value):
        return None
    excess = float(f"{value:.4g}") - float(f"{row.limit:.4g}")
    if is_floor(row):
        return "below" if excess < 0 else None
    return "over" if excess > 0 else None


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
