"""What each episode of a log holds, as one hash, and how unlikely it is that another holds the same by chance."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray, chunks
from checkrein.base.hashing import Hashes, hashed, joined, sequences
from checkrein.data.frames import FrameStack

if TYPE_CHECKING:
    from checkrein.data.dataset import Dataset

SHARED = 0.01  # of observations may be shared by different episodes where they are continuous


class OrderedRows(NamedTuple):
    """A log's rows by episode and step, as hashes."""

    order: IntArray  # (n,) where each row stands in the log
    labels: IntArray  # (e,) the episodes' own numbers, ascending
    begins: IntArray  # (e,) the first row of each
    lengths: IntArray  # (e,)
    states: Hashes  # (n,)
    ends: Hashes  # (n,) of what state follows, or that none does

    @classmethod
    def of(cls, dataset: "Dataset") -> "OrderedRows":
        """Order and hash the rows of a log whose episodes are known."""
        order = dataset.order()
        episodes = np.asarray(dataset.episodes)[order]
        begins = np.flatnonzero(np.diff(episodes, prepend=episodes[0] - 1))
        states, following = (hashed_states(s)[order] for s in (dataset.states, dataset.next_states))
        terminals, observed = dataset.terminals[order], dataset.next_observed[order]
        following[terminals | ~observed] = 0  # whatever stands there
        ends = joined(following, hashed(terminals + 2 * observed.astype(np.int64)))
        return cls(order, episodes[begins], begins, np.diff(begins, append=len(order)), states, ends)

    def sequences(self, rows: Hashes) -> Hashes:
        """(e,) one hash for each episode, of hashes of its rows (n,)."""
        return sequences(rows, self.begins, self.lengths)

    def paths(self, actions: Hashes) -> Hashes:
        """(e,) of the states and actions (n,) of each episode."""
        return self.sequences(joined(self.states, actions, self.ends))


@dataclass(frozen=True, eq=False)
class Contents:
    """The episodes of a log by what they hold.

    Information is minus the log of how likely a content is to be found again, by the log's own Markov model: where it
    begins, and then what follows states and actions, or which actions follow states (their propensities, where logged):
    whichever is likelier. So it is of no matter if one of the two is no Markov chain, as where behavior decides once
    for a whole episode, or a state hides something. Information is infinite where observations are continuous.
    """

    labels: IntArray  # (e,) the episodes' own numbers, ascending
    whole: Hashes  # (e,) of all that an episode holds
    paths: Hashes  # (e,) of its states and actions alone
    information: FloatArray  # (e,) of the whole
    path_information: FloatArray  # (e,)
    clusters: IntArray  # (e,)

    @classmethod
    def of(cls, dataset: "Dataset") -> "Contents":
        """Hash all episodes of a log."""
        rows = OrderedRows.of(dataset)
        order, begins, states, ends = rows.order, rows.begins, rows.states, rows.ends
        actions, costs = hashed(dataset.actions)[order], hashed(dataset.costs)[order]
        logged = costs if dataset.propensities is None else joined(costs, hashed(dataset.propensities)[order])
        pairs = joined(states, actions)
        whole = rows.sequences(joined(pairs, ends, logged, hashed(dataset.weights)[order]))
        start, episode = -_shares(states[begins]), np.repeat(np.arange(len(begins)), rows.lengths)
        chosen = _given(states, actions) if dataset.propensities is None else np.log(dataset.propensities[order])
        decided = _told(chosen, pairs, episode)
        told = [
            np.minimum(_told(_given(pairs, after), joined(pairs, after), episode), decided)
            for after in (joined(ends, costs), ends)
        ]
        private = _private(dataset, states, whole[episode])
        alone = np.zeros(len(begins), bool) if private is None else np.logical_or.reduceat(private, begins)
        information, path_information = (np.where(alone, np.inf, start + one) for one in told)
        clusters = np.arange(len(begins)) if dataset.clusters is None else dataset.clusters[order][begins]
        return cls(rows.labels, whole, rows.paths(actions), information, path_information, clusters)


def hashed_states(states: Array | FrameStack) -> Hashes:
    """(n,) of observations; a frame is hashed once, however many stacks it is in."""
    if not isinstance(states, FrameStack):
        return hashed(states)
    frames = np.concatenate([hashed(_as_words(part)) for part in chunks(states.frames)])
    return joined(*frames[states.index].T)


def counts(keys: Hashes) -> tuple[IntArray, IntArray]:
    """Return which of the different keys each one is (n,), and how often each of these occurs (k,)."""
    _, place, number = np.unique(keys, return_inverse=True, return_counts=True)
    return place, number


def ranks(content: IntArray) -> IntArray:
    """(n,) how many of the same content came before."""
    order = np.argsort(content, kind="stable")
    begins = np.flatnonzero(np.diff(content[order], prepend=-1))
    rank = np.empty(len(content), np.int64)
    rank[order] = np.arange(len(content)) - np.repeat(begins, np.diff(begins, append=len(content)))
    return rank


def _shares(keys: Hashes) -> FloatArray:
    """(n,) log of how large a share of all each key has."""
    place, number = counts(keys)
    return np.asarray(np.log(number[place]) - np.log(len(keys)))


def _given(before: Hashes, after: Hashes) -> FloatArray:
    """(n,) log of how large a share what followed has in all that followed the same."""
    first, firsts = counts(before)
    both, boths = counts(joined(before, after))
    return np.asarray(np.log(boths[both]) - np.log(firsts[first]))


def _told(log_chance: FloatArray, what: Hashes, episode: IntArray) -> FloatArray:
    """(e,) the sum of minus log_chance (n,) over each episode's rows; what recurs in one counts once.

    Once, because what keeps an episode as it is may be hidden.
    """
    _, rows = np.unique(joined(episode.astype(np.uint64), what), return_index=True)
    return np.asarray(-np.bincount(episode[rows], log_chance[rows], episode[-1] + 1))


def _private(dataset: "Dataset", states: Hashes, content: Hashes) -> BoolArray | None:
    """(n,) rows whose observation no other content has; None unless observations are continuous.

    They are where hardly two different episodes share one.
    """
    if dataset.n_states is not None or (dataset.states.ndim == 2 and _whole_numbers(dataset.states)):
        return None
    state, _ = counts(states)
    _, rows = np.unique(joined(states, content), return_index=True)
    number = np.bincount(state[rows])
    return None if (number > 1).mean() >= SHARED else np.asarray(number == 1)[state]


def _as_words(frames: Array) -> IntArray:
    """(n, w) the bytes of frames (n, ...), eight at a time."""
    rows = np.ascontiguousarray(frames).reshape(len(frames), -1).view(np.uint8)
    return np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8))).view(np.int64)


def _whole_numbers(states: Array) -> bool:
    return states.dtype.kind in "biu" or bool((states == np.round(states)).all())
