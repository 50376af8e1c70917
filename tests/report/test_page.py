import json
import math
from html import unescape

import pytest

from checkrein.report.figures import figures
from checkrein.report.page import page
from checkrein.report.words import MINUS, NONE, TIMES, breach, number, percent
from report.certificates import AIMED, passing
from report.reading import HOSTILE, Elements, embedded, renamed
from report.sample import feature_summary, finite_summary

SAMPLES = {"finite": lambda: finite_summary(passing(), AIMED), "features": feature_summary}


@pytest.fixture(scope="module", params=SAMPLES)
def summary(request):
    return SAMPLES[request.param]()


@pytest.fixture(scope="module")
def html(summary):
    return page(summary)


@pytest.fixture(scope="module")
def shown(html):
    return Elements(html)


def test_the_verdict_comes_first_with_its_level_and_what_it_rests_on(summary, html, shown):
    places = [unescape(html).index(part) for part in (summary.verdict, summary.caveat, summary.explanation)]
    assert places == sorted(places)
    assert f'class="verdict {summary.level}"' in html
    assert html.index('id="verdict"') < html.index("<table")


def test_parts_come_in_the_order_of_what_a_reader_asks(shown):
    order = [attributes["id"] for tag, attributes in shown.elements if tag == "section"]
    analyst = ["run", "costs", "certificate", "traces", "members", "differences", "data", "repeat"]
    assert order == ["changes", "review", "policy", *analyst]


def costs_table(html):
    start = html.index('<table class="costs"')
    return html[start : html.index("</table>", start)]


def test_every_estimate_limit_price_and_unit_is_shown(summary, html):
    table = costs_table(html)
    for row, body in zip(summary.costs, table.split("<tbody>")[1:], strict=True):
        assert row.name in body
        assert row.goal in body
        assert body.count(row.unit) >= len(row.values)
        for estimate in row.values.values():
            assert f">{number(estimate.learning)}<" in body
            assert f">{number(estimate.held_out)}<" in body
        if row.limit is not None:
            assert f">{number(row.limit)}<" in body
            assert f">{number(row.price)}<" in body
            assert (row.limit_source or "") in body


def test_what_breaks_a_limit_is_marked_in_words_and_nothing_else_is(summary, html):
    table = costs_table(html)
    values = [(row, v) for row in summary.costs for e in row.values.values() for v in (e.learning, e.held_out)]
    sides = [breach(row, value) for row, value in values]
    assert table.count("▲ over<") == sides.count("over")
    assert table.count("▼ below<") == sides.count("below")
    assert sides.count("over") > 0


def test_limits_are_compared_as_they_are_shown():
    objective, ceiling, _ = finite_summary().costs
    floor = feature_summary().costs[1]
    assert breach(ceiling, 1.50001) is None  # shows as 1.5
    assert breach(ceiling, 1.501) == "over"
    assert breach(floor, 0.8999) == "below"
    assert breach(floor, 0.9) is None
    assert breach(objective, 1e9) is None
    assert breach(ceiling, None) is None


def test_every_kind_of_single_policy_is_shown_with_its_price_and_what_was_left_out():
    summary = finite_summary()
    html = page(summary)
    part = html[html.index('id="singles"') : html.index('<section id="differences"')]
    for one in summary.singles.found:
        assert f">{number(one.price)}<" in part
        for estimate in one.values.values():
            assert f">{number(estimate.learning)}<" in part
            assert f">{number(estimate.held_out)}<" in part
    assert part.count("▲") == 1  # 1.02 * 1.497 is over 1.5
    assert "keeps the deterministic one" in part
    assert "Averaged weights: left out, because a member is a TabularPolicy." in part
    assert 'id="singles"' not in page(feature_summary())  # a run from before they were compared


def test_the_data_card_is_complete(summary, shown):
    card = summary.card
    for words in (
        card.source,
        f"{card.rows:,} read, {card.rows_used:,} used",
        card.states,
        *card.warnings,
        *card.left_out,
    ):
        assert words in shown.text
    for cost in card.behavior:
        assert cost.cost in shown.text
        assert number(cost.value) in shown.text
    for action in card.actions:
        assert action.action in shown.text
        assert percent(action.share) in shown.text


def test_it_tells_how_to_repeat_and_cite(summary, shown):
    repeat = summary.repeat
    for words in (repeat.command, repeat.problem_file, repeat.dataset, repeat.citation, *repeat.packages):
        assert words in shown.text


def test_features_are_told_by_a_tree_and_finite_states_by_a_heat_map():
    finite, features = page(finite_summary()), page(feature_summary())
    assert "state-differences" in embedded(finite)
    assert "state-differences" not in embedded(features)
    assert feature_summary().differences.tree in Elements(features).text
    assert percent(feature_summary().differences.tree_fidelity) in features


def test_the_page_names_no_resource_of_a_network(shown):
    for tag, attributes in shown.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    policy = next(a["content"] for _, a in shown.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_names_from_a_log_are_text_and_never_markup(summary):
    html = page(renamed(summary, HOSTILE))
    assert "<script>alert" not in html
    assert "https://example.com" not in [a.get("href") for _, a in Elements(html).elements]
    assert HOSTILE in Elements(html).text
    drawn = json.dumps(embedded(html))
    assert "alert('cost')" in drawn
    assert "<script" not in drawn
    assert "<a " not in drawn


def test_every_figure_has_its_place_and_json_of_finite_numbers(summary, html, shown):
    drawn = embedded(html)
    places = [attributes["id"] for _, attributes in shown.elements if attributes.get("class") == "plot"]
    assert places == [figure.name for section in figures(summary).values() for figure in section] == list(drawn)
    assert "Infinity" not in json.dumps(drawn)
    assert "NaN" not in json.dumps(drawn)


def test_a_gap_of_zero_stands_on_the_floor_of_the_log_scale_and_tells_its_value():
    gap = figures(finite_summary())["traces"][0]
    line, closed = gap.data
    assert gap.layout["yaxis"]["type"] == "log"
    assert line["y"][0] is None  # the first gap is infinite
    assert line["y"][-1] == closed["y"][0] > 0
    assert line["customdata"][-1] == "0"
    assert closed["x"] == [34]


def test_gaps_that_are_all_zero_are_drawn_on_a_plain_scale():
    summary = finite_summary()
    trace = summary.trace.model_copy(update={"gap": [0.0] * 34})
    gap = figures(summary.model_copy(update={"trace": trace}))["traces"][0]
    assert "type" not in gap.layout["yaxis"]
    assert gap.data[0]["y"] == [0.0] * 34


def test_each_constraint_is_drawn_against_its_limit(summary):
    for row, figure in zip(summary.costs, figures(summary)["costs"], strict=True):
        lines = [shape for shape in figure.layout.get("shapes", []) if shape["type"] == "line"]
        assert [line["x0"] for line in lines] == ([] if row.limit is None else [row.limit])
        low, high = figure.layout["xaxis"]["range"]
        learning, held_out = figure.data
        assert all(
            low < x < high for x in [*learning["x"], *held_out["x"], *(line["x0"] for line in lines)] if x is not None
        )


def test_the_heat_map_shows_learned_minus_behavior_and_both_on_hover():
    differences = finite_summary().differences
    heat_map = figures(finite_summary())["differences"][1].data[0]
    state = differences.states[3]
    assert heat_map["z"][3] == pytest.approx(
        [b - a for a, b in zip(state.behavior, state.learned, strict=True)], abs=1e-5
    )
    hover = heat_map["customdata"][3][1]
    assert hover == [state.state, "fluids", percent(state.learned[1]), percent(state.behavior[1]), number(state.visits)]


def test_a_run_of_one_round_and_one_policy_makes_a_page():
    summary = finite_summary()
    lists = {name: getattr(summary.trace, name)[:1] for name in ("round", "gap", "lower", "upper", "objective")}
    dicts = {
        name: {k: v[:1] for k, v in getattr(summary.trace, name).items()} for name in ("constraints", "multipliers")
    }
    trace = summary.trace.model_copy(update=lists | dicts)
    one = summary.model_copy(update={"trace": trace, "members": summary.members[:1], "gap": math.inf})
    assert "1 policy;" in page(one)
    assert "members-0" not in embedded(page(one))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-1e-320, "0"),
        (1.5, "1.5"),
        (1234.5678, "1,235"),
        (0.99999, "1"),
        (-2.0, f"{MINUS}2"),
        (0.00012345, "0.0001234"),
        (8.31e-5, f"8.31{TIMES}10⁻⁵"),
        (123456.0, "123,456"),
        (2.5e9, f"2.5{TIMES}10⁹"),
        (None, NONE),
        (math.nan, NONE),
        (-math.inf, f"{MINUS}∞"),
    ],
)
def test_numbers_have_four_digits_and_no_negative_zero(value, shown):
    assert number(value) == shown


@pytest.fixture(scope="module")
def file(html, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


SCREENS = [(width, height, scheme) for width, height in ((390, 844), (1280, 900)) for scheme in ("light", "dark")]


@pytest.mark.parametrize(
    ("width", "height", "scheme"),
    [SCREENS[0], *(pytest.param(*screen, marks=pytest.mark.slow) for screen in SCREENS[1:])],
)
def test_a_browser_draws_every_plot_and_shows_the_verdict_without_scrolling(opened, file, html, width, height, scheme):
    tab = opened(width, height, scheme, file)
    plots = list(embedded(html))
    assert tab.locator(".js-plotly-plot").count() == len(plots)
    for name in plots:
        box = tab.locator(f"#{name} .main-svg").first.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 80
    verdict = tab.locator("#verdict").bounding_box()
    assert verdict["y"] >= 0
    assert verdict["y"] + verdict["height"] <= height
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.body.scrollWidth") <= width


def colours(tab):
    return tab.evaluate(
        "[getComputedStyle(document.documentElement).backgroundColor,"
        " getComputedStyle(document.querySelector('#trace-gap .xtick text')).fill]"
    )


@pytest.mark.slow
def test_plots_follow_the_colour_scheme_and_the_width_of_the_window(opened, file):
    tab = opened(1280, 900, "light", file)
    light = colours(tab)
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_function(
        "before => getComputedStyle(document.querySelector('#trace-gap .xtick text')).fill !== before", arg=light[1]
    )
    assert colours(tab)[0] != light[0]
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.wait_for_function("() => document.querySelector('#trace-gap .main-svg').clientWidth < 390")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_paper_is_light_and_nothing_is_folded_away_on_it(opened, file):
    tab = opened(1280, 900, "dark", file)
    dark, folded = colours(tab), tab.locator("details:not([open])").count()
    assert folded > 0
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("details:not([open])").count() == 0
    assert colours(tab)[1] != dark[1]
    assert tab.evaluate("Math.max(...[...document.querySelectorAll('.main-svg')].map(svg => svg.clientWidth))") <= 660
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("details:not([open])").count() == folded
    assert colours(tab) == dark
    assert tab.pdf().startswith(b"%PDF")


@pytest.mark.slow
def test_hostile_names_are_shown_and_do_nothing_in_a_browser(opened, summary, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(renamed(summary, HOSTILE)), encoding="utf-8")
    tab = opened(390, 844, "light", path)
    assert tab.locator("a:not([href^='#'])").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert "<script>" in tab.locator("#trace-multipliers .legend").text_content()
