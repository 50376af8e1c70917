"""Two reports as data, made without learning: one that went well over finite states, one infeasible over features."""

import numpy as np

from checkrein.game.solution import Status
from checkrein.logs.card import ActionUse, Behavior, DataCard
from checkrein.problem.goals import Unit
from checkrein.report.model import (
    CostRow,
    Differences,
    Estimate,
    Member,
    Repeat,
    Review,
    Single,
    Singles,
    StateDifference,
    Summary,
    Trace,
)
from checkrein.report.verdict import caveat, verdict

PER_EPISODE = "expected sum per episode"
PER_STEP = "average per step"
POLICIES = ["learned", "behavior", "unconstrained", "best single policy"]
TREE = """\
|--- severity <= 4.50
|   |--- lactate <= 2.25
|   |   |--- wait
|   |--- lactate >  2.25
|   |   |--- fluids
|--- severity >  4.50
|   |--- pressure <= 61.0
|   |   |--- vaso
|   |--- pressure >  61.0
|   |   |--- both"""


def estimates(learning, held_out, errors):
    """By policy; a fourth value is the best single policy's."""
    return {
        policy: Estimate(learning=a, held_out=b, standard_error=e)
        for policy, a, b, e in zip(POLICIES, learning, held_out, errors, strict=False)
    }


def finite_summary(certificate=None, aimed=None):
    """Forty states, two constraints, converged; one limit given as a share of behavior."""
    costs = [
        CostRow(
            name="death",
            role="objective",
            direction="minimise",
            goal="minimise",
            limit=None,
            limit_source=None,
            unit=PER_EPISODE,
            price=None,
            values=estimates(
                (0.1312, 0.1874, 0.1187, 0.1398), (0.1389, 0.1903, 0.1241, 0.1447), (None, 0.0061, None, None)
            ),
        ),
        CostRow(
            name="vaso",
            role="constraint",
            direction="at most",
            goal="at most 1.5",
            limit=1.5,
            limit_source=None,
            unit=PER_EPISODE,
            price=0.01731,
            values=estimates((1.5, 1.944, 2.871, 1.402), (1.471, 1.9871, 2.912, 1.388), (None, 0.0412, None, None)),
        ),
        CostRow(
            name="fluids",
            role="constraint",
            direction="at most",
            goal="at most 75% of behavior",
            limit=4.213,
            limit_source="75% of behavior",
            unit=PER_EPISODE,
            price=0.0,
            values=estimates((3.902, 5.617, 4.406, 4.018), (3.958, 5.702, 4.377, 4.101), (None, 0.0788, None, None)),
        ),
    ]
    level, sentence = verdict(Status.CONVERGED, costs, certificate)
    return Summary(
        title="Sepsis treatment, intensive care log",
        status="converged",
        verdict=sentence,
        level=level,
        explanation="The gap fell below the tolerance of 0.0001 after 34 rounds: "
        "no mixture of these policies does noticeably better by the learning estimates.",
        caveat=caveat(certificate),
        costs=costs,
        policies=POLICIES,
        gap=8.31e-5,
        lower_bound=0.13112,
        trace=finite_trace(),
        members=[
            Member(weight=0.6127, values={"death": 0.1362, "vaso": 1.207, "fluids": 3.731}),
            Member(weight=0.2941, values={"death": 0.1229, "vaso": 2.038, "fluids": 4.244}),
            Member(weight=0.0932, values={"death": 0.1246, "vaso": 1.728, "fluids": 3.946}),
        ],
        weighting="linear program over the policies found",
        differences=finite_differences(),
        card=finite_card(),
        learning_episodes=1241,
        held_out_episodes=1240,
        repeat=repeat(),
        aimed=aimed,
        certificate=certificate,
        singles=Singles(
            found=[single("best member", 0.1398, 1.402), single("deterministic", 0.1341, 1.497)],
            left_out={"averaged weights": "a member is a TabularPolicy"},
        ),
    )


def single(kind, death, vaso):
    """One policy in place of the mixture; the deterministic one is kept."""
    values = {"death": death, "vaso": vaso, "fluids": 4.018}
    return Single(
        kind=kind,
        chosen=kind == "deterministic",
        values={name: Estimate(learning=value, held_out=1.02 * value) for name, value in values.items()},
        price=death - 0.1312,
        explanation="",
    )


def finite_trace(rounds=34):
    """A gap that closes to exactly zero at its end, and starts unbounded."""
    k = np.arange(1, rounds + 1)
    gap = 0.9 * np.exp(-0.28 * k)
    gap[0], gap[-1] = np.inf, 0.0
    objective = 0.1312 + 0.03 * np.exp(-0.2 * k) * np.cos(0.8 * k)
    return Trace(
        round=k.tolist(),
        gap=gap.tolist(),
        lower=(0.1311 - 0.35 * np.exp(-0.25 * k)).tolist(),
        upper=(0.1312 + 0.5 * np.exp(-0.3 * k)).tolist(),
        objective=objective.tolist(),
        constraints={
            "vaso": (1.5 + 1.4 * np.exp(-0.15 * k) * np.cos(0.9 * k)).tolist(),
            "fluids": (3.902 + 0.7 * np.exp(-0.2 * k)).tolist(),
        },
        multipliers={
            "vaso": (0.01731 * (1 - np.exp(-0.2 * k)) + 0.02 * np.exp(-0.1 * k) * (k % 3 == 0)).tolist(),
            "fluids": (0.03 * np.exp(-0.3 * k)).tolist(),
        },
    )


def finite_differences(severities=8, lactates=5):
    """The states that matter most first: visits times what changes."""
    rng = np.random.default_rng(7)
    actions = ["wait", "fluids", "vaso", "both"]
    states = []
    for severity in range(severities):
        for lactate in ["low", "normal", "raised", "high", "very high"][:lactates]:
            behavior = rng.dirichlet([3, 2, 1.2, 0.6])
            chosen = np.eye(4)[rng.integers(4)] if severity > 1 else behavior
            learned = 0.61 * chosen + 0.39 * np.eye(4)[rng.integers(2)] if severity > 1 else behavior
            states.append(
                StateDifference(
                    state=f"severity={severity}, lactate={lactate}",
                    visits=float(rng.integers(20, 900)),
                    behavior=behavior.tolist(),
                    learned=learned.tolist(),
                )
            )
    states.sort(key=lambda s: -s.visits * np.abs(np.subtract(s.learned, s.behavior)).sum())
    return Differences(
        actions=actions,
        behavior_share=[0.4412, 0.2933, 0.1741, 0.0914],
        learned_share=[0.5203, 0.2287, 0.1612, 0.0898],
        agreement=0.6134,
        states=states,
        tree=None,
        tree_fidelity=None,
        sheet=sorted(states, key=lambda s: -s.visits)[:30],
        sheet_covers=0.93,
        review=[
            Review(
                place="severity=7, lactate=high",
                visits=214.0,
                learned="wait",
                learned_share=0.91,
                behavior="vaso",
                behavior_share=0.52,
                done_before=0.03,
                followed=0.61,
                why=["least in a severe place", "seldom done before"],
            )
        ],
    )


def finite_card():
    return DataCard(
        source="icu/2019-*.parquet",
        rows=31_204,
        rows_used=31_061,
        left_out={"severity is missing": 121, "after the terminal row of its episode": 22},
        distinct=4_812,
        episodes=2_481,
        shortest=1,
        median=11.0,
        longest=72,
        truncated=318,
        states="40 finite states of severity, lactate",
        states_visited_once=3,
        actions=[
            ActionUse(action="wait", count=13_704, share=0.4412, states_without=0),
            ActionUse(action="fluids", count=9_110, share=0.2933, states_without=0),
            ActionUse(action="vaso", count=5_408, share=0.1741, states_without=4),
            ActionUse(action="both", count=2_839, share=0.0914, states_without=9),
        ],
        behavior=[
            Behavior(cost="death", unit=Unit.SUM, value=0.1889, standard_error=0.0061, lowest=0.0, highest=1.0),
            Behavior(cost="vaso", unit=Unit.SUM, value=1.9655, standard_error=0.0412, lowest=0.0, highest=1.0),
            Behavior(cost="fluids", unit=Unit.SUM, value=5.6594, standard_error=0.0788, lowest=0.0, highest=2.5),
        ],
        discount=0.99,
        effective_horizon=100.0,
        propensities=False,
        warnings=[
            "318 of 2,481 episodes end without a terminal row: they are taken as cut short.",
            "3 states were visited once: what the policy does there rests on one decision each.",
        ],
    )


def feature_summary():
    """Features, a maximised objective, a floor and a ceiling that no policy meets together."""
    rounds = 60
    k = np.arange(1, rounds + 1)
    costs = [
        CostRow(
            name="retention",
            role="objective",
            direction="maximise",
            goal="maximise",
            limit=None,
            limit_source=None,
            unit=PER_STEP,
            price=None,
            values=estimates((0.6121, 0.5518, 0.6604), (0.5987, 0.5502, 0.6433), (None, 0.0112, None)),
        ),
        CostRow(
            name="consent",
            role="constraint",
            direction="at least",
            goal="at least 0.9",
            limit=0.9,
            limit_source=None,
            unit=PER_STEP,
            price=4.0,
            values=estimates((0.8412, 0.8122, 0.6031), (0.8377, 0.8109, 0.5966), (None, 0.0087, None)),
        ),
        CostRow(
            name="contacts",
            role="constraint",
            direction="at most",
            goal="at most 0.2",
            limit=0.2,
            limit_source=None,
            unit=PER_STEP,
            price=None,
            values=estimates((0.2613, 0.3107, 0.5523), (0.2588, 0.3094, None), (None, 0.0091, None)),
        ),
    ]
    return Summary(
        title="Customer contacts, autumn campaign",
        status="infeasible",
        verdict="No policy that the log supports meets both limits; "
        "the closest keeps consent at 0.8377 where at least 0.9 was asked.",
        level="bad",
        explanation="The multipliers reached their bound after 60 rounds. "
        "Relax consent to 0.84 or contacts to 0.26, or log decisions that differ more from today's.",
        caveat="Infeasible by the learning estimates: "
        "another function class or more data may find policies that this run could not.",
        costs=costs,
        policies=POLICIES[:3],
        gap=0.4127,
        lower_bound=None,
        trace=Trace(
            round=k.tolist(),
            gap=(0.41 + 1.2 / k).tolist(),
            lower=(-0.6 - 0.4 / k).tolist(),
            upper=(-0.19 + 0.8 / k).tolist(),
            objective=(0.6121 + 0.05 / k).tolist(),
            constraints={"consent": (0.8412 - 0.2 / k).tolist(), "contacts": (0.2613 + 0.3 / k).tolist()},
            multipliers={"consent": (4 - 4 / k).tolist(), "contacts": np.minimum(10, 0.2 * k).tolist()},
        ),
        members=[Member(weight=1 / rounds, values=member_values(i)) for i in range(rounds)],
        weighting="uniform, as in the paper",
        differences=Differences(
            actions=["none", "letter", "call", "visit by an advisor from the branch"],
            behavior_share=[0.48, 0.31, 0.17, 0.04],
            learned_share=[0.62, 0.27, 0.07, 0.04],
            agreement=0.4417,
            states=[],
            tree=TREE,
            tree_fidelity=0.9125,
            sheet=[
                StateDifference(state=rule, visits=visits, behavior=[0.5, 0.3, 0.2, 0.0], learned=[0.2, 0.7, 0.1, 0.0])
                for rule, visits in (("severity ≤ 4.5", 5100.0), ("severity > 4.5, pressure ≤ 61", 2900.0))
            ],
            sheet_covers=1.0,
        ),
        card=finite_card().model_copy(
            update={
                "source": "contacts.csv",
                "rows": 8_000,
                "rows_used": 8_000,
                "left_out": {},
                "distinct": None,
                "states": "6 features of tenure, spend, complaints, age, channel, region",
                "states_visited_once": None,
                "actions": [ActionUse(action="none", count=8_000, share=1.0, states_without=None)],
                "discount": 1.0,
                "effective_horizon": None,
                "propensities": True,
                "warnings": [],
            }
        ),
        learning_episodes=400,
        held_out_episodes=400,
        repeat=repeat(),
    )


def member_values(i):
    values = {"retention": 0.6 + 0.01 * np.sin(i), "consent": 0.84 + 0.02 * np.cos(i)}
    return values | {"contacts": 0.26 + 0.03 * np.sin(2 * i)}


def repeat():
    return Repeat(
        command="checkrein fit problem.toml --out run",
        problem_file='[data]\npath = "icu/2019-*.parquet"\nepisode = "patient"\n\n[objective]\nminimize = "death"\n',
        version="0.1.0",
        seed=0,
        dataset="sha256:5f1d7a3c09e24b8d91c7e6aa0b44f2d15f1d7a3c09e24b8d91c7e6aa0b44f2d1",
        packages={"numpy": "2.3.1", "polars": "1.31.0", "scikit-learn": "1.7.0"},
        citation="The checkrein developers. checkrein 0.1.0, 2026. "
        "After: Le, Voloshin and Yue, Batch Policy Learning under Constraints, ICML 2019.",
    )
