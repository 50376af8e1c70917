"""What the study of sepsis shows of what it found: claims, tables, pictures."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy  # its parts are loaded when first used

from checkrein.reproduction import Claim, Findings, Table
from checkrein_studies.sepsis import DRUGS, PACKAGE
from checkrein_studies.sepsis_found import Found, Optimal, survival
from checkrein_studies.sepsis_pictures import pictures

NOTHING = "–"  # noqa: RUF001 in a table
KNOWN_CLINICIANS = 0.782, 4.25, 0.81  # survival, fluids, vasopressors: figures that were computed elsewhere
KNOWN_OPTIMA: dict[float | None, tuple[float, float, float]] = {  # by share
    None: (0.875, 6.11, 0.94),
    0.75: (0.859, 3.19, 0.34),
    0.5: (0.838, 2.13, 0.23),
}
KNOWN_SHARE = 0.75  # at which, of one log:
KNOWN_PLUGGED = {  # survival claimed, survival true, fluids true
    (20_000, "logged at all"): (0.99, 0.805, 4.5),
    (20_000, "logged 20 times"): (0.874, 0.822, 3.33),
    (100_000, "logged 50 times"): (0.862, 0.849, 3.27),
}


def findings(found: Found) -> Findings:
    """Judge, tabulate and draw."""
    study = found.study
    return Findings(
        title="Sepsis in intensive care: fewer deaths with fewer drugs, certified",
        summary=(
            f"ICU-Sepsis: {found.ward.mdp.n_states} states, {found.ward.mdp.n_actions} doses of fluids and "
            f"vasopressors, discount 1. Deaths are minimised, with at most {study.share:.0%} of what clinicians give "
            f"of each drug ({_pair(found.limits)}), from a log of their own decisions: "
            f"{survival(found.clinicians):.3f} of their patients survive."
        ),
        claims=[*_exact_claims(found), *_log_claims(found)],
        numbers=_numbers(found),
        tables=[_exact_table(found), _frontier_table(found), _size_table(found), _plugged_table(found)],
        pictures=pictures(found),
        packages=(PACKAGE,),
        differences=[
            "The environment's own reward is survival alone; the limits on the drugs are ours. A dose counts from 0 "
            "(none) to 1 (the highest level), and is summed over a patient's stay.",
            "Optima and certified policies take admissible actions alone. The clinicians take others as well, which "
            "lead where the admissible ones of a state do on average; none of that counts as evidence.",
            "Only occurrences that leave a state count as evidence for an action: at discount 1 an action that was "
            "only seen to stay has no value. In a state that no logged admissible action left, learned policies give "
            "nothing, which counts at its worst where it is judged.",
        ],
    )


def _exact_claims(found: Found) -> list[Claim]:
    """Compare with figures that were computed elsewhere, to half a unit of their last digit."""
    off = np.abs([np.subtract(ours, known) for _, ours, known in _beside_known(found)])  # (policies, 3)
    words = "largest difference to the figures that were expected"
    return [
        Claim.at_most(f"exact survival: {words}", float(off[:, 0].max()), 0.5e-3),
        Claim.at_most(f"exact fluids and vasopressors: {words}", float(off[:, 1:].max()), 0.5e-2),
    ]


def _beside_known(found: Found) -> list[tuple[str, tuple[float, ...], tuple[float, ...]]]:
    """Return survival, fluids and vasopressors of each exact policy whose figures are known, ours and those."""
    optima = [one for one in found.exact if one.share in KNOWN_OPTIMA]
    return [
        ("clinicians", _triple(found.clinicians), KNOWN_CLINICIANS),
        *((f"optimum, {_share(one.share)}", _triple(one.true), KNOWN_OPTIMA[one.share]) for one in optima),
    ]


def _triple(values: dict[str, float]) -> tuple[float, ...]:
    return survival(values), *(values[drug] for drug in DRUGS)


def _log_claims(found: Found) -> list[Claim]:
    study, claims = found.study, []
    wanted = {study.large_episodes: study.large_survival, study.episodes: study.survival}
    for size, judged in found.by_size.items():
        passed = sum(one.certified for one in judged)
        claims += [
            Claim.at_least(
                f"{size:,} episodes: survival of what is deployed, mean of {len(judged)}",
                float(np.mean([one.survival for one in judged])),
                wanted[size],
            ),
            Claim(
                f"{size:,} episodes: logs with a policy whose limits are both certified",
                f"at least {_most(len(judged))} of {len(judged)}",
                f"{passed} of {len(judged)}",
                passed >= _most(len(judged)),
            ),
        ]
    return [*claims, _false_claim(found), _plugged_claim(found)]


def _false_claim(found: Found) -> Claim:
    """Allow as many false certificates as chance exceeds only with the probability that the confidence leaves."""
    confidence, logs = found.study.confidence, len(found.judged)
    allowed = int(scipy.stats.binom.ppf(confidence, logs, 1 - confidence))
    return Claim.at_most(f"certificates that pass though a limit is broken (logs: {logs})", len(found.false), allowed)


def _plugged_claim(found: Found) -> Claim:
    solutions = [one for judged in found.judged for one in judged.plugged.values()]
    broken = sum(found.breaks(one.true) for one in solutions)
    return Claim.at_least(
        "solutions at the limits themselves that break one, share", broken / max(len(solutions), 1), 0.5
    )


def _most(logs: int) -> int:
    return int(np.ceil(0.9 * logs))


def _numbers(found: Found) -> dict[str, Any]:
    return {
        "clinicians": found.clinicians,
        "limits": found.limits,
        "exact": [asdict(one) for one in found.exact],
        "learned": [asdict(one) for one in found.learned],
        "logs": [asdict(one) for one in found.judged],
    }


def _pair(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def _share(share: float | None) -> str:
    return "without limits" if share is None else f"{share:.0%} of the clinicians' drugs"


def _exact_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for name, ours, known in _beside_known(found):
        both = [
            f"{mine:.{digits + 2}f} ({their:.{digits}f})"
            for mine, their, digits in zip(ours, known, (3, 2, 2), strict=True)
        ]
        rows.append([name, *both])
    note = "In brackets what was expected: the same, computed elsewhere."
    return Table("Exact values", ("policy", "survival", *DRUGS), rows, note=note)


def _frontier_table(found: Found) -> Table:
    exact = {one.share: one for one in found.exact}
    rows: list[list[str | float]] = []
    for learned in found.learned:
        best = exact.get(learned.share)
        rows.append(
            [
                "none" if learned.share is None else f"{learned.share:.0%}",
                *([NOTHING] * 3 if best is None else [f"{survival(best.true):.4f}", *_prices(best)]),
                f"{survival(learned.claimed):.4f}",
                f"{survival(learned.true):.4f}",
                *(f"{learned.true[drug]:.3f}" for drug in DRUGS),
                *_prices(learned),
            ]
        )
    prices = [f"price of {drug}" for drug in DRUGS]
    learned_prices = [f"{price}, learned" for price in prices]
    names = ("limit", "survival, exact", *prices, "learned: claimed", "true", *DRUGS, *learned_prices)
    note = (
        f"Learned from one log of {found.study.large_episodes:,} episodes, at each limit itself. A price says how many "
        "deaths per patient one unit more of a drug would save."
    )
    return Table("What the limits cost", names, rows, note=note)


def _prices(one: Optimal) -> list[str]:
    return [f"{one.prices.get(drug, 0.0):.4f}" for drug in DRUGS]


def _size_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for size, judged in found.by_size.items():
        passed = [one for one in judged if one.certified]
        false = [one for one in found.false if one.episodes == size]
        saved = [one.survival for one in judged]
        rows.append(
            [
                f"{size:,}",
                f"{len(passed)} of {len(judged)}",
                str(len(false)),
                f"{np.mean(saved):.4f}",
                f"{min(saved):.4f} to {max(saved):.4f}",
                *(_mean(one.true[drug] for one in passed) for drug in DRUGS),
                f"{np.mean([one.seconds for one in judged]):.0f} s",
            ]
        )
    names = ("episodes", "certified", "of these false", "survival", "range", *DRUGS, "took, each")
    note = (
        f"True values of what is deployed: the certified policy, or the clinicians' where none is. Limits: "
        f"{_pair(found.limits)}. Drugs are means over certified policies."
    )
    return Table("What is certified, and what it is worth", names, rows, note=note)


def _mean(values: Iterable[float]) -> str:
    given = list(values)
    return f"{np.mean(given):.3f}" if given else NOTHING


def _plugged_table(found: Found) -> Table:
    rows: list[list[str | float]] = []
    for size, judged in found.by_size.items():
        for rule in judged[0].plugged:
            tried = [one.plugged[rule] for one in judged]
            known = KNOWN_PLUGGED.get((size, rule)) if found.study.share == KNOWN_SHARE else None
            rows.append(
                [
                    f"{size:,}",
                    rule,
                    _mean(survival(one.claimed) for one in tried),
                    _mean(survival(one.true) for one in tried),
                    *(_mean(one.true[drug] for one in tried) for drug in DRUGS),
                    f"{sum(found.breaks(one.true) for one in tried)} of {len(tried)}",
                    "" if known is None else ", ".join(f"{value:g}" for value in known),
                ]
            )
    names = ("episodes", "rule", "survival, claimed", "true", *DRUGS, "break a limit", "expected")
    note = (
        "Learned from the whole log at the limits themselves and judged on it; means. Every solution claims to keep "
        "the limits; what has no evidence counts at its worst. Expected: survival claimed and true, and true fluids, "
        "of one log elsewhere."
    )
    return Table("Solutions at the limits themselves", names, rows, note=note)
