"""What a theorem says of a run is what its calculator says of the run's own numbers."""

import math

import pytest

from checkrein import Ensemble, Linear, Neural, OneHot, Polynomial, Tabular, Trees, theory
from checkrein.base.errors import ArgumentError
from checkrein.runs.bounds import comparisons
from checkrein.runs.dimensions import dimension_of
from checkrein.runs.finished import open_run
from cli.commands import checkrein_command


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ward")
    assert checkrein_command("example", "--out", folder, "--patients", 400).code == 0
    text = (folder / "icu.toml").read_text()
    learner = 'learner = "exponentiated-gradient"\nbound = 2.0\nmax_rounds = 20\nmargin = "none"'
    text = text.replace("discount = 1.0", f"discount = 0.9\n{learner}")
    (folder / "icu.toml").write_text(text)
    checkrein_command("fit", folder / "icu.toml", "--out", folder / "run")
    return open_run(folder / "run", str(folder / "icu.csv"))


def test_the_run_is_read_as_it_was_played(run):
    assert run.multipliers == type(run.multipliers)("ExponentiatedGradient", 2.0, (1.0, 1.0))
    assert run.horizon == pytest.approx(10)
    assert run.objective_bound == pytest.approx(10)  # deaths: 1 a step at the most
    assert run.constraint_bound(1) == pytest.approx(5)  # half a litre
    assert run.dimension == 16 * 4
    assert 56 <= run.logged.coefficient.n_pairs <= 64  # two of them were not logged in this half
    assert run.logged.of_policy < run.logged.coefficient.first_order


def test_the_lines_are_what_the_calculators_say(run):
    lines = {line.theorem: line for line in comparisons(run)}
    played = len(run.summary.trace.round)
    largest = max(run.constraint_range(place) for place in range(2))
    gap = theory.exponentiated_gradient_gap(rounds=played, bound=2.0, n_constraints=2, constraint_range=largest)
    line = lines[f"4.1: gap after {played:,} rounds"]
    assert f"{gap:.3g}" in line.printed
    assert line.measured == f"{run.summary.gap:.3g}"
    assert run.summary.gap <= gap
    epsilon = theory.smallest_epsilon(
        rows=math.floor(run.rows), delta=0.05, regressions=run.iterations, value_bound=10.0, dimension=64
    ).value
    coefficient = run.logged.coefficient.value
    error = theory.fqe_error(
        epsilon=epsilon, iterations=run.iterations, discount=0.9, value_bound=10.0, concentration=coefficient
    )
    assert lines["4.2: error of FQE, death"].printed.startswith(f"{error.value:.3g}: vacuous")
    assert all("vacuous" in line.printed for name, line in lines.items() if name.startswith("4.4"))


@pytest.mark.parametrize(
    ("functions", "dimension"),
    [
        (Tabular(), 12),
        (Linear(OneHot(6)), 12),
        (Linear(Polynomial(2)), 2 * math.comb(8, 2)),
        (Trees(20, 5.0), theory.forest_dimension(n_trees=20, leaves=20, n_features=6, n_actions=2)),
        (Ensemble(Trees(20, 5.0), 3), theory.forest_dimension(n_trees=60, leaves=20, n_features=6, n_actions=2)),
        (Neural((8,)), theory.relu_dimension(inputs=6, hidden=(8,), n_actions=2)),
        (Ensemble(Neural((8,)), 3), theory.relu_dimension(inputs=6, hidden=(8,), n_actions=2, n_networks=3)),
        (Ensemble(Tabular(), 3), 12),
    ],
)
def test_every_class_with_a_known_bound_has_its_dimension(functions, dimension):
    assert dimension_of(functions, n_inputs=6, n_actions=2, rows=100) == dimension


@pytest.mark.parametrize("functions", [Neural((8,), convolutions=((8, 3, 1),)), Ensemble(Tabular(), 3, 0.9)])
def test_a_class_without_a_known_bound_is_named(functions):
    with pytest.raises(ArgumentError, match="no bound on the pseudo-dimension"):
        dimension_of(functions, n_inputs=6, n_actions=2, rows=100)
