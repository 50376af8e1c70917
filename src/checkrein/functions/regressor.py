"""Regressor: any scikit-learn regressor, a clone per action."""

import io
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast
from zipfile import ZipFile

import numpy as np

from checkrein.base.arrays import Array, FloatArray, IntArray, frozen
from checkrein.base.errors import ArgumentError, MissingExtraError, StorageError
from checkrein.base.storage import storable
from checkrein.functions.trees import by_action, flattened, units
from checkrein.protocols import QFunction

UNPACKED, SMALL = 100, 1_000_000  # times that packed models may become larger, and bytes that they may be anyway
NEEDED = ("fit", "predict", "get_params", "__sklearn_tags__")


@dataclass(frozen=True)
class Regressor:
    """The function class of a scikit-learn regressor, one model per action.

    All costs are fitted at once where the estimator can, else one model per cost; either way in standard units. What
    the estimator draws at random is drawn from the fit's generator, whatever its `random_state`.
    """

    estimator: Any

    def __post_init__(self) -> None:
        from sklearn.base import is_classifier  # noqa: PLC0415  # slow to import

        name = type(self.estimator).__name__
        lacking = [method for method in NEEDED if not hasattr(self.estimator, method)]
        if isinstance(self.estimator, type) or lacking:
            reason = f"lacks {', '.join(lacking)}" if lacking else "is a class"
            raise ArgumentError(f"the estimator is a {name} and {reason}: pass a scikit-learn regressor, like Ridge()")
        if is_classifier(self.estimator):
            raise ArgumentError(f"{name} is a classifier: values are numbers, pass a regressor")

    def design(self, states: Array, actions: IntArray, weights: FloatArray, *, n_actions: int) -> "RegressorDesign":
        """Sort the rows by action; those without weight are left out."""
        order, blocks = by_action(actions, weights, n_actions)
        name, ordered = _weights_name(self.estimator), weights[order]
        if name is None and np.ptp(ordered) > 0:
            raise ArgumentError(
                f"{type(self.estimator).__name__} takes no sample_weight, but the weights of these rows differ, from "
                f"{ordered.min():g} to {ordered.max():g}: choose an estimator that takes weights, or repeat the rows"
            )
        return RegressorDesign(self.estimator, name, flattened(states)[order], ordered, order, blocks)


@storable
@dataclass(frozen=True, eq=False)
class RegressorQ:
    """What an action's models predict, in the units of the costs; 0 where there are none."""

    models: tuple[tuple[Any, ...], ...]  # per action: one for all costs, one per cost, or none
    centre: FloatArray  # (A, k)
    scale: FloatArray  # (A, k)

    def __call__(self, states: Array) -> FloatArray:
        """(n, A, k)"""  # noqa: D400, D415
        vectors, values = flattened(states), np.tile(self.centre, (len(states), 1, 1))
        for action, models in enumerate(self.models):
            if models and len(vectors):
                predicted = np.column_stack([model.predict(vectors) for model in models])
                values[:, action] += predicted * self.scale[action]
        return values

    def packed(self) -> dict[str, object]:
        """Return the models as bytes of skops, which reads them back without running code."""
        skops = _skops()
        try:
            written = skops.dumps(self.models)
        except (TypeError, ValueError, AttributeError, NotImplementedError) as reason:
            raise StorageError(f"the models cannot be saved without code: {reason}") from None
        _require_trusted(skops, written)  # now rather than when it is needed
        return {"models": np.frombuffer(written, dtype=np.uint8), "centre": self.centre, "scale": self.scale}

    @classmethod
    def unpacked(cls, fields: dict[str, Any]) -> "RegressorQ":
        """Read the models; nothing is built before all their types are known to be safe."""
        skops, written = _skops(), fields["models"].tobytes()
        try:
            _require_measured(written)
            _require_trusted(skops, written)
            models = skops.loads(written)
        except StorageError:
            raise
        except Exception as reason:  # whatever skops and scikit-learn do with a schema that is none of theirs
            raise StorageError(f"the models are damaged: {type(reason).__name__}: {reason}") from None
        shape = np.shape(fields["centre"])
        if not _are_models(models) or len(models) != shape[0]:
            raise StorageError(f"the models are damaged: there is not a group of them for each of {shape[0]} actions")
        return cls(models, fields["centre"], fields["scale"])


@dataclass(frozen=True, eq=False)
class RegressorDesign:
    """The rows by action, and how the estimator is told their weights."""

    estimator: Any
    weights_name: str | None
    vectors: Array  # (n, d) ordered
    weights: FloatArray  # (n,) ordered
    order: IntArray  # (n,) rows by action, without those of no weight
    blocks: list[slice]  # of the ordered rows, one per action

    def fit(self, targets: FloatArray, *, rng: np.random.Generator, start: QFunction | None = None) -> RegressorQ:  # noqa: ARG002
        """Regress targets (n, k), anew each time."""
        ordered, shape = targets[self.order], (len(self.blocks), targets.shape[1])
        centre, scale, models = np.zeros(shape), np.ones(shape), []
        for action, rows in enumerate(self.blocks):
            if rows.start == rows.stop:
                models.append(())
                continue
            centre[action], scale[action] = units(ordered[rows], self.weights[rows])
            models.append(self._models(rows, (ordered[rows] - centre[action]) / scale[action], rng))
        return RegressorQ(tuple(models), frozen(centre), frozen(scale))

    def _models(self, rows: slice, targets: FloatArray, rng: np.random.Generator) -> tuple[Any, ...]:
        from sklearn.utils import get_tags  # noqa: PLC0415  # slow to import

        asks = get_tags(self.estimator).target_tags
        together = asks.multi_output and (targets.shape[1] > 1 or not asks.single_output)
        weights = {} if self.weights_name is None else {self.weights_name: self.weights[rows]}
        return tuple(
            _seeded(self.estimator, rng).fit(self.vectors[rows], part, **weights)
            for part in ([targets] if together else targets.T)
        )


def _weights_name(estimator: Any) -> str | None:
    """Return the argument of `fit` that takes row weights; a pipeline hands it to its last step."""
    from sklearn.pipeline import Pipeline  # noqa: PLC0415  # slow to import
    from sklearn.utils.validation import has_fit_parameter  # noqa: PLC0415  # slow to import

    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = _weights_name(last)
        return None if inner is None else f"{step}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """Return a clone, every random state in it drawn from the generator."""
    from sklearn.base import clone  # noqa: PLC0415  # slow to import

    fresh = clone(estimator)
    names = sorted(name for name in fresh.get_params() if name.split("__")[-1] == "random_state")
    return fresh.set_params(**{name: int(rng.integers(2**31 - 1)) for name in names})


def _skops() -> ModuleType:
    try:
        import skops.io  # noqa: PLC0415
    except ImportError as reason:
        raise MissingExtraError("a scikit-learn model on disk", "skops", reason) from None
    return cast(ModuleType, skops.io)


def _require_measured(written: bytes) -> None:
    """Raise where packed models would become far larger than they are."""
    with ZipFile(io.BytesIO(written)) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > UNPACKED * len(written) + SMALL:
        raise StorageError(f"the models are {len(written):,} bytes, but say that they are {size:,} when unpacked")


def _are_models(models: object) -> bool:
    return isinstance(models, tuple) and all(
        isinstance(group, tuple) and all(callable(getattr(model, "predict", None)) for model in group)
        for group in models
    )


def _require_trusted(skops: ModuleType, written: bytes) -> None:
    unknown = skops.get_untrusted_types(data=written)
    if unknown:
        raise StorageError(
            f"the models hold {', '.join(unknown)}, which skops does not trust, and nothing untrusted is saved or "
            "loaded: use another estimator, or Trees in place of a forest, whose trees are plain arrays"
        )
