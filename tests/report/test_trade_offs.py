"""What the report says of other limits and of prices that are ranges; and the frontier's own page in a browser."""

import json

import numpy as np
import pytest

from checkrein import CuttingPlane, solve
from checkrein.problem.goals import Direction, Goal
from checkrein.report.figures import figures
from checkrein.report.model import Summary, TradeOffRow
from checkrein.report.page import page
from checkrein.report.summary import _trade_offs
from problems import PLAYERS, binding_limits, exact_problem, random_mdp
from report.reading import embedded
from report.sample import finite_summary

ROW = TradeOffRow(
    name="vaso", limits=[1.0, 1.5, 2.0], reached=[None, 0.1312, 0.12], proven=[0.14, 0.1311, 0.11], aimed=1.4
)


def test_the_trade_off_of_each_constraint_is_drawn_where_a_mixture_keeps_the_limits():
    summary = finite_summary().model_copy(update={"trade_offs": [ROW]})
    (figure,) = figures(summary)["trade_offs"]
    reached, proven = figure.data
    assert reached["x"] == proven["x"] == [1.5, 2.0]
    assert reached["y"] == [0.1312, 0.12]
    assert proven["y"] == [0.1311, 0.11]
    assert figure.layout["shapes"][0]["x0"] == 1.5  # the limit that was asked for
    assert "learned for 1.4" in figure.note
    html = page(summary)
    assert 'id="trade-offs"' in html
    assert "trade-off-0" in embedded(html)


def test_summaries_from_before_there_were_trade_offs_can_still_be_read():
    old = json.loads(finite_summary().model_dump_json())
    del old["trade_offs"]
    for row in old["costs"]:
        del row["price_range"], row["price_note"]
    summary = Summary.model_validate(old)
    assert 'id="trade-offs"' not in page(summary)


def test_a_price_that_is_not_unique_is_shown_as_its_range():
    summary = finite_summary()
    note = "is not unique: between 0.01 and 0.05, by the policies found"
    vaso = summary.costs[1].model_copy(update={"price_range": (0.01, 0.05), "price_note": note})
    html = page(summary.model_copy(update={"costs": [summary.costs[0], vaso, summary.costs[2]]}))
    assert ">0.01 to 0.05<" in html
    assert f"it {note}" in html
    assert ">0.01731<" not in html


def test_what_a_run_says_of_other_limits_encloses_the_truth_in_the_users_signs():
    mdp = random_mdp(0, n_constraints=2, n_states=10)
    limits = binding_limits(mdp)
    problem = exact_problem(mdp, limits)
    solution = solve(problem, learner=CuttingPlane(50.0), tolerance=1e-6, max_rounds=50, **PLAYERS)
    goals = [Goal("gain", Direction.MAXIMISE), *map(Goal.of, limits)]  # its cost is minus what is gained
    rows = _trade_offs(problem, goals, solution.rounds)
    assert [row.name for row in rows] == ["g0", "g1"]
    for row, constraint in zip(rows, limits, strict=True):
        assert row.aimed == constraint.limit
        assert min(row.limits) <= constraint.limit <= max(row.limits)
        known = [(r, p) for r, p in zip(row.reached, row.proven, strict=True) if r is not None]
        assert known
        assert all(reached <= proven + 1e-7 for reached, proven in known)  # of what is gained, no policy gets more
        gains = np.array([reached for reached, _ in known])
        assert (np.diff(gains) >= -1e-7).all()
        exact = -mdp.optimum(objective="c", constraints=limits).values["c"]
        assert min(gains) - 1e-6 <= exact <= max(gains) + 1e-6


@pytest.mark.slow
def test_a_browser_draws_every_figure_of_a_frontiers_page(opened, tmp_path):
    from cli.commands import checkrein_command  # noqa: PLC0415

    assert checkrein_command("example", "--out", tmp_path, "--patients", 2000).code == 0
    (tmp_path / "icu.toml").write_text((tmp_path / "icu.toml").read_text() + "min_count = 10\n")
    names = ["--limit", "vasopressor hours", "--limit", "litres of fluid"]
    for count in (2, 4):
        out = tmp_path / f"of-{count}"
        command = ("frontier", tmp_path / "icu.toml", *names[:count], "--points", 4, "--no-certify", "--out", out)
        assert checkrein_command(*command).code == 0
        path = (out / "frontier.html").rename(out / "report.html")
        for width, scheme in ((1200, "light"), (400, "dark")):
            tab = opened(width, 900, scheme, path)
            assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            drawn = tab.evaluate("document.querySelectorAll('.plot .main-svg').length > 0")
            assert drawn
