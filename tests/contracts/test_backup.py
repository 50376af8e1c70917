"""Every backup passes these: a new one is a line in BACKUPS."""

import numpy as np
import pytest

from checkrein.bellman.backups import Greedy
from checkrein.bellman.targets import improvement_targets
from checkrein.functions.tabular import TabularQ
from checkrein.policies import CountMask, EveryAction
from contracts.worlds import census, problem_of

STATES = np.arange(6)
Q = TabularQ(np.random.default_rng(0).normal(size=(6, 3, 1)))
MASK = CountMask(np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool))
WORST = 7.0

BACKUPS = {"greedy": Greedy}


def check_its_policy_does_what_its_value_assumes(kind):
    backup = kind(MASK, WORST)
    policy, values = backup.policy(Q), backup.value(Q, STATES)
    followed = policy.probabilities(STATES)
    assert followed.sum(axis=1) == pytest.approx(1)
    supported = MASK.table.any(axis=1)
    assert (followed[supported][~MASK.table[supported]] == 0).all()
    assert (followed * Q(STATES)[..., 0]).sum(axis=1)[supported] == pytest.approx(values[supported])


def check_no_supported_choice_is_better(kind):
    values = kind(MASK, WORST).value(Q, STATES)
    for state in STATES[:-1]:
        choices = [Q(STATES)[state, action, 0] for action in np.flatnonzero(MASK.table[state])]
        assert values[state] == pytest.approx(min(choices))


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
    q = TabularQ(Q.table[:, :2])
    targets = improvement_targets(problem, costs, kind(EveryAction(2), WORST))
    assert targets(None) == pytest.approx(costs)
    ahead = 0.8 * q(rows.next_states)[..., 0].min(axis=1)
    assert targets(q)[:, 0] == pytest.approx(costs[:, 0] + np.where(rows.terminals, 0.0, ahead))
