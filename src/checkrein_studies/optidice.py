"""Constrained OptiDICE with tables (Lee et al. 2022): much reward, little cost, not far from what was logged.

The occupancy d of a policy is chosen to maximise E_d[reward] - alpha E_data[(d / data - 1)^2] / 2, E_d[cost] being at
most a limit. Termination is a state of its own here, the last, so that the divergence counts it like any other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray
from checkrein.policies import TabularPolicy
from checkrein.protocols import Policy
from checkrein.tabular_mdp import TabularMDP

FAINT = 1e-6  # occupancy that every pair has at least, before it is normalised
NEVER = 1e-10  # occupancy of a pair that the solution does not visit
HIGHEST = 10.0  # price of the cost that a conservative solution may come to
HALVINGS = 15  # of the interval that contains it
FLAT = 1e-9  # slope of the dual at its minimum
RIDGE = 1e-12  # of a Newton step, as a share of the trace
SHARES = 0.5 ** np.arange(12)  # of a Newton step that may be taken


@dataclass(frozen=True, eq=False)
class Model:
    """A finite MDP whose last state is termination, with rewards and costs that average over time."""

    transitions: FloatArray  # (S, A, S)
    rewards: FloatArray  # (S, A)
    costs: FloatArray  # (S, A)
    discount: float

    @classmethod
    def of(cls, mdp: TabularMDP, moves: FloatArray | None = None) -> Self:
        """Return the model of an MDP with costs `loss` and `cost`, episodes beginning in state 0.

        moves: (S, A, S) transitions other than its own
        """
        size, n_actions = mdp.n_states + 1, mdp.n_actions
        transitions, rewards, costs = np.zeros((size, n_actions, size)), *np.zeros((2, size, n_actions))
        transitions[:-1, :, :-1] = mdp.transitions if moves is None else moves
        ending = 1 - transitions.sum(axis=2)
        transitions[:, :, -1] += np.where(ending > 1e-12, ending, 0.0)
        rewards[:-1], costs[:-1] = -mdp.costs["loss"] / (1 - mdp.discount), mdp.costs["cost"] / (1 - mdp.discount)
        return cls(transitions, rewards, costs, mdp.discount)

    @cached_property
    def flow(self) -> FloatArray:
        """(S, S A) what each pair takes from its own state and brings to the next."""
        size, n_actions, _ = self.transitions.shape
        leaving = np.repeat(np.eye(size), n_actions, axis=0)
        return np.asarray((leaving - self.discount * self.transitions.reshape(-1, size)).T)

    @cached_property
    def begins(self) -> FloatArray:
        """(S,) what flows in from outside."""
        return (1 - self.discount) * np.eye(len(self.transitions))[0]

    def occupancy(self, policy: Policy) -> FloatArray:
        """(S A,) the share of time that a policy spends in each pair."""
        size, n_actions, _ = self.transitions.shape
        table = np.full((size, n_actions), 1 / n_actions)
        table[:-1] = policy.probabilities(np.arange(size - 1))
        chain = np.einsum("sa,sat->st", table, self.transitions)
        occupancy = np.linalg.solve(np.eye(size) - self.discount * chain.T, self.begins)
        return np.asarray((occupancy[:, None] * table).ravel())

    def logged(self, behavior: Policy) -> FloatArray:
        """(S A,) the occupancy of behavior, nowhere zero."""
        data = self.occupancy(behavior) + FAINT
        return np.asarray(data / data.sum())

    def policy(self, occupancy: FloatArray) -> TabularPolicy:
        """Return the policy that an occupancy (S A,) belongs to."""
        table = occupancy.reshape(self.rewards.shape)[:-1] + NEVER
        return TabularPolicy(table / table.sum(axis=1, keepdims=True))


def chi_square(model: Model, behavior: Policy, *, alpha: float, limit: float) -> TabularPolicy:
    """Maximise reward less alpha times the halved chi-square divergence from behavior, the cost at most a limit."""
    data, paid = model.logged(behavior), model.costs.ravel()
    free = _Dual(model.flow, model.rewards.ravel(), data, model.begins)
    values = free.minimum(alpha)
    ratios = free.ratios(values, alpha)
    if ratios @ (data * paid) > limit:
        bound = _Dual(np.vstack([model.flow, paid]), free.gained, data, np.append(model.begins, limit))
        ratios = bound.ratios(bound.minimum(alpha, np.append(values, 0.0)), alpha)
    return model.policy(ratios * data)


def conservative(model: Model, behavior: Policy, *, alpha: float, limit: float, radius: float) -> TabularPolicy:
    """Do the same with the limit on the worst cost under distributions near the logged one.

    radius: of the Kullback-Leibler ball around the logged transitions
    """
    data, low, high = model.logged(behavior), 0.0, HIGHEST

    def priced(price: float) -> FloatArray:
        dual = _Dual(model.flow, (model.rewards - price * model.costs).ravel(), data, model.begins)
        return dual.ratios(dual.minimum(alpha), alpha)

    at = np.append(0.0, np.ones(len(model.begins)))
    for _ in range(HALVINGS):
        price = (low + high) / 2
        worst, at = worst_cost(model, priced(price), data, radius, at)
        low, high = (price, high) if worst > limit else (low, price)
    return model.policy(priced(high) * data)


def worst_cost(
    model: Model, ratios: FloatArray, data: FloatArray, radius: float, at: FloatArray
) -> tuple[float, FloatArray]:
    """Return the highest cost of an occupancy data * ratios where transitions are distributed a little differently.

    ratios, data: (S A,)
    at: (1 + S,) where to begin: the logarithm of the ball's price, and the worst values of the states
    """
    size, n_actions, _ = model.transitions.shape
    moves = model.transitions.reshape(-1, size)
    pair, after = np.nonzero(moves)
    before, weight, paid = pair // n_actions, ratios[pair], model.costs.ravel()[pair]
    probabilities = np.log(data[pair] * moves[pair, after])

    def loss(variables: FloatArray) -> tuple[float, FloatArray]:
        price, x = np.exp(variables[0]), variables[1:]
        sums = (1 - model.discount) * x[0] + weight * (paid + model.discount * x[after] - x[before])
        powers = probabilities + sums / price
        share = np.exp(powers - powers.max())
        bounded = price * float(powers.max() + np.log(share.sum()) + radius)
        share /= share.sum()
        slope = np.bincount(after, model.discount * share * weight, size) - np.bincount(before, share * weight, size)
        slope[0] += 1 - model.discount
        return bounded, np.append(bounded - share @ sums, slope)

    found = scipy.optimize.minimize(
        loss, at, jac=True, method="L-BFGS-B", options={"maxiter": 3000, "ftol": 1e-12, "gtol": 1e-9}
    )
    return float(found.fun), np.asarray(found.x)


@dataclass(frozen=True, eq=False)
class _Dual:
    """Convex, piecewise quadratic: ends @ x + E_data[max over w >= 0 of w (gained - x @ rows) - alpha (w - 1)^2 / 2].

    Its minimum x are state values, and with a row of costs the price of the limit; w are ratios of occupancies.
    """

    rows: FloatArray  # (k, S A)
    gained: FloatArray  # (S A,)
    data: FloatArray  # (S A,)
    ends: FloatArray  # (k,)

    def ratios(self, x: FloatArray, alpha: float) -> FloatArray:
        """(S A,) the best w: of the occupancy to the data's."""
        return np.maximum(1 + (self.gained - x @ self.rows) / alpha, 0.0)

    def minimum(self, alpha: float, x: FloatArray | None = None) -> FloatArray:
        """(k,) the minimum, by way of smoother problems."""
        x = np.zeros(len(self.ends)) if x is None else x
        smooth = max(alpha, 1.0)
        while smooth > alpha:
            x = self._newton(smooth, x)
            smooth /= 3
        return self._newton(alpha, x)

    def _value(self, x: FloatArray, alpha: float) -> float:
        ratios = self.ratios(x, alpha)
        sums = ratios * (self.gained - x @ self.rows) - alpha * (ratios - 1) ** 2 / 2
        return float(self.ends @ x + self.data @ sums)

    def _newton(self, alpha: float, x: FloatArray) -> FloatArray:
        now, ridge = self._value(x, alpha), RIDGE
        for _ in range(1000):
            ratios = self.ratios(x, alpha)
            slope = self.ends - self.rows @ (self.data * ratios)
            if np.abs(slope).max() < FLAT or ridge > 1 / RIDGE:
                break
            active = self.rows[:, ratios > 0]
            bend = (active * (self.data[ratios > 0] / alpha)) @ active.T
            step = np.linalg.solve(bend + ridge * np.trace(bend) * np.eye(len(bend)), slope)
            falls = (h for h in SHARES if self._value(x - h * step, alpha) < now - 1e-4 * h * (slope @ step))
            share = next(falls, 0.0)
            x, ridge = x - share * step, max(ridge / 10, RIDGE) if share else ridge * 10
            now = self._value(x, alpha)
        return x
