"""roles_of: what each column of a log seems to be, by its name and by its values, and how sure that is."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from checkrein.logs.column_facts import Facts
from checkrein.logs.role_words import (
    ACTION,
    AFTER,
    CLUSTER,
    CODES,
    COST,
    EPISODE,
    FOLLOW_UP,
    INDEX,
    LESS,
    LESS_FIRST,
    MORE,
    MORE_FIRST,
    NAMED_EPISODES,
    PROPENSITY,
    STEP,
    SURE_ACTION,
    TERMINAL,
    TRAJECTORY,
    UNCLEAR,
)

FEW = 20  # different decisions that a policy can choose among
RISES = "its rows stand together, and in them something rises"
MOST_ALONE = 0.9  # of rows: where more have an episode of their own, hardly any belong together


@dataclass
class Roles:
    """What was guessed; a role that nothing seems to have is missing."""

    found: dict[str, str] = field(default_factory=dict)  # role -> column
    doubts: dict[str, str] = field(default_factory=dict)  # role -> why it may be another
    maximise: bool = False
    costs: list[str] = field(default_factory=list)  # further outcomes, to put under a limit
    state: list[str] = field(default_factory=list)
    steady: list[str] = field(default_factory=list)  # of the state, what is the same throughout an episode
    longest: int = 1  # rows of an episode
    shortest: int = 1
    left_out: dict[str, str] = field(default_factory=dict)  # column -> why


def roles_of(table: pl.DataFrame) -> Roles:
    """Guess the role of every column; no outcome and no propensity is ever one of the state."""
    roles = Roles()
    left = {name: Facts(table[name]) for name in table.columns}
    _propensity(roles, left)
    _leave_out_what_says_nothing(roles, left)
    episode = _episode(roles, left)
    step = _step(roles, left, episode)
    _outcomes(roles, left, episode)
    _action(roles, left, episode)
    _terminal(roles, left, episode, step)
    _cluster(roles, left, episode)
    _state(roles, left, episode)
    if episode is not None:
        rows = np.bincount(episode.codes[episode.codes >= 0])
        roles.shortest, roles.longest = int(rows.min()), int(rows.max())
    return roles


Left = dict[str, Facts]


def _alone(one: Facts, words: Iterable[str]) -> bool:
    """Whether a name is one of the words and nothing else, but for what says that it is a number."""
    return any(one.plain in {word, f"{word}s", *(f"{word}_{code}" for code in CODES), f"{word}id"} for word in words)


def _named(
    facts: Iterable[Facts],
    words: Sequence[str],
    fits: Callable[[Facts], bool] = lambda _: True,
    *,
    within: Sequence[str] | None = None,
) -> Facts | None:
    """Return the first that is called so, in the order of the words; a name that is the word alone comes first.

    within: words that also count as a part of a name; None: all of them
    """
    known = [one for one in facts if fits(one)]
    for word in words:
        for one in known:
            if _alone(one, [word]):
                return one
    for word in words if within is None else within:
        for one in known:
            if word in one.words and len(word) > 1:
                return one
    return None


def _take(roles: Roles, left: Left, role: str, one: Facts | None, doubt: str = "") -> Facts | None:
    if one is not None:
        roles.found[role] = left.pop(one.name).name
        if doubt:
            roles.doubts[role] = doubt
    return one


def _leave_out_what_says_nothing(roles: Roles, left: Left) -> None:
    for name, one in list(left.items()):
        if one.always_yes and _alone(one, TERMINAL):
            roles.found["terminal"] = name
        elif one.constant:
            roles.left_out[name] = "is the same in every row that was read"
        elif one.counts_rows and one.plain in INDEX:
            roles.left_out[name] = "counts the rows"
        else:
            continue
        del left[name]


def _propensity(roles: Roles, left: Left) -> None:
    _take(roles, left, "propensity", _named(left.values(), PROPENSITY, lambda one: one.probability))
    for name, one in list(left.items()):
        if "propensity" in one.words or "pscore" in one.words:
            roles.left_out[name] = "is called a propensity, but is not in (0, 1] in every row, or there is another"
            del left[name]


def _episode(roles: Roles, left: Left) -> Facts | None:
    """Find what rows belong together by: a name that comes up again, or blocks of rows in which something rises."""

    def together(one: Facts) -> bool:
        fractions = one.numeric and not one.whole
        return not fractions and not one.date and 1 < one.distinct < len(one.values) and not one.yes_or_no

    def rises(one: Facts) -> bool:
        return any(other.rises_within(one) for other in left.values() if other is not one)

    found = _named(left.values(), TRAJECTORY, lambda one: one.distinct > 1 and not one.date, within=())
    found = found or _named(left.values(), NAMED_EPISODES, lambda one: together(one) and _shared(one), within=())
    if found is not None:
        return _take(roles, left, "episode", found)
    blocks = [one for one in left.values() if together(one) and one.blocks and rises(one)]
    coded = [one for one in left.values() if _alone(one, EPISODE) and together(one) and _shared(one)]
    ordered = next((one for one in coded if rises(one)), None)
    found = ordered or next(iter(coded), None) or max(blocks, key=lambda one: one.distinct, default=None)
    doubt = "" if found is ordered else "by its name, but in nothing do its rows rise" if found in coded else RISES
    _take(roles, left, "episode", found, doubt)
    for name, one in list(left.items()):
        coded_name = any(word in (*EPISODE, *CODES) for word in one.words) or one.plain.endswith("num")
        if one.named_by_row and (coded_name or not one.numeric):
            roles.left_out[name] = "has another value in nearly every row: it names the row"
            del left[name]
    return found


def _shared(one: Facts) -> bool:
    return one.distinct <= MOST_ALONE * len(one.values)


def _step(roles: Roles, left: Left, episode: Facts | None) -> Facts | None:
    steps = None
    if episode is not None:
        rising = [one for one in left.values() if one.rises_within(episode)]
        named = _named(rising, STEP)
        plain = next((one for one in rising if one.date or one.whole), None)
        doubt = "" if named is not None else "it rises from row to row of an episode: does it order them?"
        steps = _take(roles, left, "step", named or plain, doubt)
    for name, one in list(left.items()):
        if steps is not None and episode is not None and one.is_next_of(steps, episode):
            roles.left_out[name] = f"is the next row's {steps.name}: it is known only afterwards"
            del left[name]
        elif one.date:
            when = "nothing orders the rows where each is an episode" if episode is None else "the rows are in order"
            roles.left_out[name] = (
                f"is a date: {when}. Take parts of it (a weekday, an hour) into the state if they matter"
            )
            del left[name]
    return steps


def _outcome_like(one: Facts) -> bool:
    words = (*LESS, *MORE, *UNCLEAR)
    return (one.numeric or one.yes_or_no) and any(word in words for word in one.words)


def _outcomes(roles: Roles, left: Left, episode: Facts | None) -> None:
    def fits(one: Facts) -> bool:
        return one.numeric or one.values.dtype == pl.Boolean

    sure = _named(left.values(), (*LESS_FIRST, *MORE_FIRST, *LESS, *MORE), fits)
    unclear = _named(left.values(), UNCLEAR, fits)
    found = sure or unclear
    if found is not None:
        roles.maximise = any(word in MORE for word in found.words)
        doubt = "" if sure is not None else "its name does not say whether more of it is better"
        _take(roles, left, "objective", found, doubt)
    for name, one in list(left.items()):
        same = found is not None and fits(one) and one.in_the_order_of(found)
        if same or _outcome_like(one):
            roles.left_out[name] = "looks like an outcome: it may not be known when the decision is made"
        elif episode is None and one.numeric and any(word in FOLLOW_UP for word in one.words):
            roles.left_out[name] = "looks like the time until something happened, which is an outcome"
        elif any(word in AFTER for word in one.words):
            roles.left_out[name] = "looks like something that comes after the decision"
        elif fits(one) and any(word in COST for word in one.words):
            roles.costs.append(name)
        else:
            continue
        del left[name]


def _action(roles: Roles, left: Left, episode: Facts | None) -> None:
    decided = [one for one in left.values() if one.distinct > 1 and (one.whole or not one.numeric)]
    named = _named(decided, ACTION, within=SURE_ACTION)
    if named is None:
        found = _varied(left, episode)
        doubt = "no name says what was decided; this varies like a decision" if found is not None else ""
        _take(roles, left, "action", found, doubt)
    else:
        many = named.distinct > FEW and named.numeric and not any(word in CODES for word in named.words)
        doubt = (
            f"it has {named.distinct:,} different values: are these few decisions, or is it an amount?" if many else ""
        )
        found = _take(roles, left, "action", named, doubt)
    if found is None:
        return
    for name, one in list(left.items()):
        follows = one.distinct <= found.distinct and one.steady_within(found)
        if follows and one.values.dtype.is_float():
            roles.costs.append(name)  # an amount that is known of every decision
            del left[name]
        elif follows:
            roles.left_out[name] = f"follows from {found.name}: it says what was decided"
            del left[name]
        elif _alone(one, ACTION) and one.distinct <= FEW:
            roles.left_out[name] = "is called like a decision: is it another, or known before?"
            del left[name]


def _varied(left: Left, episode: Facts | None) -> Facts | None:
    """Return what may have been decided: few values that go back and forth within episodes, else few texts."""
    if episode is not None:
        going = [one for one in left.values() if 1 < one.distinct <= FEW and (one.whole or not one.numeric)]
        back = [(_returns(one, episode), one) for one in going]
        best = max(back, key=lambda pair: pair[0], default=(0, None))
        return best[1] if best[0] > 0 else None
    return next((one for one in left.values() if one.values.dtype == pl.String and 1 < one.distinct <= FEW), None)


def _returns(one: Facts, episode: Facts) -> int:
    """Count how often a value comes back in an episode after another; nothing is said of numbers but yes and no."""
    if one.numeric and not one.yes_or_no:
        return 0
    by_episode: dict[int, list[int]] = {}
    for group, code in zip(episode.codes.tolist(), one.codes.tolist(), strict=True):
        seen = by_episode.setdefault(group, [])
        if not seen or seen[-1] != code:
            seen.append(code)
    return sum(len(seen) - len(set(seen)) for seen in by_episode.values())


def _terminal(roles: Roles, left: Left, episode: Facts | None, step: Facts | None) -> None:
    if "terminal" in roles.found:
        return
    named = _named(left.values(), TERMINAL, lambda one: one.yes_or_no)
    if named is not None:
        _take(roles, left, "terminal", named)
    elif episode is not None:
        marks = (one for one in left.values() if one.marks_last(episode))
        ends = next((one for one in marks if step is None or not one.steady_within(step)), None)  # no calendar's last
        _take(roles, left, "terminal", ends, "it is yes in last rows of episodes, and nowhere else")


def _cluster(roles: Roles, left: Left, episode: Facts | None) -> None:
    if episode is None:
        return

    def holds_episodes(one: Facts) -> bool:
        return 1 < one.distinct < episode.distinct and one.steady_within(episode) and (one.whole or not one.numeric)

    _take(roles, left, "cluster", _named(left.values(), CLUSTER, holds_episodes))


def _state(roles: Roles, left: Left, episode: Facts | None) -> None:
    roles.state = list(left)
    if episode is not None:
        roles.steady = [name for name, one in left.items() if one.steady_within(episode)]
