"""A log is known again in any order, under other names and with other episodes; a fresh one is not."""

import numpy as np
import pytest

from checkrein.base.errors import DataError
from checkrein.base.storage import load, save
from checkrein.data.identity import EpisodeKeys
from logs_again import WORLDS, bandit, lake, random_world, with_episodes

TELLING = ("random MDP", "small random MDP", "lake", "lake without slipping", "hidden kinds", "features")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("episodes", [200, 1000, 1500])
def test_a_fresh_log_with_the_same_names_is_not_recognised(world, episodes):
    known = EpisodeKeys.of(WORLDS[world](1000, 1))
    for seed in range(2, 6):
        assert not known.seen_in(EpisodeKeys.of(WORLDS[world](episodes, seed))).any()


@pytest.mark.parametrize("world", WORLDS)
def test_names_are_known_whatever_is_sorted_dropped_or_added(world):
    log = WORLDS[world](1000, 1)
    known = EpisodeKeys.of(log)
    order = np.random.default_rng(0).permutation(1000)
    assert known.seen_in(EpisodeKeys.of(with_episodes(log, order), order)).all()
    half = order[:500]
    assert known.seen_in(EpisodeKeys.of(with_episodes(log, half), half)).all()
    fresh = EpisodeKeys.of(WORLDS[world](500, 2), np.arange(5000, 5500))
    seen = known.seen_in(EpisodeKeys.of(log).joined(fresh))
    assert seen[:1000].all()
    assert not seen[1000:].any()


@pytest.mark.parametrize("world", TELLING)
def test_contents_are_known_under_other_names(world):
    log = WORLDS[world](1000, 1)
    known = EpisodeKeys.of(log)
    order = np.random.default_rng(0).permutation(1000)
    assert known.seen_in(EpisodeKeys.of(with_episodes(log, order))).all()
    half = known.seen_in(EpisodeKeys.of(with_episodes(log, order[:500])))
    assert half.sum() > 450  # how many of those that occur often were dropped is not known
    fresh = EpisodeKeys.of(WORLDS[world](500, 2), np.arange(5000, 5500))
    renamed = EpisodeKeys.of(log, np.arange(2000, 3000)).joined(fresh)
    assert known.seen_in(renamed).sum() == 1000


def test_of_a_small_world_the_same_numbers_of_each_content_are_known_and_of_a_tiny_one_names_alone():
    log = bandit(1000, 1, contexts=60)
    shuffled = with_episodes(log, np.random.default_rng(0).permutation(1000))
    assert EpisodeKeys.of(log).seen_in(EpisodeKeys.of(shuffled)).all()
    grown = EpisodeKeys.of(shuffled).joined(EpisodeKeys.of(bandit(500, 2, contexts=60), np.arange(5000, 5500)))
    assert not EpisodeKeys.of(log).seen_in(grown).any()  # a limit: nothing tells them from others


def test_a_content_that_was_seen_some_times_leaves_the_others():
    log, fresh = lake(1000, 1), lake(3000, 2)
    known = EpisodeKeys.of(log)
    grown = EpisodeKeys.of(log, np.arange(4000, 5000)).joined(EpisodeKeys.of(fresh, np.arange(6000, 9000)))
    left = grown.part(~known.seen_in(grown))
    assert np.array_equal(np.sort(left.paths), np.sort(EpisodeKeys.of(fresh).paths))


def test_other_states_and_costs_read_off_the_same_rows_do_not_matter():
    log = random_world(500, 1)
    known = EpisodeKeys.of(log)
    coarse = with_episodes(log.with_costs({"other": np.arange(len(log))}), np.arange(500))
    object.__setattr__(coarse, "states", coarse.states // 10)
    object.__setattr__(coarse, "next_states", coarse.next_states // 10)
    assert known.digest == EpisodeKeys.of(coarse).digest
    assert known.seen_in(EpisodeKeys.of(coarse)).all()
    assert known.seen_in(EpisodeKeys.of(coarse, np.arange(500)[::-1])).all()


def test_an_episode_that_has_grown_since_is_known_by_its_name():
    log = random_world(300, 1)
    cut = log.part(~((log.episodes < 30) & (log.steps > 2)))
    assert EpisodeKeys.of(cut).seen_in(EpisodeKeys.of(log)).all()


def test_logs_whose_neighbours_are_alike_are_not_taken_for_each_other():
    def sorted_log(seed):
        log = bandit(1000, seed)
        return with_episodes(log, np.lexsort((log.actions, log.states)))

    for seed in range(2, 8):
        assert not EpisodeKeys.of(sorted_log(1)).seen_in(EpisodeKeys.of(sorted_log(seed))).any()


def test_the_digest_does_not_depend_on_the_order_and_keys_survive_the_disk(tmp_path):
    log, order = lake(50, 0), np.random.default_rng(0).permutation(50)
    keys = EpisodeKeys.of(log)
    assert keys.digest == EpisodeKeys.of(with_episodes(log, order), order).digest
    assert keys.digest != EpisodeKeys.of(lake(50, 1)).digest
    save(keys, tmp_path / "keys.npz")
    assert load(tmp_path / "keys.npz").digest == keys.digest


def test_without_episodes_a_log_cannot_be_told_from_another():
    with pytest.raises(DataError, match="pass episodes="):
        EpisodeKeys.of(lake(10, 0).compressed())
