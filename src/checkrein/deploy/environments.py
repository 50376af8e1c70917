"""An environment's own words: how its observations become states, and a policy's actions its actions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from checkrein.base.arrays import Array
from checkrein.base.errors import ArgumentError, CheckreinError
from checkrein.data.encoding import STEP_NUMBER, Encoding
from checkrein.deploy.deployed import encoded
from checkrein.deploy.portable import table_sizes
from checkrein.protocols import Policy

Reader = Callable[[Any, int], Array]  # of an observation, and the step that it is seen in, counted from 1


def made_environment(environment: str | Any) -> Any:
    """Return an environment by its id, or as it is given."""
    import gymnasium  # noqa: PLC0415  # slow to import

    if not isinstance(environment, str):
        return environment
    try:
        return gymnasium.make(environment)
    except (gymnasium.error.Error, ImportError, TypeError) as reason:
        raise ArgumentError(f"the environment {environment!r} cannot be made: {reason}") from None


def state_reader(space: Any, encoding: Encoding | None) -> Reader:
    """Return how an observation becomes one row of states, by way of the log's columns where there is an encoding."""
    from gymnasium import spaces  # noqa: PLC0415  # slow to import

    if not isinstance(space, spaces.Discrete | spaces.Box):
        raise ArgumentError(f"observations are {space}: only Discrete and Box are read, wrap the environment first")
    if encoding is None:
        if isinstance(space, spaces.Discrete):
            return lambda observation, _: np.array([int(observation)])
        return lambda observation, _: np.asarray(observation, np.float64).reshape(1, *(space.shape or (1,)))
    names = [column.name for column in encoding.columns if column.name != STEP_NUMBER]
    if isinstance(space, spaces.Discrete):
        if len(names) != 1:
            raise ArgumentError(
                f"the environment shows one integer, but the policy's states are {', '.join(names)}: wrap it in a "
                "gymnasium.ObservationWrapper that shows these, as a Box"
            )
        return lambda observation, step: encoded([{names[0]: int(observation), STEP_NUMBER: step}], encoding)
    if space.shape != (len(names),):
        raise ArgumentError(
            f"observations have shape {space.shape}, but the policy's states are {', '.join(names)}: wrap the "
            "environment in a gymnasium.ObservationWrapper that shows these, in this order"
        )

    def row(observation: Any, step: int) -> Array:
        seen = dict(zip(names, np.asarray(observation).tolist(), strict=True))
        return encoded([{**seen, STEP_NUMBER: step}], encoding)

    return row


def action_names(space: Any, encoding: Encoding | None) -> tuple[int, ...]:
    """Return what the environment calls each action of the policy."""
    from gymnasium import spaces  # noqa: PLC0415  # slow to import

    if not isinstance(space, spaces.Discrete):
        raise ArgumentError(f"the environment's actions are {space}: only Discrete ones can be taken")
    if encoding is None:
        return tuple(range(int(space.start), int(space.start) + int(space.n)))
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


def require_fit(policies: list[Policy], environment: Any, encoding: Encoding | None, read: Reader) -> None:
    """Raise before anything is played where a policy by numbers was learned from other states or actions."""
    from gymnasium import spaces  # noqa: PLC0415  # slow to import

    if encoding is not None:  # names decide, and what the log never showed may be seen all the same
        return
    space, actions = environment.observation_space, int(environment.action_space.n)
    sizes = sorted({size for policy in policies for size, exact in table_sizes(policy) if exact})
    if isinstance(space, spaces.Discrete):
        if any(size != space.n for size in sizes):
            raise ArgumentError(
                f"the environment has {space.n} states, but the policy was learned from {sizes[-1]}: it is another "
                "environment, or the log did not show all states (pass n_states= to Dataset.from_arrays)"
            )
        seen = np.array([0])
    else:
        if sizes:
            raise ArgumentError(f"the environment shows {space}, but the policy knows {sizes[-1]} finite states")
        seen = read(np.zeros(space.shape), 1)
    for policy in policies:
        try:
            known = policy.probabilities(seen).shape[1]
        except (CheckreinError, ValueError, IndexError, TypeError) as reason:
            raise ArgumentError(f"the environment shows {space}, which the policy cannot read: {reason}") from None
        if known != actions:
            raise ArgumentError(
                f"the policy has {known} actions, but the environment has {actions}: it is another environment, or the "
                "log did not show all actions (pass n_actions= to Dataset.from_arrays)"
            )
