"""What strangers plug in, each in few lines and through public names alone."""

import json

import numpy as np
import pytest

from checkrein import FQE, FQI, AtLeast, AtMost, CuttingPlane, Problem, Tabular, TabularPolicy, certify, evaluate, solve
from checkrein.base.errors import ProblemError
from cli.commands import checkrein_command
from plugins.packages import install
from problems import random_log, random_mdp, random_policy

BOOSTED = """\
from dataclasses import dataclass
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

@dataclass(frozen=True)
class Boosted:
    rounds: int = 60

    def design(self, states, actions, weights, *, n_actions):
        return BoostedDesign(self, np.column_stack([states, actions]), weights, n_actions)

@dataclass(frozen=True, eq=False)
class BoostedDesign:
    functions: Boosted
    inputs: np.ndarray
    weights: np.ndarray
    n_actions: int

    def fit(self, targets, *, rng, start=None):
        kind = lambda: HistGradientBoostingRegressor(max_iter=self.functions.rounds, min_samples_leaf=5)
        models = [kind().fit(self.inputs, column, self.weights) for column in targets.T]
        asked = lambda states, a: np.column_stack([states, np.full(len(states), a)])
        ask = lambda states, a: np.column_stack([model.predict(asked(states, a)) for model in models])
        return lambda states: np.stack([ask(states, a) for a in range(self.n_actions)], axis=1)
"""

ESTIMATOR = """\
from dataclasses import dataclass
import numpy as np
from checkrein.evaluation import Episodes, Estimate

@dataclass(frozen=True)
class FirstStep:
    name: str = "first-step"
    weighs: bool = True

    def __call__(self, problem, policy, propensities, *, rng):
        episodes = Episodes.of(problem)
        first, k = episodes.begins, 1 + problem.n_constraints
        taken = policy.probabilities(episodes.states[first])[np.arange(first.size), episodes.actions[first]]
        ratio = taken / propensities.values[episodes.rows[first]]
        scores = ratio[:, None] * episodes.costs(policy)[first]
        return Estimate(episodes.mean(scores), scores - episodes.mean(scores), episodes.weights)
"""

BOUND = """\
from dataclasses import dataclass
import numpy as np
from checkrein import FQE, Support, Tabular
from checkrein.certification import Assumptions, Interval

@dataclass(frozen=True)
class Doubled:
    name: str = "fqe-doubled"

    def guarantee(self, problem):
        return "heuristic"

    def assumptions(self, problem):
        return Assumptions(Tabular(), Support(), None, weighs=False)

    def estimate(self, problem, policy, *, rng):
        values = FQE(Tabular())(problem, policy, rng=rng)
        return np.append(values.objective, values.constraints), np.zeros(1 + problem.n_constraints)

    def __call__(self, problem, policy, *, alpha, rng):
        values = self.estimate(problem, policy, rng=rng)[0][1:]
        return Interval(values, np.abs(values), np.minimum(0, values), 2 * np.maximum(values, 0))
"""

COST = """\
from dataclasses import dataclass
import numpy as np
from checkrein import storable

@storable
@dataclass(frozen=True)
class Surprise:
    floor: float = 1e-3

    def per_step(self, transitions, policy):
        probabilities = np.maximum(policy.probabilities(transitions.states), self.floor)
        return -np.log(probabilities[np.arange(len(transitions)), transitions.actions])

    def step_range(self, dataset):
        return 0.0, -float(np.log(self.floor))
"""

FORMAT = """\
import json
from pathlib import Path
import numpy as np
from checkrein import Dataset

def read(where, *, costs, n_actions):
    rows = [json.loads(line) for line in Path(where).read_text().splitlines()]
    column = lambda name: np.array([row[name] for row in rows])
    return Dataset.from_arrays(
        states=column("ward"), actions=column("drug"), next_states=column("then"), terminals=column("left"),
        episodes=column("patient"), costs={name: column(name) for name in costs}, n_actions=n_actions,
    )
"""


def defined(code, name):
    """Run a stranger's module and return what it is called by."""
    assert len(code.splitlines()) <= 25
    names = {"__name__": "stranger"}
    exec(compile(code, "stranger.py", "exec"), names)  # noqa: S102
    return names[name]


def test_a_gradient_boosted_q_function_values_a_policy():
    log = random_log(3, episodes=300, n_states=5)
    problem = Problem(log, objective="c", constraints=[AtMost("g0", 1.0)], discount=0.9)
    policy, rng = random_policy(4, log), np.random.default_rng(0)
    boosted = FQE(defined(BOOSTED, "Boosted")(), iterations=25)(problem, policy, rng=rng)
    exact = FQE(Tabular(), iterations=25)(problem, policy, rng=rng)
    assert boosted.objective == pytest.approx(exact.objective, rel=0.05)
    assert boosted.constraints == pytest.approx(exact.constraints, rel=0.05)


def test_an_estimator_stands_beside_the_others():
    log = random_log(3, episodes=4000, n_constraints=1, max_steps=1)
    found = evaluate(
        random_policy(1, log), log, costs=["c"], discount=0.9, estimators=["is", defined(ESTIMATOR, "FirstStep")()]
    )
    assert found.value("first-step", "c") == pytest.approx(found.value("is", "c"), rel=1e-9)  # episodes of one step
    assert found["first-step"].standard_errors() == pytest.approx(found["is"].standard_errors(), rel=1e-6)


def test_a_bound_certifies_and_is_diagnosed_by_what_it_says_it_rests_on():
    log = random_log(0, episodes=400)
    policy = random_policy(0, log)
    value = FQE(Tabular())(
        Problem(log, objective=None, constraints=[AtMost("g0", 1.0)], discount=0.9),
        policy,
        rng=np.random.default_rng(0),
    ).constraints[0]
    for limit, verdict in ((2.1 * value, "pass"), (1.9 * value, "inconclusive")):
        found = certify(
            policy, log, constraints=[AtMost("g0", limit)], discount=0.9, method=defined(BOUND, "Doubled")()
        )
        assert (found.verdict, found.method, found.guarantee) == (verdict, "fqe-doubled", "heuristic")
        assert 2 * value <= found.bounds["g0"] <= 2.1 * value  # rare events that the log may lack come on top
    assert {check.name for check in found.checks} >= {"unsupported decisions", "rare decisions"}


@pytest.mark.parametrize("method", ["fqe-t", "fqe-studentised", "dr-t", "dr-studentised"])
def test_a_cost_of_the_policy_is_certified_at_the_value_it_is_evaluated_at(method):
    log = random_log(0, episodes=400, n_constraints=1)
    surprise = AtMost(defined(COST, "Surprise")(), 20.0, name="surprise")
    problem = Problem(log, objective="c", constraints=[surprise], discount=0.9)
    policy = random_policy(2, log)
    value = FQE(Tabular())(problem, policy, rng=np.random.default_rng(0)).constraints[0]
    assert value > 1
    found = certify(policy, log, constraints=[surprise], discount=0.9, method=method)
    close = 1e-9 if method.startswith("fqe") else 0.05
    assert found.estimates["surprise"] == pytest.approx(value, rel=close)
    assert found.verdict == "pass"


def test_a_cost_of_the_policy_has_its_exact_value():
    mdp = random_mdp(1, n_states=6, n_actions=3, successors=2, ending=0.2)
    log, cost = mdp.exact_log(), defined(COST, "Surprise")()
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=6)
    exact = type(mdp)(mdp.transitions, {"surprise": -np.log(np.maximum(table, 1e-3))}, mdp.initial, mdp.discount)
    problem = Problem(log, objective=None, constraints=[AtMost(cost, 1.0)], discount=mdp.discount)
    found = FQE(Tabular())(problem, TabularPolicy(table), rng=np.random.default_rng(0)).constraints
    assert found == pytest.approx([exact.values(TabularPolicy(table))["surprise"]], rel=1e-9)


def test_a_log_in_another_format_is_learned_from(tmp_path, monkeypatch):
    defined(FORMAT, "read")
    install(tmp_path, "ward-logs", log_formats={"ward": "ward_logs:read"}, code={"ward_logs": FORMAT})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    log = random_log(5, episodes=200, n_constraints=1)
    names = {"ward": log.states, "drug": log.actions, "then": log.next_states, "left": log.terminals}
    columns = names | {"patient": log.episodes, "harm": log.cost("c"), "dose": log.cost("g0")}
    rows = [{name: values[row].item() for name, values in columns.items()} for row in range(len(log))]
    (tmp_path / "log.ward").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "problem.toml").write_text(
        '[data]\npath = "log.ward"\n[objective]\nminimize = "harm"\n'
        '[[constraint]]\nname = "dose"\nat_most = "200% of behavior"\n[learn]\ndiscount = 0.9\n'
    )
    done = checkrein_command("fit", "problem.toml", "--out", "run")
    assert done.code == 0, done.out + done.err
    assert (tmp_path / "run" / "certificate.json").exists()
    (tmp_path / "problem.toml").write_text(
        '[data]\npath = "ward:missing.ward"\n[objective]\nminimize = "harm"\n[learn]\ndiscount = 0.9\n'
    )
    refused = checkrein_command("inspect", "problem.toml")
    assert refused.code == 2
    assert "the log format 'ward' of ward-logs 1.5 cannot read missing.ward (FileNotFoundError" in refused.err


def test_what_depends_on_the_policy_is_refused_where_it_would_be_minimised_as_if_it_did_not():
    log = random_log(0, episodes=50, n_constraints=1)
    surprise = AtLeast(
        defined(COST, "Surprise")(), 5.0, name="surprise"
    )  # no greedy policy is surprising: it has a price
    problem = Problem(log, objective="c", constraints=[surprise], discount=0.9)
    with pytest.raises(ProblemError, match="surprise depends on the policy itself"):
        solve(
            problem,
            best_response=FQI(Tabular()),
            evaluator=FQE(Tabular()),
            learner=CuttingPlane(10.0),
            tolerance=1e-3,
            max_rounds=10,
        )
