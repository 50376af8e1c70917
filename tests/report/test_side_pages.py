"""A page of several runs, and what a notebook shows of one, in a browser."""

import pytest

from checkrein.report.model import Estimate
from checkrein.report.notebook import notebook
from checkrein.report.side_by_side import side_by_side_page
from checkrein.report.side_by_side_model import (
    ComparedCost,
    ComparedRun,
    Decisions,
    Setting,
    SideBySide,
    StateDecisions,
)
from report.certificates import passing
from report.sample import finite_summary

WIDTHS = [(390, "light"), (390, "dark"), pytest.param(1280, "light", marks=pytest.mark.slow)]


def cost(role, *, share=False):
    numbers = {"learned": 0.231, "behavior": 0.2665, "bound": None if role == "objective" else 0.25}
    goal = "minimise" if role == "objective" else "at most 0.26"
    return ComparedCost(role=role, goal=goal, verdict="better", unit="share of episodes", share=share, **numbers)


def compared(n=3):
    names = ["ward", "ward-with-tighter-limits", "a-run-with-a-very-long-name-that-does-not-break"][:n]
    costs = {"death": cost("objective", share=True), "litres of fluid": cost("constraint")}
    run = {"title": "Fewer deaths", "headline": "The learned policy lowers death.", "level": "good", "look": 1}
    run |= {"finished": "2026-01-01 10:00", "dataset": "0" * 64, "method": "one-step", "guarantee": "asymptotic"}
    run |= {"verdict": "pass", "episodes": 4000, "deploys": True, "costs": costs}
    states = [StateDecisions(state="severity=severe, lactate=raised", share=0.2, usual=["both (88%)"] * n)]
    return SideBySide(
        runs=[ComparedRun(name=name, **run) for name in names],
        costs=list(costs),
        settings=[Setting(key="constraint.litres of fluid.at_most", values=["2.5"] * n)],
        same_log=True,
        decisions=Decisions(source="icu.csv", rows=4000, alike=[[1.0] * n] * n, states=states),
        undecided="",
    )


@pytest.fixture
def shown(chromium, tmp_path):
    """Open a page, without scripts and without a network."""
    contexts, asked = [], []

    def shown(html, width, scheme):
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme))
        tab = contexts[-1].new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri())
        return tab

    yield shown
    for context in contexts:
        context.close()
    assert all(url.startswith("file://") for url in asked)


def require_readable(tab, width):
    """Nothing is wider than the window, and text stands out from what it is on."""
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    light = """one => {
      const values = getComputedStyle(one).color.match(/[0-9.]+/g).map(Number);
      return (values[0] + values[1] + values[2]) / 3;
    }"""
    paper = """() => {
      const values = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);
      const root = getComputedStyle(document.documentElement).backgroundColor.match(/[0-9.]+/g).map(Number);
      const seen = (values[3] === 0) ? root : values;
      return (seen[3] === 0) ? 255 : (seen[0] + seen[1] + seen[2]) / 3;
    }"""
    behind = tab.evaluate(paper)
    for cell in tab.locator("td, th[scope=row], p").all():
        assert abs(cell.evaluate(light) - behind) > 80


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_runs_side_by_side_fit_a_window_and_read_well(shown, width, scheme):
    tab = shown(side_by_side_page(compared()), width, scheme)
    require_readable(tab, width)
    assert "23.1%" in tab.locator("#results").inner_text()
    assert "0.2665" not in tab.locator("#results tbody tr").first.inner_text()
    wide = tab.locator("#results .scroll")
    assert wide.evaluate("one => one.scrollWidth >= one.clientWidth && getComputedStyle(one).overflowX") == "auto"


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_a_notebook_shows_a_run_in_its_own_colours(shown, width, scheme):
    colours = "background:#111;color:#ddd" if scheme == "dark" else "background:#fff;color:#000"
    found = finite_summary(passing())
    rows = [found.costs[0].model_copy(update={"share": True, "values": percents(found.costs[0])}), *found.costs[1:]]
    fragment = notebook(found.model_copy(update={"costs": rows}), ".policy may act.", "run/report.html")
    tab = shown(f'<!doctype html><body style="{colours};font:14px sans-serif">{fragment}', width, scheme)
    require_readable(tab, width)
    assert tab.locator("td", has_text="23.1%").count() == len(found.policies)
    assert tab.locator("script").count() == 0


def percents(row):
    return {name: Estimate(learning=0.231, held_out=None, standard_error=None) for name in row.values}
