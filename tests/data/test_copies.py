"""Copies of episodes are found, and what is equal by right is left alone."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from checkrein import Dataset
from checkrein.data.frames import stack_frames
from logs_again import WORLDS, bandit, count, features, lake, random_world, with_episodes

TELLING = ("random MDP", "small random MDP", "lake", "features")  # worlds in which an episode hardly recurs


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("episodes", [100, 600, 2000])
def test_independent_episodes_are_no_copies_however_many_are_equal(world, episodes):
    for seed in range(3):
        log = WORLDS[world](episodes, seed)
        assert len(log.copies) == 0
        assert log.copies.near == 0
        assert log.counted_once is log


@pytest.mark.parametrize("world", sorted(set(WORLDS) - {"arms"}))  # three different episodes say nothing
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_log_ten_times_over_is_counted_once(world, shuffled):
    once = WORLDS[world](60, 7)
    places = np.tile(np.arange(60), 10)
    log = with_episodes(once, np.random.default_rng(0).permutation(places) if shuffled else places)
    assert len(log.copies) == 540
    kept = log.counted_once
    assert count(kept) == 60
    assert np.sort(kept.returns(0.9), axis=0) == pytest.approx(np.sort(once.returns(0.9), axis=0))
    assert len(kept.initial_states) == 60
    if not shuffled:
        assert kept.episodes.max() == 59  # the first of each is kept


@pytest.mark.parametrize("world", TELLING)
def test_a_sample_with_replacement_is_thinned_to_about_what_it_was_drawn_from(world):
    chosen = np.random.default_rng(1).integers(0, 60, 600)
    log = with_episodes(WORLDS[world](60, 7), chosen)
    assert len(log.copies) == pytest.approx(540, abs=10)


@pytest.mark.parametrize("world", TELLING)
def test_copies_among_others_are_found_and_those_of_likely_episodes_in_proportion(world):
    log = WORLDS[world](2000, 8)
    rng = np.random.default_rng(2)
    copied = with_episodes(log, rng.permutation(np.append(np.arange(2000), rng.integers(0, 2000, 400))))
    assert len(copied.copies) == pytest.approx(400, abs=40)
    mean = copied.counted_once.returns(1.0).mean(axis=0)
    assert mean == pytest.approx(log.returns(1.0).mean(axis=0), abs=0.02 * log.returns(1.0).std(axis=0).max())


@pytest.mark.parametrize("world", sorted(set(WORLDS) - {"arms", "bandit"}))
def test_exports_that_overlap_are_found_by_their_order_in_any_world(world):
    log = WORLDS[world](2000, 8)
    copied = with_episodes(log, np.append(np.arange(1200), np.arange(800, 2000)))
    assert np.array_equal(copied.copies.dropped, np.arange(1200, 1600))


def test_a_log_that_is_sorted_has_no_copies():
    log = bandit(2000, 0)
    order = np.lexsort((log.costs[:, 0], log.actions, log.states))
    assert len(with_episodes(log, order).copies) == 0


def test_copies_within_a_cluster_are_one_unit_anyway_and_across_clusters_are_copies():
    log = random_world(100, 3)
    twice = np.repeat(np.arange(100), 2)
    assert len(with_episodes(log, twice, clusters=twice).copies) == 0
    assert len(with_episodes(log, twice, clusters=np.arange(200)).copies) == 100


def test_the_same_paths_at_other_costs_are_near_copies():
    log = lake(500, 0)
    twice = with_episodes(log, np.tile(np.arange(500), 2))
    noise = np.random.default_rng(0).normal(size=len(twice))
    near = twice.with_costs({"hole": twice.cost("hole") + noise})
    assert len(near.copies) == 0
    assert near.copies.near > 800
    assert "have the very states and actions of another" in near.copies.near_words()


def test_what_is_said_has_numbers_and_names():
    copies = with_episodes(random_world(60, 7), np.tile(np.arange(60), 10)).copies
    named = replace(copies, names=np.array([f"p{one}" for one in range(600)]))
    assert "540 of 600 episodes are copies of others (episodes 60, 61, 62, 63, 64, ...)" in copies.words()
    assert "(episodes p60, p61, p62, p63, p64, ...)" in named.words()


def test_without_episodes_there_is_nothing_to_compare():
    log = Dataset.from_arrays(
        states=[0, 1], actions=[0, 0], next_states=[1, 0], costs={"c": [0, 0]}, terminals=[0, 1], initial_states=[0]
    )
    assert len(log.copies) == 0
    assert log.counted_once is log


def test_the_order_of_rows_does_not_matter():
    log = with_episodes(features(60, 1), np.random.default_rng(0).integers(0, 60, 300))
    rows = np.random.default_rng(3).permutation(len(log))
    fields = ("states", "actions", "next_states", "terminals", "episodes", "steps")
    shuffled = Dataset.from_arrays(
        **{name: getattr(log, name)[rows] for name in fields}, costs={"c": log.cost("c")[rows]}
    )
    assert np.array_equal(log.copies.dropped, shuffled.copies.dropped)


def calls_to_find_copies(rows):
    """Count what is called, in Python and in C, while copies are looked for."""
    log, counted = bandit(rows, 0), 0

    def count(frame, event, _):
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        assert len(log.copies) == 0
    finally:
        sys.setprofile(None)
    return counted


def test_nothing_is_done_row_by_row():
    assert calls_to_find_copies(100_000) < 1.5 * calls_to_find_copies(1000)


def test_copied_pictures_are_found_whatever_frames_they_stand_on():
    rng = np.random.default_rng(0)
    frames, episodes = rng.integers(0, 256, (40 * 4, 6, 5), dtype=np.uint8), np.repeat(np.arange(40), 3)
    fields = {"actions": rng.integers(0, 2, 120), "costs": {"c": rng.random(120)}, "terminals": np.tile([0, 0, 1], 40)}
    stacked = stack_frames(frames, episodes, stack=2)
    twice = {name: np.tile(values, 2) for name, values in fields.items() if name != "costs"}
    log = Dataset.from_arrays(
        **twice,
        costs={"c": np.tile(fields["costs"]["c"], 2)},
        episodes=np.append(episodes, episodes + 40),
        **stack_frames(np.concatenate([frames, frames]), np.append(episodes, episodes + 40), stack=2)._asdict(),
    )
    assert len(Dataset.from_arrays(**fields, episodes=episodes, **stacked._asdict()).copies) == 0
    assert np.array_equal(log.copies.dropped, np.arange(40, 80))
