"""A run as a folder: rounds.jsonl only grows, each policy is one .npz; what is killed resumes bit for bit.

Each line of rounds.jsonl has the digest of its policy's file and, in "check", one of all lines so far.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from checkrein import costs  # noqa: F401  # so may all of this room
from checkrein.base import manifest, storage
from checkrein.base.arrays import frozen
from checkrein.base.errors import CheckpointError, StorageError, WriteError
from checkrein.base.lock import one_writer
from checkrein.bellman import iteration  # noqa: F401  # its classes may be read back, and are known once imported
from checkrein.functions import tabular  # noqa: F401  # and of this
from checkrein.game.loop import Play, Round
from checkrein.game.solution import Solution
from checkrein.policies import save_policy
from checkrein.problem import AtMost, Question, Values
from checkrein.protocols import Cost

SETTINGS, ROUNDS, POLICIES = "settings.json", "rounds.jsonl", "policies"
SOLUTION, POLICY = "solution.json", "policy.npz"
MAIN, FEASIBILITY = "main", "feasibility"  # the phases of a run
SHOWN = 60  # characters of a setting in an error
KEYS = {"phase", "index", "multipliers", "objective", "constraints", "policy"}  # what a recorded round must have
CHECK = "check"  # of a line and all before it
PLAYED = (SETTINGS, ROUNDS, POLICIES, SOLUTION, POLICY)  # what `solve` writes


class Checkpoint:
    """The run folder of one problem, with one choice of algorithms and one seed."""

    def __init__(self, folder: str | Path, settings: dict[str, Any]) -> None:
        """Take up what a folder holds; settings: all that decides what its rounds are (`settings_of`)."""
        self.folder = Path(folder)
        self.settings = settings
        if (self.folder / SETTINGS).exists():
            self._require_same()
        elif self.folder.exists() and not self.folder.is_dir():
            raise CheckpointError(f"{self.folder} cannot be a run folder: it is a file")
        self._drop_unfinished_line()
        self.recorded, self._check = _recorded(self.folder)

    def append(self, phase: str, played: Round) -> None:
        """Record a round: first its policy, then the line that says it is there."""
        self._claim()
        file = _policy_file(self.folder, phase, played.index)
        save_policy(played.policy, file)
        record = {
            "phase": phase,
            "index": played.index,
            "multipliers": played.multipliers.tolist(),
            "objective": played.values.objective,
            "constraints": played.values.constraints.tolist(),
            "answers": played.answers,
            "gap": played.gap,
            "lower": played.lower,
            "upper": played.upper,
            "policy": storage.digest_of_file(file),
        }
        self._check = _check(self._check, record)
        self._write_line(json.dumps(record | {CHECK: self._check}))

    def finish(self, solution: Solution) -> None:
        """Write what came out."""
        self._claim()
        save_policy(solution.policy, self.folder / POLICY)
        content = {
            "status": solution.status,
            "explanation": solution.explanation,
            "gap": solution.gap,
            "lower_bound": solution.lower_bound,
            "values": solution.values,
            "multipliers": solution.multipliers,
            "price_ranges": solution.price_ranges,
            "weighting": solution.weighting,
            "weights": solution.policy.weights.tolist(),
            "rounds": len(solution.rounds),
        }
        _write_json(self.folder / SOLUTION, content)

    def _claim(self) -> None:
        """Make the folder this run's, when there is something to put in it: a run that fails at once leaves nothing."""
        manifest.begin(self.folder)
        if (self.folder / SETTINGS).exists():
            return
        try:
            (self.folder / POLICIES).mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise WriteError(f"{self.folder} cannot be a run folder: {reason.strerror}") from None
        _write_json(self.folder / SETTINGS, self.settings)

    def _write_line(self, line: str) -> None:
        try:
            with (self.folder / ROUNDS).open("ab") as file:
                file.write(line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as reason:
            raise WriteError(f"{self.folder / ROUNDS} cannot be written: {reason.strerror or reason}") from None

    def _require_same(self) -> None:
        there = read_settings(self.folder)
        differing = [key for key in {**self.settings, **there} if there.get(key) != self.settings.get(key)]
        if differing:
            pairs = [(key, _short(there.get(key)), _short(self.settings.get(key))) for key in differing]
            changes = "; ".join(f"{key} was {was}, is {now}" for key, was, now in pairs)
            raise CheckpointError(f"{self.folder} holds another run ({changes}): choose another folder")

    def _drop_unfinished_line(self) -> None:
        """Remove a last line that was cut off in the middle of a write."""
        path = self.folder / ROUNDS
        content = path.read_bytes() if path.exists() else b""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())


@contextmanager
def recording(folder: str | Path, settings: dict[str, Any]) -> Iterator[Checkpoint]:
    """Hold a folder and take up its record; in the end it is finished, unless who holds it has more to write."""
    with one_writer(Path(folder)) as alone:
        record = Checkpoint(folder, settings)
        yield record
        if alone:
            manifest.seal(record.folder, PLAYED)


def recorded_plays(folder: Path) -> dict[str, list[Play]]:
    """Return the rounds recorded in a folder by their phase, each in the order they were played in."""
    return _recorded(folder)[0]


def _recorded(folder: Path) -> tuple[dict[str, list[Play]], str]:
    """Return the rounds, and the check of the last line."""
    plays: dict[str, list[Play]] = {MAIN: [], FEASIBILITY: []}
    path, check = folder / ROUNDS, ""
    for number, record in enumerate(_records(path), start=1):
        if not isinstance(record, dict) or not record.keys() >= KEYS or record["phase"] not in (MAIN, FEASIBILITY):
            raise CheckpointError(f"{path} is damaged: {str(record)[:80]} is not a round")
        phase, told = plays[record["phase"]], record.pop(CHECK, None)
        if record["index"] != len(phase) + 1:
            raise CheckpointError(
                f"{path} has round {record['index']} where {len(phase) + 1} should be: "
                "did two runs write to it at once? Choose another folder"
            )
        check = _check(check, record)
        if check != told:
            raise CheckpointError(f"{path} is damaged: line {number} was changed. Choose another folder")
        phase.append(_play(folder, record))
    return plays, check


def _play(folder: Path, record: dict[str, Any]) -> Play:
    """Return a round as it was played, if its policy is still the one that was written then."""
    file = _policy_file(folder, record["phase"], record["index"])
    policy = storage.load(file)
    if storage.digest_of_file(file) != record["policy"]:
        raise CheckpointError(
            f"{file} is not the policy of that round: it was changed or swapped. Choose another folder"
        )
    values = Values(record["objective"], frozen(np.array(record["constraints"], dtype=np.float64)))
    multipliers = frozen(np.array(record["multipliers"], dtype=np.float64))
    return Play(multipliers, policy, values, record.get("answers", True))


def _check(before: str, record: dict[str, Any]) -> str:
    return hashlib.sha256((before + json.dumps(record)).encode()).hexdigest()


def read_settings(folder: Path) -> dict[str, Any]:
    """Return what decided the rounds of a run."""
    path = folder / SETTINGS
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise CheckpointError(f"{folder} holds no run: there is no {SETTINGS} in it") from None
    except (ValueError, OSError) as reason:
        raise CheckpointError(f"{path} is damaged ({reason}): choose another folder") from None
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} is damaged: choose another folder")
    return found


def settings_of(problem: Question, dataset: str, discount: float, choices: dict[str, object]) -> dict[str, Any]:
    """Return everything that decides what the rounds of a run are; dataset: its fingerprint."""
    return {
        "format": 2,
        "dataset": dataset,
        "objective": _in_words(problem.objective),
        "constraints": [_in_words(constraint) for constraint in problem.constraints],
        "discount": discount,
        **{name: repr(choice) for name, choice in choices.items()},
    }


def _in_words(value: AtMost | str | Cost | None) -> str:
    """Return what tells an objective or a constraint from another; of arrays, a digest."""
    cost = value.cost if isinstance(value, AtMost) else value
    if cost is None or isinstance(cost, str):
        return repr(value)
    try:
        return f"{type(cost).__name__} {storage.digest(value)}"
    except StorageError:  # a function, say
        return repr(value)


def _records(path: Path) -> list[Any]:
    try:
        content = path.read_bytes() if path.exists() else b""
        return [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]
    except (ValueError, OSError) as reason:
        raise CheckpointError(f"{path} is damaged ({reason}): choose another folder") from None


def _policy_file(folder: Path, phase: str, index: int) -> Path:
    return folder / POLICIES / f"{phase}-{index:05d}.npz"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2) + "\n"
    storage.write_atomically(path, lambda file: file.write(text.encode()))
