import numpy as np
import pytest

from checkrein import (
    LSPI,
    LSTDQ,
    CuttingPlane,
    ExponentiatedGradient,
    Linear,
    OneHot,
    OnlineGradientDescent,
    rounds,
    solve,
)
from checkrein.base.errors import ArgumentError
from checkrein.theory import (
    exponentiated_gradient_gap,
    exponentiated_gradient_rounds,
    online_gradient_descent_gap,
)
from problems import PLAYERS, binding_limits, exact_problem, random_mdp

MDPS = [(m, seed) for m in (1, 3, 8) for seed in range(3)]


def problem_for(m, seed, tightness=0.5):
    mdp = random_mdp(seed, n_constraints=m)
    limits = binding_limits(mdp, tightness=tightness)
    return mdp, limits, exact_problem(mdp, limits)


@pytest.mark.parametrize(("m", "seed"), MDPS)
def test_cutting_planes_close_the_gap_within_ten_rounds_per_multiplier(m, seed):
    mdp, limits, problem = problem_for(m, seed, tightness=(0.3, 0.5, 0.7)[seed])
    best = mdp.optimum(objective="c", constraints=limits)
    assert max(best.multipliers.values()) > 0.01  # a limit binds
    solution = solve(problem, **PLAYERS, learner=CuttingPlane(20.0), tolerance=1e-5, max_rounds=10 * (m + 1))
    assert solution.status == "converged"
    assert solution.gap <= 1e-5
    exact = mdp.values(solution.policy)
    assert exact["c"] == pytest.approx(best.values["c"], abs=1e-4)
    assert max(exact[limit.cost] - limit.limit for limit in limits) <= 1e-6
    assert solution.values == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("seeds", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_asking_at_the_centre_saves_rounds(seeds):
    taken = dict.fromkeys((True, False), 0)
    for seed in range(seeds):
        _, _, problem = problem_for(8, seed)
        for central in taken:
            learner = CuttingPlane(20.0, central=central)
            taken[central] += len(solve(problem, **PLAYERS, learner=learner, tolerance=1e-5, max_rounds=200).rounds)
    assert taken[True] < 0.75 * taken[False]


@pytest.mark.parametrize(("m", "seed"), MDPS)
def test_exponentiated_gradient_stays_under_the_theorems_bound_at_every_round(m, seed):
    mdp, limits, problem = problem_for(m, seed)
    bound = 2 * sum(mdp.optimum(objective="c", constraints=limits).multipliers.values())
    reach = 1 / (1 - mdp.discount)  # costs lie in [0, 1], so values and limits lie in [0, reach]
    learner = ExponentiatedGradient.for_gap(0.5 * reach, bound=bound, constraint_range=reach)
    game = rounds(problem, **PLAYERS, learner=learner, weighting="uniform")
    for _ in range(60):
        current = next(game)
        allowed = exponentiated_gradient_gap(
            rounds=current.index, bound=bound, rate=learner.rate, n_constraints=m, constraint_range=reach
        )
        assert 0 <= current.gap <= allowed


def test_the_theorems_rate_reaches_its_gap_in_the_theorems_rounds():
    mdp, limits, problem = problem_for(1, 0)
    bound = 2 * sum(mdp.optimum(objective="c", constraints=limits).multipliers.values())
    reach = max(limits[0].limit, 1 / (1 - mdp.discount) - limits[0].limit)
    needed = exponentiated_gradient_rounds(gap=6.0, bound=bound, n_constraints=1, constraint_range=reach)
    learner = ExponentiatedGradient.for_gap(6.0, bound=bound, constraint_range=reach)
    played = solve(problem, **PLAYERS, learner=learner, tolerance=6.0, max_rounds=needed, weighting="uniform").rounds
    assert played[-1].gap <= 6.0
    assert len(played) <= needed


def test_online_gradient_descent_stays_under_its_bound_too():
    mdp, limits, problem = problem_for(3, 0)
    prices = mdp.optimum(objective="c", constraints=limits).multipliers.values()
    bound, reach = 2 * float(np.linalg.norm(list(prices))), 1 / (1 - mdp.discount)
    learner = OnlineGradientDescent.for_gap(reach, bound=bound, constraint_range=reach, n_constraints=3)
    game = rounds(problem, **PLAYERS, learner=learner, weighting="uniform")
    for _ in range(60):
        current = next(game)
        assert current.gap <= online_gradient_descent_gap(
            rounds=current.index, bound=bound, rate=learner.rate, n_constraints=3, constraint_range=reach
        )


@pytest.mark.parametrize(("m", "seed"), [(1, 0), (3, 1), (8, 2)])
def test_gradient_descent_with_lspi_on_one_hot_features_finds_the_same_optimum(m, seed):
    mdp, limits, problem = problem_for(m, seed)
    best = mdp.optimum(objective="c", constraints=limits)
    one_hot = Linear(OneHot(mdp.n_states))
    learner = OnlineGradientDescent(2 * float(np.linalg.norm(list(best.multipliers.values()))), 0.02)
    solution = solve(
        problem,
        best_response=LSPI(one_hot),
        evaluator=LSTDQ(one_hot),
        learner=learner,
        tolerance=1e-2,
        max_rounds=400,
    )
    assert solution.status == "converged"
    exact = mdp.values(solution.policy)
    assert exact["c"] == pytest.approx(best.values["c"], abs=1e-2)
    assert max(exact[limit.cost] - limit.limit for limit in limits) <= 1e-2


def test_the_papers_first_multipliers_are_equal_shares():
    learner = ExponentiatedGradient(30.0, 50.0)
    assert learner.multipliers(learner.init(1)).tolist() == [15.0]
    assert learner.multipliers(learner.init(2)).tolist() == [10.0, 10.0]


def test_exponents_that_would_overflow_do_not():
    class Huge:
        violation = np.array([1e6])

    learner = ExponentiatedGradient(30.0, 50.0)
    assert learner.multipliers(learner.update(learner.init(1), Huge())).tolist() == [30.0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ExponentiatedGradient(0.0, 1.0), "bound is 0.0"),
        (lambda: ExponentiatedGradient(1.0, float("nan")), "rate is nan"),
        (lambda: OnlineGradientDescent(-1.0, 1.0), "bound is -1.0"),
        (lambda: CuttingPlane(float("inf")), "bound is inf"),
        (lambda: CuttingPlane(1.0, scales=(1.0, 0.0)), r"scales\[1\] is 0.0"),
        (lambda: CuttingPlane(1.0, scales=(1.0,)).bounds(2), "1 scales, but 2 constraints"),
        (lambda: ExponentiatedGradient.for_gap(0.0, bound=1.0, constraint_range=1.0), "gap is 0.0"),
    ],
)
def test_parameters_outside_their_range_are_refused(build, message):
    with pytest.raises(ArgumentError, match=message):
        build()
