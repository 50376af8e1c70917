"""trace_frontier: from a problem file to a folder with its frontier: table, numbers and page."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from checkrein.base.errors import ArgumentError
from checkrein.certification.certify import fingerprint
from checkrein.certification.looks import Looks, claim_key
from checkrein.game.checkpoint import Checkpoint, settings_of
from checkrein.game.loop import Round
from checkrein.game.sweep import Point
from checkrein.report.frontier import frontier_summary
from checkrein.report.frontier_model import FrontierSummary
from checkrein.report.page import frontier_page
from checkrein.runs.comparison import references
from checkrein.runs.fit import repeat_of
from checkrein.runs.folder import FrontierFolder
from checkrein.runs.margins import margins_for
from checkrein.runs.method import method_for
from checkrein.runs.players import functions_of, players_for, support_of
from checkrein.runs.prepare import Prepared
from checkrein.runs.replay import Replay
from checkrein.selection.frontier import Frontier, frontier, judge_points, require_sweep

Swept = Mapping[str, tuple[float, float] | None]  # constraint -> its first and last limit; None: a range by default


def trace_frontier(
    prepared: Prepared,
    out: Path,
    *,
    swept: Swept,
    points: int,
    command: str,
    certified: bool = True,
    on_point: Callable[[Point], None] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Frontier, FrontierSummary]:
    """Sweep limits of a problem file, judge every point on the held-out part, and write the folder.

    An unfinished sweep that is found there is taken up again. All points together are one look at the held-out part.

    swept: the limits that vary; points: of one limit, or about as many of a grid
    certified: False leaves the held-out part to estimates, which are no look
    tell: told what is under way
    """
    sweep = sweep_of(prepared, swept, points)
    learn, problem = prepared.file.learn, prepared.problem
    trouble: list[str] = []
    chosen = margins_for(prepared, trouble, tell) if certified else None
    margins = {
        c.name: c.sign * (c.limit - aimed.limit)
        for c, aimed in zip(
            problem.constraints, () if chosen is None else chosen.constraints, strict=chosen is not None
        )
    }
    support = support_of(learn) if chosen is None else chosen.support
    players = players_for(learn, functions_of(learn), problem, support)
    choices = {"players": players, "sweep": sweep, "margins": margins, "tolerance": learn.tolerance}
    settings = settings_of(problem, problem.dataset.fingerprint, problem.discount, choices)
    replay = Replay(Checkpoint(out, settings), players.best_response, players.evaluator)

    def played(one: Round) -> None:
        replay.played(one)
        tell(f"best response {replay.shown + 1}")

    tell("learning")
    found = frontier(
        problem,
        sweep=sweep,
        best_response=replay.respond,
        evaluator=replay.value,
        learner=players.learner,
        tolerance=learn.tolerance,
        max_rounds=learn.max_rounds,
        seed=players.seed,
        margins=margins,
        on_point=on_point,
        on_round=played,
    )
    tell("judging")
    found, look = _judged(prepared, found, certified=certified, what=str(out), trouble=trouble)
    summary = frontier_summary(
        found,
        title=f"{prepared.file.title or prepared.card.source}: the trade-off",
        goals=prepared.goals,
        references=references(prepared, players, trouble),
        margins=margins,
        look=look,
        held_out_episodes=0 if prepared.held_out is None else prepared.held_out.dataset.first_rows().size,
        warnings=[*prepared.card.warnings, *dict.fromkeys(trouble)],
        repeat=repeat_of(prepared.file, prepared.text, command, prepared.dataset.fingerprint),
    )
    FrontierFolder(out).write(found.table(), summary, frontier_page(summary))
    return found, summary


def sweep_of(prepared: Prepared, swept: Swept, points: int) -> dict[str, list[float] | int]:
    """Return the limits to sweep, or say what is wrong with what was asked for."""
    for name, ends in swept.items():
        if ends is not None and not ends[0] < ends[1]:
            raise ArgumentError(f"the limits of {name} go from {ends[0]:g} to {ends[1]:g}: give the smaller one first")
    each = points if len(swept) == 1 else max(2, round(points**0.5))
    sweep = {name: each if ends is None else np.linspace(*ends, each).tolist() for name, ends in swept.items()}
    require_sweep(prepared.problem, sweep)
    return sweep


def _judged(
    prepared: Prepared, found: Frontier, *, certified: bool, what: str, trouble: list[str]
) -> tuple[Frontier, int | None]:
    """Value and certify every point on the held-out part: one look, whose alpha the points share."""
    file, held_out = prepared.file, prepared.held_out
    if held_out is None or prepared.judging is None:
        return found, None
    method = method_for(file, held_out)
    if not certified:
        return judge_points(found, held_out, confidence=None, method=method, seed=file.learn.seed), None
    looks, claim = Looks.beside(prepared.folder), _claim(prepared, found, method.name)
    look = looks.number(prepared.judging, claim)
    judged = judge_points(
        found, held_out, confidence=file.certify.confidence, method=method, seed=file.learn.seed, look=look
    )
    verdicts = [one.certificate.verdict for one in judged.held_out if one.certificate is not None]
    passed = f"{verdicts.count('pass')} of {len(verdicts)} points pass"
    trouble += looks.record(prepared.judging, claim, verdict=passed, what=what)
    return judged, look


def _claim(prepared: Prepared, found: Frontier, method: str) -> str:
    """Return the key of what is claimed: every point's policy keeps the point's limits."""
    claims = [(fingerprint(p.policy, prepared.problem.dataset), sorted(p.limits.items())) for p in found.points]
    digest = hashlib.sha256(repr(claims).encode()).hexdigest()
    file = prepared.file
    return claim_key(digest, prepared.problem.constraints, file.certify.confidence, method, file.learn.seed)
