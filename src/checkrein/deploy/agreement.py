"""An export is compared with the policy that it is of, on random states, before anything is written."""

from collections.abc import Callable

import numpy as np
import polars as pl

from checkrein.base.arrays import Array, BoolArray, FloatArray
from checkrein.base.errors import StorageError
from checkrein.data.encoding import MISSING, Encoding
from checkrein.deploy.models import ValuesMember
from checkrein.deploy.portable import MajorityMember, Member, Portable

CLOSE = 1e-6  # how far probabilities may differ
NUDGE = 1e-9  # a state where a relative change this small changes the choice is too close to call
SPREAD = 2.0  # how many standard deviations of the log the random features go out
SOME_MISSING = 0.2  # the share of missing numbers in random rows, where they may be missing


def random_states(policy: Portable, n: int, rng: np.random.Generator) -> Array:
    """Return all finite states or n of them, or (n, d) features around what the log held as far as that is known."""
    if policy.finite:
        return np.arange(policy.size) if policy.size <= n else rng.integers(0, policy.size, n)
    centre, scale = np.zeros(policy.size), np.ones(policy.size)
    for rule in policy.rules:
        if rule.around is not None:
            centre, scale = rule.around
    return np.asarray(centre + SPREAD * scale * rng.normal(size=(n, policy.size)), dtype=np.float64)


def random_rows(encoding: Encoding, n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Return n rows of a table as users have it, in the log's own words."""
    columns: dict[str, list[str | None] | list[float | None]] = {}
    known = encoding.combinations
    codes = None if known is None else known[rng.integers(len(known), size=n)]
    for place, column in enumerate(encoding.columns):
        if column.categories is None:
            gone = rng.random(n) < (0.0 if column.fill is None else SOME_MISSING)
            numbers = rng.normal(size=n).tolist()
            columns[column.name] = [None if no else x for x, no in zip(numbers, gone, strict=True)]
        else:
            chosen = rng.integers(len(column.categories), size=n) if codes is None else codes[:, place]
            words = [column.categories[code] for code in chosen]
            columns[column.name] = [None if word == MISSING else word for word in words]
    return pl.DataFrame(columns, schema={c.name: pl.String if c.categories else pl.Float64 for c in encoding.columns})


def require_agreement(
    policy: Portable, exported: Callable[[Array], FloatArray], *, rows: int, seed: int, what: str
) -> None:
    """Raise unless an export, states -> (members, n, A), gives the policy's own probabilities."""
    states = random_states(policy, rows, np.random.default_rng(seed))
    ours, theirs = policy.probabilities(states), np.asarray(exported(states))
    if theirs.shape != ours.shape:
        raise StorageError(f"the {what} makes probabilities of shape {theirs.shape}, the policy {ours.shape}")
    wrong = ~(np.abs(ours - theirs) <= CLOSE) & ~close_calls(policy, states)[:, :, None]
    if wrong.any():
        member, row, action = (int(i) for i in np.argwhere(wrong)[0])
        raise StorageError(
            f"the {what} gives action {action} probability {theirs[member, row, action]} in state {states[row]}, "
            f"but member {member} of the policy gives {ours[member, row, action]}: it was not written. "
            "This is a mistake in checkrein: please report it with the run folder"
        )


def close_calls(policy: Portable, states: Array) -> Array:
    """(members, n) where the policy itself changes its mind when the features move by next to nothing."""
    if policy.finite:
        return np.zeros((len(policy.members), len(states)), dtype=bool)
    ours = policy.probabilities(states)
    single = np.array([_too_close(member, states) for member in policy.members])
    moved = [policy.probabilities(states * (1 + nudge)) for nudge in (-NUDGE, NUDGE)]
    return single | np.any([np.abs(ours - other).max(axis=2) > CLOSE for other in moved], axis=0)


def _too_close(member: Member, states: Array) -> BoolArray:
    """(n,) where single precision may change what is chosen."""
    rules = member.rules if isinstance(member, MajorityMember) else (member,)
    near = [rule.too_close(states) for rule in rules if isinstance(rule, ValuesMember)]
    return np.any([np.zeros(len(states), dtype=bool), *near], axis=0)
