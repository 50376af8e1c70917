import numpy as np
import pytest

from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.split import split_episodes
from problems import random_log, rows_of

LOG = random_log(0)


def test_episodes_are_split_whole_and_none_is_lost_or_shared():
    learning, held = split_episodes(LOG, holdout=0.3, seed=0)
    parts = [set(part.episodes.tolist()) for part in (learning, held)]
    assert parts[0].isdisjoint(parts[1])
    assert parts[0] | parts[1] == set(LOG.episodes.tolist())
    assert len(learning) + len(held) == len(LOG)
    assert len(parts[1]) == round(0.3 * len(parts[0] | parts[1]))


def test_each_part_has_its_own_initial_states():
    for part in split_episodes(LOG, holdout=0.5, seed=1):
        assert part.initial_states.tolist() == part.states[part.steps == 0].tolist()
        assert (part.n_states, part.n_actions) == (LOG.n_states, LOG.n_actions)


def test_the_seed_decides_and_rows_in_another_order_are_split_alike():
    first, again, other = (split_episodes(LOG, holdout=0.5, seed=seed)[1] for seed in (0, 0, 1))
    assert first == again
    assert first != other
    shuffled = rows_of(LOG, np.random.default_rng(0).permutation(len(LOG)), initial_states=None, initial_weights=None)
    assert set(split_episodes(shuffled, holdout=0.5, seed=0)[1].episodes) == set(first.episodes)


def test_nothing_held_out_is_everything_learned_from():
    assert split_episodes(LOG, holdout=0, seed=0) == (LOG, None)


def test_what_cannot_be_split_is_said():
    with pytest.raises(ArgumentError, match="holdout is 1"):
        split_episodes(LOG, holdout=1, seed=0)
    with pytest.raises(DataError, match="60 episodes cannot be split with holdout = 0.001"):
        split_episodes(LOG, holdout=0.001, seed=0)
    with pytest.raises(DataError, match="episodes must be known"):
        split_episodes(LOG.compressed(), holdout=0.5, seed=0)
