"""One round after another: multipliers, best response, evaluation, gap (Algorithm 1 of the paper)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray, frozen
from checkrein.base.brief import brief
from checkrein.base.errors import CheckpointError
from checkrein.base.growing import Growing
from checkrein.game.lagrangian import dual_values, upper
from checkrein.online.master import best_mixture
from checkrein.problem import Problem, Question, Values
from checkrein.protocols import BestResponse, Evaluator, OnlineLearner, Policy

Weighting = Literal["best", "uniform"]
ROUNDING = 1e-9
BEST_RESPONSE, EVALUATION = 0, 1  # what a call's random numbers are for


class Play(NamedTuple):
    """What a round cost to find out."""

    multipliers: FloatArray  # (m,)
    policy: Policy
    values: Values
    answers: bool = True  # whether a best response was sought at the multipliers; if not, they prove no lower bound


@dataclass(frozen=True, eq=False, repr=False)
class Round:
    """One round of the game, and where the game stands after it."""

    index: int  # from 1
    multipliers: FloatArray  # (m,)
    policy: Policy
    values: Values
    objective: float  # as played for: the values' own, or zero where only feasibility is asked for
    violation: FloatArray  # (m,) of this round's policy
    lower: float  # L_min
    upper: float  # L_max of the mixture
    weighting: str  # of the mixture: uniform, or that of the linear program
    member_weights: FloatArray  # (index,) of the mixture, over the policies of all rounds
    mixture: Values
    played_objective: float  # of the mixture: as `objective`, of the round's policy
    price: FloatArray  # (m,) the multipliers visited with the best lower bound
    answers: bool = True  # whether a best response was sought at the multipliers

    def __repr__(self) -> str:
        words = f"Round({self.index}, gap {self.gap:.3g}, multipliers {brief(self.multipliers)}"
        return f"{words}, objective {self.values.objective:.4g}, constraints {brief(self.values.constraints)})"

    @property
    def gap(self) -> float:
        """The duality gap that is left; what is negative by rounding is none."""
        gap = self.upper - self.lower
        return 0.0 if -ROUNDING * (1 + abs(self.upper)) < gap < 0 else gap

    @property
    def play(self) -> Play:
        """The part of the round that cannot be computed again from the others."""
        return Play(self.multipliers, self.policy, self.values, self.answers)

    @property
    def finite(self) -> bool:
        """Say whether the evaluator's values are numbers."""
        return bool(np.isfinite(self.values.objective) and np.isfinite(self.values.constraints).all())


def rounds(
    problem: Problem,
    *,
    best_response: BestResponse,
    evaluator: Evaluator,
    learner: OnlineLearner[Any],
    seed: int = 0,
    weighting: Weighting = "best",
    feasibility: bool = False,
    recorded: Sequence[Play] = (),
    known: Sequence[Play | Round] = (),
) -> Iterator[Round]:
    """Play without end; stop by not asking for more.

    weighting: "uniform" mixes all policies alike, as the paper does; "best" takes the linear program's weights
        where they give the smaller gap.
    feasibility: leave the objective out: how closely can the constraints be met?
    recorded: rounds of this game from its first, which are not played again.
    known: what the same players found on the same data with other limits: it comes first and is not found again.
        (A best response does not depend on the limits; `carry_over` makes what was found for other costs fit.)
    """
    asked = problem.without_objective() if feasibility else problem
    table = _Table(learner, weighting, problem.n_constraints)
    state = learner.init(problem.n_constraints)
    policy: Policy | None = None
    index = 0
    while True:
        index += 1
        if index <= len(known):
            found = known[index - 1]
            play = found.play if isinstance(found, Round) else found
            if index <= len(recorded):
                _require_same(index, recorded[index - 1].multipliers, play.multipliers)
        elif index <= len(recorded):
            play = recorded[index - 1]
            _require_same(index, play.multipliers, learner.multipliers(state))
        else:
            multipliers = learner.multipliers(state)
            generators = [_generator(seed, index, slot + 2 * feasibility) for slot in (BEST_RESPONSE, EVALUATION)]
            answer = best_response(asked, multipliers, rng=generators[0], start=policy)
            play = Play(multipliers, answer, evaluator(problem, answer, rng=generators[1]))
        policy = play.policy
        violation = play.values.constraints - problem.limits
        played = table.add(play, violation, objective=not feasibility, solve_program=index >= len(known))
        yield played
        state = learner.update(state, played)


def replayed(question: Question, plays: Sequence[Play], *, learner: OnlineLearner[Any]) -> list[Round]:
    """Return where a game would stand after these plays, without playing; the program is solved after the last."""
    table = _Table(learner, "best", question.n_constraints)
    return [
        table.add(play, play.values.constraints - question.limits, objective=True, solve_program=index == len(plays))
        for index, play in enumerate(plays, start=1)
    ]


class _Table:
    """Everything found so far, and what follows from it."""

    def __init__(self, learner: OnlineLearner[Any], weighting: Weighting, n_constraints: int) -> None:
        self.learner, self.weighting = learner, weighting
        self.plays: list[Play] = []
        self.values = Growing(1 + n_constraints)
        self.played = Growing(1 + n_constraints)  # objectives as played: zero where only feasibility is asked for
        self.visited = Growing(n_constraints)
        self.finite = True
        self.dual_values: FloatArray = np.zeros(0)
        self.distinct: dict[bytes, int] = {}  # equal values are interchangeable: the program sees each once
        self.solved: tuple[IntArray, FloatArray] = (np.zeros(0, np.int64), np.zeros(0))  # its policies and weights
        self.stale = False  # whether there are some that the program has not seen

    def add(self, play: Play, violation: FloatArray, *, objective: bool, solve_program: bool) -> Round:
        """Take in a play; the program is solved where `solve_program` says so, and always sees all."""
        values = play.values.row
        objective_played = play.values.objective if objective else 0.0
        self.plays.append(play)
        self.values.append(values)
        self.played.append(np.append(objective_played, violation))
        self.visited.append(play.multipliers)
        self.finite &= bool(np.isfinite(self.played.rows[-1]).all())
        objectives, violations = self.played.rows[:, 0], self.played.rows[:, 1:]
        self.dual_values = dual_values(self.dual_values, objectives, violations, self.visited.rows)
        if not play.answers:
            self.dual_values[-1] = -np.inf
        worth = {
            name: (self._upper(weights, objectives, violations), weights)
            for name, weights in self._mixtures(objectives, violations, solve_program)
        }
        name = min(worth, key=lambda key: worth[key][0])
        top, weights = worth[name]
        mixture = weights @ self.values.rows
        return Round(
            index=len(self.plays),
            multipliers=play.multipliers,
            policy=play.policy,
            values=play.values,
            objective=objective_played,
            violation=frozen(violation),
            lower=float(self.dual_values.max()),
            upper=top,
            weighting=name,
            member_weights=frozen(weights),
            mixture=Values(float(mixture[0]), frozen(mixture[1:])),
            played_objective=float(weights @ objectives),
            price=self.plays[int(np.argmax(self.dual_values))].multipliers,
            answers=play.answers,
        )

    def _upper(self, weights: FloatArray, objectives: FloatArray, violations: FloatArray) -> float:
        violation = weights @ violations
        return upper(float(weights @ objectives), violation, self.learner.worst_multipliers(violation))

    def _mixtures(
        self, objectives: FloatArray, violations: FloatArray, solve_program: bool
    ) -> Iterator[tuple[str, FloatArray]]:
        yield "uniform", np.full(objectives.size, 1.0 / objectives.size)
        if self.weighting == "best" and self.finite:
            newest = objectives.size - 1
            self.stale |= self.distinct.setdefault(self.played.rows[-1].tobytes(), newest) == newest
            if solve_program:
                yield "linear program", self._program(objectives, violations)

    def _program(self, objectives: FloatArray, violations: FloatArray) -> FloatArray:
        """(t,) the weights of the linear program."""
        if self.stale:
            self.stale = False
            kept = np.array(list(self.distinct.values()))
            bounds = np.array([self.learner.worst_multipliers(unit) @ unit for unit in np.eye(violations.shape[1])])
            self.solved = kept, best_mixture(objectives[kept], violations[kept], bounds).weights
        weights = np.zeros(objectives.size)
        weights[self.solved[0]] = self.solved[1]
        return weights


def _generator(seed: int, index: int, slot: int) -> np.random.Generator:
    """Return random numbers that depend on nothing but where they are used, so that a resumed run has the same."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index, slot)))


def _require_same(index: int, recorded: FloatArray, expected: FloatArray) -> None:
    if not np.array_equal(recorded, expected):
        raise CheckpointError(
            f"round {index} was recorded at multipliers {recorded}, but this run would play {expected}: "
            "the record belongs to another problem, learner or seed"
        )
