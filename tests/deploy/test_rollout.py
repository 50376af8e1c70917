from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from checkrein import GreedyPolicy, MixturePolicy, Polynomial, TabularPolicy
from checkrein.base.errors import ArgumentError, DataError
from checkrein.data.encoding import Encoding, StateColumn
from checkrein.deploy import DeployedPolicy, rollout
from checkrein.functions import LinearQ
from checkrein_studies import frozen_lake


def always(action, states):
    return TabularPolicy(np.tile(np.eye(2)[action], (states, 1)))


LAKE = frozen_lake.lake()
OPTIMUM = LAKE.optimum(objective="goal").policy
BEHAVIOR = frozen_lake.behavior(LAKE)
ALWAYS = [always(action, 4) for action in (0, 1)]


class Holes(gymnasium.Wrapper):
    """Says in info whether the step led into a hole."""

    def step(self, action):
        state, reward, terminated, truncated, info = self.env.step(action)
        return state, reward, terminated, truncated, info | {"hole": float(terminated and reward == 0)}


class Walk(gymnasium.Env):
    """Each step pays the action; it ends after `length` steps. What is seen is the step's number."""

    action_space = spaces.Discrete(2)

    def __init__(self, length=6, observation_space=None):
        self.length, self.observation_space = length, observation_space or spaces.Discrete(length + 1)

    def seen(self):
        if isinstance(self.observation_space, spaces.Box):
            return np.array([self.place, 1.0], dtype=np.float32)
        return self.place

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.seen(), {}

    def step(self, action):
        self.place += 1
        return self.seen(), float(action), self.place == self.length, False, {"twice": 2 * action}


BOX = spaces.Box(-np.inf, np.inf, (2,))


def holes():
    return Holes(frozen_lake.environment(slippery=True))


def test_means_on_the_frozen_lake_agree_with_the_exact_values():
    mixture = MixturePolicy((OPTIMUM, BEHAVIOR), np.array([0.6, 0.4]))
    played = rollout(mixture, holes(), episodes=1000, seed=0, max_steps=2000, costs=["hole"], discount=LAKE.discount)
    exact = LAKE.values(mixture)
    assert abs(played.mean("reward") + exact["goal"]) < 4 * played.standard_error("reward")
    assert abs(played.mean("hole") - exact["hole"]) < 4 * played.standard_error("hole")
    assert played.standard_error("reward") < 0.025
    assert not played.cut_off.any()
    assert np.abs(np.bincount(played.members) / 1000 - mixture.weights).max() < 4 * np.sqrt(0.25 / 1000)


def test_undiscounted_sums_agree_with_the_values_at_discount_one():
    played = rollout(BEHAVIOR, holes(), episodes=400, seed=1, max_steps=5000, costs=["hole"])
    exact = frozen_lake.lake(discount=1.0).values(BEHAVIOR)
    assert abs(played.mean("hole", discounted=False) - exact["hole"]) < 4 * played.standard_error("hole")
    assert np.array_equal(played.sums, played.discounted)
    assert np.array_equal(played.sums.sum(axis=1), np.ones(400))  # every episode ends in the goal or in a hole


def test_one_member_is_followed_from_start_to_end():
    mixture = MixturePolicy(tuple(ALWAYS), np.array([0.3, 0.7]))
    played = rollout(mixture, Walk(3), episodes=400, seed=0, max_steps=10, costs=["twice"], discount=0.5)
    assert np.array_equal(played.sums[:, 0], 3.0 * played.members)
    assert np.array_equal(played.sums[:, 1], 6.0 * played.members)
    assert played.discounted[:, 0] == pytest.approx((1 + 0.5 + 0.25) * played.members)
    assert abs(played.members.mean() - 0.7) < 4 * np.sqrt(0.21 / 400)
    assert played.table()["name"].to_list() == ["reward", "twice"]
    assert played.table()["mean"].to_list() == pytest.approx([3 * played.members.mean(), 6 * played.members.mean()])


def test_episodes_do_not_depend_on_how_many_there_are():
    few = rollout(BEHAVIOR, holes(), episodes=5, seed=4, max_steps=300, discount=0.9)
    many = rollout(BEHAVIOR, holes(), episodes=20, seed=4, max_steps=300, discount=0.9)
    assert np.array_equal(few.lengths, many.lengths[:5])
    assert np.array_equal(few.discounted, many.discounted[:5])
    other = rollout(BEHAVIOR, holes(), episodes=20, seed=5, max_steps=300, discount=0.9)
    assert not np.array_equal(many.lengths, other.lengths)


def test_features_are_read_from_boxes():
    """The first feature is the step's number: act 1 from step 3 on."""
    q = LinearQ(Polynomial(1), np.array([[0.0, 0, 0], [2.5, -1.0, 0]])[:, :, None])
    played = rollout(GreedyPolicy(q), Walk(6, BOX), episodes=2, seed=0, max_steps=10)
    assert played.sums[:, 0].tolist() == [3.0, 3.0]
    encoding = Encoding(("0", "1"), (StateColumn("place"), StateColumn("one")))
    encoded = rollout(DeployedPolicy(GreedyPolicy(q), encoding), Walk(6, BOX), episodes=2, seed=0, max_steps=10)
    assert np.array_equal(encoded.sums, played.sums)


def test_an_encoding_translates_states_and_actions():
    """Categories sort as text, so that neither states nor actions keep their numbers."""
    columns = (StateColumn("place", ("2", "1", "0")),)
    encoding = Encoding(("1", "0"), columns, np.array([[0], [1], [2]]))
    policy = TabularPolicy(np.array([[1.0, 0], [0, 1], [0, 1]]))  # action "1" in place 2 only
    played = rollout(DeployedPolicy(policy, encoding), Walk(3), episodes=3, seed=0, max_steps=10)
    assert played.sums[:, 0].tolist() == [1.0, 1.0, 1.0]


def test_what_takes_too_long_is_cut_off():
    played = rollout(always(1, 7), Walk(6), episodes=2, seed=0, max_steps=4)
    assert (played.lengths.tolist(), played.cut_off.tolist()) == ([4, 4], [True, True])
    named = rollout(BEHAVIOR, "FrozenLake8x8-v1", episodes=3, seed=0, max_steps=2)
    assert named.lengths.tolist() == [2, 2, 2]


def test_one_episode_tells_nothing_of_its_error():
    played = rollout(always(1, 3), Walk(2), episodes=1, seed=0, max_steps=4)
    assert played.mean() == 2.0
    assert np.isnan(played.standard_error())


WORDS = Encoding(("stay", "go"), (StateColumn("place", ("0",)),), np.array([[0]]))
TWO = Encoding(("0", "1"), (StateColumn("a", ("0",)), StateColumn("b", ("0",))), np.array([[0, 0]]))
ODD = Encoding(("0", "7"), (StateColumn("place", ("0",)),), np.array([[0]]))


THREE = LinearQ(Polynomial(1), np.zeros((2, 4, 1)))  # of three numbers


def test_a_policy_with_a_horizon_is_told_the_step_and_ends_there():
    """It acts in the last of its three decisions alone, wherever it is."""
    columns = (StateColumn("place"), StateColumn("one"), StateColumn("step number"))
    late = LinearQ(Polynomial(1), np.array([[0.0, 0, 0, 0], [2.5, 0, 0, -1.0]])[:, :, None])
    policy = DeployedPolicy(GreedyPolicy(late), Encoding(("0", "1"), columns, horizon=3))
    played = rollout(policy, Walk(6, BOX), episodes=2, seed=0, max_steps=10)
    assert played.sums[:, 0].tolist() == [1.0, 1.0]
    assert (played.lengths.tolist(), played.cut_off.tolist()) == ([3, 3], [False, False])
    with pytest.raises(DataError, match="'step number' is 4 in row 0: it must be 1 to 3"):
        policy.act([{"place": 3.0, "one": 1.0, "step number": 4}], seed=0)
    steps = np.array([[i, s] for s in range(2) for i in range(3)])
    columns = (StateColumn("place", ("0", "1", "2")), StateColumn("step number", ("1", "2")))
    finite = Encoding(("0", "1"), columns, steps)
    table = TabularPolicy(np.repeat(np.eye(2), 3, axis=0))  # action 1 in step 2
    twice = rollout(DeployedPolicy(table, replace(finite, horizon=2)), Walk(2), episodes=2, seed=0, max_steps=10)
    assert twice.sums[:, 0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("policy", "environment", "options", "error", "message"),
    [
        (ALWAYS[0], Walk(3), {"costs": ["fall"]}, DataError, "no 'fall' in step 0 of episode 0: it has twice"),
        (ALWAYS[0], Walk(2), {"costs": ["reward"]}, ArgumentError, "each needs a name"),
        (ALWAYS[0], Walk(2), {"discount": 0.0}, ArgumentError, "discount is 0.0"),
        (ALWAYS[0], Walk(2), {"episodes": 0}, ArgumentError, "episodes is 0"),
        (ALWAYS[0], Walk(9), {}, ArgumentError, "environment has 10 states, but the policy was learned from 4"),
        (ALWAYS[0], "FrozenLake-v1", {}, ArgumentError, "environment has 16 states, but the policy was learned from 4"),
        (ALWAYS[0], Walk(3, BOX), {}, ArgumentError, "shows Box.* but the policy knows 4 finite states"),
        (GreedyPolicy(THREE), Walk(3, BOX), {}, ArgumentError, "shows Box.*, which the policy cannot read"),
        (GreedyPolicy(THREE), Walk(3), {}, ArgumentError, "shows Discrete.*, which the policy cannot read"),
        (ALWAYS[0], "Nope-v0", {}, ArgumentError, "'Nope-v0' cannot be made: Environment `Nope` doesn't exist"),
        (ALWAYS[0], "nothing:Here-v0", {}, ArgumentError, "cannot be made: No module named 'nothing'"),
        (ALWAYS[0], Walk(2, spaces.MultiBinary(3)), {}, ArgumentError, r"observations are MultiBinary\(3\)"),
        (ALWAYS[0], "Pendulum-v1", {}, ArgumentError, "actions are Box.*only Discrete"),
        (TabularPolicy(np.tile([0.0, 0, 1], (3, 1))), Walk(2), {}, ArgumentError, "3 actions, but the env.* has 2"),
        (DeployedPolicy(ALWAYS[0], WORDS), Walk(2), {}, ArgumentError, "are stay, go, but the environment takes"),
        (DeployedPolicy(ALWAYS[0], TWO), Walk(2), {}, ArgumentError, "one integer, but the policy's states are a, b"),
        (DeployedPolicy(ALWAYS[0], ODD), Walk(2), {}, ArgumentError, "may take action 7, but the environment has"),
        (DeployedPolicy(ALWAYS[0], ODD), Walk(2, BOX), {}, ArgumentError, r"shape \(2,\), but .* states are place"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(policy, environment, options, error, message):
    with pytest.raises(error, match=message):
        rollout(policy, environment, **({"episodes": 1, "seed": 0, "max_steps": 5} | options))


def test_a_sum_that_was_not_asked_for_is_named():
    played = rollout(always(1, 3), Walk(2), episodes=1, seed=0, max_steps=4)
    with pytest.raises(ArgumentError, match="nothing is called 'hole': there are sums of reward"):
        played.mean("hole")
