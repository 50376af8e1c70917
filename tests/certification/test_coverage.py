import numpy as np
import pytest

from certification.cases import QUICK, coin, coin_log, graph_log, upper_value
from checkrein import AtMost
from checkrein.certification import certify
from checkrein_studies import graph


def most(runs, alpha=0.05):
    """Three standard deviations above the share of runs that may err."""
    return alpha + 3 * np.sqrt(alpha * (1 - alpha) / runs)


@pytest.mark.parametrize("runs", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_the_default_errs_on_the_graph_no_more_often_than_it_says(runs):
    low, high, wrong, answered = 0, 0, 0, 0
    for seed in range(runs):
        mdp, log = graph_log(150, horizon=3, slip=0.3, seed=seed)
        policy = graph.constant_policy(mdp, 0.65)
        truth = upper_value(mdp, policy)
        broken = AtMost("upper", 0.999 * truth, range=(0, 3))
        found = certify(policy, log, constraints=[broken], discount=mdp.discount, method=QUICK, seed=seed)
        answered += all(check.ok for check in found.checks)
        low += found.constraints[0].bound < truth
        high += found.constraints[0].other_bound > truth
        wrong += found.verdict == "pass"
    assert answered / runs > 0.9
    assert low / runs <= most(runs)
    assert high / runs <= most(runs)
    assert wrong / runs <= most(runs)


@pytest.mark.parametrize("runs", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_a_rare_harm_that_few_episodes_show_is_seldom_passed_wrongly(runs):
    """Bounds that trust the spread are too low where a handful of episodes makes it; none at all is no evidence."""
    wrong = 0
    limit = AtMost("harm", 0.055, range=(0, 1))
    for seed in range(runs):
        log = coin_log(50, chance=0.06, logged=1.0, propensity=1.0, seed=seed)
        found = certify(coin(1.0), log, constraints=[limit], discount=1.0, method=QUICK, seed=seed)
        wrong += found.verdict == "pass"
    assert wrong / runs <= 0.05
