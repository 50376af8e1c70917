"""From a problem file: behavior in limits, in both columns of the report and in the certificate is what was logged."""

import numpy as np
import polars as pl
import pytest

from checkrein import certify
from checkrein.report.model import BEHAVIOR
from checkrein.runs.comparison import references
from checkrein.runs.players import functions_of, players_for, support_of
from checkrein.runs.prepare import prepare

SHARE, STEPS, EPISODES = 0.8, 5, 240
SELDOM = 0.005  # of "cut", which harms most
CLASSES = {"tabular": "", "linear": "", "trees": "n_trees = 3\nmin_leaf = 20\n"}


def write(folder, functions, *, discount, ending=1.0):
    """A log whose state is one number, binned where states are finite.

    ending: the chance that an episode has ended when the log stops
    """
    rng = np.random.default_rng(4)
    n = EPISODES * STEPS
    pain = np.round(rng.normal(size=n), 2)
    seldom, treated = rng.random(n) < SELDOM, rng.random(n) < 0.5
    care = np.where(seldom, "cut", np.where(treated, "drug", "wait"))
    harm = np.where(seldom, 30.0, np.exp(0.3 * pain) * (1 - 0.5 * treated))
    ended = (np.arange(n) % STEPS == STEPS - 1) & np.repeat(rng.random(EPISODES) < ending, STEPS)
    pl.DataFrame(
        {
            "stay": np.repeat(np.arange(EPISODES), STEPS), "hour": np.tile(np.arange(STEPS), EPISODES),
            "pain": pain, "bin": np.digitize(pain, [-0.5, 0.5]), "care": care,
            "harm": harm, "dose": 2.0 * treated, "ended": ended.astype(int),
        }
    ).write_csv(folder / "log.csv")  # fmt: skip
    state = "bin" if functions == "tabular" else "pain"
    (folder / "problem.toml").write_text(
        f'[data]\npath = "log.csv"\nepisode = "stay"\nstep = "hour"\nstate = ["{state}"]\naction = "care"\n'
        'terminal = "ended"\n[objective]\nminimize = "dose"\n'
        f'[[constraint]]\nname = "harm"\nat_most = "{SHARE:.0%} of behavior"\n'
        f'[[constraint]]\nname = "given"\ncost = "dose"\nat_least = "{SHARE:.0%} of behavior"\n'
        f'[learn]\nfunctions = "{functions}"\ndiscount = {discount}\nmargin = "none"\n{CLASSES[functions]}'
    )
    return folder / "problem.toml"


def logged(problem):
    """(e, 3) discounted sums of dose, harm and minus dose."""
    dataset = problem.dataset
    dose, harm = (dataset.returns(problem.discount)[:, dataset.cost_names.index(name)] for name in ("dose", "harm"))
    return np.column_stack([dose, harm, -dose])


@pytest.fixture(params=[(name, discount) for name in CLASSES for discount in (0.9, 1.0)], ids=str)
def prepared(request, tmp_path):
    functions, discount = request.param
    return prepare(write(tmp_path, functions, discount=discount))


def test_a_share_of_behavior_is_that_share_of_the_logged_mean(prepared):
    mean = logged(prepared.problem).mean(axis=0)
    assert [c.limit for c in prepared.problem.constraints] == pytest.approx(
        [SHARE * mean[1], SHARE * mean[0]], rel=1e-12
    )


def test_the_reports_behavior_is_the_logged_mean_of_each_part_and_so_is_the_data_cards_of_both(prepared):
    learn = prepared.file.learn
    players = players_for(learn, functions_of(learn), prepared.problem, support_of(learn))
    found = references(prepared, players, [])[BEHAVIOR]
    parts = [logged(prepared.problem), logged(prepared.held_out)]
    assert found.learning.row == pytest.approx(parts[0].mean(axis=0), rel=1e-12)
    assert found.held_out.row == pytest.approx(parts[1].mean(axis=0), rel=1e-12)
    errors = parts[1].std(axis=0, ddof=1) / np.sqrt(len(parts[1]))
    assert found.standard_error == pytest.approx(errors)
    card = {row.cost: row.value for row in prepared.card.behavior}
    dose, harm = np.concatenate(parts).mean(axis=0)[:2]
    assert card == pytest.approx({"dose": dose, "harm": harm, "given": dose}, rel=1e-12)


@pytest.mark.parametrize("functions", CLASSES)
def test_where_half_of_the_episodes_were_cut_off_what_follows_is_added(functions, tmp_path):
    """Nothing that happens depends on the state: as many steps again follow, each with the mean of all steps."""
    file = prepare(write(tmp_path, functions, discount=0.9, ending=0.5))
    dataset = file.problem.dataset
    known = dataset.terminals | dataset.next_observed
    steps = dataset.costs[known].mean(axis=0)[dataset.cost_names.index("harm")]
    ends = dataset.terminals.sum() / known.sum()  # of a step with a known future
    mean, value = logged(file.problem)[:, 1].mean(), file.problem.constraints[0].limit / SHARE
    following = steps / (1 - 0.9 * (1 - ends))
    cut = dataset.truncated.sum() / EPISODES * 2  # half of the episodes are learned from
    assert value == pytest.approx(mean + cut * 0.9 ** (STEPS - 1) * (following - steps), rel=0.12)


def test_a_certificate_over_features_compares_with_behavior_as_it_is_where_episodes_were_cut_off(tmp_path):
    """Behavior's own probabilities, judged beside behavior: near it, and not far below what counts at its worst."""
    file = prepare(write(tmp_path, "linear", discount=0.9, ending=0.5))
    problem = file.held_out
    for method in ("fqe-t", "dr-t", "pdis-t"):
        found = certify(
            Constant(),
            problem.dataset,
            constraints=problem.constraints[1:],
            discount=0.9,
            objective="harm",
            method=method,
        ).objective
        sums = logged(problem)[:, 1].mean()
        assert sums * 0.99 < found.behavior < 2 * sums
        assert found.difference == pytest.approx(found.estimate - found.behavior)


class Constant:
    """Treats half of the patients, whoever they are."""

    def probabilities(self, states):
        return np.tile([0.0, 0.5, 0.5], (len(states), 1))
