"""Results do not depend on where work runs."""

import numpy as np
import pytest

from checkrein import Linear, Polynomial, engine, learn_certified
from checkrein.base.errors import ArgumentError
from checkrein.engine import InProcess, Joblib
from problems import problem_of, random_log


def squared(number):
    return number**2


@pytest.mark.parametrize("where", [InProcess(), Joblib(2)], ids=["in process", "joblib"])
def test_results_keep_the_order_of_the_items(where):
    assert list(where.map(squared, range(5))) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("where", [InProcess(), Joblib(2), Joblib(7)])
@pytest.mark.parametrize("n_rows", [1, 2, 100])
def test_slices_make_up_all_rows_once(where, n_rows):
    numbers = np.arange(1.0, n_rows + 1)
    assert where.sum_rows(lambda rows: numbers[rows].sum(), n_rows) == pytest.approx(n_rows * (n_rows + 1) / 2)


def test_an_engine_is_used_inside_its_block_alone_also_where_it_ends_in_an_error():
    def fails():
        with engine.using(Joblib(2)):
            raise KeyError(engine.current().jobs)

    with pytest.raises(KeyError, match="2"):
        fails()
    assert engine.current() == InProcess()


def test_a_regression_is_the_same_in_blocks():
    rng = np.random.default_rng(0)
    states, actions, targets = rng.normal(size=(200, 2)), rng.integers(2, size=200), rng.normal(size=(200, 3))

    def fitted():
        design = Linear(Polynomial(2)).design(states, actions, np.ones(200), n_actions=2)
        return design.fit(targets, rng=rng)(states)

    here = fitted()
    with engine.using(Joblib(3)):
        assert fitted() == pytest.approx(here, rel=1e-9)


def test_what_is_certified_is_the_same_in_other_processes():
    problem = problem_of(random_log(0, episodes=120), limits=(4.0, 4.0))
    here = learn_certified(problem, folds=3, margins=(2.0, 1.0))
    with engine.using(Joblib(2)):
        there = learn_certified(problem, folds=3, margins=(2.0, 1.0))
    assert [one.certificate for one in there.candidates] == [one.certificate for one in here.candidates]
    assert here.candidates
    assert there.explanation == here.explanation


def test_jobs_are_a_number_of_them():
    with pytest.raises(ArgumentError, match="jobs"):
        Joblib(0)
