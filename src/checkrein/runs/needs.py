"""What a run will need of memory, about, as was measured: told before it begins, refused where it is not there."""

from checkrein.base.memory import in_words, require_memory
from checkrein.evaluation.event_rates import REMEMBERED
from checkrein.runs.prepare import Prepared

BASE = 2.5e8  # bytes of the program itself
ROW, ROW_OF_COST = 1_100, 350  # bytes of a row, and for each cost
PAIR_OF_COST = 2_000  # bytes of a pair of state and action, for each cost: policies and values of all rounds and folds
BELIEF_OF_COST = 12_000  # the same of what is believed of rare events, where it is remembered
HELD_OUT_ROW, HELD_OUT_ROW_OF_COST, COPIES = 2_600, 500, 6  # where a part is held out; numbers for each row and action
ROW_OF_FEATURES, ACTION_OF_FEATURES = 8_000, 200  # bytes of a row, and for each action, where features are learned
HELD_OUT_PAIR = 12_000  # the same where a part is held out, and refitted often
WORTH_SAYING = 1e9  # bytes


def memory_needed(prepared: Prepared) -> float:
    """Return about how many bytes a run takes at its peak."""
    dataset, costs = prepared.dataset, 1 + prepared.problem.n_constraints
    rows, actions, states = len(dataset), dataset.n_actions, prepared.problem.dataset.n_states
    if states is not None and prepared.cross_fitted:
        pairs = float(states) * actions
        beliefs = pairs if pairs <= REMEMBERED else 0.0
        return BASE + rows * (ROW + ROW_OF_COST * costs) + costs * (PAIR_OF_COST * pairs + BELIEF_OF_COST * beliefs)
    needed = BASE + rows * (HELD_OUT_ROW + HELD_OUT_ROW_OF_COST * costs) + COPIES * 8.0 * rows * actions
    if states is None:
        return needed + float(rows) * (ROW_OF_FEATURES + ACTION_OF_FEATURES * actions)
    return needed + HELD_OUT_PAIR * costs * float(states) * actions


def require_room(prepared: Prepared, most: float | None = None) -> str:
    """Raise unless a run fits into memory; return a sentence about what it needs, empty where that is little.

    most: bytes that it may take, in place of what the machine has
    """
    dataset, needed = prepared.dataset, memory_needed(prepared)
    states, many = prepared.problem.dataset.n_states, f"{dataset.n_actions:,} actions"
    many = many if states is None else f"{states:,} states and {many}"
    advice = "group states or actions, take fewer rows, or pass --max-memory if the machine has more"
    require_memory(needed, f"learning from {len(dataset):,} rows with {many}", advice, most)
    return f"This needs about {in_words(needed)} of memory." if needed > WORTH_SAYING else ""
