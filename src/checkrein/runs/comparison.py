"""The policies that a report compares, valued on the part that was learned from and on the other."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from checkrein.base.errors import DivergenceError, EndlessPolicyError, ProblemError
from checkrein.best_response import FQI
from checkrein.certification.bounds import BootstrapFQE
from checkrein.evaluation import FQE
from checkrein.evaluation.behavior_value import behavior_value
from checkrein.problem import Problem
from checkrein.protocols import Policy
from checkrein.report.summary import BEHAVIOR, LEARNED, SINGLE_POLICY, UNCONSTRAINED, Judged
from checkrein.runs.players import Players, functions_of
from checkrein.runs.prepare import Prepared

T = TypeVar("T")


def compare(
    prepared: Prepared, players: Players, *, learned: Policy, single: Policy, trouble: list[str]
) -> dict[str, Judged]:
    """Value the learned policy beside behavior, what could be reached without limits, and the best single policy.

    trouble: what could not be done is added to it
    """
    first, last = (
        {name: judge(prepared, policy, players.evaluator, trouble)}
        for name, policy in ((LEARNED, learned), (SINGLE_POLICY, single))
    )
    return first | references(prepared, players, trouble) | last


def references(prepared: Prepared, players: Players, trouble: list[str]) -> dict[str, Judged]:
    """Value behavior and what could be reached without limits."""
    found = {BEHAVIOR: _behavior(prepared, players.evaluator, trouble)}
    free = _unconstrained(prepared, players.best_response, trouble)
    return found if free is None else found | {UNCONSTRAINED: judge(prepared, free, players.evaluator, trouble)}


def _unconstrained(prepared: Prepared, best_response: FQI, trouble: list[str]) -> Policy | None:
    """Return the policy that minimises the objective alone, if there is one."""
    problem, seed = prepared.problem, prepared.file.learn.seed
    try:
        return best_response(problem, np.zeros(problem.n_constraints), rng=np.random.default_rng(seed))
    except DivergenceError as reason:
        trouble.append(f"what could be reached without limits is not known: {reason}")
        return None


def judge(prepared: Prepared, policy: Policy, evaluate: FQE, trouble: list[str]) -> Judged:
    """Value a policy on both parts; a part that cannot tell is a warning, and only closed forms tell how sure it is."""
    seed = prepared.file.learn.seed
    learning, judging = _on_both_parts(
        prepared, lambda where: evaluate(where, policy, rng=np.random.default_rng(seed)), trouble
    )
    if judging is None or prepared.held_out is None or not prepared.file.learn.closed_form:
        return Judged(learning, judging)
    fitted = BootstrapFQE("t", functions_of(prepared.file.learn), evaluate.support)
    _, errors = fitted.estimate(prepared.held_out, policy, rng=np.random.default_rng(seed))
    return Judged(learning, judging, errors)


def _behavior(prepared: Prepared, evaluate: FQE, trouble: list[str]) -> Judged:
    """Value who wrote each part on that part, as what was logged."""
    seed = prepared.file.learn.seed
    learning, judging = _on_both_parts(
        prepared, lambda where: behavior_value(where, evaluate, rng=np.random.default_rng(seed)), trouble
    )
    before = None if learning is None else learning.values
    return Judged(before, None) if judging is None else Judged(before, judging.values, judging.standard_errors)


def _on_both_parts(prepared: Prepared, value: Callable[[Problem], T], trouble: list[str]) -> tuple[T | None, T | None]:
    """Value something on the learning part and on the one held out; None where that is none, or cannot tell."""

    def on(where: Problem | None) -> T | None:
        try:
            return None if where is None else value(where)
        except (DivergenceError, EndlessPolicyError, ProblemError) as reason:  # a divergence may be infinite there
            trouble.append(f"a policy could not be valued on one part of the log: {reason}")
            return None

    return on(prepared.problem), on(prepared.held_out)
