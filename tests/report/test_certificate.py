"""What a report says of its certificate: in the verdict, on the page and in the plots."""

import json
import math
from dataclasses import asdict

import pytest

from checkrein.certification.survival import Sensitivity, Survival
from checkrein.game.solution import Status
from checkrein.report.figures import figures
from checkrein.report.figures.figure import VERDICTS
from checkrein.report.model import Aimed, Summary
from checkrein.report.page import page
from checkrein.report.verdict import CAVEAT, GUARANTEES, caveat, verdict
from checkrein.report.words import SIGNS, number, percentage
from report.certificates import AIMED, certificate, failing, judged, open_question, passing, unbelievable
from report.reading import HOSTILE, Elements, embedded, renamed
from report.sample import finite_summary

CERTIFICATES = {"pass": passing, "fail": failing, "open": open_question, "unbelievable": unbelievable}
TRIALS = {
    "tiny": judged("tiny", 3e-9, (2.2e-9, 1e-10, 2.6e-9, 1.8e-9), "pass"),
    "huge": judged("huge", 4.5e9, (5.2e9, 1e8, 5.6e9, 4.8e9), "fail"),
    "negative floor": judged("negative", -10.0, (-8.2, 0.4, -9.1, -7.3), "pass", words="at least"),
    "open floor": judged("consent", 0.9, (0.93, 0.01, 0.885, 0.96), "inconclusive", words="at least"),
    "all equal": judged("equal", 0.0, (0.0, 0.0, 0.0, 0.0), "pass"),
    "no bound": judged("unbounded", 1.0, (0.99, 0.1, None, None), "inconclusive"),
    "no estimate": judged("unknown", 0.9, (None, None, None, None), "inconclusive", words="at least"),
    "close": judged("close", 1e6, (999_990.0, 4.0, 999_999.0, 999_981.0), "pass"),
}


@pytest.fixture(scope="module", params=CERTIFICATES)
def summary(request):
    aimed = AIMED if request.param in {"pass", "open"} else None
    return finite_summary(CERTIFICATES[request.param](), aimed)


def section(summary):
    html = page(summary)
    start = html.index('<section id="certificate"')
    return html[start : html.index("</section>", start)]


def words_of(summary):
    return " ".join(Elements(section(summary)).text.split())


def test_a_pass_whose_objective_was_not_judged_is_not_good_and_says_so():
    level, sentence = verdict(Status.CONVERGED, finite_summary().costs, passing())
    assert level == "caution"
    assert sentence == (
        "The learned policy keeps the limits on vaso and fluids, certified on 1,240 held-out episodes at 95% "
        "confidence, but whether it lowers death was not judged (by the estimates, from 0.1903 to 0.1389)."
    )


def test_a_pass_of_a_run_that_did_not_converge_says_that_a_better_policy_may_exist():
    assert verdict(Status.ROUND_LIMIT, finite_summary().costs, passing())[1].endswith(" A better one may exist.")


def test_a_fail_names_the_broken_limits_and_those_that_are_kept():
    level, sentence = verdict(Status.CONVERGED, finite_summary().costs, failing())
    assert level == "bad"
    assert sentence.endswith(
        "and breaks the limit on vaso, while it keeps the limit on fluids: "
        "shown on 1,240 held-out episodes at 95% confidence."
    )


def test_an_open_question_names_what_could_not_be_shown():
    rows = finite_summary().costs
    level, sentence = verdict(Status.CONVERGED, rows, open_question())
    assert level == "caution"
    assert "whether it keeps the limit on vaso could not be shown on the 1,240 held-out episodes; it keeps" in sentence
    assert "the limits on vaso and fluids" in verdict(Status.CONVERGED, rows, unbelievable())[1]


@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.NOT_FINITE])
def test_a_run_without_a_policy_to_speak_of_is_bad_whatever_the_certificate_says(status):
    rows = finite_summary().costs
    assert verdict(status, rows, passing()) == verdict(status, rows, None)
    assert verdict(status, rows, passing())[0] == "bad"


def test_without_a_certificate_verdict_and_caveat_promise_nothing():
    level, sentence = verdict(Status.CONVERGED, finite_summary().costs, None)
    assert level == "caution"
    assert "certified" not in sentence
    assert caveat(None) == CAVEAT


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_caveat_tells_the_guarantee_the_confidence_the_look_and_what_is_assumed(guarantee):
    words = caveat(certificate(passing().constraints, guarantee=guarantee, look=2, alpha=0.0025, confidence=0.95))
    assert guarantee in words
    assert "95% confidence, for all constraints together" in words
    assert "look 2" in words
    assert "spent 0.25% of the permitted error of 5%" in words
    for assumption in ("same population", "state", "logged in full"):
        assert assumption in words


def test_a_look_that_spent_everything_says_that_there_must_be_no_other():
    assert "spent all of the permitted error of 5%: take no other" in caveat(failing())


def test_the_section_shows_every_number_of_the_certificate(summary):
    words, found = words_of(summary), summary.certificate
    for one in found.constraints:
        for value in (one.limit, one.estimate, one.standard_error, one.bound, one.other_bound):
            assert number(value) in words
        assert f"{SIGNS[one.verdict]} {one.verdict.capitalize()}" in words
    for check in found.checks:
        for part in (number(check.value), number(check.limit), check.words[1:]):
            assert part in words
    for behavior in (row.values["behavior"].held_out for row in summary.costs[1:]):
        assert number(behavior) in words
    for part in (found.method, found.guarantee, percentage(found.confidence), percentage(found.alpha)):
        assert part in words
    for part in (found.dataset, found.policy, f"{found.episodes:,}", *found.advice, found.reason[1:]):
        assert part in words


def test_a_failed_check_is_told_in_a_word_and_a_sign(summary):
    words, failed = words_of(summary), [check for check in summary.certificate.checks if not check.ok]
    assert words.count("✕ not ok") == len(failed)
    assert words.count("✓ ok") == len(summary.certificate.checks) - len(failed)
    for check in failed:
        assert f"{check.name}: {check.advice}" in words


def test_checks_that_ask_for_the_same_are_answered_once():
    twins = [unbelievable().checks[-1].model_copy(update={"name": name}) for name in ("first", "second")]
    words = words_of(finite_summary(certificate(passing().constraints, checks=twins)))
    assert words.count(twins[0].advice) == 1
    assert f"first, second: {twins[0].advice}" in words


def test_what_was_aimed_at_is_told_where_something_was(summary):
    words = words_of(summary)
    assert ("It was aimed at" in words) is (summary.aimed is not None)
    if summary.aimed is not None:
        for value in (*summary.aimed.limits.values(), *summary.aimed.predicted.values()):
            assert number(value) in words
        assert summary.aimed.support in words
        assert "which keep the limits" in words


def test_without_a_certificate_the_section_says_why():
    assert "There is none" in words_of(finite_summary())
    nothing = finite_summary().model_copy(update={"held_out_episodes": 0})
    assert "nothing was held out" in words_of(nothing)
    assert figures(nothing)["certificate"] == []


def test_without_constraints_there_is_no_section():
    summary = finite_summary()
    assert 'id="certificate"' not in page(summary.model_copy(update={"costs": summary.costs[:1]}))


def test_names_in_a_certificate_are_text_and_never_markup():
    hostile = renamed(finite_summary(failing(), AIMED), HOSTILE)
    reason = hostile.certificate.model_copy(update={"reason": HOSTILE, "advice": [HOSTILE], "method": HOSTILE})
    html = page(hostile.model_copy(update={"certificate": reason}))
    assert "<script>alert" not in html
    assert HOSTILE in Elements(html).text
    assert "<script" not in json.dumps(embedded(html))


def test_each_constraint_has_a_plot_on_its_own_scale_with_everything_inside(summary):
    plots = figures(summary)["certificate"]
    assert [plot.title for plot in plots] == [one.name for one in summary.certificate.constraints]
    for one, row, plot in zip(summary.certificate.constraints, summary.costs[1:], plots, strict=True):
        other, bound, behavior, estimate = plot.data
        assert behavior["x"] == [row.values["behavior"].held_out]
        assert estimate["x"] == [one.estimate]
        assert bound["x"] == ([one.estimate, one.bound] if one.bound is not None else [])
        assert other["x"] == ([one.estimate, one.other_bound] if one.other_bound is not None else [])
        assert bound["line"]["width"] > other["line"]["width"]
        assert SIGNS[one.verdict] in plot.note
        assert estimate["marker"]["color"] == VERDICTS[one.verdict]


@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("aimed", [True, False])
def test_any_constraint_can_be_drawn(trial, aimed):
    one = TRIALS[trial]
    goal = Aimed(support="any", limits={one.name: one.limit}, predicted={}, predicted_to_pass=False) if aimed else None
    (plot,) = figures(finite_summary(certificate([one]), goal))["certificate"]
    json.dumps(asdict(plot), allow_nan=False)
    low, high = plot.layout["xaxis"]["range"]
    drawn = [x for trace in plot.data for x in trace["x"] if x is not None]
    assert all(low < x < high for x in [*drawn, one.limit])
    line, shade = (next(s for s in plot.layout["shapes"] if s["type"] == kind) for kind in ("line", "rect"))
    assert line["x0"] == shade["x0"] == one.limit
    assert (shade["x1"] < one.limit) is (one.words == "at least")
    labels = [label["text"] for label in plot.layout["annotations"]]
    assert f"limit {number(one.limit)}" in labels
    wanted = (
        "no estimate" if one.estimate is None else "no bound" if one.bound is None else f"bound {number(one.bound)}"
    )
    assert f"{SIGNS[one.verdict]} {wanted}" in labels
    assert plot.layout["yaxis"]["ticktext"] == ["Behavior", "Learned", *(["Aimed at"] if aimed else [])]


def test_labels_stand_on_their_own_side_of_the_limit_where_there_is_room():
    vaso = figures(finite_summary(passing()))["certificate"][0]
    bound = next(label for label in vaso.layout["annotations"] if "bound" in label["text"])
    assert bound["x"] < 1.5
    assert bound["xanchor"] == "right"
    assert "bgcolor" not in bound


def test_a_report_can_be_made_again_from_its_json(summary):
    again = Summary.model_validate_json(summary.model_dump_json())
    assert again.certificate == summary.certificate
    assert page(again) == page(summary)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_what_a_check_could_not_measure_survives_json_and_page(value):
    found = passing()
    checks = [found.checks[0].model_copy(update={"value": value, "ok": False})]
    summary = finite_summary(found.model_copy(update={"checks": checks}))
    again = Summary.model_validate_json(summary.model_dump_json())
    assert str(again.certificate.checks[0].value) == str(value)
    assert number(value) in words_of(again)


def test_a_summary_written_before_there_were_certificates_can_be_read():
    old = json.loads(finite_summary().model_dump_json())
    del old["certificate"], old["aimed"]
    read = Summary.model_validate(old)
    assert read.certificate is None
    assert "There is none" in words_of(read)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_browser_keeps_every_label_inside_its_plot_and_off_the_names_of_rows(opened, tmp_path, width, scheme):
    rows = finite_summary().costs
    costs = [rows[0], *(rows[1].model_copy(update={"name": one.name, "values": {}}) for one in TRIALS.values())]
    aimed = AIMED.model_copy(update={"limits": {one.name: one.limit for one in TRIALS.values()}})
    changes = {"costs": costs, "certificate": certificate(TRIALS.values()), "aimed": aimed}
    path = tmp_path / "report.html"
    path.write_text(page(finite_summary().model_copy(update=changes)), encoding="utf-8")
    tab = opened(width, 844, scheme, path)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for k in range(len(TRIALS)):
        plot, labels, names = (
            tab.locator(f"#certificate-{k}{part}").evaluate_all(
                "all => all.map(one => { const b = one.getBoundingClientRect(); return [b.x, b.y, b.right, b.bottom] })"
            )
            for part in ("", " .annotation-text", " .ytick text")
        )
        assert len(labels) >= 4
        for left, top, right, bottom in labels:
            assert plot[0][0] <= left < right <= plot[0][2]
            assert plot[0][1] <= top < bottom <= plot[0][3]
            assert not any(left < n[2] and n[0] < right and top < n[3] - 4 and n[1] < bottom - 4 for n in names)


def hidden(**odds):
    claims = [Survival(name=name, words="at most", limit=1.5, odds_ratio=ratio) for name, ratio in odds.items()]
    return Sensitivity(
        constraints=claims,
        objective=Survival(name="death", words="better than behavior", odds_ratio=2.25),
        passed=True,
        confidence=0.95,
        episodes=1240,
        logged_propensities=False,
        dataset="",
        policy="",
    )


def test_what_a_pass_survives_stands_beside_it_in_words():
    summary = finite_summary(passing())
    assert "checkrein sensitivity" in words_of(summary)
    found = summary.model_copy(update={"sensitivity": hidden(vaso=1.4, fluids=100.0)})
    said = words_of(found)
    assert "survives a hidden factor that changes the odds of an action by up to 1.40." in said
    assert "could break the limit on vaso" in said
    assert "over 100" in said
    assert "death better than behavior" in said
    assert "2.25" in said
    assert "checkrein sensitivity" not in said
    assert Summary.model_validate(json.loads(found.model_dump_json())) == found


def test_a_certificate_that_is_no_pass_names_no_hidden_factor():
    assert "hidden factor" not in words_of(finite_summary(failing()))
