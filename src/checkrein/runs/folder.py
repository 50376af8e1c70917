"""RunFolder: every file of a run folder, by name; each is written whole or not at all, and read with clear errors."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from checkrein.base import manifest, storage
from checkrein.base.errors import DataError, StorageError, UncertifiedError
from checkrein.base.lock import LOCK, one_writer
from checkrein.base.manifest import MANIFEST, Manifest
from checkrein.base.storage import storable
from checkrein.certification import METHODS, Certificate
from checkrein.certification.survival import Sensitivity
from checkrein.data.dataset import Dataset
from checkrein.data.encoding import Encoding
from checkrein.data.identity import EpisodeKeys
from checkrein.game.checkpoint import PLAYED, POLICY, ROUNDS
from checkrein.logs import known  # noqa: F401  # a constraint may hold its expressions, known once imported
from checkrein.policies import Support, load_policy, save_policy
from checkrein.problem import AtMost
from checkrein.protocols import Policy
from checkrein.report.frontier_model import FrontierSummary
from checkrein.report.model import Summary
from checkrein.runs.problem_file import ProblemFile, parse_problem

PROBLEM, RESOLVED = "problem.toml", "problem.npz"  # as the user wrote it, and what it came to
ENCODING = "encoding.npz"  # absent where states and actions were numbers from the start
SINGLE = "single.npz"  # the best single policy
UNCERTIFIED = "uncertified.npz"  # of a cross-fitted run where nothing passed: the candidate that was refused
SUMMARY, REPORT = "summary.json", "report.html"
CERTIFICATE = "certificate.json"
NEW_CERTIFICATE, SINGLE_CERTIFICATE = "certificate-new.json", "certificate-single.json"
SENSITIVITY, NEW_SENSITIVITY, SINGLE_SENSITIVITY = (
    "sensitivity.json",
    "sensitivity-new.json",
    "sensitivity-single.json",
)


def by_method(name: str, method: str) -> str:
    """Return what a certificate's file is called where its method was asked for."""
    return name.replace(".json", f"-{method}.json")


JUDGED = (CERTIFICATE, NEW_CERTIFICATE, SINGLE_CERTIFICATE)
OTHER_CERTIFICATES = frozenset({by_method(name, method) for name in JUDGED for method in METHODS} | {*JUDGED[1:]})
EVALUATION, CALIBRATION = "evaluation.csv", "calibration.csv"
FRONTIER_TABLE, FRONTIER_NUMBERS, FRONTIER_PAGE = "frontier.csv", "frontier.json", "frontier.html"
EXPORTS = {"json": "policy.json", "onnx": "policy.onnx", "card": "card.md"}
KNOWN = frozenset(
    {
        *PLAYED,
        *(PROBLEM, RESOLVED, ENCODING, SINGLE, UNCERTIFIED, SUMMARY, REPORT),
        *(CERTIFICATE, *OTHER_CERTIFICATES),
        *(SENSITIVITY, NEW_SENSITIVITY, SINGLE_SENSITIVITY),
        *(EVALUATION, CALIBRATION),
        *EXPORTS.values(),
        *(MANIFEST, LOCK),
    }
)  # every name that a run folder may hold
CHECKED = KNOWN - {MANIFEST, LOCK, EXPORTS["card"]}  # a card is for people, who may edit it
MADE_AGAIN = frozenset({REPORT, EVALUATION, CALIBRATION, *EXPORTS.values()})  # read by nobody here: may be moved away
OF_A_POLICY = frozenset(
    {
        *(CERTIFICATE, *OTHER_CERTIFICATES),
        *(SENSITIVITY, NEW_SENSITIVITY, SINGLE_SENSITIVITY),
        *(EVALUATION, CALIBRATION),
        *EXPORTS.values(),
    }
)  # what is written about a policy later

T = TypeVar("T")


@storable
@dataclass(frozen=True)
class Resolved:
    """What a problem file came to on its log: all that judging the policy, or another question, must know.

    objective: the name of the cost that is minimised
    constraints: with the limits that were asked for, not those that learning aimed at
    log: the key of the log, of which a part was learned from; None where its episodes are not known
    rows: of all that its rows hold but for their costs
    support: the rule that was learned with
    aimed: the constraints that learning aimed at; none: those that were asked for
    learned: the episodes that were learned from; None where they are not known
    cross_fitted: whether these are all there are, and judged, too, each a policy that was learned without it
    """

    objective: str
    constraints: tuple[AtMost, ...]
    log: str | None
    rows: str | None = None
    support: Support | None = None
    aimed: tuple[AtMost, ...] = ()
    learned: EpisodeKeys | None = None
    cross_fitted: bool = False


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run of `checkrein fit`."""

    path: Path

    @classmethod
    def opened(cls, path: Path, *, but: str = "") -> "RunFolder":
        """Return the folder of a finished run, once every file in it is as its manifest says.

        but: a file that need not be, because it is about to be made again
        """
        manifest.require_whole(path, CHECKED - {but}, MADE_AGAIN)
        return cls(path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder; once all is written, it is finished."""
        with one_writer(self.path):
            yield
            manifest.seal(self.path, CHECKED)

    @contextmanager
    def adding(self, path: Path) -> Iterator[Path]:
        """Yield where to write a file: in this folder it joins the manifest, elsewhere it is a file like any other."""
        if path.parent.resolve() != self.path.resolve():
            yield path
            return
        with one_writer(self.path), manifest.joining(path) as place:
            yield place

    @property
    def holds_rounds(self) -> bool:
        """Whether a game was begun here."""
        return (self.path / ROUNDS).exists()

    @property
    def holds_run(self) -> bool:
        """Whether a run was begun here, or finished."""
        return self.holds_rounds or (self.path / SUMMARY).exists()

    @property
    def reports(self) -> bool:
        """Whether the data are here that the report is made of."""
        return (self.path / SUMMARY).exists()

    @property
    def uncertified(self) -> bool:
        """Whether a cross-fitted run ended here without a policy that passed."""
        return (self.path / RESOLVED).exists() and not (self.path / POLICY).exists()

    @property
    def report_file(self) -> Path:
        """The page."""
        return self.path / REPORT

    def certificate_file(self, *, own: bool = True, single: bool = False, method: str | None = None) -> Path:
        """Return where a certificate belongs.

        own: whether the episodes are of the log that was learned from
        single: whether it judges the best single policy
        method: that was asked for by name: such a certificate stands beside the others
        """
        name = SINGLE_CERTIFICATE if single else CERTIFICATE if own else NEW_CERTIFICATE
        return self.path / (name if method is None else by_method(name, method))

    def sensitivity_file(self, *, own: bool = True, single: bool = False) -> Path:
        """Return where it belongs what a hidden factor may do to a certificate, which has the same arguments."""
        return self.path / (SINGLE_SENSITIVITY if single else SENSITIVITY if own else NEW_SENSITIVITY)

    def export_file(self, form: str) -> Path:
        """Return where the policy for other programs belongs."""
        return self.path / EXPORTS[form]

    def policy(self, *, single: bool = False, uncertified: bool = False) -> Policy:
        """Read the learned policy.

        single: the best single policy instead of the mixture
        uncertified: where nothing passed, the candidate that was refused; without it, that is an error
        """
        if single and (self.path / RESOLVED).exists():
            self.require_game("--single")
        name = SINGLE if single else POLICY
        if self.uncertified and not single:
            self._require_asked(uncertified)
            name = UNCERTIFIED
        file = self.path / name
        if not file.exists():
            raise StorageError(
                f"{self.path} has no {file.name}: it is not the folder of a finished run of `checkrein fit`"
            )
        return load_policy(file)

    def require_no_rounds(self) -> None:
        """Raise where a game was begun, which a cross-fitted run does not go on with."""
        if self.holds_rounds:
            raise DataError(
                f'{self.path} holds a run with certificate = "holdout", but this one is cross-fitted: choose another '
                "--out, or set it in [learn]"
            )

    def require_game(self, what: str) -> None:
        """Raise where a run was cross-fitted: it has no rounds, and no best single policy."""
        if self.resolved().cross_fitted:
            raise DataError(
                f"{self.path} is a cross-fitted run, without the rounds of a game that {what} asks for: fit it again "
                'with certificate = "holdout" in [learn]'
            )

    def _require_asked(self, uncertified: bool) -> None:
        """Raise unless there is a policy that was not certified, and it was asked for by name."""
        why = "nothing was judged"
        if self.certificate_file().exists():
            why = self.certificate().reason
        if not (self.path / UNCERTIFIED).exists():
            raise UncertifiedError(f"{self.path} has no policy ({why}): behavior should go on")
        if not uncertified:
            raise UncertifiedError(
                f"no policy of {self.path} was certified ({why}): behavior should go on. The one that is kept there "
                "is had by name: uncertified=True in Python, --uncertified on the command line"
            )

    def encoding(self) -> Encoding | None:
        """Read what the policy's numbers stand for; None where the log had numbers from the start."""
        path = self.path / ENCODING
        return _load(path, Encoding, "an Encoding") if path.exists() else None

    def problem_file(self) -> ProblemFile:
        """Read the problem file that was learned from."""
        path = self.path / PROBLEM
        return parse_problem(self._text(path), path)

    def resolved(self) -> Resolved:
        """Read what the problem file came to."""
        path = self._finished(self.path / RESOLVED)
        return _load(path, Resolved, "the constraints of a run")

    def summary(self) -> Summary:
        """Read the data that the report is made of."""
        path = self.path / SUMMARY
        text = self._text(path)
        try:
            return Summary.model_validate(json.loads(text))
        except ValueError as reason:
            raise DataError(f"{path} is damaged: {str(reason).splitlines()[0]}") from None

    def other_certificates(self) -> dict[str, Certificate]:
        """Read the certificates beside the run's own, by the names of their files."""
        there = [name for name in sorted(OTHER_CERTIFICATES) if (self.path / name).exists()]
        return {name: Certificate.read(self.path / name) for name in there}

    def certificate(self) -> Certificate:
        """Read the certificate of the held-out part."""
        return Certificate.read(self.certificate_file())

    def write_policy(self, single: Policy, encoding: Encoding | None) -> None:
        """Write the best single policy and what numbers stand for; `solve` has written the mixture."""
        self._drop_what_is_of_another_policy()
        self._write_encoding(encoding)
        save_policy(single, self.path / SINGLE)

    def write_judged_policy(self, policy: Policy | None, encoding: Encoding | None, *, certified: bool) -> None:
        """Write the policy of a cross-fitted run under the name that says whether it may act, if there is one."""
        self.path.mkdir(parents=True, exist_ok=True)
        manifest.begin(self.path)
        self._write_encoding(encoding)
        for name in (POLICY, UNCERTIFIED):
            (self.path / name).unlink(missing_ok=True)
        if policy is not None:
            save_policy(policy, self.path / (POLICY if certified else UNCERTIFIED))
        self._drop_what_is_of_another_policy()

    def write_problem(self, text: str, resolved: Resolved) -> None:
        """Write the problem file and what it came to."""
        self._write(PROBLEM, text)
        storage.save(resolved, self.path / RESOLVED)

    def write_certificate(self, certificate: Certificate) -> None:
        """Write the certificate of the held-out part."""
        self.add_certificate(certificate, self.certificate_file())

    def add_certificate(self, certificate: Certificate, path: Path) -> None:
        """Write a certificate to a file, in this folder or elsewhere."""
        with self.adding(path) as place:
            certificate.write(place)

    def write_sensitivity(self, sensitivity: Sensitivity, path: Path | None = None) -> None:
        """Write what a hidden factor may do to a certificate, by default that of the held-out part."""
        with self.adding(path or self.sensitivity_file()) as place:
            sensitivity.write(place)

    def write_summary(self, summary: Summary) -> None:
        """Write the data that the report is made of."""
        self._write(SUMMARY, summary.model_dump_json(indent=1) + "\n")

    def write_report(self, page: str) -> Path:
        """Write the page, and return where it is."""
        self._write(REPORT, page)
        return self.report_file

    def write_evaluation(self, table: pl.DataFrame, calibration: pl.DataFrame | None) -> Path:
        """Write every estimate, and how well the propensities are calibrated; return where the estimates are."""
        for name, content in {EVALUATION: table, CALIBRATION: calibration}.items():
            if content is not None:
                with self.adding(self.path / name) as place:
                    storage.write_atomically(place, content.write_csv)
        return self.path / EVALUATION

    def _write(self, name: str, text: str) -> None:
        with self.adding(self.path / name) as place:
            _write(place, text)

    def _write_encoding(self, encoding: Encoding | None) -> None:
        if encoding is None:
            (self.path / ENCODING).unlink(missing_ok=True)
        else:
            storage.save(encoding, self.path / ENCODING)

    def _drop_what_is_of_another_policy(self) -> None:
        """Remove what was written about the policy that was here before, unless it is the same again."""
        before = Manifest.read(self.path)
        if before is None:
            return
        same = all(self._is(name, before.files.get(name)) for name in (POLICY, UNCERTIFIED))
        for name in OF_A_POLICY & before.files.keys():
            if not (same and self._is(name, before.files[name])):
                (self.path / name).unlink(missing_ok=True)

    def _is(self, name: str, digest: str | None) -> bool:
        path = self.path / name
        return digest == (storage.digest_of_file(path) if path.is_file() else None)

    def _finished(self, path: Path) -> Path:
        if not path.exists():
            raise DataError(f"{self.path} holds no finished run: there is no {path.name} in it")
        return path

    def _text(self, path: Path) -> str:
        try:
            return self._finished(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as reason:
            raise DataError(f"{path} cannot be read: {reason}") from None


@dataclass(frozen=True)
class FrontierFolder:
    """The folder of one sweep of `checkrein frontier`, which records its rounds as a run does."""

    path: Path

    @property
    def table(self) -> Path:
        """A row for each point."""
        return self.path / FRONTIER_TABLE

    @property
    def page(self) -> Path:
        """The page."""
        return self.path / FRONTIER_PAGE

    def write(self, table: pl.DataFrame, summary: FrontierSummary, page: str) -> None:
        """Write the table, the numbers that the page is made of, and the page."""
        storage.write_atomically(self.table, table.write_csv)
        _write(self.path / FRONTIER_NUMBERS, summary.model_dump_json(indent=1) + "\n")
        _write(self.page, page)


def rows_key(dataset: Dataset) -> str:
    """SHA-256 of all that a log's rows hold but for their costs."""
    return dataset.with_costs({"none": np.zeros(len(dataset))}).fingerprint


def _load(path: Path, kind: type[T], words: str) -> T:
    found: Any = storage.load(path)
    if not isinstance(found, kind):
        raise StorageError(f"{path} holds a {type(found).__name__}, not {words}")
    return found


def _write(path: Path, text: str) -> None:
    storage.write_atomically(path, lambda file: file.write(text.encode()))
