"""Rare events, the half of the families that settings are decided on: each draws a world by seed."""

import numpy as np

from checkrein import AtLeast, AtMost
from rare_worlds import Charge, World, at, ending, good, grid, killing, mdp_of, scattered, soft


def loguniform(rng: np.random.Generator, low: float, high: float, shape: tuple[int, ...]) -> np.ndarray:
    return np.exp(rng.uniform(np.log(low), np.log(high), shape))


def _field(seed: int, side: int, factor: float, episodes: int) -> World:
    rng = np.random.default_rng([seed, 1])
    middle = side // 2 * side
    goal = middle + side - 1
    moves = grid(side, side, goal, slip=0.1)
    n = len(moves)
    row, column = np.divmod(np.arange(n), side)
    inner = (row > 0) & (row < side - 1) & (column > 0) & (column < side - 1)
    share = np.where(inner, 0.6, 0.1)[:, None]  # of moves that may kill: the straight way is the risky one
    kills = np.where(rng.random((n, 4)) < share, loguniform(rng, 0.003, 0.1, (n, 4)), 0.0)
    moves = killing(moves, kills)
    charges = {"goal": Charge(moving=-at(n, goal)), "death": Charge(moving=at(n, n - 1))}
    mdp = mdp_of(moves, charges, at(n, middle), 0.96)
    behavior = soft(mdp, {"goal": 1.0, "death": 1.0}, temperature=1.0, chance=0.1)
    limit = factor * max(good(mdp, {"goal": 1.0, "death": 5.0})["death"], 0.005)
    return World(mdp, charges, behavior, "goal", (AtMost("death", limit, range=(0, 1)),), episodes, 100)


def field(seed: int) -> World:
    """Cross a field; in its middle, most moves kill with probability .003 to .1; the limit is near."""
    return _field(seed, 6, 1.2, 4000)


def field_far(seed: int) -> World:
    """Cross a smaller one under a limit three times what a good policy needs, with half the episodes."""
    return _field(seed, 5, 3.0, 2000)


def minefield(seed: int) -> World:
    """Cross a square from corner to corner, two fifths of its cells mined; behavior knows its way and seldom leaves it.

    What is seldom logged and has not killed yet looks safer than all that is known.
    """
    rng = np.random.default_rng([seed, 8])
    side = 7
    goal = side * side - 1
    moves = grid(side, side, goal, slip=0.1)
    n = len(moves)
    mined = rng.random(n) < 0.4
    mined[[0, goal]] = False
    moves = killing(moves, moves @ np.where(mined, loguniform(rng, 0.003, 0.1, (n,)), 0.0))
    charges = {"goal": Charge(moving=-at(n, goal)), "death": Charge(moving=at(n, n - 1))}
    mdp = mdp_of(moves, charges, at(n, 0), 0.97)
    behavior = soft(mdp, {"goal": 1.0, "death": 0.3}, temperature=0.35, chance=0.15)
    limit = 1.2 * max(good(mdp, {"goal": 1.0, "death": 1.0})["death"], 0.008)
    return World(mdp, charges, behavior, "goal", (AtMost("death", limit, range=(0, 1)),), 4000, 100)


def machine(seed: int) -> World:
    """Run a machine slow or fast, grease it or replace it: breakdowns get likelier with wear, .001 to .1."""
    rng = np.random.default_rng([seed, 2])
    levels = 15
    wear = np.arange(levels)
    rate = 0.001 * np.exp(wear * rng.uniform(0.22, 0.34)) * rng.uniform(0.6, 1.6, levels)
    worse = np.minimum(wear + 1, levels - 1)
    moves = np.zeros((levels, 4, levels))
    quick = rng.uniform(0.55, 0.8)
    for action, wearing in ((0, 0.35), (1, quick)):
        moves[wear, action, worse] += wearing
        moves[wear, action, wear] += 1 - wearing
    moves[wear, 2, np.maximum(wear - 2, 0)] = 1.0
    moves[wear, 3, 0] = 1.0
    breaks = np.stack([rate, np.minimum(1.7 * rate, 0.2), 0.3 * rate, 0 * rate], axis=1)
    running = breaks[:, :, None] * at(levels, 0) + (1 - breaks)[:, :, None] * moves
    moves = ending(running, 0.04)
    n = levels + 1
    broken = np.zeros((n, 4, 1))
    broken[:levels, :, 0] = breaks  # whatever follows: the shift may end in the same step
    output = np.zeros((n, 4))
    output[:levels] = [-1.0, -1.5, 0.3, 2.5]
    charges = {"loss": Charge(fixed=output), "breakdown": Charge(amounts=(1.0,), chances=broken)}
    mdp = mdp_of(moves, charges, at(n, 0), 0.98)
    behavior = soft(mdp, {"loss": 1.0, "breakdown": 15.0}, temperature=1.0, chance=0.15)
    limit = 1.1 * good(mdp, {"loss": 1.0, "breakdown": 30.0})["breakdown"]
    return World(mdp, charges, behavior, "loss", (AtMost("breakdown", limit),), 1500, 80)


def dosing(seed: int) -> World:
    """Choose one of four doses for six steps; toxicity of grade .3 or 1 is rare and depends on dose and frailty."""
    rng = np.random.default_rng([seed, 3])
    frailties, burdens, doses = 5, 6, 4
    n = frailties * burdens
    frailty, burden = np.divmod(np.arange(n), burdens)
    dose = np.arange(doses)
    better = np.clip(0.1 + 0.22 * dose + rng.normal(0, 0.04, (n, doses)), 0.02, 0.9)
    moves = np.zeros((n, doses, n))
    for s in range(n):
        up, down = s + (burden[s] < burdens - 1), s - (burden[s] > 0)
        for a in dose:
            moves[s, a, down] += better[s, a]
            moves[s, a, up] += 0.35 * (1 - better[s, a])
            moves[s, a, s] += 0.65 * (1 - better[s, a])
    moves = ending(moves, 0.16)
    rate = 0.001 * np.exp(0.65 * frailty[:, None] + 0.75 * dose) * loguniform(rng, 0.5, 2.0, (n, doses))
    rate = np.minimum(rate * (dose > 0), 0.1)
    grades = np.zeros((n + 1, doses, 2))
    grades[:n] = np.stack([0.7 * rate, 0.3 * rate], axis=2)
    disease = np.zeros((n + 1, doses))
    disease[:n] = (burden / (burdens - 1))[:, None] + 0.02 * dose
    charges = {"disease": Charge(fixed=disease), "harm": Charge(amounts=(0.3, 1.0), chances=grades)}
    start = np.zeros(n + 1)
    start[:n] = (burden >= 2) / (burden >= 2).sum()
    mdp = mdp_of(moves, charges, start, 0.95)
    behavior = soft(mdp, {"disease": 1.0, "harm": 3.0}, temperature=1.2, chance=0.1)
    limit = 2.5 * good(mdp, {"disease": 1.0, "harm": 10.0})["harm"]
    return World(mdp, charges, behavior, "disease", (AtMost("harm", limit),), 1500, 30)


def infection(seed: int) -> World:
    """Treat ten grades of illness; a line infects with probability .001 to .03, and only the days after it cost."""
    rng = np.random.default_rng([seed, 4])
    grades, actions = 10, 3
    ward, intensive = range(grades, grades + 4), range(grades + 4, grades + 8)
    home, n = grades + 8, grades + 9
    moves = np.zeros((n, actions, n))
    jump = np.stack(
        [0 * np.ones(grades), loguniform(rng, 0.001, 0.008, (grades,)), loguniform(rng, 0.004, 0.03, (grades,))]
    )
    for g in range(grades):
        for a in range(actions):
            cure = np.clip(0.25 + 0.17 * a + rng.normal(0, 0.05), 0.1, 0.8)
            stay = 1 - jump[a, g]
            moves[g, a, home if g == 0 else g - 1] += stay * cure
            moves[g, a, g] += stay * (1 - cure) * 0.7
            moves[g, a, min(g + 1, grades - 1)] += stay * (1 - cure) * 0.3
            moves[g, a, ward[0]] += jump[a, g]
    for i, day in enumerate(ward):
        moves[day, :, ward[i + 1] if i < 3 else 2] = np.array([0.6, 0.7, 0.8])[:, None].T
        moves[day, :, intensive[0]] += np.array([0.4, 0.3, 0.2])
    for i, day in enumerate(intensive):
        moves[day, :, intensive[i + 1] if i < 3 else 4] = 1.0
    days, costly = np.zeros((n, actions)), np.zeros((n, actions))
    days[:home], costly[list(ward)], costly[list(intensive)] = 1.0, 0.3, 1.0
    charges = {"days": Charge(fixed=days), "intensive": Charge(fixed=costly)}
    start = np.zeros(n)
    start[:grades] = 1 / grades
    mdp = mdp_of(moves, charges, start, 0.98)
    behavior = soft(mdp, {"days": 1.0, "intensive": 1.0}, temperature=1.2, chance=0.15)
    limit = 1.15 * good(mdp, {"days": 1.0, "intensive": 8.0})["intensive"]
    return World(mdp, charges, behavior, "days", (AtMost("intensive", limit),), 1500, 80)


def pairs(seed: int) -> World:
    """Walk at random among 24 states; every pair has a harm rate of its own, drawn from a skewed Beta."""
    rng = np.random.default_rng([seed, 5])
    n, actions = 24, 4
    moves = ending(scattered(rng, (n, actions), 4), 0.12)
    rates = np.zeros((n + 1, actions, 1))
    rates[:n, :, 0] = rng.beta(0.35, 14.0, (n, actions))
    cost = np.zeros((n + 1, actions))
    cost[:n] = rng.beta(1.0, 1.0, (n, actions))
    charges = {"cost": Charge(fixed=cost), "harm": Charge(amounts=(1.0,), chances=rates)}
    mdp = mdp_of(moves, charges, at(n + 1, 0), 0.97)
    behavior = soft(mdp, {"cost": 1.0, "harm": 5.0}, temperature=1.0, chance=0.2)
    limit = 0.75 * mdp.values(behavior)["harm"]
    return World(mdp, charges, behavior, "cost", (AtMost("harm", limit),), 2000, 80)


def contexts(seed: int) -> World:
    """Choose once, in 60 contexts of which some are seldom seen, among four actions whose harms are rare."""
    rng = np.random.default_rng([seed, 6])
    n, actions = 60, 4
    moves = ending(np.zeros((n, actions, n)), 1.0)
    boldness = np.linspace(0.0, 1.0, actions)
    rates = np.zeros((n + 1, actions, 1))
    rates[:n, :, 0] = rng.beta(0.4, 12.0, (n, actions)) * (0.3 + boldness)
    gain = np.zeros((n + 1, actions))
    gain[:n] = -0.5 * boldness - 0.5 * rng.random((n, actions))
    charges = {"loss": Charge(fixed=gain), "harm": Charge(amounts=(1.0,), chances=rates)}
    start = np.append(rng.permutation(1.0 / np.arange(1, n + 1) ** 0.9), 0.0)
    mdp = mdp_of(moves, charges, start / start.sum(), 1.0)
    behavior = soft(mdp, {"loss": 1.0, "harm": 2.0}, temperature=1.5, chance=0.2)
    limit = 1.05 * mdp.values(behavior)["harm"] if seed % 2 else 0.6 * mdp.values(behavior)["harm"]
    return World(mdp, charges, behavior, "loss", (AtMost("harm", limit, range=(0, 1)),), 2500, 2)


def cures(seed: int) -> World:
    """Spend as little as possible while a rare cure is reached at least .05 of the time or so (a benefit)."""
    rng = np.random.default_rng([seed, 7])
    n, actions = 20, 3
    moves = scattered(rng, (n, actions), 3)
    rates = loguniform(rng, 0.001, 0.02, (n, 1)) * np.array([0.1, 1.0, 2.0]) * loguniform(rng, 0.4, 2.5, (n, actions))
    moves = ending(moves, 0.1, ends=2)
    total = n + 2
    cured = np.zeros((total, actions))
    cured[:n] = np.minimum(rates, 0.1)
    moves = killing(moves, cured)
    price = np.zeros((total, actions))
    price[:n] = np.array([0.0, 0.5, 1.0]) + 0.3 * rng.random((n, actions))
    charges = {"price": Charge(fixed=price), "cure": Charge(moving=at(total, total - 1))}
    start = np.zeros(total)
    start[:n] = 1 / n
    mdp = mdp_of(moves, charges, start, 1.0)
    behavior = soft(mdp, {"price": 1.0, "cure": -40.0}, temperature=1.0, chance=0.2)
    limit = 0.95 * mdp.values(behavior)["cure"]
    return World(mdp, charges, behavior, "price", (AtLeast("cure", limit, range=(0, 1)),), 2500, 80)


DEVELOPMENT = {
    "field": field,
    "field-far": field_far,
    "minefield": minefield,
    "machine": machine,
    "dosing": dosing,
    "infection": infection,
    "pairs": pairs,
    "contexts": contexts,
    "cures": cures,
}
