"""checkrein export, rollout: a policy out of its run folder."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from checkrein.base.errors import ArgumentError
from checkrein.cli.shared import app, console, say

Run = Annotated[Path, typer.Argument(help="A run folder that `checkrein fit` wrote.")]
Single = Annotated[bool, typer.Option("--single", help="The best single policy instead of the mixture.")]
Uncertified = Annotated[
    bool, typer.Option("--uncertified", help="Where nothing passed, the candidate that was refused all the same.")
]


class Format(StrEnum):
    """What to write."""

    JSON = "json"
    ONNX = "onnx"
    CARD = "card"


@app.command()
def export(
    run: Run,
    form: Annotated[
        Format,
        typer.Option("--format", help="JSON for any language, ONNX for any ONNX runtime, or a model card in Markdown."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: policy.json, policy.onnx or card.md in the run.")
    ] = None,
    single: Single = False,
    uncertified: Uncertified = False,
) -> None:
    """Write the policy so that it needs neither checkrein nor Python, checked against ours on random states.

    A card says in Markdown what the policy is for, what it was learned from and what is known of it; it can be had of
    every finished run.
    """
    from checkrein.deploy import export_json, export_onnx, load
    from checkrein.runs.folder import RunFolder
    from checkrein.runs.side_by_side import write_card

    folder = RunFolder.opened(run)
    path = out or folder.export_file(form)
    if form is Format.CARD:
        write_card(folder, path)
        say(f"Wrote {path}")
        return
    deployed = load(run, single=single, uncertified=uncertified)
    write = export_json if form is Format.JSON else export_onnx
    with folder.adding(path) as place:
        write(deployed.policy, deployed.encoding, place)
    say(f"Wrote {path}")


@app.command("rollout")
def roll_out(
    run: Run,
    env: Annotated[str, typer.Option(help="A Gymnasium environment, e.g. FrozenLake-v1.")],
    episodes: Annotated[int, typer.Option(min=1)] = 100,
    max_steps: Annotated[int, typer.Option(min=1)] = 1000,
    discount: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    single: Single = False,
    uncertified: Uncertified = False,
) -> None:
    """Play the policy in a Gymnasium environment, one member of the mixture per episode."""
    from checkrein.deploy import load, rollout

    if discount == 0:
        raise ArgumentError("the discount is 0: it must lie in (0, 1]")
    deployed = load(run, single=single, uncertified=uncertified)
    result = rollout(deployed, env, episodes=episodes, seed=seed, max_steps=max_steps, discount=discount)
    table = Table("sum of", "mean", "+-", "discounted", "+-")
    for name in result.names:
        plain = result.mean(name, discounted=False), result.standard_error(name, discounted=False)
        table.add_row(name, *(f"{x:.4g}" for x in (*plain, result.mean(name), result.standard_error(name))))
    console.print(table)
    say(f"{episodes} episodes of {result.lengths.mean():.1f} steps; {result.cut_off.sum()} were cut off")
