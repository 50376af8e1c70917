"""The first part of a report: what changes for whom, what to look at, and the policy on a page."""

import numpy as np
import polars as pl
import pytest

from checkrein import AtMost, Problem, TabularPolicy, read_logs
from checkrein.base.arrays import frozen
from checkrein.policies import MixturePolicy
from checkrein.problem import Episodes
from checkrein.problem.goals import Direction, Goal
from checkrein.report.changes import changes_of, with_changes
from checkrein.report.differences import differences_of
from checkrein.report.groups import groups_of
from checkrein.report.model import Change, Estimate, Group
from checkrein.report.page import page
from checkrein.selection.judged_episodes import PAIRED, JudgedEpisodes
from report.certificates import passing
from report.reading import HOSTILE, Elements
from report.sample import feature_summary, finite_summary
from report.test_improvement import with_objective

GOALS = [Goal("death", Direction.MINIMISE), Goal("drugs", Direction.AT_MOST, limit=1.0)]
SURVIVAL = [Goal("survival", Direction.MAXIMISE), GOALS[1]]


def ward(n=400, seed=0):
    """Patients of one decision: the severe ones die more, and are seldom left alone."""
    rng = np.random.default_rng(seed)
    severe = rng.random(n) < 0.25
    treated = rng.random(n) < np.where(severe, 0.97, 0.5)
    died = rng.random(n) < np.where(severe, 0.6, 0.1)
    return pl.DataFrame(
        {
            "patient": np.arange(n),
            "severity": np.where(severe, "severe", "mild"),
            "age": rng.integers(20, 90, n).astype(float),
            "treatment": np.where(treated, "drug", "nothing"),
            "death": died.astype(float),
            "drugs": treated.astype(float),
            "ended": True,
        }
    )


def problem_of(state, *, finite):
    names = {"episode": "patient", "action": "treatment", "terminal": "ended", "costs": ["death", "drugs"]}
    dataset = read_logs(ward().with_columns(pl.col("age")), state=state, finite=finite, **names)
    return Problem(dataset, objective="death", constraints=[AtMost("drugs", 0.5)], discount=1.0)


def always(problem, action):
    n_states = problem.dataset.n_states
    table = np.eye(problem.dataset.n_actions)[np.full(n_states, action)]
    return MixturePolicy((TabularPolicy(frozen(table)),), frozen(np.ones(1)))


@pytest.fixture(scope="module")
def finite():
    return problem_of(["severity"], finite=True)


def judged(problem, *, lives=0.2):
    """Scores of a policy after which fewer of the severe die, and nothing else changes."""
    log = Episodes.of(problem)
    behavior = log.sums(log.row_costs)
    severe = np.array([label == "severe" for label in problem.dataset.state_labels])[log.states[log.begins]]
    learned = behavior - np.column_stack([lives * severe, np.zeros(len(log))])
    return JudgedEpisodes([log], learned, [behavior])


def test_a_severe_state_in_which_nothing_is_done_is_listed_for_review(finite):
    nothing = finite.dataset.action_labels.index("nothing")
    (found,) = differences_of(finite, always(finite, nothing), sign=1.0).review
    assert (found.place, found.learned, found.behavior) == ("severe", "nothing", "drug")
    assert found.why == ["least in a severe place", "seldom done before"]
    assert found.followed == pytest.approx(0.6, abs=0.1)
    assert found.done_before < 0.05


def test_a_policy_that_treats_the_severe_gives_nothing_to_review(finite):
    drug = finite.dataset.action_labels.index("drug")
    assert differences_of(finite, always(finite, drug), sign=1.0).review == []


def test_the_sheet_holds_the_states_visited_most_first(finite):
    found = differences_of(finite, always(finite, 0), sign=1.0)
    assert [one.state for one in found.sheet] == ["mild", "severe"]
    assert found.sheet_covers == 1.0
    assert found.tree is None


class OldOnes:
    """A policy over numbers: the old are treated."""

    def probabilities(self, states):
        return np.eye(2)[(states[:, 0] <= 60).astype(int)]


def test_over_numbers_the_sheet_is_a_small_tree_with_its_fidelity_and_rules_to_read():
    problem = problem_of(["age"], finite=False)
    found = differences_of(problem, MixturePolicy((OldOnes(),), frozen(np.ones(1))), sign=1.0)
    assert found.tree_fidelity == 1.0
    assert sorted(one.state.split(" ")[1] for one in found.sheet) == [">", "≤"]
    assert all(one.state.startswith("age") for one in found.sheet)
    assert sum(one.visits for one in found.sheet) == 400


def test_groups_say_for_whom_something_changes_with_intervals_that_hold_it(finite):
    found = groups_of(finite.dataset, GOALS, judged(finite), 0.05)
    by_level = {group.level: group for group in found}
    assert set(by_level) == {"mild", "severe"}
    assert by_level["severe"].changes["death"].difference == pytest.approx(-0.2)
    assert by_level["mild"].changes["death"] == Change(difference=0.0, low=0.0, high=0.0)
    assert sum(group.episodes for group in found) == 400


def test_groups_of_what_is_maximised_have_the_users_sign(finite):
    found = {g.level: g for g in groups_of(finite.dataset, SURVIVAL, judged(finite), 0.05)}
    assert found["severe"].changes["survival"].difference == pytest.approx(0.2)


def test_numbers_are_cut_into_thirds_and_small_groups_are_left_out():
    problem = problem_of(["age"], finite=False)
    log = Episodes.of(problem)
    scores = log.sums(log.row_costs)
    found = groups_of(problem.dataset, GOALS, JudgedEpisodes([log], scores - 0.1, [scores]), 0.05)
    assert len(found) == 3
    assert found[0].level.startswith("up to ")
    few = JudgedEpisodes([Episodes.of(log.part(np.arange(400) < 40))], scores[:40], [scores[:40]])
    assert groups_of(problem.dataset, GOALS, few, 0.05) == []


def test_intervals_of_changes_are_wider_than_what_would_cover_as_often_as_they_say():
    """By as much as pairs of folds may count twice; here nothing was learned from the episodes."""
    problem, rng, kept = problem_of(["severity"], finite=True), np.random.default_rng(3), 0
    log = Episodes.of(problem)
    for _ in range(200):
        scores = rng.exponential(1.0, (400, 2))
        found = JudgedEpisodes([log], scores, [np.ones((400, 2))]).differences(0.05).widened(1 / PAIRED)
        (change, _) = changes_of(GOALS, found)
        kept += change.low <= 0 <= change.high
    assert 0.84 <= kept / 200 <= 0.96  # each end holds at 95%


def test_clusters_are_what_is_counted():
    table = ward().with_columns(hospital=pl.Series(np.arange(400) // 40))
    dataset = read_logs(
        table, episode="patient", state=["severity"], action="treatment", costs=["death", "drugs"],
        terminal="ended", cluster="hospital",
    )  # fmt: skip
    log = Episodes.of(Problem(dataset, objective="death", constraints=[AtMost("drugs", 0.5)], discount=1.0))
    scores = np.repeat(np.random.default_rng(0).normal(size=(10, 2)), 40, axis=0)
    found = JudgedEpisodes([log], scores, [np.zeros((400, 2))])
    assert found.n_units(np.ones(400, bool)) == 10
    errors = PAIRED * scores[::40].std(axis=0, ddof=1) / np.sqrt(10)
    assert found.differences(0.05).standard_errors == pytest.approx(errors, rel=0.1)


def words(summary):
    return " ".join(Elements(page(summary)).text.split())


def grouped(change):
    groups = [Group(column="severity", level=level, episodes=200, changes=dict.fromkeys(("death", "vaso", "fluids"), c))
              for level, c in (("mild", Change(difference=0.0, low=-0.01, high=0.01)), ("severe", change))]  # fmt: skip
    costs = [row.model_copy(update={"change": change}) for row in finite_summary().costs]
    changes = {"groups": groups, "costs": costs}
    return finite_summary(with_objective(passing(), "better")).model_copy(update=changes)


def test_a_group_for_whom_the_objective_is_worse_is_marked():
    assert "✕ worse" in words(grouped(Change(difference=0.02, low=0.011, high=0.029)))
    assert "✓ better" in words(grouped(Change(difference=-0.02, low=-0.029, high=-0.011)))
    assert "✕ worse" not in words(grouped(Change(difference=0.02, low=-0.011, high=0.029)))


def test_a_run_that_explored_shows_differences_of_what_it_has_and_no_intervals():
    learning, held_out = Estimate(learning=0.2, held_out=None), Estimate(learning=None, held_out=0.25)
    row = finite_summary().costs[0].model_copy(update={"values": {"learned": learning, "behavior": held_out}})
    (found,) = with_changes([row], None)
    assert found.change.difference == pytest.approx(-0.05)
    assert found.change.low is None


def test_differences_are_shown_to_the_digits_that_their_interval_makes_sense_of():
    assert "+0.02 +0.011 to +0.029" in words(grouped(Change(difference=0.0199123, low=0.011123, high=0.028987)))


def test_decisions_to_review_and_the_sheet_are_shown_and_hostile_names_are_text():
    summary = finite_summary(passing())
    text = words(summary)
    assert "severity=7, lactate=high: mostly wait (91%), where behavior did so in 3% of 214 decisions" in text
    assert "these hold 93% of all" in text
    review = [summary.differences.review[0].model_copy(update={"place": HOSTILE, "learned": HOSTILE})]
    html = page(summary.model_copy(update={"differences": summary.differences.model_copy(update={"review": review})}))
    assert "<script>alert" not in html


def test_a_summary_written_before_there_was_a_sheet_is_still_a_page():
    summary = finite_summary(passing())
    bare = summary.differences.model_copy(update={"sheet": [], "review": []})
    html = page(summary.model_copy(update={"differences": bare}))
    assert 'id="policy"' not in html
    assert 'id="changes"' in html


def test_a_policy_that_was_refused_is_called_so_wherever_it_is_shown():
    refused = words(finite_summary(passing().model_copy(update={"decision": "behavior goes on"})))
    assert "to the policy that was refused" in refused
    assert "The refused policy on a page Not for use: behavior should go on." in refused
    assert "refused" not in words(finite_summary(passing()))


def test_a_tree_tells_its_fidelity():
    assert "it reproduces 91.2% of its decisions" in words(feature_summary())


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), pytest.param(1280, "dark", marks=pytest.mark.slow)])
def test_a_browser_shows_what_changes_within_the_width_and_prints_the_policy_on_pages_of_its_own(
    opened, tmp_path, width, scheme
):
    path = tmp_path / "report.html"
    path.write_text(page(grouped(Change(difference=0.02, low=0.011, high=0.029))), encoding="utf-8")
    tab = opened(width, 844, scheme, path)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for cell in tab.locator(".changes td").all():
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    tab.emulate_media(media="print")
    assert tab.locator("#policy").evaluate("one => getComputedStyle(one).breakBefore") == "page"
    assert tab.locator("#policy").evaluate("one => getComputedStyle(one).breakAfter") == "page"
