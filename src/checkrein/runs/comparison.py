"""The policies that a report compares, valued on the part that was learned from and on the other."""

import numpy as np

from checkrein.base.errors import DivergenceError, EndlessPolicyError, ProblemError
from checkrein.best_response import FQI
from checkrein.certification.bounds import BootstrapFQE
from checkrein.evaluation import FQE
from checkrein.problem import Problem, Values
from checkrein.protocols import Policy
from checkrein.report.summary import BEHAVIOR, LEARNED, SINGLE_POLICY, UNCONSTRAINED, Judged
from checkrein.runs.players import Players, functions_of
from checkrein.runs.prepare import Prepared, behavior_of


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
    held_out = None if prepared.held_out is None else behavior_of(prepared.held_out)  # who wrote these episodes
    found = {BEHAVIOR: judge(prepared, behavior_of(prepared.problem), players.evaluator, trouble, held_out=held_out)}
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


def judge(
    prepared: Prepared, policy: Policy, evaluate: FQE, trouble: list[str], *, held_out: Policy | None = None
) -> Judged:
    """Value a policy on both parts; a part that cannot tell is a warning, and only closed forms tell how sure it is.

    held_out: to value on the held-out part, where it is another
    """

    def value(where: Problem | None, policy: Policy) -> Values | None:
        try:
            return None if where is None else evaluate(where, policy, rng=np.random.default_rng(seed))
        except (DivergenceError, EndlessPolicyError, ProblemError) as reason:  # a divergence may be infinite there
            trouble.append(f"a policy could not be valued on one part of the log: {reason}")
            return None

    seed = prepared.file.learn.seed
    judged = policy if held_out is None else held_out
    learning, judging = value(prepared.problem, policy), value(prepared.held_out, judged)
    if judging is None or prepared.held_out is None or not prepared.file.learn.closed_form:
        return Judged(learning, judging)
    fitted = BootstrapFQE("t", functions_of(prepared.file.learn), evaluate.support)
    _, errors = fitted.estimate(prepared.held_out, judged, rng=np.random.default_rng(seed))
    return Judged(learning, judging, errors)
