"""Three worlds with numbers for states in which the state is complete: shock, a reactor, offers to customers.

All three are made up. What is observed is all there is, so that what comes next depends on it alone.
"""

import numpy as np

from checkrein import AtMost
from continuous_rollouts import Array, Costs, World, near, softmax

Generator = np.random.Generator
Stepped = tuple[Array, Costs, Array]


# Shock: 24 hours of fluids and vasopressors. Low pressure does harm, directly and by lactate; vasopressors raise
# pressure, and lactate where it is high enough already; fluids help until there are too many.
FLUIDS, VASOPRESSORS = np.array([0.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.5, 1.0])
HOURS = 24


def shock_begin(n: int, rng: Generator) -> Array:
    """(n, 5): pressure, lactate, fluids, age, hour."""
    pressure, lactate = -1.2 + 0.5 * rng.normal(size=n), 1.0 + 0.5 * np.abs(rng.normal(size=n))
    return np.column_stack([pressure, lactate, 0.3 * rng.normal(size=n), rng.normal(size=n), np.zeros(n)])


def shock_observe(hidden: Array) -> Array:
    """(n, 5)."""
    return np.column_stack([hidden[:, :4], HOURS - hidden[:, 4]])


def shock_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Go on for an hour."""
    pressure, lactate, fluids, age, hour = hidden.T
    given, pressed, n = FLUIDS[actions], VASOPRESSORS[actions], len(hour)
    raised = 0.3 * given * (1 - np.tanh(fluids / 2)) + 0.45 * pressed * (1 + 0.2 * age)
    made = 0.25 * np.maximum(-pressure, 0) + 0.12 * pressed * np.maximum(pressure + 0.5, 0)
    pressure = 0.85 * pressure - 0.15 + raised + 0.2 * rng.normal(size=n)
    lactate = np.maximum(0.8 * lactate + made + 0.1 * rng.normal(size=n), 0)
    fluids = 0.93 * fluids + 0.35 * given - 0.05 + 0.1 * rng.normal(size=n)
    costs = {
        "harm": np.maximum(-pressure, 0) + 0.5 * lactate,
        "vasopressors": pressed,
        "overload": np.maximum(fluids - 1, 0),
    }
    return np.column_stack([pressure, lactate, fluids, age, hour + 1]), costs, hour + 1 >= HOURS


def shock_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) more of everything the lower the pressure."""
    pressure, lactate, fluids, _, _ = observations.T
    fluid, low, high = 0.2 - 0.5 * pressure - 0.4 * fluids, 0.1 - 0.5 * pressure, -0.4 - 0.6 * pressure + 0.2 * lactate
    return softmax(np.column_stack([0.3 + 0.6 * pressure, fluid, low, high]), uniform=0.06)


shock = World(
    name="shock",
    discount=1.0,
    horizon=HOURS,
    cut_off=False,
    features=("pressure", "lactate", "fluids", "age", "hours left"),
    levels=np.column_stack([FLUIDS, VASOPRESSORS]),
    objective="harm",
    constraints=(AtMost("vasopressors", 8.13), AtMost("overload", 0.314)),
    begin=shock_begin,
    observe=shock_observe,
    step=shock_step,
    behavior=shock_behavior,
)


# Reactor: heat or cool so that what is made meets a demand that wanders; it goes on when the log stops after 30 steps,
# and 40 % of what counts lies beyond. Too hot is seldom, and limited.
HEATING = np.array([-1.0, -0.4, 0.0, 0.4, 1.0])


def reactor_begin(n: int, rng: Generator) -> Array:
    """(n, 5): temperature, concentration, demand, wear, feed."""
    return rng.normal(size=(n, 5)) * np.array([0.8, 0.8, 1.0, 0.5, 0.7])


def reactor_observe(hidden: Array) -> Array:
    """(n, 5)."""
    return hidden.copy()


def reactor_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Go on for a step."""
    temperature, concentration, demand, wear, feed = hidden.T
    heat, noise = HEATING[actions], rng.normal(size=(5, len(hidden)))
    after = 0.8 * temperature + 0.5 * heat + 0.2 * feed - 0.1 * concentration + 0.15 * noise[0]
    made = 0.85 * concentration + 0.3 * np.tanh(temperature) - 0.1 * demand + 0.15 * noise[1]
    wanted = 0.9 * demand + 0.3 * noise[2]
    wear = 0.97 * wear + 0.1 * np.abs(heat) * (1 + 0.3 * temperature) - 0.02 + 0.05 * noise[3]
    costs = {
        "loss": (made - 0.5 * wanted) ** 2,
        "energy": np.abs(heat) * (1 + 0.2 * temperature),
        "hot": 1.0 * (after > 1.4),
    }
    feed = 0.7 * feed + 0.4 * noise[4]
    return np.column_stack([after, made, wanted, wear, feed]), costs, np.zeros(len(hidden), dtype=bool)


def reactor_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) towards the demand, with an unsteady hand."""
    temperature, concentration, demand, _, _ = observations.T
    return near(np.clip(0.6 * (0.5 * demand - concentration) - 0.3 * temperature, -1, 1), HEATING, 0.5, uniform=0.05)


reactor = World(
    name="reactor",
    discount=0.97,
    horizon=30,
    cut_off=True,
    features=("temperature", "concentration", "demand", "wear", "feed"),
    levels=np.column_stack([HEATING, HEATING**2]),
    objective="loss",
    constraints=(AtMost("energy", 13.28), AtMost("hot", 0.335)),
    begin=reactor_begin,
    observe=reactor_observe,
    step=reactor_step,
    behavior=reactor_behavior,
)


# Offers: six contacts with a customer; one who is annoyed complains, about once in eight customers.
SPENT = np.array([0.0, 0.5, 0.7, 1.0])
CONTACTS = 6


def offers_begin(n: int, rng: Generator) -> Array:
    """(n, 6): loyalty, taste, need, trust, annoyance, contact."""
    return np.column_stack([rng.normal(size=(n, 5)), np.zeros(n)])


def offers_observe(hidden: Array) -> Array:
    """(n, 6)."""
    return hidden.copy()


def offers_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Make an offer, and see whether the customer stays away, or complains."""
    x, n = hidden[:, :5], len(hidden)
    pull = np.stack([np.zeros(n), 0.4 * np.tanh(x[:, 1]), -0.3 + 0.3 * x[:, 2], 0.5 * np.ones(n)])
    after = 0.8 * x + 0.4 * rng.normal(size=x.shape)
    after[:, 0] += pull[actions, np.arange(n)] - 0.1 * x[:, 3]
    after[:, 4] += 0.3 * (actions == 3)
    complains = 1 / (1 + np.exp(4.3 - 0.9 * after[:, 4] - 0.5 * (actions == 3) + 0.3 * after[:, 3]))
    leaves = 1 / (1 + np.exp(1.5 + after[:, 0]))
    costs = {
        "churn": 1.0 * (rng.random(n) < leaves),
        "complaints": 1.0 * (rng.random(n) < complains),
        "spent": SPENT[actions],
    }
    return np.column_stack([after, hidden[:, 5] + 1]), costs, hidden[:, 5] + 1 >= CONTACTS


def offers_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) by loyalty, taste and trust, a little."""
    loyalty, taste, _, trust = observations[:, :4].T
    scores = [0.3 + 0.2 * loyalty, 0.2 * taste, -0.2 - 0.2 * loyalty, -0.1 - 0.1 * loyalty + 0.2 * trust]
    return softmax(np.column_stack(scores), uniform=0.05)


offers = World(
    name="offers",
    discount=0.95,
    horizon=CONTACTS,
    cut_off=False,
    features=("loyalty", "taste", "need", "trust", "annoyance", "contact"),
    levels=np.eye(4)[:, 1:],
    objective="churn",
    constraints=(AtMost("complaints", 0.141), AtMost("spent", 2.57)),
    begin=offers_begin,
    observe=offers_observe,
    step=offers_step,
    behavior=offers_behavior,
)
