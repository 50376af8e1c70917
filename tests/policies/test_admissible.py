"""Admissible actions: nothing else is ever chosen, whatever the log shows and whatever it does not."""

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein import (
    FQE,
    FQI,
    LSPI,
    AdmissibleActions,
    AtMost,
    CuttingPlane,
    Linear,
    Neural,
    Problem,
    Tabular,
    Trees,
    solve,
)
from checkrein.base.errors import DataError, ProblemError
from checkrein.costs import Entropy, KLDivergence, Switching
from checkrein.functions import Polynomial
from checkrein.logs.table import Columns, read_table
from checkrein.policies import ColumnMask, Support, load_policy, members_of, save_policy
from checkrein.selection.fixed_sequence import learn_certified
from numeric_worlds import logged, true_values
from problems import random_log, random_mdp

LIMITS = [AtMost("g0", 1e6)]


def lawful(seed, shape, share=0.5):
    """A random half of the actions, at least one in each state."""
    rng = np.random.default_rng(seed)
    table = rng.random(shape) < share
    table[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = True
    return table


@pytest.mark.parametrize("seed", range(4))
def test_the_best_admissible_policy_is_that_of_the_mdp_without_the_other_actions(seed):
    mdp = random_mdp(seed, n_states=6, n_actions=3)
    table = lawful(seed, (6, 3))
    lacking = type(mdp)(mdp.transitions, mdp.costs, mdp.initial, mdp.discount, table)
    free = lacking.optimum(objective="c").values
    limit = AtMost("g0", 0.5 * (free["g0"] + lacking.optimum(objective="g0").values["g0"]) + 1e-9)
    problem = Problem(
        mdp.exact_log(),
        objective="c",
        constraints=[limit],
        discount=mdp.discount,
        admissible=AdmissibleActions(table),
    )
    players = {"best_response": FQI(Tabular()), "evaluator": FQE(Tabular()), "learner": CuttingPlane(1000.0)}
    found = solve(problem, **players, tolerance=1e-8, max_rounds=200)
    best = lacking.optimum(objective="c", constraints=[limit])
    assert found.values["c"] == pytest.approx(best.values["c"], abs=1e-6)
    for member, _ in members_of(found.policy):
        assert (member.probabilities(np.arange(6))[~table] == 0).all()
    assert best.values["c"] > mdp.optimum(objective="c", constraints=[limit]).values["c"] + 1e-3  # it costs something


@pytest.mark.parametrize("cost", [None, Entropy(), KLDivergence(), Switching()])
@pytest.mark.parametrize("response", [FQI(Tabular(), support=Support(5)), LSPI(Tabular())])
def test_where_the_log_shows_only_what_is_not_admissible_an_admissible_action_is_chosen(cost, response):
    """States whose logged actions are all ruled out, and states that were never left."""
    log = random_log(1)
    table = lawful(3, (6, 3))
    table[2] = [False, False, True]
    log = log.select((log.states != 2) | (log.actions != 2))  # what may be done in state 2 was never done
    log = log.select(log.states != 4)  # never left
    if isinstance(cost, KLDivergence):
        table[2] = True
    constraints = [AtMost("g0", 2.0), *([] if cost is None else [AtMost(cost, 5.0)])]
    problem = Problem(log, objective="c", constraints=constraints, discount=0.9, admissible=AdmissibleActions(table))
    for price in (0.0, 0.3):
        prices = np.full(len(constraints), price)
        policy = response(problem, prices, rng=np.random.default_rng(0))
        states = np.arange(problem.dataset.n_states)
        probabilities = policy.probabilities(states)
        own = states if problem.dataset.memory is None else problem.dataset.memory.own(states)
        assert (probabilities[~table[own]] == 0).all()
        assert probabilities.sum(axis=1) == pytest.approx(1)


def test_an_action_that_is_ruled_out_does_not_set_how_often_others_must_be_logged():
    log = random_log(0, episodes=200)
    counts = np.zeros((6, 3))
    np.add.at(counts, (log.states, log.actions), 1)
    table = np.ones((6, 3), dtype=bool)
    table[0, counts[0].argmax()] = False
    problem = Problem(log, objective="c", constraints=LIMITS, discount=0.9, admissible=AdmissibleActions(table))
    chosen = Support(min_count=1e9).choices(problem).allowed(np.arange(6))
    assert chosen.sum(axis=1).tolist() == [1] * 6
    assert counts[0, chosen[0]] == np.sort(counts[0])[-2]


def wards(n=1500, seed=0):
    """Patients, of whom the old must not have the drug; now and then they had it all the same."""
    rng = np.random.default_rng(seed)
    age, ill = rng.uniform(20, 90, n), rng.normal(size=n)
    drug = rng.random(n) < np.where(age > 70, 0.1, 0.5)
    return pl.DataFrame(
        {
            "id": np.repeat(np.arange(n // 2), 2),
            "age": age,
            "decade": (age // 10).astype(int),
            "ill": ill,
            "frail": age > 80,
            "act": np.where(drug, "drug", "wait"),
            "bad": (rng.random(n) < np.where(drug, 0.2, 0.5)).astype(float),
            "dose": drug * 1.0,
            "fine": (~drug | (age <= 70)).astype(int),
            "end": np.tile([0, 1], n // 2),
        }
    )


def read(state, admissible, *, finite, **changes):
    costs = {"bad": "bad", "dose": "dose"}
    columns = Columns("id", state, "act", costs, terminal="end", finite=finite, admissible=admissible)
    return read_table(wards().with_columns(**changes), columns)


NUMBERS = {
    "trees": FQI(Trees(5, 20), 3),
    "linear": FQI(Linear(Polynomial(2))),
    "network": FQI(Neural((8,), steps=5), 2),
}


@pytest.mark.parametrize("functions", NUMBERS)
def test_of_numbers_every_class_keeps_to_it_where_nothing_was_logged(functions, tmp_path):
    reading = read(["age", "ill", "frail"], "age <= 70 OR act = 'wait'", finite=False)
    problem = Problem(
        reading.dataset, objective="bad", constraints=[], discount=1.0, admissible=reading.admitted.actions
    )
    policy = NUMBERS[functions](problem, np.zeros(0), rng=np.random.default_rng(0))
    save_policy(policy, tmp_path / "policy.npz")
    again = load_policy(tmp_path / "policy.npz")
    unseen = np.random.default_rng(1).uniform(-200, 200, (500, 3))
    drug = reading.dataset.action_labels.index("drug")
    for one in (policy, again):
        chances = one.probabilities(unseen)[:, drug]
        assert (chances[unseen[:, 0] > 70] == 0).all()
        assert (chances[unseen[:, 0] <= 70] > 0).any()


def test_a_policy_near_behavior_keeps_to_it_too(tmp_path):
    problem = logged(0, 800, limit=2.3)
    mask = AdmissibleActions(NoneOfIt(1.0))
    found = learn_certified(
        Problem(problem.dataset, objective="ill", constraints=problem.constraints, discount=1.0, admissible=mask),
        folds=3,
    )
    assert found.candidates
    unseen = np.random.default_rng(1).normal(0, 3, (400, 2))
    for one in found.candidates:
        for member, _ in members_of(one.policy):
            chances = member.probabilities(unseen)
            assert (chances[unseen[:, 0] > 1.0, 1] == 0).all()
            assert chances.sum(axis=1) == pytest.approx(1)
    assert true_values(found.candidates[-1].policy)[1] < 2.4


class NoneOfIt:
    """Who is worse off than a threshold must not be treated."""

    def __init__(self, threshold):
        self.threshold = threshold

    def allowed(self, states):
        return np.column_stack([np.ones(len(states), bool), states[:, 0] <= self.threshold])


@pytest.mark.parametrize(
    ("state", "admissible"),
    [
        (["decade"], "decade <= 6 OR act = 'wait'"),
        (["decade"], "CASE WHEN act = 'drug' THEN decade < 7 ELSE TRUE END"),
        (["decade", "frail"], "NOT (frail AND act = 'drug') AND (decade < 7 OR act = 'wait')"),
    ],
)
def test_of_finite_states_every_pair_is_asked_logged_or_not(state, admissible):
    reading = read(state, admissible, finite=True)
    table = reading.admitted.actions.allowed(np.arange(reading.dataset.n_states))
    drug = reading.dataset.action_labels.index("drug")
    old = [any(f"{decade}" in label.split(",")[0] for decade in (7, 8)) for label in reading.dataset.state_labels]
    assert table[:, drug].tolist() == [not one for one in old]
    assert table[:, 1 - drug].all()
    broken = int((~reading.admitted.rows).sum())
    assert broken == int(((wards()["decade"] > 6) & (wards()["act"] == "drug")).sum()) > 0
    assert any(f"{broken:,} of 1,500 rows" in warning for warning in reading.warnings)
    assert len(reading.dataset) == 1500  # they are kept


def test_a_column_of_yes_and_no_is_known_for_what_was_logged():
    reading = read(["decade"], "fine", finite=True)
    by_rule = read(["decade"], "decade < 7 OR act = 'wait'", finite=True)
    np.testing.assert_array_equal(reading.admitted.actions.own, by_rule.admitted.actions.own)
    with pytest.raises(DataError, match="'fine', which is no state column"):
        read(["age"], "fine", finite=False)


@pytest.mark.parametrize(
    ("state", "admissible", "message"),
    [
        (["decade"], "act = 'drug' AND decade < 7", "no action is admissible: allow one"),
        (["age"], "age < 50", "no action is admissible: allow one"),
        (["decade"], "dose + 1", r"'dose \+ 1' is 2.0 in the table, row \d+: it must be 1 or 0"),
        (["decade"], "NULLIF(fine, 1)", "is missing in the table, row 1"),
        (["decade"], "decade < old", "names 'old', which is no column"),
        (["decade"], "previous_act = 'wait'", "make a state column of what came before"),
        (["decade"], "act < ", "is not a SQL expression"),
        (["decade"], "act + 3 > 1", "cannot be computed"),
    ],
)
def test_what_cannot_say_what_is_admissible_is_refused_by_its_place(state, admissible, message):
    with pytest.raises(DataError, match=message) as found:
        read(state, admissible, finite=state == ["decade"])
    assert str(found.value).startswith("admissible: ")


def test_whole_numbers_and_yes_and_no_are_asked_as_the_log_writes_them():
    mask = read(["age", "frail"], "NOT frail OR act = 'wait'", finite=False).admitted.actions.own
    assert isinstance(mask, ColumnMask)
    assert mask.allowed(np.array([[85.0, 1.0], [85.0, 0.0]])).tolist() == [[False, True], [True, True]]
    reading = read(["age"], "act < 2 OR age < 50", finite=False, act=pl.Series(np.arange(1500) % 3 + 0.5))
    assert reading.admitted.actions.allowed(np.array([[60.0], [40.0]])).tolist() == [[True, True, False], [True] * 3]


def test_a_table_that_does_not_fit_the_log_is_refused():
    log = random_log(0)
    with pytest.raises(ProblemError, match=r"shape \(2, 3\), but the log has 6 states and 3 actions"):
        Problem(
            log, objective="c", constraints=LIMITS, discount=0.9, admissible=AdmissibleActions(np.ones((2, 3), bool))
        )
    table = np.ones((6, 3), bool)
    table[4] = False
    with pytest.raises(ProblemError, match="in state 4 no action is admissible"):
        Problem(log, objective="c", constraints=LIMITS, discount=0.9, admissible=AdmissibleActions(table))


def test_a_run_never_chooses_otherwise_and_its_card_counts_who_did(tmp_path):
    run = checkrein.fit(
        wards(3000),
        episode="id",
        state="decade",
        action="act",
        terminal="end",
        minimize="bad",
        limits={"dose": "at most 0.9"},
        admissible="decade < 7 OR act = 'wait'",
        out=tmp_path / "run",
    )
    deployed = checkrein.load_policy(tmp_path / "run", uncertified=True)
    old = [{"decade": decade} for decade in (7, 8)]
    assert deployed.act(old * 200, seed=0) == ["wait"] * 400
    assert deployed.act([{"decade": 3}] * 50, seed=0).count("drug") > 0
    assert "not admissible" in (tmp_path / "run" / "report.html").read_text()
    assert any("behavior took an action that is not admissible" in warning for warning in run.warnings)
