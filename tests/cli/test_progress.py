"""What a terminal shows while a run takes its time, and what Ctrl-C leaves."""

import re

import pytest

from checkrein import learn_certified
from checkrein.cli.progress import Progress, duration
from cli.commands import checkrein_command
from logs_again import random_world
from numeric_worlds import logged
from problems import problem_of

NUMBERED = re.compile(r", (\d+) of at most (\d+)$")


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0 s"), (59.9, "59 s"), (185, "3 min 5 s"), (7621, "2 h 7 min")])
def test_times_are_told_as_people_say_them(seconds, words):
    assert duration(seconds) == words


def test_a_terminal_shows_how_long_a_step_and_all_of_it_take(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("checkrein.cli.progress.time.monotonic", lambda: now[0])
    progress = Progress(live=True, began=0.0)
    progress.tell("candidate 3 of at most 26")
    now[0] = 165.0
    assert progress.__rich__().plain == "candidate 3 of at most 26: 1 min 5 s, 2 min 45 s in all"


def test_nothing_moves_where_there_is_no_terminal():
    progress = Progress(live=False, line="candidate 1: pass")
    progress.tell("candidate 2")
    assert progress.__rich__().plain == "candidate 1: pass"


@pytest.mark.parametrize("finite", [True, False])
def test_candidates_are_counted_towards_the_most_there_can_be(finite):
    told = []
    problem = problem_of(random_world(200, 0, n_states=8), limits=(50.0,)) if finite else logged(0, 200, limit=2.4)
    learn_certified(problem, folds=2, distances=(0.5,), margins=(4.0, 2.0), tell=told.append)
    found = [NUMBERED.search(words) for words in told if words.startswith("candidate")]
    assert found
    assert [int(one[1]) for one in found] == list(range(1, len(found) + 1))
    assert len({one[2] for one in found}) == 1
    assert len(found) <= int(found[0][2])


def test_ctrl_c_while_margins_are_chosen_says_that_nothing_was_kept(tmp_path, monkeypatch):
    assert checkrein_command("example", "--out", tmp_path, "--patients", 60).code == 0

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("checkrein.runs.margins.choose_margins", interrupted)
    problem, out = tmp_path / "icu.toml", tmp_path / "run"
    done = checkrein_command("fit", problem, "--set", "learn.certificate=holdout", "--out", out)
    assert done.code == 130
    assert "nothing was played yet, and nothing kept. Begin anew with: checkrein fit" in done.err
    assert "--resume" not in done.err
    assert not out.exists()
