"""Every backup passes these: a new one is a line in BACKUPS."""

import numpy as np
import pytest

from checkrein import Entropy, KLDivergence, TabularPolicy, TotalVariation
from checkrein.bellman.backups import Greedy, Regularized
from checkrein.bellman.targets import improvement_targets
from checkrein.functions.tabular import TabularQ
from checkrein.policies import CountMask, EveryAction
from contracts.worlds import census, problem_of

STATES = np.arange(6)
Q = TabularQ(np.random.default_rng(0).normal(size=(6, 3, 1)))
MASK = CountMask(np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool))
WORST = 7.0

REFERENCE = TabularPolicy(np.random.default_rng(1).dirichlet(np.ones(3), 6))
SOFT = (0.7, KLDivergence(REFERENCE)), (0.2, TotalVariation(TabularPolicy.uniform(6, 3)))


def soft(*terms):
    return lambda support, worst: Regularized(support, worst, terms)


BACKUPS = {
    "greedy": Greedy,
    "soft": soft(SOFT[0]),
    "random": soft((-0.5, Entropy())),
    "near": soft(SOFT[1]),
    "several": soft(*SOFT, (-0.3, Entropy())),
}


def paid(backup, policy):
    """What a policy pays in every state, its actions' Q and the rest."""
    return (policy.probabilities(STATES) * Q(STATES)[..., 0]).sum(axis=1) + backup.besides(policy, STATES)


def check_its_policy_does_what_its_value_assumes(kind):
    backup = kind(MASK, WORST)
    policy, values = backup.policy(Q), backup.value(Q, STATES)
    followed = policy.probabilities(STATES)
    assert followed.sum(axis=1) == pytest.approx(1)
    supported = MASK.table.any(axis=1)
    assert (followed[supported][~MASK.table[supported]] == 0).all()
    assert paid(backup, policy)[supported] == pytest.approx(values[supported])


def check_no_supported_choice_is_better(kind):
    backup, rng = kind(MASK, WORST), np.random.default_rng(2)
    values, supported = backup.value(Q, STATES), MASK.table.any(axis=1)
    for trial in range(200):
        table = rng.dirichlet(np.full(3, 0.1 + trial % 3), 6) * MASK.table + 1e-300 * ~supported[:, None]
        other = TabularPolicy(table / table.sum(axis=1, keepdims=True))
        assert (paid(backup, other)[supported] >= values[supported] - 1e-9).all()


def check_a_state_without_evidence_is_worth_its_worst(kind):
    assert kind(MASK, WORST).value(Q, STATES)[-1] == WORST


def check_raising_q_by_a_constant_raises_the_value_by_it(kind):
    backup, more = kind(EveryAction(3), WORST), TabularQ(Q.table + 2.5)
    assert backup.value(more, STATES) == pytest.approx(backup.value(Q, STATES) + 2.5)


@pytest.mark.parametrize("kind", BACKUPS.values(), ids=BACKUPS)
@pytest.mark.parametrize(
    "check",
    [
        check_its_policy_does_what_its_value_assumes,
        check_no_supported_choice_is_better,
        check_a_state_without_evidence_is_worth_its_worst,
        check_raising_q_by_a_constant_raises_the_value_by_it,
    ],
)
def test_a_backup_keeps_its_word(check, kind):
    check(kind)


@pytest.mark.parametrize("kind", BACKUPS.values(), ids=BACKUPS)
def test_targets_pay_at_once_and_look_one_step_ahead_but_not_past_an_end(kind):
    problem = problem_of(census())
    rows, costs = problem.transitions, problem.row_costs[:, :1]
    q, nothing = TabularQ(Q.table), TabularQ(np.zeros_like(Q.table))
    backup = kind(EveryAction(3), WORST)
    targets = improvement_targets(problem, costs, backup)
    at_once = np.where(rows.terminals, 0.0, 0.8 * backup.value(nothing, rows.next_states))
    assert targets(nothing)[:, 0] == pytest.approx(costs[:, 0] + at_once)
    ahead = 0.8 * backup.value(q, rows.next_states)
    assert targets(q)[:, 0] == pytest.approx(costs[:, 0] + np.where(rows.terminals, 0.0, ahead))
