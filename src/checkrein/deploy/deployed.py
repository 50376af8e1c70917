"""DeployedPolicy: what a user loads from a run folder and asks for actions, in the words of the log.

A mixture draws ONE member at the start of an episode and follows it to the end; its limits hold for that and for
nothing else. `act` treats every row as the first decision of an episode of its own. To go on in an episode, take
`start_episode` once and ask what it returns at every step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from checkrein.base.arrays import Array, FloatArray, IntArray
from checkrein.base.brief import FEW
from checkrein.base.errors import DataError, StorageError
from checkrein.data.columns import observations
from checkrein.data.encoding import Encoding
from checkrein.policies import load_policy as read_policy
from checkrein.policies import members_of
from checkrein.protocols import Policy
from checkrein.runs.folder import RunFolder

States = Any  # an array, or a table of the log's columns: polars, pandas, or a list with a dict per row
Seed = int | np.random.Generator  # a generator goes on where it stands: one serves a whole episode
Actions = IntArray | list[str] | list[int]


@dataclass(frozen=True, eq=False, repr=False)
class DeployedPolicy:
    """A policy and what its numbers stand for.

    Actions are labels (a list of str) where there is an encoding, integers where there is none.
    """

    policy: Policy
    encoding: Encoding | None = None

    def __repr__(self) -> str:
        actions = () if self.encoding is None else self.encoding.actions
        shown = f", actions {', '.join(actions[:FEW])}{', ...' if len(actions) > FEW else ''}" if actions else ""
        return f"DeployedPolicy({self.policy}{shown})"

    def probabilities(self, states: States) -> FloatArray:
        """(n, A) of the first action of an episode; later ones depend on the member that was drawn."""
        return self.policy.probabilities(encoded(states, self.encoding))

    def act(self, states: States, *, seed: Seed) -> Actions:
        """Draw a member for each row by itself, then its action: each row is the first decision of an episode."""
        rows, rng = encoded(states, self.encoding), np.random.default_rng(seed)
        members = members_of(self.policy)
        drawn = draw(np.tile([weight for _, weight in members], (len(rows), 1)), rng)
        uniform = rng.random(len(rows))
        actions = np.zeros(len(rows), dtype=np.int64)
        for place in np.unique(drawn):
            chosen = drawn == place
            actions[chosen] = pick(members[place][0].probabilities(rows[chosen]), uniform[chosen])
        return decoded(actions, self.encoding)

    def start_episode(self, seed: Seed) -> "EpisodePolicy":
        """Draw the one member that decides from the first step of an episode to the last."""
        members = members_of(self.policy)
        weights = np.array([[weight for _, weight in members]])
        place = int(draw(weights, np.random.default_rng(seed))[0])
        return EpisodePolicy(members[place][0], place, self.encoding)


@dataclass(frozen=True, eq=False, repr=False)
class EpisodePolicy:
    """The member drawn for one episode: ask it, and no other, until the episode ends."""

    policy: Policy
    member: int  # its place in the mixture
    encoding: Encoding | None = None

    def __repr__(self) -> str:
        return f"EpisodePolicy(member {self.member}: {self.policy})"

    def probabilities(self, states: States) -> FloatArray:
        """(n, A)"""  # noqa: D400, D415
        return self.policy.probabilities(encoded(states, self.encoding))

    def act(self, states: States, *, seed: Seed) -> Actions:
        """Draw an action for each row; pass a generator, or another seed at each step (greedy members need none)."""
        probabilities = self.probabilities(states)
        return decoded(draw(probabilities, np.random.default_rng(seed)), self.encoding)


def load_policy(path: str | Path, *, single: bool = False, uncertified: bool = False) -> DeployedPolicy:
    """Read the policy of a finished run from its folder, or any policy from the file `save_policy` wrote.

    single: of a run, the best single policy instead of the mixture
    uncertified: of a cross-fitted run where nothing passed, the candidate that was refused; without it, such a run has
        no policy to act by, because behavior should go on
    """
    if Path(path).suffix in (".json", ".onnx"):
        raise StorageError(f"{path} is an export for other programs: load the run folder instead")
    if not Path(path).is_dir():
        return DeployedPolicy(read_policy(path))
    return load(path, single=single, uncertified=uncertified)


def load(run_folder: str | Path, *, single: bool = False, uncertified: bool = False) -> DeployedPolicy:
    """Read the policy of a finished run, and its encoding where there is one; choices as in `load_policy`."""
    folder = RunFolder.opened(Path(run_folder))
    return DeployedPolicy(folder.policy(single=single, uncertified=uncertified), folder.encoding())


def encoded(states: States, encoding: Encoding | None) -> Array:
    """Return states as the policy knows them: (n,) integers or (n, d) features."""
    rows = _table(states)
    if rows is None:
        return observations(states, "states")
    if encoding is None:
        raise DataError("the run has no encoding: give states as an array, like Dataset.states, not as a table")
    return encoding.encode(_in_words(rows, encoding))


def decoded(actions: IntArray, encoding: Encoding | None) -> Actions:
    """Return actions in the words of the log, where they were words."""
    if encoding is None:
        return actions
    labels = [encoding.actions[action] for action in actions]
    return [int(label) for label in labels] if encoding.integer_actions else labels


def draw(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """(n,) a column for each row of (n, A) probabilities."""
    return pick(probabilities, rng.random(len(probabilities)))


def pick(probabilities: FloatArray, uniform: FloatArray) -> IntArray:
    """(n,) the column where each row's running sum passes its number in [0, 1)."""
    running = probabilities.cumsum(axis=1)
    return (running <= uniform[:, None] * running[:, -1:]).sum(axis=1, dtype=np.int64)


def _table(states: States) -> pl.DataFrame | None:
    """Return raw rows as a polars table, or None where states are an array."""
    if isinstance(states, pl.DataFrame):
        return states
    if hasattr(states, "columns") and hasattr(states, "isna"):  # pandas, which is not needed to say so
        gone = states.isna()
        return _frame(
            {
                str(name): [None if no else value for value, no in zip(states[name], gone[name], strict=True)]
                for name in states.columns
            }
        )
    if isinstance(states, Mapping):
        raise DataError("one row is a list with one dict in it: pass [row]")
    if isinstance(states, Sequence) and states and isinstance(states[0], Mapping):
        rows = cast(Sequence[Mapping[str, Any]], states)
        names = list(dict.fromkeys(name for row in rows for name in row))
        return _frame({name: [row.get(name) for row in rows] for name in names})
    return None


def _in_words(table: pl.DataFrame, encoding: Encoding) -> pl.DataFrame:
    """Write numbers the way the log wrote them, where they name a category: 2 and 2.0 are the same one."""
    for column in encoding.columns:
        if column.categories is None or column.name not in table.columns or not table[column.name].dtype.is_numeric():
            continue
        values = table[column.name].cast(pl.Float64).fill_nan(None)
        words = {number: word for word in column.categories if (number := _number(word)) is not None}
        written = values.replace_strict(list(words), list(words.values()), default=None, return_dtype=pl.String)
        unknown = table[column.name].cast(pl.String).set(values.is_null(), None)
        table = table.with_columns(written.fill_null(unknown).alias(column.name))
    return table


def _number(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _frame(columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    try:
        return pl.DataFrame(columns, strict=False)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as reason:
        raise DataError(f"the rows are not a table: {reason}") from None
