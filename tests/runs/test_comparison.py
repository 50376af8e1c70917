"""Policies that a report compares, where one of them cannot be valued on a part of the log."""

from types import SimpleNamespace

import numpy as np
import pytest

from checkrein import FQE, AtMost, KLDivergence, Problem, Switching, Tabular, TabularPolicy
from checkrein.base.errors import ProblemError
from checkrein.evaluation.behavior_value import behavior_of
from checkrein.policies import behavior_policy
from checkrein.runs.comparison import judge
from contracts.worlds import BEHAVIOR, DISCOUNT, MDP, census
from problems import random_log


def problem_with(reference):
    limit = AtMost(KLDivergence(reference), 1.0)
    return Problem(census(), objective="c", constraints=[limit], discount=DISCOUNT)


def test_an_infinite_divergence_on_one_part_is_a_warning_and_the_other_part_still_tells():
    seldom = np.array(BEHAVIOR.table)
    seldom[1] = 1.0, 0.0
    learn = SimpleNamespace(seed=0, closed_form=True)
    parts = {"problem": problem_with(BEHAVIOR), "held_out": problem_with(TabularPolicy(seldom))}
    prepared = SimpleNamespace(file=SimpleNamespace(learn=learn), **parts)
    trouble = []
    judged = judge(prepared, TabularPolicy.uniform(MDP.n_states, MDP.n_actions), FQE(Tabular()), trouble)
    assert judged.learning is not None
    assert judged.held_out is None
    assert "their KL divergence is infinite" in trouble[0]


def test_behavior_is_near_itself_in_states_that_only_a_cut_off_row_or_another_past_begins_in():
    limits = [AtMost(KLDivergence(), 1.0), AtMost(Switching(), 1.0)]
    problem = Problem(
        random_log(0, episodes=6, max_steps=4, ending=0.1), objective="c", constraints=limits, discount=0.9
    )
    evaluator = FQE(Tabular())
    with pytest.raises(ProblemError, match="their KL divergence is infinite"):
        evaluator(problem, behavior_policy(problem.transitions), rng=np.random.default_rng(0))
    assert np.isfinite(evaluator(problem, behavior_of(problem), rng=np.random.default_rng(0)).row).all()
