"""A grid world with 63 limits, one for each cell, whose prices are not unique: the ball alone ends them."""

import numpy as np
import pytest

from checkrein import AtMost, CuttingPlane, TabularMDP, solve
from problems import PLAYERS, exact_problem

SIDE, BOUND = 8, 50.0
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
CELLS = SIDE * SIDE - 1  # the last one is the goal


def grid_world():
    """Walk from one corner to the other, slipping aside at times; each cell's visits are a cost."""
    transitions = np.zeros((SIDE**2, 4, SIDE**2))
    for x, y in np.ndindex(SIDE, SIDE):
        for action in range(4):
            for turned, chance in ((0, 0.8), (1, 0.1), (3, 0.1)):
                dx, dy = STEPS[(action + turned) % 4]
                there = np.clip(x + dx, 0, SIDE - 1) * SIDE + np.clip(y + dy, 0, SIDE - 1)
                transitions[x * SIDE + y, action, there] += chance
    transitions[-1] = 0.0
    visits = np.repeat(np.eye(SIDE**2)[:, :, None], 4, axis=2)
    walk = visits[:CELLS].sum(axis=0)
    costs = {"c": walk} | {f"cell {s}": visits[s] for s in range(CELLS)}
    return TabularMDP(transitions, costs, np.eye(SIDE**2)[0], 0.95)


MDP = grid_world()


def test_a_price_that_only_the_ball_ends_is_said_to_be_one():
    """Nobody leaves the first cell sooner: any price of its limit is optimal, and none is special."""
    least = MDP.optimum(objective="cell 0").values["cell 0"]
    limits = [AtMost("cell 0", least), *(AtMost(f"cell {s}", 3.0) for s in range(1, CELLS))]
    solution = solve(exact_problem(MDP, limits), learner=CuttingPlane(BOUND), tolerance=1e-6, max_rounds=100, **PLAYERS)
    best = MDP.optimum(objective="c", constraints=limits).values["c"]
    assert solution.values["c"] == pytest.approx(best, abs=1e-6)
    low, high = solution.price_ranges["cell 0"]
    assert low <= solution.multipliers["cell 0"] <= high
    assert high == pytest.approx(BOUND)
    charged = TabularMDP(MDP.transitions, {"L": MDP.costs["c"] + high * MDP.costs["cell 0"]}, MDP.initial, MDP.discount)
    assert charged.optimum(objective="L").values["L"] - high * least == pytest.approx(best, abs=1e-6)  # it is optimal
    assert f"The price of cell 0 is not unique: between {low:.4g} and 50" in solution.explanation
    assert "the learner's bound allows" in solution.explanation
    others = [solution.price_ranges[f"cell {s}"] for s in range(1, CELLS)]
    assert max(end for _, end in others) < 1e-3  # their limits do not bind


def test_every_exact_price_of_binding_cells_lies_in_its_range():
    free = MDP.optimum(objective="c").occupancy.sum(axis=1)
    limits = [AtMost(f"cell {s}", max(0.25, 0.9 * free[s]) if s else 2.0) for s in range(CELLS)]
    exact = MDP.optimum(objective="c", constraints=limits)
    solution = solve(exact_problem(MDP, limits), learner=CuttingPlane(BOUND), tolerance=1e-6, max_rounds=200, **PLAYERS)
    assert solution.values["c"] == pytest.approx(exact.values["c"], abs=1e-6)
    assert sum(price > 1e-4 for price in exact.multipliers.values()) >= 3
    for name, (low, high) in solution.price_ranges.items():
        assert low - 1e-6 <= exact.multipliers[name] <= high + 1e-6
        assert low <= solution.multipliers[name] <= high
