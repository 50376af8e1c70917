import re

import numpy as np
import pytest

from checkrein import (
    FQE,
    AtMost,
    Disagreement,
    EverEntered,
    KLDivergence,
    Problem,
    StateActionCost,
    Tabular,
    TabularPolicy,
    TotalVariation,
)
from checkrein.base.errors import ArgumentError, CheckreinError, ProblemError
from problems import random_log

LOG = random_log(0, episodes=100)
UNIFORM = TabularPolicy.uniform(LOG.n_states, LOG.n_actions)


class Gives:
    """Something that answers with what it was made with."""

    def __init__(self, probabilities):
        self.given = probabilities

    def probabilities(self, states):
        return self.given if self.given is None or np.ndim(self.given) == 2 else np.tile(self.given, (len(states), 1))


def stated(cost):
    return Problem(LOG, objective="c", constraints=[AtMost(cost, 1.0)], discount=0.9)


WRONG = {
    "a number for a reference": (lambda: KLDivergence(3.0), "the reference is 3.0, which gives no probabilities"),
    "another word": (lambda: KLDivergence("expert"), "the reference is 'expert', which gives no probabilities"),
    "a class": (
        lambda: TotalVariation(TabularPolicy),
        "the reference is the class TabularPolicy",
    ),
    "too few actions": (lambda: KLDivergence(TabularPolicy.uniform(6, 2)), "but the log has 3 actions"),
    "too few states": (lambda: KLDivergence(TabularPolicy.uniform(2, 3)), "the table has only 2 states"),
    "sums": (lambda: TotalVariation(Gives([0.5, 0.2, 0.2])), "must not be negative and must sum to 1"),
    "not a number": (lambda: KLDivergence(Gives([np.nan, 0.5, 0.5])), "must sum to 1"),
    "an expert without probabilities": (
        lambda: Disagreement(object()),
        "the expert is .*, which gives no",
    ),
    "a word for an expert": (
        lambda: Disagreement("behavior"),
        "the expert is 'behavior', which gives no",
    ),
    "an expert that gives none": (lambda: Disagreement(Gives([0.0, 0.0, 0.0])), "the expert gives .* in state 0"),
    "an expert that is nowhere known": (lambda: Disagreement([-1] * 6), "the expert is not known in any state"),
    "an expert of too few states": (lambda: Disagreement([0, 1]), "given for 2 of the log's 6 states"),
    "an expert of other actions": (lambda: Disagreement([0, 1, 9, 0, 0, 0]), "the expert takes action 9 in state 2"),
    "fractions for actions": (lambda: Disagreement([0.5] * 6), "must be whole numbers"),
    "a loss of other actions": (lambda: Disagreement(UNIFORM, np.zeros((2, 2))), r"the loss is \(2, 2\)"),
    "lists of uneven length": (lambda: StateActionCost([[1, 2], [3]]), "a table of costs cannot be read as an array"),
    "words for a loss": (lambda: Disagreement(UNIFORM, [["a"]]), "the loss must be numbers"),
    "a ragged loss": (lambda: Disagreement(UNIFORM, np.zeros((2, 3))), "the loss must be a finite"),
    "no states": (lambda: EverEntered(set()), "the set of states is empty"),
    "no condition": (lambda: EverEntered(3.5), "the condition is 3.5: give a set of finite states"),
    "no column": (lambda: EverEntered("lactate > 2"), "names 'lactate': the log has c, g0, g1 .its state columns"),
    "no expression": (lambda: EverEntered("c >>> 2"), "is no cost of the log, and is not a SQL expression"),
    "no truth": (lambda: EverEntered("c || 'a'"), "cannot be computed: casting from"),
    "a strange answer": (lambda: EverEntered(lambda _: np.ones(3)), "it must give one truth value for each"),
    "a table of another size": (lambda: StateActionCost(np.zeros((6, 2))), "the log has 6 states and 3 actions"),
    "a table that is none": (lambda: StateActionCost(np.zeros(6)), r"numbers of shape \(S, A\)"),
    "a function of another shape": (lambda: StateActionCost(lambda *_: np.zeros(2)), "one finite number for each"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_named(mistake):
    make, words = WRONG[mistake]
    with pytest.raises(CheckreinError, match=words):
        FQE(Tabular())(stated(make()), UNIFORM, rng=np.random.default_rng(0))


def test_a_reference_with_zeros_where_the_policy_acts_is_named_with_state_and_action():
    never = TabularPolicy(np.tile([0.5, 0.5, 0.0], (LOG.n_states, 1)))
    problem = stated(KLDivergence(never))
    words = re.escape("the policy takes action 2 with probability 0.333 in state 0, where the reference never does")
    with pytest.raises(ProblemError, match=words):
        FQE(Tabular())(problem, UNIFORM, rng=np.random.default_rng(0))


def test_a_reference_that_does_nothing_of_what_was_logged_is_named_before_anything_is_learned():
    log = LOG.select((LOG.states != 3) | (LOG.actions == 1))
    limit = AtMost(KLDivergence(TabularPolicy(np.eye(3)[[0, 0, 0, 2, 0, 0]])), 1.0)
    with pytest.raises(ProblemError, match="no probability to any action that was logged in state 3"):
        Problem(log, objective="c", constraints=[limit], discount=0.9)


def test_a_cost_that_has_not_seen_a_log_says_so():
    with pytest.raises(ArgumentError, match="KLDivergence does not know its reference yet: state a Problem with it"):
        KLDivergence().per_step(LOG, UNIFORM)
