"""An environment's own words: how its observations become states, and a policy's actions its actions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from checkrein.base.arrays import Array
from checkrein.base.errors import ArgumentError
from checkrein.data.encoding import Encoding
from checkrein.deploy.deployed import encoded


def state_reader(space: Any, encoding: Encoding | None) -> Callable[[Any], Array]:
    """Return how an observation becomes one row of states, by way of the log's columns where there is an encoding."""
    from gymnasium import spaces  # noqa: PLC0415  # slow to import

    if isinstance(space, spaces.Discrete):
        if encoding is None:
            return lambda observation: np.array([int(observation)])
        if len(encoding.columns) != 1:
            shown = ", ".join(column.name for column in encoding.columns)
            raise ArgumentError(f"the environment shows one integer, but the policy's states are {shown}")
        return lambda observation: encoded([{encoding.columns[0].name: int(observation)}], encoding)
    if not isinstance(space, spaces.Box):
        raise ArgumentError(f"observations are {space}: only Discrete and Box are read, wrap the environment first")
    if encoding is None:
        return lambda observation: np.asarray(observation, dtype=np.float64).reshape(1, *(space.shape or (1,)))
    names = [column.name for column in encoding.columns]
    if space.shape != (len(names),):
        raise ArgumentError(f"observations have shape {space.shape}, but the policy's states are {', '.join(names)}")
    return lambda observation: encoded([dict(zip(names, np.asarray(observation).tolist(), strict=True))], encoding)


def action_names(space: Any, encoding: Encoding | None) -> tuple[int, ...]:
    """Return what the environment calls each action of the policy."""
    from gymnasium import spaces  # noqa: PLC0415  # slow to import

    if not isinstance(space, spaces.Discrete):
        raise ArgumentError(f"the environment's actions are {space}: only Discrete ones can be taken")
    if encoding is None:
        return tuple(range(int(space.n)))
    try:
        actions = tuple(int(label) for label in encoding.actions)
    except ValueError:
        raise ArgumentError(
            f"the policy's actions are {', '.join(encoding.actions)}, but the environment takes integers: "
            "map them with a gymnasium.ActionWrapper and a log that names the same integers"
        ) from None
    for action in actions:
        if not space.contains(action):
            raise ArgumentError(f"the policy may take action {action}, but the environment has {space}")
    return actions
