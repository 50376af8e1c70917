"""The best deterministic policy near a mixture: in each state an action that some policy found takes there."""

from collections.abc import Iterator, Sequence

import numpy as np

from checkrein.base.arrays import BoolArray, FloatArray
from checkrein.base.errors import DivergenceError, EndlessPolicyError, ProblemError
from checkrein.bellman.termination import with_ends
from checkrein.evaluation import FQE, LSTDQ
from checkrein.game.derandomise.single import DETERMINISTIC, MET, Derandomised, best_place, derandomised
from checkrein.game.derandomise.switches import EmpiricalMDP, Switches
from checkrein.game.solution import Solution
from checkrein.policies import MajorityPolicy, Support, TabularPolicy, members_of, one_hot
from checkrein.problem import Problem, Values
from checkrein.protocols import Evaluator, Policy

SHARE = 0.05  # an action that a randomised policy takes at least this often is one that it takes
SURE = 1 - 1e-9  # the probability of the action of a deterministic policy
SAME = 1e-10  # a smaller relative improvement is rounding
REFRESHED = 50  # switches after which the visits are solved for again
MOST_STATES = 3000  # beyond this many, switches are not searched
FEWEST_STARTS, MOST_STARTS, WORK = 4, 30, 4_000_000_000  # starts of the search, and what bounds the cube of the states
LARGE = f" (There are more than {MOST_STATES} states: only the majority vote and the policies found were compared.)"


def best_deterministic(
    problem: Problem, solution: Solution, *, evaluator: Evaluator, seed: int = 0, tolerance: float = MET
) -> Derandomised:
    """Return a deterministic policy near the mixture, the best by the evaluator's own estimate of those tried.

    In finite states, switches of the action in a single state are followed, as long as they improve, from the best
    policy found, the majority vote, the members and the other policies found. Elsewhere the majority vote is compared
    with the policies found.
    """
    found = [(played.policy, played.values) for played in solution.rounds if played.finite]
    n_states = problem.transitions.n_states
    note = ""
    if n_states is None:
        rows = problem.transitions.states
        tried = [(p, v) for p, v in found if _sure(p.probabilities(rows))]
        new: list[Policy] = [MajorityPolicy(solution.policy)]
    else:
        tables = [(policy.probabilities(np.arange(n_states)), values) for policy, values in found]
        tried = [(TabularPolicy(one_hot(table)), values) for table, values in tables if _sure(table)]
        majority = one_hot(solution.policy.probabilities(np.arange(n_states)))
        if n_states > MOST_STATES:
            new, note = [TabularPolicy(majority)], LARGE
        else:
            mixed = [member.probabilities(np.arange(n_states)) for member, _ in members_of(solution.policy)]
            closest = [tables[best_place(problem, [v for _, v in tables], tolerance)][0]] if tables else []
            starts = _distinct([*closest, majority, *mixed, *(table for table, _ in tables)])[: _most(n_states)]
            candidates = _taken([*(table for table, _ in tables), *mixed])
            searched = list(_searched(problem, starts, candidates, _support_of(evaluator), tolerance))
            at = best_place(problem, [v for _, v in searched], tolerance) if searched else 0
            new = [TabularPolicy(majority), *(policy for policy, _ in searched[at : at + 1])]
    tried += _valued(problem, new, evaluator, seed)
    if not tried:
        raise ProblemError("no deterministic policy near the mixture could be valued: deploy the mixture itself")
    policy, values = tried[best_place(problem, [v for _, v in tried], tolerance)]
    return derandomised(problem, solution, policy, values, kind=DETERMINISTIC, tolerance=tolerance, note=note)


def local_search(start: Switches, candidates: BoolArray, limits: FloatArray, *, tolerance: float = MET) -> Switches:
    """Switch the action of one state at a time as long as it helps, the best of all switches first.

    While a limit is broken, that lowers the worst violation; then the objective, within the limits.
    candidates: (S, A) the actions to choose from
    """
    current = start
    for count in range(1, candidates.size * len(candidates)):
        values = np.where(_others(current, candidates)[..., None], current.all_values(), np.inf)
        worst = (values[..., 1:] - limits).max(axis=2, initial=-np.inf)
        worst_now = float((current.values[1:] - limits).max(initial=-np.inf))
        meets = (worst <= tolerance) & np.isfinite(values[..., 0])
        if worst_now > tolerance and not meets.any():
            score, now = worst, worst_now
        else:
            score, now = np.where(meets, values[..., 0], np.inf), current.values[0]
            now = np.inf if worst_now > tolerance else now
        state, action = np.unravel_index(int(np.argmin(score)), score.shape)
        best = float(score[state, action])
        if not (np.isfinite(best) and best < now - SAME * (1 + abs(best))):
            break
        current = current.switched(int(state), int(action))
        if count % REFRESHED == 0:
            current = Switches.of(current.model, current.actions)
    return current


def _others(current: Switches, candidates: BoolArray) -> BoolArray:
    others = candidates.copy()
    others[np.arange(len(others)), current.actions] = False
    return others


def _searched(
    problem: Problem, starts: Sequence[FloatArray], candidates: BoolArray, support: Support, tolerance: float
) -> Iterator[tuple[Policy, Values]]:
    """Yield what the search runs to from each start, as the logged MDP values it; what circles for ever is left out."""
    for start in starts:
        try:
            evidence = with_ends(problem, TabularPolicy(start), support.of(problem))
            model = EmpiricalMDP.of(problem, evidence, candidates)
            begun = Switches.of(model, start.argmax(axis=1))
        except (EndlessPolicyError, np.linalg.LinAlgError):
            continue
        end = local_search(begun, candidates, problem.limits, tolerance=tolerance)
        yield TabularPolicy(np.eye(candidates.shape[1])[end.actions]), Values(end.values[0], end.values[1:])


def _taken(tables: Sequence[FloatArray]) -> BoolArray:
    """(S, A) the actions that some policy takes."""
    return np.asarray(np.any([(table >= SHARE) | (one_hot(table) > 0) for table in tables], axis=0))


def _sure(table: FloatArray) -> bool:
    """Say whether one action is taken in each state."""
    return bool((table.max(axis=1) >= SURE).all())


def _distinct(tables: Sequence[FloatArray]) -> list[FloatArray]:
    """Return what each mostly does, once, in this order."""
    return list({table.tobytes(): table for table in map(one_hot, tables)}.values())


def _most(n_states: int) -> int:
    """Return how many starts there is time for: an inverse for each."""
    return max(FEWEST_STARTS, min(MOST_STARTS, WORK // n_states**3))


def _support_of(evaluator: Evaluator) -> Support:
    return evaluator.support if isinstance(evaluator, FQE | LSTDQ) else Support()


def _valued(
    problem: Problem, policies: Sequence[Policy], evaluator: Evaluator, seed: int
) -> list[tuple[Policy, Values]]:
    """Return the policies that can be valued, with the evaluator's own values."""
    valued = []
    for policy in policies:
        try:
            values = evaluator(problem, policy, rng=np.random.default_rng(seed))
        except (DivergenceError, EndlessPolicyError):
            continue
        if np.isfinite(values.objective) and np.isfinite(values.constraints).all():
            valued.append((policy, values))
    return valued
