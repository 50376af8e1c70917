"""Copies: episodes that stand in a log again under another number, and do not count again.

Independent episodes may be equal by right: with few states and steps, many are. An episode is a copy only where the log
itself shows that chance does not explain it, in one of three ways (each wrong with probability 1e-6):

- every content occurs a multiple of g times: the log is g-fold;
- a run of episodes stands in the log again, in the same order;
- contents recur that are too unlikely to, as `Contents` knows, or hardly any occurs once although many should.

By the last, contents that are likely enough to recur by chance are thinned as much as the others, so that what is left
has their proportions.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.base.hashing import Hashes, joined, mixed
from checkrein.data.contents import Contents, counts, ranks

if TYPE_CHECKING:
    from checkrein.data.dataset import Dataset

CHANCE = 1e-6  # that what is called a copy is none
LEVELS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 0.0)  # how often an unlikely content may be expected again
RUNS = (4, 16, 64)  # episodes in the same order that are looked for
ENOUGH = 10  # unlikely contents that tell how much was copied
SHOWN = 5


@dataclass(frozen=True, eq=False)
class Copies:
    """Which episodes of a log do not count, because they are copies of others.

    near: episodes that are kept and share an unlikely path with another, at other costs
    names: (e,) what each episode number is called where the log came from; None: itself
    """

    episodes: int
    dropped: IntArray  # (d,) the numbers of the copies
    near: int
    names: Array | None = None

    def __len__(self) -> int:
        return int(self.dropped.size)

    def words(self) -> str:
        """Say how many there are and which."""
        shown = [str(one if self.names is None else self.names[one]) for one in self.dropped[:SHOWN]]
        which = ", ".join(shown) + (", ..." if len(self) > SHOWN else "")
        return (
            f"{len(self):,} of {self.episodes:,} episodes are copies of others "
            f"(episode{'s' if len(self) > 1 else ''} {which}): they are counted once"
        )

    def near_words(self) -> str:
        """Say how many look like copies, but are not."""
        return (
            f"{self.near:,} of {self.episodes:,} episodes have the very states and actions of another, at other costs: "
            "if they are copies that were changed, leave them out, or name what they belong to as cluster"
        )


def find_copies(dataset: "Dataset") -> Copies:
    """Find the copies in a log whose episodes are known; episodes of one cluster may be equal."""
    if dataset.episodes is None:
        return Copies(0, np.zeros(0, np.int64), 0)
    contents = Contents.of(dataset)
    own = joined(contents.clusters.astype(np.uint64), contents.whole)
    _, first, entry = np.unique(own, return_index=True, return_inverse=True)  # equal ones of a cluster are one entry
    order = np.argsort(first, kind="stable")
    kept = np.empty(len(first), bool)
    kept[order] = _kept(contents.whole[first[order]], contents.information[first[order]])
    kept = kept[entry]
    near = _near(contents, kept)
    return Copies(len(kept), contents.labels[~kept], near)


def _kept(whole: Hashes, information: FloatArray) -> BoolArray:
    """(n,) whether each entry counts, by contents (n,) in the order of the log."""
    content, number = counts(whole)
    if number.max() == 1:
        return np.ones(len(whole), bool)
    fold = _fold(number)
    if fold > 1:
        return ranks(content) < (number // fold)[content]
    kept = ~_again(content, number)
    content, number = counts(whole[kept])
    kept[kept] = ranks(content) < _counted(number, _per_content(content, information[kept]), len(content))[content]
    return kept


def _fold(number: IntArray) -> int:
    """Return how many times over a log stands in itself, by how often its contents occur (k,)."""
    fold = int(np.gcd.reduce(number))
    if fold == 1:
        return 1
    log_chance = 0.0
    for mean, times in zip(*np.unique(number, return_counts=True), strict=True):
        multiples = np.arange(fold, mean + 10 * np.sqrt(mean) + 10, fold)
        terms = multiples * np.log(mean) - mean - scipy.special.gammaln(multiples + 1)
        log_chance += times * (np.log(np.exp(terms).sum()) - np.log(-np.expm1(-mean)))
    return fold if log_chance < np.log(CHANCE) else 1


def _again(content: IntArray, number: IntArray) -> BoolArray:
    """(n,) entries in runs that stood in the log before, in the same order; a content counts once in each run."""
    n = len(content)
    surprise = np.log(n) - np.log(number[content])
    needed = 2 * np.log(n) - np.log(CHANCE / len(RUNS))
    before = _before(content)
    found = np.zeros(n, bool)
    for length in RUNS:
        if length >= n:
            break
        begins = np.arange(n - length + 1)
        run, told = np.zeros(len(begins), np.uint64), np.zeros(len(begins))
        for place in range(length):
            at = begins + place
            run += mixed(content[at].astype(np.uint64) ^ mixed(np.array([place], np.uint64)))
            told += np.where(before[at] < begins, surprise[at], 0.0)
        _, first, which = np.unique(run, return_index=True, return_inverse=True)
        again = begins[(first[which] < begins) & (told > needed)]
        edges = np.bincount(again, minlength=n + 1) - np.bincount(again + length, minlength=n + 1)
        found |= np.cumsum(edges)[:n] > 0
    return found


def _before(content: IntArray) -> IntArray:
    """(n,) where the same content stood last, -1 if nowhere."""
    order = np.argsort(content, kind="stable")
    before = np.full(len(content), -1)
    same = np.diff(content[order]) == 0
    before[order[1:][same]] = order[:-1][same]
    return before


def _counted(number: IntArray, information: FloatArray, n: int) -> IntArray:
    """(k,) how many entries of each content count, by how often they occur (k,) and how unlikely they are (k,)."""
    expected = n * np.exp(-information)
    copied = _copied(number, expected)
    if not copied.any():
        return number
    counted = np.where(copied, 1, number)
    unlikely = expected <= 1
    if unlikely.sum() >= ENOUGH:
        others = ~copied & (number > 1)
        surplus = (1 - 1 / number[unlikely].mean()) * number[~copied].sum()
        shares = np.where(others, number, 0) * surplus / max(number[others].sum(), 1)
        parts = np.diff(np.floor(np.cumsum(shares) + 0.5), prepend=0.0).astype(np.int64)  # the sum is kept in rounding
        counted -= np.minimum(parts, number - 1)
    return counted


def _copied(number: IntArray, expected: FloatArray) -> BoolArray:
    """(k,) contents of which all but one entry are copies; expected: how often chance repeats each (k,)."""
    unlikely = expected <= 1
    single, others = (number[unlikely] == 1).sum(), number[unlikely] @ np.exp(-expected[unlikely])
    if others > 0 and scipy.special.pdtr(single, others) < CHANCE / (1 + len(LEVELS)):
        return np.asarray(unlikely)
    for level in LEVELS:
        unlikely = expected <= level
        repeated = int((number[unlikely] > 1).sum())
        if repeated and scipy.special.pdtrc(repeated - 1, expected[unlikely].sum()) < CHANCE / (1 + len(LEVELS)):
            return np.asarray(unlikely)
    return np.zeros(len(number), bool)


def _near(contents: Contents, kept: BoolArray) -> int:
    """Count the entries that share an unlikely path with one of another cluster."""
    own = joined(contents.clusters.astype(np.uint64), contents.paths)
    _, first = np.unique(own[kept], return_index=True)
    content, number = counts(contents.paths[kept][first])
    information = _per_content(content, contents.path_information[kept][first])
    unlikely = _copied(number, len(first) * np.exp(-information))
    return int(number[unlikely & (number > 1)].sum())


def _per_content(content: IntArray, values: FloatArray) -> FloatArray:
    found = np.empty(content.max() + 1)
    found[content] = values
    return found
