"""A run as a folder: rounds.jsonl only grows, each policy is one .npz; what is killed resumes bit for bit."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from checkrein.base import storage
from checkrein.base.arrays import frozen
from checkrein.base.errors import CheckpointError
from checkrein.bellman import iteration  # noqa: F401  # its classes may be read back, and are known once imported
from checkrein.functions import tabular  # noqa: F401  # so may all of this room
from checkrein.game.loop import Play, Round
from checkrein.game.solution import Solution
from checkrein.policies import save_policy
from checkrein.problem import Problem, Values

SETTINGS, ROUNDS, POLICIES = "settings.json", "rounds.jsonl", "policies"
SOLUTION, POLICY = "solution.json", "policy.npz"
MAIN, FEASIBILITY = "main", "feasibility"  # the phases of a run
SHOWN = 60  # characters of a setting in an error
KEYS = {"phase", "index", "multipliers", "objective", "constraints"}  # what a recorded round must have


class Checkpoint:
    """The run folder of one problem, with one choice of algorithms and one seed."""

    def __init__(self, folder: str | Path, problem: Problem, choices: dict[str, object]) -> None:
        self.folder = Path(folder)
        self.settings = _settings(problem, choices)
        if (self.folder / SETTINGS).exists():
            self._require_same()
        elif self.folder.exists() and not self.folder.is_dir():
            raise CheckpointError(f"{self.folder} cannot be a run folder: it is a file")
        for leftover in self.folder.rglob(f".*{storage.UNFINISHED}"):
            leftover.unlink()
        self.recorded: dict[str, list[Play]] = {MAIN: [], FEASIBILITY: []}
        for record in self._read():
            if not isinstance(record, dict) or not record.keys() >= KEYS or record["phase"] not in self.recorded:
                raise CheckpointError(f"{self.folder / ROUNDS} is damaged: {str(record)[:80]} is not a round")
            policy = storage.load(self._policy_file(record["phase"], record["index"]))
            values = Values(record["objective"], frozen(np.array(record["constraints"], dtype=np.float64)))
            multipliers = frozen(np.array(record["multipliers"], dtype=np.float64))
            plays = self.recorded[record["phase"]]
            plays.append(Play(multipliers, policy, values))
            if record["index"] != len(plays):
                raise CheckpointError(
                    f"{self.folder / ROUNDS} has round {record['index']} where {len(plays)} should be: "
                    "did two runs write to it at once? Choose another folder"
                )

    def append(self, phase: str, played: Round) -> None:
        """Record a round: first its policy, then the line that says it is there."""
        self._claim()
        save_policy(played.policy, self._policy_file(phase, played.index))
        record = {
            "phase": phase,
            "index": played.index,
            "multipliers": played.multipliers.tolist(),
            "objective": played.values.objective,
            "constraints": played.values.constraints.tolist(),
            "gap": played.gap,
            "lower": played.lower,
            "upper": played.upper,
        }
        with (self.folder / ROUNDS).open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

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
        if (self.folder / SETTINGS).exists():
            return
        try:
            (self.folder / POLICIES).mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise CheckpointError(f"{self.folder} cannot be a run folder: {reason.strerror}") from None
        _write_json(self.folder / SETTINGS, self.settings)

    def _require_same(self) -> None:
        path = self.folder / SETTINGS
        try:
            there = json.loads(path.read_text())
        except ValueError as reason:
            raise CheckpointError(f"{path} is damaged ({reason}): choose another folder") from None
        if not isinstance(there, dict):
            raise CheckpointError(f"{path} is damaged: choose another folder")
        differing = [key for key in self.settings if there.get(key) != self.settings[key]]
        if differing:
            pairs = [(key, _short(there.get(key)), _short(self.settings[key])) for key in differing]
            changes = "; ".join(f"{key} was {was}, is {now}" for key, was, now in pairs)
            raise CheckpointError(f"{self.folder} holds another run ({changes}): choose another folder")

    def _read(self) -> list[dict[str, Any]]:
        """Return the recorded rounds; a last line cut off in the middle of a write is removed."""
        path = self.folder / ROUNDS
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with path.open("r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())
        try:
            return [json.loads(line) for line in whole.splitlines()]
        except ValueError as reason:
            raise CheckpointError(f"{path} is damaged ({reason}): choose another folder") from None

    def _policy_file(self, phase: str, index: int) -> Path:
        return self.folder / POLICIES / f"{phase}-{index:05d}.npz"


def _settings(problem: Problem, choices: dict[str, object]) -> dict[str, Any]:
    """Everything that decides what the rounds of a run are."""
    return {
        "format": 1,
        "dataset": problem.dataset.fingerprint,
        "objective": repr(problem.objective),
        "constraints": [repr(constraint) for constraint in problem.constraints],
        "discount": problem.discount,
        **{name: repr(choice) for name, choice in choices.items()},
    }


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2) + "\n"
    storage.write_atomically(path, lambda file: file.write(text.encode()))
