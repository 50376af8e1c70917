import numpy as np
import pytest

from checkrein.certification.intervals import bootstrap_t, bootstraps_t
from checkrein.evaluation import draws as module
from checkrein.evaluation.draws import draws, draws_in_blocks, draws_of_alike


def rng(seed=0):
    return np.random.default_rng(seed)


def test_blocks_are_the_same_replicates_as_all_at_once(monkeypatch):
    whole = draws(50, 101, rng())
    assert [len(block) for block in draws_in_blocks(50, 101, rng())] == [101]
    monkeypatch.setattr(module, "AT_ONCE", 1000)
    monkeypatch.setattr(module, "BLOCK", 500)
    blocks = list(draws_in_blocks(50, 101, rng()))
    assert [len(block) for block in blocks] == [10] * 10 + [1]
    assert np.array_equal(np.concatenate(blocks), whole)


def test_bounds_do_not_depend_on_blocks(monkeypatch):
    scores, weights = rng(1).exponential(size=(80, 2)), rng(2).uniform(1, 2, 80)
    whole = bootstrap_t(scores, weights, draws(80, 500, rng()), 0.05)
    monkeypatch.setattr(module, "AT_ONCE", 1000)
    monkeypatch.setattr(module, "BLOCK", 800)
    (found,) = bootstraps_t([scores], weights, draws_in_blocks(80, 500, rng()), 0.05)
    for mine, theirs in zip(found, whole, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)


def test_units_that_are_alike_are_drawn_together_and_bounds_are_as_wide(monkeypatch):
    scores = rng(3).choice([0.0, -0.0, 1.0, 5.0], 1500, p=[0.4, 0.4, 0.15, 0.05])[:, None]
    weights = np.ones(1500)
    apart = bootstrap_t(scores, weights, draws(1500, 2000, rng()), 0.05)
    monkeypatch.setattr(module, "AT_ONCE", 1000)
    drawn, blocks = draws_of_alike(np.column_stack([scores, weights]), 2000, rng(1))
    assert drawn is not None
    assert sorted(scores[drawn, 0]) == [0, 1, 5]
    kept = list(blocks)
    assert all((block.sum(axis=1) == 1500).all() for block in kept)
    (together,) = bootstraps_t([scores], weights, kept, 0.05, drawn=drawn)
    assert together.estimates == pytest.approx(apart.estimates)
    assert together.standard_errors == pytest.approx(apart.standard_errors)
    error = float(apart.standard_errors[0])
    assert together.upper == pytest.approx(apart.upper, abs=0.1 * error)
    assert together.lower == pytest.approx(apart.lower, abs=0.1 * error)


def test_units_that_differ_stand_for_themselves(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 10)
    drawn, blocks = draws_of_alike(rng().normal(size=(40, 2)), 20, rng(1))
    assert drawn is None
    assert np.array_equal(np.concatenate(list(blocks)), draws(40, 20, rng(1)))
