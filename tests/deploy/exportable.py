"""Policies and encodings that can be exported, one of each kind."""

import numpy as np

from checkrein import GreedyPolicy, MixturePolicy, OneHot, Polynomial, SoftminPolicy, TabularPolicy
from checkrein.data.encoding import MISSING, Encoding, StateColumn
from checkrein.functions import LinearQ, TabularQ
from checkrein.policies import BehaviorMask, CountMask, EveryAction, MajorityPolicy

RNG = np.random.default_rng(0)
S, A, D = 12, 4, 3  # states, actions, features
ACTIONS = ("none", "fluid", "vaso", "both")

FINITE = Encoding(
    ACTIONS,
    (StateColumn("severity", ("low", "high", MISSING)), StateColumn("ward", ("a", "b", "2", "true"))),
    np.array([[i, j] for j in range(4) for i in range(3)]),
)
FEATURES = Encoding(ACTIONS, (StateColumn("lactate", fill=1.5), StateColumn("age")))


def table_q():
    return TabularQ(RNG.normal(size=(S, A, 1)))


def linear_q(degree):
    return LinearQ(Polynomial(degree), RNG.normal(size=(A, Polynomial(degree)(np.zeros((1, D))).shape[1], 1)))


def behavior(threshold):
    """Some actions are seldom taken, the last never."""
    intercepts = np.append(RNG.normal(size=A - 1), -np.inf)
    coefficients = np.vstack([RNG.normal(size=(A - 1, D)), np.zeros(D)])
    return BehaviorMask(RNG.normal(size=D), 0.5 + RNG.random(D), coefficients, intercepts, threshold)


COUNTS = CountMask(np.vstack([RNG.random((S - 1, A)) < 0.7, np.zeros(A, dtype=bool)]))  # the last was never left
TABLES = {
    "table": TabularPolicy(RNG.dirichlet(np.ones(A), size=S)),
    "greedy": GreedyPolicy(table_q(), COUNTS),
    "softmin": SoftminPolicy(table_q(), 0.7),
    "one-hot": GreedyPolicy(LinearQ(OneHot(S), RNG.normal(size=(A, S, 1))), EveryAction(A)),
}
TABLES["mixture"] = MixturePolicy(tuple(TABLES.values()), np.array([0.1, 0.2, 0.3, 0.4]))
TABLES["majority"] = MajorityPolicy(TABLES["mixture"])
RULES = {
    "greedy": GreedyPolicy(linear_q(1)),
    "constant": GreedyPolicy(linear_q(0), behavior(0.1)),
    "quadratic": GreedyPolicy(linear_q(2), behavior(0.2)),
    "strict": GreedyPolicy(linear_q(3), behavior(0.9)),  # hardly any action reaches that: the likeliest is left
    "softmin": SoftminPolicy(linear_q(2), 0.5, behavior(0.15)),
}
RULES["mixture"] = MixturePolicy(
    (MixturePolicy(tuple(RULES.values()), np.full(5, 0.2)), GreedyPolicy(linear_q(2), EveryAction(A))),
    np.array([0.75, 0.25]),
)
RULES["majority"] = MajorityPolicy(RULES["mixture"])
EVERY = {f"{kind}, {name}": policy for kind, group in (("finite", TABLES), ("features", RULES)) for name, policy in group.items()}  # fmt: skip  # noqa: E501


def states_for(policy, n=2000, seed=5):
    """All finite states many times over, or features with ties and zeros among them."""
    rng = np.random.default_rng(seed)
    if policy in TABLES.values():
        return rng.integers(0, S, n)
    features = rng.normal(size=(n, D)) * rng.choice([0.1, 1.0, 5.0], size=(n, 1))
    features[::50] = 0.0
    return features
