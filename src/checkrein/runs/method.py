"""The method of certification that a problem file asks for."""

from dataclasses import replace

from checkrein.base.errors import ArgumentError
from checkrein.certification.bounds import LOGGED, BootstrapFQE, EpisodeScoreBound, Method, method_of
from checkrein.evaluation.known_weights import known_propensities
from checkrein.problem import Problem
from checkrein.runs.players import functions_of, light_functions
from checkrein.runs.problem_file import NO_REFITS, ProblemFile
from checkrein.runs.sections import takes_largest_weight


def method_for(file: ProblemFile, problem: Problem) -> Method:
    """Return the method that a problem file asks for, with its function class."""
    usual = None if file.learn.closed_form else "dr-studentised"
    method = method_of(file.certify.method or usual, problem)
    if isinstance(method, BootstrapFQE):
        if not file.learn.closed_form:
            raise ArgumentError(NO_REFITS.format(method=method.name, functions=file.learn.functions))
        return replace(method, functions=functions_of(file.learn))
    if not isinstance(method, EpisodeScoreBound):
        return method
    largest = file.certify.largest_weight
    if largest is None and takes_largest_weight(method.name) and known_propensities(problem) is not None:
        return replace(method, functions=light_functions(file.learn), largest_weight=LOGGED)
    return replace(method, functions=light_functions(file.learn), largest_weight=largest)


def require_declared(file: ProblemFile, problem: Problem) -> None:
    """Raise unless the method has all that it needs to be declared: what is held out is not judged in vain."""
    method = method_for(file, problem)
    if isinstance(method, EpisodeScoreBound):
        method.require_declared(problem)
