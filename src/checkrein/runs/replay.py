"""Players who answer from a record what they have answered before: a sweep that was interrupted is taken up again."""

from dataclasses import dataclass, field, replace

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.base.errors import CheckpointError
from checkrein.game.checkpoint import MAIN, Checkpoint
from checkrein.game.loop import Play, Round
from checkrein.problem import Problem, Values
from checkrein.protocols import BestResponse, Evaluator, Policy


@dataclass
class Replay:
    """A best response and an evaluator that first go through a record, then play, and record what they play."""

    record: Checkpoint
    best_response: BestResponse
    evaluator: Evaluator
    asked: int = 0
    shown: int = 0
    _now: Play | None = field(default=None, repr=False)

    def respond(
        self, problem: Problem, multipliers: FloatArray, *, rng: np.random.Generator, start: Policy | None = None
    ) -> Policy:
        """Return the recorded answer to the same question, or a new one."""
        plays = self.record.recorded[MAIN]
        self._now = plays[self.asked] if self.asked < len(plays) else None
        self.asked += 1
        if self._now is None:
            return self.best_response(problem, multipliers, rng=rng, start=start)
        if not np.array_equal(self._now.multipliers, multipliers):
            raise CheckpointError(
                f"{self.record.folder}: round {self.asked} was recorded at multipliers {self._now.multipliers}, but "
                f"this run would play {multipliers}: choose another folder"
            )
        return self._now.policy

    def value(self, problem: Problem, policy: Policy, *, rng: np.random.Generator) -> Values:
        """Return the recorded values of that answer, or new ones."""
        return self.evaluator(problem, policy, rng=rng) if self._now is None else self._now.values

    def played(self, one: Round) -> None:
        """Record a round, unless it was replayed."""
        self.shown += 1
        if self.shown > len(self.record.recorded[MAIN]):
            self.record.append(MAIN, replace(one, index=self.shown))
