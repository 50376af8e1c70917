from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from checkrein.base.errors import ArgumentError
from checkrein.certification.intervals import (
    _joint_level,
    bernstein,
    betting,
    bootstrap_t,
    johnson_t,
    require_inside,
    standard_errors,
    student,
)
from checkrein.evaluation.draws import draws

ZERO, ONE = np.zeros(1), np.ones(1)
ERROR = 0.05


def by_t(each, alpha=ERROR, weights=None, seed=0):
    del seed
    weights = np.ones(len(each)) if weights is None else weights
    values = weights @ each / weights.sum()
    return student(values, standard_errors(each - values, weights), weights, alpha)


def by_resampling(each, alpha=ERROR, weights=None, seed=0, replicates=400):
    weights = np.ones(len(each)) if weights is None else weights
    return bootstrap_t(each, weights, drawn(len(each), replicates, seed % 10), alpha)


@lru_cache
def drawn(n, replicates, seed):
    return draws(n, replicates, np.random.default_rng(seed))


def by_bernstein(each, alpha=ERROR, seed=0):
    del seed
    return bernstein(each, ZERO, ONE, alpha)


def by_betting(each, alpha=ERROR, seed=0):
    del seed
    return betting(each, ZERO, ONE, alpha)


METHODS = {"t": by_t, "studentised": by_resampling, "bernstein": by_bernstein, "betting": by_betting}
SAMPLES = {  # draws n values, and their true mean
    "beta": (lambda rng, n: rng.beta(2, 5, n), 2 / 7),
    "rare": (lambda rng, n: 1.0 * (rng.random(n) < 0.1), 0.1),
    "even": (lambda rng, n: 1.0 * (rng.random(n) < 0.5), 0.5),
    "u-shaped": (lambda rng, n: rng.beta(0.3, 0.3, n), 0.5),
    "lognormal": (lambda rng, n: rng.lognormal(0, 1, n), np.exp(0.5)),
}


def covered(method, sample, n, runs=400):
    """How often the upper and the lower bound hold."""
    draw, mean = SAMPLES[sample]
    found = [METHODS[method](draw(np.random.default_rng(seed), n)[:, None], seed=seed) for seed in range(runs)]
    return np.mean([i.upper[0] >= mean for i in found]), np.mean([i.lower[0] <= mean for i in found])


def slack(runs=400, alpha=ERROR):
    """Three standard deviations of a share of runs."""
    return 3 * np.sqrt(alpha * (1 - alpha) / runs)


@pytest.mark.parametrize("sample", ["beta", "rare", "even", "u-shaped"])
@pytest.mark.parametrize("method", ["bernstein", "betting"])
def test_finite_sample_bounds_hold_at_least_as_often_as_they_say(method, sample):
    assert min(covered(method, sample, 25, 300)) >= 1 - ERROR - slack(300)


@pytest.mark.parametrize("sample", ["beta", "even"])
@pytest.mark.parametrize("method", ["t", "studentised"])
def test_asymptotic_bounds_hold_about_as_often_as_they_say(method, sample):
    for share in covered(method, sample, 60):
        assert share == pytest.approx(1 - ERROR, abs=slack())


def test_of_a_skewed_sample_the_studentised_bootstrap_covers_better_than_t():
    above = {method: covered(method, "lognormal", 30)[0] for method in ("t", "studentised")}
    assert above["t"] < 1 - ERROR - slack()
    assert above["t"] + 0.03 < above["studentised"]


@pytest.mark.parametrize("sample", ["beta", "rare", "even"])
def test_betting_is_tighter_than_bernstein(sample):
    draw, _ = SAMPLES[sample]
    for seed in range(20):
        each = draw(np.random.default_rng(seed), 100)[:, None]
        bet, bern = by_betting(each), by_bernstein(each)
        assert bet.upper[0] - bet.lower[0] < bern.upper[0] - bern.lower[0]


@pytest.mark.parametrize("method", METHODS)
def test_more_confidence_takes_more_room(method):
    each = np.random.default_rng(0).beta(2, 5, (40, 1))
    uppers = [METHODS[method](each, alpha).upper[0] for alpha in (0.2, 0.05, 0.01)]
    assert uppers[0] < uppers[1] < uppers[2]
    assert by_t(each).lower[0] < by_t(each).estimates[0] < by_t(each).upper[0]


def test_what_too_few_replicates_can_show_is_stretched_like_a_normal_tail():
    each = np.random.default_rng(0).standard_normal((200, 1))
    few, many = (by_resampling(each, alpha=0.002, replicates=count) for count in (1000, 20_000))
    for mine, theirs in ((few.upper, many.upper), (few.lower, many.lower)):
        assert mine - few.estimates == pytest.approx(theirs - few.estimates, rel=0.1)


def test_a_sample_of_which_many_replicates_show_no_spread_has_no_bound_on_that_side():
    each = 1.0 * (np.arange(60)[:, None] < 2)  # one replicate in seven has neither of the two
    found = by_resampling(each)
    assert found.upper[0] == np.inf
    assert 0 <= found.lower[0] < found.estimates[0]


@pytest.mark.parametrize("method", METHODS)
def test_a_mirrored_sample_has_mirrored_bounds(method):
    each = np.random.default_rng(1).beta(2, 5, (40, 1))
    plain, mirrored = METHODS[method](each), METHODS[method](1 - each)
    assert 1 - mirrored.upper == pytest.approx(plain.lower, abs=1e-9)
    assert 1 - mirrored.lower == pytest.approx(plain.upper, abs=1e-9)
    assert mirrored.standard_errors == pytest.approx(plain.standard_errors)


@pytest.mark.parametrize(("scale", "shift"), [(3.0, 0.0), (0.01, 7.0), (1e4, -3e4)])
@pytest.mark.parametrize("method", METHODS)
def test_intervals_scale_and_shift_with_the_sample(method, scale, shift):
    each = np.random.default_rng(2).beta(2, 5, (40, 2))
    low, high = np.zeros(2), np.ones(2)

    def bounds(values, low, high):
        if method in ("t", "studentised"):
            return METHODS[method](values)
        return (bernstein if method == "bernstein" else betting)(values, low, high, ERROR)

    plain = bounds(each, low, high)
    moved = bounds(shift + scale * each, shift + scale * low, shift + scale * high)
    for at in ("estimates", "lower", "upper"):
        assert getattr(moved, at) == pytest.approx(shift + scale * getattr(plain, at), rel=1e-6)
    assert moved.standard_errors == pytest.approx(scale * plain.standard_errors, rel=1e-6)


@pytest.mark.parametrize("by", [by_t, by_resampling])
def test_how_weights_are_scaled_does_not_matter_and_a_weightless_episode_counts_for_nothing(by):
    rng = np.random.default_rng(3)
    each, weights = rng.random((30, 1)), 1.0 + rng.integers(0, 3, 30)
    for mine, theirs in zip(by(each, weights=weights), by(each, weights=10 * weights), strict=True):
        assert mine == pytest.approx(theirs)
    silent = np.append(weights, 0.0)
    with_one = by(np.append(each, [[1e6]], axis=0), weights=silent)
    assert with_one.estimates == pytest.approx(by(each, weights=weights).estimates)
    assert with_one.standard_errors == pytest.approx(by(each, weights=weights).standard_errors)


@pytest.mark.parametrize("by", [by_t, by_resampling])
def test_what_never_varies_is_known_to_asymptotic_methods(by):
    each = np.column_stack([np.full(30, 0.25), np.random.default_rng(0).random(30)])
    found = by(each)
    assert [column[0] for column in found] == pytest.approx([0.25, 0.0, 0.25, 0.25])
    assert found.lower[1] < found.upper[1]
    alone = by(each[:, :1])
    assert (alone.lower, alone.upper) == (pytest.approx(0.25), pytest.approx(0.25))


@pytest.mark.parametrize("method", [by_bernstein, by_betting])
def test_what_never_varies_is_not_known_to_finite_sample_methods(method):
    found = method(np.full((30, 1), 0.25))
    assert found.lower[0] < 0.25 < found.upper[0]


@pytest.mark.parametrize("n", [20, 60, 200])
def test_betting_on_a_sample_of_zeros_gives_about_the_rule_of_three(n):
    upper = by_betting(np.zeros((n, 1))).upper[0]
    assert 1 - ERROR ** (1 / n) <= upper <= 12 / n  # the exact bound, and not many times as much


def test_finite_sample_bounds_stay_inside_the_range():
    for method in (by_bernstein, by_betting):
        for each in (np.zeros((5, 1)), np.ones((5, 1)), np.eye(5)[:, :1]):
            found = method(each)
            assert 0 <= found.lower[0] <= found.upper[0] <= 1


def test_the_joint_level_lies_between_bonferronis_and_that_of_a_single_column():
    distances = np.random.default_rng(0).standard_normal((4000, 3))
    assert ERROR / 3 <= _joint_level(distances, ERROR) <= ERROR
    assert _joint_level(distances, ERROR) == pytest.approx(1 - (1 - ERROR) ** (1 / 3), rel=0.1)
    copies = np.repeat(distances[:, :1], 3, axis=1)
    assert _joint_level(copies, ERROR) == pytest.approx(ERROR, rel=0.02)
    assert _joint_level(distances[:, :1], ERROR) == pytest.approx(ERROR, rel=0.02)


def test_copies_of_a_column_are_bounded_as_one_and_independent_columns_wider():
    rng = np.random.default_rng(0)
    each = rng.lognormal(size=(80, 3))
    one = by_resampling(each[:, :1], replicates=2000)
    copies = by_resampling(np.repeat(each[:, :1], 3, axis=1), replicates=2000)
    assert copies.upper == pytest.approx(np.repeat(one.upper, 3), rel=0.01)
    assert by_resampling(each, replicates=2000).upper[0] > one.upper[0]


def test_bounds_on_two_columns_hold_together():
    runs, held = 400, 0
    for seed in range(runs):
        each = np.random.default_rng(seed).beta(2, 5, (60, 2))
        held += (by_resampling(each, seed=seed).upper >= 2 / 7).all()
    assert held / runs == pytest.approx(1 - ERROR, abs=slack(runs))


def test_a_value_outside_the_declared_range_is_refused_by_name():
    each = np.array([[0.5, 0.2], [0.5, 1.5]])
    with pytest.raises(ArgumentError, match=r"sum of 1.5 of 'falls', above the declared range \[0, 1\]"):
        require_inside(each, np.zeros(2), np.ones(2), ["cost", "falls"])
    with pytest.raises(ArgumentError, match="-0.5 of 'falls', below"):
        require_inside(each - [[0, 0.7]], np.zeros(2), np.ones(2), ["cost", "falls"])
    require_inside(np.clip(each, 0, 1) + 1e-12, np.zeros(2), np.ones(2), ["cost", "falls"])


def test_skewness_widens_the_side_of_the_long_tail_as_far_as_its_first_correction_says():
    each = np.random.default_rng(0).exponential(size=(200, 1))
    weights, centred = np.ones(200), each - each.mean(axis=0)
    plain = student(each.mean(axis=0), standard_errors(centred, weights), weights, ERROR)
    found = johnson_t(centred, each.mean(axis=0), weights, ERROR)
    size, z = stats.skew(each[:, 0]) / np.sqrt(200), stats.t.ppf(0.95, 199)
    assert found.upper - plain.upper == pytest.approx(plain.standard_errors * size * (1 + 2 * z**2) / 6, rel=0.02)
    assert found.lower == pytest.approx(plain.lower)
    turned = johnson_t(-centred, -each.mean(axis=0), weights, ERROR)
    assert turned.lower == pytest.approx(-found.upper)


def test_skewness_mends_what_the_normal_limit_misses_of_rare_costs():
    draws_of, mean = SAMPLES["rare"]
    missed = np.zeros(2)
    for seed in range(600):
        each = draws_of(np.random.default_rng(seed), 120)[:, None]
        values, weights = each.mean(axis=0), np.ones(120)
        plain = student(values, standard_errors(each - values, weights), weights, ERROR)
        missed += [plain.upper[0] < mean, johnson_t(each - values, values, weights, ERROR).upper[0] < mean]
    assert missed[0] / 600 > 0.065
    assert missed[1] / 600 < 0.065


def test_columns_that_move_together_are_bounded_like_one():
    """Many candidates of one kind: a level for all is then that of each, however few replicates lie beyond."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 1))
    drawn, ones = draws(200, 1000, rng), np.ones(200)
    alone = bootstrap_t(scores, ones, drawn, 0.04)
    together = bootstrap_t(np.repeat(scores, 40, axis=1), ones, drawn, 0.04)
    for one, all_of_them in zip(alone, together, strict=True):
        assert all_of_them == pytest.approx(np.repeat(one, 40))


@pytest.mark.parametrize("alike", [0.0, 0.9, 0.999])
def test_of_many_columns_together_the_bounds_are_as_often_wrong_as_they_say(alike):
    """Normal means of zero: 400 samples of 30 columns each, every bound above at once."""
    rng, wrong = np.random.default_rng(1), 0
    drawn, ones = draws(100, 1000, rng), np.ones(100)
    for _ in range(400):
        common, own = rng.normal(size=(100, 1)), rng.normal(size=(100, 30))
        scores = np.sqrt(alike) * common + np.sqrt(1 - alike) * own
        wrong += bool((bootstrap_t(scores, ones, drawn, 0.05).upper < 0).any())
    assert wrong <= 36  # of 400 at 5 %, in 1 of 5,000 such tests
