"""Small ONNX models: from a graph's text and its weights, or from nodes and ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

ML, MS = "ai.onnx.ml", "com.microsoft"
Dims = Sequence[int | str | None] | None
# an array like it, its dims (of f32), or its type and dims; dims of None: of any rank
Port = np.ndarray | list[Any] | tuple[Any, Dims] | None
Ports = Mapping[str, Any] | Iterable[ValueInfoProto | tuple[str, Any, Any]] | str


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node; names stand beside each other with spaces between, `_` is an absent one."""
    takes, gives = (["" if n == "_" else n for n in names.split()] for names in (inputs, outputs))
    return helper.make_node(op, takes, gives, **attributes)


def port(name: str, like: Port) -> ValueInfoProto:
    """An input or output of a graph."""
    kind: Any = TensorProto.FLOAT
    dims: Any = like
    if isinstance(like, np.ndarray):
        kind, dims = like.dtype, like.shape
    elif isinstance(like, tuple):
        kind, dims = like
    if not isinstance(kind, int):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return helper.make_tensor_value_info(name, kind, dims)


def ports(given: Ports) -> list[ValueInfoProto]:
    """Ports by name, or rows of name, type, dims; those of a string are f32 of any rank."""
    if isinstance(given, str):
        return [port(name, None) for name in given.split()]
    if isinstance(given, Mapping):
        return [port(name, like) for name, like in given.items()]
    return [p if isinstance(p, ValueInfoProto) else port(p[0], p[1:]) for p in given]


def tensors(given: Mapping[str, Any] | Iterable[TensorProto]) -> list[TensorProto]:
    """Weights by name; floats of Python's and f64 become f32."""
    if not isinstance(given, Mapping):
        return list(given)
    return [
        v if isinstance(v, TensorProto) else numpy_helper.from_array(_array(v), name)
        for name, v in given.items()
    ]


def _array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def model_of(
    nodes: Iterable[NodeProto],
    inputs: Ports,
    outputs: Ports,
    weights: Mapping[str, Any] | Iterable[TensorProto] = (),
    *,
    opset: int = 17,
    ir_version: int = 9,
    **domains: int,
) -> ModelProto:
    """A model of nodes; domains: the opsets of `ml` and `ms`, or of others by name."""
    graph = helper.make_graph(list(nodes), "g", ports(inputs), ports(outputs), tensors(weights))
    return _finished(graph, opset, ir_version, domains)


def bytes_of(*parts: Any, **options: Any) -> bytes:
    """`model_of` as the bytes of a file."""
    return model_of(*parts, **options).SerializeToString()


def parsed(
    text: str,
    weights: Mapping[str, Any] | Iterable[TensorProto] = (),
    *,
    opset: int = 17,
    ir_version: int = 9,
    **domains: int,
) -> ModelProto:
    """A model of a graph's text: `(float[n,4] x) => (float[n,2] y) { y = MatMul (x, w) }`.

    A name of the graph may stand ahead; `float[] x` has any rank, `float x` rank 0.
    """
    text = text.strip()
    graph = onnx.parser.parse_graph(f"g {text}" if text.startswith("(") else text)
    graph.initializer.extend(tensors(weights))
    return _finished(graph, opset, ir_version, domains)


def parsed_bytes(*parts: Any, **options: Any) -> bytes:
    """`parsed` as the bytes of a file."""
    return parsed(*parts, **options).SerializeToString()


class Nodes:
    """Nodes and weights of a model under construction; a value is its name."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def op(self, kind: str, *operands: Any, into: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node, with constants of what is no name; into: its results, by default one."""
        names = [o if isinstance(o, str) else self.const(o) for o in operands]
        results = list(into) or [f"v{len(self.nodes)}"]
        self.nodes.append(helper.make_node(kind, names, results, **attributes))
        return results[0]

    def const(self, value: Any, dtype: Any = None) -> str:
        """Add a weight, of f32 where `value` is of Python's floats or f64."""
        array = np.asarray(value)
        self.weights[name := f"c{len(self.weights)}"] = (
            array.astype(dtype) if dtype else _array(array)
        )
        return name

    def model(
        self, inputs: Ports, outputs: Ports, *, opset: int = 17, ir_version: int = 9, **domains: int
    ) -> ModelProto:
        """A model of the nodes so far."""
        ends = inputs, outputs
        return model_of(
            self.nodes, *ends, self.weights, opset=opset, ir_version=ir_version, **domains
        )


def _finished(
    graph: onnx.GraphProto, opset: int, ir_version: int, domains: Mapping[str, int]
) -> ModelProto:
    names = {"ml": ML, "ms": MS}
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(names.get(n, n), v) for n, v in domains.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
