"""Rare events, the half of the families that results are reported on: no setting was decided by them."""

import numpy as np

from checkrein import AtMost
from rare_worlds import Charge, World, at, ending, good, grid, killing, mdp_of, scattered, soft


def cliff(seed: int) -> World:
    """Walk along a cliff of ten cells; who slips over its edge dies, and who stays away from it loses time."""
    rng = np.random.default_rng([seed, 11])
    rows, columns = 4, 10
    goal = 3 * columns + columns - 1
    slip = rng.uniform(0.02, 0.1)
    moves = grid(rows, columns, goal, slip=slip)
    n = len(moves)
    edge = 3 * columns + np.arange(1, columns - 1)  # the lowest row: below it is the sea
    kills = np.zeros((n, 4))
    kills[edge, 2] = 0.1
    kills[np.ix_(edge, [1, 3])] = slip / 2 * rng.uniform(0.3, 1.0, (edge.size, 1))
    kills[edge - columns] = rng.uniform(0.0, 0.004, (edge.size, 1))
    moves = killing(moves, kills)
    charges = {"goal": Charge(moving=-at(n, goal)), "fall": Charge(moving=at(n, n - 1))}
    mdp = mdp_of(moves, charges, at(n, 3 * columns), 0.96)
    behavior = soft(mdp, {"goal": 1.0, "fall": 0.5}, temperature=1.0, chance=0.1)
    limit = 3.0 * max(good(mdp, {"goal": 1.0, "fall": 5.0})["fall"], 0.005)
    return World(mdp, charges, behavior, "goal", (AtMost("fall", limit, range=(0, 1)),), 3000, 100)


def corridor(seed: int) -> World:
    """Go down one of two lanes of a corridor with a wall between; which cells of either may kill, nobody knows."""
    rng = np.random.default_rng([seed, 12])
    rows, columns = 3, 14
    walls = tuple(columns + c for c in range(1, columns - 1) if c % 4)
    goal = columns + columns - 1
    moves = grid(rows, columns, goal, slip=0.05, walls=walls)
    n = len(moves)
    cell = np.where(rng.random((n, 1)) < 0.35, rng.choice([0.003, 0.01, 0.03], (n, 1)), 0.0)
    moves = killing(moves, np.broadcast_to(cell, (n, 4)))
    charges = {"steps": Charge(fixed=moves.any(axis=2) * 1.0), "death": Charge(moving=at(n, n - 1))}
    mdp = mdp_of(moves, charges, at(n, columns), 0.98)
    behavior = soft(mdp, {"steps": 1.0, "death": 40.0}, temperature=1.0, chance=0.15)
    limit = 1.15 * good(mdp, {"steps": 1.0, "death": 200.0})["death"]
    return World(mdp, charges, behavior, "steps", (AtMost("death", limit, range=(0, 1)),), 2000, 120)


def ferry(seed: int) -> World:
    """Pass ten rows of four islands, always onward, on one of three boats; each island has a risk, .003 to .08.

    Behavior knows the quick boats and mostly takes them: of the others too little is logged.
    """
    rng = np.random.default_rng([seed, 19])
    layers, width = 10, 4
    n = layers * width + 2
    goal, death = n - 2, n - 1
    moves = np.zeros((n, 3, n))
    for layer in range(layers):
        for boat in np.ndindex(width, 3):
            odds = rng.dirichlet(np.full(width, 0.4))
            if layer + 1 < layers:
                moves[layer * width + boat[0], boat[1], (layer + 1) * width : (layer + 2) * width] = odds
            else:
                moves[layer * width + boat[0], boat[1], goal] = 1.0
    risky = np.where(rng.random(n) < 0.35, np.exp(rng.uniform(np.log(0.003), np.log(0.08), n)), 0.0)
    risky[[goal, death]] = 0.0
    hours = rng.choice([0.5, 1.0, 2.0], (n, 3)) * moves.any(axis=2)
    moves = killing(moves, moves @ risky, death)
    charges = {"hours": Charge(fixed=hours, moving=10.0 * at(n, death)), "lost": Charge(moving=at(n, death))}
    mdp = mdp_of(moves, charges, at(n, *range(width)) / width, 1.0)
    behavior = soft(mdp, {"hours": 1.0}, temperature=0.5, chance=0.1)
    limit = 0.9 * mdp.values(behavior)["lost"]
    return World(mdp, charges, behavior, "hours", (AtMost("lost", limit, range=(0, 1)),), 3000, 12)


def triage(seed: int) -> World:
    """Serve the severe, the mild or nobody (rest): waits grow, and the severe who wait die, .001 to .08 a step."""
    rng = np.random.default_rng([seed, 13])
    severe, mild = 6, 6  # waits 0 (nobody there) to 5
    n = severe * mild
    waits = np.stack(np.divmod(np.arange(n), mild), axis=1)
    arrive = rng.uniform([0.25, 0.4], [0.4, 0.6])
    rates = np.append(0.0, 0.001 * np.cumprod(rng.uniform(1.8, 3.0, severe - 1)))
    moves, deaths = np.zeros((n, 3, n)), np.zeros((n, 3))
    for s, (first, second) in enumerate(waits):
        for action in range(3):
            after = [(0 if action == kind else wait) for kind, wait in enumerate((first, second))]
            deaths[s, action] = min(rates[after[0]], 0.08)
            for one in (False, True):
                for two in (False, True):
                    odds = (arrive[0] if one else 1 - arrive[0]) * (arrive[1] if two else 1 - arrive[1])
                    next_first = min(after[0] + 1, severe - 1) if after[0] else int(one)
                    next_second = min(after[1] + 1, mild - 1) if after[1] else int(two)
                    moves[s, action, next_first * mild + next_second] += odds
    moves = ending(moves, 0.06)
    dies = np.zeros((n + 1, 3, 1))
    dies[:n, :, 0] = deaths  # the bed is taken by the next: a death does not end the shift
    effort = np.zeros((n + 1, 3))
    effort[:n] = waits[:, 1:] / mild + np.array([0.8, 0.3, 0.0])
    charges = {"effort": Charge(fixed=effort), "death": Charge(amounts=(1.0,), chances=dies)}
    mdp = mdp_of(moves, charges, at(n + 1, 0), 0.98)
    behavior = soft(mdp, {"effort": 1.0, "death": 20.0}, temperature=1.0, chance=0.15)
    limit = 1.1 * good(mdp, {"effort": 1.0, "death": 60.0})["death"]
    return World(mdp, charges, behavior, "effort", (AtMost("death", limit),), 1500, 80)


def losses(seed: int) -> World:
    """Underwrite more or less in 16 markets: common small costs, and a loss of 50 with probability .0005 to .004."""
    rng = np.random.default_rng([seed, 14])
    n, actions = 16, 4
    moves = ending(scattered(rng, (n, actions), 3), 0.1)
    share = np.array([0.1, 0.4, 0.7, 1.0])
    amounts = (0.2, 0.5, 1.0, 3.0, 50.0)  # as of a lognormal, the tail put into one value
    chances = np.zeros((n + 1, actions, 5))
    market = rng.uniform(0.5, 1.5, (n, 1))
    for kind, odds in enumerate((0.12, 0.06, 0.03, 0.01)):
        chances[:n, :, kind] = odds * share * market
    chances[:n, :, 4] = np.exp(rng.uniform(np.log(0.0005), np.log(0.004), (n, actions))) * share
    premium = np.zeros((n + 1, actions))
    premium[:n] = -share * rng.uniform(0.1, 0.5, (n, 1))
    charges = {"premium": Charge(fixed=premium), "claims": Charge(amounts=amounts, chances=chances)}
    start = np.append(np.full(n, 1 / n), 0.0)
    mdp = mdp_of(moves, charges, start, 0.98)
    behavior = soft(mdp, {"premium": 1.0, "claims": 1.0}, temperature=1.5, chance=0.2)
    limit = 1.1 * mdp.values(behavior)["claims"]
    return World(mdp, charges, behavior, "premium", (AtMost("claims", limit),), 2000, 80)


def debt(seed: int) -> World:
    """Borrow or save at 14 levels of wealth; a shock of probability .001 to .02 begins a slide that costs for long."""
    rng = np.random.default_rng([seed, 15])
    levels, slide, actions = 14, 8, 4
    n = levels + slide
    level = np.arange(levels)
    boldness = np.array([0.0, 0.3, 0.6, 1.0])
    shock = 0.02 * boldness * np.exp(rng.uniform(np.log(0.05), 0.0, (levels, actions)))
    moves = np.zeros((n, actions, n))
    for a in range(actions):
        up = 0.3 + 0.4 * boldness[a]
        moves[level, a, np.minimum(level + 1, levels - 1)] += up
        moves[level, a, np.maximum(level - 1, 0)] += 1 - up
    moves[:levels] *= (1 - shock)[:, :, None]
    moves[level[:, None], np.arange(actions), levels] += shock
    for step in range(slide):
        below = levels + step
        recover = 0.1 + 0.15 * (1 - boldness)
        moves[below, :, 1] = recover
        moves[below, :, min(below + 1, n - 1)] += 1 - recover
    moves = ending(moves, 0.03)
    wealth, owed = np.zeros((n + 1, actions)), np.zeros((n + 1, actions))
    wealth[:levels] = -(level / levels)[:, None] + 0.2 * (1 - boldness)
    owed[levels + 1 : n] = np.minimum(0.2 * np.arange(1, slide), 1.0)[:, None]  # the first step down costs nothing
    charges = {"loss": Charge(fixed=wealth), "owed": Charge(fixed=owed)}
    mdp = mdp_of(moves, charges, at(n + 1, 4), 0.98)
    behavior = soft(mdp, {"loss": 1.0, "owed": 2.0}, temperature=1.0, chance=0.2)
    limit = 2.0 * good(mdp, {"loss": 1.0, "owed": 40.0})["owed"]
    return World(mdp, charges, behavior, "loss", (AtMost("owed", limit),), 1500, 100)


def two_limits(seed: int) -> World:
    """Treat in 20 states under two limits: on a rare stroke that ends the episode, and on days of drugs, common."""
    rng = np.random.default_rng([seed, 16])
    n, actions = 20, 3
    dead, total = n + 1, n + 2
    moves = ending(scattered(rng, (n, actions), 3), np.array([0.08, 0.14, 0.2]), ends=2)
    kills = np.zeros((total, actions))
    kills[:n] = np.exp(rng.uniform(np.log(0.001), np.log(0.02), (n, 1))) * np.array([2.0, 0.6, 1.2])
    kills[:n] *= rng.uniform(0.3, 1.7, (n, actions))
    moves = killing(moves, kills, dead)
    drugs, days = np.zeros((total, actions, 1)), np.zeros((total, actions))
    drugs[:n, :, 0], days[:n] = [0.1, 0.5, 0.8], 1.0
    charges = {
        "days": Charge(fixed=days, moving=10.0 * at(total, dead)),
        "stroke": Charge(moving=at(total, dead)),
        "drugs": Charge(amounts=(1.0,), chances=drugs),
    }
    start = np.zeros(total)
    start[:n] = 1 / n
    mdp = mdp_of(moves, charges, start, 0.99)
    behavior = soft(mdp, {"days": 1.0, "drugs": 1.0}, temperature=1.2, chance=0.2)
    own = mdp.values(behavior)
    limits = AtMost("stroke", 0.8 * own["stroke"], range=(0, 1)), AtMost("drugs", 1.1 * own["drugs"])
    return World(mdp, charges, behavior, "days", limits, 2500, 80)


def islands(seed: int) -> World:
    """Find one of 45 states by random moves at discount .99; some pairs kill, each with a probability of its own."""
    rng = np.random.default_rng([seed, 17])
    n, actions = 46, 3
    goal, death = n - 2, n - 1
    moves = np.zeros((n, actions, n))
    for state in range(goal):
        for action in range(actions):
            onward = (state + rng.integers(1, 5, 3) - 1) % n
            reached = np.where(onward >= goal, goal if state > 30 else 0, onward)
            np.add.at(moves[state, action], reached, rng.dirichlet(np.ones(3)))
    kills = np.where(rng.random((n, actions)) < 0.3, rng.beta(0.6, 40.0, (n, actions)), 0.0)
    moves = killing(moves, kills, death)
    charges = {"goal": Charge(moving=-at(n, goal)), "death": Charge(moving=at(n, death))}
    mdp = mdp_of(moves, charges, at(n, 0), 0.99)
    behavior = soft(mdp, {"goal": 1.0, "death": 1.0}, temperature=1.0, chance=0.15)
    limit = 0.3 * mdp.values(behavior)["death"]
    return World(mdp, charges, behavior, "goal", (AtMost("death", limit, range=(0, 1)),), 1000, 250)


def visits(seed: int) -> World:
    """Treat at up to three visits in 50 conditions, some of them seldom seen; a harm of .5 or 2 is rare."""
    rng = np.random.default_rng([seed, 18])
    conditions, actions = 18, 5
    n = 3 * conditions
    moves = np.zeros((n, actions, n))
    for visit in range(2):
        here, there = visit * conditions, (visit + 1) * conditions
        moves[here : here + conditions, :, there : there + conditions] = scattered(rng, (conditions, actions), 4)
    quits = np.full((n, actions), 0.2)
    quits[2 * conditions :] = 1.0
    moves = ending(moves, quits)
    strength = np.linspace(0.0, 1.0, actions)
    rate = np.zeros((n + 1, actions))
    rate[:n] = rng.beta(0.5, 30.0, (n, 1)) * (0.2 + 2 * strength) * rng.uniform(0.2, 1.8, (n, actions))
    chances = np.stack([0.8 * rate, 0.2 * rate], axis=2)
    pain = np.zeros((n + 1, actions))
    pain[:n] = 1 - 0.6 * strength + 0.4 * rng.random((n, actions))
    charges = {"pain": Charge(fixed=pain), "harm": Charge(amounts=(0.5, 2.0), chances=chances)}
    start = np.zeros(n + 1)
    start[:conditions] = rng.permutation(1.0 / np.arange(1, conditions + 1))
    mdp = mdp_of(moves, charges, start / start.sum(), 1.0)
    behavior = soft(mdp, {"pain": 1.0, "harm": 2.0}, temperature=1.5, chance=0.2)
    limit = 1.1 * mdp.values(behavior)["harm"]
    return World(mdp, charges, behavior, "pain", (AtMost("harm", limit),), 2000, 4)


REPORT = {
    "cliff": cliff,
    "corridor": corridor,
    "ferry": ferry,
    "triage": triage,
    "losses": losses,
    "debt": debt,
    "two-limits": two_limits,
    "islands": islands,
    "visits": visits,
}
