"""Minari datasets (0.5), by episode: T + 1 observations, T actions, rewards, terminations and truncations."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from checkrein.base.arrays import Array
from checkrein.base.errors import CheckreinError, DataError, MissingExtraError
from checkrein.data.dataset import Dataset
from checkrein.logs.hdf5 import Discretise, finite_actions

if TYPE_CHECKING:
    from gymnasium import spaces

InfoCost = str | Callable[[Any], ArrayLike]  # key of infos ("outer/inner" if nested), or (T,) of an episode


def read_minari(
    dataset_or_id: Any,
    *,
    discretise: Discretise | None = None,
    costs: Mapping[str, InfoCost] | None = None,
    n_actions: int | None = None,
) -> Dataset:
    """Read a Minari dataset, or the local one of that name.

    Rewards are the cost "reward", as they are (maximise it). `costs` names more of them: a key of the episodes' infos,
    or a function of an episode that returns (T,) numbers. Recorded infos start with that of the reset, so entry t + 1
    belongs to transition t. Discrete observations are finite states; dictionaries and tuples become feature vectors.
    The last next state of an episode is held by the dataset: a truncated episode loses nothing.
    """
    costs = {} if costs is None else costs
    if "reward" in costs:
        raise DataError("a cost is called 'reward', which is what the dataset's rewards are called: rename it")
    source = _load(dataset_or_id) if isinstance(dataset_or_id, str) else dataset_or_id
    if not hasattr(source, "iterate_episodes"):
        raise DataError(f"a {type(source).__name__} is neither a Minari dataset nor the name of one")
    try:
        return _read(source, discretise, costs, n_actions)
    except DataError as reason:
        raise DataError(f"{source.id}: {reason}") from None
    except OSError as reason:  # how h5py tells of damage
        raise DataError(f"the Minari dataset {source.id!r} is damaged: {reason}") from None


def _read(source: Any, discretise: Discretise | None, costs: Mapping[str, InfoCost], n_actions: int | None) -> Dataset:
    from gymnasium import spaces  # noqa: PLC0415  # slow to import

    space, choices = source.observation_space, source.action_space
    parts: dict[str, list[Array]] = {"states": [], "next": [], "actions": [], "terminals": [], "ids": [], "steps": []}
    named: dict[str, list[Array]] = {name: [] for name in ("reward", *costs)}
    for episode in _episodes(source):
        states, length = _observations(space, episode.observations), len(episode.rewards)
        where = f"episode {episode.id}"
        _require_length(states, length + 1, f"{where}: observations")
        _require_length(episode.actions, length, f"{where}: actions")
        named["reward"].append(np.asarray(episode.rewards))
        for name, cost in costs.items():
            named[name].append(_cost(episode, name, cost, where))
        arrays = (states[:-1], states[1:], np.asarray(episode.actions), np.asarray(episode.terminations))
        counted = (np.full(length, episode.id), np.arange(length))
        for key, array in zip(parts, (*arrays, *counted), strict=True):
            parts[key].append(array)
    if not any(len(array) for array in parts["ids"]):
        raise DataError(f"there are no transitions, only {len(parts['ids'])} episodes without steps")
    joined = {key: np.concatenate(arrays_of_key) for key, arrays_of_key in parts.items()}
    counts = isinstance(choices, spaces.Discrete) and discretise is None
    actions = finite_actions(joined["actions"], discretise) - (int(choices.start) if counts else 0)
    return Dataset.from_arrays(
        states=joined["states"],
        actions=actions,
        next_states=joined["next"],
        costs={name: np.concatenate(arrays_of_name) for name, arrays_of_name in named.items()},
        terminals=joined["terminals"],
        episodes=joined["ids"],
        steps=joined["steps"],
        n_actions=int(choices.n) if counts and n_actions is None else n_actions,
        n_states=int(space.n) if isinstance(space, spaces.Discrete) else None,
    )


def _episodes(source: Any) -> Iterator[Any]:
    """Yield the episodes of a dataset, or say that it is damaged."""
    try:
        yield from source
    except (CheckreinError, OSError):
        raise
    except Exception as reason:  # whatever Minari does with a file that is none of its own
        raise DataError(f"the dataset is damaged: {type(reason).__name__}: {reason}") from None


def _load(name: str) -> Any:
    try:
        import minari  # noqa: PLC0415

        return minari.load_dataset(name)
    except ImportError as reason:
        raise MissingExtraError(f"reading the Minari dataset {name!r}", "minari", reason) from None
    except FileNotFoundError:
        raise DataError(f"there is no local Minari dataset {name!r}: minari download {name}") from None
    except Exception as reason:  # whatever Minari does with a folder that is none of its own
        raise DataError(f"the Minari dataset {name!r} cannot be read: {reason}") from None


def _observations(space: "spaces.Space[Any]", values: Any) -> Array:
    """(T + 1,) finite states from 0 on, or (T + 1, ...) observations."""
    from gymnasium import spaces  # noqa: PLC0415  # slow to import

    if isinstance(space, spaces.Discrete):
        return np.asarray(values).reshape(-1) - int(space.start)
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return _features(space, values)
    return np.asarray(values)


def _features(space: "spaces.Space[Any]", values: Any) -> Array:
    """(T + 1, d) parts side by side, in the order of `gymnasium.spaces.flatten`; a discrete one by indicators."""
    from gymnasium import spaces  # noqa: PLC0415  # slow to import

    if isinstance(space, spaces.Dict):
        return np.concatenate([_features(part, values[key]) for key, part in space.spaces.items()], axis=1)
    if isinstance(space, spaces.Tuple):
        return np.concatenate([_features(part, value) for part, value in zip(space, values, strict=True)], axis=1)
    if isinstance(space, spaces.Discrete):
        return np.eye(int(space.n))[_observations(space, values)]
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise DataError(f"a part of the observations is {space}, not numbers: it cannot be made into features")
    return array.reshape(len(array), -1)


def _cost(episode: Any, name: str, cost: InfoCost, where: str) -> Array:
    length = len(episode.rewards)
    if not isinstance(cost, str):
        return _require_length(np.asarray(cost(episode)), length, f"{where}: cost {name!r}")
    values: Any = episode.infos or {}
    for key in [cost] if cost in values else cost.split("/"):
        if not isinstance(values, Mapping) or key not in values:
            shown = ", ".join(map(str, values)) if isinstance(values, Mapping) and values else "none"
            raise DataError(f"{where}: cost {name!r} is the info {cost!r}, but there is no {key!r}; the keys: {shown}")
        values = values[key]
    if np.shape(values) in ((length + 1,), (length + 1, 1)):
        values = values[1:]  # the first is what reset returned
    array = np.asarray(_require_length(values, length, f"{where}: info {cost!r}"))
    return array[:, 0] if array.shape == (length, 1) else array


def _require_length(values: Any, expected: int, what: str) -> Any:
    if isinstance(values, Mapping | tuple):
        raise DataError(f"{what} are a {type(values).__name__} of several arrays, but one is needed")
    if np.ndim(values) == 0 or len(values) != expected:
        found = "one value" if np.ndim(values) == 0 else f"{len(values)} entries"
        raise DataError(f"{what} has {found}, but {expected} are needed")
    return values
