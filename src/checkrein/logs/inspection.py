"""inspect: the data card of a log."""

from collections.abc import Mapping, Sequence

import numpy as np

from checkrein.base.arrays import FloatArray, IntArray
from checkrein.base.brief import some
from checkrein.data.dataset import Dataset
from checkrein.logs.card import ActionUse, Behavior, DataCard
from checkrein.policies import Support
from checkrein.problem.goals import Unit

LONG = 3.0  # an effective horizon this many times the longest episode sees further than the log
SCATTERED = 0.05  # the share of rows in states seen once from which on a table is the wrong class
CUT_OFF = 0.05  # the share of episodes without an end from which on it is worth saying
THIN = 20  # fewer episodes than this say little
FEW_CLUSTERS = 30  # of which no part could be judged by


def data_card(
    dataset: Dataset,
    *,
    source: str,
    discount: float,
    units: Mapping[str, tuple[Unit, float]],
    warnings: Sequence[str] = (),
    copied: int = 0,
    beyond: int = 0,
    inadmissible: int | None = None,
) -> DataCard:
    """Describe a log.

    units: for each cost to show, its unit, and the factor from discounted sums to it
    warnings: what was odd when the log was read
    copied: rows of copies of episodes, which the log holds no more
    beyond: rows after the horizon, which it does not hold either
    inadmissible: rows in which behavior took an action that may not be chosen; None: all may
    """
    lengths = np.unique(_episodes(dataset), return_counts=True)[1]
    cut = ~dataset.terminals & ~dataset.next_observed
    transitions = dataset.compressed() if dataset.n_states is not None else None
    unit = _units(dataset)
    whole = discount == 1 or bool(dataset.terminals.all()) or dataset.horizon is not None
    left = {
        "the last row of an episode without a terminal mark: its next state is not in the log": int(cut.sum()),
        "a row of a copy of another episode: it is counted once": copied,
        "a row beyond the horizon": beyond,
    }
    card = DataCard(
        source=source,
        rows=len(dataset) + copied + beyond,
        rows_used=int((~cut).sum()),
        left_out={reason: count for reason, count in left.items() if count},
        distinct=None if transitions is None else len(transitions),
        episodes=lengths.size,
        clusters=None if dataset.clusters is None else int(unit.max()) + 1,
        largest_cluster=None if dataset.clusters is None else int(np.bincount(unit).max()),
        shortest=int(lengths.min()),
        median=float(np.median(lengths)),
        longest=int(lengths.max()),
        truncated=int(dataset.truncated.sum()),
        states=_states_in_words(dataset),
        states_visited_once=None if dataset.n_states is None else int((np.bincount(dataset.states) == 1).sum()),
        actions=_actions(dataset),
        behavior=[_behavior(dataset, name, discount, *units[name]) for name in units],
        discount=discount,
        effective_horizon=None if whole else 1 / (1 - discount),
        horizon=dataset.horizon,
        inadmissible=inadmissible,
        propensities=dataset.propensities is not None,
        warnings=list(warnings),
    )
    return card.model_copy(update={"warnings": [*warnings, *_advice(card)]})


def _episodes(dataset: Dataset) -> np.ndarray:
    return np.zeros(len(dataset), dtype=np.int64) if dataset.episodes is None else dataset.episodes


def _units(dataset: Dataset) -> IntArray:
    """(e,) the place of the cluster of each episode, in the order of their numbers; else its own."""
    if dataset.clusters is None:
        return np.arange(np.unique(_episodes(dataset)).size)
    return np.unique(dataset.clusters[dataset.first_rows()], return_inverse=True)[1]


def _states_in_words(dataset: Dataset) -> str:
    names = "" if dataset.encoding is None else " of " + some([column.name for column in dataset.encoding.columns])
    if dataset.n_states is not None:
        return f"{np.unique(dataset.states).size:,} finite states{names}"
    return f"{int(np.prod(dataset.states.shape[1:]))} features{names}"


def _actions(dataset: Dataset) -> list[ActionUse]:
    counts = np.bincount(dataset.actions, dataset.weights, dataset.n_actions)
    lacking: list[int | None] = [None] * dataset.n_actions
    if dataset.n_states is not None:
        allowed = Support().fit(dataset).allowed(np.unique(dataset.states))
        lacking = [int(count) for count in (~allowed).sum(axis=0)]
    return [
        ActionUse(action=label, count=float(count), share=float(count / counts.sum()), states_without=without)
        for label, count, without in zip(dataset.action_labels, counts, lacking, strict=True)
    ]


def _behavior(dataset: Dataset, name: str, discount: float, unit: Unit, factor: float) -> Behavior:
    sums = factor * dataset.returns(discount)[:, dataset.cost_names.index(name)]
    error = _standard_error(sums, _units(dataset))
    step = factor * dataset.cost(name)
    lowest, highest = sorted((float(step.min()), float(step.max())))
    value = float(sums.mean())
    return Behavior(cost=name, unit=unit, value=value, standard_error=error, lowest=lowest, highest=highest)


def _standard_error(sums: FloatArray, unit: IntArray) -> float | None:
    """Return that of the mean of (e,) sums, of independent units (e,); None of one."""
    sizes = np.bincount(unit)
    if sizes.size < 2:
        return None
    if sizes.size == sums.size:
        return float(sums.std(ddof=1) / np.sqrt(sums.size))
    pulls, shares = np.bincount(unit, sums - sums.mean()) / sums.size, sizes / sums.size
    return float(np.sqrt(pulls @ pulls / (1 - shares @ shares)))


def _advice(card: DataCard) -> list[str]:
    said = []
    if card.effective_horizon is not None and card.effective_horizon > LONG * card.longest:
        said.append(
            f"the discount {card.discount} looks {card.effective_horizon:.0f} steps ahead, but no episode is longer "
            f"than {card.longest}: what lies beyond comes from stitching episodes together"
        )
    if card.episodes < THIN:
        said.append(f"only {card.episodes} episodes: every average is uncertain")
    if card.clusters is not None and card.clusters < FEW_CLUSTERS:
        said.append(
            f"only {card.clusters} clusters, whose episodes are not independent: no fewer than {FEW_CLUSTERS} to judge "
            "by can show that a limit is kept"
        )
    if card.truncated == card.episodes:
        said.append("no episode ends in a terminal row: is the terminal column right?")
    if card.states_visited_once is not None and card.states_visited_once > SCATTERED * card.rows:
        said.append(
            f"{card.states_visited_once:,} states occur only once in {card.rows:,} rows: a table learns nothing from "
            'them. Bin the numbers, leave a column out, or use functions = "features"'
        )
    if CUT_OFF * card.episodes < card.truncated < card.episodes:
        said.append(
            f"{card.truncated:,} of {card.episodes:,} episodes are cut off: the sums above stop there, "
            "while policies are valued to the end"
        )
    said += [f"{b.cost} is the same in every row: {b.lowest:g}" for b in card.behavior if b.lowest == b.highest]
    return said
