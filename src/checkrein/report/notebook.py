"""notebook: a run as a notebook shows it, a headline and a table; the whole report is a page of its own."""

from html import escape

from checkrein.report.model import CostRow, Estimate, Summary
from checkrein.report.words import amount

COLORS = {"good": "#2e7d32", "caution": "#b26a00", "bad": "#c62828"}  # readable on light and on dark
CELL = "text-align:left;padding:.15em .8em .15em 0"


def notebook(summary: Summary, decision: str, page: str) -> str:
    """Return a fragment of HTML without scripts, in the notebook's own colors."""
    judged = summary.certificate
    bounds = {} if judged is None or not all(check.ok for check in judged.checks) else judged.bounds
    heads = ["", "goal", *summary.policies, *(["certified bound"] if bounds else [])]
    rows = [
        [row.name, row.goal, *(_value(row, one) for one in summary.policies), *_bound(row, bounds)]
        for row in summary.costs
    ]
    table = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    warnings = "".join(f"<li>{escape(one)}</li>" for one in summary.card.warnings)
    folded = f"<details><summary>Warnings: {len(summary.card.warnings)}</summary><ul>{warnings}</ul></details>"
    return (
        f'<div style="border-left:4px solid {COLORS[summary.level]};padding:.2em 1em;max-width:60em">'
        f"<p><strong>{escape(summary.title)}.</strong> {escape(summary.verdict)}</p>"
        f"<p>{escape(decision)}</p>"
        f'<div style="overflow-x:auto"><table style="border-collapse:collapse"><tr>{_cells(heads, "th")}</tr>'
        f"{table}</table></div>"
        f"{folded if warnings else ''}<p>Report: <code>{escape(page)}</code></p></div>"
    )


def _cells(texts: list[str], kind: str = "td") -> str:
    return "".join(f'<{kind} style="{CELL}">{escape(text)}</{kind}>' for text in texts)


def _value(row: CostRow, policy: str) -> str:
    found: Estimate = row.values[policy]
    return amount(found.learning if found.held_out is None else found.held_out, share=row.share)


def _bound(row: CostRow, bounds: dict[str, float]) -> list[str]:
    return [amount(bounds.get(row.name), share=row.share)] if bounds else []
