import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.base.errors import ProblemError
from checkrein.policies.penalties import Penalty

SHIFT = 1e-4  # of probability from one action to another
SEEDS = st.integers(0, 10_000)


def random_penalty(rng, states, actions, entropic, weights):
    references = [rng.dirichlet(np.ones(actions), states) for _ in weights]
    linear = rng.normal(size=(states, actions))
    return Penalty(entropic, linear, tuple(zip(weights, references, strict=True)))


def paid(penalty, q, probabilities):
    return (probabilities * q).sum(axis=1) + penalty.paid(probabilities)


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS,
    actions=st.integers(2, 6),
    entropic=st.sampled_from([0.0, 0.05, 1.0]),
    weights=st.lists(st.sampled_from([0.0, 0.3, 1.0, 4.0]), max_size=3),
)
def test_no_shift_of_probability_between_two_actions_pays_less(seed, actions, entropic, weights):
    """The cost is convex and the shifts span the simplex, so this is the optimum."""
    rng = np.random.default_rng(seed)
    penalty, q = random_penalty(rng, 5, actions, entropic, weights), rng.normal(size=(5, actions))
    allowed = rng.random((5, actions)) < 0.7
    allowed[np.arange(5), rng.integers(actions, size=5)] = True
    found = penalty.answer(q, allowed)
    assert found.sum(axis=1) == pytest.approx(1)
    assert (found[~allowed] == 0).all()
    least = paid(penalty, q, found)
    for giving in range(actions):
        for taking in range(actions):
            shifted = found.copy()
            moved = np.minimum(SHIFT, shifted[:, giving]) * (allowed[:, taking] & (giving != taking))
            shifted[:, giving] -= moved
            shifted[:, taking] += moved
            assert (paid(penalty, q, shifted) >= least - 1e-12).all()


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, temperature=st.floats(0.01, 10))
def test_several_entropies_and_divergences_are_one_temperature_and_one_prior(seed, temperature):
    rng = np.random.default_rng(seed)
    q, every = rng.normal(size=(4, 3)), np.ones((4, 3), dtype=bool)
    one, other = rng.dirichlet(np.ones(3), (2, 4))
    entropy, first, second = Penalty(1.0), Penalty(1.0, -np.log(one)), Penalty(1.0, -np.log(other))
    together = first.times(temperature).plus(second.times(2 * temperature)).plus(entropy.times(3 * temperature))
    prior = (one * other**2) ** (1 / 6)
    wanted = prior * np.exp(-(q - q.min(axis=1, keepdims=True)) / (6 * temperature))
    assert together.answer(q, every) == pytest.approx(wanted / wanted.sum(axis=1, keepdims=True), rel=1e-9)


def test_a_benefit_of_divergence_is_had_by_a_single_action():
    """What is concave in the probabilities is least at a corner: AtLeast(KLDivergence(...)) asks for that."""
    reference = np.array([[0.7, 0.2, 0.1]])
    penalty = Penalty(1.0, -np.log(reference)).times(-1.0)
    q = np.array([[0.0, 0.0, 1.9]])
    assert penalty.answer(q, np.ones((1, 3), dtype=bool)).tolist() == [[0.0, 1.0, 0.0]]  # -log .2 against 1.9 - log .1


def test_a_price_on_randomness_and_one_on_the_lack_of_it_are_refused_together():
    reference = np.full((1, 2), 0.5)
    mixed = Penalty(1.0, 0.0, ((-1.0, reference),))
    with pytest.raises(ProblemError, match="a price on randomness and a price on the lack of it"):
        mixed.answer(np.zeros((1, 2)), np.ones((1, 2), dtype=bool))


@pytest.mark.parametrize("price", [0.0, 1e-12])
def test_without_a_price_the_answer_is_the_greedy_one(price):
    rng = np.random.default_rng(0)
    q, every = rng.normal(size=(6, 4)), np.ones((6, 4), dtype=bool)
    penalty = Penalty(1.0, -np.log(rng.dirichlet(np.ones(4), 6))).times(price)
    assert (penalty.answer(q, every).argmax(axis=1) == q.argmin(axis=1)).all()
    assert penalty.answer(q, every).max(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(("entropic", "weight"), [(1e-300, 0.3), (1e-18, 0.3), (1e-6, 1e8), (1.0, 1e8)])
def test_a_temperature_below_the_rounding_of_other_prices_leaves_the_answer_without_it(entropic, weight):
    rng = np.random.default_rng(0)
    q, reference = 10 * rng.normal(size=(50, 4)), rng.dirichlet(np.ones(4), 50)
    penalty = Penalty(entropic, 0.0, ((weight, reference),))
    without = penalty._replace(entropic=0.0).answer(q, np.ones(q.shape, dtype=bool))
    found = penalty.answer(q, np.ones(q.shape, dtype=bool))
    assert (paid(penalty, q, found) <= paid(penalty, q, without) + 1e-6).all()
