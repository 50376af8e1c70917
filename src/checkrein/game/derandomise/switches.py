"""What every change of a deterministic policy in a single state is worth, all at once and exactly."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from checkrein.base.arrays import BoolArray, FloatArray, IntArray
from checkrein.bellman.targets import design_of, dynamics_of
from checkrein.functions.tabular import Tabular, TabularDesign, TabularDynamics
from checkrein.policies import TabularPolicy, one_hot
from checkrein.problem import Problem
from checkrein.protocols import ActionMask

ENDLESS = 1e-12  # of the expected visits: a switch that leaves less chance of ending would circle for ever


@dataclass(frozen=True, eq=False)
class EmpiricalMDP:
    """The empirical MDP of a problem over finite states; what has no evidence ends, at the worst that may come."""

    costs: FloatArray  # (S, A, k) signed, the objective first
    pairs: IntArray  # (entries,) the state and the action that a move is from
    following: IntArray  # (entries,) the state that it leads to
    moves: FloatArray  # (entries,) its probability times the continuation
    initial: FloatArray  # (S,)

    @classmethod
    def of(cls, problem: Problem, evidence: ActionMask, candidates: BoolArray) -> "EmpiricalMDP":
        """Gather it from a problem's transitions.

        candidates: (S, A) the actions that will be asked for: costs of the policy itself are those of taking them
        """
        n_states, n_actions = candidates.shape
        design = cast(TabularDesign, design_of(problem, Tabular()))
        dynamics = cast(TabularDynamics, dynamics_of(problem, Tabular(), "the search over deterministic policies"))
        allowed = evidence.allowed(np.arange(n_states)) & candidates
        costs = design.mean(_costs(problem, candidates), n_states).reshape(n_states, n_actions, -1)
        costs[~allowed] = problem.worst_after(_preferring(0, candidates))
        for action in range(n_actions if problem.known_costs else 0):
            for i, steps in problem.known_steps(_preferring(action, candidates), np.arange(n_states)):
                later = np.where(allowed[:, action], 0.0, costs[:, action, i])
                costs[:, action, i] = np.where(candidates[:, action], steps[:, action] + later, 0.0)
        pairs, following = dynamics.entries.coords
        kept = allowed.ravel()[pairs]
        rows = problem.transitions
        initial = np.bincount(rows.initial_states, rows.initial_weights, n_states)
        return cls(costs, pairs[kept], following[kept], dynamics.entries.data[kept], initial / initial.sum())

    def moves_of(self, actions: IntArray) -> FloatArray:
        """(S, S) where a deterministic policy leads."""
        n_states, n_actions, _ = self.costs.shape
        states = self.pairs // n_actions
        taken = self.pairs == states * n_actions + actions[states]
        where = states[taken] * n_states + self.following[taken]
        flow = np.bincount(where, self.moves[taken], n_states * n_states)
        return np.asarray(flow.reshape(n_states, n_states), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Switches:
    """A deterministic policy, its values, and those of all policies that differ from it in one state.

    Taking another action in state s changes one row of I - P. By Sherman and Morrison, the values change by the
    expected visits to s, times the advantage of the action, over how often s is visited from s itself with the old
    action less how often it would be with the new.
    """

    model: EmpiricalMDP
    actions: IntArray  # (S,)
    visits: FloatArray  # (S, S) the inverse of I - P: expected (discounted) visits to each state, from each

    @classmethod
    def of(cls, model: EmpiricalMDP, actions: IntArray) -> "Switches":
        """Solve for the visits; raises LinAlgError where the policy circles for ever."""
        visits = np.linalg.inv(np.eye(len(actions)) - model.moves_of(actions))
        return cls(model, actions, np.asarray(visits, dtype=np.float64))

    @cached_property
    def state_values(self) -> FloatArray:
        """(S, k) of the policy."""
        return self.visits @ self.model.costs[np.arange(len(self.actions)), self.actions]

    @cached_property
    def values(self) -> FloatArray:
        """(k,) of the policy, from the initial states."""
        return self.model.initial @ self.state_values

    @cached_property
    def returns(self) -> FloatArray:
        """(S, A) how much more often a state is visited from itself by the policy than after another action there."""
        n_states, n_actions, _ = self.model.costs.shape
        back = self.model.moves * self.visits[self.model.following, self.model.pairs // n_actions]
        again = np.bincount(self.model.pairs, back, n_states * n_actions).reshape(n_states, n_actions)
        return np.diag(self.visits)[:, None] - again

    def all_values(self) -> FloatArray:
        """(S, A, k) of each policy that takes that action in that state; infinite where it would circle for ever."""
        model, (n_states, n_actions, k) = self.model, self.model.costs.shape
        ahead = np.stack(
            [
                np.bincount(model.pairs, model.moves * self.state_values[model.following, i], n_states * n_actions)
                for i in range(k)
            ],
            axis=1,
        )
        advantage = model.costs + ahead.reshape(n_states, n_actions, k) - self.state_values[:, None]
        visited = model.initial @ self.visits
        ends = self.returns > ENDLESS * np.diag(self.visits)[:, None]
        scale = np.divide(visited[:, None], self.returns, out=np.full(ends.shape, np.inf), where=ends)
        with np.errstate(invalid="ignore"):
            changed = self.values + scale[..., None] * advantage
        return np.where(ends[..., None], changed, np.inf)

    def switched(self, state: int, action: int) -> "Switches":
        """Return the policy that takes another action in one state."""
        model, n_actions = self.model, self.model.costs.shape[1]
        mine = model.pairs == state * n_actions + action
        changed = model.moves[mine] @ self.visits[model.following[mine]] - self.visits[state]
        changed[state] += 1.0  # the old action's visits after its step are the visits without the state itself
        update = np.outer(self.visits[:, state], changed / self.returns[state, action])
        actions = self.actions.copy()
        actions[state] = action
        return Switches(model, actions, self.visits + update)


def _costs(problem: Problem, candidates: BoolArray) -> FloatArray:
    """(n, k) what each row costs who takes its action: costs of the policy itself are asked for, action by action."""
    if not problem.policy_costs:
        return problem.row_costs
    actions = problem.transitions.actions
    table = np.array(problem.row_costs)
    for action in range(candidates.shape[1]):
        costs = problem.costs(_preferring(action, candidates))
        table[actions == action] = costs[actions == action]
    return table


def _preferring(action: int, candidates: BoolArray) -> TabularPolicy:
    """Return who takes an action wherever it is a candidate, and elsewhere the first that is."""
    preferred = candidates.astype(np.float64)
    preferred[:, action] *= 2.0
    return TabularPolicy(one_hot(preferred))
