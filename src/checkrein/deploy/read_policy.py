"""Read a policy that `export_json` wrote, with Python's standard library alone: copy this file, or translate it.

    policy = read("policy.json")
    member = start_episode(policy, random.Random(7))          # once per episode
    action = act(policy, member, {"severity": "high"}, rng)   # at each decision: a label of policy["actions"]

The file says the rest about itself under "about".
"""

import json
import math
import random
from typing import Any

Policy = dict[str, Any]  # the whole file
Member = dict[str, Any]  # an entry of its "members"
State = int | list[float]


def read(path: str) -> Policy:
    """Return the content of the file."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  # no more imports than needed
        policy: Policy = json.load(file)
    if policy.get("format") != "checkrein policy" or policy.get("version") != 1:
        raise ValueError(f"{path} is {policy.get('format')!r} {policy.get('version')!r}, not 'checkrein policy' 1")
    return policy


def start_episode(policy: Policy, rng: random.Random) -> Member:
    """Draw the member that decides from the first to the last step of one episode."""
    members = policy["members"]
    return members[draw([member["weight"] for member in members], rng.random())]


def act(policy: Policy, member: Member, row: dict[str, Any] | State, rng: random.Random) -> str:
    """Return the label of the action to take in a row of named columns, as they were in the log, or in a state."""
    return policy["actions"][draw(probabilities(policy, member, encode(policy, row)), rng.random())]


def draw(weights: list[float], uniform: float) -> int:
    """Return place i with a probability proportional to weights[i]."""
    left = uniform * sum(weights)
    for place, weight in enumerate(weights):
        if left < weight:
            return place
        left -= weight
    return max(range(len(weights)), key=weights.__getitem__)  # what rounding left over


def encode(policy: Policy, row: dict[str, Any] | State) -> State:
    """Return the number of a finite state, or the list of features; what is a state already stays as it is."""
    if not isinstance(row, dict):
        return row
    columns = policy["states"]["columns"]
    if policy["states"]["kind"] == "finite":
        codes = [_category(column, row[column["name"]]) for column in columns]
        if codes not in policy["states"]["combinations"]:
            raise ValueError(f"the state {row} never occurred in the log that was learned from")
        return policy["states"]["combinations"].index(codes)
    features: list[float] = []
    for column in columns:
        value = row[column["name"]]
        if column["categories"] is not None:
            code = _category(column, value)
            features += [float(place == code) for place in range(len(column["categories"]))]
            continue
        missing = value is None or value != value  # noqa: PLR0124  # only NaN differs from itself
        if column["fill"] is None:
            if missing:
                raise ValueError(f"column {column['name']!r} is missing: it must be a number")
            features.append(float(value))
        else:
            features += [column["fill"] if missing else float(value), float(missing)]
    return features


def _category(column: dict[str, Any], value: Any) -> int:
    """Return the place of a value among the categories, which are text; a number may be written in any way."""
    words = {None: "(missing)", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else str(value)
    for place, category in enumerate(column["categories"]):
        if category == text or (isinstance(value, int | float) and _reads_as(category, value)):
            return place
    raise ValueError(f"column {column['name']!r} is {value!r}, which is none of {column['categories']}")


def _reads_as(category: str, value: float) -> bool:
    try:
        return not isinstance(value, bool) and float(category) == value
    except ValueError:
        return False


def probabilities(policy: Policy, member: Member, state: State) -> list[float]:
    """Return how likely each action is when this member decides in this state."""
    if isinstance(state, int):
        if member["kind"] == "actions":
            return [float(action == member["actions"][state]) for action in range(len(policy["actions"]))]
        return member["probabilities"][state]
    if member["kind"] == "majority":
        votes = [[one["weight"] * p for p in probabilities(policy, one, state)] for one in member["of"]]
        shares = [sum(column) for column in zip(*votes, strict=True)]
        first = next(action for action, share in enumerate(shares) if share >= max(shares) - member["tie"])
        return [float(action == first) for action in range(len(shares))]
    monomials = policy["states"]["monomials"][str(member["degree"])]
    features = [math.prod(state[place] for place in monomial) for monomial in monomials]
    values = [sum(w * f for w, f in zip(weights, features, strict=True)) for weights in member["weights"]]
    allowed = _allowed(member["support"], state, len(values))
    least = min(values[action] for action in allowed)
    if member["temperature"] is None:  # greedy: the first of those that are as good as the best
        tie = policy["tie"] * max(abs(value) for value in values)
        chosen = next(action for action in allowed if values[action] <= least + tie)
        return [float(action == chosen) for action in range(len(values))]
    sizes = [math.exp((least - v) / member["temperature"]) if a in allowed else 0.0 for a, v in enumerate(values)]
    return [size / sum(sizes) for size in sizes]


def _allowed(support: dict[str, Any] | None, state: list[float], n_actions: int) -> list[int]:
    """Return the actions that a logistic model of past behavior finds likely enough, or else the likeliest."""
    if support is None:
        return list(range(n_actions))
    scaled = [(x - c) / s for x, c, s in zip(state, support["centre"], support["scale"], strict=True)]
    scores = [
        -math.inf if intercept is None else intercept + sum(w * x for w, x in zip(weights, scaled, strict=True))
        for weights, intercept in zip(support["coefficients"], support["intercepts"], strict=True)
    ]
    sizes = [math.exp(score - max(scores)) for score in scores]
    probabilities = [size / sum(sizes) for size in sizes]
    return [a for a, chance in enumerate(probabilities) if chance >= min(support["threshold"], max(probabilities))]
