"""An intensive-care table: made up, but with an exact optimum to compare with.

Every hour a patient has a severity and perhaps a lactate reading, and gets fluids, a vasopressor, both or neither.
Lactate says how the next hours will go; it is read afresh each hour, and one reading in eight is missing.
"""

import csv
from pathlib import Path
from typing import IO

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.storage import write_atomically
from checkrein.data.dataset import Dataset
from checkrein.policies import TabularPolicy
from checkrein.tabular_mdp import TabularMDP

SEVERITIES = ("mild", "moderate", "severe", "critical")
LACTATES = ("normal", "raised", "high", "")  # the last: not measured
TREATMENTS = ("none", "fluids", "vaso", "both")
DISCOUNT = 1.0
MAX_HOURS = 48

READING = np.array([[0.70, 0.25, 0.05], [0.45, 0.40, 0.15], [0.20, 0.45, 0.35], [0.05, 0.35, 0.60]])  # by severity
MEASURED = 0.875
STRAIN = np.array([-0.35, 0.1, 0.55])  # of a lactate reading: how much likelier the patient is to get worse
HELP = np.array([[0.00, 0.15, -0.20, -0.10], [0.0, 0.35, 0.25, 0.30], [0.0, 0.35, 0.60, 0.80], [0.0, 0.25, 0.80, 1.05]])
LEAVING = np.array([0.22, 0.05, 0.01, 0.0])  # discharge, by severity
DYING = np.array([0.001, 0.006, 0.03, 0.13])  # by severity, with a normal reading and no treatment

PROBLEM = """\
title = "Intensive care: fewer deaths, with fewer drugs"

[data]
path = "{path}"
episode = "patient"
step = "hour"
state = ["severity", "lactate"]
action = "treatment"
terminal = "ended"

[objective]
minimize = "death"

[[constraint]]
name = "vasopressor hours"
cost = "CASE WHEN treatment IN ('vaso', 'both') THEN 1 ELSE 0 END"
at_most = "75% of behavior"

[[constraint]]
name = "litres of fluid"
cost = "litres"
at_most = 2.5                 # per patient: with discount = 1 sums are per episode

[learn]
discount = 1.0
seed = 0
"""


def _index(severity: int, lactate: int) -> int:
    return severity * len(LACTATES) + lactate


def ward() -> TabularMDP:
    """Return the exact MDP over (severity, lactate), with costs `death`, `vasopressor hours` and `litres of fluid`."""
    n_states, n_actions = len(SEVERITIES) * len(LACTATES), len(TREATMENTS)
    moves = np.zeros((n_states, n_actions, n_states))
    death = np.zeros((n_states, n_actions))
    for severity in range(len(SEVERITIES)):
        for action in range(n_actions):
            each = [_outcome(severity, reading, action) for reading in range(3)]
            unread = sum(READING[severity, reading] * each[reading][0] for reading in range(3))
            unread_death = sum(READING[severity, reading] * each[reading][1] for reading in range(3))
            for lactate, (following, dying) in enumerate([*each, (unread, unread_death)]):
                state = _index(severity, lactate)
                death[state, action] = dying
                moves[state, action] = (following[:, None] * _readings()).ravel()
    vaso = np.tile(np.array([0.0, 0.0, 1.0, 1.0]), (n_states, 1))
    litres = np.tile(np.array([0.0, 0.5, 0.0, 0.5]), (n_states, 1))
    admitted = np.array([0.1, 0.45, 0.35, 0.1])
    initial = (admitted[:, None] * _readings()).ravel()
    costs = {"death": death, "vasopressor hours": vaso, "litres of fluid": litres}
    return TabularMDP(moves, costs, initial, DISCOUNT)


def _readings() -> FloatArray:
    """(severities, lactates) how likely each reading is, the missing one included."""
    return np.column_stack([MEASURED * READING, np.full(len(SEVERITIES), 1 - MEASURED)])


def _outcome(severity: int, reading: int, action: int) -> tuple[FloatArray, float]:
    """Return how likely each next severity is, and death; the rest is discharge."""
    worse = 0.5 + STRAIN[reading] - 0.6 * HELP[severity, action]
    up, down = 0.30 * np.clip(worse, 0.05, 1.2), 0.30 * np.clip(1 - worse, 0.05, 1.2)
    dying = DYING[severity] * np.exp(1.2 * STRAIN[reading] - 0.9 * HELP[severity, action])
    leaving = LEAVING[severity] * np.clip(1.2 - worse, 0.2, 1.2)
    following = np.zeros(len(SEVERITIES))
    following[min(severity + 1, 3)] += up
    following[max(severity - 1, 0)] += down
    following[severity] += 1 - up - down
    return following * (1 - dying - leaving), float(dying)


def clinicians() -> TabularPolicy:
    """Return who wrote the log: sensible on the whole, generous with vasopressors, and not of one mind."""
    by_severity = np.array(
        [[0.70, 0.22, 0.05, 0.03], [0.30, 0.40, 0.18, 0.12], [0.12, 0.28, 0.32, 0.28], [0.06, 0.14, 0.38, 0.42]]
    )
    return TabularPolicy(np.repeat(by_severity, len(LACTATES), axis=0))


def log(*, patients: int, seed: int) -> Dataset:
    """Log the clinicians' decisions; deaths are what happened, not what was to be expected."""
    mdp = ward()
    rng = np.random.default_rng(seed)
    dataset = mdp.simulate(clinicians(), episodes=patients, max_steps=MAX_HOURS, rng=rng)
    pairs = dataset.states, dataset.actions
    ending = 1 - mdp.transitions.sum(axis=2)
    dying = np.divide(mdp.costs["death"], ending, out=np.zeros_like(ending), where=ending > 0)[pairs]
    died = dataset.terminals & (rng.random(len(dataset)) < dying)
    drugs = {name: dataset.cost(name) for name in ("vasopressor hours", "litres of fluid")}
    return dataset.with_costs({"death": died.astype(float), **drugs})


def write(folder: Path, *, patients: int, seed: int) -> tuple[Path, Path]:
    """Write `icu.csv` and `icu.toml`, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    table, problem = folder / "icu.csv", folder / "icu.toml"
    dataset = log(patients=patients, seed=seed)
    write_atomically(table, lambda file: _write_rows(file, dataset))
    write_atomically(problem, lambda file: file.write(PROBLEM.format(path=table.name).encode()))
    return table, problem


def _write_rows(file: IO[bytes], dataset: Dataset) -> None:
    columns = [
        dataset.episodes,
        dataset.steps,
        np.array(SEVERITIES)[dataset.states // len(LACTATES)],
        np.array(LACTATES)[dataset.states % len(LACTATES)],
        np.array(TREATMENTS)[dataset.actions],
        dataset.cost("litres of fluid"),
        dataset.cost("death").astype(int),
        dataset.terminals.astype(int),
    ]
    lines: list[str] = []
    writer = csv.writer(_Lines(lines), lineterminator="\n")
    writer.writerow(["patient", "hour", "severity", "lactate", "treatment", "litres", "death", "ended"])
    writer.writerows(zip(*columns, strict=True))
    file.write("".join(lines).encode())


class _Lines:
    """A file that keeps its lines."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def write(self, text: str) -> None:
        self.lines.append(text)
