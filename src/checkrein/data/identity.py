"""Which episodes of a log were seen before, whatever its order, its names, and what else stands in it.

An episode is known by its name together with its decisions, or by its path (states and actions) or its decisions alone.
Costs do not matter: an outcome may be corrected, and another question may read others off the same rows. Two logs of a
small world have many equal episodes by right, so a log is recognised only where chance does not explain the agreement,
which it does with probability 1e-6:

- by names: the episodes of the same name have the same decisions far more often than episodes of different names, or
  than their neighbours do. Then all episodes of known names were seen, also those that have grown since.
- by contents, under other names: if both logs were drawn independently, contents that occur twice in the two together
  fall into one each no more often than a coin tells (whatever the world is), and logs of few contents hardly ever have
  exactly the same numbers of each. Then as many of each content were seen as are expected: a content that was seen 20
  times and stands 50 times in a log leaves 30.
"""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import Array, BoolArray, IntArray, frozen
from checkrein.base.errors import DataError
from checkrein.base.hashing import Hashes, hashed_text, joined
from checkrein.base.storage import storable
from checkrein.data.contents import OrderedRows, counts, ranks

if TYPE_CHECKING:
    from checkrein.data.dataset import Dataset

CHANCE = 1e-6  # that a log is taken for one that was seen before
NEIGHBOURS = (1, 2)  # a log may be sorted, so that episodes of near names are alike


@storable
@dataclass(frozen=True, eq=False)
class EpisodeKeys:
    """Hashes by which episodes are known again, in the order of their numbers."""

    names: Hashes  # (e,)
    decisions: Hashes  # (e,) of the names of their actions
    paths: Hashes  # (e,) of their states and actions

    @classmethod
    def of(cls, dataset: "Dataset", names: Array | None = None) -> "EpisodeKeys":
        """Hash the episodes of a log.

        names: what each episode number is called where the log came from; None: itself
        """
        if dataset.episodes is None:
            raise DataError("without episodes a log cannot be told from another: pass episodes=")
        rows = OrderedRows.of(dataset)
        called = rows.labels if names is None else np.asarray(names)[rows.labels]
        actions = hashed_text(np.array(dataset.action_labels))[dataset.actions[rows.order]]
        return cls(*map(frozen, (hashed_text(called.astype(np.str_)), rows.sequences(actions), rows.paths(actions))))

    def __len__(self) -> int:
        return int(self.names.size)

    def part(self, chosen: BoolArray) -> "EpisodeKeys":
        """Return the chosen episodes (e,)."""
        return EpisodeKeys(*(frozen(keys[chosen]) for keys in (self.names, self.decisions, self.paths)))

    def joined(self, others: "EpisodeKeys") -> "EpisodeKeys":
        """Return these episodes and others."""
        pairs = ((self.names, others.names), (self.decisions, others.decisions), (self.paths, others.paths))
        return EpisodeKeys(*(frozen(np.concatenate(pair)) for pair in pairs))

    @property
    def digest(self) -> str:
        """SHA-256 of which decisions were made in which episodes, in whatever order they stand."""
        return hashlib.sha256(np.sort(joined(self.names, self.decisions)).tobytes()).hexdigest()

    def seen_in(self, log: "EpisodeKeys") -> BoolArray:
        """(e,) the episodes of a log that are among these."""
        seen, found = _by_name(self, log)
        for mine, theirs in ((self.paths, log.paths), (self.decisions, log.decisions)):
            rest = np.flatnonzero(~seen)
            again = _by_content(mine[~found], theirs[rest])
            if again.any():
                seen[rest[again]] = True
                break
        return seen


def _by_name(known: EpisodeKeys, log: EpisodeKeys) -> tuple[BoolArray, BoolArray]:
    """Return which of a log's episodes have a known name, and which known ones those are; none unless recognised."""
    order = np.argsort(known.names, kind="stable")
    place = order[np.minimum(np.searchsorted(known.names[order], log.names), len(known) - 1)]
    common = known.names[place] == log.names
    which = place[common]
    for mine, theirs in ((known.decisions, log.decisions), (known.paths, log.paths)):
        there, here = mine[which], theirs[common]
        chance = _collisions(mine, theirs)
        for apart in NEIGHBOURS:
            if len(here) > apart:
                chance = max(chance, float((there[apart:] == here[:-apart]).mean()))
        hits = int((there == here).sum())
        if hits and hits > len(here) / 2 and scipy.special.bdtrc(hits - 1, len(here), chance) < CHANCE / 2:
            found = np.zeros(len(known), bool)
            found[which] = True
            return common, found
    return np.zeros(len(log), bool), np.zeros(len(known), bool)


def _collisions(one: Hashes, other: Hashes) -> float:
    """Return how likely an episode of one log equals one of the other, drawn at random."""
    here, there, _ = _numbers(one, other)
    return float((here / len(one)) @ (there / len(other)))


def _numbers(one: Hashes, other: Hashes) -> tuple[IntArray, IntArray, IntArray]:
    """Return how often each content occurs in one log (k,), in the other (k,), and which each of the other's is."""
    place, number = counts(np.concatenate([one, other]))
    here, there = (np.bincount(part, minlength=len(number)) for part in np.split(place, [len(one)]))
    return here, there, place[len(one) :]


def _by_content(known: Hashes, log: Hashes) -> BoolArray:
    """(e,) which of a log's episodes are known ones under other names."""
    seen = np.zeros(len(log), bool)
    if not len(known) or not len(log):
        return seen
    was, now, place = _numbers(known, log)
    share = len(known) / (len(known) + len(log))
    twice = was + now == 2
    each = int((twice & (was == 1)).sum())
    recognised = each > 0 and scipy.special.bdtrc(each - 1, int(twice.sum()), 2 * share * (1 - share)) < CHANCE / 4
    if not recognised and not (np.array_equal(was, now) and _log_chance_of_equal(was) < np.log(CHANCE / 4)):
        return seen
    found = now[was == 1] > 0
    expected = np.ceil((found.mean() if found.any() else 1.0) * was - 1e-9)
    return np.asarray(ranks(place) < expected[place])


def _log_chance_of_equal(number: Array) -> float:
    """Return the log probability that two independent logs have every content as often as each other.

    Given what both hold together, all ways to divide it between them are equally likely.
    """
    gamma = scipy.special.gammaln
    ways = gamma(2 * number + 1) - 2 * gamma(number + 1)
    total = number.sum()
    return float(ways.sum() - (gamma(2 * total + 1) - 2 * gamma(total + 1)))
