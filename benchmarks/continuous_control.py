"""Three worlds of control with numbers for states: an epidemic, servers and their queue, a pole on a cart.

The pole and SEIR follow published equations, the servers the idea of theirs. What is logged, observed and limited is
ours. Equations and constants were written from memory: compare with the papers before relying on them.
"""

import numpy as np

from checkrein import AtMost
from continuous_rollouts import Array, Costs, World, near

Generator = np.random.Generator
Stepped = tuple[Array, Costs, Array]


# Epidemic: 20 weeks of SEIR with a compartment for hospitals (Kermack & McKendrick 1927; Anderson & May 1991),
# four levels of distancing. Seen are only cases reported late and with noise and beds in use: neither the exposed nor
# how infectious the strain is, nor what was decided last week. So the log is not Markov as observed.
CONTACTS, PRICES = np.array([1.0, 0.75, 0.55, 0.35]), np.array([0.0, 0.25, 0.6, 1.2])
WEEKS = 20
BEDS = 1.0  # per thousand


def epidemic_begin(n: int, rng: Generator) -> Array:
    """(n, 9): susceptible, exposed, infectious, severe, strain, new cases, reported, beds as seen, week."""
    exposed = 0.001 * np.exp(0.7 * rng.normal(size=n))
    infectious, severe = exposed * np.exp(0.3 * rng.normal(size=n)), 0.02 * exposed
    strain, immune = 0.42 * np.exp(0.15 * rng.normal(size=n)), 0.1 * rng.random(n)
    new = 7 * exposed / 4
    hidden = [1 - immune - exposed - infectious - severe, exposed, infectious, severe, strain, new]
    return np.column_stack([*hidden, _reported(new, rng), _beds(severe, rng), np.zeros(n)])


def _reported(new: Array, rng: Generator) -> Array:
    return np.log(1e3 * 0.4 * new * np.exp(0.4 * rng.normal(size=len(new))) + 0.05)


def _beds(severe: Array, rng: Generator) -> Array:
    return 1e3 * severe * np.exp(0.2 * rng.normal(size=len(severe)))


def epidemic_observe(hidden: Array) -> Array:
    """(n, 3)."""
    return np.column_stack([hidden[:, 6], hidden[:, 7], WEEKS - hidden[:, 8]])


def epidemic_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Go on for seven days; what is reported are the cases of the week before, in part."""
    susceptible, exposed, infectious, severe, strain, before, _, _, week = hidden.T
    rate = strain * CONTACTS[actions] * np.exp(0.15 * rng.normal(size=len(week)))
    new, overload = np.zeros(len(week)), np.zeros(len(week))
    for _ in range(7):
        infected = susceptible * (1 - np.exp(-rate * infectious))
        sick, over, left = exposed / 4, infectious / 5, severe / 9
        susceptible, exposed = susceptible - infected, exposed + infected - sick
        infectious, severe = infectious + sick - over, severe + 0.03 * over - left
        new += sick
        overload += np.maximum(1e3 * severe - BEDS, 0) / 7
    seen, beds = _reported(0.5 * (new + before), rng), _beds(severe, rng)
    week = week + 1
    costs = {"economy": PRICES[actions] + 5 * new, "overload": overload}
    hidden = np.column_stack([susceptible, exposed, infectious, severe, strain, new, seen, beds, week])
    return hidden, costs, week >= WEEKS


def epidemic_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) stricter as reported cases and beds rise, with politics in it."""
    cases, beds, _ = observations.T
    return near(0.7 * (cases + 0.3) + 0.5 * np.minimum(beds, 4), np.arange(4.0), 0.8, uniform=0.06)


epidemic = World(
    name="epidemic",
    discount=1.0,
    horizon=WEEKS,
    cut_off=False,
    features=("reported", "beds", "weeks left"),
    levels=np.column_stack([np.arange(4.0), np.arange(4.0) ** 2 / 3]),
    objective="economy",
    constraints=(AtMost("overload", 0.65),),
    begin=epidemic_begin,
    observe=epidemic_observe,
    step=epidemic_step,
    behavior=epidemic_behavior,
)


# Servers: how many of five to run each minute while jobs queue up; those switched on need a minute to start, and cost
# more in it (Gandhi, Harchol-Balter & Adan 2010, "Server farms with setup costs", Perform. Eval.); arrivals are
# Poisson with a rate that wanders (Cox 1955), and so does the price of power.
SERVED = 3.0  # jobs per server and minute
ROOM = 60  # jobs that can wait; others are turned away


def servers_begin(n: int, rng: Generator) -> Array:
    """(n, 5): queue, logarithm of the arrival rate, smoothed arrivals, price, servers on."""
    rate = np.log(7.0) + 0.35 * rng.normal(size=n)
    smoothed = np.exp(rate) + rng.normal(size=n)
    price = 1 + 0.3 * rng.normal(size=n)
    return np.column_stack([rng.poisson(6.0, size=n), rate, smoothed, price, rng.integers(2, 5, size=n)]) * 1.0


def servers_observe(hidden: Array) -> Array:
    """(n, 4)."""
    return hidden[:, [0, 2, 3, 4]]


def servers_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Go on for a minute: only servers that were on, and stay on, serve at full speed."""
    queue, rate, smoothed, price, on = hidden.T
    chosen = actions + 1.0
    started = np.maximum(chosen - on, 0)
    power = np.maximum(price, 0.2) * (chosen + 1.0 * started)
    arrived = rng.poisson(np.exp(rate))
    served = rng.poisson(SERVED * (np.minimum(chosen, on) + 0.2 * started))
    waiting = np.maximum(queue + arrived - served, 0)
    refused = np.maximum(waiting - ROOM, 0)
    queue = waiting - refused
    rate = np.log(7.0) + 0.95 * (rate - np.log(7.0)) + 0.11 * rng.normal(size=len(queue))
    smoothed = 0.7 * smoothed + 0.3 * arrived
    price = 1 + 0.9 * (price - 1) + 0.13 * rng.normal(size=len(queue))
    costs = {"power": power, "waiting": queue / 10, "refused": refused / 10}
    return np.column_stack([queue, rate, smoothed, price, chosen]), costs, np.zeros(len(queue), dtype=bool)


def servers_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) what recent arrivals need and something for the queue; the price is ignored."""
    queue, smoothed, _, on = observations.T
    wanted = 0.7 * (smoothed / SERVED + 0.3 + queue / 15) + 0.3 * on
    return near(wanted - 1, np.arange(5.0), 0.9, uniform=0.05)


servers = World(
    name="servers",
    discount=0.97,
    horizon=150,
    cut_off=True,
    features=("queue", "arrivals", "price", "servers on"),
    levels=np.column_stack([np.arange(5.0), np.arange(5.0) ** 2 / 4]),
    objective="power",
    constraints=(AtMost("waiting", 25.0), AtMost("refused", 0.062)),
    begin=servers_begin,
    observe=servers_observe,
    step=servers_step,
    behavior=servers_behavior,
)


# Pole: a cart keeps a pole upright in gusts; five forces, each for .04 s. Equations of Barto, Sutton & Anderson (1983),
# "Neuronlike adaptive elements that can solve difficult learning control problems", IEEE Trans. SMC,
# without friction. A fall, or leaving the track, ends the episode.
FORCES = np.array([-10.0, -4.0, 0.0, 4.0, 10.0])
POLE, CART, HALF, GRAVITY, SECONDS = 0.1, 1.0, 0.5, 9.8, 0.02


def pole_begin(n: int, rng: Generator) -> Array:
    """(n, 5): position, velocity, angle, angular velocity, gust."""
    return np.column_stack([np.array([0.3, 0.2, 0.04, 0.2]) * rng.normal(size=(n, 4)), np.zeros(n)])


def pole_observe(hidden: Array) -> Array:
    """(n, 4)."""
    return hidden[:, :4]


def pole_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Push twice for .02 s; the gust keeps a part of its strength."""
    position, velocity, angle, turning, gust = hidden.T
    gust = 0.3 * gust + 2.5 * rng.normal(size=len(gust))
    for _ in range(2):
        sine, cosine = np.sin(angle), np.cos(angle)
        pushed = (FORCES[actions] + gust + POLE * HALF * turning**2 * sine) / (CART + POLE)
        turned = (GRAVITY * sine - cosine * pushed) / (HALF * (4 / 3 - POLE * cosine**2 / (CART + POLE)))
        moved = pushed - POLE * HALF * turned * cosine / (CART + POLE)
        position, velocity = position + SECONDS * velocity, velocity + SECONDS * moved
        angle, turning = angle + SECONDS * turning, turning + SECONDS * turned
    fell = (np.abs(angle) > 0.21) | (np.abs(position) > 2.4)
    costs = {"fall": 10.0 * fell, "energy": (FORCES[actions] / 10) ** 2}
    return np.column_stack([position, velocity, angle, turning, gust]), costs, fell


def pole_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) pushes to where the pole leans, with a heavy and an unsteady hand."""
    position, velocity, angle, turning = observations.T
    wanted = 60 * angle + 8 * turning + 0.5 * position + 1.0 * velocity
    return near(np.clip(wanted, -12, 12), FORCES, 5.0, uniform=0.08)


pole = World(
    name="pole",
    discount=0.98,
    horizon=100,
    cut_off=True,
    features=("position", "velocity", "angle", "turning"),
    levels=np.column_stack([FORCES / 10, (FORCES / 10) ** 2]),
    objective="fall",
    constraints=(AtMost("energy", 12.5),),
    begin=pole_begin,
    observe=pole_observe,
    step=pole_step,
    behavior=pole_behavior,
)
