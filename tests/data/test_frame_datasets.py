import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from checkrein import FQE, FQI
from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.frames import FrameStack, stack_frames
from checkrein.data.split import split_episodes
from checkrein.evaluation.importance import likelihood
from checkrein.policies import Support
from checkrein.problem import Episodes
from data.frame_logs import EPISODES, RNG, N, copied, log_of, pictures, problem_of


def test_a_dataset_of_stacks_shares_the_frames_through_everything_it_does():
    frames = pictures(N + 4)
    dataset = log_of(frames)
    rows = dataset.episodes != 8
    datasets = [
        dataset,
        dataset.select(rows),
        dataset.part(rows),
        dataset.with_costs({"h": np.arange(N)}),
        dataset.compressed(),
        problem_of(dataset).transitions,
        *split_episodes(dataset, holdout=0.5, seed=0),
    ]
    for each in datasets:
        for states in (each.states, each.next_states, each.initial_states):
            assert isinstance(states, FrameStack)
            assert np.shares_memory(states.frames, frames)


def test_a_dataset_of_stacks_has_the_rows_of_one_of_arrays():
    dataset = log_of()
    arrays = copied(dataset)
    rows = dataset.episodes != 8
    assert (len(dataset), dataset.n_states, repr(dataset)) == (N, None, repr(arrays))
    assert dataset.first_rows().tolist() == [4, 0, 8, 5]
    assert np.array_equal(np.asarray(dataset.initial_states), arrays.states[dataset.first_rows()])
    for ours, theirs in [(dataset.part(rows), arrays.part(rows)), (dataset.select(rows), arrays.select(rows))]:
        assert copied(ours) == theirs
    assert np.array_equal(dataset.returns(0.9), arrays.returns(0.9))
    assert np.array_equal(dataset.truncated, arrays.truncated)


def test_rows_whose_next_frame_was_not_logged_are_left_out_unless_terminal():
    dataset = log_of(pictures(N))
    assert dataset.next_observed.tolist() == (~dataset.truncated).tolist()
    assert len(problem_of(dataset).transitions) == N - dataset.truncated.sum()


def test_equal_frames_and_indices_have_equal_fingerprints_and_any_change_shows():
    frames = pictures(N + 4)
    dataset = log_of(frames)
    assert log_of(frames.copy()) == dataset
    assert log_of(np.asfortranarray(frames)) == dataset
    other = frames.copy()
    other[-1, -1, -1] ^= 1
    assert log_of(other) != dataset
    assert log_of(frames, stack=2) != dataset
    assert dataset.part(dataset.episodes == 3) != dataset
    states = FrameStack(frames, dataset.states.index.astype(np.int64))
    assert log_of(frames, states=states, initial_states=states[dataset.first_rows()]) == dataset


def test_initial_states_may_be_a_stack_of_their_own():
    frames = pictures(N + 4)
    starts = FrameStack(pictures(2), np.zeros((2, 3), dtype=int))
    assert log_of(frames, initial_states=starts).initial_states is starts


def test_frames_that_are_not_finite_are_found_where_they_are_used():
    frames = RNG.random((N + 4, 6, 5)).astype(np.float32)
    assert log_of(frames).states.dtype == np.float32
    frames[9, 2, 2] = np.nan  # episode 8 begins at frame 7
    with pytest.raises(DataError, match=r"states hold NaN or infinity in row 7 \(episode 8\)"):
        log_of(frames)
    frames[9], frames[10] = 0, np.inf
    with pytest.raises(DataError, match=r"next_states hold NaN or infinity in row 7 \(episode 8\)"):
        log_of(frames)


def test_states_and_next_states_are_stacked_alike():
    with pytest.raises(DataError, match="both be FrameStacks, or both arrays"):
        log_of(next_states=pictures(N, 3, 6, 5))
    with pytest.raises(DataError, match=r"states have shape \(15, 3, 6, 5\), but next_states \(15, 2, 6, 5\)"):
        log_of(next_states=stack_frames(pictures(N), EPISODES, stack=2).states)
    with pytest.raises(DataError, match="next_states has 3 rows, but states has 15"):
        log_of(next_states=stack_frames(pictures(3), [0, 0, 0], stack=3).states)


def test_a_table_does_not_hold_shared_frames(tmp_path):
    with pytest.raises(DataError, match=r"stacks of shared frames.*np.save.*stack_frames"):
        log_of().write_parquet(tmp_path / "log.parquet")
    assert list(tmp_path.iterdir()) == []


def test_plain_images_stay_bytes():
    images = pictures(N)
    dataset = log_of(states=images, next_states=images, next_observed=None)
    assert {dataset.states.dtype, dataset.next_states.dtype, dataset.initial_states.dtype} == {np.dtype(np.uint8)}
    assert isinstance(problem_of(dataset).transitions.states, np.ndarray)


def brightness(states, rows=50):
    """(n, 2) a constant, and the mean of the newest frame; a part of the pixels at a time."""
    parts = (np.asarray(states[begin : begin + rows])[:, -1] for begin in range(0, len(states), rows))
    means = np.concatenate([part.mean(axis=(1, 2)) for part in parts])
    return np.column_stack([np.ones(len(states)), means / 255])


@dataclass(frozen=True)
class Brightness:
    """A line for each action, by least squares."""

    def design(self, states, actions, weights, *, n_actions):
        return BrightnessDesign(brightness(states), actions, np.sqrt(weights)[:, None], n_actions)


@dataclass(frozen=True, eq=False)
class BrightnessDesign:
    features: np.ndarray
    actions: np.ndarray
    scale: np.ndarray
    n_actions: int

    def fit(self, targets, *, rng, start=None):
        x, y = self.features * self.scale, targets * self.scale
        taken = [self.actions == action for action in range(self.n_actions)]
        lines = np.stack([np.linalg.lstsq(x[rows], y[rows])[0] for rows in taken])  # (A, 2, k)
        return lambda states: np.einsum("nd,adk->nak", brightness(states), lines)


class Coin:
    def probabilities(self, states):
        return np.full((len(states), 2), 0.5)


@pytest.mark.parametrize("extra", [0, 4])
def test_fitted_iterations_see_the_same_in_stacks_as_in_arrays(extra):
    dataset = log_of(pictures(N + extra))
    answers = []
    for each in (problem_of(dataset), problem_of(copied(dataset))):
        rng, support = np.random.default_rng(0), Support(0, 0)
        learned = FQI(Brightness(), iterations=3, support=support)(each, np.array([0.5]), rng=rng)
        chosen = learned.actions(each.dataset.states)
        values = [
            FQE(Brightness(), iterations=3, support=support)(each, policy, rng=rng) for policy in (Coin(), learned)
        ]
        answers.append([chosen.tolist(), [(v.objective, v.constraints.tolist()) for v in values]])
    assert answers[0] == answers[1]


def test_episodes_are_put_in_order_without_copies():
    dataset = log_of()
    episodes, arrays = Episodes.of(problem_of(dataset)), Episodes.of(problem_of(copied(dataset)))
    assert episodes.states.frames is dataset.states.frames
    assert np.array_equal(np.asarray(episodes.states), arrays.states)
    assert np.array_equal(np.asarray(episodes.next_states), arrays.next_states)
    assert likelihood(episodes, Coin()).tolist() == [0.5] * N


def test_behavior_is_not_estimated_from_images():
    with pytest.raises(ArgumentError, match=r"not for states of shape \(3, 6, 5\): use Support\(behavior=Neural"):
        Support().of(problem_of(log_of()))


@pytest.mark.parametrize("extra", [0, 40])
def test_a_log_of_frames_takes_little_more_than_its_frames(extra):
    frames = np.random.default_rng(0).integers(0, 256, (4000 + extra, 96, 96), dtype=np.uint8)
    episodes = np.repeat(np.arange(40), 100)
    tracemalloc.start()
    try:
        dataset = log_of(frames, stack=4, episodes=episodes)
        training, held = split_episodes(dataset, holdout=0.25, seed=0)
        problems = [problem_of(training), problem_of(held), problem_of(dataset)]
        kept = [(each.transitions, Episodes.of(each), each.dataset.fingerprint) for each in problems]
        FQE(Brightness(), iterations=2, support=Support(0, 0))(problems[0], Coin(), rng=np.random.default_rng(0))
        _, peak = tracemalloc.get_traced_memory()
        copy = np.asarray(dataset.states[:1500])
        _, with_copy = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == 3
    assert peak < 0.3 * frames.nbytes
    assert with_copy > copy.nbytes > 0.3 * frames.nbytes  # a copy would have been seen
