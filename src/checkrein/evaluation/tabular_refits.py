"""Refits of tables: counts of distinct transitions by episode, and the chain that a policy makes of them."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse  # its parts are loaded when first used

from checkrein.base.arrays import FloatArray, IntArray
from checkrein.base.chain import SparseChain
from checkrein.bellman.termination import GIVEN_UP, circle_apart
from checkrein.evaluation.starts import Starts
from checkrein.policies import Supported, probabilities_of
from checkrein.problem import Episodes, Problem
from checkrein.protocols import ActionMask, Policy

DENSE_STATES = 800  # up to here all replicates together are factorised faster than each is solved for by iteration


class Occupancy(NamedTuple):
    """The pairs that a policy comes to: expected discounted visits, and how often each was logged (0: no evidence).

    Of a cluster, a pair counts as often as one of its episodes shows it: the others may only repeat that.
    """

    states: IntArray
    actions: IntArray
    occupancy: FloatArray
    counts: FloatArray

    def share(self, below: float) -> float:
        """Return the share of visits to pairs logged less often than that."""
        total = self.occupancy.sum()
        return float(self.occupancy[self.counts < below].sum() / total) if total > 0 else 1.0


class TabularRefit:
    """A table: counts of distinct transitions by episode, and the chain that the policy makes of them."""

    def __init__(self, problem: Problem, policy: Policy, evidence: ActionMask) -> None:
        episodes = Episodes.of(problem)
        counted = episodes.weights[episodes.episode] > 0
        known = np.flatnonzero((episodes.terminals | episodes.next_observed) & counted)
        states, actions = episodes.states[known], episodes.actions[known]
        following = np.where(episodes.terminals[known], -1, episodes.next_states[known])
        self.starts = Starts(problem, episodes)
        n_states, n_actions = int(problem.dataset.n_states or 0), problem.dataset.n_actions
        every_state, row_costs = np.arange(n_states), episodes.costs(policy)
        probabilities = probabilities_of(policy, every_state, n_actions)
        logged = np.zeros((n_states, n_actions), dtype=bool)
        logged[states, actions] = True
        split = Supported.split(probabilities, logged & evidence.allowed(every_state))
        if problem.discount == 1:
            _give_up_circles(split, states, actions, following, self.starts.states)
        supported = split.probabilities
        taken = supported[states, actions] > 0
        place, reached = _reachable(self.starts.states, states[taken], following[taken], n_states)
        used = np.flatnonzero(taken & (place[states] >= 0))
        pairs, pair = np.unique(states[used] * n_actions + actions[used], return_inverse=True)
        moves, move = np.unique(pair * (n_states + 1) + following[used] + 1, return_inverse=True)
        episode, self.episodes = episodes.episode[known][used], episodes
        e, self.k = len(episodes), episodes.n_values
        self.move_counts = _matrix(np.ones(used.size), episode, move, (e, moves.size))
        costs = row_costs[known][used]
        self.cost = np.zeros((moves.size, self.k))
        self.cost[move] = costs  # of one row of each move; what others paid beyond that is kept by episode
        self._keep_beyond((costs - self.cost[move]).T, episode, pair, (e, pairs.size))
        self.state = place[pairs // n_actions]  # (pairs,)
        self.probabilities = supported.ravel()[pairs]
        self.move_pair = moves // (n_states + 1)
        after = moves % (n_states + 1) - 1
        self.next = np.where(after >= 0, place[after], 0)
        self.continuation = np.where(after >= 0, problem.discount, 0.0)
        there = Supported(supported[reached], split.unsupported[reached])
        self.unsupported = there.at_worst(problem, policy, reached)  # (S, k)
        self.start = place[self.starts.states]
        self.n_states = reached.size
        self.size = self.k * (e + 3 * moves.size)
        source, amounts = self.state[self.move_pair], self.probabilities[self.move_pair] * self.continuation
        few = self.n_states <= DENSE_STATES
        self.chains: _Chains = (_DenseChains if few else _SparseChains)(source, self.next, amounts, self.n_states)
        self.size += self.n_states**2 if few else self.n_states
        self.by_start = _indicator(self.start, self.n_states)
        self.by_state = _indicator(self.state, self.n_states)
        self.by_pair = _indicator(self.move_pair, pairs.size)
        self.pairs, self.n_actions = pairs, n_actions
        self.reached, self.unsupported_mass = (
            reached,
            np.where(supported[reached] > 0, 0.0, probabilities[reached]),
        )  # (S, A) no evidence

    def _keep_beyond(self, beyond: FloatArray, episode: IntArray, pair: IntArray, shape: tuple[int, int]) -> None:
        """Keep what rows (k, n) paid beyond their move's cost, of those costs of which there is any."""
        self.varying = np.flatnonzero(beyond.any(axis=1))
        parts = [_matrix(column, episode, pair, shape) for column in beyond[self.varying]]
        self.beyond = _stacked(parts, shape[1])  # (varying * e, pairs)
        self.beyond_of_pairs = _stacked([part.T.tocsr() for part in parts], shape[0])  # (varying * pairs, e)

    def occupancy(self, weights: FloatArray) -> Occupancy:
        """Return where the policy goes in the log as it is, and how often that was seen."""
        moves = self.move_counts.T @ weights
        pairs = self.by_pair @ moves
        shares = moves / pairs[self.move_pair]
        states = self.chains.occupancy(shares, self._initial_distribution(weights[None])[0])
        place, action = np.nonzero(self.unsupported_mass)
        return Occupancy(
            states=np.append(self.pairs // self.n_actions, self.reached[place]),
            actions=np.append(self.pairs % self.n_actions, action),
            occupancy=np.append(
                states[self.state] * self.probabilities, states[place] * self.unsupported_mass[place, action]
            ),
            counts=np.append(self._independent(pairs, weights), np.zeros(place.size)),
        )

    def _independent(self, pairs: FloatArray, weights: FloatArray) -> FloatArray:
        """(pairs,) how often each was logged, of every cluster by the episode that shows it most often."""
        if self.episodes.n_units == len(self.episodes):
            return pairs
        shown = (self.move_counts @ self.by_pair.T).tocoo()  # (e, pairs)
        cells, place = np.unique(self.episodes.unit[shown.row] * pairs.size + shown.col, return_inverse=True)
        most = np.zeros(cells.size)
        np.maximum.at(most, place, weights[shown.row] * shown.data)
        return np.asarray(np.bincount(cells % pairs.size, most, pairs.size), np.float64)

    def refit(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve V = c + P V of every replicate, and follow its visits back to the episodes."""
        moves = self.move_counts.T @ weights.T  # (moves, B) occurrences
        pairs = self.by_pair @ moves
        shares = moves / pairs[self.move_pair]
        immediate = self._immediate_costs(moves, weights) / pairs[:, None]  # (pairs, k, B)
        by_state = _times(self.by_state, self.probabilities[:, None, None] * immediate)
        immediate_cost = np.ascontiguousarray(by_state.transpose(2, 0, 1))  # (B, S, k)
        initial = self._initial_distribution(weights)
        values, occupancy = self.chains.solved(shares, immediate_cost + self.unsupported, initial)
        at_start = values[:, self.start]
        value = np.einsum("bs,bsk->bk", initial, values)
        ratio = (
            occupancy[:, self.state] * self.probabilities * weights.sum(axis=1, keepdims=True)
        ).T / pairs  # (pairs, B)
        ahead = self.continuation[:, None, None] * values[:, self.next].transpose(1, 2, 0)  # (moves, k, B)
        q = immediate + _times(self.by_pair, shares[:, None] * ahead)
        td_error = self.cost[:, :, None] + ahead - q[self.move_pair]
        found = _times(self.move_counts, ratio[self.move_pair][:, None] * td_error)  # (e, k, B)
        self._add_beyond(found, self.beyond, ratio)
        influence = np.ascontiguousarray(found.transpose(2, 0, 1))
        return value, influence + self.starts.influence(at_start, value)

    def _initial_distribution(self, weights: FloatArray) -> FloatArray:
        """(B, S) how likely an episode begins in each state."""
        return np.asarray((self.by_start @ self.starts.initial_distribution(weights).T).T)

    def _immediate_costs(self, moves: FloatArray, weights: FloatArray) -> FloatArray:
        """(pairs, k, B) costs, summed over the rows of each pair."""
        found = _times(self.by_pair, self.cost[:, :, None] * moves[:, None])
        self._add_beyond(found, self.beyond_of_pairs, weights.T)
        return found

    def _add_beyond(self, found: FloatArray, stacked: sparse.csr_array, amounts: FloatArray) -> None:
        """Add to (n, k, B) what rows paid beyond their move's cost; stacked: (varying * n, m), cost after cost."""
        if self.varying.size:
            each = (stacked @ amounts).reshape(self.varying.size, len(found), amounts.shape[1])
            found[:, self.varying] += each.transpose(1, 0, 2)


class _Chains(Protocol):
    """The chains that a policy makes of states, under any shares (moves,) of a pair's moves in the pair."""

    def occupancy(self, shares: FloatArray, initial: FloatArray) -> FloatArray:
        """(S,) visits, where episodes begin so (S,)."""
        ...

    def solved(self, shares: FloatArray, costs: FloatArray, initial: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values (B, S, k) and visits (B, S) of costs (B, S, k) and beginnings (B, S), by shares (moves, B)."""
        ...


class _DenseChains:
    """Few states: all replicates are factorised at once."""

    def __init__(self, source: IntArray, target: IntArray, amounts: FloatArray, n_states: int) -> None:
        self.n_states, moves = n_states, np.arange(source.size)
        self.chain = sparse.csr_array((amounts, (source * n_states + target, moves)), shape=(n_states**2, source.size))

    def occupancy(self, shares: FloatArray, initial: FloatArray) -> FloatArray:
        """(S,)."""
        system = np.eye(self.n_states) - (self.chain @ shares).reshape(self.n_states, self.n_states)
        return np.asarray(np.linalg.solve(system.T, initial), np.float64)

    def solved(self, shares: FloatArray, costs: FloatArray, initial: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(B, S, k) and (B, S)."""
        system = np.eye(self.n_states) - (self.chain @ shares).T.reshape(-1, self.n_states, self.n_states)
        values = np.linalg.solve(system, costs)
        return values, np.linalg.solve(np.swapaxes(system, 1, 2), initial[:, :, None])[:, :, 0]


@dataclass(frozen=True, eq=False)
class _SparseChains:
    """Many states: one replicate after another, by iteration."""

    source: IntArray  # (moves,)
    target: IntArray  # (moves,)
    amounts: FloatArray  # (moves,)
    n_states: int

    def _chain(self, shares: FloatArray) -> SparseChain:
        moves = self.amounts * shares, (self.source, self.target)
        return SparseChain(sparse.csr_array(moves, shape=(self.n_states, self.n_states)))

    def occupancy(self, shares: FloatArray, initial: FloatArray) -> FloatArray:
        """(S,)."""
        return self._chain(shares).solve_transposed(initial)

    def solved(self, shares: FloatArray, costs: FloatArray, initial: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(B, S, k) and (B, S)."""
        chains = [self._chain(column) for column in shares.T]
        values = [chain.solve(one) for chain, one in zip(chains, costs, strict=True)]
        visits = [chain.solve_transposed(one) for chain, one in zip(chains, initial, strict=True)]
        return np.stack(values), np.stack(visits)


def _give_up_circles(
    split: Supported, states: IntArray, actions: IntArray, following: IntArray, starts: IntArray
) -> None:
    """Take for unsupported what a policy does in states from which it was never seen to end: at its worst."""
    taken = split.probabilities[states, actions] > 0
    ends = (following[taken] < 0) | (split.unsupported_mass[states[taken]] > GIVEN_UP)
    after = np.maximum(following[taken], 0)
    circle = circle_apart(states[taken], after, ends, starts, n_states=len(split.probabilities))
    split.unsupported[circle] += split.probabilities[circle]
    split.probabilities[circle] = 0.0


def _matrix(amounts: FloatArray, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    """Sum amounts by row and column."""
    matrix = sparse.csr_array((amounts, (rows, columns)), shape=shape)
    matrix.eliminate_zeros()
    return matrix


def _stacked(parts: list[sparse.csr_array], columns: int) -> sparse.csr_array:
    """Put matrices of as many columns below each other."""
    return sparse.vstack(parts, format="csr") if parts else sparse.csr_array((0, columns))


def _times(matrix: sparse.csr_array, amounts: FloatArray) -> FloatArray:
    """(m, k, B) matrix (m, n) @ amounts (n, k, B), all k at once."""
    _, k, replicates = amounts.shape
    return np.asarray(matrix @ amounts.reshape(len(amounts), k * replicates)).reshape(matrix.shape[0], k, replicates)


def _reachable(starts: IntArray, states: IntArray, following: IntArray, n_states: int) -> tuple[IntArray, IntArray]:
    """Return the place (S,) of each state that can come up, -1 for others, and those states."""
    moves = following >= 0
    before = np.full(starts.size, n_states)  # one more state leads to where episodes begin
    rows, columns = np.append(states[moves], before), np.append(following[moves], starts)
    edges = sparse.csr_array((np.ones(rows.size, dtype=bool), (rows, columns)), shape=(n_states + 1, n_states + 1))
    order = sparse.csgraph.breadth_first_order(edges, n_states, return_predecessors=False)
    reached = np.zeros(n_states + 1, dtype=bool)
    reached[order] = True
    reached = reached[:n_states]
    place = np.full(n_states, -1)
    found = np.flatnonzero(reached)
    place[found] = np.arange(found.size)
    return place, found


def _indicator(groups: IntArray, size: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(groups.size), (groups, np.arange(groups.size))), shape=(size, groups.size))
