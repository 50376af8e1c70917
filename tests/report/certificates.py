"""Certificates as data, for the sample of finite states: one that passes, one that fails, and ones that cannot tell."""

from checkrein.certification.certificate import Certificate, JudgedConstraint
from checkrein.certification.certify import _together
from checkrein.certification.diagnostics import Check
from checkrein.report.model import Aimed

AIMED = Aimed(
    support="an action must have been logged at least 10 times in a state",
    limits={"vaso": 1.391, "fluids": 4.104},
    predicted={"vaso": 1.4873, "fluids": 4.1962},
    predicted_to_pass=True,
)
CHECKS = [
    Check(name="episodes", value=1240, limit=30, ok=True, words="1240 held-out episodes"),
    Check(
        name="unsupported decisions",
        value=0.00042,
        limit=0.001,
        ok=True,
        words="0.04% of the policy's decisions are of a kind that the held-out episodes never show "
        "(most often vaso in state severity=7, lactate=very high); they count at their worst",
        advice="raise the support rule",
    ),
    Check(
        name="rare decisions",
        value=0.0071,
        limit=0.01,
        ok=True,
        words="0.71% of the policy's decisions were logged fewer than 5 times in the held-out episodes",
    ),
    Check(
        name="Bellman error",
        value=2.13,
        limit=4,
        ok=True,
        words="fitted on other episodes, mean Bellman errors lie up to 2.1 standard errors from zero",
    ),
    Check(
        name="influence concentration",
        value=212.4,
        limit=30,
        ok=True,
        words="a bound's spread rests on an effective sample size of 212 episodes",
    ),
]
FAILED = Check(
    name="disagreement",
    value=5.87,
    limit=4,
    ok=False,
    words="fitted and doubly robust estimates lie 5.9 standard errors apart",
    advice="one of the two is wrong: use a richer function class or better propensities",
)


def judged(name, limit, values, verdict, *, words="at most", reason="as it is", advice=""):
    """One constraint; values: estimate, standard error, bound, other bound."""
    estimate, error, bound, other = values
    return JudgedConstraint(
        name=name,
        words=words,
        limit=limit,
        estimate=estimate,
        standard_error=error,
        bound=bound,
        other_bound=other,
        verdict=verdict,
        reason=f"{name}: {reason}",
        advice=f"{name}: {advice}" if advice else "",
    )


def certificate(constraints, *, checks=(), **changes):
    """The answer for all, as `certify` puts it together."""
    checks = [*CHECKS, *checks]
    failed = [check for check in checks if not check.ok]
    verdict, reason = _together(list(constraints), failed)
    values = {
        "verdict": verdict,
        "reason": reason,
        "advice": [check.advice for check in failed] + [c.advice for c in constraints if c.advice],
        "guarantee": "asymptotic",
        "method": "fqe-studentised",
        "confidence": 0.95,
        "alpha": 0.045,
        "look": 1,
        "episodes": 1240,
        "constraints": list(constraints),
        "checks": checks,
        "seed": 3,
        "dataset": "8e2f61d0" * 8,
        "policy": "c47a9b13" * 8,
    }
    return Certificate(**values | changes)


FLUIDS = judged(
    "fluids",
    4.213,
    (3.9583, 0.0712, 4.1174, 3.7991),
    "pass",
    reason="its upper bound 4.117 keeps the limit 4.213",
)


def passing():
    vaso = (1.4031, 0.0347, 1.4806, 1.3256)
    return certificate([judged("vaso", 1.5, vaso, "pass", reason="its upper bound 1.481 keeps the limit 1.5"), FLUIDS])


def failing():
    vaso = judged(
        "vaso",
        1.5,
        (1.7219, 0.0361, 1.8026, 1.6412),
        "fail",
        reason="even its other bound, 1.641, breaks the limit 1.5",
        advice="a limit of 1.81 would pass; or learn again with more margin, and judge on new episodes",
    )
    return certificate([vaso, FLUIDS], alpha=0.05)


def open_question():
    vaso = judged(
        "vaso",
        1.5,
        (1.4711, 0.0352, 1.5498, 1.3924),
        "inconclusive",
        reason="it is estimated at 1.471, but its upper bound 1.55 breaks the limit 1.5",
        advice="about 9,195 held-out episodes like these 1,240 would show it, if it is; a limit of 1.55 would pass",
    )
    return certificate([vaso, FLUIDS], look=2, alpha=0.0025, guarantee="heuristic")


def unbelievable():
    """No bound of one constraint, no estimate of another, and a check that fails."""
    vaso = judged("vaso", 1.5, (1.4711, 0.0352, None, None), "inconclusive", reason="no bound could be had")
    fluids = judged("fluids", 4.213, (None, None, None, None), "inconclusive", reason="no bound could be had")
    return certificate([vaso, fluids], checks=[FAILED])
