"""derandomise: one policy in place of a mixture, three ways, each with its estimate, its certificate and its price."""

from dataclasses import replace

from checkrein.base.errors import ArgumentError
from checkrein.certification.certify import certify
from checkrein.game import Derandomised, Solution
from checkrein.game.derandomise import SinglePolicies, single_policies
from checkrein.problem import Problem
from checkrein.protocols import Evaluator


def derandomise(
    problem: Problem,
    solution: Solution,
    *,
    evaluator: Evaluator,
    held_out: Problem | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> SinglePolicies:
    """Return the best member, the best deterministic policy near the mixture and the policy of averaged weights.

    Kinds that do not apply are left out; `left_out` of the result says why. `best` is the best by estimate.

    held_out: the same question on episodes that had no part in learning: each policy is then certified on them. The
        certificates are as many claims on the same episodes, so they share 1 - confidence evenly: that any passes
        wrongly has at most that probability, and choosing among those that passed costs nothing more
    """
    if not 0.5 < confidence < 1:
        raise ArgumentError(f"confidence is {confidence}: it must lie above 0.5 and below 1")
    if held_out is not None and held_out.dataset is problem.dataset:
        raise ArgumentError("held_out has the same log as problem: certify on episodes that had no part in learning")
    found = single_policies(problem, solution, evaluator=evaluator, seed=seed)
    if held_out is None or not held_out.constraints:
        return found
    each = 1 - (1 - confidence) / len(found)
    return SinglePolicies((_certified(one, held_out, each, seed) for one in found), found.left_out)


def _certified(single: Derandomised, held_out: Problem, confidence: float, seed: int) -> Derandomised:
    certificate = certify(
        single.policy,
        held_out.dataset,
        constraints=held_out.constraints,
        discount=held_out.discount,
        confidence=confidence,
        seed=seed,
    )
    return replace(single, certificate=certificate)
