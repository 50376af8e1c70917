"""How figures look: small, quiet, and told apart without colour vision."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")  # Okabe & Ito
DASHES = ("-", "--", "-.", ":")
STYLE: dict[str, Any] = {
    "font.family": "serif",
    "font.serif": ["STIX Two Text", "STIXGeneral", "DejaVu Serif"],
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "svg.hashsalt": "checkrein",
    "svg.fonttype": "path",
}


def require_matplotlib() -> None:
    """Raise, with the command that installs it, unless figures can be drawn."""
    try:
        import matplotlib.figure  # noqa: F401, PLC0415
    except ImportError as reason:
        raise MissingExtraError("a study's figures", "studies", reason) from None


@contextmanager
def style() -> Iterator[None]:
    """Draw, and save, in the studies' style."""
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context(cast(Any, STYLE)):
        yield


def panels(widths: Sequence[float], height: float = 2.1, rows: int = 1) -> "tuple[Figure, list[Axes]]":
    """Return a figure with axes side by side, of these widths in inches, row by row."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(sum(widths), height), layout="constrained")
    axes = figure.subplots(rows, len(widths), squeeze=False, width_ratios=list(widths))
    return figure, list(axes.ravel())


def label_ends(axes: "Axes", labels: Sequence[tuple[str, float, str]], *, apart: float = 0.085) -> None:
    """Write each line's name right of the axes at the height where it ends, moved as little as keeps them apart.

    labels: name, the line's last value, its colour
    apart: the least distance, as a share of the height
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    wanted = np.array([to_axes.transform((x, value))[1] for _, value, _ in labels])
    order = np.argsort(wanted, kind="stable")
    apart = min(apart, 1 / max(len(labels) - 1, 1))
    steps = apart * np.arange(len(labels))
    placed = _rising(wanted[order].clip(0.0, 1.0) - steps).clip(0.0, 1.0 - steps[-1]) + steps
    for place, height in zip(order, placed, strict=True):
        name, _, colour = labels[place]
        axes.text(1.02, height, name, color=colour, transform=axes.transAxes, fontsize=7, va="center", clip_on=False)


def _rising(values: FloatArray) -> FloatArray:
    """Return the nearest sequence that never falls (least squares)."""
    return np.asarray(scipy.optimize.isotonic_regression(values).x)


def drawn(figure: "Figure", form: str) -> bytes:
    """Return a figure as the bytes of an SVG or PNG file, the same each time."""
    file = io.BytesIO()
    with style():
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(file, format=form, dpi=200, metadata=metadata)
    return file.getvalue()
