"""JSON: a policy that any language can evaluate; `read_policy.py` beside this file shows how in a hundred lines."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.errors import StorageError
from checkrein.base.storage import write_atomically
from checkrein.data.encoding import Encoding, StateColumn
from checkrein.deploy import read_policy
from checkrein.deploy.agreement import random_rows, require_agreement
from checkrein.deploy.portable import LinearMember, MajorityMember, Member, Portable, TableMember, monomials, portable
from checkrein.policies import BehaviorMask
from checkrein.policies.greedy import TIE
from checkrein.policies.majority import TIE as VOTES
from checkrein.protocols import Policy

FORMAT, VERSION = "checkrein policy", 1
CHECKED = 256  # random states that the file is tried on before it is written
ABOUT = (
    "A policy: which action to take in which state.",
    "At the start of an episode draw one of 'members' with the probabilities 'weight', and follow it to the end.",
    "'states': how a row of the log becomes a state. Categories are text: a number is looked up by its value, however "
    "written, true and false as 'true' and 'false', a missing value as '(missing)'. kind 'finite': the place of each "
    "column's value in its 'categories' makes a list, and the state is the place of that list in 'combinations'. "
    "kind 'features': a category becomes one 0/1 feature per entry of 'categories'; a number stands for itself; where "
    "'fill' is not null a missing number becomes 'fill', and a further 0/1 feature says whether it was missing. "
    "'columns' null: states are used as they are.",
    "A member of kind 'actions' lists the action of each state; one of kind 'probabilities' lists, for each state, the "
    "probability of each action. Actions are places in the list 'actions'.",
    "A member of kind 'linear': monomial i is the product of the features listed in states.monomials[degree][i] (none: "
    "1); the value of action a is the sum over i of weights[a][i] * monomial i. With temperature null take the first "
    "allowed action whose value is at most the least allowed value + tie * the largest absolute value of any action; "
    "else draw an allowed action with probability proportional to exp(-value / temperature).",
    "A member of kind 'majority' takes the action on which the members in 'of' put the most weight: the first whose "
    "sum of weight * probability is at least the largest less its 'tie'.",
    "'support' says which actions are allowed (null: all). With z = (features - centre) / scale, the chance of action "
    "a is proportional to exp(coefficients[a] . z + intercepts[a]), 0 where the intercept is null. Allowed are those "
    "whose chance is at least the smaller of 'threshold' and the largest chance.",
)


def export_json(policy: Policy, encoding: Encoding | None, path: str | Path) -> None:
    """Write a policy as one JSON file that explains itself, once its reader agrees with ours on random states."""
    form = portable(policy, encoding)
    content = document(form)
    try:
        text = _text(content)
    except ValueError as reason:
        raise StorageError(f"the policy holds numbers that JSON cannot: {reason}") from None
    _check(form, json.loads(text))
    write_atomically(Path(path), lambda file: file.write(text.encode()))


def document(policy: Portable) -> dict[str, Any]:
    """Return the content of the file."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "about": list(ABOUT),
        "actions": list(policy.actions),
        "states": states_in_words(policy),
        "tie": TIE,
        "members": [
            {"weight": float(weight), **_member(member)}
            for weight, member in zip(policy.weights, policy.members, strict=True)
        ],
    }


def states_in_words(policy: Portable) -> dict[str, Any]:
    """Return how a row of the log becomes a state."""
    encoding = policy.encoding
    columns = None if encoding is None else [_column(column) for column in encoding.columns]
    if policy.finite:
        known = None if encoding is None else encoding.combinations
        combinations = None if known is None else known.tolist()
        return {"kind": "finite", "count": policy.size, "columns": columns, "combinations": combinations}
    degrees = sorted({rule.degree for rule in policy.rules if isinstance(rule, LinearMember)})
    return {
        "kind": "features",
        "count": policy.size,
        "names": None if encoding is None else list(encoding.features),
        "columns": columns,
        "monomials": {str(degree): monomials(policy.size, degree) for degree in degrees},
    }


def _column(column: StateColumn) -> dict[str, Any]:
    categories = None if column.categories is None else list(column.categories)
    return {"name": column.name, "categories": categories, "fill": column.fill}


def _member(member: Member) -> dict[str, Any]:
    if isinstance(member, TableMember):
        table = member.probabilities
        if np.isin(table, (0.0, 1.0)).all():
            return {"kind": "actions", "actions": table.argmax(axis=1).tolist()}
        return {"kind": "probabilities", "probabilities": table.tolist()}
    if isinstance(member, MajorityMember):
        pairs = zip(member.weights.tolist(), member.rules, strict=True)
        return {"kind": "majority", "tie": VOTES, "of": [{"weight": weight, **_member(rule)} for weight, rule in pairs]}
    assert isinstance(member, LinearMember)  # noqa: S101  # `portable` refuses what only ONNX can write
    return {
        "kind": "linear",
        "degree": member.degree,
        "temperature": member.temperature,
        "weights": member.weights.tolist(),
        "support": None if member.support is None else _support(member.support),
    }


def _support(mask: BehaviorMask) -> dict[str, Any]:
    return {
        "threshold": mask.threshold,
        "centre": mask.centre.tolist(),
        "scale": mask.scale.tolist(),
        "coefficients": mask.coefficients.tolist(),
        "intercepts": [None if intercept == -np.inf else intercept for intercept in mask.intercepts.tolist()],
    }


def _text(content: dict[str, Any]) -> str:
    """Return JSON with a line for each key, and for each member."""
    members = ",\n  ".join(json.dumps(member, allow_nan=False) for member in content["members"])
    rest = {key: json.dumps(value, allow_nan=False) for key, value in content.items() if key != "members"}
    lines = [*(f'"{key}": {value}' for key, value in rest.items()), f'"members": [\n  {members}\n ]']
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _check(policy: Portable, content: dict[str, Any]) -> None:
    def exported(states: Array) -> FloatArray:
        rows = states.tolist()
        return np.array([[read_policy.probabilities(content, m, row) for row in rows] for m in content["members"]])

    require_agreement(policy, exported, rows=CHECKED, seed=0, what="JSON")
    if policy.encoding is None:
        return
    table = random_rows(policy.encoding, CHECKED, np.random.default_rng(1))
    ours = policy.encoding.encode(table)
    theirs = np.array([read_policy.encode(content, row) for row in table.to_dicts()])
    if not np.array_equal(ours, theirs):
        row = int(np.argmax((ours != theirs).reshape(len(ours), -1).any(axis=1)))
        raise StorageError(
            f"the JSON makes {theirs[row]} of the row {table.row(row, named=True)}, but the encoding {ours[row]}. "
            "It was not written. This is a mistake in checkrein: please report it with the run folder"
        )
