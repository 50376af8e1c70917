import numpy as np
import pytest

from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.frames import FrameStack, stack_frames
from data.frame_logs import EPISODES, RNG, N, log_of, pictures


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
