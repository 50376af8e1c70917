"""fit: from a table or a problem file to a run, as `checkrein fit` does it."""

import atexit
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from checkrein.base.errors import ArgumentError, DataError
from checkrein.base.lock import one_writer
from checkrein.certification.looks import state_folder
from checkrein.one_call.arguments import IN_MEMORY, problem_of
from checkrein.one_call.run import Run
from checkrein.runs.folder import RunFolder

if TYPE_CHECKING:
    from checkrein.runs.prepare import Prepared

PROBLEM_FILE = ".toml"
USUAL = {"discount": 1.0, "confidence": 0.95, "seed": 0}


@overload
def fit(data: str | Path, *, out: str | Path | None = None) -> Run: ...
@overload
def fit(
    data: object,
    *,
    state: str | Sequence[str],
    action: str,
    minimize: str | None = None,
    maximize: str | None = None,
    limits: Mapping[str, str] | None = None,
    costs: Mapping[str, str] | None = None,
    episode: str | None = None,
    step: str | None = None,
    terminal: str | None = None,
    propensity: str | None = None,
    cluster: str | None = None,
    horizon: int | None = None,
    admissible: str | None = None,
    discount: float = 1.0,
    functions: str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    out: str | Path | None = None,
) -> Run: ...
def fit(
    data: object,
    *,
    state: str | Sequence[str] | None = None,
    action: str | None = None,
    minimize: str | None = None,
    maximize: str | None = None,
    limits: Mapping[str, str] | None = None,
    costs: Mapping[str, str] | None = None,
    episode: str | None = None,
    step: str | None = None,
    terminal: str | None = None,
    propensity: str | None = None,
    cluster: str | None = None,
    horizon: int | None = None,
    admissible: str | None = None,
    discount: float | None = None,
    functions: str | None = None,
    confidence: float | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
) -> Run:
    """Learn a policy within limits from logged decisions, and certify it by episodes that had no part in it.

    data: a table (pandas, polars, Arrow), a path or glob, or a problem file ("problem.toml", then nothing else is
        needed)
    state, action: columns; episode: which rows belong together, without it each row is an episode of one decision
    minimize, maximize: a column, a SQL expression over the columns, or a name in `costs`
    limits: by column, or by name in `costs`: "at most 2.5", "at least 0.3", "at most 75% of behavior"
    costs: SQL expressions by name, of what is limited or the objective and is no column
    step, terminal, propensity, cluster: columns, as in `read_logs`
    horizon: decisions after which an episode ends; the step number then joins the state
    admissible: which actions may be chosen, as an expression over state and action columns: "age > 50 OR drug = 'none'"
    discount: 1 if not given; functions: "auto" if not given, see the problem file
    confidence: 0.95 if not given; seed: 0
    out: the run folder to write; without it, a temporary one that is gone when Python ends
    """
    from checkrein.runs.prepare import prepare, prepare_problem  # noqa: PLC0415  # slow to import

    folder = _run_folder(out)
    columns = {"episode": episode, "state": state, "action": action, "step": step, "terminal": terminal}
    columns |= {"propensity": propensity, "cluster": cluster}
    chosen = {"horizon": horizon, "admissible": admissible}
    asked = {"minimize": minimize, "maximize": maximize, "limits": limits, "costs": costs}
    settings = {"discount": discount, "functions": functions, "confidence": confidence, "seed": seed}
    given = {name: value for name, value in (columns | chosen | asked | settings).items() if value is not None}
    if isinstance(data, str | Path) and Path(data).suffix == PROBLEM_FILE:
        if given:
            raise ArgumentError(f"{data} is a problem file, which says all itself: write {next(iter(given))} there")
        prepared, call = prepare(Path(data)), [repr(str(data))]
    else:
        paths = _paths(data)
        learn = {"discount": discount, "functions": functions, "seed": seed}
        file, text = problem_of(
            IN_MEMORY if paths is None else paths,
            columns,
            chosen=chosen,
            minimize=minimize,
            maximize=maximize,
            limits=limits,
            costs=costs,
            learn={name: USUAL.get(name) if value is None else value for name, value in learn.items()},
            confidence=USUAL["confidence"] if confidence is None else confidence,
        )
        # looks at a table in memory are recorded in the user's own file alone: it lies beside nothing
        where = state_folder() if paths is None else Path()
        prepared = prepare_problem(file, text, where, table=data if paths is None else None)
        call = ["table" if paths is None else repr(data), *(f"{name}={value!r}" for name, value in given.items())]
    _learn(prepared, folder, command=f"checkrein.fit({', '.join(call)})")
    return Run.of(folder)


def _learn(prepared: "Prepared", folder: Path, *, command: str) -> None:
    from checkrein.runs import fit as holding_out  # noqa: PLC0415  # slow to import
    from checkrein.runs.cross_fitted import fit_cross_fitted  # noqa: PLC0415

    with one_writer(folder):
        if prepared.cross_fitted:
            fit_cross_fitted(prepared, folder, command=command)
        else:
            holding_out.fit(prepared, folder, command=command)


def _run_folder(out: str | Path | None) -> Path:
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="checkrein-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    if RunFolder(Path(out)).holds_run:
        raise DataError(f"{out} holds a run already: choose another out=")
    return Path(out)


def _paths(data: object) -> str | list[str] | None:
    """Return where a log lies; None for a table."""
    if isinstance(data, str | Path):
        return str(data)
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | Path) for one in data):
        return [str(one) for one in data]
    return None
