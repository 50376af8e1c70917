"""Trees, networks and tilted behavior in plain ONNX operators."""

import numpy as np

from checkrein.base.arrays import FloatArray
from checkrein.deploy.models import TiltedMember, ValuesMember
from checkrein.deploy.onnx_graph import Graph
from checkrein.functions.learned_features import CLIPPED, LearnedFeatures, product_places
from checkrein.functions.neural import NeuralQ
from checkrein.functions.trees import Forest, TreesQ
from checkrein.policies.tilted import REACH


def values_of(graph: Graph, member: ValuesMember) -> str:
    """(n, A) the values of the actions, held inside what costs allow."""
    values = _trees(graph, member.q) if isinstance(member.q, TreesQ) else _network(graph, member.q)
    if np.isinf(member.low) and np.isinf(member.high):
        return values
    return graph.add("Clip", values, graph.number(member.low), graph.number(member.high))


def chances_of(graph: Graph, member: TiltedMember) -> str:
    """(n, A) probabilities: behavior's, tilted as far as REACH and where the log is dense."""
    features = _learned(graph, member.features)
    never = ~np.isfinite(member.behavior[0])
    scores = graph.add("MatMul", features, graph.constant(np.where(never, 0.0, member.behavior)))
    scores = graph.add("Add", scores, graph.constant(np.where(never, -np.inf, 0.0)))
    behavior = graph.add("Softmax", scores, axis=1)
    if member.tilt is None:
        return behavior
    axis = graph.constant(np.array([1]))
    tilt = graph.add("MatMul", features, graph.constant(member.tilt))
    mean = graph.add("ReduceSum", graph.add("Mul", behavior, tilt), axis, keepdims=1)
    far = graph.add("ReduceSum", graph.add("Mul", features, features), axis, keepdims=1)
    share = graph.add("Div", graph.number(member.dense), graph.add("Max", far, graph.number(1e-12)))
    faded = graph.add("Mul", graph.add("Sub", tilt, mean), graph.add("Min", share, graph.number(1.0)))
    bent = graph.add("Tanh", graph.add("Div", faded, graph.number(REACH)))
    odds = graph.add("Mul", behavior, graph.add("Exp", graph.add("Mul", bent, graph.number(REACH))))
    return graph.add("Div", odds, graph.add("ReduceSum", odds, axis, keepdims=1))


def _trees(graph: Graph, q: TreesQ) -> str:
    """(n, A) the mean over trees of the leaf that a state comes to: all trees are descended side by side."""
    forest = q.forest
    n_actions, n_trees = forest.roots.shape
    rows = graph.add("Gather", graph.add("Shape", "states"), graph.constant(np.array([0])), axis=0)
    sizes = graph.add("Concat", rows, graph.constant(np.array([forest.roots.size])), axis=0)
    nodes = graph.add("Expand", graph.constant(forest.roots.reshape(1, -1).astype(np.int64)), sizes)
    single = graph.cast("states", "FLOAT")
    feature = graph.constant(forest.feature.astype(np.int64))
    threshold = graph.constant(forest.threshold.astype(np.float32))
    children = graph.constant(forest.children.ravel().astype(np.int64))
    two = graph.constant(np.array(2))
    for _ in range(depth_of(forest)):
        seen = graph.add("GatherElements", single, graph.add("Gather", feature, nodes), axis=1)
        right = graph.cast(graph.add("Greater", seen, graph.add("Gather", threshold, nodes)), "INT64")
        nodes = graph.add("Gather", children, graph.add("Add", graph.add("Mul", nodes, two), right))
    leaves = graph.add("Gather", graph.constant(np.asarray(q.values[:, 0], np.float64)), nodes)
    each = graph.add("Reshape", leaves, graph.constant(np.array([-1, n_actions, n_trees])))
    total = graph.add("ReduceSum", each, graph.constant(np.array([2])), keepdims=0)
    return graph.add("Div", total, graph.number(n_trees))


def depth_of(forest: Forest) -> int:
    """Return how many steps lead from a root to the deepest leaf."""
    nodes, depth = np.unique(forest.roots), 0
    while (inside := nodes[np.isfinite(forest.threshold[nodes])]).size:
        nodes, depth = np.unique(forest.children[inside]), depth + 1
    return depth


def _network(graph: Graph, q: NeuralQ) -> str:
    """(n, A) the mean of networks in single precision, as torch computes them."""
    models, k = q.centre.shape
    centred = graph.add("Sub", graph.cast("states", "FLOAT"), graph.constant(q.scaling.centre.astype(np.float32)))
    inputs = graph.add("Div", centred, graph.constant(q.scaling.scale.astype(np.float32)))
    layers = list(zip(q.parameters[::2], q.parameters[1::2], strict=True))
    found = []
    for model in range(models):
        hidden = inputs
        for place, (weight, bias) in enumerate(layers):
            hidden = graph.add("MatMul", hidden, graph.constant(np.asarray(weight[model], np.float32)))
            hidden = graph.add("Add", hidden, graph.constant(np.asarray(bias[model], np.float32)))
            hidden = graph.add("Relu", hidden) if place < len(layers) - 1 else hidden
        first = graph.constant(np.arange(0, q.shape.outputs, k))  # outputs are by action, then by cost
        outputs = graph.cast(graph.add("Gather", hidden, first, axis=1), "DOUBLE")
        scaled = graph.add("Mul", outputs, graph.number(float(q.scale[model, 0])))
        found.append(graph.add("Add", scaled, graph.number(float(q.centre[model, 0]))))
    return graph.add("Mean", *found) if models > 1 else found[0]


def _learned(graph: Graph, features: LearnedFeatures) -> str:
    """(n, q) a constant, then whitened products and hidden units."""
    d = features.centre.size
    centred = graph.add("Sub", "states", graph.constant(features.centre))
    scaled = graph.add("Div", centred, graph.constant(features.scale))
    x = graph.add("Clip", scaled, graph.number(-CLIPPED), graph.number(CLIPPED))
    parts = [x]
    if features.products:
        factors = [graph.add("Gather", x, graph.constant(places), axis=1) for places in product_places(d)]
        parts.append(graph.add("Mul", *factors))
    if features.second.shape[1]:
        hidden = x
        for layer in (features.first, features.second):
            hidden = graph.add("Tanh", _affine(graph, hidden, layer))
        parts.append(hidden)
    raw = graph.add("Concat", *parts, axis=1)
    whitened = graph.add(
        "MatMul", graph.add("Sub", raw, graph.constant(features.middle)), graph.constant(features.whitening)
    )
    return graph.add("Pad", whitened, graph.constant(np.array([0, 1, 0, 0])), graph.number(1.0))


def _affine(graph: Graph, inputs: str, layer: FloatArray) -> str:
    """(n, h) of a layer whose last row is its bias."""
    return graph.add("Add", graph.add("MatMul", inputs, graph.constant(layer[:-1])), graph.constant(layer[-1]))
