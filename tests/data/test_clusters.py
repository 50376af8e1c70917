from dataclasses import replace

import numpy as np
import pytest

from checkrein import Dataset
from checkrein.base.errors import DataError
from checkrein.data.memory import Remembered
from checkrein.data.remember import remember
from checkrein.data.split import split_episodes
from problems import random_log, rows_of

LOG = random_log(0)
PATIENTS = LOG.episodes % 7
CLUSTERED = rows_of(LOG, clusters=PATIENTS)


def test_integers_are_kept_and_labels_are_numbered():
    assert CLUSTERED.clusters.tolist() == PATIENTS.tolist()
    for labels in (np.array(list("gfedcba"))[PATIENTS], np.array(list("gfedcba"), dtype=object)[PATIENTS]):
        found = rows_of(LOG, clusters=labels).clusters
        assert found.dtype == np.int64
        assert (6 - found).tolist() == PATIENTS.tolist()
    assert rows_of(LOG, clusters=PATIENTS.astype(float)).clusters.tolist() == PATIENTS.tolist()


def test_an_episode_of_two_clusters_is_refused_with_both_and_what_to_do():
    wrong = PATIENTS.copy()
    row = int(np.flatnonzero(LOG.episodes == 9)[-1])
    wrong[row] = 40
    first = int(np.flatnonzero(LOG.episodes == 9)[0])
    words = f"episode 9 is of cluster 2 in row {first}, but of 40 in row {row}: .*fix the log"
    with pytest.raises(DataError, match=words):
        rows_of(LOG, clusters=wrong)


@pytest.mark.parametrize("nothing", [np.nan, None])
def test_a_missing_cluster_is_refused_with_its_row(nothing):
    labels = PATIENTS.astype(object)
    labels[4] = nothing
    with pytest.raises(DataError, match=rf"clusters is missing in row 4 \(episode {LOG.episodes[4]}\)"):
        rows_of(LOG, clusters=labels)


def test_clusters_need_episodes_integers_and_a_row_each():
    with pytest.raises(DataError, match="clusters are of episodes, which are not known: pass episodes="):
        rows_of(replace(LOG, episodes=None, steps=None), clusters=PATIENTS)
    with pytest.raises(DataError, match="clusters is 0.5 in row 0"):
        rows_of(LOG, clusters=PATIENTS + 0.5)
    with pytest.raises(DataError, match="clusters"):
        rows_of(LOG, clusters=PATIENTS[:-1])
    with pytest.raises(DataError, match="one-dimensional"):
        rows_of(LOG, clusters=PATIENTS[:, None])


def test_clusters_go_with_their_rows(tmp_path):
    CLUSTERED.write_parquet(tmp_path / "log.parquet")
    assert Dataset.read_parquet(tmp_path / "log.parquet") == CLUSTERED
    some = LOG.episodes < 20
    assert CLUSTERED.part(some).clusters.tolist() == PATIENTS[some].tolist()
    assert CLUSTERED.with_costs({"c": LOG.cost("c")}).clusters is CLUSTERED.clusters
    assert remember(CLUSTERED, Remembered(previous=True)).clusters is CLUSTERED.clusters
    assert CLUSTERED.compressed().clusters is None  # as episodes are: rows of several are one


def test_a_log_with_clusters_is_another_log():
    assert rows_of(LOG) != CLUSTERED
    assert rows_of(LOG, clusters=PATIENTS + 1) != CLUSTERED


def test_clusters_are_split_whole_and_by_their_number():
    learning, held = split_episodes(CLUSTERED, holdout=0.3, seed=0)
    mine, theirs = set(learning.clusters.tolist()), set(held.clusters.tolist())
    assert (len(theirs), mine & theirs, mine | theirs) == (2, set(), set(range(7)))
    assert (learning.n_units, held.n_units) == (5, 2)
    with pytest.raises(DataError, match="7 clusters cannot be split with holdout = 0.05"):
        split_episodes(CLUSTERED, holdout=0.05, seed=0)


def test_clusters_of_one_episode_each_are_split_like_episodes():
    for plain, alone in zip(
        split_episodes(LOG, holdout=0.4, seed=3),
        split_episodes(rows_of(LOG, clusters=LOG.episodes), holdout=0.4, seed=3),
        strict=True,
    ):
        assert plain.episodes.tolist() == alone.episodes.tolist()
