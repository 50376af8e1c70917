import numpy as np
import pytest

import checkrein
from certification.cases import coin, coin_log
from checkrein import AtLeast, AtMost, Dataset, TabularPolicy, certify, sensitivity
from checkrein.base.errors import ArgumentError, StorageError
from checkrein.certification.sensitivity import CROSS_FITTED, largest, quick
from checkrein.certification.survival import LARGEST, Sensitivity
from checkrein.selection.judging import METHOD
from evaluation.hidden import HiddenWorld, worst_value
from logs_again import random_world, with_episodes


def worst_rate(chance, propensity, odds):
    """The worst chance of harm in a single decision, by hand."""
    low = propensity + (1 - propensity) / odds
    return low * chance + (1 - low) * min(1.0, chance * (1 + odds))


def survived(log, policy, limit, **changes):
    settings = {"constraints": [AtMost("harm", limit)], "discount": 1.0, "method": "fqe-t"} | changes
    return sensitivity(policy, log, **settings)


@pytest.mark.parametrize("odds", [1.2, 2.0, 4.0])
def test_with_much_data_the_odds_ratio_is_the_one_at_which_the_limit_breaks(odds):
    log, always = coin_log(100_000, chance=0.2), coin(1.0)
    found = survived(log, always, worst_rate(0.2, 0.5, odds))
    assert found.odds_ratio is not None
    assert 0.95 * odds <= found.odds_ratio <= odds
    assert f"by up to {found.odds_ratio:.2f}" in found.explanation
    assert "limit on harm" in found.explanation


def test_a_floor_survives_as_much_as_the_limit_on_its_complement():
    log = coin_log(20_000, chance=0.2)
    found = survived(log, coin(1.0), 0.3, constraints=[AtMost("harm", 0.3), AtLeast("benefit", 0.7)])
    harm, benefit = found.constraints
    assert harm.odds_ratio == pytest.approx(benefit.odds_ratio, abs=0.011)
    assert benefit.claim == "benefit at least 0.7"


def test_a_certificate_that_is_no_pass_has_nothing_to_lose():
    found = survived(coin_log(2000, chance=0.3), coin(1.0), 0.3)
    assert not found.passed
    assert found.odds_ratio is None
    assert found.constraints[0].odds_ratio is None
    assert "nothing" in found.explanation
    assert "nothing to survive" in found.constraints[0].explanation


def test_a_limit_may_survive_where_another_did_not_pass():
    limits = [AtMost("harm", 0.5), AtMost("benefit", 0.5)]
    found = survived(coin_log(5000, chance=0.2), coin(1.0), 0.5, constraints=limits)
    assert found.constraints[0].odds_ratio > 1
    assert found.constraints[1].odds_ratio is None
    assert found.odds_ratio is None


def test_what_behavior_always_does_survives_everything_that_is_tried():
    log = coin_log(5000, chance=0.2, logged=1.0)  # behavior always takes the action: nothing can have been hidden
    found = survived(log, coin(1.0), 0.25)
    assert found.odds_ratio == LARGEST
    assert "any hidden factor" in found.explanation
    assert "more than 100" in found.constraints[0].explanation


def test_a_cost_that_never_varies_says_nothing_of_hidden_factors():
    log = coin_log(5000, costs=np.zeros(5000))
    found = survived(log, coin(1.0), 0.5, constraints=[AtMost("harm", 0.5, range=(0.0, 1.0))])
    assert found.passed
    assert found.constraints[0].odds_ratio == 1.0
    assert "does not vary" in found.constraints[0].explanation


def test_the_improvement_on_behavior_is_held_against_what_behavior_was_seen_to_cost():
    log = coin_log(20_000, chance=0.4)  # behavior pays 0.2; a policy that seldom takes action 1 pays less
    policy = coin(0.4)
    found = survived(log, policy, 1.5, objective="harm", constraints=[AtMost("harm", 1.5, name="cap")])
    assert found.objective is not None
    # action 0 is never seen to harm: only action 1 can be worse than it looks
    breaks = next(odds for odds in np.arange(1, 9, 0.01) if 0.4 * worst_rate(0.4, 0.5, odds) > 0.2)
    assert found.objective.odds_ratio is not None
    assert 0.85 * breaks <= found.objective.odds_ratio <= breaks
    assert found.objective.claim == "harm better than behavior"


def test_the_same_chances_as_behavior_but_drawn_blindly_are_not_behavior():
    log = coin_log(100_000, chance=0.4)
    found = survived(log, coin(0.5), 0.5 * worst_rate(0.4, 0.5, 1.5))
    assert found.odds_ratio == pytest.approx(1.5, abs=0.06)


def test_over_several_steps_it_is_the_odds_ratio_of_the_exact_robust_value():
    rng = np.random.default_rng(0)
    world = HiddenWorld.draw(rng)
    policy = TabularPolicy(np.eye(2)[[0, 1, 0]])
    limit, _ = worst_value(world, policy, 0.9, 1.5)
    found = sensitivity(
        policy, simulated(world, 30_000, rng), constraints=[AtMost("cost", limit)], discount=0.9, method="fqe-t"
    )
    assert found.odds_ratio is not None
    assert 1.35 <= found.odds_ratio <= 1.5


def simulated(world, episodes, rng):
    """A log of the world; what is hidden is left out of it."""
    rows, states = [], np.zeros(episodes, dtype=int)
    running = np.arange(episodes)
    moves, behavior = world.observed.cumsum(axis=2), world.marginal.cumsum(axis=1)
    for step in range(1000):
        actions = (rng.random(running.size)[:, None] > behavior[states]).sum(axis=1).clip(max=1)
        outcomes = (rng.random(running.size)[:, None] > moves[states, actions]).sum(axis=1).clip(max=len(moves))
        ends = outcomes == len(moves)
        rows.append((running, np.full(running.size, step), states, actions, np.where(ends, 0, outcomes), ends,
                     world.cost[states, actions, outcomes]))  # fmt: skip
        running, states = running[~ends], outcomes[~ends]
        if running.size == 0:
            break
    episode, steps, states, actions, following, ends, cost = map(np.concatenate, zip(*rows, strict=True))
    return Dataset.from_arrays(
        states=states,
        actions=actions,
        next_states=following,
        costs={"cost": cost},
        terminals=ends,
        episodes=episode,
        steps=steps,
        n_states=len(world.marginal),
        n_actions=2,
    )


def test_a_certificate_of_something_else_is_refused():
    log, other, limits = coin_log(500), coin_log(500, seed=1), [AtMost("harm", 0.5)]
    certificate = certify(coin(1.0), log, constraints=limits, discount=1.0, method="fqe-t")
    with pytest.raises(ArgumentError, match="other episodes"):
        survived(other, coin(1.0), 0.5, certificate=certificate)
    with pytest.raises(ArgumentError, match="another policy"):
        survived(log, coin(0.5), 0.5, certificate=certificate)
    with pytest.raises(ArgumentError, match="other limits"):
        survived(log, coin(1.0), 0.6, certificate=certificate)
    cross_fitted = certificate.model_copy(update={"method": CROSS_FITTED})
    with pytest.raises(ArgumentError, match="also helped to choose"):
        survived(log, coin(1.0), 0.5, certificate=cross_fitted)
    assert CROSS_FITTED == METHOD  # what `learn_certified` writes


def test_logged_propensities_are_said_to_rule_hidden_factors_out_if_they_were_used():
    assert "nothing was hidden" in survived(coin_log(5000), coin(1.0), 0.5).explanation


def test_the_search_ends_at_the_last_odds_ratio_that_passes_rounded_down():
    for edge in (1.0, 1.004, 1.013, 1.4, 2.718, 57.0):
        found = largest(lambda odds, edge=edge: odds <= edge)
        assert found <= edge
        assert found >= max(1.0, edge / 1.002 - 0.01)
    assert largest(lambda _: True) == LARGEST


def test_what_is_written_is_read_back(tmp_path):
    found = survived(coin_log(5000, chance=0.2), coin(1.0), 0.5)
    found.write(tmp_path / "sensitivity.json")
    assert Sensitivity.read(tmp_path / "sensitivity.json") == found
    with pytest.raises(StorageError, match="does not exist"):
        Sensitivity.read(tmp_path / "none.json")


def test_large_systems_are_left_to_the_command():
    for n_states, expected in ((1, True), (2000, False)):
        log = Dataset.from_arrays(
            states=[0, 0],
            actions=[0, 1],
            next_states=[0, 0],
            costs={"harm": [0.0, 1.0]},
            terminals=[True, True],
            episodes=[0, 1],
            n_states=n_states,
        )
        problem = checkrein.Problem(log, objective=None, constraints=[AtMost("harm", 0.5)], discount=1.0)
        assert quick(problem, TabularPolicy(np.tile([0.0, 1.0], (n_states, 1)))) == expected


@pytest.mark.slow
def test_a_true_hidden_factor_is_seldom_said_to_be_survived_where_the_limit_is_broken():
    """At 95 %, of 200 logs with the limit just below the truth; 18 or more would have a chance below 1 %."""
    chance, odds = 0.1, 1.5
    limit = worst_rate(chance, 0.5, odds) * (1 - 1e-9)
    wrong = 0
    for seed in range(200):
        found = survived(coin_log(400, chance=chance, seed=seed), coin(1.0), limit, seed=seed)
        wrong += found.odds_ratio is not None and found.odds_ratio >= odds
    assert wrong < 18


def test_copies_count_once_as_in_the_certificate():
    log = random_world(1000, 7)
    settings = {"constraints": [AtMost("g0", 8.0)], "discount": 0.95}
    uniform = TabularPolicy.uniform(log.n_states, log.n_actions)
    once, copied = (
        survived(one, uniform, 8.0, **settings) for one in (log, with_episodes(log, np.tile(np.arange(1000), 2)))
    )
    assert once.odds_ratio is not None
    assert copied.odds_ratio == once.odds_ratio
    assert copied.episodes == 1000


def test_of_a_cost_that_does_not_vary_nothing_is_said_to_break_the_limit():
    log = coin_log(500)
    log = log.with_costs({"harm": np.full(len(log), 0.1)})
    found = survived(log, coin(1.0), 0.5, constraints=[AtMost("harm", 0.5, range=(0, 1))])
    assert not found.constraints[0].varies
    assert "not known" in found.explanation
    assert "break" not in found.explanation
