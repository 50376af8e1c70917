"""What a report says of the objective beside behavior's: a pass alone is no improvement."""

import math

import pytest

from checkrein.certification.certificate import Certificate
from checkrein.certification.objective import JudgedObjective
from checkrein.game.solution import Status
from checkrein.problem.goals import Direction
from checkrein.report.improvement import improvement_of, interval_in_words
from checkrein.report.page import page
from checkrein.report.verdict import verdict
from checkrein.report.words import number
from report.certificates import FAILED, certificate, failing, open_question, passing
from report.reading import HOSTILE, Elements
from report.sample import finite_summary

VERDICTS = {"better": (-0.06, -0.01), "not shown better": (-0.06, 0.02), "worse": (0.01, 0.06)}


def judged_objective(word, *, estimate=0.21, ends=None):
    """An objective whose difference to behavior's lies in the middle of its ends; inside, less is better."""
    lower, upper = ends or VERDICTS[word]
    difference = (lower + upper) / 2
    return JudgedObjective(
        name="death",
        estimate=estimate,
        behavior=estimate - difference,
        difference=difference,
        standard_error=0.01,
        lower=lower,
        upper=upper,
        verdict=word,
    )


def with_objective(found: Certificate, word, **changes) -> Certificate:
    return found.model_copy(update={"objective": judged_objective(word, **changes)})


def said(found, direction=Direction.MINIMISE):
    return improvement_of(found, "death", direction).words


def section_of(summary):
    html = page(summary)
    start = html.index('<section id="certificate"')
    return html[start : html.index("</section>", start)]


def words_of(summary):
    return " ".join(Elements(section_of(summary)).text.split())


def test_a_minimised_objective_is_told_in_its_own_sign_with_its_interval():
    assert said(with_objective(passing(), "better")) == (
        "death is 0.21, 0.035 less than behavior's 0.245 (between 0.01 and 0.06 less)."
    )
    assert said(with_objective(passing(), "not shown better")) == (
        "death is 0.21, 0.02 less than behavior's 0.23 (between 0.06 less and 0.02 more)."
    )
    assert said(with_objective(passing(), "worse")) == (
        "death is 0.21, 0.035 more than behavior's 0.175 (between 0.01 and 0.06 more)."
    )


def test_what_is_maximised_is_turned_around_value_difference_and_interval():
    found = with_objective(passing(), "better", estimate=-0.82, ends=(-0.05, -0.01))
    one = improvement_of(found, "survival", Direction.MAXIMISE)
    assert one.words == "survival is 0.82, 0.03 more than behavior's 0.79 (between 0.01 and 0.05 more)."
    assert (one.wanted, one.low, one.high) == ("raise", 0.01, 0.05)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.0, 0.0), "death is 0.21, the same as behavior's 0.21 (between 0 and 0 less)."),
        ((-0.02, 0.0), "death is 0.21, 0.01 less than behavior's 0.22 (between 0 and 0.02 less)."),
        ((0.0, 0.02), "death is 0.21, 0.01 more than behavior's 0.2 (between 0 and 0.02 more)."),
    ],
)
def test_an_interval_may_end_at_no_difference(ends, words):
    assert said(with_objective(passing(), "not shown better", ends=ends)) == words


def test_an_interval_that_could_not_be_had_is_told():
    objective = judged_objective("not shown better").model_copy(update={"lower": math.nan, "upper": math.inf})
    assert "no interval could be had" in said(passing().model_copy(update={"objective": objective}))


def test_a_difference_that_a_failed_check_forbids_to_believe_is_called_so():
    found = certificate(passing().constraints, checks=[FAILED])
    objective = judged_objective("better").model_copy(update={"verdict": "not shown better"})
    assert said(found.model_copy(update={"objective": objective})).endswith(
        "A check failed, so nothing of this is shown."
    )


def test_each_end_of_the_interval_holds_at_what_the_look_spent():
    one = improvement_of(with_objective(passing(), "better"), "death", Direction.MINIMISE)
    assert interval_in_words(one).endswith("at 95.5% confidence")  # it spent 4.5%


def test_without_a_judged_objective_nothing_is_said_of_it():
    assert improvement_of(passing(), "death", Direction.MINIMISE) is None
    assert 'id="improvement"' not in page(finite_summary(passing()))


@pytest.mark.parametrize("word", VERDICTS)
@pytest.mark.parametrize("status", [Status.CONVERGED, Status.ROUND_LIMIT])
def test_only_a_pass_with_an_improvement_that_was_shown_is_good(word, status):
    level, sentence = verdict(status, finite_summary().costs, with_objective(passing(), word))
    assert (level == "good") == (word == "better")
    assert (level == "bad") == (word == "worse")
    assert "keeps the limits on vaso and fluids" in sentence
    assert ("lowers death" in sentence) == (word == "better")


def test_the_headline_says_what_was_shown_by_the_certificates_own_numbers():
    rows = finite_summary().costs
    heads = {word: verdict(Status.CONVERGED, rows, with_objective(passing(), word))[1] for word in VERDICTS}
    on, kept = "1,240 held-out episodes", "keeps the limits on vaso and fluids"
    assert heads == {
        "better": f"The learned policy lowers death from 0.245 to 0.21 (by 0.01 to 0.06) and {kept}: "
        f"both certified on {on}, each at 95% confidence.",
        "not shown better": f"The learned policy {kept}, certified on {on} at 95% confidence, "
        "but is not shown to lower death (estimated at 0.21, behavior's at 0.23: between 0.06 less and 0.02 more).",
        "worse": f"The learned policy {kept}, certified on {on} at 95% confidence, "
        "but raises death from 0.175 to 0.21 (by 0.01 to 0.06).",
    }


@pytest.mark.parametrize(("found", "level"), [(failing, "bad"), (open_question, "caution")])
@pytest.mark.parametrize("word", VERDICTS)
def test_without_a_pass_the_headline_claims_no_more_of_the_objective(found, level, word):
    colour, sentence = verdict(Status.CONVERGED, finite_summary().costs, with_objective(found(), word))
    assert colour == ("bad" if word == "worse" else level)
    starts = {"better": "lowers death from", "not shown better": "is not shown to lower death", "worse": "raises death"}
    assert sentence.startswith(f"The learned policy {starts[word]}")
    assert (", but " in sentence) == (word == "better")


@pytest.mark.parametrize("word", VERDICTS)
def test_the_page_shows_the_objective_beside_the_limits_once(word):
    summary = finite_summary(with_objective(passing(), word))
    words, objective = words_of(summary), summary.certificate.objective
    assert words.count(f"death: {word}") == 1
    for value in (objective.estimate, objective.behavior, *map(abs, (objective.difference, *VERDICTS[word]))):
        assert number(value) in words
    colour = {"better": "good", "not shown better": "caution", "worse": "bad"}[word]
    assert f'id="improvement"><span class="word {colour}">' in section_of(summary).replace("\n", "")


def test_a_name_of_an_objective_is_text_and_never_markup():
    summary = finite_summary(with_objective(passing(), "better"))
    costs = [summary.costs[0].model_copy(update={"name": HOSTILE}), *summary.costs[1:]]
    html = page(summary.model_copy(update={"costs": costs}))
    assert "<script>alert" not in html


def test_checks_to_look_at_come_first_and_those_that_are_ok_are_folded():
    noted = FAILED.model_copy(update={"name": "drift", "ok": True, "notable": True, "words": "something has changed"})
    html = section_of(finite_summary(certificate(passing().constraints, checks=[noted, FAILED])))
    shown, folded = html.split("<details>")
    assert shown.index("✕</span> not ok") < shown.index("!</span> noted")
    assert "Something has changed" in shown
    assert "✓</span> ok" not in shown
    assert folded.count("✓</span> ok") == 5
    assert "5 checks are ok: episodes, unsupported decisions, rare decisions" in folded


def test_what_bounds_allow_for_rare_events_stands_beside_them_where_it_was_asked():
    assert "rare events" not in words_of(finite_summary(passing()))
    constraints = [one.model_copy(update={"missed": 0.0173 + k}) for k, one in enumerate(passing().constraints)]
    words = words_of(finite_summary(certificate(constraints)))
    assert "of it, for rare events" in words
    assert "0.0173" in words
    assert "1.017" in words


def test_episodes_that_do_not_count_are_counted():
    words = words_of(finite_summary(certificate(passing().constraints, clusters=310, excluded=1241)))
    assert "1,240, in 310 clusters, which are what was counted; 1,241 more did not judge" in words
