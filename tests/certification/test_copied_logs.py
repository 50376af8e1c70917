"""What is judged on copies is judged on what they are copies of."""

import numpy as np
import pytest

from certification.cases import coin, coin_log, failed, harm, judged
from checkrein import AtMost, Problem, TabularPolicy, certify, learn_certified
from logs_again import lake, random_world, with_episodes
from problems import rows_of

TEN = np.tile(np.arange(60), 10)


def judge(log, **options):
    uniform = TabularPolicy.uniform(log.n_states, log.n_actions)
    return certify(uniform, log, constraints=[AtMost("g0", 4.0)], discount=0.95, **options)


def test_ten_copies_of_a_log_prove_what_it_proves_itself():
    once = random_world(60, 7)
    copied, alone = judge(with_episodes(once, TEN), method="fqe-t"), judge(once, method="fqe-t")
    assert copied.episodes == 60
    assert copied.bounds == pytest.approx(alone.bounds)
    (check,) = [check for check in copied.checks if check.name == "copies"]
    assert check.ok
    assert check.value == 540
    assert "540 of 600 episodes are copies of others" in check.words
    assert all(check.name != "copies" for check in alone.checks)


def test_copies_are_neither_learned_from_nor_judged_by_twice():
    once = lake(60, 3)
    options = {"objective": "goal", "constraints": [AtMost("hole", 0.5)], "discount": 0.99}
    copied = learn_certified(Problem(with_episodes(once, TEN), **options))
    alone = learn_certified(Problem(once, **options))
    assert copied.explanation == alone.explanation
    for here, there in zip(copied.candidates, alone.candidates, strict=True):
        assert here.certificate.checks[0].name == "copies"
        assert here.certificate.episodes == there.certificate.episodes == 60
        assert here.certificate.bounds == pytest.approx(there.certificate.bounds)


def test_episodes_that_weigh_nothing_do_not_count():
    log = coin_log(400)
    certificate = judged(coin(0.4), rows_of(log, weights=1.0 * (np.arange(400) < 3)), harm(5.0))
    assert certificate.episodes == 3
    assert "episodes" in failed(certificate)
    log = rows_of(log, weights=1.0 * (np.arange(400) < 3))
    problem = Problem(log, objective="benefit", constraints=[AtMost("harm", 5.0)], discount=1.0)
    assert "fewer than 30" in learn_certified(problem).explanation
