"""What is to be minimised, under which limits."""

from checkrein.problem.admissible import AdmissibleActions
from checkrein.problem.constraints import AtLeast, AtMost
from checkrein.problem.costs import LoggedCost
from checkrein.problem.episodes import Episodes
from checkrein.problem.problem import Problem
from checkrein.problem.question import Question, Values

__all__ = ["AdmissibleActions", "AtLeast", "AtMost", "Episodes", "LoggedCost", "Problem", "Question", "Values"]
