"""Every look is charged to the episodes that it used, wherever they lie."""

import json
from pathlib import Path

import numpy as np
import pytest

from checkrein import AtLeast, AtMost
from checkrein.base.errors import DataError
from checkrein.certification.certify import alpha_spent
from checkrein.certification.looks import FILE, Looks, claim_key, state_folder
from checkrein.data.identity import EpisodeKeys
from logs_again import bandit, random_world, with_episodes


@pytest.fixture
def ledger(tmp_path):
    return Looks((tmp_path / "beside" / FILE, tmp_path / "own" / FILE))


def look_at(looks, log, claim):
    """Record a claim, and return which look it is."""
    number = looks.number(log, claim)
    assert looks.record(log, claim, verdict="pass", what="run") == []
    return number


def test_a_new_claim_is_the_next_look_and_an_old_one_keeps_its_number(ledger):
    log = EpisodeKeys.of(random_world(100, 0))
    assert [look_at(ledger, log, claim) for claim in "aabacb"] == [1, 1, 2, 1, 3, 2]
    assert look_at(ledger, EpisodeKeys.of(random_world(100, 1)), "c") == 1
    for path in ledger.paths:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["look"] for line in lines] == [1, 2, 3, 1]
        assert ["keys" in line for line in lines] == [True, False, False, True]  # once for each set of episodes


def test_a_copy_elsewhere_sorted_renamed_or_grown_does_not_reset_the_looks(tmp_path, ledger):
    log = random_world(300, 0)
    order = np.random.default_rng(0).permutation(300)
    look_at(ledger, EpisodeKeys.of(log), "a")
    elsewhere = Looks((tmp_path / "another" / FILE, ledger.paths[1]))
    assert elsewhere.number(EpisodeKeys.of(with_episodes(log, order), order), "a") == 1  # the same episodes
    assert elsewhere.number(EpisodeKeys.of(with_episodes(log, order), order), "b") == 2
    assert elsewhere.number(EpisodeKeys.of(with_episodes(log, order)), "b") == 2
    fresh = EpisodeKeys.of(random_world(200, 1), np.arange(500, 700))
    assert elsewhere.number(EpisodeKeys.of(log).joined(fresh), "b") == 2
    assert elsewhere.number(EpisodeKeys.of(log).joined(fresh), "a") == 2  # judged again, by more: another look
    assert elsewhere.number(fresh, "b") == 1
    assert Looks((tmp_path / "another" / FILE,)).number(EpisodeKeys.of(log), "b") == 1


def test_the_episode_that_was_used_most_decides(ledger):
    log = EpisodeKeys.of(random_world(300, 0))
    first, last = np.arange(300) < 200, np.arange(300) >= 100
    look_at(ledger, log.part(first), "a")
    look_at(ledger, log.part(first), "b")
    assert look_at(ledger, log.part(last), "c") == 3
    assert ledger.number(log, "d") == 4
    assert ledger.number(log.part(~first), "d") == 2


def test_a_fresh_log_of_a_tiny_world_is_not_charged_for_another(ledger):
    look_at(ledger, EpisodeKeys.of(bandit(500, 0)), "a")
    assert ledger.number(EpisodeKeys.of(bandit(500, 1)), "b") == 1
    assert ledger.number(EpisodeKeys.of(bandit(500, 0)), "b") == 2


def test_looks_that_an_earlier_version_recorded_count_for_every_log_beside_them(ledger):
    path = ledger.paths[0]
    path.parent.mkdir()
    path.write_text('{"log": "x", "claim": "a"}\n{"log": "x", "claim": "b"}\n')
    assert look_at(ledger, EpisodeKeys.of(random_world(50, 0)), "a") == 3


def test_all_looks_together_keep_to_the_error_that_is_stated():
    assert sum(alpha_spent(0.05, look) for look in range(1, 60)) <= 0.05 + 1e-15
    assert alpha_spent(0.05, 1) == pytest.approx(0.04)
    assert all(alpha_spent(0.05, look + 1) < alpha_spent(0.05, look) for look in range(1, 20))
    assert alpha_spent(0.05, None) == 0.05


def test_another_policy_limit_method_or_confidence_is_another_claim():
    limits = [AtMost("g", 1.0)]
    first = claim_key("policy", limits, 0.95, "fqe-t", 0)
    assert first == claim_key("policy", [AtMost("g", 1.0)], 0.95, "fqe-t", 0)
    others = [
        claim_key("other", limits, 0.95, "fqe-t", 0),
        claim_key("policy", [AtMost("g", 1.1)], 0.95, "fqe-t", 0),
        claim_key("policy", [AtLeast("g", 1.0)], 0.95, "fqe-t", 0),
        claim_key("policy", limits, 0.9, "fqe-t", 0),
        claim_key("policy", limits, 0.95, "dr-t", 0),
        claim_key("policy", limits, 0.95, "fqe-t", 1),
    ]
    assert len({first, *others}) == 7


@pytest.mark.parametrize("damage", ['{"log": "a"}', "not json", '{"claim": "a", "look": 1, "episodes": "x"}'])
def test_a_damaged_line_is_an_error_that_names_it(ledger, damage):
    log = EpisodeKeys.of(random_world(50, 0))
    look_at(ledger, log, "a")
    with ledger.paths[1].open("a") as file:
        file.write(damage + "\n")
    with pytest.raises(DataError, match="line 2"):
        ledger.number(log, "b")


@pytest.mark.parametrize("cut", [1, 2, 30, 2000])
def test_a_line_that_was_cut_off_in_the_middle_of_a_write_was_no_look_yet(ledger, cut):
    log = EpisodeKeys.of(random_world(50, 0))
    look_at(ledger, log, "a")
    whole = [path.read_bytes() for path in ledger.paths]
    look_at(ledger, EpisodeKeys.of(random_world(60, 1)), "b")
    then = [path.read_bytes() for path in ledger.paths]
    for path in ledger.paths:
        path.write_bytes(path.read_bytes()[:-cut])
    if cut > 1:  # without the end of the line alone, it is whole
        assert [path.read_bytes().startswith(first) for path, first in zip(ledger.paths, whole, strict=True)] == [1, 1]
        assert ledger.number(EpisodeKeys.of(random_world(60, 1)), "c") == 1
    assert look_at(ledger, EpisodeKeys.of(random_world(60, 1)), "b") == 1
    assert look_at(ledger, log, "c") == 2
    for path, before in zip(ledger.paths, then, strict=True):
        assert path.read_bytes().startswith(before)


def test_keys_that_were_changed_are_damaged(ledger):
    log = EpisodeKeys.of(random_world(50, 0))
    look_at(ledger, log, "a")
    line = json.loads(ledger.paths[0].read_text())
    line["keys"] = line["keys"][::-1].lstrip("=")
    ledger.paths[0].write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match="line 1"):
        ledger.number(log, "b")


def test_a_record_that_cannot_be_written_is_told_of_and_the_other_is_kept(tmp_path):
    (tmp_path / "file").write_text("")
    looks = Looks((tmp_path / "file" / FILE, tmp_path / "own" / FILE))
    log = EpisodeKeys.of(random_world(50, 0))
    (trouble,) = looks.record(log, "a", verdict="pass", what="run")
    assert "could not be recorded" in trouble
    assert looks.number(log, "b") == 2


def test_the_users_own_record_lies_where_the_system_keeps_such_files(monkeypatch):
    monkeypatch.setenv("CHECKREIN_STATE", "/somewhere")
    assert state_folder() == Path("/somewhere")
    monkeypatch.delenv("CHECKREIN_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert state_folder() == Path("/state/checkrein")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_folder() == Path.home() / ".local" / "state" / "checkrein"
