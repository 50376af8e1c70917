"""Whole episodes to learn from, and whole episodes to judge by; where there are clusters of them, whole clusters."""

import numpy as np

from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.dataset import Dataset


def split_episodes(dataset: Dataset, *, holdout: float, seed: int) -> tuple[Dataset, Dataset | None]:
    """Return the part to learn from, and the part held out (None where `holdout` is 0), by whole episodes or clusters.

    holdout: the share of episodes (of clusters, where the log has them) to hold out, chosen by the seed alone
    """
    if not 0 <= holdout < 1:
        raise ArgumentError(f"holdout is {holdout}: it must lie in [0, 1)")
    if holdout == 0:
        return dataset, None
    if dataset.episodes is None:
        raise DataError("episodes must be known to hold some of them out: pass episodes=")
    labels, unit = np.unique(dataset.units, return_inverse=True)
    n_held = round(holdout * labels.size)
    if not 0 < n_held < labels.size:
        kind = "episodes" if dataset.clusters is None else "clusters"
        raise DataError(f"{labels.size} {kind} cannot be split with holdout = {holdout}: log more, or set it to 0")
    held = np.zeros(labels.size, dtype=bool)
    held[np.random.default_rng(seed).permutation(labels.size)[:n_held]] = True
    return dataset.part(~held[unit]), dataset.part(held[unit])
