"""model_card: what a policy is, what it was learned from, and what is known of it, as Markdown to keep beside it."""

from collections.abc import Iterator, Sequence

from checkrein.report.improvement import improvement_of
from checkrein.report.model import BEHAVIOR, LEARNED, CostRow, Summary
from checkrein.report.words import amount, percent, percentage, sentence

MOST = 8  # states and actions that are listed
ASSUMPTIONS = (
    "**Independent units**: one {unit} tells nothing of another.",
    "**The state is enough**: given the state and the action, nothing else of the past matters for what follows.",
    "**Nothing hidden** moved decisions and outcomes alike.{hidden}",
    "**The future is like the log**: the same population, the same practice around it, the same costs.",
    "**Overlap**: the policy chooses only what was logged often enough in such a state.",
)
NOT_FOR = (
    "- populations, places or times that the log does not hold, and costs other than those below;",
    "- decisions about a person without review by those who answer for them;",
    "- a member of the mixture by itself, or the likeliest action: what was judged draws one member per episode.",
)


def model_card(summary: Summary, *, deploys: bool) -> str:
    """Return the card of a run; deploys: whether its policy may act."""
    return "\n".join(_lines(summary, deploys=deploys)) + "\n"


def _lines(summary: Summary, *, deploys: bool) -> Iterator[str]:
    yield from (f"# {_plain(summary.title)}", "", _plain(summary.verdict), "")
    yield "**The policy may act.**" if deploys else "**No policy of this run may act: behavior should go on.**"
    yield from ("", "## Intended use", "")
    card = summary.card
    actions = [_plain(one.action) for one in card.actions]
    yield f"- To choose among {_few(actions)}, given {_plain(card.states)}."
    yield f"- In the population that the log describes: {_plain(card.source)}."
    yield from ("", "Not for:", "", *NOT_FOR)
    yield from ("", "## Data", "")
    clusters = "" if card.clusters is None else f" in {card.clusters:,} clusters"
    steps = f"{card.shortest} to {card.longest} steps" if card.longest > 1 else "one decision each"
    yield f"- {card.rows:,} decisions in {card.episodes:,} episodes{clusters} of {steps}."
    yield f"- Propensities: {'logged' if card.propensities else 'not logged'}. {sentence(_plain(card.functions))}."
    yield f"- Fingerprint: `{summary.repeat.dataset}`."
    if card.horizon is not None:
        yield f"- An episode ends after {card.horizon} decisions: the step number is part of the state."
    if card.inadmissible is not None:
        yield f"- {card.inadmissible:,} logged decisions were not admissible; the policy never chooses so."
    yield from (f"- Left out: {count:,} rows, {_plain(reason)}." for reason, count in card.left_out.items())
    yield from (f"- Warning: {_plain(one)}." for one in card.warnings)
    yield from ("", "## Objective and limits", "", *_costs(summary))
    yield from ("", "## Certificate", "", *_certificate(summary))
    yield from ("", "## Assumptions", "", *_assumptions(summary))
    if summary.differences is not None:
        yield from ("", "## What changes", "", *_changes(summary))
    yield from ("", "## Repeat", "", *_repeat(summary))


def _costs(summary: Summary) -> Iterator[str]:
    """Yield a table; bounds only where every check was passed."""
    judged = summary.certificate
    bounds = {} if judged is None or not all(check.ok for check in judged.checks) else judged.bounds
    yield "| | goal | policy | behavior | certified bound | unit |"
    yield "|---|---|---|---|---|---|"
    for row in summary.costs:
        numbers = [_value(row, LEARNED), _value(row, BEHAVIOR), bounds.get(row.name)]
        cells = [row.name, row.goal, *(amount(value, share=row.share) for value in numbers), row.unit]
        yield f"| {' | '.join(_plain(one).replace('|', '/') for one in cells)} |"


def _value(row: CostRow, policy: str) -> float | None:
    found = row.values.get(policy)
    if found is None:
        return None
    return found.learning if found.held_out is None else found.held_out


def _certificate(summary: Summary) -> Iterator[str]:
    judged = summary.certificate
    if judged is None:
        yield "None: nothing was judged. All numbers are estimates by the episodes that chose the policy, and too good."
        return
    yield f"**{sentence(judged.verdict)}**: {_plain(judged.reason)}."
    improvement = improvement_of(judged, summary.costs[0].name, summary.costs[0].direction)
    if improvement is not None:
        yield from ("", f"Objective **{improvement.verdict}**: {_plain(improvement.words)}")
    yield ""
    yield f"- Method `{judged.method}`, {judged.guarantee}, at {percentage(judged.confidence)} confidence."
    yield f"- Judged by {judged.episodes:,} episodes; look {judged.look} at them, which may err by {judged.alpha:.2g}."
    yield from (f"- Failed: {_plain(check.words)}." for check in judged.checks if not check.ok)
    yield from (f"- Noted: {_plain(check.words)}." for check in judged.checks if check.ok and check.notable)


def _assumptions(summary: Summary) -> Iterator[str]:
    """Yield what the certificate takes for granted, with what is known of it."""
    unit = "episode" if summary.card.clusters is None else "cluster"
    hidden = "" if summary.sensitivity is None else f" {_plain(summary.sensitivity.explanation)}"
    yield from (f"- {one.format(unit=unit, hidden=hidden)}" for one in ASSUMPTIONS)


def _changes(summary: Summary) -> Iterator[str]:
    found = summary.differences
    if found is None:
        return
    yield f"The policy agrees with behavior in {percent(found.agreement)} of the decisions."
    if found.states:
        yield from ("", "| state | behavior mostly | policy mostly |", "|---|---|---|")
    for state in found.states[:MOST]:
        usual = [_usual(chances, found.actions) for chances in (state.behavior, state.learned)]
        yield f"| {' | '.join(_plain(one).replace('|', '/') for one in (state.state, *usual))} |"


def _repeat(summary: Summary) -> Iterator[str]:
    repeat = summary.repeat
    yield f"checkrein {repeat.version}, seed {repeat.seed}."
    yield from ("", *(f"    {line}" for line in [repeat.command, "", *repeat.problem_file.splitlines()]))


def _usual(chances: Sequence[float], actions: Sequence[str]) -> str:
    share, action = max(zip(chances, actions, strict=True), key=lambda pair: pair[0])
    return f"{action} ({percent(share)})"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def _plain(text: str) -> str:
    """Return text on one line in which nothing is Markdown or HTML of its own."""
    flat = " ".join(text.split())
    return "".join(f"\\{one}" if one in "\\`*_[]<>#" else one for one in flat)
