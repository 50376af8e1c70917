"""The order of candidates where states are numbers: outwards from behavior, then closer to the limits."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from checkrein import engine
from checkrein.protocols import Policy
from checkrein.selection.feature_learning import FeatureFold
from checkrein.selection.learning import Aim

Found = tuple[FeatureFold, Policy | None]


def outward(
    parts: list[FeatureFold], distances: Sequence[float], margins: Sequence[float], tell: Callable[[str], None]
) -> Iterator[tuple[Aim, list[Policy]]]:
    """Yield the policies of all folds: with the widest margin farther and farther, then closer to the limits.

    Each narrower margin begins at the last distance that had a candidate: a nearer one would gain less. What some fold
    does not believe in is left out; once a margin has had a candidate, half a step farther is tried, and no more.
    """
    reached = distances[0]
    for margin in margins:
        last = None
        for distance in [reached, *(one for one in (*distances, 1.0) if one > reached)]:
            tell(f"candidate at {100 * distance:.3g}% of the way, {margin:g} standard errors under the limits")
            aim = Aim(distance, margin)
            policies = _learned(parts, aim)
            if policies is None and last is not None:
                aim = Aim(float(np.sqrt(last * distance)), margin)
                policies = _learned(parts, aim)
            if policies is not None:
                last = reached = aim.distance
                yield aim, policies
            if last is not None and (policies is None or aim.distance < distance):
                break


def _learned(parts: list[FeatureFold], aim: Aim) -> list[Policy] | None:
    """Return each fold's policy; None where some fold has none, which the first of them is asked about first."""
    first = parts[0].learned(aim)
    if first is None:
        return None
    found = list(engine.current().map(_Learn(aim), parts[1:]))
    parts[1:] = [part for part, _ in found]  # with what they found on the way
    policies = [policy for _, policy in found if policy is not None]
    return [first, *policies] if len(policies) == len(found) else None


class _Learn:
    """Asks a fold for a policy."""

    def __init__(self, aim: Aim) -> None:
        self.aim = aim

    def __call__(self, part: FeatureFold) -> Found:
        return part, part.learned(self.aim)
