"""A headline says what was shown, of the objective and of each limit; what gives doubt stands below it."""

import json

import pytest

from checkrein.game.solution import Status
from checkrein.problem.goals import Direction
from checkrein.report.doubts import doubts_of
from checkrein.report.figures import figures
from checkrein.report.improvement import improvement_of
from checkrein.report.model import Candidate, CandidateSequence
from checkrein.report.page import page
from checkrein.report.verdict import sequence_verdict, verdict
from report.certificates import FAILED, certificate, open_question, passing
from report.reading import Elements, embedded
from report.sample import feature_summary, finite_summary
from report.test_improvement import section_of, with_objective


def rows(**changes):
    objective, *limits = finite_summary().costs
    return [objective.model_copy(update=changes), *limits]


def worse(row):
    values = row.values | {"learned": row.values["learned"].model_copy(update={"held_out": 0.25, "learning": 0.25})}
    return row.model_copy(update={"values": values})


def test_worse_is_the_price_of_the_limits_only_where_a_limit_has_a_price():
    objective, *limits = finite_summary().costs
    free = [limit.model_copy(update={"price": 0.0}) for limit in limits]
    said = [verdict(Status.CONVERGED, [worse(objective), *many], None)[1] for many in (limits, free)]
    assert "moves death from 0.1903 to 0.25 as the price of the limits" in said[0]
    assert "moves death from 0.1903 to 0.25 and keeps" in said[1]
    assert "price" not in said[1]
    assert "price" not in sequence_verdict("explored", [worse(objective), *free], None)[1]


def test_a_worse_objective_is_red_even_where_a_limit_is_an_open_question():
    assert verdict(Status.CONVERGED, rows(), with_objective(open_question(), "worse"))[0] == "bad"


def test_nothing_is_claimed_of_an_objective_whose_checks_failed():
    found = with_objective(certificate(passing().constraints, checks=[FAILED]), "better")
    level, sentence = verdict(Status.CONVERGED, rows(), found)
    assert level == "caution"
    assert "is not shown to lower death (estimated at 0.21, behavior's at 0.245)" in sentence
    judged = improvement_of(found, "death", Direction.MINIMISE)
    assert (judged.verdict, judged.believed) == ("not shown better", False)
    assert "between" not in judged.words


def test_an_objective_that_cannot_be_is_neither_shown_nor_claimed():
    found = with_objective(passing(), "better", estimate=-323.8)
    objective = found.objective.model_copy(update={"range": (0.0, 1.0)})
    found = found.model_copy(update={"objective": objective})
    level, sentence = verdict(Status.CONVERGED, rows(), found)
    assert level == "caution"
    assert "323" not in sentence + section_of(finite_summary(found))


def test_a_yes_or_no_outcome_is_told_in_per_cent_of_episodes():
    found = with_objective(passing(), "better")
    found = found.model_copy(update={"objective": found.objective.model_copy(update={"yes_or_no": True})})
    _, sentence = verdict(Status.CONVERGED, rows(share=True), found)
    assert sentence.startswith("The learned policy lowers death from 24.5% to 21% of episodes (by 1 to 6 points) and ")


@pytest.mark.parametrize(
    ("learning", "held_out", "error", "warned"),
    [(0.058, 0.0067, 0.001, True), (0.058, 0.0067, None, True), (0.058, 0.05, 0.001, False), (0.06, 0.02, 0.02, False)],
)
def test_learning_and_held_out_values_that_differ_wildly_are_a_doubt(learning, held_out, error, warned):
    objective = rows()[0]
    changes = {"learning": learning, "held_out": held_out, "standard_error": error}
    learned = objective.values["learned"].model_copy(update=changes)
    found = doubts_of([objective.model_copy(update={"values": objective.values | {"learned": learned}})])
    assert bool(found) is warned
    if warned:
        assert "the learning part promised 0.058, the held-out part says 0.0067" in found[0]


@pytest.mark.parametrize(
    ("events", "of", "said"),
    [
        (46, 10_000, "rests on the 46 of 10,000 episodes with it"),
        (9_960, 10_000, "rests on the 40 of 10,000 episodes without it"),
        (400, 10_000, ""),
        (46, 120, ""),
        (None, None, ""),
    ],
)
def test_an_outcome_that_is_rare_says_how_many_episodes_the_claim_rests_on(events, of, said):
    found = doubts_of(rows(share=True, events=events, of_episodes=of)[:1])
    assert said in "".join(found)
    assert bool(found) is bool(said)


def test_doubts_stand_right_under_the_headline():
    html = page(finite_summary().model_copy(update={"doubts": ["click is rare"]}))
    assert html.index('id="verdict"') < html.index("click is rare.") < html.index('id="changes"')


def test_no_bound_of_a_method_whose_checks_failed_is_on_the_page():
    constraints = [c.model_copy(update={"bound": 1.23456 + k}) for k, c in enumerate(passing().constraints)]
    assert "1.235" in section_of(finite_summary(certificate(constraints)))
    doubted = finite_summary(certificate(constraints, checks=[FAILED]))
    assert "1.235" not in section_of(doubted)
    assert "bound 1.235" not in json.dumps(embedded(page(doubted)))


def test_bounds_of_what_is_maximised_are_called_by_the_side_they_are_on():
    bounds = next(plot for plot in figures(feature_summary())["traces"] if plot.name == "trace-bounds")
    ends = {line["name"]: line["y"][-1] for line in bounds.data}
    highest = feature_summary().trace.lower[-1]  # retention is maximised: no policy gets above it
    assert ends["upper bound"] == pytest.approx(highest, abs=1e-5)


def test_candidates_of_a_yes_or_no_outcome_are_in_per_cent():
    one = Candidate(
        rule=0, distance=0.5, margin=4, values={"death": 0.213, "vaso": 1.4, "fluids": 4.0}, bounds={"vaso": 1.45},
        verdict="pass", improvement="better", deployed=True,
    )  # fmt: skip
    summary = finite_summary(passing())
    costs = [summary.costs[0].model_copy(update={"share": True}), *summary.costs[1:]]
    changes = {"costs": costs, "sequence": CandidateSequence(candidates=[one], folds=5), "trace": None, "gap": None}
    text = " ".join(Elements(page(summary.model_copy(update=changes))).text.split())
    assert "21.3%" in text


def test_without_a_limit_nothing_is_certified_and_the_headline_says_so():
    level, said = verdict(Status.CONVERGED, rows()[:1], None)
    assert level == "caution"
    assert said.startswith("Nothing was certified, for want of a limit: ")
    assert "total variation" in said
