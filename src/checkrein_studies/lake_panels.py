"""What the two studies of FrozenLake show alike: estimators on growing logs, values by round, the map with arrows."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from checkrein import AtMost, Dataset, Problem, Round, TabularMDP, TabularPolicy, evaluate, rounds
from checkrein.base.arrays import FloatArray
from checkrein.protocols import BestResponse, Evaluator, OnlineLearner, Policy
from checkrein.reproduction import COLOURS, DASHES, Picture, Table, label_ends, panels
from checkrein_studies import frozen_lake

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GOAL, HOLE = "goal", "hole"
ARROWS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # left, down, right, up; y points down
SHOWN = ("fqe", "dr", "wdr", "pdis", "naive")  # in the paper's panel
ESTIMATORS = (*SHOWN, "model", "magic", "lstdq", "is", "wis", "cwpdis")  # by how they look


def lake_problem(dataset: Dataset, limit: float, discount: float) -> Problem:
    """Return the goal to reach and the holes to keep out of."""
    return Problem(dataset, objective=GOAL, constraints=[AtMost(HOLE, limit)], discount=discount)


def play(
    problem: Problem,
    best_response: BestResponse,
    evaluator: Evaluator,
    learner: OnlineLearner[Any],
    count: int,
    **options: Any,
) -> list[Round]:
    """Play a number of rounds, whatever the gap."""
    game = rounds(problem, best_response=best_response, evaluator=evaluator, learner=learner, **options)
    return list(islice(game, count))


def papers_gaps(
    problem: Problem, played: Sequence[Round], best_response: BestResponse, evaluator: Evaluator
) -> FloatArray:
    """(t,) the paper's gap: L_min is one more best response, to the averaged multipliers (Algorithm 1, line 5)."""
    total, gaps = np.zeros(problem.n_constraints), []
    rng = np.random.default_rng(0)
    for one in played:
        total = total + one.multipliers
        average = total / one.index
        answer = evaluator(problem, best_response(problem, average, rng=rng), rng=rng)
        gaps.append(one.upper - (answer.objective + float(average @ (answer.constraints - problem.limits))))
    return np.array(gaps)


def true_values(mdp: TabularMDP, played: Sequence[Round]) -> dict[str, FloatArray]:
    """Return the exact values of each round's mixture, by cost."""
    each_policy = [mdp.values(one.policy) for one in played]
    return {
        cost: np.array([one.member_weights @ [v[cost] for v in each_policy[: one.index]] for one in played])
        for cost in (GOAL, HOLE)
    }


def estimated_values(played: Sequence[Round]) -> dict[str, FloatArray]:
    """Return what the learner's own evaluator says of each round's mixture, by cost."""
    return {
        GOAL: np.array([one.mixture.objective for one in played]),
        HOLE: np.array([one.mixture.constraints[0] for one in played]),
    }


def growing_logs(
    mdp: TabularMDP,
    behavior: Policy,
    policy: Policy,
    *,
    episodes: int,
    max_steps: int,
    shares: Sequence[float],
    seeds: Iterable[int],
) -> list[Callable[[], dict[str, list[float]]]]:
    """Return calls that say, each of a log of its own, what every estimator makes of the hole on shares of it."""
    return [partial(_one_log, mdp, behavior, policy, episodes, max_steps, tuple(shares), seed) for seed in seeds]


def gathered(found: Sequence[Mapping[str, list[float]]]) -> dict[str, FloatArray]:
    """Return the estimates of all logs by estimator, (trials, shares)."""
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def _one_log(
    mdp: TabularMDP,
    behavior: Policy,
    policy: Policy,
    episodes: int,
    max_steps: int,
    shares: tuple[float, ...],
    seed: int,
) -> dict[str, list[float]]:
    log = frozen_lake.log(mdp, behavior, episodes=episodes, seed=seed, max_steps=max_steps)
    found: dict[str, list[float]] = {}
    for share in shares:
        part = log.part(log.episodes < round(share * episodes)) if log.episodes is not None else log
        for name, estimate in evaluate(policy, part, costs=[HOLE], discount=mdp.discount, seed=seed).by_name.items():
            found.setdefault(name, []).append(float(estimate.values[0]))
    return found


@dataclass(frozen=True, eq=False)
class Estimated:
    """A fixed policy whose hole was estimated on growing logs."""

    mdp: TabularMDP
    fixed: TabularPolicy
    estimates: dict[str, FloatArray]  # (trials, shares) of its hole

    @cached_property
    def truth(self) -> float:
        """The fixed policy's hole."""
        return self.mdp.values(self.fixed)[HOLE]

    @cached_property
    def errors(self) -> dict[str, FloatArray]:
        """Of every estimator by share."""
        return errors_of(self.estimates, self.truth)


def errors_of(estimates: Mapping[str, FloatArray], truth: float) -> dict[str, FloatArray]:
    """Return each estimator's root mean squared error by share of the log; what is not a number counts as no answer."""
    with np.errstate(invalid="ignore"):
        squared = {name: (found - truth) ** 2 for name, found in estimates.items()}
    return {
        name: np.sqrt([c[~np.isnan(c)].mean() if (~np.isnan(c)).any() else np.nan for c in found.T])
        for name, found in squared.items()
    }


def draw_estimates(
    axes: "Axes",
    shares: Sequence[float],
    estimates: Mapping[str, FloatArray],
    truth: float,
    names: Sequence[str] = SHOWN,
) -> None:
    """Draw mean and standard deviation over trials of some estimators."""
    x, ends = 100 * np.array(shares), []
    for name in names:
        found, (colour, dash) = estimates[name], _look(name)
        mean, spread = found.mean(axis=0), found.std(axis=0)
        axes.plot(x, mean, dash, color=colour)
        axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        ends.append((_shown(name), float(mean[-1]), colour))
    axes.axhline(truth, color="black", linewidth=0.6, linestyle=":")
    axes.set_xlim(x[0], x[-1])
    axes.set_xlabel("share of the log, %")
    axes.set_title("hole of a fixed policy, estimated")
    label_ends(axes, [*ends, ("truth", truth, "black")])


def estimator_picture(
    shares: Sequence[float], estimates: Mapping[str, FloatArray], truth: float, trials: int
) -> Picture:
    """Draw the error of every estimator."""
    figure, (means, axes) = panels((3.1, 3.1), height=2.7)
    draw_estimates(means, shares, estimates, truth, [name for name in estimates if name in (*SHOWN, "model", "magic")])
    x, ends = 100 * np.array(shares), []
    for name, found in errors_of(estimates, truth).items():
        floored, (colour, dash) = np.maximum(found, 1e-6), _look(name)
        axes.plot(x, floored, dash, color=colour, marker="o", markersize=2)
        ends.append((_shown(name), float(floored[-1]), colour))
    axes.set_yscale("log")
    axes.set_xlim(x[0], x[-1])
    axes.set_xlabel("share of the log, %")
    axes.set_title("root mean squared error")
    label_ends(axes, [end for end in ends if np.isfinite(end[1])], apart=0.075)
    caption = (
        f"Every estimator of checkrein.evaluate on a fixed policy, {trials} logs. Left: mean and one standard "
        "deviation. Right: root mean squared error (below 1e-6: exact to rounding); without a number, there is no line."
    )
    return Picture("estimators", caption, figure)


def estimator_table(shares: Sequence[float], estimates: Mapping[str, FloatArray], truth: float) -> Table:
    """Return the errors at the smallest and the largest log, and how often there was no answer."""
    errors = errors_of(estimates, truth)
    rows: list[list[str | float]] = [
        [name, *(float(errors[name][i]) for i in (0, -1)), f"{int(np.isnan(estimates[name][:, -1]).sum())}"]
        for name in estimates
    ]
    names = ["estimator", *(f"error at {100 * shares[i]:g} %" for i in (0, -1)), "logs without an answer"]
    return Table("All estimators of a fixed policy", names, rows, note=f"root mean squared; the truth is {truth:.5g}")


def _look(name: str) -> tuple[str, str]:
    """Return the colour and dash of an estimator, the same in every picture."""
    place = ESTIMATORS.index(name)
    return COLOURS[place % len(COLOURS)], DASHES[(place + place // len(COLOURS)) % len(DASHES)]


def _shown(name: str) -> str:
    return name if name in ("naive", "model") else name.upper()


def draw_map(axes: "Axes", policy: Policy, title: str, marked: Collection[int]) -> None:
    """Draw the map with an arrow in every state that can be left, those of some states marked."""
    letters = frozen_lake.tiles()
    side = round(np.sqrt(letters.size))
    table = policy.probabilities(np.arange(letters.size))
    shades = {"H": "#5b7fa6", "G": "#f0c75e", "S": "#dff0d8", "F": "#f7f9fb"}
    for state, letter in enumerate(letters):
        y, x = divmod(state, side)
        axes.add_patch(_square(x, y, shades[str(letter)]))
        if letter in "HG":
            axes.text(x, y, letter, ha="center", va="center", fontsize=7, color="white" if letter == "H" else "black")
            continue
        colour = COLOURS[1] if state in marked else "0.45"
        for action in np.flatnonzero(table[state] > 1e-9):
            dx, dy = ARROWS[action]
            share = float(table[state, action])
            axes.annotate(
                "",
                xy=(x + 0.34 * dx, y + 0.34 * dy),
                xytext=(x - 0.3 * dx, y - 0.3 * dy),
                arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 0.4 + 0.7 * share, "mutation_scale": 6},
            )
    axes.set_xlim(-0.55, side - 0.45)
    axes.set_ylim(side - 0.45, -0.55)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title(title)


def _square(x: float, y: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    return Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", linewidth=0.8)


def walk(policy: Policy) -> list[int]:
    """Return the states that a walk of the policy passes where nothing slips."""
    lake, letters = frozen_lake.lake(slippery=False), frozen_lake.tiles()
    table = policy.probabilities(np.arange(letters.size))
    state, walked = 0, list[int]()
    while state not in walked and letters[state] in "SF":
        walked.append(state)
        state = int(lake.transitions[state, table[state].argmax()].argmax())
    return walked


def best_of(mdp: TabularMDP, played: list[Round], limit: float) -> dict[str, FloatArray]:
    """Return true and estimated values of the best single policy so far that keeps the limit by estimate, by round."""
    keys = (GOAL, HOLE, "goal, estimated", "hole, estimated")
    found: dict[str, list[float]] = {key: [] for key in keys}
    for last in range(1, len(played) + 1):
        kept = [one for one in played[:last] if one.values.constraints[0] <= limit + 1e-9] or list(played[:last])
        best = min(kept, key=lambda one: one.values.objective)
        true = mdp.values(best.policy)
        for key, value in zip(
            keys, (true[GOAL], true[HOLE], best.values.objective, best.values.constraints[0]), strict=True
        ):
            found[key].append(float(value))
    return {key: np.array(values) for key, values in found.items()}
