"""From a table to a policy and a report, by the commands a user types."""

import html
import json

import numpy as np
import polars as pl
import pytest

import checkrein
from checkrein import AtMost
from checkrein.report.words import amount, apart
from checkrein_studies import icu
from cli.commands import checkrein_command

QUICK = '\n[certify]\nmethod = "fqe-t"\n'  # no replicates, of which later looks at one log ask for thousands
AT_THE_LIMIT = ("seed = 0", 'margin = "none"\nmin_count = 30\nholdout = 0.5\nseed = 0')
TABLES = ("seed = 0", 'functions = "tabular"\nseed = 0')


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """The tutorial: an example log, its data card, and a run."""
    folder = tmp_path_factory.mktemp("ward")
    done = [
        checkrein_command("example", "--out", folder, "--patients", 6000),
        checkrein_command("inspect", folder / "icu.toml"),
        checkrein_command("fit", folder / "icu.toml", "--out", folder / "run"),
    ]
    return folder, done


def test_three_commands_lead_from_a_table_to_a_report(ward):
    folder, done = ward
    assert [one.code for one in done] == [0, 0, 0]
    assert "16 finite states of severity, lactate" in done[1].out
    assert "litres of fluid: both certified on 6,000 episodes" in done[2].out
    assert "lowers death from" in done[2].out
    assert "Certificate: pass." in done[2].out
    names = {path.name for path in (folder / "run").iterdir()}
    assert {
        "problem.toml",
        "problem.npz",
        "encoding.npz",
        "summary.json",
        "report.html",
        "policy.npz",
        "certificate.json",
        "manifest.json",
    } == names
    assert "vasopressor hours" in (folder / "run" / "report.html").read_text()


def test_no_row_is_lost(ward):
    folder, _ = ward
    card = json.loads((folder / "run" / "summary.json").read_text())["card"]
    assert card["rows"] == pl.read_csv(folder / "icu.csv").height
    assert card["rows"] == card["rows_used"] + sum(card["left_out"].values())
    assert card["left_out"]  # some patients were still there when the log stopped


def require_objective(run, printed, name, sign):
    """Page and terminal tell the certificate's numbers, in the user's sign."""
    told = json.loads((run / "certificate.json").read_text())["objective"]
    share = json.loads((run / "summary.json").read_text())["costs"][0]["share"]
    more, less = ("more", "less") if sign > 0 else ("less", "more")
    ends = [
        f"{apart(abs(end), share=share)} {more if end > 0 else less}"
        for end in sorted((told["lower"], told["upper"]), key=lambda x: sign * x)
    ]
    words = (
        f"{name} is {amount(sign * told['estimate'], share=share)}, {apart(abs(told['difference']), share=share)} "
        f"{more if told['difference'] > 0 else less} than behavior's {amount(sign * told['behavior'], share=share)} "
    )
    words += f"(between {ends[0]} and {ends[1]})." if told["lower"] < 0 < told["upper"] else "(between "
    page = " ".join(html.unescape((run / "report.html").read_text()).split())
    assert f"Objective: {told['verdict']}. {words}" in " ".join(printed.split())
    assert f"{name}: {told['verdict']}" in page
    assert words in page
    level = json.loads((run / "summary.json").read_text())["level"]
    passed = json.loads((run / "certificate.json").read_text())["verdict"] == "pass"
    assert (level == "good") == (passed and told["verdict"] == "better")


def test_page_and_terminal_tell_the_objective_as_the_certificate_does(ward):
    folder, done = ward
    require_objective(folder / "run", done[2].out, "death", 1)


def test_what_the_bounds_allow_for_rare_events_is_part_of_them(ward):
    folder, _ = ward
    for one in checkrein.Certificate.read(folder / "run" / "certificate.json").constraints:
        assert 0 <= one.missed <= one.bound - one.estimate


def test_the_objective_of_another_look_is_told_by_certify(ward, close):
    folder, _ = ward
    out = folder / "again.json"
    done = checkrein_command("certify", close, "--data", folder / "icu.csv", "--out", out)
    mine, first = (checkrein.Certificate.read(path) for path in (out, close / "certificate.json"))
    assert mine == first  # the same claim on the same episodes
    assert mine.excluded == mine.episodes == 3000
    assert f"Objective: {mine.objective.verdict}. death is {amount(mine.objective.estimate, share=True)}" in done.out


def exact_values(run):
    """What the policy of a run really does in the ward."""
    deployed = checkrein.load_policy(run)
    order = deployed.encoding.encode(
        pl.DataFrame({"severity": np.repeat(icu.SEVERITIES, 4), "lactate": [*(icu.LACTATES[:3]), None] * 4})
    )
    renamed = [deployed.encoding.actions.index(name) for name in icu.TREATMENTS]
    members = [checkrein.TabularPolicy(m.probabilities(order)[:, renamed]) for m in deployed.policy.members]
    return icu.ward().values(checkrein.MixturePolicy(tuple(members), deployed.policy.weights))


def test_what_is_certified_is_true(ward):
    folder, _ = ward
    exact = exact_values(folder / "run")
    certificate = checkrein.Certificate.read(folder / "run" / "certificate.json")
    assert certificate.verdict == "pass"
    for constraint in certificate.constraints:
        assert exact[constraint.name] <= constraint.bound <= constraint.limit
    assert exact["death"] < icu.ward().values(icu.clinicians())["death"]


@pytest.fixture(scope="module")
def close(ward):
    """A run that aims at the limits themselves."""
    folder, _ = ward
    problem = edited(folder, "close.toml", AT_THE_LIMIT)
    assert checkrein_command("fit", problem, "--out", folder / "close").code == 0
    return folder / "close"


def test_without_margin_what_was_learned_is_near_the_exact_optimum(close):
    mdp = icu.ward()
    behavior = mdp.values(icu.clinicians())
    limits = [AtMost("vasopressor hours", 0.75 * behavior["vasopressor hours"]), AtMost("litres of fluid", 2.5)]
    best = mdp.optimum(objective="death", constraints=limits).values
    exact = exact_values(close)
    assert exact["death"] == pytest.approx(best["death"], abs=0.03)
    for limit in limits:
        assert exact[limit.cost] == pytest.approx(best[limit.cost], rel=0.1)


def test_the_summary_shows_the_users_own_units(ward):
    folder, _ = ward
    summary = json.loads((folder / "run" / "summary.json").read_text())
    vaso = summary["costs"][1]
    assert vaso["limit_source"] == "75% of behavior"
    assert vaso["limit"] == pytest.approx(0.75 * vaso["values"]["behavior"]["held_out"])
    assert vaso["unit"] == "expected sum per episode"
    assert summary["policies"] == ["learned", "behavior"]


def test_where_episodes_are_held_out_four_policies_are_compared(close):
    summary = json.loads((close / "summary.json").read_text())
    vaso = summary["costs"][1]
    assert vaso["limit"] == pytest.approx(0.75 * vaso["values"]["behavior"]["learning"])
    assert summary["policies"] == ["learned", "behavior", "unconstrained", "best single policy"]


def require_one_result(problem, run):
    """A run is refused as it stands, and resumed it does not change."""
    refused = checkrein_command("fit", problem, "--out", run)
    assert refused.code == 2
    assert "--resume" in refused.err
    before = {path.name: path.read_bytes() for path in run.glob("*.*")}
    assert checkrein_command("fit", problem, "--out", run, "--resume").code == 0
    assert {path.name: path.read_bytes() for path in run.glob("*.*")} == before


def test_a_run_is_not_overwritten_and_a_finished_one_resumes_to_itself(close):
    require_one_result(close.parent / "close.toml", close)


@pytest.fixture(scope="module")
def chosen(ward):
    """A run that holds half of the patients out and chooses its margin."""
    folder, _ = ward
    problem = edited(folder, "chosen.toml", ("seed = 0", 'certificate = "holdout"\nseed = 0'))
    assert checkrein_command("fit", problem, "--out", folder / "chosen").code == 0
    return folder / "chosen"


@pytest.mark.slow
def test_a_run_that_chose_its_margin_resumes_to_itself(chosen):
    require_one_result(chosen.parent / "chosen.toml", chosen)


@pytest.mark.parametrize("problem", ["close", pytest.param("chosen", marks=pytest.mark.slow)])
def test_ctrl_c_leaves_a_run_that_resumes_to_the_same_result(ward, problem, request, monkeypatch):
    folder, _ = ward
    request.getfixturevalue(problem)
    file = folder / f"{problem}.toml"
    cut = folder / f"cut-{problem}"
    calls = []

    def interrupted(costs, played):
        calls.append(played.index)
        if played.index == 3:
            raise KeyboardInterrupt
        return ""

    with monkeypatch.context() as patch:
        patch.setattr("checkrein.cli.learn.progress_line", interrupted)
        done = checkrein_command("fit", file, "--out", cut)
    assert done.code == 130
    assert "--resume" in done.err
    assert calls == [1, 2, 3]
    assert checkrein_command("fit", file, "--out", cut, "--resume").code == 0
    for name in ("rounds.jsonl", "solution.json", "policy.npz"):
        assert (cut / name).read_bytes() == (folder / problem / name).read_bytes()


def test_the_report_is_made_again_from_the_summary_alone(ward):
    folder, _ = ward
    page = folder / "run" / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert checkrein_command("report", folder / "run").code == 0
    assert page.read_bytes() == before
    nothing = checkrein_command("report", folder)
    assert nothing.code == 2
    assert "no finished run" in nothing.err


@pytest.mark.parametrize("form", ["json", "onnx"])
@pytest.mark.parametrize("single", [[], ["--single"]])
def test_policies_are_exported(close, form, single, tmp_path):
    pytest.importorskip("onnx")
    done = checkrein_command("export", close, "--format", form, "--out", tmp_path / "policy", *single)
    assert done.code == 0
    assert (tmp_path / "policy").stat().st_size > 500


def edited(folder, name, *changes):
    """The tutorial's problem file with some texts replaced, and a quick method."""
    text = (folder / "icu.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text + QUICK)
    return folder / name


def test_limits_that_cannot_be_met_are_a_result_with_its_own_exit_code(ward):
    folder, _ = ward
    path = edited(
        folder,
        "tight.toml",
        ('"75% of behavior"', "0.5"),
        ("at_most = 2.5", "at_most = 0.1\nunit = 'sum'"),
        AT_THE_LIMIT,
    )
    path.write_text(path.read_text() + '\n[[constraint]]\nname = "hours"\ncost = "1"\nat_most = 2\n')
    done = checkrein_command("fit", path, "--out", folder / "tight")
    assert done.code == 3
    assert "No policy that the log supports keeps all the limits together" in done.out
    assert "The closest that any comes:" in done.out
    assert (folder / "tight" / "report.html").exists()


def test_too_few_rounds_are_a_result_with_its_own_exit_code(ward):
    folder, _ = ward
    path = edited(folder, "short.toml", ("seed = 0", "max_rounds = 2\ntolerance = 1e-9\nseed = 0"), AT_THE_LIMIT)
    done = checkrein_command("fit", path, "--out", folder / "short")
    assert done.code == 4
    assert "Stopped at the limit of 2 rounds" in done.out


def test_maximising_and_at_least_are_minimising_and_at_most_of_the_negative(ward):
    folder, _ = ward
    path = edited(
        folder,
        "mirrored.toml",
        ('minimize = "death"', 'maximize = "1 - death"\nname = "alive"'),
        ('litres"\nat_most = 2.5 ', '0 - litres"\nat_least = -2.5 '),
        ("seed = 0", 'margin = "none"\nseed = 0'),
    )
    done = checkrein_command("fit", path, "--out", folder / "mirrored")
    assert done.code == 0
    costs = json.loads((folder / "mirrored" / "summary.json").read_text())["costs"]
    assert costs[0]["goal"] == "maximise"
    assert costs[2]["goal"] == "at least -2.5"
    assert costs[2]["values"]["learned"]["learning"] == pytest.approx(-2.5, abs=1e-3)
    judged = checkrein.Certificate.read(folder / "mirrored" / "certificate.json").constraints[1]
    assert judged.bound < judged.estimate < judged.other_bound  # of what must be at least so much, from below
    require_objective(folder / "mirrored", done.out, "alive", -1)


def test_features_and_averages_per_step_work_too(ward):
    folder, _ = ward
    levels = {name: place + 0.0 for place, name in enumerate(icu.SEVERITIES)}
    log = pl.read_csv(folder / "icu.csv").filter(pl.col("patient") < 400)
    log = log.with_columns(level=pl.col("severity").replace_strict(levels))
    log.write_parquet(folder / "icu.parquet")
    path = edited(
        folder,
        "linear.toml",
        ("icu.csv", "icu.parquet"),
        ('state = ["severity", "lactate"]', 'state = ["level", "lactate"]'),
        ("discount = 1.0", "discount = 0.9"),
        ("at_most = 2.5 ", 'at_most = "90% of behavior"\nunit = "per step" '),
        ("seed = 0", 'functions = "linear"\ndegree = 2\nmargin = "none"\nseed = 0'),
    )
    path.write_text(path.read_text().replace("fqe-t", "dr-t"))
    done = checkrein_command("fit", path, "--out", folder / "linear")
    assert done.code == 0, done
    summary = json.loads((folder / "linear" / "summary.json").read_text())
    assert summary["costs"][2]["unit"] == "average per step, discounted by 0.9"
    assert summary["costs"][2]["values"]["behavior"]["learning"] < 0.5  # litres an hour
    assert "lactate" in summary["differences"]["tree"] or "level" in summary["differences"]["tree"]


def test_what_would_mislead_is_a_warning(ward):
    folder, _ = ward
    leaking = edited(folder, "leak.toml", ('state = ["severity", "lactate"]', 'state = ["severity", "litres"]'))
    leaking.write_text(leaking.read_text().replace('name = "litres of fluid"\ncost = "litres"', 'name = "litres"'))
    assert "'litres' is a state column and also an outcome" in checkrein_command("inspect", leaking).out
    log = pl.read_csv(folder / "icu.csv").with_columns(noise=pl.int_range(pl.len()) * 0.5)
    log.write_parquet(folder / "noise.parquet")
    scattered = edited(folder, "noise.toml", ("icu.csv", "noise.parquet"), ('"lactate"]', '"noise"]'), TABLES)
    done = checkrein_command("inspect", scattered)
    assert "states occur only once" in done.out.replace("\n", " ")


@pytest.mark.parametrize(
    "learner", ["exponentiated-gradient", pytest.param("online-gradient-descent", marks=pytest.mark.slow)]
)
def test_the_gradient_learners_find_their_way_without_a_bound_or_a_rate(ward, close, learner):
    folder, _ = ward
    settings = 'max_rounds = 300\ntolerance = 0.01\nmargin = "none"\nmin_count = 30'
    path = edited(folder, f"{learner}.toml", ("seed = 0", f'learner = "{learner}"\n{settings}'))
    done = checkrein_command("fit", path, "--out", folder / learner)
    assert done.code == 0, done
    found, best = (
        json.loads((run / "solution.json").read_text())["values"]["death"] for run in (folder / learner, close)
    )
    assert found == pytest.approx(best, abs=0.011)
