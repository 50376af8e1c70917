"""TabularMDP: finite MDPs solved exactly. The truth that everything learned from logs is compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used
from scipy import sparse

from checkrein.base.arrays import BoolArray, FloatArray, IntArray, frozen, require_counts
from checkrein.base.brief import brief
from checkrein.base.errors import ArgumentError, ProblemError
from checkrein.bellman.termination import require_end
from checkrein.data.dataset import Dataset
from checkrein.policies import TabularPolicy, members_of, probabilities_of
from checkrein.policies.tabular import SUM
from checkrein.problem import AtMost
from checkrein.problem.constraints import column_of, require_distinct
from checkrein.protocols import Policy


class Optimum(NamedTuple):
    """The constrained optimum over all policies, from the linear program over occupancies."""

    values: dict[str, float]  # of every cost of the MDP
    multipliers: dict[str, float]  # the price of each constraint, by its name
    policy: TabularPolicy  # stationary, randomised where a constraint binds
    occupancy: FloatArray  # (S, A) expected discounted visits


@dataclass(frozen=True, eq=False, repr=False)
class TabularMDP:
    """A finite MDP with any number of named costs; what a row of `transitions` lacks to one is termination.

    available: (S, A) which actions exist; by default all.
    """

    transitions: FloatArray  # (S, A, S)
    costs: Mapping[str, FloatArray]  # each (S, A), the expected cost of the step
    initial: FloatArray  # (S,)
    discount: float
    available: BoolArray | None = None

    def __post_init__(self) -> None:
        moves = np.asarray(self.transitions, dtype=np.float64)
        if moves.ndim != 3 or moves.shape[0] != moves.shape[2]:
            raise ArgumentError(f"transitions must have shape (S, A, S), but have {moves.shape}")
        total = moves.sum(axis=2)
        wrong = ~(moves >= 0).all(axis=2) | ~(total <= 1 + SUM)
        if wrong.any():
            state, action = (int(i) for i in np.argwhere(wrong)[0])
            raise ArgumentError(
                f"transitions[{state}, {action}] sum to {total[state, action]}: "
                "probabilities must not be negative and must sum to at most 1 (the rest is termination)"
            )
        start = np.asarray(self.initial, dtype=np.float64)
        if start.shape != moves.shape[:1] or not (start >= 0).all() or abs(start.sum() - 1) > SUM:
            raise ArgumentError(f"initial must be {moves.shape[0]} probabilities that sum to 1, but is {start}")
        if not 0 < self.discount <= 1:
            raise ArgumentError(f"the discount is {self.discount}: it must lie in (0, 1]")
        if not self.costs:
            raise ArgumentError("costs is empty: give at least one named cost")
        tables = {name: np.asarray(table, dtype=np.float64) for name, table in self.costs.items()}
        for name, table in tables.items():
            if table.shape != moves.shape[:2] or not np.isfinite(table).all():
                raise ArgumentError(f"cost {name!r} must be a finite {moves.shape[:2]} table, but is {table.shape}")
        can = np.ones(moves.shape[:2], dtype=bool) if self.available is None else np.asarray(self.available, dtype=bool)
        if can.shape != moves.shape[:2]:
            raise ArgumentError(f"available must have shape {moves.shape[:2]}, but has {can.shape}")
        for name, value in {"transitions": moves, "initial": start, "available": can}.items():
            object.__setattr__(self, name, frozen(value))
        object.__setattr__(self, "costs", {name: frozen(table) for name, table in tables.items()})

    def __repr__(self) -> str:
        return brief(self)

    @property
    def n_states(self) -> int:
        """S."""
        return self.transitions.shape[0]

    @property
    def n_actions(self) -> int:
        """A."""
        return self.transitions.shape[1]

    def values(self, policy: Policy) -> dict[str, float]:
        """Return the expected discounted sum of every cost from the initial states; a mixture's members are weighed."""
        return {name: float(value) for name, value in zip(self.costs, self._start_values(policy), strict=True)}

    def state_values(self, policy: Policy) -> FloatArray:
        """(S, k) the expected discounted sums from each state, of a policy that is not a mixture."""
        table = probabilities_of(policy, np.arange(self.n_states), self.n_actions)
        if self.discount == 1:
            self._require_end(table > 0, "this policy", merge=True)
        chain = np.einsum("sa,sat->st", table, self.transitions)
        immediate_cost = np.stack([(table * cost).sum(axis=1) for cost in self.costs.values()], axis=1)
        return np.linalg.solve(np.eye(self.n_states) - self.discount * chain, immediate_cost)

    def optimum(self, *, objective: str, constraints: Sequence[AtMost] = ()) -> Optimum:
        """Minimise one cost subject to limits on others, over all policies, by the occupancy linear program."""
        limited = [(column_of(c), c) for c in constraints]
        for name in (objective, *(name for name, _ in limited)):
            if name not in self.costs:
                raise ProblemError(f"no cost is called {name!r}: the MDP has {', '.join(self.costs)}")
        require_distinct([c.name for c in constraints])
        usable = np.asarray(self.available)
        if self.discount == 1:
            self._require_end(usable, "a policy", merge=False)
        states, actions = np.nonzero(usable)
        shape = self.n_states, states.size
        leaving = sparse.csr_array((np.ones(states.size), (states, np.arange(states.size))), shape=shape)
        arriving = sparse.csr_array(self.transitions[states, actions].T)
        sums = {name: cost[states, actions] for name, cost in self.costs.items()}
        size = {name: float(np.abs(column).max()) or 1.0 for name, column in sums.items()}
        found = scipy.optimize.linprog(
            sums[objective] / size[objective],
            A_eq=leaving - self.discount * arriving,
            b_eq=self.initial,
            A_ub=np.stack([c.sign * sums[name] / size[name] for name, c in limited]) if limited else None,
            b_ub=np.array([c.sign * c.limit / size[name] for name, c in limited]) if limited else None,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status == 2:
            limits = ", ".join(f"{c.cost} {c.words} {c.limit:g}" for c in constraints)
            raise ProblemError(f"no policy meets the limits together: {limits}")
        if not found.success:
            raise ProblemError(f"the linear program was not solved: {found.message}")
        occupancy = np.zeros(usable.shape)
        occupancy[states, actions] = np.maximum(found.x, 0)
        units = np.array([size[objective] / size[name] for name, _ in limited])
        prices = -found.ineqlin.marginals * units if constraints else np.zeros(0)
        return Optimum(
            values={name: float(occupancy[states, actions] @ column) for name, column in sums.items()},
            multipliers={c.name: float(price) for c, price in zip(constraints, prices, strict=True)},
            policy=TabularPolicy(_conditional(occupancy, usable)),
            occupancy=frozen(occupancy),
        )

    def exact_log(self, count: float = 1000.0) -> Dataset:
        """Return a log in which every available pair occurs `count` times, its outcomes in exact proportion."""
        states, actions, next_states = np.nonzero(self.transitions * np.asarray(self.available)[:, :, None])
        ending = np.maximum(1 - self.transitions.sum(axis=2), 0) * np.asarray(self.available)
        end_states, end_actions = np.nonzero(ending > SUM)
        states_, actions_ = np.append(states, end_states), np.append(actions, end_actions)
        return Dataset.from_arrays(
            states=states_,
            actions=actions_,
            next_states=np.append(next_states, end_states),
            costs={name: table[states_, actions_] for name, table in self.costs.items()},
            terminals=np.repeat([False, True], [states.size, end_states.size]),
            weights=count * np.append(self.transitions[states, actions, next_states], ending[end_states, end_actions]),
            initial_states=np.flatnonzero(self.initial),
            initial_weights=self.initial[self.initial > 0],
            n_actions=self.n_actions,
            n_states=self.n_states,
        )

    def simulate(self, policy: Policy, *, episodes: int, max_steps: int, rng: np.random.Generator) -> Dataset:
        """Log episodes of a policy, all at once; they are cut off (not terminal) after `max_steps`.

        Costs are the expected ones of each step: use `with_costs` for those that depend on where it led.
        A state whose every action terminates at once at no cost is an end in itself: arriving there is terminal.
        """
        require_counts(episodes=episodes, max_steps=max_steps)
        parts = members_of(policy)
        member = rng.choice(len(parts), size=episodes, p=[weight for _, weight in parts])
        tables = np.stack([probabilities_of(p, np.arange(self.n_states), self.n_actions) for p, _ in parts])
        choice, move, start = _Sampler(tables), _Sampler(self.transitions), _Sampler(self.initial)
        silent = ~np.any([table.any(axis=1) for table in self.costs.values()], axis=0)
        final = silent & ~self.transitions.any(axis=(1, 2))
        running = np.arange(episodes)
        state = start.draw(np.zeros(episodes, dtype=np.int64), rng)
        log: list[tuple[IntArray | BoolArray, ...]] = []
        for step in range(max_steps):
            action = choice.draw(member[running] * self.n_states + state, rng)
            following = move.draw(state * self.n_actions + action, rng)
            gone = following == self.n_states
            following[gone] = state[gone]
            ended = gone | final[following]
            log.append((running, np.full(running.size, step), state, action, following, ended))
            running, state = running[~ended], following[~ended]
            if running.size == 0:
                break
        episode, steps, states, actions, next_states, terminals = map(np.concatenate, zip(*log, strict=True))
        order = np.lexsort((steps, episode))
        return Dataset.from_arrays(
            states=states[order],
            actions=actions[order],
            next_states=next_states[order],
            costs={name: table[states[order], actions[order]] for name, table in self.costs.items()},
            terminals=terminals[order],
            episodes=episode[order],
            steps=steps[order],
            propensities=tables[0][states[order], actions[order]] if len(parts) == 1 else None,
            n_actions=self.n_actions,
            n_states=self.n_states,
        )

    def _start_values(self, policy: Policy) -> FloatArray:
        parts = [weight * (self.initial @ self.state_values(member)) for member, weight in members_of(policy)]
        return np.asarray(sum(parts))

    def _require_end(self, taken: BoolArray, who: str, *, merge: bool) -> None:
        """Check that policies end; `merge` treats all taken actions as one, as a randomised policy does."""
        ends = self.transitions.sum(axis=2) < 1 - SUM
        states, actions, next_states = np.nonzero((self.transitions > 0) & taken[:, :, None])
        quits, last = np.nonzero(taken & ends)
        first = np.append(states, quits)
        second = np.append(actions, last) * (0 if merge else 1)
        third = np.append(next_states, quits)
        fourth = np.repeat([False, True], [states.size, quits.size])
        require_end(first, second, third, fourth, n_states=self.n_states, who=who)


def _conditional(occupancy: FloatArray, available: BoolArray) -> FloatArray:
    """Return occupancy / its sum over actions; where a state is never visited, all its available actions alike."""
    of_state = occupancy.sum(axis=1, keepdims=True)
    fallback = np.where(available.any(axis=1, keepdims=True), available, True)
    table = np.where(of_state > 1e-12, occupancy, fallback)
    return table / table.sum(axis=1, keepdims=True)


class _Sampler:
    """Draws columns of a table with the probabilities of given rows; what a row lacks to one is one column more."""

    def __init__(self, table: FloatArray) -> None:
        self.columns = table.shape[-1]
        cumulative = np.cumsum(table.reshape(-1, self.columns), axis=1)
        cumulative[cumulative >= 1 - SUM] = 1.0
        self.steps = (cumulative + np.arange(len(cumulative))[:, None]).ravel()  # ascending over all rows

    def draw(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        return np.searchsorted(self.steps, rows + rng.random(rows.size), side="right") - rows * self.columns
