"""Trees and networks from the problem file to a policy: the classes that iterate, by the commands a user types."""

import json

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein.base.errors import DivergenceError
from checkrein.game.checkpoint import ROUNDS
from cli.commands import checkrein_command

TREES = 'functions = "trees"\nn_trees = 5\nmin_leaf = 5\n'
NEURAL = 'functions = "neural"\nhidden = [8]\n'
STATES = [{"pain": -2.0, "age": 0.5}, {"pain": 2.0, "age": 0.5}]


def write(folder, learn, *, margin="none", rounds=4, certify=""):
    """A log in which treating helps where pain is positive, and costs something everywhere."""
    rng = np.random.default_rng(0)
    n, steps = 100, 3
    pain, age = rng.normal(size=(n, steps)), np.repeat(rng.random((n, 1)), steps, axis=1)
    treated = rng.random((n, steps)) < 0.5
    pl.DataFrame(
        {
            "patient": np.repeat(np.arange(n), steps), "hour": np.tile(np.arange(steps), n),
            "pain": pain.ravel(), "age": age.ravel(), "care": np.where(treated.ravel(), "treat", "wait"),
            "harm": (np.maximum(pain, 0) * (1 - 0.9 * treated)).ravel(), "dose": treated.ravel().astype(float),
            "ended": np.tile(np.arange(steps) == steps - 1, n).astype(int),
        }
    ).write_csv(folder / "log.csv")  # fmt: skip
    (folder / "problem.toml").write_text(
        '[data]\npath = "log.csv"\nepisode = "patient"\nstep = "hour"\nstate = ["pain", "age"]\naction = "care"\n'
        'terminal = "ended"\n[objective]\nminimize = "harm"\n'
        '[[constraint]]\nname = "dose"\nat_most = "110% of behavior"\n'
        f'[learn]\ndiscount = 0.5\nmargin = "{margin}"\ntolerance = 0.1\nmax_rounds = {rounds}\n{learn}{certify}'
    )
    return folder / "problem.toml"


def fit(folder, learn, *options, run="run", **changes):
    return checkrein_command("fit", write(folder, learn, **changes), "--out", folder / run, *options)


@pytest.fixture(autouse=True, scope="module")
def few_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("checkrein.runs.players.STEPS", 5)
        yield


@pytest.fixture(scope="module", params=[TREES, pytest.param(NEURAL, marks=pytest.mark.slow)], ids=["trees", "neural"])
def ward(request, tmp_path_factory):
    """A run of each class."""
    if request.param is NEURAL:
        pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("ward")
    return folder, request.param, fit(folder, request.param)


def test_a_run_gives_a_policy_that_decides_sensibly(ward):
    folder, _, done = ward
    assert done.code == 0, done
    assert "certifying" not in done.out  # what is under way is for terminals
    policy = checkrein.load_policy(folder / "run")
    well, ill = policy.probabilities(STATES)[:, policy.encoding.actions.index("treat")]
    assert ill > well
    assert set(checkrein.load_policy(folder / "run", single=True).act(STATES, seed=0)) <= {"wait", "treat"}


def test_what_is_said_of_it_comes_from_episodes_that_it_did_not_see(ward):
    folder, _, _ = ward
    summary = json.loads((folder / "run" / "summary.json").read_text())
    harm = summary["costs"][0]["values"]
    assert harm["learned"]["held_out"] < harm["behavior"]["held_out"]
    assert harm["learned"]["standard_error"] is None  # there is no closed form to tell it by
    certificate = checkrein.Certificate.read(folder / "run" / "certificate.json")
    assert certificate.method == "dr-studentised"
    assert certificate.constraints[0].standard_error > 0


def test_the_other_commands_work_on_it(ward):
    folder, _, _ = ward
    assert checkrein_command("inspect", folder / "problem.toml").code == 0
    assert checkrein_command("report", folder / "run").code == 0
    log = folder / "log.csv"
    judged = checkrein_command("certify", folder / "run", "--data", log)
    assert judged.code in (0, 5, 6)
    assert checkrein_command("evaluate", folder / "run", "--data", log, "--estimators", "fqe,dr").code == 0
    assert pl.read_csv(folder / "run" / "evaluation.csv")["value"].is_finite().all()


def test_what_cannot_be_exported_is_named(ward):
    folder, _, _ = ward
    done = checkrein_command("export", folder / "run", "--format", "json")
    assert done.code == 2
    assert "cannot be written without code" in done.err
    assert "BoundedQ" not in done.err
    assert not (folder / "run" / "policy.json").exists()


def test_a_method_that_refits_is_refused_for_it(ward):
    folder, learn, _ = ward
    later = checkrein_command("certify", folder / "run", "--data", folder / "log.csv", "--method", "fqe-t")
    assert later.code == 2
    assert '"fqe-t" refits' in later.err
    early = fit(folder, learn, run="refitted", certify='[certify]\nmethod = "fqe-t"\n')
    assert early.code == 2
    assert "dr-studentised" in early.err
    assert not (folder / "refitted").exists()


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_result(ward, monkeypatch):
    folder, learn, _ = ward

    def interrupted(costs, played):
        if played.index == 2:
            raise KeyboardInterrupt
        return ""

    with monkeypatch.context() as patch:
        patch.setattr("checkrein.cli.learn.progress_line", interrupted)
        assert fit(folder, learn, run="cut").code == 130
    assert fit(folder, learn, "--resume", run="cut").code == 0
    for name in (ROUNDS, "solution.json", "policy.npz"):
        assert (folder / "cut" / name).read_bytes() == (folder / "run" / name).read_bytes()


@pytest.mark.slow
def test_a_margin_is_chosen_by_few_trees(tmp_path):
    done = fit(tmp_path, TREES, margin="auto", rounds=2)
    assert done.code in (0, 4), done
    aimed = json.loads((tmp_path / "run" / "summary.json").read_text())["aimed"]
    assert "0.05" in aimed["support"]
    assert aimed["predicted"]["dose"] > 0


@pytest.mark.parametrize(
    ("learn", "words"),
    [
        ('functions = "trees"\ndegree = 2\n', ['degree is for functions = "linear"', '"trees"']),
        ('functions = "neural"\nn_trees = 5\nmin_leaf = 2\n', ['n_trees, min_leaf are for functions = "trees"']),
        ('functions = "linear"\nhidden = [8]\n', ['hidden is for functions = "neural"']),
        ('functions = "trees"\nconservatism = 0.5\n', ['conservatism is for functions = "neural"']),
        ('functions = "neural"\nconservatism = -1\n', ["learn.conservatism", "-1"]),
        ('functions = "tabular"\nridge = 0.1\n', ['ridge is for functions = "linear"']),
        ('functions = "trees"\nn_trees = 0\n', ["learn.n_trees", "0"]),
        ('functions = "trees"\nmin_leaf = -1\n', ["learn.min_leaf", "-1"]),
        ('functions = "neural"\nhidden = []\n', ["learn.hidden"]),
        ('functions = "neural"\nhidden = [8, 0]\n', ["learn.hidden.2", "0"]),
    ],
)
def test_an_option_that_does_not_fit_is_named(learn, words, tmp_path):
    done = fit(tmp_path, learn)
    assert done.code == 2
    for word in words:
        assert word in done.err
    assert not (tmp_path / "run").exists()


def test_without_torch_the_install_command_is_named(tmp_path, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr("checkrein.functions.neural.import_module", absent)
    done = fit(tmp_path, NEURAL)
    assert done.code == 2
    assert 'functions = "neural" needs packages' in done.err
    assert "pip install 'checkrein[neural]'" in done.err
    assert not (tmp_path / "run").exists()


def test_values_that_run_away_are_one_message(tmp_path, monkeypatch):
    def away(*args, **kwargs):
        raise DivergenceError("the fitted iteration runs away: use a lower discount")

    monkeypatch.setattr("checkrein.best_response.fqi.fitted_iteration", away)
    done = fit(tmp_path, TREES)
    assert done.code == 2
    assert done.err.endswith("error: the fitted iteration runs away: use a lower discount\n")
    assert not (tmp_path / "run").exists()
