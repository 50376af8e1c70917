"""Groups of episodes that begin alike: all episodes say what becomes of them, by how often they lead to their rows."""

from dataclasses import replace

import numpy as np
import pytest

from checkrein import AtMost, Problem, Support, TabularPolicy
from checkrein.data.split import split_episodes
from checkrein.evaluation.one_step import TabularNuisances
from checkrein.problem import Episodes
from checkrein.selection.judged_episodes import JudgedEpisodes
from checkrein_studies import icu


def treat():
    """Give both drugs to half of those who are worse than mild."""
    table = icu.clinicians().table.copy()
    table[4:] = 0.5 * table[4:] + 0.5 * np.eye(table.shape[1])[-1]
    return TabularPolicy(table)


def scored(seed, patients=1500):
    """Two halves, each judging by the other's tables, and what they say."""
    problem = Problem(
        icu.log(patients=patients, seed=seed),
        objective="death",
        constraints=[AtMost("litres of fluid", 2.5)],
        discount=1.0,
    )
    one, two = (replace(problem, dataset=half) for half in split_episodes(problem.dataset, holdout=0.5, seed=seed))
    tables = [TabularNuisances.of(mine, Support()) for mine in (one, two)]
    found = [t.scores_from(other, treat()) for t, other in zip(tables, (two, one), strict=True)]
    scores = np.concatenate([t.score(other, treat()).scores for t, other in zip(tables, (two, one), strict=True)])
    logs = [Episodes.of(two), Episodes.of(one)]
    behavior = [log.sums(log.row_costs) for log in logs]
    return JudgedEpisodes(logs, scores, behavior, lambda: found)


def severities(judged):
    return np.concatenate([log.states[log.begins] for log in judged.logs]) // len(icu.LACTATES)


def exact(severity):
    ward = icu.ward()
    initial = np.where(np.arange(ward.initial.size) // len(icu.LACTATES) == severity, ward.initial, 0.0)
    begun = replace(ward, initial=initial / initial.sum())
    return begun.values(treat())["death"] - begun.values(icu.clinicians())["death"]


def test_a_group_of_all_episodes_is_about_what_they_say_together():
    judged = scored(0)
    (everyone,) = judged.differences_by(0.05, [np.ones(judged.labels.size, bool)])
    together = judged.differences(0.05)
    assert everyone.estimates == pytest.approx(together.estimates, abs=0.2 * together.standard_errors.max())
    assert everyone.standard_errors == pytest.approx(together.standard_errors, rel=0.1)


def test_intervals_of_groups_hold_the_exact_difference_about_as_often_as_they_say():
    truth, kept = [exact(k) for k in range(4)], 0
    for seed in range(25):
        judged = scored(seed)
        begins = severities(judged)
        intervals = judged.differences_by(0.05, [begins == k for k in range(4)])
        kept += sum(one.lower[0] <= value <= one.upper[0] for one, value in zip(intervals, truth, strict=True))
    assert kept >= 84  # of 100, each end at 95%


def test_a_beginning_that_a_fold_never_saw_is_not_known():
    judged = scored(0, patients=300)
    found = judged.from_states()[0]
    unseen = np.flatnonzero(found.tables.initial_distribution == 0)
    begin = np.zeros(found.tables.initial_distribution.size, bool)
    begin[unseen] = True
    assert np.isnan(found.corrections(begin)).all()
