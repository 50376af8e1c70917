"""Operators and constants of an ONNX graph, each named as it is added."""

from typing import Any

import numpy as np

from checkrein.base.arrays import Array


class Graph:
    """What is added to it is kept in order."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Array) -> str:
        """Add an array."""
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def number(self, value: float) -> str:
        """Add a number in double precision."""
        return self.constant(np.array(value, dtype=np.float64))

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add an operator, and return what its output is called."""
        name = output or f"{operator}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def cast(self, value: str, kind: str) -> str:
        """Add a conversion to DOUBLE, FLOAT or INT64."""
        return self.add("Cast", value, to=int(getattr(self.onnx.TensorProto, kind)))
