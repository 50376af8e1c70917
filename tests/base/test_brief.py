"""What is printed of large values fits on a line."""

import numpy as np
import pytest

import checkrein
from checkrein.base.brief import brief
from checkrein_studies import frozen_lake


@pytest.fixture(scope="module")
def lake():
    world = frozen_lake.lake()
    log = frozen_lake.log(world, frozen_lake.behavior(world), episodes=300, seed=0)
    problem = checkrein.Problem(log, objective="goal", constraints=[checkrein.AtMost("hole", 0.3)], discount=0.99)
    return world, problem


def test_nothing_that_is_learned_fills_the_screen(lake):
    world, problem = lake
    solution, found = checkrein.solve(problem), checkrein.learn_certified(problem)
    values = [
        world,
        problem,
        problem.dataset,
        solution,
        solution.policy,
        solution.policy.members[0],
        solution.rounds[0],
    ]
    values += [found, found.policy, found.candidates[0], found.certificate]
    for value in values:
        for text in (repr(value), str(value)):
            assert "\n" not in text, text
            assert len(text) < 600, text
    assert repr(solution).startswith("Solution(converged, gap ")
    assert "hole 0.03" in repr(solution)
    assert repr(found.certificate).startswith("Certificate(pass: hole: its upper bound ")
    assert repr(found).startswith("CertifiedPolicy(Candidate(")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.1235"),
        (np.array([0.5, 1.0]), "[0.5, 1]"),
        (np.zeros((3, 4)), "<3 x 4 float64>"),
        (np.zeros(7), "<7 float64>"),
        (("a", 1), "('a', 1)"),
        (list(range(9)), "<9 of int>"),
        ({"a": 1.0}, "{a: 1}"),
        (checkrein.TabularPolicy(np.full((9, 2), 0.5)), "TabularPolicy(table=<9 x 2 float64>)"),
        (checkrein.Tabular, repr(checkrein.Tabular)),
    ],
)
def test_values_are_shown_in_a_few_words(value, text):
    assert brief(value) == text
