"""Runs: the episodes of a log that streams by, whose rows must follow each other."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from checkrein.base.arrays import BoolArray
from checkrein.base.errors import ArgumentError, DataError
from checkrein.logs.kinds import require_present, require_told_apart
from checkrein.logs.sources import ROW, Source

EPISODES = 1 << 20  # episode ids in memory at a time, where ids in no order have to be compared
ADVICE = "sort the log, or read it with read_logs"
Keep = Callable[[pl.Series], pl.Series]


@dataclass
class Runs:
    """The episodes of a log as runs of rows, found batch by batch, and what is known of all so far."""

    source: Source
    episode: str
    step: str | None
    keep: Keep | None
    cluster: str | None = None  # whose episodes are: those of one are kept together
    number: int = 0
    longest: int = 0  # of those kept
    rising: bool = True  # ids only went up: none can have come back
    falling: bool = True
    began: int = 0  # the row at which the episode under way began
    before: pl.DataFrame | None = None  # the last row of the batch before

    def of(self, batch: pl.DataFrame) -> tuple[BoolArray, BoolArray]:
        """(n,) which rows begin an episode, and which belong to one that is kept."""
        require_present(self.source, batch, self.episode)
        require_told_apart(self.source, batch, self.episode, "episode")
        ids = batch[self.episode]
        begun = self.before is None or self.before[self.episode][0] != ids[0]
        first = np.append(begun, (ids[1:] != ids[:-1]).to_numpy())
        if self.step is not None:
            self._require_rising_steps(batch, self.step, first)
        pieces = np.flatnonzero(np.append(True, first[1:]))  # where each episode of this batch begins in it
        self._compare(ids[pieces], begun)
        if self.cluster is not None:
            self._require_one_cluster(batch, self.cluster, first)
        whose = batch[self.cluster or self.episode][pieces]
        kind = "episode" if self.cluster is None else "cluster"
        kept = np.ones(pieces.size, dtype=bool) if self.keep is None else _chosen(self.keep, whose, kind)
        ends = np.append(pieces[1:], batch.height)
        starts = pieces + int(batch[ROW][0])
        starts[0] = starts[0] if begun else self.began
        self.longest = max(self.longest, int(((ends + int(batch[ROW][0]) - starts) * kept).max()))
        self.number += int(first.sum())
        self.began, self.before = int(starts[-1]), batch.tail(1)
        return first, np.repeat(kept, ends - pieces)

    def _compare(self, ids: pl.Series, begun: bool) -> None:
        if begun and self.before is not None:
            ids = pl.concat([self.before[self.episode], ids])
        self.rising = self.rising and (ids[1:] > ids[:-1]).all()
        self.falling = self.falling and (ids[1:] < ids[:-1]).all()

    def _require_one_cluster(self, batch: pl.DataFrame, name: str, first: BoolArray) -> None:
        require_present(self.source, batch, name)
        values = batch[name]
        earlier = values.shift(1) if self.before is None else pl.concat([self.before[name], values])[:-1]
        other = (values != earlier).fill_null(False).to_numpy() & ~first
        if other.any():
            row = int(np.argmax(other))
            place = self.source.place(batch[ROW][row])
            raise DataError(
                f"episode {batch[self.episode][row]} has {name!r} {values[row]} in {place}, but {earlier[row]} in the "
                "row before: an episode belongs to one cluster, fix the log or split the episode"
            )

    def _require_rising_steps(self, batch: pl.DataFrame, name: str, first: BoolArray) -> None:
        require_present(self.source, batch, name)
        steps = batch[name]
        rises = np.append(self.before is None or steps[0] > self.before[name][0], (steps[1:] > steps[:-1]).to_numpy())
        wrong = ~(rises | first)
        if not wrong.any():
            return
        row = int(np.argmax(wrong))
        step, place = steps[row], int(batch[ROW][row])
        earlier = steps[row - 1] if row or self.before is None else self.before[name][0]
        what = f"step {earlier} of episode {batch[self.episode][row]} is in {self.source.place(place - 1)}"
        if step == earlier:
            raise DataError(f"{what} and again in {self.source.place(place)}")
        raise DataError(f"{what}, before step {step} in {self.source.place(place)}: {ADVICE}")

    def require_no_return(self) -> None:
        """Raise if an episode came back after another: ids that only rise or only fall cannot, others are compared."""
        if self.rising or self.falling:
            return
        ids = pl.col(self.episode)
        rows = self.source.table.select(self.episode).with_row_index(ROW)
        starts = rows.filter((ids != ids.shift(1)).fill_null(True))
        n_parts = 1 + self.number // EPISODES
        for part in range(n_parts):
            runs = starts.filter(ids.hash() % n_parts == part).group_by(self.episode).agg(pl.len(), pl.max(ROW))
            again = runs.filter(pl.col("len") > 1).sort(ROW).head(1).collect(engine="streaming")
            if again.height:
                episode, place = again[self.episode][0], self.source.place(again[ROW][0])
                raise DataError(f"episode {episode} comes back in {place}, after rows of other episodes: {ADVICE}")


def _chosen(keep: Keep, ids: pl.Series, kind: str) -> BoolArray:
    answer = keep(ids)
    if not (isinstance(answer, pl.Series) and answer.dtype == pl.Boolean and len(answer) == len(ids)):
        raise ArgumentError(f"keep must return one boolean for each of {len(ids)} {kind} ids, not {answer!r}")
    return answer.fill_null(False).to_numpy()
