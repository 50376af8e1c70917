"""Where the learned policy departs from behavior: shares of actions, and a heat map of finite states."""

from checkrein.report.figures.figure import (
    BEHAVIOR_COLOR,
    LEARNED_COLOR,
    MUTED,
    Figure,
    Spec,
    axis,
    finite,
    layout,
    names_axis,
    narrow_names,
    text,
)
from checkrein.report.model import Differences, StateDifference
from checkrein.report.words import MINUS, number, percent

MOST_STATES = 48  # rows of the heat map, which then fits a sheet of A4; those that matter most come first


def difference_figures(differences: Differences | None) -> list[Figure]:
    """Return the shares of actions, and the heat map where states are finite."""
    if differences is None:
        return []
    shares = _shares(differences)
    return [shares, _heat_map(differences)] if differences.states else [shares]


def _shares(differences: Differences) -> Figure:
    actions = differences.actions
    behavior = _bars("behavior", actions, differences.behavior_share, BEHAVIOR_COLOR)
    learned = _bars("learned", actions, differences.learned_share, LEARNED_COLOR)
    height = 90 + 40 * len(actions)
    return Figure(
        name="action-shares",
        title="How often each action is taken",
        note="In the logged states; learned above, behavior below.",
        data=[learned, behavior],
        layout=layout(
            height=height,
            xaxis=axis(tickformat=".0%", rangemode="tozero", nticks=6),
            yaxis=names_axis(actions),
            barmode="group",
            bargap=0.3,
            showlegend=True,
        ),
        narrow=narrow_names(actions),
        wide=True,
    )


def _bars(name: str, actions: list[str], shares: list[float], colour: str) -> Spec:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [finite(share) for share in shares],
        "y": list(range(len(actions))),
        "marker": {"color": colour},
        "customdata": [[text(action), percent(share)] for action, share in zip(actions, shares, strict=True)],
        "hovertemplate": f"%{{customdata[0]}}<br>{name}: %{{customdata[1]}}<extra></extra>",
    }


def _heat_map(differences: Differences) -> Figure:
    states = differences.states[:MOST_STATES]
    change = [[finite(b - a) for a, b in zip(s.behavior, s.learned, strict=True)] for s in states]
    widest = max((abs(value) for row in change for value in row if value is not None), default=1.0) or 1.0
    names = [state.state for state in states]
    across = axis(
        tickvals=list(range(len(differences.actions))),
        ticktext=[text(action, longest=16) for action in differences.actions],
        showgrid=False,
        side="top",
    )
    left = len(differences.states) - len(states)
    return Figure(
        name="state-differences",
        title="Learned minus behavior, state by state",
        note="Change in the probability of each action; the states that matter most come first"
        + (f", and {left:,} more are not drawn." if left else "."),
        data=[_cells(differences.actions, states, change, widest)],
        layout=layout(height=110 + 17 * len(states), xaxis=across, yaxis=names_axis(names)),
        narrow=narrow_names(names),
        wide=True,
    )


def _cells(actions: list[str], states: list[StateDifference], change: list[list[float | None]], widest: float) -> Spec:
    bar = {"orientation": "h", "y": 0, "yanchor": "top", "thickness": 8, "len": 1, "outlinewidth": 0, "ypad": 8}
    ends = [f"{MINUS}{percent(widest)}", "0", f"+{percent(widest)}"]
    ticks = {"tickvals": [-widest, 0, widest], "ticktext": ends, "tickfont": {"color": MUTED}}
    return {
        "type": "heatmap",
        "z": change,
        "zmin": -widest,
        "zmax": widest,
        "colorscale": [[0, "var(--less)"], [0.5, "var(--same)"], [1, "var(--more)"]],
        "colorbar": bar | ticks,
        "xgap": 1,
        "ygap": 1,
        "customdata": [_hovers(actions, state) for state in states],
        "hovertemplate": "%{customdata[0]}<br>action %{customdata[1]}<br>learned %{customdata[2]}, "
        "behavior %{customdata[3]}<br>visits %{customdata[4]}<extra></extra>",
    }


def _hovers(actions: list[str], state: StateDifference) -> list[list[str]]:
    return [
        [text(state.state), text(action), percent(learned), percent(behavior), number(state.visits)]
        for action, learned, behavior in zip(actions, state.learned, state.behavior, strict=True)
    ]
