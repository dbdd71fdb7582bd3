"""Checkpoint keys of a SavedModel's variables, and contents of its tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from mgx_mlir.core.errors import MgxError, ModelError
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.attributes import FunctionRef, value_of
from mgx_mlir.frontends.tf.bundle import Bundle
from mgx_mlir.frontends.tf.graph import Body, Ref
from mgx_mlir.frontends.tf.tensors import TensorReader

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
_TABLES = ("HashTableV2", "HashTable")
_ASSIGN = ("AssignVariableOp", "Assign")
_FILL = ("LookupTableImportV2", "InitializeTableV2")
INIT = "__saved_model_init_op"  # signature that runs when a SavedModel is loaded
_PASS = ("Identity", "IdentityN", "Cast", "EnsureShape")
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_SPEC = re.compile(r"(?:\d{1,18} )+(?:-|\d{1,18},\d{1,18})(?::(?:-|\d{1,18},\d{1,18}))*")


@dataclass(frozen=True)
class Stored:
    """A tensor of a checkpoint, or a part of one: `10 4 0,5:-` is rows 0 to 4 of 10 x 4."""

    key: str
    part: str = ""

    def read(self, bundle: Bundle, what: str) -> np.ndarray:
        """Return the value. Raises ModelError or FileError, naming `what`."""
        whole = bundle.read(self.key, what)
        if not self.part:
            return whole
        *dims, bounds = self.part.split(" ") if _SPEC.fullmatch(self.part) else [""]
        extents = bounds.split(":")
        if tuple(map(int, dims)) != whole.shape or len(extents) != whole.ndim:
            raise ModelError(
                f"{what} is the part '{self.part[:80]}' of a tensor of {list(whole.shape)}"
            )
        where = []
        for text, size in zip(extents, whole.shape, strict=True):
            start, length = (0, size) if text == "-" else map(int, text.split(","))
            if start + length > size:
                raise ModelError(f"{what} is the part '{self.part[:80]}', which goes beyond {size}")
            where.append(slice(start, start + length))
        return np.ascontiguousarray(whole[tuple(where)])


def stored_variables(
    meta: schema.MetaGraph, body: Body, reader: TensorReader, bundle: Bundle
) -> dict[str, Stored]:
    """Return the checkpoint key of each variable node's value.

    The graph's restore step has the keys; without one, the objects bound to function calls; else
    the variable's name is its key. Nodes without a value are left out.
    """
    found = _restored(meta, body, reader)
    for name, key in _of_objects(meta, body, reader, bundle).items():
        found.setdefault(name, Stored(key))
    for node in body.nodes.values():
        if node.op in VARIABLES and node.name not in found:
            text = node.attr["shared_name"].s.decode(errors="replace") if node.attr else ""
            found[node.name] = Stored(text or node.name)
    return {name: stored for name, stored in found.items() if stored.key in bundle}


def stored_tables(
    meta: schema.MetaGraph, body: Body, reader: TensorReader
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the keys and values of each table node that the model's initializer fills."""
    walk = _Restore(meta.graph_def, reader)
    names = {n.name for n in body.nodes.values() if n.op in _FILL}
    init = meta.signature_def.get(INIT)
    if init is not None:
        names |= {body.ref(info.name)[0] for info in init.outputs.values()}
    walk.body(body, body.reached([n for n in names if n in body.nodes]), {})
    return walk.tables


def _of_objects(
    meta: schema.MetaGraph, body: Body, reader: TensorReader, bundle: Bundle
) -> dict[str, str]:
    """Return checkpoint keys by node, for variables that the graph passes to functions.

    A function of the object graph lists the objects that are its last inputs. Keras 3 copies its
    variables for the restore step, which therefore does not name the ones that are read.
    """
    graph = meta.object_graph_def
    if not graph.concrete_functions or _OBJECTS not in bundle:
        return {}
    keys = _keys_of_objects(graph, bundle)
    found: dict[str, str] = {}
    for node in body.nodes.values():
        if "f" not in node.attr or not node.op.endswith("PartitionedCall"):
            continue
        reference = value_of(node.attr["f"], "f", reader, {})
        if not isinstance(reference, FunctionRef):
            continue
        bound = graph.concrete_functions.get(reference.name)
        if bound is None or not bound.bound_inputs:
            continue
        ids = list(bound.bound_inputs)
        for (name, _), number in zip(body.refs(node.name)[-len(ids) :], ids, strict=False):
            given = body.nodes.get(name)
            if given is not None and given.op in VARIABLES and number in keys:
                found.setdefault(name, keys[number])
    return found


def _keys_of_objects(graph: schema.ObjectGraph, bundle: Bundle) -> dict[int, str]:
    """Return the checkpoint key of each variable in the object graph.

    The checkpoint has its own object graph, with the same edge names as the SavedModel's.
    """
    saved = schema.TrackableGraph()
    try:
        saved.ParseFromString(bundle.read_text(_OBJECTS, "the checkpoint's object graph"))
    except DecodeError:
        return {}
    pairs, todo = {0: 0}, [0]
    while todo:
        number = todo.pop()
        if number >= len(graph.nodes) or pairs[number] >= len(saved.nodes):
            continue
        children = {c.local_name: c.node_id for c in saved.nodes[pairs[number]].children}
        for child in graph.nodes[number].children:
            if child.local_name in children and child.node_id not in pairs and child.node_id > 0:
                pairs[child.node_id] = max(children[child.local_name], 0)
                todo.append(child.node_id)
    return {
        number: tensor.checkpoint_key
        for number, other in pairs.items()
        if other < len(saved.nodes)
        for tensor in saved.nodes[other].attributes
        if tensor.name == "VARIABLE_VALUE"
    }


def _restored(meta: schema.MetaGraph, body: Body, reader: TensorReader) -> dict[str, Stored]:
    """Return the tensor that the restore step assigns to each variable's node."""
    walk = _Restore(meta.graph_def, reader)
    name = meta.saver_def.restore_op_name.split(":")[0]
    if name in body.nodes:
        walk.body(body, body.reached([name]), {})
    return walk.found


class _Restore:
    """Follows assignments to variables and tables, also in functions."""

    def __init__(self, graph: schema.Graph, reader: TensorReader) -> None:
        self.functions = {f.signature.name: f for f in graph.library.function}
        self.reader = reader
        self.found: dict[str, Stored] = {}
        self.tables: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def body(self, body: Body, names: set[str], given: dict[str, Any], depth: int = 0) -> None:
        """Follow the assignments of the nodes `names`, in functions too."""
        for name in names:
            node = body.nodes[name]
            follow = partial(self.follow, body, given)
            if node.op in _ASSIGN:
                target, value = (follow(r) for r in body.refs(name)[:2])
                if isinstance(target, tuple) and isinstance(value, Stored):
                    self.found.setdefault(target[0], value)
            elif node.op in _FILL:
                target, *pair = (follow(r) for r in body.refs(name)[:3])
                arrays = [v for v in pair if isinstance(v, np.ndarray)]
                if isinstance(target, tuple) and len(arrays) == 2:
                    self.tables.setdefault(target[0], (arrays[0], arrays[1]))
            elif "f" in node.attr and node.op.endswith("PartitionedCall") and depth < 8:
                reference = value_of(node.attr["f"], "f", self.reader, {})
                if isinstance(reference, FunctionRef) and reference.name in self.functions:
                    proto = self.functions[reference.name]
                    inner = Body(proto.node_def, proto)
                    values = [follow(r) for r in body.refs(name)]
                    bound = dict(zip(inner.arguments, values, strict=False))
                    self.body(inner, set(inner.nodes), bound, depth + 1)

    def follow(self, body: Body, given: dict[str, Any], ref: Ref) -> Any:
        """Return (the node,) for a variable or table, the stored tensor, a constant's array, or
        None.
        """
        for _ in range(16):
            name, index = ref
            if name in given:
                return given[name]
            node = body.nodes.get(name)
            if node is None:
                return None
            if node.op in VARIABLES or node.op in _TABLES:
                return (name,)
            if node.op == "Const":
                return self._constant(node)
            refs = body.refs(name)
            if node.op == "RestoreV2" and len(refs) == 3:
                key, part = (self._text(body, r[0], index) for r in refs[1:])
                return None if key is None else Stored(key, part or "")
            if node.op not in _PASS or not refs:
                return None
            ref = refs[index if node.op == "IdentityN" else 0]
        return None

    def _text(self, body: Body, names: str, index: int) -> str | None:
        node = body.nodes.get(names)
        keys = self._constant(node) if node is not None and node.op == "Const" else None
        if keys is None or keys.dtype != object:
            return None  # not a string
        keys = keys.reshape(-1)
        return keys[index].decode(errors="replace") if index < len(keys) else None

    def _constant(self, node: Any) -> np.ndarray | None:
        try:
            found = value_of(node.attr["value"], "value", self.reader, {})
        except MgxError:
            return None
        return found if isinstance(found, np.ndarray) else None
