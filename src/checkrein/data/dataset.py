"""Dataset: the logged transitions D of the paper. Frozen, validated, hashable, weighted."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray, chunks, frozen
from checkrein.base.errors import DataError
from checkrein.data import columns, parquet
from checkrein.data.compression import group
from checkrein.data.copies import Copies, find_copies
from checkrein.data.encoding import Encoding
from checkrein.data.frames import FrameStack, frozen_states
from checkrein.data.horizon import labels_of, until
from checkrein.data.memory import Memory
from checkrein.data.order import episode_order, first_rows

LATER = ("clusters", "horizon")  # fields that logs did not always have


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Logged transitions; build one with `from_arrays`, which checks what this constructor only stores.

    A finite state is an integer; any other observation is an array. A `terminal` transition has no future.
    One that merely stopped being logged has: where `next_observed` is false its next state is unknown, and
    it is left out of every regression.
    """

    states: Array  # (n,) integers, or (n, ...) observations, which may be a FrameStack
    actions: IntArray  # (n,)
    next_states: Array  # like states
    costs: FloatArray  # (n, k)
    cost_names: tuple[str, ...]  # k
    terminals: BoolArray  # (n,)
    next_observed: BoolArray  # (n,)
    weights: FloatArray  # (n,) how often each row was logged
    initial_states: Array  # (e,) or (e, ...)
    initial_weights: FloatArray  # (e,)
    n_actions: int
    n_states: int | None  # None: states are not finite
    episodes: IntArray | None = None  # (n,)
    steps: IntArray | None = None  # (n,)
    propensities: FloatArray | None = None  # (n,) probability with which the logged action was chosen
    clusters: IntArray | None = None  # (n,) whose episode it is (a patient's): episodes of one are not independent
    highest: FloatArray | None = None  # (k,) largest cost of a single step, kept where rows are means of several
    lowest: FloatArray | None = None  # (k,)
    longest: float | None = None  # steps of the longest episode, kept where episodes are no longer known
    encoding: Encoding | None = None  # what states and actions are called where the log came from
    memory: Memory | None = None  # what of the past has joined the states, for costs that remember it
    horizon: int | None = None  # the step at which values stop, which has joined the states

    @classmethod
    def from_arrays(
        cls,
        *,
        states: ArrayLike,
        actions: ArrayLike,
        next_states: ArrayLike,
        costs: Mapping[str, ArrayLike],
        terminals: ArrayLike,
        episodes: ArrayLike | None = None,
        steps: ArrayLike | None = None,
        initial_states: ArrayLike | None = None,
        propensities: ArrayLike | None = None,
        n_actions: int | None = None,
        n_states: int | None = None,
        next_observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        initial_weights: ArrayLike | None = None,
        encoding: Encoding | None = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Check one array per field and freeze them.

        `initial_states` default to the first state of each episode (by `steps` where given, else by row).
        `weights` say how often a row counts; `next_observed` is false where the log holds no next state.
        `clusters` say whose each row is (a patient's number or name): episodes of one cluster are not independent, so
        they are split, folded and resampled together, and standard errors count clusters.
        Images in stacks are best given as a `FrameStack` (see `stack_frames`), which copies no pixels.
        """
        x = columns.observations(states, "states")
        n = len(x)
        if n == 0:
            raise DataError("the dataset is empty: it needs at least one transition")
        names, cost_table = columns.costs(costs, n)
        ends = columns.flags(terminals, "terminals", n)
        observed = columns.ones(n, bool)
        if next_observed is not None:
            observed = ends | columns.flags(next_observed, "next_observed", n)  # of an end there is nothing to observe
        episode = None if episodes is None else columns.integers(episodes, "episodes", n)
        step = None if steps is None else columns.integers(steps, "steps", n)
        row_weights = columns.ones(n) if weights is None else columns.weights(weights, "weights", n)
        rows = columns.Rows(episode)
        rows.require_finite(cost_table, [f"cost {name!r}" for name in names])
        rows.require_finite(x, ["states"])
        x_next = columns.next_observations(next_states, x, known=observed & ~ends, rows=rows)
        if initial_states is None:
            first = first_rows(episode, step)
            starts, start_weights = x[first], row_weights[first]
        else:
            starts = columns.observations(initial_states, "initial_states")
            columns.Rows(None).require_finite(starts, ["initial_states"])
            start_weights = columns.ones(len(starts))
        if initial_weights is not None and len(starts):
            start_weights = columns.weights(initial_weights, "initial_weights", len(starts), like="initial_states")
        if not start_weights.sum() > 0:
            raise DataError("there is no initial state: initial_states is empty, or all of them weigh nothing")
        if starts.shape[1:] != x.shape[1:]:
            raise DataError(f"initial_states have shape {starts.shape[1:]} each, but states {x.shape[1:]}")
        action = columns.integers(actions, "actions", n)
        return cls(
            states=frozen_states(x),
            actions=frozen(action),
            next_states=frozen_states(x_next),
            costs=frozen(cost_table),
            cost_names=names,
            terminals=frozen(ends),
            next_observed=frozen(observed),
            weights=frozen(row_weights),
            initial_states=frozen_states(starts),
            initial_weights=frozen(start_weights),
            n_actions=columns.count_actions(action, n_actions, rows),
            n_states=columns.count_states((x, x_next, starts), n_states) if x.ndim == 1 else None,
            episodes=None if episode is None else frozen(episode),
            steps=None if step is None else frozen(step),
            propensities=None if propensities is None else frozen(columns.propensities(propensities, n, rows)),
            encoding=encoding,
            clusters=None if clusters is None else frozen(columns.clusters(clusters, n, episode)),
        )

    def write_parquet(self, path: str | Path) -> None:
        """Write to one Parquet file, whole or not at all; `read_parquet` gives an equal dataset back."""
        parquet.write_fields(self, path)

    @classmethod
    def read_parquet(cls, path: str | Path) -> "Dataset":
        """Read what `write_parquet` wrote; a table of decisions is for `read_logs`."""
        arrays, kept = parquet.read_fields(path)
        return replace(cls.from_arrays(**arrays), **kept)

    def __len__(self) -> int:
        return int(self.actions.size)

    def __repr__(self) -> str:
        kind = "observations" if self.n_states is None else f"{self.n_states} states"
        return f"Dataset({len(self)} rows, {kind}, {self.n_actions} actions, costs {', '.join(self.cost_names)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything the dataset holds."""
        digest = hashlib.sha256(repr((self.cost_names, self.n_actions, self.n_states)).encode())
        shared: dict[int, bytes] = {}  # frames are hashed once, however many stacks are made of them
        for name, value in vars(self).items():
            if name == "memory":
                digest.update(b"" if value is None else repr(value).encode())
            elif isinstance(value, np.ndarray):
                _hash(value, digest)
            elif isinstance(value, FrameStack):
                if id(value.frames) not in shared:
                    shared[id(value.frames)] = _hash(value.frames, hashlib.sha256()).digest()
                digest.update(shared[id(value.frames)])
                _hash(value.index, digest)
            elif value is None and name not in LATER:  # a log without is the log that it was before there were any
                digest.update(b"none")
        if self.encoding is not None:
            digest.update(repr((self.encoding.actions, self.encoding.columns, self.encoding.integer_actions)).encode())
            digest.update(b"" if self.encoding.combinations is None else self.encoding.combinations.tobytes())
        return digest.hexdigest()

    @property
    def action_labels(self) -> tuple[str, ...]:
        """What each action is called where the log came from, else its number."""
        return tuple(map(str, range(self.n_actions))) if self.encoding is None else self.encoding.actions

    @property
    def state_labels(self) -> tuple[str, ...]:
        """What each finite state is called where the log came from, else its number."""
        if self.n_states is None:
            raise DataError("states that are not finite have no labels")
        count = self.n_states if self.memory is None else int(self.memory.n_states or 0)
        own = self._numbered(count) if self.encoding is None else self.encoding.states
        return own if self.memory is None else self.memory.labels(own, self.action_labels)

    def _numbered(self, count: int) -> tuple[str, ...]:
        """Name finite states by their numbers."""
        if self.horizon is None:
            return tuple(map(str, range(count)))
        return labels_of(tuple(map(str, range(count // self.horizon))), self.horizon)

    @property
    def units(self) -> IntArray:
        """(n,) what each row is of that is independent of all else: its cluster, or else its episode."""
        found = self.episodes if self.clusters is None else self.clusters
        if found is None:
            raise DataError("without episodes it is not known which rows are independent: pass episodes=")
        return found

    @property
    def n_units(self) -> int:
        """How many of them there are."""
        return int(np.unique(self.units).size)

    @property
    def truncated(self) -> BoolArray:
        """(n,) rows that end an episode without a terminal state; episodes must be known."""
        if self.episodes is None:
            raise DataError("without episodes it is not known where one was cut off: pass episodes=")
        last = np.zeros(len(self), dtype=bool)
        order = episode_order(self.episodes, self.steps)
        ends = np.flatnonzero(np.diff(self.episodes[order], append=np.iinfo(np.int64).max))
        last[order[ends]] = True
        return last & ~self.terminals

    def until(self, horizon: int) -> "Dataset":
        """Return a log that ends at a horizon: the step joins the states, and later rows are left out.

        The row in step `horizon` of an episode really ends it. State s in step t, counted from 0, is s + n_states * t;
        to a feature vector the step is appended, counted from 1 as in the column "step number" of tables.
        """
        return until(self, horizon)

    def cost(self, name: str) -> FloatArray:
        """(n,) one cost by its name."""
        if name not in self.cost_names:
            raise DataError(f"no cost is called {name!r}: the dataset has {', '.join(self.cost_names)}")
        return self.costs[:, self.cost_names.index(name)]

    def with_costs(self, costs: Mapping[str, ArrayLike]) -> "Dataset":
        """Return the same transitions judged by other costs (counterfactual ones, say)."""
        names, table = columns.costs(costs, len(self))
        columns.Rows(self.episodes).require_finite(table, [f"cost {name!r}" for name in names])
        return replace(self, costs=frozen(table), cost_names=names, highest=None, lowest=None)

    def cost_range(self) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest cost (k,) of any single step that counts."""
        if self.lowest is not None and self.highest is not None:
            return self.lowest, self.highest
        return self._cost_range

    @cached_property
    def _cost_range(self) -> tuple[FloatArray, FloatArray]:
        counted = self.costs if self.weights.strides == (0,) else self.costs[self.weights > 0]
        each = list(counted.T)  # columns are contiguous: one fast pass each
        return np.array([column.min() for column in each]), np.array([column.max() for column in each])

    def longest_episode(self) -> float:
        """Return the steps of the longest episode; all rows may be one where episodes are not known."""
        if self.longest is not None:
            return self.longest
        if self.episodes is None:
            return float(self.weights.sum())
        return self._longest

    @cached_property
    def _longest(self) -> float:
        return float(np.unique(cast(IntArray, self.episodes), return_counts=True)[1].max())

    def compressed(self) -> "Dataset":
        """Merge equal transitions of finite states into one weighted row with mean costs (exact; order is lost).

        Rows with other observations are returned as they are. Regressions on the result equal those on the rows.
        """
        return self if self.n_states is None else self._compressed

    @cached_property
    def _compressed(self) -> "Dataset":
        n_actions, n_states = self.n_actions, cast(int, self.n_states)
        flags = self.next_observed.view(np.int8) + 2 * self.terminals.view(np.int8)

        def keys(rows: slice) -> IntArray:
            key = self.states[rows] * n_actions
            key += self.actions[rows]
            key *= n_states
            key += self.next_states[rows]
            key *= 4
            key += flags[rows]
            return key

        unweighted = self.weights.strides == (0,) and self.weights[0] == 1.0
        rows = group(keys, n_states * n_actions * n_states * 4, None if unweighted else self.weights, self.costs)
        pair, flag = np.divmod(rows.keys, 4)
        pair, next_states = np.divmod(pair, n_states)
        states, actions = np.divmod(pair, n_actions)
        starts = np.bincount(self.initial_states, self.initial_weights, n_states)
        lowest, highest = self.cost_range()
        return replace(
            self,
            lowest=frozen(lowest),
            highest=frozen(highest),
            longest=self.longest_episode(),
            states=frozen(states),
            actions=frozen(actions),
            next_states=frozen(next_states),
            costs=frozen(rows.means),
            terminals=frozen(flag >= 2),
            next_observed=frozen(flag % 2 == 1),
            weights=frozen(rows.weights),
            initial_states=frozen(np.flatnonzero(starts)),
            initial_weights=frozen(starts[starts > 0]),
            episodes=None,
            steps=None,
            propensities=None,
            clusters=None,
        )

    def first_rows(self) -> IntArray:
        """(e,) the first row of each episode."""
        return first_rows(self.episodes, self.steps)

    def order(self) -> IntArray:
        """(n,) the rows by episode, then by step (else as they stand)."""
        if self.episodes is None:
            raise DataError("without episodes rows have no order: pass episodes=")
        return episode_order(self.episodes, self.steps)

    def returns(self, discount: float) -> FloatArray:
        """(e, k) the discounted sum of every cost in each logged episode, in the order of their numbers."""
        if self.episodes is None:
            raise DataError("without episodes there are no sums over them: pass episodes=")
        order = episode_order(self.episodes, self.steps)
        episode = np.cumsum(np.diff(self.episodes[order], prepend=self.episodes[order[0]]) != 0)
        begins = np.flatnonzero(np.diff(episode, prepend=-1))
        factors = discount ** (np.arange(len(self)) - begins[episode])
        discounted = self.costs[order] * factors[:, None]
        return np.stack([np.bincount(episode, column) for column in discounted.T], axis=1)

    def select(self, rows: BoolArray) -> "Dataset":
        """Return the chosen rows; the initial states stay."""
        always = ("states", "actions", "next_states", "costs", "terminals", "next_observed", "weights")
        optional = [
            name for name in ("episodes", "steps", "propensities", "clusters") if getattr(self, name) is not None
        ]
        chosen: dict[str, Any] = {name: frozen_states(getattr(self, name)[rows]) for name in (*always, *optional)}
        return replace(self, **chosen)

    @cached_property
    def own_starts(self) -> bool:
        """Whether the initial states are those that the episodes begin in, and not others that were given."""
        first = self.first_rows()
        given: Any = self.initial_states
        own: Any = self.states[first]
        if isinstance(given, FrameStack) and isinstance(own, FrameStack) and given.frames is own.frames:
            given, own = given.index, own.index  # no pixel is copied
        return len(given) == first.size and np.array_equal(
            _sorted(given, self.initial_weights), _sorted(own, self.weights[first])
        )

    @cached_property
    def copies(self) -> Copies:
        """The episodes that are copies of others under another number."""
        return find_copies(self)

    @cached_property
    def counted_once(self) -> "Dataset":
        """The log without copies, and without episodes that weigh nothing; itself where there are none."""
        if self.episodes is None:
            return self
        counts = np.isin(self.episodes, self.episodes[self.weights > 0]) & ~np.isin(self.episodes, self.copies.dropped)
        return self if counts.all() else self.part(counts)

    def of_episodes(self, chosen: BoolArray) -> "Dataset":
        """Return the chosen episodes (e,), in the order of their numbers."""
        if self.episodes is None:
            raise DataError("without episodes there are none to choose: pass episodes=")
        return self.part(np.isin(self.episodes, np.unique(self.episodes)[chosen]))

    def part(self, rows: BoolArray) -> "Dataset":
        """Return the chosen rows, which are whole episodes, with their own initial states unless others were given."""
        chosen = self.select(rows)
        if not self.own_starts:
            return chosen
        first = chosen.first_rows()
        starts, weights = frozen_states(chosen.states[first]), frozen(chosen.weights[first])
        return replace(chosen, initial_states=starts, initial_weights=weights)


def _hash(array: Array, digest: "hashlib._Hash") -> "hashlib._Hash":
    digest.update(repr((array.shape, array.dtype.str)).encode())
    for part in chunks(array):
        digest.update(np.ascontiguousarray(part).data)
    return digest


def _sorted(states: Array, weights: FloatArray) -> FloatArray:
    """(n, d + 1) states and their shares, row by row in one order."""
    rows = np.column_stack([np.asarray(states).reshape(len(states), -1), weights / weights.sum()])
    return np.asarray(rows[np.lexsort(rows.T)])
