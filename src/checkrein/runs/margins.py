"""Margins for a problem file: what to aim at, chosen inside the learning part, so that the policy may pass."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from checkrein.base.errors import ArgumentError, DataError
from checkrein.certification.bounds import EpisodeScoreBound
from checkrein.certification.certify import alpha_spent
from checkrein.game import Solution, Status
from checkrein.policies import Support
from checkrein.problem import Problem
from checkrein.runs.method import method_for
from checkrein.runs.players import light_functions, players_for, support_of
from checkrein.runs.prepare import Prepared
from checkrein.selection.margins import MarginChoice, choose_margins, most_attempts

ROUGH, ROUGH_ROUNDS = 10.0, 30  # times the tolerance, and rounds, that do to choose a margin by
FEW_ROUNDS, FEW_FOLDS = 5, 2  # and rounds, and folds of the doubly robust estimate, where classes are slow
USUAL = Support(min_count=10, min_probability=0.05)  # the one rule that is tried then


def margins_for(prepared: Prepared, trouble: list[str], tell: Callable[[str], None]) -> MarginChoice | None:
    """Choose support and margins inside the learning part; None where the limits themselves are to be aimed at.

    trouble: what could not be done is added to it
    tell: told what is under way
    """
    learn, problem, held_out = prepared.file.learn, prepared.problem, prepared.held_out
    if learn.margin == "none" or held_out is None or not problem.constraints:
        return None
    fixed = learn.min_count is not None or learn.min_probability is not None
    supports = [support_of(learn)] if fixed else None if learn.closed_form else [USUAL]
    method = method_for(prepared.file, problem)
    if isinstance(method, EpisodeScoreBound) and not learn.closed_form:
        method = replace(method, folds=FEW_FOLDS)
    adjustments = None if learn.closed_form else 1
    attempts, most = count(1), 1 + most_attempts(problem, supports, adjustments=adjustments)

    def attempt(part: Problem, support: Support) -> Solution:
        words = f"choosing support and margin, attempt {next(attempts)} of at most {most}"
        tell(words)
        return players_for(learn, light_functions(learn), part, support).play(
            part,
            tolerance=ROUGH * learn.tolerance,
            max_rounds=min(learn.max_rounds, ROUGH_ROUNDS if learn.closed_form else FEW_ROUNDS),
            on_round=lambda played: tell(f"{words}, round {played.index + 1}"),
        )

    try:
        chosen = choose_margins(
            problem,
            lambda part, support: attempt(part, support).policy,
            held_out=held_out.dataset.n_units,
            confidence=1 - alpha_spent(1 - prepared.file.certify.confidence, 1),
            method=method,
            supports=supports,
            adjustments=adjustments,
            seed=learn.seed,
        )
    except (ArgumentError, DataError) as reason:
        trouble.append(f"no room was left under the limits: {reason}")
        return None
    whole = attempt(replace(problem, constraints=chosen.constraints), chosen.support)
    if whole.status is Status.INFEASIBLE:
        return replace(chosen, constraints=tuple(problem.constraints), predicted_to_pass=False)
    return chosen
