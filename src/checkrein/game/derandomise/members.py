"""The best of the policies found, alone."""

from checkrein.base.errors import ProblemError
from checkrein.game.derandomise.single import BEST_MEMBER, MET, Derandomised, best_place, derandomised
from checkrein.game.solution import Solution
from checkrein.problem import Question


def best_member(problem: Question, solution: Solution, *, tolerance: float = MET) -> Derandomised:
    """Return the best of all policies found that meets every limit by estimate, or the one that comes closest.

    tolerance: a limit exceeded by no more than this is met
    """
    found = [played for played in solution.rounds if played.finite]
    if not found:
        raise ProblemError("no policy found has finite values: there is none to choose")
    best = found[best_place(problem, [played.values for played in found], tolerance)]
    return derandomised(
        problem, solution, best.policy, best.values, kind=BEST_MEMBER, tolerance=tolerance, index=best.index
    )
