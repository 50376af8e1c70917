import numpy as np
import pytest

from checkrein import GreedyPolicy, MixturePolicy, SoftminPolicy, TabularPolicy
from checkrein.base.errors import ArgumentError, DataError
from checkrein.functions import TabularQ
from checkrein.policies import CountMask, members_of

Q = TabularQ(np.array([[[3.0], [1.0], [2.0]], [[0.0], [5.0], [0.0]]]))
STATES = np.array([0, 1, 0])


def test_greedy_takes_the_least_value_and_of_equal_ones_the_first():
    assert GreedyPolicy(Q).actions(STATES).tolist() == [1, 0, 1]
    assert GreedyPolicy(Q).probabilities(STATES).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]


def test_values_that_differ_by_rounding_are_equal():
    noisy = TabularQ(np.array([[[0.1 + 0.2], [0.3], [5.0]]]))
    assert GreedyPolicy(noisy).actions(np.array([0])).tolist() == [0]


def test_what_is_not_supported_is_never_chosen():
    mask = CountMask(np.array([[True, False, True], [False, True, False]]))
    assert GreedyPolicy(Q, mask).actions(STATES).tolist() == [2, 1, 2]
    assert SoftminPolicy(Q, 1.0, mask).probabilities(STATES)[1].tolist() == [0, 1, 0]


def test_softmin_is_proportional_to_the_exponential():
    probabilities = SoftminPolicy(Q, 0.5).probabilities(np.array([0]))[0]
    assert probabilities / probabilities[1] == pytest.approx(np.exp([-4.0, 0.0, -2.0]))
    assert SoftminPolicy(Q, 1e-3).probabilities(np.array([0]))[0] == pytest.approx([0, 1, 0])


def test_a_mixture_follows_one_member_per_episode():
    first, second = (TabularPolicy(np.tile(row, (2, 1))) for row in ([1.0, 0.0], [0.0, 1.0]))
    mixture = MixturePolicy((first, second), np.array([0.25, 0.75]))
    assert mixture.probabilities(np.array([0])).tolist() == [[0.25, 0.75]]
    rng = np.random.default_rng(0)
    drawn = [mixture.draw(rng) is second for _ in range(2000)]
    assert np.mean(drawn) == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / 2000))


def test_a_mixture_of_mixtures_flattens_to_its_members():
    policy = TabularPolicy.uniform(1, 2)
    inner = MixturePolicy((policy, policy), np.array([0.5, 0.5]))
    weights = [weight for _, weight in members_of(MixturePolicy((inner, policy), np.array([0.4, 0.6])))]
    assert weights == pytest.approx([0.2, 0.2, 0.6])


def test_states_beyond_the_table_are_named():
    with pytest.raises(DataError, match="state 9 in row 1, but the table has only 2 states"):
        TabularPolicy.uniform(2, 2).probabilities(np.array([0, 9]))
    with pytest.raises(DataError, match="finite states are a column of integers"):
        TabularPolicy.uniform(2, 2).probabilities(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TabularPolicy(np.array([[0.5, 0.6]])), "state 0 .*must sum to 1"),
        (lambda: TabularPolicy(np.array([[1.5, -0.5]])), "state 0"),
        (lambda: TabularPolicy(np.array([0.5, 0.5])), r"\(S, A\) table"),
        (lambda: SoftminPolicy(Q, 0.0), "temperature is 0.0"),
        (lambda: MixturePolicy((), np.zeros(0)), "0 members"),
        (lambda: MixturePolicy((TabularPolicy.uniform(1, 1),), np.array([0.5])), "must sum to 1"),
        (lambda: MixturePolicy((TabularPolicy.uniform(1, 1),), np.array([np.nan])), r"weights\[0\] is nan"),
    ],
)
def test_bad_policies_are_refused_with_the_numbers(build, message):
    with pytest.raises(ArgumentError, match=message):
        build()
