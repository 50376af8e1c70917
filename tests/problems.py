"""Random constrained MDPs and logs, by seed."""

import numpy as np

from checkrein import FQE, FQI, AtMost, Dataset, Problem, Tabular, TabularPolicy
from checkrein_studies.random_cmdps import binding_limits, random_cmdp

__all__ = ["PLAYERS", "binding_limits", "exact_problem", "problem_of", "random_log", "random_mdp", "random_policy"]

PLAYERS = {"best_response": FQI(Tabular()), "evaluator": FQE(Tabular())}


def random_mdp(seed, *, n_constraints=1, **kwargs):
    return random_cmdp(seed, n_constraints=n_constraints, **kwargs)


def exact_problem(mdp, constraints):
    """The problem whose log shows every pair in exact proportion: its solution is the MDP's own."""
    return Problem(mdp.exact_log(), objective="c", constraints=constraints, discount=mdp.discount)


def random_log(seed, *, episodes=60, n_constraints=2, n_states=6, n_actions=3, max_steps=12, ending=0.15):
    mdp = random_mdp(
        seed, n_constraints=n_constraints, n_states=n_states, n_actions=n_actions, successors=3, ending=ending
    )
    uniform = TabularPolicy.uniform(n_states, n_actions)
    return mdp.simulate(uniform, episodes=episodes, max_steps=max_steps, rng=np.random.default_rng(seed))


def random_policy(seed, dataset):
    """A stochastic policy that takes only actions logged in each state."""
    rng = np.random.default_rng(seed)
    table = rng.random((dataset.n_states, dataset.n_actions))
    logged = np.zeros_like(table, dtype=bool)
    logged[dataset.states, dataset.actions] = True
    table = np.where(logged | ~logged.any(axis=1, keepdims=True), table, 0.0)
    return TabularPolicy(table / table.sum(axis=1, keepdims=True))


def problem_of(dataset, *, limits=(1.0, 1.0), discount=0.9):
    constraints = [AtMost(f"g{i}", limit) for i, limit in enumerate(limits)]
    return Problem(dataset, objective="c", constraints=constraints, discount=discount)


def rows_of(dataset, order=None, **changes):
    """The same rows through from_arrays again, in another order or with changes."""
    order = np.arange(len(dataset)) if order is None else order
    optional = {k: getattr(dataset, k) for k in ("episodes", "steps") if getattr(dataset, k) is not None}
    fields = {
        "states": dataset.states[order],
        "actions": dataset.actions[order],
        "next_states": dataset.next_states[order],
        "costs": {name: dataset.cost(name)[order] for name in dataset.cost_names},
        "terminals": dataset.terminals[order],
        "weights": dataset.weights[order],
        "initial_states": dataset.initial_states,
        "initial_weights": dataset.initial_weights,
        "n_actions": dataset.n_actions,
        **({"n_states": dataset.n_states} if dataset.n_states is not None else {}),
        **{k: v[order] for k, v in optional.items()},
    }
    return Dataset.from_arrays(**(fields | changes))


def repeated(dataset, times):
    """Every episode so many times over, under numbers of its own, in clusters that say which are the same."""
    rows = np.tile(np.arange(len(dataset)), times)
    apart = np.repeat(np.arange(times), len(dataset)) * (dataset.episodes.max() + 1)
    extra = {} if dataset.propensities is None else {"propensities": dataset.propensities[rows]}
    return rows_of(
        dataset,
        rows,
        episodes=dataset.episodes[rows] + apart,
        clusters=dataset.episodes[rows],
        initial_states=None,
        initial_weights=None,
        **extra,
    )
