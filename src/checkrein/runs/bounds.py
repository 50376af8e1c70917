"""What each theorem says of a finished run, as printed and corrected, beside what the run measured."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from checkrein.report.model import LEARNED
from checkrein.runs.finished import FinishedRun
from checkrein.theory import (
    Bound,
    EndToEnd,
    corrected,
    empirical_constraint_excess,
    end_to_end,
    exponentiated_gradient_gap,
    exponentiated_gradient_rounds,
    fqe_error,
    fqi_error,
    joint_bound,
    online_gradient_descent_gap,
    online_gradient_descent_rounds,
    smallest_epsilon,
)
from checkrein.theory.samples import PRINTED, Constants

NOTHING = "-"
ROUNDING = 1e-12  # an excess below this is none
MANY = 10**9  # from here on digits are no longer counted


@dataclass(frozen=True)
class Comparison:
    """One theorem: what it says of a run, and what the run measured."""

    theorem: str
    printed: str
    corrected: str
    measured: str


def comparisons(run: FinishedRun) -> list[Comparison]:
    """Compare every theorem with a run; those of generalization need a discount below 1 and a function class."""
    found = _convergence(run)
    if run.learn.discount == 1 or run.dimension is None:
        return found
    return [*found, *_standalone(run), *_end_to_end(run)]


def remarks(run: FinishedRun) -> list[str]:
    """Say in sentences what the numbers rest on."""
    scaled = "" if set(run.multipliers.scales) <= {1.0} else ", after dividing each constraint by its usual variation"
    said = [f"The multipliers lay within {run.multipliers.bound:g}{scaled}."]
    if run.learn.discount == 1:
        return [*said, "Theorems 4.2 to 4.4 need a discount below 1: they say nothing about this run."]
    if run.dimension is None:
        return [*said, "Without the log the size of the states is not known: pass --data."]
    said.append(
        f"{run.rows:,.0f} rows to learn from, pseudo-dimension {run.dimension:,} ({run.learn.functions}), "
        f"{run.iterations:,} iterations, delta {_delta(run):.2g}; values are at most {run.objective_bound:.4g} in size."
    )
    coefficient = None if run.logged is None else run.logged.coefficient
    if coefficient is None or run.logged is None:
        why = "the log is not here: pass --data" if run.logged is None else "states are not finite"
        said.append(f"The concentration coefficient is not known ({why}). It is taken as 1, the best possible case.")
    else:
        said.append(
            f"The concentration coefficient, estimated from the {coefficient.n_pairs:,} logged pairs of state and "
            f"action, is {coefficient.value:.4g}; of the policies found alone, it is {run.logged.of_policy:.4g}."
        )
    return said


def _convergence(run: FinishedRun) -> list[Comparison]:
    if not run.constraints:
        return []
    scales = run.multipliers.scales
    ranges = [run.constraint_range(place) / scale for place, scale in enumerate(scales)]
    game: dict[str, Any] = {
        "bound": run.multipliers.bound,
        "n_constraints": len(ranges),
        "constraint_range": max(ranges),
    }
    played, tolerance, first = run.played, run.learn.tolerance, run.first_gap
    descent = run.multipliers.learner == "OnlineGradientDescent"
    rounds = online_gradient_descent_rounds if descent else exponentiated_gradient_rounds
    gap = online_gradient_descent_gap if descent else exponentiated_gradient_gap
    who = "online gradient descent" if descent else "exponentiated gradient"
    reached = f"{run.gap:.3g}"
    found = [
        Comparison(
            f"4.1: rounds to a gap of {tolerance:g}",
            f"{_count(rounds(gap=tolerance, **game))} of {who}",
            NOTHING,
            f"{played:,} of {run.multipliers.learner} to {reached}",
        ),
        Comparison(
            f"4.1: gap after {played:,} rounds",
            _said(Bound(gap(rounds=played, **game), first, ""), "the first round had"),
            NOTHING,
            reached,
        ),
    ]
    for place, constraint in enumerate(run.constraints):
        arguments = {"tolerance": run.gap, "bound": run.multipliers.bound / scales[place]}
        arguments |= {"objective_bound": run.objective_bound, "constraint_range": run.constraint_range(place)}
        limits = {} if run.summary.aimed is None else run.summary.aimed.limits
        limit = limits.get(constraint.name, constraint.limit)
        value = run.row(1 + place).values[LEARNED].learning
        excess = NOTHING if value is None else _excess(constraint.sign * (value - limit))
        printed, checked = empirical_constraint_excess, corrected.empirical_constraint_excess
        cells = _said(printed(**arguments)), _said(checked(**arguments))
        found.append(Comparison(f"C.2: estimated excess, {constraint.name}", cells[0], cells[1], excess))
    return found


def _standalone(run: FinishedRun) -> list[Comparison]:
    names = [run.row(0).name, *(constraint.name for constraint in run.constraints)]
    largest = [run.objective_bound, *(run.constraint_bound(place) for place in range(len(run.constraints)))]
    found = []
    for place, (name, value_bound) in enumerate(zip(names, largest, strict=True)):
        printed, checked = _pair(run, fqe_error, corrected.fqe_error, value_bound)
        drift = run.drift(place)
        measured = NOTHING if drift is None else f"{drift:+.3g} held-out minus learning"
        found.append(Comparison(f"4.2: error of FQE, {name}", _said(printed), _said(checked), measured))
    printed, checked = _pair(run, fqi_error, corrected.fqi_error, run.objective_bound)
    return [*found, Comparison(f"4.3: excess of FQI, {names[0]}", _said(printed), _said(checked), NOTHING)]


def _pair(
    run: FinishedRun, printed: Callable[..., Bound], checked: Callable[..., Bound], value_bound: float
) -> tuple[Bound, Bound]:
    one, first, second = _coefficients(run)
    given: dict[str, Any] = {"iterations": run.iterations, "discount": run.learn.discount, "value_bound": value_bound}
    epsilons = [_epsilon(run, run.iterations, value_bound, constants) for constants in (PRINTED, corrected.CONSTANTS)]
    own = first if checked is corrected.fqe_error else second
    return (
        printed(epsilon=epsilons[0], concentration=one, **given),
        checked(epsilon=epsilons[1], concentration=own, **given),
    )


def _end_to_end(run: FinishedRun) -> list[Comparison]:
    if not run.constraints:
        return []
    printed, checked = _whole(run)
    drift = run.drift(0)
    measured = f"gap {run.gap:.3g}" + ("" if drift is None else f", held-out minus learning {drift:+.3g}")
    found = [
        Comparison(f"4.4: excess of {run.row(0).name}", _said(printed.objective), _said(checked.objective), measured)
    ]
    certificate = run.summary.certificate
    bounds = {} if certificate is None else {c.name: c.bound for c in certificate.constraints}
    for place, constraint in enumerate(run.constraints):
        scale, trivial = run.multipliers.scales[place], run.constraint_range(place)
        one, other = (_said(Bound(whole.constraint.value * scale, trivial, "")) for whole in (printed, checked))
        bound = bounds.get(constraint.name)
        measured = (
            NOTHING
            if bound is None
            else f"{constraint.sign * (bound - constraint.limit):+.3g} by the certificate's bound"
        )
        found.append(Comparison(f"4.4: excess over the limit of {constraint.name}", one, other, measured))
    return found


def _whole(run: FinishedRun) -> tuple[EndToEnd, EndToEnd]:
    scales, m = run.multipliers.scales, len(run.constraints)
    values = {
        "objective_bound": run.objective_bound,
        "constraint_bound": max(run.constraint_bound(place) / scale for place, scale in enumerate(scales)),
        "bound": run.multipliers.bound,
    }
    joint = joint_bound(**values)
    one, first, second = _coefficients(run)
    played = run.played
    counts = run.iterations * (m + 1), corrected.regressions(iterations=run.iterations, rounds=played, n_constraints=m)
    epsilons = _epsilon(run, counts[0], joint, PRINTED), _epsilon(run, counts[1], joint, corrected.CONSTANTS)
    given: dict[str, Any] = {"iterations": run.iterations, "discount": run.learn.discount, **values}
    given |= {"tolerance": run.gap}
    return (
        end_to_end(epsilon=epsilons[0], concentration=one, **given),
        corrected.end_to_end(epsilon=epsilons[1], concentration=second, evaluation_concentration=first, **given),
    )


def _coefficients(run: FinishedRun) -> tuple[float, float, float]:
    """Return Assumption 1's coefficient, that of first and that of second order; 1 where they are not known."""
    found = None if run.logged is None else run.logged.coefficient
    return (1.0, 1.0, 1.0) if found is None else (found.value, found.first_order, found.second_order)


def _epsilon(run: FinishedRun, regressions: int, value_bound: float, constants: Constants) -> float:
    return smallest_epsilon(
        rows=math.floor(run.rows),
        delta=_delta(run),
        regressions=regressions,
        value_bound=value_bound,
        dimension=run.dimension or 1,
        constants=constants,
    ).value


def _delta(run: FinishedRun) -> float:
    return 1 - run.file.certify.confidence


def _excess(value: float) -> str:
    return "0" if abs(value) < ROUNDING else f"{value:+.3g}"


def _count(number: int) -> str:
    return f"{number:,}" if number < MANY else f"{float(number):.3g}"


def _said(bound: Bound, allowed: str = "the costs allow") -> str:
    if bound.vacuous:
        return f"{bound.value:.3g}: vacuous ({allowed} {bound.trivial:.3g})"
    return f"at most {bound.value:.3g}"
