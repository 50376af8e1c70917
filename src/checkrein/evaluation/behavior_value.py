"""What behavior is worth: the sums that were logged and, where an episode was cut off, what is expected to follow.

Behavior has evidence by definition. So no support rule applies to it, and nothing is fitted where nothing was cut off.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from checkrein.base.arrays import Array, BoolArray, FloatArray, IntArray
from checkrein.base.errors import DivergenceError, EndlessPolicyError
from checkrein.bellman.iteration import default_iterations
from checkrein.bellman.targets import is_exact, state_values
from checkrein.bellman.termination import with_ends
from checkrein.costs.references import BEHAVIOR, reference_of
from checkrein.evaluation.estimate import standard_errors
from checkrein.evaluation.fqe import FQE
from checkrein.evaluation.refits import fit_influence
from checkrein.functions import Linear, Tabular
from checkrein.policies import Support, behavior_policy
from checkrein.problem import Episodes, Problem, Values
from checkrein.protocols import Policy, QFunction

ANYTHING = Support(0, 0)  # over features, what behavior seldom does is still what it does


@dataclass(frozen=True, eq=False)
class CutOff:
    """The episodes that were cut off, and where the log of each stops."""

    log: Episodes
    episodes: IntArray  # (c,) which they are
    rows: IntArray  # (c,) their last rows
    beyond: BoolArray  # (c,) whether it stops in the row's next state, or in its own: the next one is not known

    @classmethod
    def of(cls, log: Episodes) -> "CutOff":
        """Find them."""
        episodes = np.flatnonzero(~log.ended)
        rows = log.last[episodes]
        return cls(log, episodes, rows, log.next_observed[rows])

    @property
    def factors(self) -> FloatArray:
        """(c,) how much what follows counts."""
        return np.asarray(np.where(self.beyond, self.log.discount, 1.0) * self.log.factors[self.rows])

    def values(self, of_states: Callable[[Array], FloatArray]) -> FloatArray:
        """(c, k) of the states where the log stops, by a function of states."""
        found = np.empty((self.rows.size, self.log.n_values))
        for which, states in ((self.beyond, self.log.next_states), (~self.beyond, self.log.states)):
            if which.any():
                found[which] = of_states(states[self.rows[which]])
        return found


def logged_to_the_end(log: Episodes) -> bool:
    """Say whether sums of the log are all there is to know of behavior: no episode was cut off, or begins elsewhere."""
    return bool(log.ended.all()) and log.problem.dataset.own_starts


def behavior_scores(log: Episodes, costs: FloatArray, following: Callable[[CutOff], FloatArray]) -> FloatArray:
    """(e, k) what episodes say of who wrote them: their own sums; where cut off, what follows besides.

    costs: (n, k) of the rows; a row that does not say what follows is not summed: its episode stops in its state
    following: values (c, k) of the states where episodes were cut off, asked for only if there are any
    """
    known = log.terminals | log.next_observed
    scores = np.asarray(log.sums((log.factors * known)[:, None] * costs))
    cut = CutOff.of(log)
    if cut.rows.size:
        scores[cut.episodes] += cut.factors[:, None] * following(cut)
    return scores


@dataclass(frozen=True, eq=False)
class BehaviorValue:
    """What behavior is worth, and what each episode says of it."""

    values: Values
    scores: FloatArray | None = None  # (e, 1 + m) whose mean that is; None without episodes, or with other starts
    log: Episodes | None = None
    following: tuple[Policy, FQE] | None = None  # what was fitted, where episodes were cut off

    @property
    def standard_errors(self) -> FloatArray | None:
        """(1 + m,) by independent units: clusters, or else episodes.

        Scores take what follows as given. Where it was fitted in closed form, what each episode adds to it counts, too.
        """
        if self.scores is None or self.log is None:
            return None
        influence = self.scores - self.values.row
        if self.following is not None:
            influence = influence + _fit_influence(CutOff.of(self.log), *self.following)
        return standard_errors(self.log.unit_means(influence), self.log.unit_weights)


def behavior_value(problem: Problem, evaluator: FQE, *, rng: np.random.Generator) -> BehaviorValue:
    """Value who wrote a problem's log: the logged mean, to which an evaluator adds what follows where it was cut off.

    In finite states a state that was never left counts at its worst, as for all policies.
    """
    if problem.dataset.n_states is None:
        evaluator = replace(evaluator, support=ANYTHING)
    if problem.dataset.episodes is None or not problem.dataset.own_starts:
        return BehaviorValue(evaluator(problem, behavior_of(problem), rng=rng))
    log = Episodes.of(problem)
    complete = logged_to_the_end(log)
    behavior = None if complete and not problem.policy_costs else behavior_of(problem)
    costs = log.row_costs if behavior is None else log.costs(behavior)
    scores = behavior_scores(log, costs, lambda cut: _following(cut, problem, evaluator, rng))
    mean = log.mean(scores)
    fitted = None if complete or behavior is None else (behavior, evaluator)
    return BehaviorValue(Values(float(mean[0]), mean[1:]), scores, log, fitted)


def _following(cut: CutOff, problem: Problem, evaluator: FQE, rng: np.random.Generator) -> FloatArray:
    """(c, 1 + m) what an evaluator expects to follow where episodes were cut off."""
    behavior = behavior_of(problem)
    q = _fitted(problem, behavior, evaluator, rng)
    evidence = with_ends(problem, behavior, evaluator.support.of(problem))
    return cut.values(lambda states: state_values(problem, behavior, q, evidence, states))


def _fit_influence(cut: CutOff, behavior: Policy, evaluator: FQE) -> FloatArray | float:
    """(e, 1 + m) what each episode adds to the fit of all that follows; 0 where no closed form tells."""
    log, dataset = cut.log, cut.log.problem.dataset
    if not isinstance(evaluator.refitted, Tabular | Linear):
        return 0.0
    ends = np.concatenate([log.next_states[cut.rows[cut.beyond]], log.states[cut.rows[~cut.beyond]]])
    weights = cut.factors * log.weights[cut.episodes]
    begun = replace(
        dataset, initial_states=ends, initial_weights=np.concatenate([weights[cut.beyond], weights[~cut.beyond]])
    )
    try:
        influence = fit_influence(replace(log.problem, dataset=begun), behavior, evaluator)
    except (
        DivergenceError,
        EndlessPolicyError,
    ):  # all of it lies where values are known without a fit, or has no limit
        return 0.0
    return 0.0 if influence is None else influence * weights.sum() / log.weights.sum()


def _fitted(problem: Problem, behavior: Policy, evaluator: FQE, rng: np.random.Generator) -> QFunction:
    """Fit behavior's Q; over features, where a closed form has no limit, as many steps ahead as matter."""
    try:
        return evaluator.q(problem, behavior, rng=rng)
    except DivergenceError:
        if problem.dataset.n_states is not None or not is_exact(problem, evaluator.functions):
            raise
    return replace(evaluator, iterations=default_iterations(problem)).q(problem, behavior, rng=rng)


def behavior_of(problem: Problem) -> Policy:
    """Return who wrote the log, over a problem's states: what only cut-off rows begin in, or only another past, too.

    So its divergence from "behavior", which all rows and the log's own states estimate, is finite.
    """

    def estimate() -> Policy:
        never_left = None if problem.dataset.n_states is None else reference_of(BEHAVIOR, problem.dataset)
        return behavior_policy(problem.transitions, never_left=never_left)

    return problem.once("behavior", estimate)
