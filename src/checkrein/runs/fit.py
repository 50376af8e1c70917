"""fit: from a problem file to a run folder with a policy, its certificate and a report."""

import importlib.metadata
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from checkrein.base import storage
from checkrein.base.errors import ArgumentError, DataError, DivergenceError, EndlessPolicyError
from checkrein.bellman.iteration import default_iterations
from checkrein.best_response import FQI
from checkrein.certification import Certificate
from checkrein.certification.bounds import BootstrapFQE, EpisodeScoreBound, Method, method_of
from checkrein.certification.certify import alpha_spent
from checkrein.certification.looks import FILE, Looks, log_key
from checkrein.deploy.deployed import ENCODING, SINGLE
from checkrein.evaluation import FQE
from checkrein.functions import Neural
from checkrein.game import Round, Solution, Status, best_member, solve
from checkrein.online import CuttingPlane, ExponentiatedGradient, OnlineGradientDescent
from checkrein.policies.policies import save_policy
from checkrein.policies.support import Support, behavior_policy
from checkrein.problem.problem import Problem, Values
from checkrein.protocols import FunctionClass, OnlineLearner, Policy
from checkrein.report.model import Aimed, Repeat, Summary
from checkrein.report.page import page
from checkrein.report.summary import (
    BEHAVIOR,
    CITATION,
    LEARNED,
    SINGLE_POLICY,
    UNCONSTRAINED,
    Judged,
    summary,
    versions,
)
from checkrein.runs.prepare import Prepared, evaluator_of, functions_of, light_functions, prepare
from checkrein.runs.problem_file import NO_REFITS, Learn, ProblemFile
from checkrein.selection.margins import MarginChoice, choose_margins

PROBLEM, SUMMARY, REPORT, CERTIFICATE = "problem.toml", "summary.json", "report.html", "certificate.json"
CAREFUL = 0.02  # the share of its bound by which gradient descent answers a usual violation: more makes it swing
GENEROUS = 100.0  # times the price at which a constraint's usual variation outweighs the objective's
ROUGH, ROUGH_ROUNDS = 10.0, 30  # times the tolerance, and rounds, that do to choose a margin by
FEW_ROUNDS, FEW_FOLDS = 5, 2  # and rounds, and folds of the doubly robust estimate, where classes are slow
USUAL = Support(min_count=10, min_probability=0.05)  # the one rule that is tried then
LOOKAHEAD = 30  # iterations of a network in a round: it goes on from the last one

__all__ = ["CERTIFICATE", "REPORT", "fit", "prepare", "read_summary", "write_report"]


def fit(
    prepared: Prepared,
    out: Path,
    *,
    command: str,
    on_round: Callable[[Round], None] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Solution, Summary]:
    """Learn, certify on the held-out part, and write the run folder; an unfinished run there is taken up again.

    Where something is held out, the support rule and room under the limits are chosen inside the learning part.

    tell: told what is under way
    """
    learn, problem = prepared.file.learn, prepared.problem
    trouble: list[str] = []
    target = _aim(prepared, trouble, tell)
    aimed = problem if target is None else replace(problem, constraints=target.constraints)
    support = _support(learn) if target is None else target.support
    players = _players(learn, functions_of(learn), aimed, support)

    def played(one: Round) -> None:
        if on_round is not None:
            on_round(one)
        tell(f"round {one.index + 1}")

    tell("learning")
    on_the_way: dict[str, Any] = {"on_round": played, "checkpoint": out}
    solution = solve(aimed, **players, tolerance=learn.tolerance, max_rounds=learn.max_rounds, **on_the_way)
    tell("judging")
    single = best_member(aimed, solution).policy
    compared = {
        LEARNED: solution.policy,
        BEHAVIOR: behavior_policy(problem.transitions),
        UNCONSTRAINED: _unconstrained(prepared, players["best_response"], trouble),
        SINGLE_POLICY: single,
    }
    judged = {
        name: _judge(prepared, policy, players["evaluator"], trouble)
        for name, policy in compared.items()
        if policy is not None
    }
    tell("certifying")
    certificate = _certify(prepared, solution.policy, what=str(out), trouble=trouble)
    found = summary(
        aimed,
        solution,
        title=prepared.file.title or f"{prepared.file.objective.label}, learned from {prepared.card.source}",
        costs=prepared.costs,
        judged=judged,
        card=prepared.card.model_copy(update={"warnings": [*prepared.card.warnings, *dict.fromkeys(trouble)]}),
        held_out_episodes=0 if prepared.held_out is None else prepared.held_out.dataset.first_rows().size,
        repeat=_repeat(prepared, command),
        aimed=None if target is None else _in_words(target, finite=problem.dataset.n_states is not None),
        certificate=certificate,
    )
    if prepared.dataset.encoding is not None:
        storage.save(prepared.dataset.encoding, out / ENCODING)
    save_policy(single, out / SINGLE)
    _write(out / PROBLEM, prepared.text)
    if certificate is not None:
        certificate.write(out / CERTIFICATE)
    _write(out / SUMMARY, found.model_dump_json(indent=1) + "\n")
    write_report(out, found)
    return solution, found


def _certify(prepared: Prepared, policy: Policy, *, what: str, trouble: list[str]) -> Certificate | None:
    """Judge a policy on the held-out part; None where there is nothing to judge, or to judge by."""
    if prepared.held_out is None or not prepared.problem.constraints:
        return None
    file, problem = prepared.file, prepared.held_out
    certificate, unrecorded = Looks(prepared.folder / FILE).certify(
        policy,
        problem,
        log=log_key(prepared.dataset),
        confidence=file.certify.confidence,
        method=method_for(file, problem),
        seed=file.learn.seed,
        what=what,
    )
    trouble += unrecorded
    return certificate


def method_for(file: ProblemFile, problem: Problem) -> Method:
    """Return the method that a problem file asks for, with its function class."""
    usual = None if file.learn.closed_form else "dr-studentised"
    method = method_of(file.certify.method or usual, problem)
    if isinstance(method, BootstrapFQE):
        if not file.learn.closed_form:
            raise ArgumentError(NO_REFITS.format(method=method.name, functions=file.learn.functions))
        return replace(method, functions=functions_of(file.learn))
    return replace(method, functions=light_functions(file.learn)) if isinstance(method, EpisodeScoreBound) else method


def _aim(prepared: Prepared, trouble: list[str], tell: Callable[[str], None]) -> MarginChoice | None:
    """Choose support and margins inside the learning part; None where the limits themselves are to be aimed at."""
    learn, problem, held_out = prepared.file.learn, prepared.problem, prepared.held_out
    if learn.margin == "none" or held_out is None or not problem.constraints:
        return None
    fixed = learn.min_count is not None or learn.min_probability is not None
    supports = [_support(learn)] if fixed else None if learn.closed_form else [USUAL]
    rounds = min(learn.max_rounds, ROUGH_ROUNDS if learn.closed_form else FEW_ROUNDS)
    method = method_for(prepared.file, problem)
    if isinstance(method, EpisodeScoreBound) and not learn.closed_form:
        method = replace(method, folds=FEW_FOLDS)
    attempts = count(1)

    def attempt(part: Problem, support: Support) -> Solution:
        words = f"choosing support and margin, attempt {next(attempts)}"
        tell(words)
        return solve(
            part,
            **_players(learn, light_functions(learn), part, support),
            tolerance=ROUGH * learn.tolerance,
            max_rounds=rounds,
            on_round=lambda played: tell(f"{words}, round {played.index + 1}"),
        )

    try:
        target = choose_margins(
            problem,
            lambda part, support: attempt(part, support).policy,
            held_out=held_out.dataset.first_rows().size,
            confidence=1 - alpha_spent(1 - prepared.file.certify.confidence, 1),
            method=method,
            supports=supports,
            adjustments=None if learn.closed_form else 1,
            seed=learn.seed,
        )
    except (ArgumentError, DataError) as reason:
        trouble.append(f"no room was left under the limits: {reason}")
        return None
    whole = attempt(replace(problem, constraints=target.constraints), target.support)
    if whole.status is Status.INFEASIBLE:
        return replace(target, constraints=tuple(problem.constraints), predicted_to_pass=False)
    return target


def _unconstrained(prepared: Prepared, best_response: FQI, trouble: list[str]) -> Policy | None:
    """Return the policy that minimises the objective alone, if there is one."""
    problem, seed = prepared.problem, prepared.file.learn.seed
    try:
        return best_response(problem, np.zeros(problem.n_constraints), rng=np.random.default_rng(seed))
    except DivergenceError as reason:
        trouble.append(f"what could be reached without limits is not known: {reason}")
        return None


def _judge(prepared: Prepared, policy: Policy, evaluate: FQE, trouble: list[str]) -> Judged:
    """Value a policy on both parts; a part that cannot tell is a warning, and only closed forms tell how sure it is."""

    def value(where: Problem | None) -> Values | None:
        try:
            return None if where is None else evaluate(where, policy, rng=np.random.default_rng(seed))
        except (DivergenceError, EndlessPolicyError) as reason:
            trouble.append(f"a policy could not be valued on one part of the log: {reason}")
            return None

    seed = prepared.file.learn.seed
    learning, held_out = value(prepared.problem), value(prepared.held_out)
    if held_out is None or prepared.held_out is None or not prepared.file.learn.closed_form:
        return Judged(learning, held_out)
    fitted = BootstrapFQE("t", functions_of(prepared.file.learn), evaluate.support)
    _, errors = fitted.estimate(prepared.held_out, policy, rng=np.random.default_rng(seed))
    return Judged(learning, held_out, errors)


def _players(learn: Learn, functions: FunctionClass, problem: Problem, support: Support) -> dict[str, Any]:
    iterations = min(LOOKAHEAD, default_iterations(problem)) if isinstance(functions, Neural) else None
    return {
        "best_response": FQI(functions, iterations, support=support),
        "evaluator": evaluator_of(functions),
        "learner": _learner(learn, problem),
        "seed": learn.seed,
    }


def _support(learn: Learn) -> Support:
    usual = Support()
    return Support(
        usual.min_count if learn.min_count is None else learn.min_count,
        usual.min_probability if learn.min_probability is None else learn.min_probability,
    )


def _in_words(target: MarginChoice, *, finite: bool) -> Aimed:
    return Aimed(
        support=target.support.words(finite=finite),
        limits={c.name: c.limit for c in target.constraints},
        predicted=target.predicted,
        predicted_to_pass=target.predicted_to_pass,
    )


def _repeat(prepared: Prepared, command: str) -> Repeat:
    return Repeat(
        command=command,
        problem_file=prepared.text,
        version=importlib.metadata.version("checkrein"),
        seed=prepared.file.learn.seed,
        dataset=prepared.dataset.fingerprint,
        log="" if prepared.dataset.episodes is None else log_key(prepared.dataset),
        packages=versions(),
        citation=CITATION,
    )


def write_report(out: Path, found: Summary) -> Path:
    """Write the page of a summary."""
    _write(out / REPORT, page(found))
    return out / REPORT


def read_summary(run: Path) -> Summary:
    """Return the summary of a finished run."""
    path = run / SUMMARY
    if not path.exists():
        raise DataError(f"{run} holds no finished run: there is no {SUMMARY} in it")
    try:
        return Summary.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as reason:
        raise DataError(f"{path} is damaged: {str(reason).splitlines()[0]}") from None


def _write(path: Path, text: str) -> None:
    storage.write_atomically(path, lambda file: file.write(text.encode()))


def _learner(learn: Learn, problem: Problem) -> OnlineLearner[Any]:
    """Return the learner; its bound defaults to far above any price that the costs' variation suggests."""
    spread = problem.spread
    if learn.learner == "cutting-plane":
        scales = tuple((spread[1:] / spread[0]).tolist()) if learn.bound is None else None
        return CuttingPlane(learn.bound or GENEROUS, scales=scales)
    prices = spread[0] / spread[1:]
    bound = learn.bound or 10.0 * float(prices.max(initial=1e-300))
    rate = learn.rate or 1.0 / float(spread[1:].max(initial=1e-300))
    if learn.learner == "exponentiated-gradient":
        return ExponentiatedGradient(bound, rate)
    return OnlineGradientDescent(bound, learn.rate or CAREFUL * bound / float(np.linalg.norm(spread[1:]) or 1.0))
