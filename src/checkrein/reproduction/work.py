"""What most studies do: many independent calls, and half of a log held out."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar, cast

from checkrein.engine import Joblib
from checkrein.reproduction.study import Tell

if TYPE_CHECKING:
    from checkrein.data.dataset import Dataset

T = TypeVar("T")


def each(calls: Iterable[Callable[[], T]], *, jobs: int, tell: Tell) -> list[T]:
    """Make independent calls, several at a time; the results keep their order."""
    asked, results = list(calls), []
    for number, result in enumerate(Joblib(jobs).map(_made, asked), start=1):
        tell(f"{number} of {len(asked)}")
        results.append(result)
    return results


def _made(call: Callable[[], T]) -> T:
    return call()


def halves(log: "Dataset", seed: int) -> "tuple[Dataset, Dataset]":
    """Return half of the episodes to learn from, and the other half to judge by."""
    from checkrein.data.split import split_episodes  # noqa: PLC0415

    mine, held_out = split_episodes(log, holdout=0.5, seed=seed)
    return mine, cast("Dataset", held_out)
