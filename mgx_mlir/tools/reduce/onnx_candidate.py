"""Shrinking an ONNX model: fewer nodes, outputs, inputs and weights, small dims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic
from mgx_mlir.debug.reduce import Reduction, made

_PROTO_LIMIT = 1 << 31  # bytes that a protobuf message may have
_SMALL = 16  # elements of a weight that is left as it is
_EXTENTS = (1, 2, 3, 4)


@dataclass(frozen=True)
class OnnxCandidate:
    """A model, and the types of its values as shape inference finds them.

    `check` says which check of onnx.checker the input itself passes: "full", "plain" or "".
    """

    model: ModelProto
    types: dict[str, ValueInfoProto] = field(default_factory=dict)
    check: str = ""

    @property
    def graph(self) -> GraphProto:
        """The model's main graph."""
        return self.model.graph

    @property
    def cost(self) -> tuple[int, ...]:
        return self._cost

    @cached_property
    def _cost(self) -> tuple[int, ...]:
        """Nodes, those in subgraphs too; values at the edges; their elements; bytes."""
        g = self.graph
        dims = [list(w.dims) for w in g.initializer]
        dims += [_dims(v) for v in (*g.input, *g.output)]
        return _count(g), len(dims), sum(map(math.prod, dims)), self.model.ByteSize()

    @property
    def digest(self) -> bytes:
        return self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        return self.model.SerializeToString(deterministic=True)

    @property
    def is_empty(self) -> bool:
        return not self.graph.node

    def describe(self) -> str:
        g = self.graph
        parts = [f"{_count(g)} nodes", f"{len(g.initializer)} initializers"]
        parts += [f"{len(g.input)} inputs", f"{len(g.output)} outputs"]
        return f"{', '.join(parts)}, {self.model.ByteSize() / 1e3:.1f} kB"

    def write(self, path: Path) -> None:
        with atomic(path) as f:
            f.write(self.digest)

    def of(self, model: ModelProto, *, infer: bool = False) -> OnnxCandidate | None:
        """Return the candidate of an edited model, None where onnx.checker rejects it."""
        _prune(model.graph)
        if not _passes(model, self.check):
            return None
        types = _types(model) if infer else self.types
        return replace(self, model=model, types=types)

    def copy(self) -> ModelProto:
        """Return a copy of the model, to be edited."""
        model = ModelProto()
        model.CopyFrom(self.model)
        return model


def read_candidate(path: Path) -> OnnxCandidate:
    """Read the model of a file with its external data. FileError where it cannot be read."""
    try:
        model = onnx.load(path)
    except Exception as e:  # protobuf and the file system raise of many kinds
        found = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        reason = found.splitlines()[0] if found else type(e).__name__
        reason = f"{reason[:1].lower()}{reason[1:]}"  # names in it stay as they are
        raise FileError(f"cannot read the model: {reason}", location=str(path)) from None
    if model.ByteSize() >= _PROTO_LIMIT:
        raise FileError(
            f"a model of {model.ByteSize() / 1e9:.1f} GB is too large for one file",
            location=str(path),
        )
    check = next((c for c in ("full", "plain") if _passes(model, c)), "")
    return OnnxCandidate(model, _types(model), check)


def reduce_model(run: Reduction[OnnxCandidate]) -> None:
    """Make the best candidate smaller until no step does."""

    def nodes(c: OnnxCandidate) -> range:
        return range(len(c.graph.node))

    def weights(c: OnnxCandidate) -> range:
        return range(len(c.graph.initializer))

    run.offer(made(without_notes, run.best), "notes dropped")
    improved = True
    while improved:
        improved = False
        for step in (
            lambda: run.halve(lambda c: len(c.graph.output), without_outputs, "outputs dropped"),
            lambda: run.halve(lambda c: len(c.graph.node), without_nodes, "nodes became inputs"),
            lambda: run.each(nodes, bypassed, "a node became its input"),
            lambda: run.each(nodes, branch, "a branch replaced its If"),
            lambda: run.each(nodes, constant, "a node became a constant"),
            lambda: run.each(weights, without_weight, "an initializer became an input"),
            lambda: run.each(extents, with_extent, "dims shrunk"),
        ):
            improved |= step()


# ---- looking ------------------------------------------------------------------------------------


def _subgraphs(node: NodeProto) -> Iterable[GraphProto]:
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            yield a.g
        yield from a.graphs


def _dims(value: ValueInfoProto) -> list[int]:
    """Return the static dims of a type."""
    return [d.dim_value for d in value.type.tensor_type.shape.dim if d.HasField("dim_value")]


def _count(graph: GraphProto) -> int:
    return sum(1 + sum(map(_count, _subgraphs(n))) for n in graph.node)


def _used(graph: GraphProto) -> set[str]:
    """Return every name that nodes read, those in subgraphs too, and the outputs."""
    names = {o.name for o in graph.output}
    for node in graph.node:
        names.update(node.input)
        for inner in _subgraphs(node):
            names |= _used(inner)
    return names - {""}


def _types(model: ModelProto) -> dict[str, ValueInfoProto]:
    """Return the type of every value that shape inference knows."""
    try:
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # values that cannot be inferred are not replaced by inputs
        graph = model.graph
    found = {v.name: v for v in (*graph.value_info, *graph.output, *graph.input)}
    for w in graph.initializer:
        found[w.name] = helper.make_tensor_value_info(w.name, w.data_type, list(w.dims))
    return {name: v for name, v in found.items() if v.type.WhichOneof("value")}


def _passes(model: ModelProto, check: str) -> bool:
    if not check:
        return True
    try:
        onnx.checker.check_model(model, full_check=check == "full")
    except Exception:  # the checker and shape inference have each their own
        return False
    return True


def extents(c: OnnxCandidate) -> list[tuple[int, int]]:
    """Return (extent, smaller one) for the dims of inputs and initializers, the largest first."""
    found = {d for w in c.graph.initializer for d in w.dims}
    for v in c.graph.input:
        found |= set(_dims(v))
    return [(old, new) for old in sorted(found, reverse=True) for new in _EXTENTS if new < old]


# ---- edits --------------------------------------------------------------------------------------


def _prune(graph: GraphProto) -> None:
    """Drop inputs, initializers and notes of values that nothing reads any more."""
    used = _used(graph)
    for values in (graph.initializer, graph.input):
        for i in reversed(range(len(values))):
            if values[i].name not in used:
                del values[i]
    made_here = {o for n in graph.node for o in n.output}
    for i in reversed(range(len(graph.value_info))):
        if graph.value_info[i].name not in made_here:
            del graph.value_info[i]


def _dead(graph: GraphProto) -> None:
    """Drop nodes whose outputs nothing reads."""
    used = _used(graph)
    for i in reversed(range(len(graph.node))):
        node = graph.node[i]
        if not used.intersection(node.output):
            del graph.node[i]
            used = _used(graph)


def without_notes(c: OnnxCandidate) -> OnnxCandidate | None:
    """Drop documentation, metadata and recorded types."""
    model = c.copy()
    model.doc_string = model.graph.doc_string = ""
    del model.metadata_props[:]
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = ""
        if hasattr(node, "metadata_props"):
            del node.metadata_props[:]
    return c.of(model)


def without_outputs(c: OnnxCandidate, indices: Sequence[int]) -> OnnxCandidate | None:
    """Drop these outputs of the graph; None where none would be left."""
    if len(indices) == len(c.graph.output):
        return None
    model = c.copy()
    for i in reversed(indices):
        del model.graph.output[i]
    _dead(model.graph)
    return c.of(model)


def without_nodes(c: OnnxCandidate, indices: Sequence[int]) -> OnnxCandidate | None:
    """Drop these nodes; results still read become inputs, operands read nowhere else outputs."""
    model = c.copy()
    graph = model.graph
    gone = {o for i in indices for o in graph.node[i].output if o}
    feeding = {name for i in indices for name in _reads(graph.node[i])}
    for i in reversed(indices):
        del graph.node[i]
    _put(graph.output, [o for o in graph.output if o.name not in gone])
    used = _used(graph)
    made_here = {o for n in graph.node for o in n.output}
    for name in sorted(feeding & made_here - used):
        graph.output.append(c.types[name])
    for name in sorted(gone & _used(graph)):
        graph.input.append(c.types[name])
    if not graph.output or not graph.node:
        return None
    return c.of(model)


def _put(values: object, kept: list[ValueInfoProto]) -> None:
    """Replace the contents of a repeated field."""
    copies = [ValueInfoProto.FromString(v.SerializeToString()) for v in kept]
    del values[:]  # type: ignore[attr-defined]
    values.extend(copies)  # type: ignore[attr-defined]


def _reads(node: NodeProto) -> set[str]:
    names = set(node.input)
    for inner in _subgraphs(node):
        names |= _used(inner)
    return names - {""}


def _same_type(a: ValueInfoProto | None, b: ValueInfoProto | None) -> bool:
    return a is not None and b is not None and a.type == b.type


def _rename(graph: GraphProto, old: str, new: str) -> None:
    """Read another value wherever one is read."""
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name == old:
                node.input[i] = new
        for inner in _subgraphs(node):
            _rename(inner, old, new)
            for o in inner.output:
                if o.name == old:
                    o.name = new


def bypassed(c: OnnxCandidate, index: int) -> OnnxCandidate | None:
    """f(x) -> x, where the types are equal."""
    model = c.copy()
    node = model.graph.node[index]
    outputs = [o for o in node.output if o]
    ends = {o.name for o in model.graph.output}
    if len(outputs) != 1 or outputs[0] in ends:
        return None
    new = next(
        (i for i in node.input if i and _same_type(c.types.get(i), c.types.get(outputs[0]))), None
    )
    if new is None:
        return None
    del model.graph.node[index]
    _rename(model.graph, outputs[0], new)
    return c.of(model)


def branch(c: OnnxCandidate, index: int) -> OnnxCandidate | None:
    """Replace an If by the nodes of its then branch, or of its else branch."""
    if c.graph.node[index].op_type != "If":
        return None
    for which in ("then_branch", "else_branch"):
        model = c.copy()
        node = model.graph.node[index]
        inner = next(a.g for a in node.attribute if a.name == which)
        nodes = [NodeProto.FromString(n.SerializeToString()) for n in inner.node]
        made_inside = {o for n in nodes for o in n.output}
        renamed = dict(zip((o.name for o in inner.output), node.output, strict=True))
        if not set(renamed) <= made_inside:
            continue  # a branch that hands on a value from outside
        held = list(inner.initializer)
        for n in nodes:
            for names in (n.input, n.output):
                for i, name in enumerate(names):
                    names[i] = renamed.get(name, name)
        around = [NodeProto.FromString(n.SerializeToString()) for n in model.graph.node]
        around[index : index + 1] = nodes
        model.graph.initializer.extend(held)
        del model.graph.node[:]
        model.graph.node.extend(around)
        found = c.of(model, infer=True)
        if found is not None:
            return found
    return None


def constant(c: OnnxCandidate, index: int) -> OnnxCandidate | None:
    """f(x) -> an initializer of ones."""
    model = c.copy()
    node = model.graph.node[index]
    outputs = [o for o in node.output if o]
    if any(o.name in outputs for o in model.graph.output):
        return None
    for name in outputs:
        kind = c.types[name].type.tensor_type
        dims = [d.dim_value for d in kind.shape.dim]
        if not all(dims):
            return None
        ones = np.ones(dims, helper.tensor_dtype_to_np_dtype(kind.elem_type))
        model.graph.initializer.append(numpy_helper.from_array(ones, name))
    del model.graph.node[index]
    return c.of(model)


def without_weight(c: OnnxCandidate, index: int) -> OnnxCandidate | None:
    """Replace a large initializer by an input."""
    weight = c.graph.initializer[index]
    if int(np.prod(weight.dims)) <= _SMALL:
        return None
    model = c.copy()
    kind = helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims))
    if all(i.name != weight.name for i in model.graph.input):
        model.graph.input.append(kind)
    del model.graph.initializer[index]
    return c.of(model)


def with_extent(c: OnnxCandidate, change: tuple[int, int]) -> OnnxCandidate | None:
    """Replace one extent by a smaller one, in inputs, initializers and constants that hold dims.

    The model must still pass the checker: mostly it does where the extent is one of its sizes.
    """
    old, new = change
    model = c.copy()
    graph = model.graph
    for v in (*graph.input, *graph.output):
        for d in v.type.tensor_type.shape.dim:
            if d.dim_value == old:
                d.dim_value = new
    for i, w in enumerate(graph.initializer):
        array = numpy_helper.to_array(w)
        smaller = array[tuple(slice(new) if d == old else slice(None) for d in array.shape)]
        if array.dtype == np.int64 and array.size <= _SMALL:
            smaller = np.where(smaller == old, new, smaller)  # dims of a reshape, mostly
        graph.initializer[i].CopyFrom(
            numpy_helper.from_array(np.ascontiguousarray(smaller), w.name)
        )
    for node in graph.node:
        for a in node.attribute:
            for k, n in enumerate(a.ints):
                if n == old:
                    a.ints[k] = new
    del graph.value_info[:]
    types = _types(model)
    for o in graph.output:
        if o.name in types:
            o.CopyFrom(types[o.name])
    return c.of(model, infer=True)
