"""What the values of a log's columns say, before anybody says what they mean."""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from checkrein.base.arrays import BoolArray, IntArray
from checkrein.logs.table import NO, YES

DATE = re.compile(r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|^\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")
MOSTLY = 0.9
MANY = 20  # different values: fewer may be in one order by chance
TEXTS = 0.5  # of rows: a text with more different values than this is a name


@dataclass(frozen=True, eq=False)
class Facts:
    """One column over the rows that were looked at."""

    values: pl.Series

    @property
    def name(self) -> str:
        """The column's name."""
        return self.values.name

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The parts of its name: `isTerminal`, `is_terminal` and `is terminal` are alike."""
        apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", self.name)
        return tuple(word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word)

    @property
    def plain(self) -> str:
        """The name, in one way of writing."""
        return "_".join(self.words)

    @cached_property
    def distinct(self) -> int:
        """How many values there are, but for missing ones."""
        return int(self.values.drop_nulls().n_unique())

    @property
    def constant(self) -> bool:
        """Whether all rows are the same."""
        return self.distinct <= 1 and self.values.null_count() in (0, len(self.values))

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers."""
        return bool(self.values.dtype.is_numeric())

    @cached_property
    def whole(self) -> bool:
        """Whether it holds whole numbers."""
        if not self.numeric:
            return False
        known = self.values.drop_nulls().drop_nans() if self.values.dtype.is_float() else self.values.drop_nulls()
        return bool((known == known.round()).all()) if self.values.dtype.is_float() else True

    @cached_property
    def yes_or_no(self) -> bool:
        """Whether it holds two values that mean yes and no."""
        known = {str(value).lower() for value in self.values.drop_nulls().unique().to_list()[:3]}
        return self.distinct == 2 and known <= {*YES, *NO}

    @property
    def always_yes(self) -> bool:
        """Whether every row says yes."""
        return self.distinct == 1 and not self.values.has_nulls() and bool(self.yes.all())

    @cached_property
    def yes(self) -> BoolArray:
        """(n,) the rows that say yes."""
        return self.values.cast(pl.String).str.to_lowercase().is_in(YES).fill_null(False).to_numpy()

    @cached_property
    def probability(self) -> bool:
        """Whether it holds numbers in (0, 1], and not only 1."""
        if not self.numeric or self.values.has_nulls() or self.distinct == 0:
            return False
        low, high = float(self.values.min()), float(self.values.max())  # type: ignore[arg-type]
        return 0 < low < 1 and high <= 1

    @cached_property
    def date(self) -> bool:
        """Whether it holds dates."""
        if self.values.dtype.is_temporal():
            return True
        if self.values.dtype != pl.String:
            return False
        known = self.values.drop_nulls().head(100)
        return len(known) > 0 and sum(bool(DATE.match(text)) for text in known.to_list()) >= MOSTLY * len(known)

    @cached_property
    def counts_rows(self) -> bool:
        """Whether it counts up by one from row to row."""
        return self.whole and not self.values.has_nulls() and bool((self.values.diff().drop_nulls() == 1).all())

    @cached_property
    def named_by_row(self) -> bool:
        """Whether nearly every row has another value, as names have: of numbers, whole ones."""
        if self.numeric:
            return self.whole and self.distinct == len(self.values)
        return not self.date and self.distinct > TEXTS * len(self.values)

    @cached_property
    def codes(self) -> IntArray:
        """(n,) which value each row has; -1 where it is missing."""
        return self.values.rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1

    @cached_property
    def blocks(self) -> bool:
        """Whether equal values stand together, and most come more than once."""
        runs = 1 + int((np.diff(self.codes) != 0).sum())
        return not self.values.has_nulls() and runs == self.distinct and 2 <= self.distinct <= len(self.values) / 2

    def rises_within(self, groups: "Facts") -> bool:
        """Whether it rises from row to row of each group, and begins anew."""
        if not (self.numeric or self.date) or self.values.has_nulls():
            return False
        order = np.argsort(groups.codes, kind="stable")
        steps, group = self.codes[order], groups.codes[order]
        same = np.diff(group) == 0
        rises = np.diff(steps) > 0
        return bool(same.any() and rises[same].all() and not rises[~same].all())

    def steady_within(self, groups: "Facts") -> bool:
        """Whether it is the same in all rows of each group."""
        return self.pairs_with(groups) == groups.distinct

    def in_the_order_of(self, other: "Facts") -> bool:
        """Whether both rank the rows alike, or the other way round: of many values, one is computed of the other."""
        if min(self.distinct, other.distinct) <= MANY or self.values.has_nulls() or other.values.has_nulls():
            return False
        turned = int(other.codes.max()) - other.codes
        return np.array_equal(self.codes, other.codes) or np.array_equal(self.codes, turned)

    def pairs_with(self, other: "Facts") -> int:
        """How many pairs of values there are."""
        return int(np.unique(self.codes + 1 + (other.codes + 1) * (self.codes.max() + 2)).size)

    def is_next_of(self, steps: "Facts", groups: "Facts") -> bool:
        """Whether it holds what `steps` holds in the next row of the group."""
        if not (self.numeric and steps.numeric):
            return False
        order = np.argsort(groups.codes, kind="stable")
        same = np.diff(groups.codes[order]) == 0
        mine = self.values.cast(pl.Float64).to_numpy()[order][:-1][same]
        theirs = steps.values.cast(pl.Float64).to_numpy()[order][1:][same]
        return bool(same.any() and (mine == theirs).mean() >= MOSTLY)

    def marks_last(self, groups: "Facts") -> bool:
        """Whether yes stands in the last rows of groups, in most of them, and nowhere else."""
        if not self.yes_or_no:
            return False
        order = np.argsort(groups.codes, kind="stable")
        last = np.append(np.diff(groups.codes[order]) != 0, True)
        yes = self.yes[order]
        return bool(not yes[~last].any() and yes[last].mean() >= TEXTS)
