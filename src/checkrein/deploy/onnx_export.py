"""ONNX: a policy for any ONNX runtime, built from plain operators (the extra `onnx`).

Input   states          int64 (n,) finite states, or float64 (n, d) features
Outputs probabilities   float64 (members, n, A) what each member would do
        weights         float64 (members,) how likely each member is

At the start of an episode draw a member by `weights`, and follow its rows of `probabilities` to the end. The metadata
entry `checkrein` is JSON: the labels of the actions, and how a row of the log becomes a state.
"""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from checkrein.base.arrays import Array, FloatArray
from checkrein.base.errors import MissingExtraError
from checkrein.base.storage import write_atomically
from checkrein.data.encoding import Encoding
from checkrein.deploy.agreement import require_agreement
from checkrein.deploy.json_export import states_in_words
from checkrein.deploy.models import TiltedMember, ValuesMember
from checkrein.deploy.onnx_graph import Graph
from checkrein.deploy.onnx_models import chances_of, values_of
from checkrein.deploy.portable import LinearMember, MajorityMember, Portable, Rule, TableMember, monomials, portable
from checkrein.policies import BehaviorMask
from checkrein.policies.greedy import TIE
from checkrein.policies.majority import TIE as VOTES
from checkrein.protocols import Policy

OPSET, IR_VERSION = 17, 8  # of 2022: old enough for every runtime in use
CHECKED = 1024  # random states that the model is tried on before it is written


def export_onnx(policy: Policy, encoding: Encoding | None, path: str | Path) -> None:
    """Write a policy as one ONNX model, once onnx's own evaluator agrees with ours on random states."""
    onnx = _onnx()
    form = portable(policy, encoding, models=True)
    model = _model(onnx, form)
    onnx.checker.check_model(model, full_check=True)
    evaluator = onnx.reference.ReferenceEvaluator(model)

    def exported(states: Array) -> FloatArray:
        return evaluator.run(["probabilities"], {"states": states})[0]

    require_agreement(form, exported, rows=CHECKED, seed=0, what="ONNX model")
    write_atomically(Path(path), lambda file: file.write(model.SerializeToString()))


def _onnx() -> Any:
    try:
        importlib.import_module("onnx.reference")
        return importlib.import_module("onnx")
    except ImportError as reason:
        raise MissingExtraError("export to ONNX", "onnx", reason) from None


def _model(onnx: Any, policy: Portable) -> Any:
    helper, kinds = onnx.helper, onnx.TensorProto
    graph = Graph(onnx)
    graph.add("Identity", graph.constant(policy.weights), output="weights")
    tables = [member.probabilities for member in policy.members if isinstance(member, TableMember)]
    if policy.finite:
        graph.add("Gather", graph.constant(np.stack(tables)), "states", axis=1, output="probabilities")
        states = helper.make_tensor_value_info("states", kinds.INT64, ["n"])
    else:
        _add_rules(graph, policy)
        states = helper.make_tensor_value_info("states", kinds.DOUBLE, ["n", policy.size])
    count = len(policy.members)
    outputs = [
        helper.make_tensor_value_info("probabilities", kinds.DOUBLE, [count, "n", len(policy.actions)]),
        helper.make_tensor_value_info("weights", kinds.DOUBLE, [count]),
    ]
    body = helper.make_graph(graph.nodes, "policy", [states], outputs, graph.constants, doc_string=__doc__)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(body, opset_imports=opsets, ir_version=IR_VERSION, producer_name="checkrein")
    words = {"actions": list(policy.actions), "states": states_in_words(policy)}
    helper.set_model_props(model, {"checkrein": json.dumps(words)})
    return model


def _add_rules(graph: Graph, policy: Portable) -> None:
    rules = policy.rules
    degrees = {rule.degree for rule in rules if isinstance(rule, LinearMember)}
    features = {degree: _features(graph, policy.size, degree) for degree in sorted(degrees)}
    masks = {id(mask): _mask(graph, mask) for mask in (rule.support for rule in rules) if mask is not None}

    def choice(rule: Rule) -> str:
        if isinstance(rule, TiltedMember):
            return chances_of(graph, rule)
        if isinstance(rule, ValuesMember):
            values = values_of(graph, rule)
        else:
            values = graph.add("MatMul", features[rule.degree], graph.constant(rule.weights.T))
        return _choice(graph, rule, values, masks.get(id(rule.support)))

    axis = graph.constant(np.array([0]))
    chosen = []
    for member in policy.members:
        if isinstance(member, MajorityMember):
            shares = [choice(rule) for rule in member.rules]
            chosen.append(_majority(graph, shares, member.weights, len(policy.actions)))
        elif not isinstance(member, TableMember):
            chosen.append(choice(member))
    chosen = [graph.add("Unsqueeze", one, axis) for one in chosen]
    graph.add("Concat", *chosen, axis=0, output="probabilities")


def _features(graph: Graph, n_features: int, degree: int) -> str:
    """(n, monomials): products of the columns of (1, states), as many factors as the degree."""
    padding = graph.constant(np.array([0, 1, 0, 0]))
    ones_first = graph.add("Pad", "states", padding, graph.number(1.0))
    products = monomials(n_features, degree)
    factors = max(degree, 1)
    columns = np.array([[0] * (factors - len(product)) + [place + 1 for place in product] for product in products])
    result = graph.add("Gather", ones_first, graph.constant(columns[:, 0]), axis=1)
    for factor in range(1, factors):
        result = graph.add("Mul", result, graph.add("Gather", ones_first, graph.constant(columns[:, factor]), axis=1))
    return result


def _mask(graph: Graph, mask: BehaviorMask) -> str:
    """(n, A) whether behavior takes an action with at least the threshold's probability."""
    centred = graph.add("Sub", "states", graph.constant(mask.centre.astype(np.float64)))
    scaled = graph.add("Div", centred, graph.constant(mask.scale.astype(np.float64)))
    scores = graph.add("MatMul", scaled, graph.constant(mask.coefficients.T.astype(np.float64)))
    scores = graph.add("Add", scores, graph.constant(mask.intercepts.astype(np.float64)))
    probabilities = graph.add("Softmax", scores, axis=1)
    largest = graph.add("ReduceMax", probabilities, axes=[1], keepdims=1)
    return graph.add("GreaterOrEqual", probabilities, graph.add("Min", graph.number(mask.threshold), largest))


def _choice(graph: Graph, rule: LinearMember | ValuesMember, values: str, allowed: str | None) -> str:
    """(n, A) probabilities of one member."""
    usable = values if allowed is None else graph.add("Where", allowed, values, graph.number(np.inf))
    if rule.temperature is not None:
        return graph.add("Softmax", graph.add("Div", usable, graph.number(-rule.temperature)), axis=1)
    largest = graph.add("ReduceMax", graph.add("Abs", values), axes=[1], keepdims=1)
    tie = graph.add("Mul", largest, graph.number(TIE))
    least = graph.add("ReduceMin", usable, axes=[1], keepdims=1)
    best = graph.add("LessOrEqual", usable, graph.add("Add", least, tie))
    return _first(graph, best, rule.n_actions)


def _majority(graph: Graph, choices: list[str], weights: FloatArray, n_actions: int) -> str:
    """(n, A) one-hot, on the action with the largest share of the weight."""
    weighed = [graph.add("Mul", one, graph.number(weight)) for one, weight in zip(choices, weights, strict=True)]
    shares = graph.add("Sum", *weighed)
    largest = graph.add("ReduceMax", shares, axes=[1], keepdims=1)
    most = graph.add("GreaterOrEqual", shares, graph.add("Sub", largest, graph.number(VOTES)))
    return _first(graph, most, n_actions)


def _first(graph: Graph, marked: str, n_actions: int) -> str:
    """(n, A) one-hot, on the first marked action."""
    first = graph.add("ArgMax", graph.add("Cast", marked, to=int(graph.onnx.TensorProto.FLOAT)), axis=1, keepdims=1)
    taken = graph.add("Equal", first, graph.constant(np.arange(n_actions)))
    return graph.add("Cast", taken, to=int(graph.onnx.TensorProto.DOUBLE))
