"""Logs whose states are enough, or lack something; worlds that stay as they are, or change half way."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from checkrein import AtMost, Dataset, Problem, TabularMDP, TabularPolicy
from checkrein_studies import frozen_lake, graph, icu, random_cmdps, sepsis

Array = np.ndarray


def seen(log: Dataset, names: Array) -> Dataset:
    """Return a log in which state s is called names[s]."""
    of = np.asarray(names)
    states = {key: of[getattr(log, key)] for key in ("states", "next_states", "initial_states")}
    return replace(log, **states, n_states=int(of.max()) + 1, propensities=None)


def one_after_another(logs: Sequence[Dataset]) -> Dataset:
    """Return the episodes of several logs of the same states, numbered one log after another."""
    offsets = np.cumsum([0, *(int(log.episodes.max()) + 1 for log in logs)])
    return Dataset.from_arrays(
        **{
            name: np.concatenate([getattr(log, name) for log in logs])
            for name in ("states", "actions", "next_states", "terminals", "steps")
        },
        costs={name: np.concatenate([log.cost(name) for log in logs]) for name in logs[0].cost_names},
        episodes=np.concatenate([log.episodes + offset for log, offset in zip(logs, offsets[:-1], strict=True)]),
        n_actions=logs[0].n_actions,
        n_states=logs[0].n_states,
    )


def shuffled(log: Dataset, rng: np.random.Generator) -> Dataset:
    """Return the episodes under other numbers."""
    return replace(log, episodes=rng.permutation(int(log.episodes.max()) + 1)[log.episodes])


def cmdp(seed: int, episodes: int, *, merged: int = 1, n_states: int = 20, ending: float = 0.1) -> Problem:
    """Random moves, a cost that is drawn; `merged` states at a time cannot be told apart."""
    rng = np.random.default_rng([seed, 5])
    mdp = random_cmdps.random_cmdp(seed, n_constraints=1, n_states=n_states, ending=ending)
    behavior = np.tile(rng.dirichlet(np.ones(4), -(-n_states // merged)), (1, merged)).reshape(-1, 4)[:n_states]
    log = mdp.simulate(TabularPolicy(behavior), episodes=episodes, max_steps=100, rng=rng)
    log = log.with_costs({"c": log.cost("c"), "g0": 1.0 * (rng.random(len(log)) < log.cost("g0"))})
    log = log if merged == 1 else seen(log, np.arange(n_states) // merged)
    return Problem(log, objective="c", constraints=[AtMost("g0", 3.0)], discount=0.95)


@cache
def windy(lasting: float) -> tuple[TabularMDP, TabularPolicy]:
    """FrozenLake that slips to the same side as before with probability `lasting`, else to any, as it does at 0."""
    still, letters = np.asarray(frozen_lake.lake(slippery=False).transitions), np.tile(frozen_lake.tiles(), 3)
    moves = np.zeros((3, 64, 4, 3, 64))
    for before, side in np.ndindex(3, 3):
        likely = (1 - lasting) / 3 + lasting * (before == side)
        for action in range(4):
            moves[before, :, action, side] += likely * still[:, (action + side - 1) % 4]
    moves = moves.reshape(192, 4, 192)
    costs = {name: moves[:, :, letters == letter].sum(axis=2) for name, letter in (("goal", "G"), ("hole", "H"))}
    start = np.zeros(192)
    start[::64] = 1 / 3
    slippery = frozen_lake.lake()
    table = np.tile(frozen_lake.behavior(slippery).table, (3, 1))
    return TabularMDP(moves, costs, start, slippery.discount), TabularPolicy(table)


def lake(seed: int, episodes: int, *, lasting: float = 0.0, skill: float = 0.5) -> Problem:
    """Log FrozenLake; the side of the last slip is hidden, and behavior may be less skilled from half way on."""
    mdp, behavior = windy(lasting)
    uniform = TabularPolicy(np.full((192, 4), 0.25))
    later = TabularPolicy(skill / 0.5 * behavior.table + (1 - skill / 0.5) * uniform.table)
    rng = np.random.default_rng([seed, 6])
    halves = [mdp.simulate(who, episodes=episodes // 2, max_steps=200, rng=rng) for who in (behavior, later)]
    log, letters = seen(one_after_another(halves), np.arange(192) % 64), frozen_lake.tiles()
    arrived = letters[log.next_states]
    log = log.with_costs({"goal": -1.0 * (arrived == "G"), "hole": 1.0 * (arrived == "H")})
    return Problem(log, objective="goal", constraints=[AtMost("hole", 0.3)], discount=mdp.discount)


def machine(
    seed: int, episodes: int, *, gap: float = 0.0, lasting: float = 0.95, later: float = 1.0, rate: float = 0.2
) -> Problem:
    """Eight loads; from the fourth on a step does harm with probability `rate`, more or less by a hidden mode.

    gap: what the mode adds or takes; later: what the rate is multiplied by from half way on
    """
    rng, n = np.random.default_rng([seed, 7]), 8
    moves = np.zeros((2, n, 2, 2, n))
    for mode, load, action, after in np.ndindex(2, n, 2, 2):
        stays, up = lasting if mode == after else 1 - lasting, 0.4 + 0.15 * action
        moves[mode, load, action, after, min(load + 1, n - 1)] += 0.95 * stays * up
        moves[mode, load, action, after, max(load - 1, 0)] += 0.95 * stays * (1 - up)
    harm = np.zeros((2, n, 2))
    harm[0, 3:], harm[1, 3:] = (rate - gap) * np.array([1.0, 0.5]), (rate + gap) * np.array([1.0, 0.5])
    costs = {"pay": np.tile([0.0, 1.0], (2 * n, 1)), "harm": harm.reshape(2 * n, 2)}
    start = np.zeros(2 * n)
    start[[2, n + 2]] = 0.5
    mdp = TabularMDP(moves.reshape(2 * n, 2, 2 * n), costs, start, 0.97)
    log = mdp.simulate(TabularPolicy(np.full((2 * n, 2), 0.5)), episodes=episodes, max_steps=100, rng=rng)
    factor = np.where(log.episodes < episodes // 2, 1.0, later)
    log = log.with_costs({"pay": log.cost("pay"), "harm": 1.0 * (rng.random(len(log)) < factor * log.cost("harm"))})
    return Problem(seen(log, np.arange(2 * n) % n), objective="pay", constraints=[AtMost("harm", 1.0)], discount=0.97)


def ward(seed: int, episodes: int, *, later: float = 1.0) -> Problem:
    """Log the intensive-care table; from half way on, some who would have been discharged die."""
    log, rng = icu.log(patients=episodes, seed=seed), np.random.default_rng([seed, 8])
    more = log.terminals & (log.episodes >= episodes // 2) & (rng.random(len(log)) < later - 1)
    costs = {name: log.cost(name) for name in log.cost_names}
    log = log.with_costs(costs | {"death": np.maximum(costs["death"], more)})
    limits = [AtMost("death", 0.3), AtMost("litres of fluid", 2.5)]
    return Problem(log, objective="vasopressor hours", constraints=limits, discount=1.0)


@cache
def tilted(hidden: float) -> tuple[tuple[TabularMDP, TabularMDP], TabularPolicy]:
    """ICU-Sepsis for patients whose odds of states from which more die are exp(hidden x) as large, or as small."""
    mdp, clinicians = sepsis.load()
    moves, ends = np.asarray(mdp.transitions), np.arange(mdp.n_states) >= sepsis.DEAD
    dying = 1.0 * (np.arange(mdp.n_states) == sepsis.DEAD)
    chain = np.einsum("sa,sat->st", clinicians.table, moves)
    for _ in range(1000):
        dying = np.where(ends, dying, chain @ dying)
    kinds = []
    for sign in (1, -1):
        odds = moves * np.exp(sign * hidden * dying)
        total = odds.sum(axis=2, keepdims=True)
        odds = np.divide(odds, total, out=np.zeros_like(odds), where=total > 0)
        kinds.append(TabularMDP(odds, mdp.costs, mdp.initial, 1.0))
    return (kinds[0], kinds[1]), clinicians


def icu_sepsis(seed: int, episodes: int, *, hidden: float = 0.0, ordered: bool = False) -> Problem:
    """ICU-Sepsis, of two kinds of patients that nobody can tell apart; ordered: one kind comes after the other."""
    kinds, clinicians = tilted(hidden)
    rng = np.random.default_rng([seed, 9])
    log = one_after_another(
        [kind.simulate(clinicians, episodes=episodes // 2, max_steps=100, rng=rng) for kind in reversed(kinds)]
    )
    log = log if ordered else shuffled(log, rng)
    drugs = {name: log.cost(name) for name in sepsis.DRUGS}
    log = log.with_costs({"death": 1.0 * (log.next_states == sepsis.DEAD), **drugs})
    return Problem(
        log, objective=sepsis.FLUIDS, constraints=[AtMost("death", 0.2), AtMost(sepsis.VASOPRESSORS, 3.0)], discount=1.0
    )


def goals(seed: int, episodes: int) -> Problem:
    """Log the random MDPs of `coverage.py`."""
    mdp = random_cmdps.goal_cmdp(seed)
    rng = np.random.default_rng(seed)
    log = mdp.simulate(random_cmdps.skilled_behavior(mdp, 0.1), episodes=episodes, max_steps=50, rng=rng)
    return Problem(log, objective="loss", constraints=[AtMost("cost", 0.1)], discount=mdp.discount)


def walk(seed: int, episodes: int, *, horizon: int, slip: float) -> Problem:
    """Log the Graph of `coverage.py`."""
    mdp = graph.graph(horizon, slip=slip)
    log = graph.log(mdp, graph.constant_policy(mdp, 0.5), episodes=episodes, rng=np.random.default_rng(seed))
    return Problem(log, objective=None, constraints=[AtMost("reward", 1.0)], discount=mdp.discount)
