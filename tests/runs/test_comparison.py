"""Policies that a report compares, where one of them cannot be valued on a part of the log."""

from types import SimpleNamespace

import numpy as np

from checkrein import FQE, AtMost, KLDivergence, Problem, Tabular, TabularPolicy
from checkrein.runs.comparison import judge
from contracts.worlds import BEHAVIOR, DISCOUNT, MDP, census


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
