"""The command line: the only place that prints."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bridle import __version__
from bridle.best_response import FQI
from bridle.errors import BridleError
from bridle.evaluation import FQE
from bridle.functions import Tabular
from bridle.game import Round, Solution, solve
from bridle.online import CuttingPlane
from bridle.problem import AtMost, Problem
from bridle.studies import frozen_lake
from bridle.tabular_mdp import TabularMDP

BAD_INPUT = 2  # exit code for what a user can get wrong

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


def main() -> None:
    """Run a command; what a user can get wrong is one message, not a traceback."""
    try:
        app()
    except BridleError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            Text("error: ", style="bold red") + Text(str(error))
        )
        sys.exit(BAD_INPUT)


@app.callback(invoke_without_command=True)
def bridle(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Learn a policy from logged decisions: minimise one cost, keep the others under their limits."""
    if version:
        console.print(__version__)
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Run folder to write (an unfinished run there is resumed).")] = Path(
        "demo-run"
    ),
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes to log.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Of the log and of the run.")] = 0,
) -> None:
    """Log a clumsy walker on slippery FrozenLake, then learn to reach the goal while seldom falling into a hole."""
    mdp = frozen_lake.lake()
    behaviour = frozen_lake.behaviour(mdp)
    limit = AtMost("hole", frozen_lake.HOLE_LIMIT)
    console.print(
        f"[bold]Slippery FrozenLake 8x8[/bold], discount {mdp.discount}: minimise [cyan]goal[/cyan] (-1 on reaching "
        f"it)\nwhile [cyan]hole[/cyan] (1 on falling in) stays at most {limit.limit}, from logs alone."
    )
    dataset = frozen_lake.log(mdp, behaviour, episodes=episodes, seed=seed)
    problem = Problem(dataset, objective="goal", constraints=[limit], discount=mdp.discount)
    console.print(
        f"Log: {episodes:,} episodes, {len(dataset):,} transitions, {len(problem.transitions):,} of them distinct.\n"
    )
    with Live(console=console, refresh_per_second=20) as live:
        solution = solve(
            problem,
            best_response=FQI(Tabular()),
            evaluator=FQE(Tabular()),
            learner=CuttingPlane(bound=10.0),
            tolerance=1e-4,
            max_rounds=50,
            seed=seed,
            on_round=lambda played: live.update(Text(progress_line(problem, played))),
            checkpoint=out,
        )
        live.update(Text(progress_line(problem, solution.rounds[-1])))
    console.print(f"\n{solution.explanation}\n")
    console.print(demo_table(mdp, solution, limit, behaviour_values=mdp.values(behaviour)))
    console.print(
        "[dim]'estimated' is what the log that the policy was learned from says of it. Such a claim is\n"
        "optimistic; the exact values, which no real log gives, show by how much.[/dim]\n"
        f"Run folder: {out} (settings, every round, the policy, the solution)"
    )


def progress_line(problem: Problem, played: Round) -> str:
    """Return where the game stands: round, gap, objective, each constraint against its limit, multipliers."""
    mixture = problem.named(played.mixture)
    parts = [f"round {played.index}", f"gap {played.gap:.2e}"]
    if problem.objective is not None:
        parts.append(f"{problem.objective} {mixture[problem.objective]:.5f}")
    for constraint, multiplier in zip(problem.constraints, played.multipliers, strict=True):
        sign = "<=" if constraint.sign > 0 else ">="
        parts.append(
            f"{constraint.name} {mixture[constraint.cost]:.5f} {sign} {constraint.limit:g} (x {multiplier:.4f})"
        )
    return "   ".join(parts)


def demo_table(mdp: TabularMDP, solution: Solution, limit: AtMost, *, behaviour_values: dict[str, float]) -> Table:
    """Return learned, behaviour and optimal policies side by side."""
    table = Table(caption=f"hole must be at most {limit.limit}", caption_justify="right")
    table.add_column("policy")
    for column in ("goal", "hole", "goal, estimated", "hole, estimated"):
        table.add_column(column, justify="right", no_wrap=True)
    rows = {
        "learned": (mdp.values(solution.policy), solution.values),
        "behaviour": (behaviour_values, None),
        "best without limit": (mdp.optimum(objective="goal").values, None),
        "best within limit": (mdp.optimum(objective="goal", constraints=[limit]).values, None),
    }
    for name, (exact, estimated) in rows.items():
        cells = [f"{exact['goal']:.5f}", f"{exact['hole']:.5f}"]
        cells += ["", ""] if estimated is None else [f"{estimated['goal']:.5f}", f"{estimated['hole']:.5f}"]
        table.add_row(name, *cells)
    return table
