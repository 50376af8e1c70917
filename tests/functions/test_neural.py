import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from checkrein import (
    FQE,
    FQI,
    AtMost,
    Dataset,
    Ensemble,
    FrozenFeatures,
    Linear,
    Neural,
    Polynomial,
    Problem,
    Support,
    Tabular,
    Trees,
)
from checkrein.base.errors import ArgumentError, DivergenceError, MissingExtraError
from checkrein.data.frames import FrameStack
from checkrein.policies import TabularPolicy, load_policy, save_policy
from problems import problem_of, random_log

RNG = np.random.default_rng(0)
N = 600
STATES = RNG.normal(size=(N, 2))
ACTIONS = RNG.integers(0, 2, N)
ONES = np.ones(N)
SMALL = Neural((32, 32), batch=128, epochs=5)


def targets_of(states, actions):
    return np.stack([np.abs(states[:, 0]) + actions, 100 * states[:, 1] * (1 - 2 * actions)], axis=1)


TARGETS = targets_of(STATES, ACTIONS)


def fit(functions, targets=TARGETS, seed=0, **other):
    return functions.design(STATES, ACTIONS, ONES, n_actions=2).fit(targets, rng=np.random.default_rng(seed), **other)


def error(q, states=STATES, actions=ACTIONS):
    wanted = targets_of(states, actions)
    return np.sqrt(((q(states)[np.arange(len(states)), actions] - wanted) ** 2).mean(axis=0)) / wanted.std(axis=0)


def small_problem():
    log = Dataset.from_arrays(
        states=STATES,
        actions=ACTIONS,
        next_states=0.5 * STATES + 0.3 * ACTIONS[:, None],
        costs={"cost": np.abs(STATES[:, 0]), "harm": 1.0 * ACTIONS},
        terminals=RNG.random(N) < 0.2,
        initial_states=STATES[:50],
    )
    return Problem(log, objective="cost", constraints=[AtMost("harm", 0.5)], discount=0.8)


def test_what_was_learned_holds_on_other_states():
    others = np.random.default_rng(1).normal(size=(300, 2))
    q = fit(Neural((64, 64), batch=64, epochs=20, patience=4))
    assert (error(q, others, np.arange(300) % 2) < 0.25).all()


def test_fits_go_on_where_the_last_one_ended():
    design = SMALL.design(STATES, ACTIONS, ONES, n_actions=2)
    rng = np.random.default_rng(0)
    first = design.fit(TARGETS, rng=rng)
    later = first
    for _ in range(4):
        later = design.fit(TARGETS, rng=rng, start=later)
    assert (error(later) < 0.8 * error(first)).all()


def test_the_mean_of_every_action_is_hit_however_short_the_training():
    q = fit(Neural((8,), steps=1), TARGETS + 1000)
    values = q(STATES)[np.arange(N), ACTIONS]
    for action in range(2):
        rows = action == ACTIONS
        assert values[rows].mean(axis=0) == pytest.approx((TARGETS + 1000)[rows].mean(axis=0), rel=1e-5)


def test_moments_of_the_optimiser_stay_within_one_run():
    design, rng = SMALL.design(STATES, ACTIONS, ONES, n_actions=2), np.random.default_rng(0)
    first = design.fit(TARGETS, rng=rng)
    later = design.fit(TARGETS, rng=np.random.default_rng(7), start=first)
    fresh = SMALL.design(STATES, ACTIONS, ONES, n_actions=2)
    assert np.array_equal(later(STATES), fresh.fit(TARGETS, rng=np.random.default_rng(7), start=first)(STATES))


def test_many_models_at_once_equal_one_after_another():
    wanted = np.stack([TARGETS[:, :1], -TARGETS[:, :1], TARGETS[:, 1:]])
    design = Neural((32, 32), steps=40, batch=None).design(STATES, ACTIONS, ONES, n_actions=2)
    together = design.fit_many(wanted, models=3, rng=np.random.default_rng(0))
    for number in range(3):
        start = together.member(number)
        assert np.allclose(together.members(STATES)[number], start(STATES), atol=1e-4)
        alone = design.fit_many(wanted[[number]], models=1, rng=np.random.default_rng(3), start=start)
        batched = design.fit_many(wanted, models=3, rng=np.random.default_rng(3), start=together)
        assert batched.members(STATES)[number] == pytest.approx(
            alone(STATES), rel=1e-2, abs=1e-2 * wanted[number].std()
        )


def test_responses_to_many_multipliers_are_those_to_each():
    problem = small_problem()
    prices = np.array([[0.0], [10.0]])
    free, dear = FQI(SMALL, iterations=8, support=Support(0, 0)).responses(
        problem, prices, rng=np.random.default_rng(0)
    )
    assert dear.actions(STATES).mean() < 0.05 < free.actions(STATES).mean()
    assert len(FQI(Linear(Polynomial(1)), support=Support(0, 0)).responses(problem, prices, rng=RNG)) == 2


def test_the_last_layer_is_solved_for_to_the_end_of_a_long_horizon():
    problem = replace(problem_of(random_log(0, episodes=200)), discount=0.99)
    uniform = TabularPolicy.uniform(6, 3)
    exact = FQE(Tabular())(problem, uniform, rng=RNG)
    solved = FQE(Neural((64,), steps=20), iterations=2, last_layer=1e-6)(problem, uniform, rng=RNG)
    assert solved.objective == pytest.approx(exact.objective, rel=0.02)
    assert solved.constraints == pytest.approx(exact.constraints, rel=0.02)
    short = FQE(Neural((64,), steps=20), iterations=2)(problem, uniform, rng=RNG)
    assert abs(short.objective) < 0.5 * abs(exact.objective)  # two steps ahead


def test_only_networks_have_a_last_layer():
    with pytest.raises(ArgumentError, match="last_layer is for networks, but Trees"):
        FQE(Trees(2), last_layer=1.0)(problem_of(random_log(0)), TabularPolicy.uniform(6, 3), rng=RNG)


def test_conservatism_keeps_to_what_was_logged():
    rng = np.random.default_rng(0)
    logged = (rng.random(N) < 0.05).astype(int)  # the second action is rare, and tempting by noise
    log = Dataset.from_arrays(
        states=STATES,
        actions=logged,
        next_states=STATES,
        costs={"cost": 1.0 + 0.1 * (1 - 2 * logged) + rng.normal(size=N)},
        terminals=np.ones(N, dtype=bool),
        initial_states=STATES,
    )
    problem = Problem(log, objective="cost", constraints=[], discount=0.9)
    respond = lambda penalty: FQI(SMALL, 1, Support(0, 0), penalty)(problem, np.zeros(0), rng=np.random.default_rng(0))  # noqa: E731
    assert respond(3.0).actions(STATES).mean() < 0.02 < respond(0.0).actions(STATES).mean()
    with pytest.raises(ArgumentError, match="Linear is not trained by gradients"):
        FQI(Linear(), conservatism=1.0)(problem, np.zeros(0), rng=rng)
    with pytest.raises(ArgumentError, match="conservatism is -1"):
        FQI(SMALL, conservatism=-1)


def test_pessimism_costs_more_than_the_mean_and_members_differ():
    mean, wary = (fit(Ensemble(SMALL, 4, quantile)) for quantile in (None, 0.9))
    assert mean.members(STATES).shape == (4, N, 2, 2)
    assert mean.members(STATES).std(axis=0).min() > 0
    assert (wary(STATES) >= np.median(wary.members(STATES), axis=0)).all()
    assert wary(STATES).mean() > mean(STATES).mean()
    with pytest.raises(ArgumentError, match="Linear leaves nothing to chance"):
        Ensemble(Linear()).design(STATES, ACTIONS, ONES, n_actions=2)


def test_an_encoder_runs_once_per_state():
    seen = []

    def encoder(states):
        seen.append(len(states))
        return np.column_stack([np.ones(len(states)), states, states**2])

    problem = small_problem()
    functions = FrozenFeatures(encoder, SMALL)
    FQE(functions, iterations=5, support=Support(0, 0))(problem, Always(), rng=np.random.default_rng(0))
    assert sum(seen) == 2 * N + 50


class Always:
    def probabilities(self, states):
        return np.tile([0.0, 1.0], (len(states), 1))


def test_features_beyond_the_memory_are_mapped():
    kept = FrozenFeatures(Polynomial(2), Linear(Polynomial(1)), memory=1000)
    plain = FrozenFeatures(Polynomial(2), Linear(Polynomial(1)))
    assert np.array_equal(fit(kept)(STATES), fit(plain)(STATES))
    design = kept.design(STATES, ACTIONS, ONES, n_actions=2)
    assert isinstance(design.cache(STATES), np.memmap)


def test_the_trunk_of_a_network_encodes(tmp_path):
    q = fit(SMALL)
    policy = FQI(FrozenFeatures(q.encoder(), Linear(Polynomial(1), ridge=1e-3)), support=Support(0, 0))(
        small_problem(), np.zeros(1), rng=RNG
    )
    save_policy(policy, tmp_path / "policy.npz")
    assert np.array_equal(load_policy(tmp_path / "policy.npz").probabilities(STATES), policy.probabilities(STATES))
    assert policy.q.encoder(STATES).shape == (N, 32)


def test_images_are_stacked_from_frames_batch_by_batch():
    frames = RNG.integers(0, 255, (40, 12, 12), dtype=np.uint8)
    stack = FrameStack(frames, np.stack([np.arange(39), np.arange(1, 40)], axis=1))
    functions = Neural((8,), convolutions=((4, 3, 2),), steps=5, batch=8)
    actions, targets = np.arange(39) % 2, RNG.normal(size=(39, 1))
    lazy = functions.design(stack, actions, np.ones(39), n_actions=2).fit(targets, rng=np.random.default_rng(0))
    whole = functions.design(np.asarray(stack), actions, np.ones(39), n_actions=2)
    assert np.array_equal(lazy(stack), whole.fit(targets, rng=np.random.default_rng(0))(np.asarray(stack)))


def test_threads_are_given_back():
    before = torch.get_num_threads()
    fit(Neural((8,), steps=1, threads=before + 1))
    assert torch.get_num_threads() == before


def test_a_rate_that_is_too_high_is_named():
    with pytest.raises(DivergenceError, match="lower its rate"):
        fit(Neural((32, 32), rate=1e30, epochs=2))
    with pytest.raises(DivergenceError, match="lower its rate"):
        fit(Neural((32, 32), rate=1e30, steps=5))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Neural(epochs=0), "epochs is 0"),
        (lambda: Neural(hidden=(0,)), "hidden\\[0\\] is 0"),
        (lambda: Neural(rate=-1), "rate is -1"),
        (lambda: Neural(held_out=1), "held_out is 1"),
        (lambda: Ensemble(SMALL, 0), "size is 0"),
        (lambda: Ensemble(SMALL, 2, 1.5), "quantile is 1.5"),
        (lambda: fit(Neural(convolutions=((4, 3, 1),))), "convolutions are for images"),
        (lambda: SMALL.design(np.zeros((3, 8, 8)), np.zeros(3, int), np.ones(3), n_actions=1), "need convolutions="),
        (lambda: fit(FrozenFeatures(lambda x: x[:, 0], Trees())), "it must make \\(n, d\\)"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_images_too_small_for_the_convolutions_are_refused():
    functions = Neural(convolutions=((4, 9, 1),))
    with pytest.raises(ArgumentError, match="too small for the convolutions"):
        functions.design(np.zeros((60, 1, 8, 8)), np.zeros(60, int), np.ones(60), n_actions=1).fit(
            np.zeros((60, 1)), rng=RNG
        )


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "checkrein.functions.training", None)
    with pytest.raises(MissingExtraError, match=r"Neural needs .*pip install 'checkrein\[neural\]'"):
        fit(SMALL)


def test_importing_checkrein_leaves_torch_alone():
    code = "import checkrein, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
