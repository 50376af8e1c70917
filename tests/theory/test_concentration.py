import itertools
import math

import numpy as np
import pytest

from checkrein.base.errors import ArgumentError
from checkrein.theory import (
    combination_lock,
    concentration,
    lock_concentration,
    logged_concentration,
    policy_concentration,
)

TINY = [(2, 2, 5), (3, 2, 3), (2, 3, 3)]  # states, actions, steps


def tiny(seed, n_states, n_actions, *, ending=True):
    """Random transitions (some end), initial states and a log distribution."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.ones(n_states + ending), size=(n_states, n_actions))[:, :, :n_states]
    moves = np.where(rng.random(moves.shape) < 0.3, 0.0, moves)
    log = rng.dirichlet(np.ones(n_states * n_actions)).reshape(n_states, n_actions)
    return {"transitions": moves, "initial": rng.dirichlet(np.ones(n_states)), "log_distribution": log}


def by_force(mdp, m):
    """beta(m): every sequence of deterministic policies, every action at the end."""
    moves, log = mdp["transitions"], mdp["log_distribution"]
    n_states, n_actions = log.shape
    policies = list(itertools.product(range(n_actions), repeat=n_states))
    best = 0.0
    for sequence in itertools.product(policies, repeat=m):
        chance = mdp["initial"]
        for policy in sequence:
            chance = chance @ moves[np.arange(n_states), policy]
        best = max(best, float((chance[:, None] / log).max()))
    return best


@pytest.mark.parametrize(("n_states", "n_actions", "steps"), TINY)
@pytest.mark.parametrize("seed", range(5))
def test_every_ratio_is_that_of_the_best_sequence_of_policies(seed, n_states, n_actions, steps):
    mdp = tiny(seed, n_states, n_actions)
    found = concentration(**mdp, discount=0.8)
    assert found.ratios[: steps + 1] == pytest.approx([by_force(mdp, m) for m in range(steps + 1)])
    assert found.n_pairs == n_states * n_actions


@pytest.mark.parametrize("discount", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(3))
def test_the_coefficients_are_the_sums_of_assumption_1_and_of_the_corrected_proofs(seed, discount):
    found = concentration(**tiny(seed, 3, 2, ending=False), discount=discount, tolerance=1e-12)
    m, beta = np.arange(found.ratios.size, dtype=float), found.ratios
    assert found.value == pytest.approx((1 - discount) ** 2 * (m * discount ** (m - 1) * beta).sum(), rel=1e-9)
    assert found.first_order == pytest.approx((1 - discount) * (discount**m * beta).sum(), rel=1e-9)
    assert found.second_order == pytest.approx((1 - discount) ** 2 * ((m + 1) * discount**m * beta).sum(), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_coefficient_cut_short_is_never_too_small_and_off_by_its_remainder_at_most(seed):
    mdp = tiny(seed, 3, 2)
    exact = concentration(**mdp, discount=0.9, tolerance=1e-12)
    short = concentration(**mdp, discount=0.9, max_steps=3)
    for name in ("value", "first_order", "second_order"):
        assert getattr(exact, name) <= getattr(short, name) <= getattr(exact, name) + short.remainder


def test_one_state_for_ever_has_the_coefficient_of_its_rarest_action():
    mdp = {"transitions": np.ones((1, 2, 1)), "initial": [1.0], "log_distribution": [[0.75, 0.25]]}
    found = concentration(**mdp, discount=0.9)
    assert [found.value, found.first_order, found.second_order] == pytest.approx([4.0] * 3, rel=1e-9)


def test_a_reachable_pair_that_was_never_logged_makes_it_infinite_and_an_unreachable_one_does_not():
    moves = np.zeros((3, 2, 3))
    moves[0, 0, 0] = moves[0, 1, 1] = moves[1, :, 1] = moves[2, :, 0] = 1.0
    log = np.array([[0.3, 0.2], [0.5, 0.0], [0.0, 0.0]])
    mdp = {"transitions": moves, "initial": [1.0, 0.0, 0.0], "log_distribution": log}
    assert concentration(**mdp, discount=0.9).value == math.inf
    available = log > 0
    assert math.isfinite(concentration(**mdp, discount=0.9, available=available).second_order)


def test_a_pair_missed_at_the_start_alone_is_missed_by_assumption_1():
    moves = np.zeros((2, 1, 2))
    moves[:, 0, 1] = 1.0  # nobody returns to the first state
    mdp = {"transitions": moves, "initial": [1.0, 0.0], "log_distribution": [[0.0], [1.0]]}
    found = concentration(**mdp, discount=0.9)
    assert found.value == pytest.approx(1.0)
    assert found.first_order == math.inf


@pytest.mark.parametrize("seed", range(5))
def test_one_policy_has_a_smaller_coefficient_and_that_of_its_own_visits(seed):
    mdp = tiny(seed, 3, 2)
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), size=3)
    of_all, of_one = concentration(**mdp, discount=0.9), policy_concentration(**mdp, policy=policy, discount=0.9)
    chance, ratios = mdp["initial"], []
    for _ in range(10):
        ratios.append((chance[:, None] * policy / mdp["log_distribution"]).max())
        chance = np.einsum("s,sa,sat->t", chance, policy, mdp["transitions"])
    assert of_one.ratios[:10] == pytest.approx(ratios)
    assert of_one.first_order < of_all.first_order


def test_the_policy_that_logged_its_own_visits_has_coefficient_one():
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.ones(4), size=(4, 2))
    policy = rng.dirichlet(np.ones(2), size=4)
    chain = np.einsum("sa,sat->st", policy, moves)
    values, vectors = np.linalg.eig(chain.T)
    stationary = np.real(vectors[:, np.argmax(values.real)])
    stationary /= stationary.sum()
    log = stationary[:, None] * policy
    found = policy_concentration(
        transitions=moves, initial=stationary, log_distribution=log, policy=policy, discount=0.9
    )
    assert found.second_order == pytest.approx(1.0)


def test_a_log_in_exact_proportion_gives_the_exact_coefficient():
    moves = np.array([[[0.5, 0.5], [0.0, 0.75]], [[1.0, 0.0], [0.0, 0.5]]])  # what is missing ends
    log = np.array([[0.25, 0.25], [0.375, 0.125]])
    rows = [
        (s, a, t, False, log[s, a] * moves[s, a, t]) for s in (0, 1) for a in (0, 1) for t in (0, 1) if moves[s, a, t]
    ]
    rows += [(s, 1, 0, True, log[s, 1] * (1 - moves[s, 1].sum())) for s in (0, 1)]
    states, actions, next_states, terminals, weights = map(np.array, zip(*rows, strict=True))
    estimated = logged_concentration(
        states=states,
        actions=actions,
        next_states=next_states,
        terminals=terminals,
        weights=80 * weights,
        initial_states=np.array([0, 1]),
        initial_weights=np.array([3.0, 1.0]),
        discount=0.9,
    )
    exact = concentration(transitions=moves, initial=[0.75, 0.25], log_distribution=log, discount=0.9)
    assert estimated.value == pytest.approx(exact.value)
    assert estimated.n_pairs == 4


def test_a_state_with_nothing_logged_in_it_ends_the_episode():
    found = logged_concentration(
        states=np.array([0, 0]),
        actions=np.array([0, 1]),
        next_states=np.array([1, 0]),
        terminals=np.array([False, True]),
        initial_states=np.array([0]),
        discount=0.9,
    )
    assert found.ratios[:2] == pytest.approx([2.0, 0.0])
    assert found.value == 0.0


@pytest.mark.parametrize("back", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("n_states", [1, 2, 3, 8])
def test_the_lock_in_closed_form_is_the_exact_coefficient(n_states, back):
    lock = combination_lock(n_states=n_states, back=back)
    exact = concentration(**lock._asdict(), discount=0.9)
    closed = lock_concentration(n_states=n_states, discount=0.9, back=back)
    for name in ("value", "first_order", "second_order"):
        assert getattr(closed, name) == pytest.approx(getattr(exact, name), rel=2e-6)


@pytest.mark.parametrize("back", [0.3, 0.5, 0.7])
def test_the_coefficient_of_the_lock_grows_exponentially_with_its_states(back):
    discount = 0.95
    values = [lock_concentration(n_states=n, discount=discount, back=back).value for n in range(10, 200)]
    growth = np.array(values[1:]) / values[:-1]
    assert growth.min() > discount / (1 - back)
    assert growth[-1] == pytest.approx(discount / (1 - back), rel=0.01)


def test_the_log_of_the_lock_is_what_its_policy_visits_in_the_long_run():
    lock = combination_lock(n_states=5, back=0.3)
    policy = np.array([0.7, 0.3])
    shares = lock.log_distribution.sum(axis=1)
    assert np.einsum("s,a,sat->t", shares, policy, lock.transitions) == pytest.approx(shares)
    assert lock.log_distribution.sum() == pytest.approx(1.0)


GOOD = {"transitions": np.ones((1, 2, 1)), "initial": [1.0], "log_distribution": [[0.5, 0.5]], "discount": 0.9}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transitions": np.ones((1, 2))}, r"shape \(S, A, S\)"),
        ({"transitions": 2 * np.ones((1, 2, 1))}, "at most 1"),
        ({"initial": [0.5]}, "initial .* sums to 0.5"),
        ({"log_distribution": [[0.5, 0.6]]}, "log_distribution .* sums to 1.1"),
        ({"log_distribution": [0.5, 0.5]}, "log_distribution .* has shape"),
        ({"discount": 1.0}, "discount is 1"),
        ({"available": [[True]]}, "available must have shape"),
        ({"tolerance": 0.0}, "tolerance"),
    ],
)
def test_what_is_no_finite_mdp_is_named(change, words):
    with pytest.raises(ArgumentError, match=words):
        concentration(**GOOD | change)


def test_a_lock_too_long_for_a_number_is_refused():
    with pytest.raises(ArgumentError, match="fewer states"):
        lock_concentration(n_states=5000, discount=0.9)
