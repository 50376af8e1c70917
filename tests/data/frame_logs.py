"""Logs of pictures."""

import dataclasses

import numpy as np

from checkrein import AtMost, Dataset, Problem
from checkrein.data.frames import stack_frames

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
