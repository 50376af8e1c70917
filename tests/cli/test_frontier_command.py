"""checkrein frontier as a user types it: the files, the sentences, looks, resuming, and mistakes."""

import json
import shutil

import polars as pl
import pytest

from checkrein.report.frontier_model import FrontierSummary
from checkrein.report.page import frontier_page
from checkrein.runs import replay
from cli.commands import checkrein_command

VASO, LITRES = "vasopressor hours", "litres of fluid"
LOOKS = "checkrein-looks.jsonl"


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """The tutorial's log, and a frontier of it."""
    folder = tmp_path_factory.mktemp("ward")
    assert checkrein_command("example", "--out", folder, "--patients", 3000).code == 0
    with (folder / "icu.toml").open("a") as file:
        file.write('min_count = 10\nmargin = "none"\n\n[certify]\nmethod = "fqe-t"\n')
    done = checkrein_command(
        "frontier", folder / "icu.toml", "--limit", VASO, "--from", 2, "--to", 5, "--points", 4, "--out", folder / "f"
    )
    assert done.code == 0, done
    (folder / "printed.txt").write_text(done.out)
    return folder


def numbers(folder):
    return FrontierSummary.model_validate_json((folder / "frontier.json").read_text())


def test_the_table_the_numbers_and_the_page_say_the_same(ward):
    table, summary = pl.read_csv(ward / "f" / "frontier.csv"), numbers(ward / "f")
    assert table[f"limit of {VASO}"].to_list() == [2.0, 3.0, 4.0, 5.0] == [p.limits[VASO] for p in summary.points]
    assert table["death"].to_list() == pytest.approx([p.values["death"].learning for p in summary.points])
    assert table["verdict"].to_list() == [p.verdict for p in summary.points]
    assert all(bool(p.not_shown) == (p.verdict != "pass") for p in summary.points)
    page = (ward / "f" / "frontier.html").read_text()
    assert page == frontier_page(summary)
    for line in summary.sentences:
        assert line in page


def test_prices_are_told_in_the_users_units(ward):
    summary, printed = numbers(ward / "f"), (ward / "printed.txt").read_text()
    price = summary.points[1].prices[VASO].value
    assert f"At a limit of 3, one more unit of {VASO} would lower death by {price:.4g}." in summary.sentences
    for line in summary.sentences:
        assert line in printed
    between = (summary.points[1].values["death"].learning - summary.points[3].values["death"].learning) / 2
    assert summary.points[3].prices[VASO].low <= between <= summary.points[1].prices[VASO].high


def test_behavior_and_the_policy_without_limits_stand_beside_the_curve(ward):
    references = numbers(ward / "f").references
    assert set(references) == {"behavior", "unconstrained"}
    assert references["unconstrained"]["death"].learning < references["behavior"]["death"].learning


def test_a_frontier_is_one_look_that_is_the_same_when_it_is_made_again(ward, tmp_path):
    before = (ward / LOOKS).read_text().splitlines()
    line = json.loads(before[0])
    assert line["verdict"].endswith("of 4 points pass")
    assert numbers(ward / "f").look == 1
    assert numbers(ward / "f").confidence == 0.95
    again = ("frontier", ward / "icu.toml", "--limit", VASO, "--from", 2, "--to", 5, "--points", 4)
    assert checkrein_command(*again, "--out", tmp_path / "again").code == 0
    assert (ward / LOOKS).read_text().splitlines() == before
    assert numbers(tmp_path / "again").points == numbers(ward / "f").points
    assert checkrein_command(*again, "--no-certify", "--out", tmp_path / "plain").code == 0
    assert (ward / LOOKS).read_text().splitlines() == before
    plain = numbers(tmp_path / "plain")
    assert plain.confidence is None
    assert all(point.verdict is None and point.values["death"].held_out for point in plain.points)


def test_a_sweep_that_was_interrupted_goes_on_and_ends_as_if_it_had_not_been(ward, tmp_path, monkeypatch):
    part = tmp_path / "part"
    shutil.copytree(ward / "f", part)
    lines = (part / "rounds.jsonl").read_text().splitlines(keepends=True)
    (part / "rounds.jsonl").write_text("".join(lines[:3]))
    for name in ("frontier.csv", "frontier.json", "frontier.html"):
        (part / name).unlink()
    asked = []
    real = replay.Replay.respond

    def respond(self, problem, multipliers, **options):
        asked.append(self.asked >= len(self.record.recorded["main"]))
        return real(self, problem, multipliers, **options)

    monkeypatch.setattr(replay.Replay, "respond", respond)
    command = ("frontier", ward / "icu.toml", "--limit", VASO, "--from", 2, "--to", 5, "--points", 4, "--out", part)
    refused = checkrein_command(*command)
    assert refused.code == 2
    assert "holds a run already: pass --resume" in refused.err
    assert checkrein_command(*command, "--resume").code == 0
    assert asked == [False] * 3 + [True] * (len(lines) - 3)
    assert numbers(part).points == numbers(ward / "f").points
    assert (part / "rounds.jsonl").read_text().splitlines(keepends=True) == lines


def test_two_limits_make_a_grid_with_maps(ward, tmp_path):
    command = ("frontier", ward / "icu.toml", "--limit", VASO, "--limit", LITRES, "--points", 4, "--no-certify")
    done = checkrein_command(*command, "--out", tmp_path / "grid")
    assert done.code == 0
    summary = numbers(tmp_path / "grid")
    assert summary.swept == [VASO, LITRES]
    assert len(summary.points) == 4
    assert 'id="map-objective"' in (tmp_path / "grid" / "frontier.html").read_text()


def test_what_is_maximised_and_floors_are_told_in_their_own_words(ward, tmp_path):
    text = (ward / "icu.toml").read_text().replace('path = "icu.csv"', f'path = "{ward / "icu.csv"}"')
    text = text.replace('minimize = "death"', 'maximize = "-1 * death"\nname = "survival"')
    text = text.replace('at_most = "75% of behavior"', "at_least = 7.0")
    (tmp_path / "turned.toml").write_text(text)
    command = ("frontier", tmp_path / "turned.toml", "--limit", VASO, "--from", 7, "--to", 9, "--points", 3)
    done = checkrein_command(*command, "--no-certify", "--out", tmp_path / "turned")
    assert done.code == 0, done
    summary = numbers(tmp_path / "turned")
    values = [point.values["survival"].learning for point in summary.points]
    assert 0 > values[0] > values[-1]
    assert all(p.values[VASO].learning >= p.limits[VASO] - 1e-6 for p in summary.points)
    assert any(f"one unit less of {VASO} would raise survival by" in line for line in summary.sentences)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--limit", "vaso"], "no constraint is called 'vaso': there are vasopressor hours, litres of fluid"),
        (["--limit", VASO, "--limit", VASO], "twice"),
        (["--limit", VASO, "--from", "1"], "1 --limit, 1 --from and 0 --to: give both once for each limit"),
        (["--limit", VASO, "--from", "4", "--to", "1"], "go from 4 to 1: give the smaller one first"),
    ],
)
def test_what_cannot_be_swept_is_one_message(ward, tmp_path, words, message):
    done = checkrein_command("frontier", ward / "icu.toml", *words, "--out", tmp_path / "no")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "no").exists()


def test_limits_that_nothing_keeps_end_with_the_code_of_an_infeasible_run(ward, tmp_path):
    text = (ward / "icu.toml").read_text().replace('path = "icu.csv"', f'path = "{ward / "icu.csv"}"')
    text = text.replace("at_most = 2.5 ", "at_least = 250.0 ")
    (tmp_path / "hard.toml").write_text(text)
    command = ("frontier", tmp_path / "hard.toml", "--limit", VASO, "--from", 1, "--to", 2, "--points", 2)
    done = checkrein_command(*command, "--no-certify", "--out", tmp_path / "hard")
    assert done.code == 3
    assert "No policy that the log supports keeps any of these limits." in done.out
    assert pl.read_csv(tmp_path / "hard" / "frontier.csv")["death"].is_null().all()
