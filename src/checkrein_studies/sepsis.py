"""ICU-Sepsis (Choudhary et al. 2024): intensive care as an exact MDP, and a log of the clinicians' decisions in it.

716 states and 25 actions, five levels of fluids times five of vasopressors, estimated from the records of real
patients. The matrices are assets of the package `icu-sepsis`, which is read and never imported: it asks for the old
gym.
"""

import importlib.metadata
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from checkrein import AtMost, Dataset, Support, TabularMDP, TabularPolicy
from checkrein.base.arrays import BoolArray, frozen
from checkrein.base.errors import CheckreinError
from checkrein.bellman.termination import endless_states
from checkrein.policies import CountMask
from checkrein.protocols import ActionMask

PACKAGE = "icu-sepsis"
INSTALL = f"pip install --no-deps {PACKAGE}"
DEATH, FLUIDS, VASOPRESSORS = "death", "fluids", "vasopressors"
DRUGS = FLUIDS, VASOPRESSORS
DEAD = 713  # the state; survival and one that nothing leads out of follow it
LEVELS = 5  # of each drug, from nothing, which costs 0, to the most, which costs 1
MAX_STEPS = 500  # of a logged episode, as in the package
DISCOUNT = 1.0


class MissingPackageError(CheckreinError, ImportError):
    """The package that holds the matrices is not installed."""


class Sepsis(NamedTuple):
    """The exact MDP, with costs death, fluids and vasopressors, and who writes the log."""

    mdp: TabularMDP  # what is available is what is admissible: doses that the records show often enough
    clinicians: TabularPolicy  # they take others, too, which lead where the admissible ones do on average


def assets() -> Path:
    """Return the folder of the installed package's matrices, without importing it."""
    try:
        package = importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise MissingPackageError(f"the package {PACKAGE} is not installed: {INSTALL}") from None
    return Path(str(package.locate_file("icu_sepsis/envs/assets")))


@cache
def load() -> Sepsis:
    """Read the installed package's matrices, once."""
    folder = assets()
    with np.load(folder / "dynamics.npz") as arrays:
        transitions, initial, clinicians = (np.array(arrays[name]) for name in ("tx_mat", "d_0", "expert_policy"))
    transitions[DEAD:] = 0.0  # ends
    clinicians[DEAD:] = np.eye(LEVELS**2)[0]
    death = transitions[:, :, DEAD].copy()
    doses = np.stack(np.divmod(np.arange(LEVELS**2), LEVELS)) / (LEVELS - 1)  # (2, A)
    given = doses[:, None, :] * (np.arange(len(initial)) < DEAD)[None, :, None]  # (2, S, A)
    mdp = TabularMDP(
        transitions,
        {DEATH: death, **dict(zip(DRUGS, given, strict=True))},
        initial / initial.sum(),
        DISCOUNT,
        available=_admissible(folder / "admissible_actions.txt", death.shape),
    )
    return Sepsis(mdp, TabularPolicy(clinicians / clinicians.sum(axis=1, keepdims=True)))


def _admissible(path: Path, shape: tuple[int, ...]) -> BoolArray:
    """(S, A), from a line of counts and then a line of actions for each state."""
    table = np.zeros(shape, dtype=bool)
    for state, line in enumerate(path.read_text(encoding="utf-8").splitlines()[1:]):
        table[state, [int(action) for action in line.split()]] = True
    return table


def limits(sepsis: Sepsis, share: float) -> tuple[AtMost, ...]:
    """Allow a share of what the clinicians give in truth, of both drugs."""
    given = sepsis.mdp.values(sepsis.clinicians)
    return tuple(AtMost(drug, share * given[drug]) for drug in DRUGS)


def log(sepsis: Sepsis, *, episodes: int, seed: int) -> Dataset:
    """Log the clinicians' decisions; deaths are what happened, not what was to be expected."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(episodes,)))
    dataset = sepsis.mdp.simulate(sepsis.clinicians, episodes=episodes, max_steps=MAX_STEPS, rng=rng)
    drugs = {drug: dataset.cost(drug) for drug in DRUGS}
    return dataset.with_costs({DEATH: np.where(dataset.next_states == DEAD, 1.0, 0.0), **drugs})


@dataclass(frozen=True)
class Departures(Support):
    """An admissible action is supported where it was often enough seen to lead away from a state.

    Staying says little of where an action leads, and an action that was only seen to stay would never end.
    """

    admissible: BoolArray = field(kw_only=True, compare=False, repr=False)  # (S, A)

    def words(self, *, finite: bool) -> str:  # noqa: ARG002 the states are finite
        """Say the rule."""
        return f"an admissible action must have led away from a state {self.min_count:g} times or more"

    def fit(self, dataset: Dataset) -> ActionMask:
        """Count departures by admissible actions alone."""
        leaves = dataset.terminals | (dataset.next_states != dataset.states)
        return super().fit(dataset.select(leaves & self.admissible[dataset.states, dataset.actions]))


@dataclass(frozen=True)
class Logged(Support):
    """Any action is supported that was logged often enough, without those by which a policy need not end."""

    def fit(self, dataset: Dataset) -> ActionMask:
        """Count; where a policy could circle for ever, keep only what leads out, or nearer to where it does."""
        n_states = int(dataset.n_states or 0)
        allowed = super().fit(dataset).allowed(np.arange(n_states))
        rows = dataset.select(allowed[dataset.states, dataset.actions])
        ending = np.ones(n_states, dtype=bool)
        ending[endless_states(rows.states, rows.actions, rows.next_states, rows.terminals, n_states=n_states)] = False
        kept = allowed & ending[:, None]
        while (nearer := ~ending[rows.states] & (rows.terminals | ending[rows.next_states])).any():
            kept[rows.states[nearer], rows.actions[nearer]] = True
            ending[rows.states[nearer]] = True
        return CountMask(frozen(kept))
