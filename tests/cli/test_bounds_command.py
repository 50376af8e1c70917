"""checkrein bounds, as a user types it."""

import json
import shutil

import pytest

from checkrein import theory
from checkrein.base import manifest
from checkrein.runs.folder import CHECKED
from cli.commands import checkrein_command

FQE = ("bounds", "fqe", "--discount", 0.9)


def words(*arguments):
    done = checkrein_command("bounds", *arguments)
    assert done.code == 0, done.err
    return " ".join(done.out.split())


def test_rounds_are_those_of_the_theorem():
    said = words("rounds", "--gap", 0.1, "--bound", 10, "--range", 0.5)
    assert "27,726" in said
    assert "10,000" in said


def test_rows_and_epsilon_answer_each_other():
    question = ("--value-bound", 1, "--dimension", 4, "--iterations", 50)
    assert "27,554,751" in words("samples", "--epsilon", 0.1, *question)
    assert "as printed │ 0.1 │ 27,554,751" in words("samples", "--rows", 27_554_751, *question)
    assert "vacuous" in words("samples", "--rows", 1000, *question)


def test_a_step_cost_becomes_a_bound_on_values():
    question = ("--dimension", 4, "--epsilon", 0.1)
    by_step = words("samples", "--step-cost", 0.1, "--discount", 0.9, *question)
    assert by_step == words("samples", "--value-bound", 1, *question)


@pytest.mark.parametrize("name", ["fqe", "fqi"])
def test_the_error_of_each_theorem_is_shown_with_what_it_is_worth(name):
    said = words(
        name, "--discount", 0.9, "--epsilon", 0.1, "--value-bound", 1, "--iterations", 50, "--concentration", 4
    )
    given = {"epsilon": 0.1, "iterations": 50, "discount": 0.9, "value_bound": 1.0, "concentration": 4.0}
    for which in (theory, theory.corrected):
        assert getattr(which, f"{name}_error")(**given).words in said


def test_rows_stand_for_the_epsilon_that_they_guarantee():
    said = words("fqi", "--discount", 0.9, "--rows", 10**9, "--dimension", 4, "--value-bound", 1, "--iterations", 50)
    epsilon = theory.smallest_epsilon(rows=10**9, delta=0.05, regressions=50, value_bound=1.0, dimension=4).value
    bound = theory.fqi_error(epsilon=epsilon, iterations=50, discount=0.9, value_bound=1.0, concentration=1.0)
    assert bound.words in said


def test_the_whole_game_has_an_objective_and_a_constraint_to_bound():
    values = ("--objective-bound", 1, "--constraint-bound", 1, "--bound", 10)
    said = words("end-to-end", "--discount", 0.9, *values, "--epsilon", 1e-6, "--iterations", 1000)
    assert "constrained optimum is at most" in said
    assert "Corrected: the excess over each limit is at most 0.2" in said
    assert "As printed: the excess over each limit is at most 2.2: vacuous" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tabular", "--inputs", 16), "is 64"),
        (("linear", "--inputs", 3), "is 12"),
        (("trees", "--inputs", 5, "--leaves", 10), f"at most {theory.tree_dimension(leaves=10, n_features=5) * 4:,}"),
        (("neural", "--inputs", 2, "--hidden", "3"), "is at most"),
    ],
)
def test_every_class_has_a_dimension(arguments, said):
    assert said in words("dimension", *arguments, "--actions", 4)


def test_the_lock_grows():
    said = words("lock", "--states", 12)
    assert f"{theory.lock_concentration(n_states=12, discount=0.95).value:.4g}" in said
    assert "1.9" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*FQE, "--value-bound", 1), "either --epsilon or --rows"),
        ((*FQE, "--epsilon", 0.1), "either --value-bound or --step-cost"),
        ((*FQE, "--epsilon", 0.1, "--value-bound", 1, "--step-cost", 1), "either --value-bound or --step-cost"),
        ((*FQE, "--rows", 10, "--value-bound", 1), "--rows needs --dimension"),
        ((*FQE, "--epsilon", 0.1, "--value-bound", -1), "value_bound is -1.0"),
        (("bounds", "fqe", "--discount", 1, "--epsilon", 0.1, "--value-bound", 1), "discount is 1.0"),
        (("bounds", "rounds", "--gap", 0, "--bound", 1, "--range", 1), "gap is 0"),
        (("bounds", "dimension", "forest", "--actions", 2, "--inputs", 2), "no function class 'forest'"),
        (("bounds", "dimension", "neural", "--actions", 2, "--inputs", 2, "--hidden", "3,x"), "--hidden is '3,x'"),
        (("bounds", "lock", "--states", 0), "n_states is 0"),
        (("bounds", "lock", "--back", 1), "back is 1"),
        (("bounds", "run", "nowhere"), "nowhere"),
        (("bounds", "guess"), "guess"),
    ],
)
def test_what_a_user_can_get_wrong_is_named(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = checkrein_command(*arguments)
    assert done.code == 2
    assert said in " ".join(done.err.split())


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ward")
    assert checkrein_command("example", "--out", folder, "--patients", 400).code == 0
    text = (folder / "icu.toml").read_text()
    (folder / "icu.toml").write_text(text.replace("discount = 1.0", 'discount = 0.9\nmargin = "none"'))
    assert checkrein_command("fit", folder / "icu.toml", "--out", folder / "run").code == 0
    (folder / "sums.toml").write_text(text + 'margin = "none"\n')
    assert checkrein_command("fit", folder / "sums.toml", "--out", folder / "sums").code == 0
    return folder


def test_a_run_is_held_against_every_theorem(ward):
    said = words("run", ward / "run", "--data", ward / "icu.csv")
    for theorem in ("4.1:", "C.2:", "4.2:", "4.3:", "4.4:"):
        assert theorem in said
    assert "vacuous" in said
    assert "logged pairs of state and action" in said
    summary = json.loads((ward / "run" / "summary.json").read_text())
    assert f"{summary['gap']:.3g}" in said


def test_without_its_log_a_run_is_judged_at_the_best_possible_coefficient(ward, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = words("run", ward / "run")
    assert "taken as 1, the best possible case" in said
    assert "pseudo-dimension" in said


def test_at_discount_one_only_the_rounds_can_be_judged(ward):
    said = words("run", ward / "sums", "--data", ward / "icu.csv")
    assert "need a discount below 1" in said
    assert "4.1:" in said
    assert "4.2:" not in said


def test_another_log_is_not_taken_for_the_runs_own(ward, tmp_path):
    assert checkrein_command("example", "--out", tmp_path, "--patients", 300).code == 0
    done = checkrein_command("bounds", "run", ward / "run", "--data", tmp_path / "icu.csv")
    assert done.code == 2
    assert "is not the log" in done.err


def test_settings_that_name_no_bound_are_an_error(ward, tmp_path):
    shutil.copytree(ward / "run", tmp_path / "run")
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())
    (tmp_path / "run" / "settings.json").write_text(json.dumps(settings | {"learner": "Own()"}))
    manifest.seal(tmp_path / "run", CHECKED)
    done = checkrein_command("bounds", "run", tmp_path / "run", "--data", ward / "icu.csv")
    assert done.code == 2
    assert "within which bound" in " ".join(done.err.split())
