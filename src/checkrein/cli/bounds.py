"""checkrein bounds: what the paper's theorems say, in numbers; of a finished run, beside what it measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from checkrein.base.errors import ArgumentError
from checkrein.cli.shared import app, console, say

if TYPE_CHECKING:
    from checkrein.theory import Bound

bounds = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What the paper's theorems say, in numbers: as printed, and corrected. See docs/theory.md.",
)
app.add_typer(bounds, name="bounds")

Gamma = Annotated[float, typer.Option("--discount", help="Below 1.")]
Iterations = Annotated[int, typer.Option(help="K, of FQE and FQI.")]
ValueBound = Annotated[
    float | None, typer.Option(help="The largest |value|, a discounted sum; or give --step-cost.", show_default=False)
]
StepCost = Annotated[
    float | None, typer.Option(help="The largest |cost| of one step: values are 1 / (1 - discount) times as large.")
]
Coefficient = Annotated[
    float, typer.Option("--concentration", help="Of Assumption 1; for the corrected statement, its own coefficient.")
]
Inherent = Annotated[float, typer.Option("--inherent-error", help="Of the class; 0: it is closed under the operator.")]
Epsilon = Annotated[float | None, typer.Option(help="The error of each regression; or give --rows.")]
Rows = Annotated[int | None, typer.Option(help="Rows of the log: the least epsilon that they guarantee is taken.")]
Delta = Annotated[float, typer.Option(help="The permitted probability of failure.")]
Dimension = Annotated[int | None, typer.Option(help="The pseudo-dimension of the class, where --rows is given.")]
Constraints = Annotated[int, typer.Option(help="How many.")]
MultiplierBound = Annotated[float, typer.Option("--bound", help="B, on the sum of the multipliers.")]


@bounds.command()
def rounds(
    gap: Annotated[float, typer.Option(help="The duality gap to reach.")],
    bound: MultiplierBound,
    range_: Annotated[float, typer.Option("--range", help="The largest |constraint value - limit| of any policy.")],
    constraints: Constraints = 1,
) -> None:
    """Show the rounds and the rate that close the duality gap (Theorem 4.1)."""
    from checkrein import theory

    game: dict[str, Any] = {"gap": gap, "bound": bound, "n_constraints": constraints, "constraint_range": range_}
    table = Table("learner", "rounds", "rate")
    eg = theory.exponentiated_gradient_rate(gap=gap, bound=bound, constraint_range=range_)
    table.add_row("exponentiated gradient", f"{theory.exponentiated_gradient_rounds(**game):,}", f"{eg:.4g}")
    ogd = theory.online_gradient_descent_rate(gap=gap, n_constraints=constraints, constraint_range=range_)
    table.add_row("online gradient descent", f"{theory.online_gradient_descent_rounds(**game):,}", f"{ogd:.4g}")
    console.print(table)
    say("The second takes B as a bound on the multipliers' Euclidean norm. Each round asks for a best response.")


@bounds.command()
def samples(
    dimension: Annotated[
        int, typer.Option(help="The pseudo-dimension of the class: see `checkrein bounds dimension`.")
    ],
    epsilon: Epsilon = None,
    rows: Rows = None,
    delta: Delta = 0.05,
    iterations: Iterations = 100,
    constraints: Annotated[int, typer.Option(help="Of a whole game; 0: FQE or FQI alone.")] = 0,
    played: Annotated[int, typer.Option("--rounds", help="Of a whole game; only the corrected statement counts.")] = 1,
    value_bound: ValueBound = None,
    step_cost: StepCost = None,
    discount: Annotated[float, typer.Option(help="Only --step-cost needs it.")] = 0.9,
    general: Annotated[bool, typer.Option("--general", help="The class is not closed under the operator.")] = False,
) -> None:
    """Show the rows for an epsilon in every regression, or the epsilon that rows guarantee (Theorems 4.2 to 4.4)."""
    from checkrein import theory

    value = _value_bound(value_bound, step_cost, discount)
    if (epsilon is None) == (rows is None):
        raise ArgumentError("give either --epsilon or --rows")
    table = Table("statement", "epsilon", "rows")
    for name, constants, regressions in _statements(iterations, constraints, played):
        asked: dict[str, Any] = {"delta": delta, "regressions": regressions, "value_bound": value}
        asked |= {"dimension": dimension, "realisable": not general, "constants": constants}
        if epsilon is not None:
            table.add_row(name, f"{epsilon:.4g}", f"{theory.sample_size(epsilon=epsilon, **asked):,}")
        elif rows is not None:
            found = theory.smallest_epsilon(rows=rows, **asked)
            vacuous = ": vacuous" if found.vacuous else ""
            table.add_row(name, f"{found.value:.4g}{vacuous}", f"{rows:,}")
    console.print(table)
    say(f"Values are at most {value:.4g} in size, so an error of {2 * value:.4g} says nothing.")


def _error_command(name: str, words: str) -> None:
    """Add the command of a standalone theorem: FQE and FQI take the same arguments."""

    @bounds.command(name, help=words)
    def error(
        discount: Gamma,
        epsilon: Epsilon = None,
        rows: Rows = None,
        iterations: Iterations = 100,
        value_bound: ValueBound = None,
        step_cost: StepCost = None,
        concentration: Coefficient = 1.0,
        inherent_error: Inherent = 0.0,
        delta: Delta = 0.05,
        dimension: Dimension = None,
    ) -> None:
        from checkrein import theory

        value = _value_bound(value_bound, step_cost, discount)
        given: dict[str, Any] = {"iterations": iterations, "discount": discount, "value_bound": value}
        given |= {"concentration": concentration, "inherent_error": inherent_error}
        statements = _statements(iterations, 0, 1)
        epsilons = _epsilons(epsilon, rows, value, dimension, delta, statements, inherent_error > 0)
        printed, checked = (getattr(which, f"{name}_error") for which in (theory, theory.corrected))
        _show([printed(epsilon=epsilons[0], **given), checked(epsilon=epsilons[1], **given)])


_error_command("fqe", "Bound the error of FQE's value (Theorem 4.2).")
_error_command("fqi", "Bound the excess of FQI's policy over the best one (Theorem 4.3).")


@bounds.command("end-to-end")
def end_to_end(
    discount: Gamma,
    bound: MultiplierBound,
    objective_bound: Annotated[float, typer.Option(help="The largest |value| of the objective.")],
    constraint_bound: Annotated[float, typer.Option(help="The largest |value| of a constraint.")],
    epsilon: Epsilon = None,
    rows: Rows = None,
    tolerance: Annotated[float, typer.Option(help="The gap at which the game stopped.")] = 0.0,
    iterations: Iterations = 100,
    constraints: Constraints = 1,
    played: Annotated[int, typer.Option("--rounds", help="Only the corrected statement counts them.")] = 1,
    concentration: Coefficient = 1.0,
    delta: Delta = 0.05,
    dimension: Dimension = None,
) -> None:
    """Bound what the game's policy costs more than the best, and by how much it exceeds a limit (Theorem 4.4)."""
    from checkrein import theory

    values = {"objective_bound": objective_bound, "constraint_bound": constraint_bound, "bound": bound}
    statements = _statements(iterations, constraints, played)
    epsilons = _epsilons(epsilon, rows, theory.joint_bound(**values), dimension, delta, statements, False)
    given: dict[str, Any] = {"iterations": iterations, "discount": discount, "tolerance": tolerance, **values}
    given |= {"concentration": concentration}
    printed = theory.end_to_end(epsilon=epsilons[0], **given)
    checked = theory.corrected.end_to_end(epsilon=epsilons[1], evaluation_concentration=concentration, **given)
    _show([printed.objective, checked.objective])
    _show([printed.constraint, checked.constraint])


@bounds.command()
def dimension(
    functions: Annotated[str, typer.Argument(help="tabular, linear, trees or neural.")],
    actions: Annotated[int, typer.Option(help="How many.")],
    inputs: Annotated[int, typer.Option(help="Finite states of a table, else features (linear: the constant too).")],
    leaves: Annotated[int, typer.Option(help="Of a tree, at the most.")] = 10,
    trees: Annotated[int, typer.Option(help="Of a forest.")] = 1,
    hidden: Annotated[str, typer.Option(help="Widths of a network's layers, with commas between them.")] = "64,64",
) -> None:
    """Show the pseudo-dimension of a function class: exact of tables and linear functions, else a bound."""
    from checkrein import theory

    match functions:
        case "tabular":
            found = theory.tabular_dimension(n_states=inputs, n_actions=actions)
        case "linear":
            found = theory.linear_dimension(n_features=inputs, n_actions=actions)
        case "trees":
            found = theory.forest_dimension(n_trees=trees, leaves=leaves, n_features=inputs, n_actions=actions)
        case "neural":
            found = theory.relu_dimension(inputs=inputs, hidden=_widths(hidden), n_actions=actions)
        case _:
            raise ArgumentError(f"there is no function class {functions!r}: choose tabular, linear, trees or neural")
    exact = "is" if functions in {"tabular", "linear"} else "is at most"
    say(f"The pseudo-dimension {exact} {found:,}.")


@bounds.command()
def lock(
    states: Annotated[int, typer.Option(help="Of the longest lock.")] = 10,
    discount: Gamma = 0.95,
    back: Annotated[float, typer.Option(help="The probability with which the logging policy goes back.")] = 0.5,
) -> None:
    """Show how the concentration coefficient of the combination lock grows with its states."""
    from checkrein import theory

    table = Table("states", "concentration coefficient")
    shown = sorted({states, *(max(1, states * part // 4) for part in (1, 2, 3))})
    for count in shown:
        table.add_row(
            f"{count}", f"{theory.lock_concentration(n_states=count, discount=discount, back=back).value:.4g}"
        )
    console.print(table)
    say(f"In the long run each further state multiplies it by discount / (1 - back) = {discount / (1 - back):.4g}.")


@bounds.command()
def run(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that `checkrein fit` wrote.")],
    data: Annotated[str | None, typer.Option(help="The log that it learned from; default: where it was.")] = None,
) -> None:
    """Show what each theorem says of a finished run, beside what the run measured."""
    from checkrein.runs.bounds import comparisons, remarks
    from checkrein.runs.finished import open_run

    finished = open_run(folder, data)
    table = Table("theorem", "as printed", "corrected", "measured")
    for line in comparisons(finished):
        table.add_row(escape(line.theorem), line.printed, line.corrected, line.measured)
    console.print(table)
    for sentence in remarks(finished):
        say(sentence)


def _value_bound(value_bound: float | None, step_cost: float | None, discount: float) -> float:
    from checkrein import theory

    if (value_bound is None) == (step_cost is None):
        raise ArgumentError("give either --value-bound or --step-cost")
    if value_bound is not None:
        return value_bound
    return theory.value_bound(step_cost=step_cost or 0.0, discount=discount)


def _statements(iterations: int, constraints: int, played: int) -> list[tuple[str, Any, int]]:
    """Return the name of each statement, its constants, and the regressions that must succeed for it."""
    from checkrein.theory import corrected
    from checkrein.theory.samples import PRINTED

    if constraints == 0:
        return [("as printed", PRINTED, iterations), ("corrected", corrected.CONSTANTS, iterations)]
    every = corrected.regressions(iterations=iterations, rounds=played, n_constraints=constraints)
    return [("as printed", PRINTED, iterations * (constraints + 1)), ("corrected", corrected.CONSTANTS, every)]


def _epsilons(
    epsilon: float | None,
    rows: int | None,
    value_bound: float,
    dimension: int | None,
    delta: float,
    statements: list[tuple[str, Any, int]],
    general: bool,
) -> list[float]:
    """Return the error of each regression: as given, or the least that the rows guarantee, by each statement."""
    from checkrein.theory import smallest_epsilon

    if (epsilon is None) == (rows is None):
        raise ArgumentError("give either --epsilon or --rows")
    if epsilon is not None:
        return [epsilon] * len(statements)
    if rows is None or dimension is None:
        raise ArgumentError("--rows needs --dimension too: `checkrein bounds dimension` tells it")
    asked: dict[str, Any] = {"rows": rows, "delta": delta, "value_bound": value_bound, "dimension": dimension}
    asked |= {"realisable": not general}
    return [smallest_epsilon(regressions=count, constants=c, **asked).value for _, c, count in statements]


def _show(found: "list[Bound]") -> None:
    for name, bound in zip(("As printed", "Corrected"), found, strict=True):
        say(f"{name}: {bound.words}.")


def _widths(hidden: str) -> list[int]:
    try:
        return [int(width) for width in hidden.split(",")]
    except ValueError:
        raise ArgumentError(
            f"--hidden is {hidden!r}: give whole numbers with commas between them, like 64,64"
        ) from None
