"""checkrein demo: a log of slippery FrozenLake, solved and compared with the exact optimum."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from checkrein.cli.progress import progress_line
from checkrein.cli.shared import app, console, say

if TYPE_CHECKING:
    from checkrein import AtMost, Solution, TabularMDP


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Run folder to write (an unfinished run there is resumed).")] = Path(
        "demo-run"
    ),
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes to log.")] = 50_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the log and of the run.")] = 0,
) -> None:
    """Log a clumsy walker on slippery FrozenLake, then learn to reach the goal while seldom falling into a hole."""
    from checkrein import FQE, FQI, AtMost, CuttingPlane, Problem, Tabular, solve
    from checkrein.problem.goals import Direction, Goal
    from checkrein.runs.of_solution import write_solution_report
    from checkrein_studies import frozen_lake

    mdp = frozen_lake.lake()
    behavior = frozen_lake.behavior(mdp)
    limit = AtMost("hole", frozen_lake.HOLE_LIMIT)
    console.print(
        f"[bold]Slippery FrozenLake 8x8[/bold], discount {mdp.discount}: minimise [cyan]goal[/cyan] (-1 on reaching "
        f"it)\nwhile [cyan]hole[/cyan] (1 on falling in) stays at most {limit.limit}, from logs alone."
    )
    dataset = replace(frozen_lake.log(mdp, behavior, episodes=episodes, seed=seed), encoding=frozen_lake.words())
    problem = Problem(dataset, objective="goal", constraints=[limit], discount=mdp.discount)
    console.print(
        f"Log: {episodes:,} episodes, {len(dataset):,} transitions, {len(problem.transitions):,} of them distinct.\n"
    )
    goals = [Goal("goal", Direction.MINIMISE), Goal.of(limit)]
    with Live(console=console, refresh_per_second=20) as live:
        solution = solve(
            problem,
            best_response=FQI(Tabular()),
            evaluator=FQE(Tabular()),
            learner=CuttingPlane(bound=10.0),
            tolerance=1e-4,
            max_rounds=50,
            seed=seed,
            on_round=lambda played: live.update(Text(progress_line(goals, played), overflow="fold")),
            checkpoint=out,
        )
        live.update(Text(progress_line(goals, solution.rounds[-1]), overflow="fold"))
    say(f"\n{solution.explanation}\n")
    console.print(demo_table(mdp, solution, limit, behavior_values=mdp.values(behavior)))
    console.print(
        Text(
            "'estimated' is what the log that the policy was learned from says of it. Such a claim is optimistic; "
            "the exact values, which no real log gives, show by how much.",
            style="dim",
        )
    )
    page = write_solution_report(
        problem,
        solution,
        out,
        goals=[Goal("goal", Direction.MAXIMISE), Goal.of(limit)],  # as people say it: reaching it is what is wanted
        evaluator=FQE(Tabular()),
        told=(
            "Slippery FrozenLake 8x8: reach the goal, seldom fall into a hole",
            f"{episodes:,} episodes of a clumsy walker",
            shlex.join(["checkrein", "demo", "--episodes", str(episodes), "--seed", str(seed), "--out", str(out)]),
        ),
        seed=seed,
    )
    say(f"Run folder: {out} (settings, every round, the policy, the solution)")
    say(f"Report: {page}")


def demo_table(mdp: "TabularMDP", solution: "Solution", limit: "AtMost", *, behavior_values: dict[str, float]) -> Table:
    """Return learned, behavior and optimal policies side by side."""
    table = Table(caption=f"hole must be at most {limit.limit}", caption_justify="right")
    table.add_column("policy")
    for column in ("goal", "hole", "goal, estimated", "hole, estimated"):
        table.add_column(column, justify="right", no_wrap=True)
    rows = {
        "learned": (mdp.values(solution.policy), solution.values),
        "behavior": (behavior_values, None),
        "best without limit": (mdp.optimum(objective="goal").values, None),
        "best within limit": (mdp.optimum(objective="goal", constraints=[limit]).values, None),
    }
    for name, (exact, estimated) in rows.items():
        cells = [f"{exact['goal']:.5f}", f"{exact['hole']:.5f}"]
        cells += ["", ""] if estimated is None else [f"{estimated['goal']:.5f}", f"{estimated['hole']:.5f}"]
        table.add_row(name, *cells)
    return table
