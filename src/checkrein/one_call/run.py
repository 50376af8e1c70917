"""Run: what `fit` returns, read from the folder that it wrote."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.errors import UncertifiedError
from checkrein.certification import Certificate
from checkrein.deploy import DeployedPolicy, load
from checkrein.deploy.deployed import Seed, States
from checkrein.report.model import Summary
from checkrein.report.notebook import notebook
from checkrein.runs.folder import RunFolder


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run.

    policy: `.act(table, seed=...)` in the log's own words; None where nothing passed, and behavior should go on
    certificate: None where there was nothing to judge
    summary: all that the report says, as data
    """

    folder: Path
    policy: DeployedPolicy | None
    certificate: Certificate | None
    summary: Summary

    @classmethod
    def of(cls, folder: str | Path) -> "Run":
        """Read a run folder; its policy may act only if it passed, or if there was no limit to keep."""
        files = RunFolder.opened(Path(folder))
        summary = files.summary()
        certificate = summary.certificate
        refused = files.uncertified or (certificate is not None and not certificate.may_act)
        return cls(files.path, None if refused else load(files.path), certificate, summary)

    @property
    def warnings(self) -> list[str]:
        """What was odd about the log, and what could not be done."""
        return self.summary.card.warnings

    @property
    def classes_(self) -> Array:
        """(A,) the actions, in the order of `predict_proba`."""
        encoding = self._deployed().encoding
        if encoding is None:
            return np.arange(len(self.summary.card.actions))
        labels = np.array(encoding.actions)
        return labels.astype(np.int64) if encoding.integer_actions else labels

    def predict(self, states: States, *, seed: Seed | None = None) -> Array:
        """(n,) an action for each row, as the first decision of its episode: drawn anew, for that is what passed.

        seed: for the same draws again
        """
        rng = np.random.default_rng(seed)
        return np.asarray(self._deployed().act(states, seed=rng))

    def predict_proba(self, states: States) -> FloatArray:
        """(n, A) how likely each action of `classes_` is drawn."""
        return self._deployed().probabilities(states)

    def report(self) -> Path:
        """Return where the page is."""
        return RunFolder(self.folder).report_file

    def __repr__(self) -> str:
        lines = [f"Run: {self.summary.verdict}", f"  {self._decision}"]
        if self.warnings:
            lines.append(f"  {len(self.warnings)} warning{'s' * (len(self.warnings) > 1)}, see .warnings")
        return "\n".join([*lines, f"  {self.report()}"])

    def _repr_html_(self) -> str:
        return notebook(self.summary, self._decision, str(self.report()))

    @property
    def _decision(self) -> str:
        if self.policy is None:
            return "No policy may act: behavior should go on."
        return ".policy may act." if self.certificate is not None else ".policy may act; no limit was asked for."

    def _deployed(self) -> DeployedPolicy:
        if self.policy is None:
            why = "nothing was judged" if self.certificate is None else self.certificate.reason
            raise UncertifiedError(
                f"no policy of this run was certified ({why}): behavior should go on. The one that was refused is had "
                f"by name: checkrein.load_policy({str(self.folder)!r}, uncertified=True)"
            )
        return self.policy

    def __sklearn_is_fitted__(self) -> bool:
        return self.policy is not None
