import dataclasses
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from checkrein import FQE, FQI, AtMost, Dataset, Problem
from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.frames import FrameStack, stack_frames
from checkrein.data.split import split_episodes
from checkrein.evaluation.importance import likelihood
from checkrein.policies import Support
from checkrein.problem import Episodes

RNG = np.random.default_rng(0)
EPISODES = np.repeat([3, 1, 8, 5], [4, 1, 3, 7])
N = EPISODES.size


def pictures(n, *shape):
    return RNG.integers(0, 256, (n, *(shape or (6, 5))), dtype=np.uint8)


def log_of(frames=None, *, stack=3, seed=0, episodes=EPISODES, **changes):
    rng, n = np.random.default_rng(seed), episodes.size
    frames = pictures(n + np.unique(episodes).size) if frames is None else frames
    fields = {
        "actions": rng.integers(0, 2, n),
        "costs": {"c": rng.random(n), "g": rng.random(n)},
        "terminals": np.append(episodes[1:] != episodes[:-1], True) & (episodes % 3 > 0),
        "episodes": episodes,
    }
    return Dataset.from_arrays(**(fields | stack_frames(frames, episodes, stack=stack)._asdict() | changes))


def copied(dataset):
    """The same dataset with its pixels written out."""
    each = ("states", "next_states", "initial_states")
    return dataclasses.replace(dataset, **{name: np.asarray(getattr(dataset, name)) for name in each})


def problem_of(dataset):
    return Problem(dataset, objective="c", constraints=[AtMost("g", 1.0)], discount=0.9)


def test_a_stack_has_the_shape_and_the_type_of_what_it_stands_for():
    frames, index = pictures(9), np.array([[0, 1], [5, 8], [2, 2]])
    stack = FrameStack(frames, index)
    assert (stack.shape, stack.ndim, stack.dtype, stack.size, len(stack)) == ((3, 2, 6, 5), 4, np.uint8, 180, 3)
    assert stack.nbytes == frames.nbytes + 3 * 2 * 4
    assert np.array_equal(np.asarray(stack), frames[index])
    assert np.asarray(stack, dtype=np.float32).dtype == np.float32
    assert repr(stack) == "FrameStack(uint8 observations (3, 2, 6, 5) of 9 frames)"


def test_channels_are_joined_frame_by_frame():
    frames, index = pictures(9, 3, 6, 5), np.array([[0, 1], [5, 8]])
    stack = FrameStack(frames, index)
    assert stack.shape == (2, 6, 6, 5)
    assert np.array_equal(stack[1], np.concatenate([frames[5], frames[8]]))
    last = np.moveaxis(pictures(9, 6, 5, 3), -1, 1)  # a view
    assert np.shares_memory(FrameStack(last, index).frames, last)


ROWS = {
    "slice": slice(1, 3),
    "backwards": slice(None, None, -2),
    "mask": np.array([True, False, True, True]),
    "numbers": np.array([3, 3, 0]),
    "list": [2, -1],
    "none": np.array([], dtype=int),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_rows_of_a_stack_are_a_stack_of_the_same_frames(rows):
    stack = FrameStack(pictures(9), RNG.integers(0, 9, (4, 3)))
    assert isinstance(stack[rows], FrameStack)
    assert stack[rows].frames is stack.frames
    assert np.array_equal(np.asarray(stack[rows]), np.asarray(stack)[rows])


def test_a_single_row_is_an_array_and_rows_can_be_walked():
    stack = FrameStack(pictures(9), RNG.integers(0, 9, (4, 3)))
    assert np.array_equal(stack[-1], np.asarray(stack)[-1])
    assert np.array_equal(np.stack(list(stack)), np.asarray(stack))


def test_it_is_frozen_and_holds_the_frames_it_was_given():
    frames, index = pictures(9), np.zeros((4, 3), dtype=int)
    stack = FrameStack(frames, index)
    assert np.shares_memory(stack.frames, frames)
    assert frames.flags.writeable
    index[:] = 8
    assert stack.index.max() == 0
    for array in (stack.frames, stack.index):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_frames_may_stay_in_a_file(tmp_path):
    frames = pictures(N)
    np.save(tmp_path / "frames.npy", frames)
    mapped = np.load(tmp_path / "frames.npy", mmap_mode="r")
    stack = stack_frames(mapped, EPISODES).states
    assert np.shares_memory(stack.frames, mapped)
    assert log_of(mapped) == log_of(frames)


CARELESS = {
    "unique": np.unique,
    "isfinite": np.isfinite,
    "column_stack": lambda stack: np.column_stack([stack, stack]),
    "where": lambda stack: np.where(True, stack, 0),
    "subtract": lambda stack: np.zeros(5) - stack,
}


@pytest.mark.parametrize(("name", "call"), CARELESS.items(), ids=CARELESS.keys())
def test_numpy_does_not_copy_all_pixels_by_accident(name, call):
    with pytest.raises(ArgumentError, match=rf"numpy.{name} would copy the pixels of all 4 observations"):
        call(FrameStack(pictures(9), np.zeros((4, 3), dtype=int)))


def test_no_copy_cannot_be_promised():
    with pytest.raises(ValueError, match="without a copy"):
        np.array(FrameStack(pictures(9), np.zeros((4, 3), dtype=int)), copy=False)


@pytest.mark.parametrize("rows", [(slice(None), 0), np.zeros((2, 2), dtype=int)], ids=["tuple", "matrix"])
def test_pixels_are_not_indexed_before_they_are_copied(rows):
    with pytest.raises(ArgumentError, match="indexed by rows alone"):
        FrameStack(pictures(9), np.zeros((4, 3), dtype=int))[rows]


def test_one_frame_per_row_leaves_the_end_of_each_episode_unobserved():
    states, following, observed = stack_frames(pictures(5), [7, 7, 7, 2, 2], stack=3)
    assert states.index.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [3, 3, 3], [3, 3, 4]]
    assert following.index.tolist() == [[0, 0, 1], [0, 1, 2], [0, 1, 2], [3, 3, 4], [3, 3, 4]]
    assert observed.tolist() == [True, True, False, True, False]
    assert following.frames is states.frames


def test_one_more_frame_per_episode_is_where_its_last_row_led():
    states, following, observed = stack_frames(pictures(7), [7, 7, 7, 2, 2], stack=2)
    assert states.index.tolist() == [[0, 0], [0, 1], [1, 2], [4, 4], [4, 5]]
    assert following.index.tolist() == [[0, 1], [1, 2], [2, 3], [4, 5], [5, 6]]
    assert observed.all()


@pytest.mark.parametrize("stack", [1, 2, 4, 9])
@pytest.mark.parametrize("extra", [0, 1])
def test_a_stack_is_what_a_loop_over_the_episode_would_see(stack, extra):
    begin, frames = 0, pictures(N + extra * 4)
    states, following, observed = stack_frames(frames, EPISODES, stack=stack)
    row = 0
    for length in (4, 1, 3, 7):
        seen = frames[begin : begin + length + extra]
        padded = np.concatenate([np.repeat(seen[:1], stack - 1, axis=0), seen])
        for step in range(length):
            assert np.array_equal(states[row], padded[step : step + stack])
            if step + 1 < len(seen):
                assert np.array_equal(following[row], padded[step + 1 : step + 1 + stack])
            assert observed[row] == (step + 1 < len(seen))
            row += 1
        begin += length + extra


BAD = {
    "too many": (lambda: stack_frames(pictures(7), [0, 0, 1, 1]), r"7 frames .*one more per episode \(6\)", DataError),
    "pieces": (lambda: stack_frames(pictures(3), [4, 2, 4]), "episode 4 begins again in row 2: sort", DataError),
    "no stack": (lambda: stack_frames(pictures(3), [4, 2, 2], stack=0), "stack is 0", ArgumentError),
    "no rows": (lambda: stack_frames(pictures(0), []), r"episodes have shape \(0,\)", DataError),
    "vectors": (
        lambda: stack_frames(np.zeros((3, 2)), [0, 0, 0]),
        r"float64 of shape \(3, 2\).*\(N, H, W\)",
        DataError,
    ),
    "text": (lambda: FrameStack(np.full((1, 1, 1), "a"), [[0]]), "frames hold <U1", DataError),
    "beyond": (lambda: FrameStack(pictures(3), [[0, 1], [1, 3]]), r"\[1 3\] in row 1, but there are 3", DataError),
    "negative": (lambda: FrameStack(pictures(3), [[0, -1]]), r"\[ 0 -1\] in row 0", DataError),
    "column": (
        lambda: FrameStack(pictures(3), [0, 1]),
        r"int64 of shape \(2,\): it must be integers \(n, s\)",
        DataError,
    ),
}


@pytest.mark.parametrize(("build", "message", "error"), BAD.values(), ids=BAD.keys())
def test_what_does_not_fit_is_said_with_its_numbers(build, message, error):
    with pytest.raises(error, match=message):
        build()


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
