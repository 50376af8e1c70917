"""What several commands print: a data card, and what a run found."""

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from checkrein.cli.shared import console, say

if TYPE_CHECKING:
    from checkrein.logs.card import DataCard
    from checkrein.report.model import CandidateSequence, CostRow, Estimate, Summary

STYLE = {"good": "bold green", "caution": "bold yellow", "bad": "bold red"}
CROSS_FITTED = "estimates by episodes that had no part in the policy that they judge"
OPTIMISTIC = "estimates by the episodes that the policy was learned from: too good"


def show_card(card: "DataCard") -> None:
    """Print a data card."""
    from checkrein.report.words import unit_in_words

    facts = Table.grid(padding=(0, 2))
    left = "; ".join(f"{count:,}: {reason}" for reason, count in card.left_out.items()) or "none"
    horizon = "all of an episode" if card.effective_horizon is None else f"about {card.effective_horizon:.0f} steps"
    horizon = horizon if card.horizon is None else f"{card.horizon} decisions, then values stop"
    told = {} if card.inadmissible is None else {"not admissible": f"{card.inadmissible:,} logged decisions"}
    distinct = "" if card.distinct is None else f", {card.distinct:,} of them distinct"
    clusters = "" if card.clusters is None else f", in {card.clusters:,} clusters of up to {card.largest_cluster:,}"
    steps = f"{card.shortest} to {card.longest} steps (median {card.median:g})"
    steps = "one decision each" if card.longest == 1 else steps
    for name, value in {
        "log": card.source,
        "rows": f"{card.rows:,}, {card.rows_used:,} used{distinct}",
        "left out": left,
        "episodes": f"{card.episodes:,} of {steps}{clusters}",
        "cut off": f"{card.truncated:,} episodes end without a terminal row",
        "states": card.states,
        "learned with": card.functions,
        "horizon": f"{horizon} (discount {card.discount:g})",
        "propensities": "logged" if card.propensities else "not logged",
        **told,
    }.items():
        facts.add_row(f"[bold]{name}[/bold]", escape(value))
    console.print(facts)
    actions = Table("action", "decisions", "share", "states without it")
    for use in card.actions:
        lacking = "" if use.states_without is None else f"{use.states_without:,}"
        actions.add_row(escape(use.action), f"{use.count:,.0f}", f"{use.share:.1%}", lacking)
    console.print(actions)
    costs = Table("cost", "behavior", "+-", "one step", "unit")
    for b in card.behavior:
        error = "" if b.standard_error is None else f"{b.standard_error:.2g}"
        unit = unit_in_words(b.unit, card.discount)
        costs.add_row(escape(b.cost), f"{b.value:.4g}", error, f"{b.lowest:g} to {b.highest:g}", unit)
    console.print(costs)
    for warning in card.warnings:
        console.print(Text("warning: ", style="yellow") + Text(warning))


def show_summary(summary: "Summary") -> None:
    """Print the verdict and the table behind it."""
    console.print()
    console.print(Text(summary.verdict, style=STYLE[summary.level]), soft_wrap=True)
    say(summary.explanation)
    for doubt in summary.doubts:
        console.print(Text("doubt: ", style="yellow") + Text(f"{doubt}."), soft_wrap=True)
    table = Table("policy")
    for row in summary.costs:
        table.add_column(escape(row.name), justify="right")
    table.add_row("goal", *(escape(row.goal) for row in summary.costs), end_section=True, style="dim")
    for policy in summary.policies:
        table.add_row(policy, *(_cell(row.values[policy], share=row.share) for row in summary.costs))
    console.print(table)
    console.print(Text(_which(summary), style="dim"))
    for unit in dict.fromkeys(row.unit for row in summary.costs):
        names = ", ".join(row.name for row in summary.costs if row.unit == unit)
        console.print(Text(f"{names}: {unit}", style="dim"))

    if summary.sequence is not None and summary.sequence.candidates:
        _show_sequence(summary.sequence, summary.costs)


def _show_sequence(sequence: "CandidateSequence", costs: "list[CostRow]") -> None:
    """Print a row for each candidate that came to something else, in the order in which they were tried."""
    from checkrein.report.words import percent

    table = Table("", "of the way", "margin")
    for row in costs:
        table.add_column(escape(row.name), justify="right")
    judged = any(one.verdict is not None for one in sequence.candidates)
    for name in ("limits", costs[0].name) if judged else ():
        table.add_column(escape(name))
    shown: set[tuple[str, ...]] = set()
    for place, one in enumerate(sequence.candidates, start=1):
        cells = ["-" if row.name not in one.values else _value(one.values[row.name], share=row.share) for row in costs]
        found = [one.verdict or "", one.improvement or ""] if judged else []
        if (like := (*cells, *found)) in shown and not one.deployed:
            continue  # a narrower margin, or a looser rule, that changed nothing
        shown.add(like)
        style = "bold" if one.deployed else None
        table.add_row(str(place), percent(one.distance), f"{one.margin:g} s.e.", *like, style=style)
    console.print(table)
    same = len(sequence.candidates) - table.row_count
    said = "candidates in the order tried; " if judged else "candidates; "
    said += f"{same} more came to the same as one before; " if same else ""
    deployed = [place for place, one in enumerate(sequence.candidates, start=1) if one.deployed]
    ending = f"number {deployed[0]} is deployed" if deployed else "none is deployed"
    console.print(Text(said + ending, style="dim"))


def _which(summary: "Summary") -> str:
    """Say what the numbers of the table are."""
    judged = any(estimate.held_out is not None for row in summary.costs for estimate in row.values.values())
    if summary.sequence is not None:
        return CROSS_FITTED if summary.certificate is not None else OPTIMISTIC
    return "held-out estimates, in brackets those of the learning part" if judged else "estimates of the learning part"


def _cell(estimate: "Estimate", *, share: bool) -> str:
    values = [value for value in (estimate.held_out, estimate.learning) if value is not None]
    shown = [_value(value, share=share) for value in values]
    return f"{shown[0]} ({shown[1]})" if len(shown) > 1 else "".join(shown)


def _value(value: float, *, share: bool) -> str:
    return f"{100 * value:.3g}%" if share else f"{value:.4g}"
