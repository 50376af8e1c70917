import numpy as np
import pytest

from checkrein import AtLeast, AtMost, MixturePolicy, TabularMDP, TabularPolicy
from checkrein.base.errors import ArgumentError, EndlessPolicyError, ProblemError
from problems import binding_limits, random_mdp

CHAIN = np.zeros((2, 2, 2))  # in state 0, action 0 goes on to state 1 and action 1 stays; state 1 ends
CHAIN[0, 0, 1] = CHAIN[0, 1, 0] = 1.0
COSTS = {"c": np.array([[1.0, 2.0], [3.0, 5.0]])}


def chain(discount):
    return TabularMDP(CHAIN, COSTS, np.array([1.0, 0.0]), discount)


def test_values_by_hand():
    go, wait = (TabularPolicy(np.tile(row, (2, 1))) for row in ([1.0, 0.0], [0.5, 0.5]))
    assert chain(0.5).values(go) == pytest.approx({"c": 1 + 0.5 * 3})
    # V0 = .5 (1 + .5 V1) + .5 (2 + .5 V0), V1 = 4
    assert chain(0.5).values(wait) == pytest.approx({"c": 2.5 / 0.75})
    assert chain(1.0).values(wait) == pytest.approx({"c": 7.0})


def test_a_mixture_is_worth_its_members_not_its_average_behavior():
    go, stay = (TabularPolicy(np.tile(row, (2, 1))) for row in ([1.0, 0.0], [0.0, 1.0]))
    each = [chain(0.5).values(policy)["c"] for policy in (go, stay)]
    mixture = MixturePolicy((go, stay), np.array([0.5, 0.5]))
    assert chain(0.5).values(mixture)["c"] == pytest.approx(np.mean(each))
    average = TabularPolicy(mixture.probabilities(np.arange(2)))
    assert chain(0.5).values(average)["c"] != pytest.approx(np.mean(each))


@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_meets_its_limits_and_its_policy_has_its_values(seed):
    mdp = random_mdp(seed, n_constraints=3, n_states=12)
    limits = binding_limits(mdp)
    best = mdp.optimum(objective="c", constraints=limits)
    assert mdp.values(best.policy) == pytest.approx(best.values, abs=1e-8)
    assert all(best.values[limit.cost] <= limit.limit + 1e-9 for limit in limits)
    free = mdp.optimum(objective="c")
    priced = sum(best.multipliers[limit.name] * (best.values[limit.cost] - limit.limit) for limit in limits)
    assert priced == pytest.approx(0, abs=1e-8)  # complementary slackness
    assert best.values["c"] >= free.values["c"] - 1e-9
    assert best.occupancy.sum() == pytest.approx(1 / (1 - mdp.discount))


def test_no_random_policy_beats_the_unconstrained_optimum():
    mdp, rng = random_mdp(0, n_states=8), np.random.default_rng(0)
    best = mdp.optimum(objective="c").values["c"]
    assert all(mdp.values(TabularPolicy(rng.dirichlet(np.ones(4), size=8)))["c"] >= best - 1e-9 for _ in range(50))


def test_unavailable_actions_are_never_taken():
    available = np.array([[True, False], [False, True]])
    best = TabularMDP(CHAIN, COSTS, np.array([1.0, 0.0]), 0.5, available).optimum(objective="c")
    assert best.values["c"] == pytest.approx(1 + 0.5 * 5)
    assert best.policy.table.tolist() == [[1, 0], [0, 1]]


def test_limits_that_cannot_be_met_together_are_named():
    with pytest.raises(ProblemError, match=r"no policy meets the limits together: c at most 1, c at least 9"):
        chain(0.5).optimum(objective="c", constraints=[AtMost("c", 1), AtLeast("c", 9, name="high")])


def test_a_policy_that_need_not_end_is_named_at_discount_one():
    stay = TabularPolicy(np.array([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(EndlessPolicyError, match=r"this policy need not end: it can circle for ever in 1 states \(0\)"):
        chain(1.0).values(stay)
    with pytest.raises(EndlessPolicyError, match=r"a policy need not end.*\(0\)"):
        chain(1.0).optimum(objective="c")


def test_at_discount_one_the_optimum_exists_where_every_policy_ends():
    mdp = random_mdp(1, n_states=10, ending=0.2, discount=1.0)
    best = mdp.optimum(objective="c", constraints=binding_limits(mdp))
    assert mdp.values(best.policy) == pytest.approx(best.values, abs=1e-8)


def test_simulated_episodes_agree_with_the_exact_values():
    mdp = random_mdp(2, n_states=10, ending=0.1, discount=0.9)
    policy = TabularPolicy(np.random.default_rng(0).dirichlet(np.ones(4), size=10))
    log = mdp.simulate(policy, episodes=20_000, max_steps=300, rng=np.random.default_rng(1))
    returns = np.bincount(log.episodes, log.cost("c") * mdp.discount**log.steps)
    error = returns.std() / np.sqrt(returns.size)
    assert returns.mean() == pytest.approx(mdp.values(policy)["c"], abs=4 * error)
    assert log.propensities == pytest.approx(policy.table[log.states, log.actions])
    assert not log.truncated.any()


def test_simulated_mixtures_draw_one_member_per_episode():
    go, stay = (TabularPolicy(np.tile(row, (2, 1))) for row in ([1.0, 0.0], [0.0, 1.0]))
    log = chain(0.9).simulate(
        MixturePolicy((go, stay), np.array([0.3, 0.7])), episodes=3000, max_steps=4, rng=np.random.default_rng(0)
    )
    lengths = np.bincount(log.episodes)
    assert set(lengths.tolist()) == {2, 4}  # to the end at once, or staying until cut off: never in between
    assert (lengths == 4).mean() == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 3000))
    assert log.truncated.sum() == (lengths == 4).sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transitions": np.zeros((2, 2))}, r"shape \(S, A, S\)"),
        ({"transitions": CHAIN * 1.5}, r"transitions\[0, 0\] sum to 1.5"),
        ({"initial": np.array([0.5, 0.4])}, "sum to 1"),
        ({"costs": {"c": np.zeros((3, 2))}}, "cost 'c' must be a finite"),
        ({"discount": 0.0}, "the discount is 0.0"),
        ({"available": np.ones((3, 2), dtype=bool)}, "available must have shape"),
    ],
)
def test_bad_mdps_are_refused_with_the_numbers(change, message):
    good = {"transitions": CHAIN, "costs": COSTS, "initial": np.array([1.0, 0.0]), "discount": 0.5}
    with pytest.raises(ArgumentError, match=message):
        TabularMDP(**good | change)


def test_an_unknown_objective_is_named():
    with pytest.raises(ProblemError, match="no cost is called 'd': the MDP has c"):
        chain(0.5).optimum(objective="d")
