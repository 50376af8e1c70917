"""The combination lock of the paper's appendix (Koenig & Simmons 1996): what a log cannot have seen.

In each of N states one action leads on to the next, the other back to the first. Whoever goes back half of the time
comes to the last state once in 2^N tries, so nothing that a log says of going on to the end is evidence. Here going
back costs 1, and behind the last state is a trap: going on all the way looks free to a learner that takes silence for
safety.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from checkrein import (
    FQE,
    FQI,
    AtMost,
    CuttingPlane,
    Dataset,
    Problem,
    Support,
    Tabular,
    TabularMDP,
    TabularPolicy,
    certify,
    solve,
)
from checkrein.reproduction import COLOURS, Claim, Findings, Picture, Table, Tell, each, halves, panels

ON, BACK = 0, 1
WAYS = {"without a rule": Support(0, 0), "logged at all": Support(1), "logged 300 times": Support(300)}
UNRULED, LOGGED, OFTEN = WAYS
ALWAYS_ON = "always on"


@dataclass(frozen=True)
class CombinationLock:
    """A log that cannot have seen the end: the support rule and the certificate refuse rather than promise."""

    states: int = 20
    discount: float = 0.95
    limit: float = 0.1  # on the trap, which always going on incurs
    sizes: tuple[int, ...] = (100, 1000, 10_000)  # of logs, in episodes
    max_steps: int = 40
    runs: int = 10  # logs of each size
    confidence: float = 0.95
    seed: int = 0
    jobs: int = 2

    @classmethod
    def quick(cls) -> Self:
        """Return smaller logs, and fewer."""
        return cls(sizes=(100, 1000), runs=3, jobs=1)

    def run(self, tell: Tell) -> Findings:
        """Learn under each rule, ask for a certificate, and compare with the truth."""
        lock = combination_lock(self.states, self.discount)
        logs = [(size, self.seed + number) for size in self.sizes for number in range(self.runs)]
        calls = [partial(self._one, lock, *one) for one in logs]
        found = each(calls, jobs=self.jobs, tell=lambda done: tell(f"logs: {done}"))
        return self._findings(lock, [row for rows in found for row in rows])

    def _one(self, lock: TabularMDP, size: int, seed: int) -> list[dict[str, Any]]:
        """Learn from one log and judge: half of the episodes to learn from, half held out."""
        uniform = TabularPolicy.uniform(lock.n_states, lock.n_actions)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(size,)))
        log = lock.simulate(uniform, episodes=size, max_steps=self.max_steps, rng=rng)
        mine, held_out = halves(log, seed)
        limit = AtMost("trap", self.limit, range=(0, 1))
        problem = Problem(mine, objective="back", constraints=[limit], discount=self.discount)
        rows: list[dict[str, Any]] = []
        for way, support in WAYS.items():
            solution = solve(
                problem,
                best_response=FQI(Tabular(), support=support),
                evaluator=FQE(Tabular(), support=support),
                learner=CuttingPlane(100.0),
                tolerance=1e-6,
                max_rounds=30,
                seed=seed,
            )
            rows.append({"way": way, "claimed": solution.values, "policy": solution.policy})
        always = TabularPolicy(np.eye(2)[np.full(lock.n_states, ON)])
        values = problem.named(FQE(Tabular())(problem, always, rng=rng))
        rows.append({"way": ALWAYS_ON, "claimed": values, "policy": always})
        for row in rows:
            policy = row.pop("policy")
            verdict = certify(
                policy, held_out, constraints=[limit], discount=self.discount, confidence=self.confidence, seed=seed
            )
            row |= {"size": size, "seed": seed, "true": lock.values(policy), "deepest": _deepest(log)}
            row |= {"verdict": verdict.verdict, "reason": verdict.reason, "bound": verdict.bounds["trap"]}
        return rows

    def _findings(self, lock: TabularMDP, found: list[dict[str, Any]]) -> Findings:
        def of(way: str) -> list[dict[str, Any]]:
            return [row for row in found if row["way"] == way]

        def off(way: str, cost: str) -> list[float]:
            return [row["true"][cost] - row["claimed"][cost] for row in of(way)]

        passed = [row for row in found if row["verdict"] == "pass"]
        wrong = [row for row in passed if row["true"]["trap"] > self.limit]
        unseen = [row for row in of(UNRULED) if row["deepest"] < self.states - 1]
        false = [r for r in unseen if r["claimed"]["trap"] <= self.limit < r["true"]["trap"]]
        kept = [abs(gap) for way in (LOGGED, OFTEN) for cost in ("back", "trap") for gap in off(way, cost)]
        claims = [
            Claim(
                "without the rule, the promise is false wherever the end was never logged",
                f"{len(unseen)} of {len(unseen)} logs",
                f"{len(false)} of {len(unseen)} logs",
                bool(unseen) and len(false) == len(unseen),
            ),
            Claim.at_most("with the rule, largest difference of promise and truth", max(kept), 1e-6),
            Claim.at_least(
                "trap of always going on, counted at its worst",
                min(row["claimed"]["trap"] for row in of(ALWAYS_ON)),
                lock.values(TabularPolicy(np.eye(2)[np.full(lock.n_states, ON)]))["trap"] - 1e-9,
            ),
            Claim.at_most("certificates that pass though the limit is broken", len(wrong), 0),
            Claim.at_most(
                "certificates for what was learned without the rule",
                sum(row["verdict"] == "pass" for row in of(UNRULED)),
                0,
            ),
            Claim.at_least(
                "certificates for what was learned with the rule at 300",
                sum(row["verdict"] == "pass" for row in of(OFTEN)),
                1,
            ),
        ]
        rows: list[list[str | float]] = []
        for size in self.sizes:
            for way in (*WAYS, ALWAYS_ON):
                part = [row for row in of(way) if row["size"] == size]
                mean = [
                    float(np.mean([row[which][cost] for row in part]))
                    for cost in ("back", "trap")
                    for which in ("claimed", "true")
                ]
                passes = sum(row["verdict"] == "pass" for row in part)
                rows.append([f"{size:,}", way, *mean, f"{passes} of {len(part)}"])
        names = ("episodes", "rule", "back, claimed", "back, true", "trap, claimed", "trap, true", "certified")
        means = f"means of {self.runs} logs; trap at most {self.limit:g}"
        return Findings(
            title="The combination lock: what no log has seen is not promised",
            summary=(
                f"A chain of {self.states} states: on, or back to the first (which costs 1). Behind the last is a trap "
                f"(cost 1, at most {self.limit:g} allowed, discount {self.discount:g}). The log goes back half of the "
                "time, so it ends long before the chain does."
            ),
            claims=claims,
            numbers={"rows": found, "optimum": lock.optimum(objective="back", constraints=[self._limit()]).values},
            tables=[
                Table("What was promised, what was true, what was certified", names, rows, note=means),
                Table("Why certificates refuse", ("rule", "in the words of one"), self._reasons(found)),
            ],
            pictures=[self._picture(found)],
            differences=[
                "The appendix rewards the last state; here it is a trap and going back is what costs, so that a "
                "learner which takes silence for safety is drawn to the end, not merely ignorant of it.",
                "The appendix argues by the concentration coefficient; here the claims themselves are measured.",
            ],
        )

    def _limit(self) -> AtMost:
        return AtMost("trap", self.limit)

    def _reasons(self, found: list[dict[str, Any]]) -> list[list[str | float]]:
        last = {row["way"]: row for row in found if row["verdict"] != "pass"}
        return [[way, row["reason"]] for way, row in last.items()]

    def _picture(self, found: list[dict[str, Any]]) -> Picture:
        figure, (trap, back, depth) = panels((2.3, 2.3, 2.0))
        for axes, cost in ((trap, "trap"), (back, "back")):
            for place, (way, colour) in enumerate(zip(WAYS, COLOURS, strict=False)):
                shift = 1.3 ** (place - 1)
                for which, marker, filled in (("claimed", 7.5, "none"), ("true", 3.5, colour)):
                    mean = [
                        np.mean([r[which][cost] for r in found if r["way"] == way and r["size"] == size])
                        for size in self.sizes
                    ]
                    x = np.array(self.sizes) * shift
                    axes.plot(x, mean, "o", color=colour, markerfacecolor=filled, markersize=marker, zorder=3)
            axes.set_xscale("log")
            axes.set_xlabel("logged episodes")
            axes.minorticks_off()
            axes.set_title(f"{cost}: claimed (ring) and true (dot)")
        trap.axhline(self.limit, color="0.4", linewidth=0.7, linestyle=":")
        trap.text(self.sizes[0], self.limit, " limit", color="0.4", fontsize=7, va="bottom")
        for place, (way, colour) in enumerate(zip(WAYS, COLOURS, strict=False)):
            back.text(0.97, 0.95 - 0.1 * place, way, color=colour, transform=back.transAxes, fontsize=7, ha="right")
        back.set_ylim(bottom=-0.2)
        deepest = [[r["deepest"] for r in found if r["way"] == UNRULED and r["size"] == size] for size in self.sizes]
        x = np.array(self.sizes, dtype=np.float64)
        depth.plot(x, np.mean(deepest, axis=1), "o", color=COLOURS[0], markersize=4.5)
        depth.vlines(x, np.min(deepest, axis=1), np.max(deepest, axis=1), color=COLOURS[0], linewidth=0.8)
        depth.axhline(self.states - 1, color="0.4", linewidth=0.7, linestyle=":")
        depth.text(x[0], self.states - 1, " the last state", color="0.4", fontsize=7, va="bottom")
        depth.set_xscale("log")
        depth.minorticks_off()
        depth.set_ylim(0, self.states + 2)
        depth.set_xlabel("logged episodes")
        depth.set_title("deepest state logged")
        caption = (
            "Left and middle: what was claimed of the learned policies on the log that they were learned from, and "
            "what is true of them. Right: how deep logs go (mean and range); each state more takes twice the episodes."
        )
        return Picture("lock", caption, figure)


def combination_lock(n_states: int, discount: float) -> TabularMDP:
    """Return the chain: action 0 leads on, and from the last state into the trap; action 1 leads back, at a cost."""
    transitions, back, trap = np.zeros((n_states, 2, n_states)), np.zeros((n_states, 2)), np.zeros((n_states, 2))
    transitions[np.arange(n_states - 1), ON, np.arange(1, n_states)] = 1.0
    transitions[:, BACK, 0] = 1.0
    back[:, BACK], trap[-1, ON] = 1.0, 1.0
    return TabularMDP(transitions, {"back": back, "trap": trap}, np.eye(n_states)[0], discount)


def _deepest(log: Dataset) -> int:
    return int(log.states.max())
