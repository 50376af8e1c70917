"""checkrein sensitivity: what would have to be hidden before a run's certificate could be wrong."""

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from checkrein.base.errors import DataError
from checkrein.cli.judge import Data, Run, Single
from checkrein.cli.shared import app, console, say

if TYPE_CHECKING:
    from checkrein import Sensitivity


@app.command()
def sensitivity(run: Run, data: Data = None, single: Single = False) -> None:
    """Say how strong a factor outside the log would have to be to undo a run's certificate; this costs no look."""
    from checkrein.certification import Certificate
    from checkrein.runs import judge as judging
    from checkrein.runs.fit import write_report
    from checkrein.runs.folder import RunFolder

    folder = RunFolder(run)
    trial = judging.open_trial(run, data, single=single)
    path = folder.certificate_file(own=trial.own, single=single)
    if not path.exists():
        given = "" if data is None else f" --data {data}"
        command = f"checkrein certify {run}{given}{' --single' if single else ''}"
        raise DataError(f"{run} has no {path.name}, so there is no certificate to undo: first `{command}`")
    found = judging.hidden_factor(trial, Certificate.read(path))
    show_sensitivity(found)
    written = folder.sensitivity_file(own=trial.own, single=single)
    folder.write_sensitivity(found, written)
    say(f"Sensitivity: {written}")
    if trial.own and not single:
        summary = folder.summary().model_copy(update={"sensitivity": found})
        folder.write_summary(summary)
        say(f"Report: {write_report(folder, summary)}")


def show_sensitivity(found: "Sensitivity") -> None:
    """Print what each claim survives, and what that comes to."""
    from checkrein.report.words import odds_in_words

    console.print()
    say(found.explanation)
    table = Table("claim", "largest odds ratio", "in words")
    for one in found.claims:
        table.add_row(escape(one.claim), odds_in_words(one), one.explanation)
    console.print(table)
