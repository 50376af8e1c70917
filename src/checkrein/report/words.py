"""Numbers, goals and units as a reader wants them, and which values break their limit."""

import math

from checkrein.certification.certificate import Verdict
from checkrein.certification.survival import LARGEST, Survival
from checkrein.problem.goals import Direction, Goal, Unit
from checkrein.report.model import CostRow

NONE = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
SIGNS: dict[Verdict, str] = {"pass": "✓", "fail": "✕", "inconclusive": "?"}
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


def sentence(text: str) -> str:
    """Return the same text with a capital at its start."""
    return text[:1].upper() + text[1:]


def goal_in_words(goal: Goal) -> str:
    """Return what is wanted of a cost: "minimise", "at most 1.5"."""
    return str(goal.direction) if goal.limit is None else f"{goal.direction} {goal.limit:.4g}"


def unit_in_words(unit: Unit, discount: float) -> str:
    """Return what a value is of."""
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
