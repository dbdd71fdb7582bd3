"""Walks an ONNX graph and builds the program: scopes, literals, node dispatch, function bodies."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from mgx_mlir import dialects
from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import MgxError, ModelError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore, is_literal, own
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.core.subbyte_types import BY_ONNX
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.onnx import ops
from mgx_mlir.frontends.onnx.attributes import keywords, resolved, schema_of
from mgx_mlir.frontends.onnx.bodies import (
    UseBody,
    domain_of,
    has_body,
    opsets_of,
    schema_body,
    without,
)
from mgx_mlir.frontends.onnx.graph import captured, label, topological
from mgx_mlir.frontends.onnx.inputs import Input, check_names, read_inputs
from mgx_mlir.frontends.onnx.kinds import Kinds
from mgx_mlir.frontends.onnx.load import LoadedModel, load_bytes, load_file
from mgx_mlir.frontends.onnx.options import DynamicDim, OnnxOptions
from mgx_mlir.frontends.onnx.outputs import declared_types, result_attributes, state_groups
from mgx_mlir.frontends.onnx.registry import OnnxOp, Refused, find, oldest, refused
from mgx_mlir.frontends.onnx.structures import (
    build,
    describe,
    form_of,
    is_structure,
    tensors,
)
from mgx_mlir.frontends.operands import KnownOperands
from mgx_mlir.frontends.problems import UNFORESEEN, NotSupported, Problems, unforeseen
from mgx_mlir.frontends.program import (
    DEBUG_SYMBOLS,
    argument_attribute,
    check_valid,
    drop_unused,
    type_of,
)
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.switches import flag

LOG = logging.getLogger("mgx_mlir.onnx")
MAX_DEPTH = 32  # functions within functions
MAX_NODES = 1_000_000  # after expansion: a few nested functions can stand for billions


class _Stop(Exception):
    """Ends the import at once; the problem is noted."""


_POISON = object()  # a value whose node failed: its users are skipped without a message


def parse_onnx(path: str | os.PathLike[str], options: OnnxOptions | None = None) -> ProgramIR:
    """Read the ONNX model at `path` into a program.

    Raises FileError, ModelError or UnsupportedModel; all problems of the model at once.
    """
    options = options or OnnxOptions()
    with load_file(path, external_data_path=options.external_data_path or None) as model:
        return import_model(model, options)


def parse_onnx_buffer(
    data: bytes | bytearray | memoryview, options: OnnxOptions | None = None
) -> ProgramIR:
    """Read a serialized ONNX model from memory; as parse_onnx.

    External data needs `external_data_path` in the options.
    """
    options = options or OnnxOptions()
    with load_bytes(data, external_data_path=options.external_data_path or None) as model:
        return import_model(model, options)


def import_model(model: LoadedModel, options: OnnxOptions | None = None) -> ProgramIR:
    """Build the program of a loaded model."""
    dialects.load()
    ops.load()
    ctx = new_context()
    with ctx, ir.Location.unknown(), (store := WeightStore()).active(), limits.reading():
        module = Importer(model, options or OnnxOptions()).run()
    return ProgramIR(ctx, module, store, model.name)


class Scope:
    """The values by name in one graph or function body, and what they see outside it."""

    def __init__(
        self,
        opsets: Mapping[str, int],
        *,
        outer: Scope | None = None,
        prefix: str = "",
        bound: Mapping[str, onnx.AttributeProto] | None = None,
        depth: int = 0,
    ) -> None:
        self.opsets, self.outer, self.prefix = opsets, outer, prefix
        self.bound: Mapping[str, onnx.AttributeProto] = bound or {}
        self.depth = depth
        self.values: dict[str, Any] = {}  # ir.Value, a tensor proto not yet a literal, or _POISON

    def find(self, name: str) -> tuple[Scope, Any] | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope, scope.values[name]
            scope = scope.outer
        return None


class Node(KnownOperands):
    """What an operator's function knows about the node it imports."""

    def __init__(
        self, importer: Importer, proto: onnx.NodeProto, name: str, scope: Scope, opset: int
    ) -> None:
        self.importer, self.proto, self.name, self.scope = importer, proto, name, scope
        self.opset = opset  # of the node's domain
        self.op_type = proto.op_type

    def wants(self, output: int) -> bool:
        """Whether the graph names this output."""
        return output < len(self.proto.output) and bool(self.proto.output[output])

    @property
    def output_count(self) -> int:
        return len(self.proto.output)

    def stated_dim(self, operand: int, axis: int) -> int | None:
        """A dim of an operand as the file states it: for what the program cannot tell."""
        t = self.importer.declared.get(self.proto.input[operand])
        return t.dims[axis] if t and axis < t.rank and t.dims[axis] != DYN else None

    def value(self, name: str) -> Any:
        """The value of a name that the node's graph can see."""
        return self.importer.value(name, self.scope)

    def kind(self, value: Any) -> int:
        """The ONNX element type of a value, where it is not the one it is held in; else 0."""
        return self.importer.kinds.of(value)

    def mark(self, value: Any, kind: int) -> Any:
        """Say what ONNX element type a value stands for; the value."""
        self.importer.kinds.mark(value, kind)
        return value

    def inline(self, graph: onnx.GraphProto, inputs: Sequence[Any] = ()) -> list[Any]:
        """Import a subgraph here, its inputs bound to values; its outputs."""
        scope = Scope(
            self.scope.opsets,
            outer=self.scope,
            prefix=f"{self.name}/",
            bound=self.scope.bound,
            depth=self.scope.depth + 1,
        )
        for formal, value in zip(graph.input, inputs, strict=True):
            scope.values[formal.name] = value
        return self.importer.body(graph, scope)

    def settle(self, graph: onnx.GraphProto) -> bool:
        """Make what a subgraph captures here, outside of its region; False if some of it failed."""
        names = [n for n in sorted(captured(graph)) if self.scope.find(n) is not None]
        return not self.has_failed([self.importer.value(n, self.scope) for n in names])

    def failed(self) -> tuple[Any, ...]:
        """The outputs of a node that something failed in, which is noted."""
        return (_POISON,) * len(self.proto.output)

    @staticmethod
    def has_failed(values: Sequence[Any]) -> bool:
        return any(v is _POISON for v in values)


class Importer:
    """One import: the module being built and the problems found so far."""

    def __init__(self, model: LoadedModel, options: OnnxOptions) -> None:
        self.model, self.options = model, options
        self.problems = Problems(model.name)
        self.builder = Builder()
        self.functions = {
            (domain_of(f.domain), f.name, f.overload): f for f in model.proto.functions
        }
        self.count = 0
        self.tracing = flag("MIGRAPHX_TRACE_ONNX_PARSER")
        self.kinds = Kinds()
        self._declared: dict[str, TensorType] | None = None

    # ---- the function --------------------------------------------------------------------------

    def run(self) -> ir.Module:
        graph = self.model.proto.graph
        module = ir.Module.create()
        if self.options.use_debug_symbols:
            module.operation.attributes[DEBUG_SYMBOLS] = ir.UnitAttr.get()
        inputs = read_inputs(graph, self.options, self.problems)
        if not self.problems:
            check_names(graph, self.options, inputs, self.model.name)
        types = [type_of(p.dtype, p.dims).mlir() for i in inputs for p in i.parameters]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("main", (types, []))
        block = function.add_entry_block()
        scope = Scope(self.model.opsets)
        with ir.InsertionPoint(block):
            self._bind(inputs, block, scope)
            outputs = []
            with contextlib.suppress(_Stop):
                outputs = self.body(graph, scope)
            if self.problems:
                if self.options.print_program_on_error:
                    print(module, file=sys.stderr)
                self.problems.raise_all()
            returned = tensors(outputs)
            func.ReturnOp(returned)
        kind = ir.FunctionType.get(types, [v.type for v in returned])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        parameters = [p for i in inputs for p in i.parameters]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [argument_attribute(p.name, p.dims, BY_ONNX.get(p.number)) for p in parameters]
        )
        function.attributes["res_attrs"] = result_attributes(graph, outputs, self.kinds)
        state_groups(function, inputs, graph, outputs)
        drop_unused(block)
        check_valid(module, self.model.name)
        return module

    def _bind(self, inputs: Sequence[Input], block: ir.Block, scope: Scope) -> None:
        """Give the names of the graph's inputs their values."""
        arguments = iter(block.arguments)
        for i in inputs:
            if i.name in scope.values:
                self.problems.error(ModelError(f"input '{i.name}' is stated twice"), "")
            if i.failed:
                scope.values[i.name] = _POISON
                continue
            made = [next(arguments) for _ in i.parameters]
            for p, value in zip(i.parameters, made, strict=True):
                symbols = [d.symbol if isinstance(d, DynamicDim) else None for d in p.dims]
                ranges = [(d.min, d.max) if isinstance(d, DynamicDim) else (d, d) for d in p.dims]
                self.builder.probe.argument(value, symbols, ranges)
                self.kinds.mark(value, p.number)
            if i.value is not None:
                made = [self.builder.literal(i.value)]
            (scope.values[i.name],) = build([i.form], made)

    # ---- graphs and nodes ----------------------------------------------------------------------

    def body(self, graph: onnx.GraphProto, scope: Scope) -> list[Any]:
        """Import a graph's nodes into `scope`; its output values."""
        for tensor in graph.initializer:
            scope.values[tensor.name] = tensor
        for sparse in graph.sparse_initializer:
            scope.values[sparse.values.name] = sparse
        self.nodes(graph.node, scope)
        return self.outputs([o.name for o in graph.output], scope)

    def nodes(self, nodes: Sequence[onnx.NodeProto], scope: Scope) -> None:
        try:
            order, moved = topological(nodes, scope.values)
        except ModelError as e:
            if scope.depth:
                raise  # the node that holds this body reports it
            self.problems.error(e, scope.prefix)
            raise _Stop from None
        if moved:
            LOG.warning("%s: nodes are not in topological order, sorted", self.model.name)
        for index, node in order:
            self.node(node, index, scope)

    def outputs(self, names: Sequence[str], scope: Scope) -> list[Any]:
        values = []
        for name in names:
            try:
                values.append(self.value(name, scope))
            except MgxError as e:
                self.problems.error(
                    ModelError(f"output '{name}': {e.message}", notes=e.notes), scope.prefix
                )
                values.append(_POISON)
        return values

    def value(self, name: str, scope: Scope) -> Any:
        """The value of a name; an initializer becomes a literal when it is first used."""
        found = scope.find(name)
        if found is None:
            raise ModelError(f"value '{name}' is not produced by any node or initializer")
        owner, value = found
        if isinstance(value, onnx.TensorProto | onnx.SparseTensorProto):
            try:
                array = self._tensor(value)
            except MgxError:
                owner.values[name] = _POISON
                raise
            with ir.Location.name(name):
                value = self.builder.literal(own(array))
            if isinstance(proto := owner.values[name], onnx.TensorProto):
                self.kinds.mark(value, proto.data_type)
            owner.values[name] = value
        return value

    def _tensor(self, proto: onnx.TensorProto | onnx.SparseTensorProto) -> np.ndarray:
        if isinstance(proto, onnx.TensorProto):
            return self.model.reader.read(proto)
        values = self.model.reader.read(proto.values)
        indices = self.model.reader.read(proto.indices, f"indices of '{proto.values.name}'")
        dims = tuple(proto.dims)
        if any(d < 0 for d in dims):
            raise ModelError(f"sparse initializer '{proto.values.name}' has dims {list(dims)}")
        limits.table(dims, f"sparse initializer '{proto.values.name}'", values.itemsize)
        dense = np.zeros(dims, values.dtype)
        flat = indices
        if indices.ndim == 2 and indices.shape[1] == len(dims):
            bad = ((indices < 0) | (indices >= np.array(dims))).any()
            flat = indices[:, 0] if bad else np.ravel_multi_index(tuple(indices.T), dims)
            if bad:
                flat = np.array([-1])
        if flat.size != values.size or ((flat < 0) | (flat >= dense.size)).any():
            raise ModelError(f"sparse initializer '{proto.values.name}' has indices out of range")
        dense.reshape(-1)[flat] = values.reshape(-1)
        return dense

    def node(self, proto: onnx.NodeProto, index: int, scope: Scope) -> None:
        """Import one node; whatever is wrong with it is noted and its outputs are poisoned."""
        name = scope.prefix + label(proto, index)
        what = f"node '{name}' ({proto.op_type})"
        self.count += 1
        if self.count > MAX_NODES or scope.depth > MAX_DEPTH:
            self.problems.error(ModelError("functions nest too deep or too often"), what)
            raise _Stop
        results: Sequence[Any] = ()
        failed = False
        if self.tracing:
            ins, outs = ",".join(proto.input), ",".join(proto.output)
            print(f"Parse: {proto.op_type} '{name}' ({ins}) -> {outs}", file=sys.stderr)
        with self._location(name, index):
            try:
                results = self._import(proto, name, scope)
            except NotSupported as e:
                failed = True
                known = bool(e.message) and not isinstance(e, Refused)
                if known or not self.options.skip_unknown_operators:
                    self.problems.unsupported(self._operator(proto, scope), e.message, f"'{name}'")
                else:
                    failed, results = False, self._unknown(proto, scope)
            except MgxError as e:
                failed = True
                self.problems.error(e, what)
            except RecursionError:
                failed = True
                self.problems.error(ModelError("nests too deep"), what)
            except UNFORESEEN as e:
                failed = True
                self.problems.error(unforeseen(e), what)
            for i, output in enumerate(proto.output):
                if not output:
                    continue
                value = results[i] if i < len(results) else None
                if value is None and not failed:
                    self.problems.unsupported(
                        self._operator(proto, scope), f"output {i}", f"'{name}'"
                    )
                if isinstance(value, ir.Value):
                    folded = self._folded(value)
                    self.kinds.mark(folded, self.kinds.of(value))
                    value = folded
                scope.values[output] = _POISON if value is None else value

    def _location(self, name: str, index: int) -> ir.Location:
        return ir.Location.name(name, ir.Location.file(self.model.name, index, 0))

    def _operator(self, proto: onnx.NodeProto, scope: Scope) -> str:
        domain = domain_of(proto.domain)
        text = f"{domain}::{proto.op_type}" if domain else proto.op_type
        opset = scope.opsets.get(domain)
        text += f" (opset {opset})" if opset else " (domain not imported)"
        first = oldest(domain, proto.op_type)
        if first is not None and opset is not None and first > opset:
            text += f", supported from opset {first}"
        return text

    def _import(self, proto: onnx.NodeProto, name: str, scope: Scope) -> Sequence[Any]:
        domain = domain_of(proto.domain)
        opset = scope.opsets.get(domain, 0 if domain in ("", "ai.onnx.ml") else 1)
        local = self.functions.get((domain, proto.op_type, proto.overload))
        op = None if local is not None else find(domain, proto.op_type, opset)
        schema = schema_of(domain, proto.op_type, opset) if local is None else None
        if op is None and local is None and not has_body(schema):
            for x in proto.input:  # a missing input is an error of its own
                if x:
                    self.value(x, scope)
            raise Refused(refused(domain, proto.op_type))
        inputs = [self.value(x, scope) if x else None for x in proto.input]
        if any(v is _POISON for v in inputs):
            return [_POISON] * len(proto.output)
        given = resolved(proto, scope.bound)
        if local is not None:
            return self._expand(local, given, proto.output, inputs, name, scope, opsets_of(local))
        if op is not None:
            try:
                return self._call(op, schema, proto, given, inputs, name, scope, opset)
            except UseBody:
                if schema is None or not has_body(schema):
                    raise NotSupported("") from None
        assert schema is not None
        function = schema_body(schema, proto, given, inputs, opset)
        own = opsets_of(function)
        return self._expand(function, given, proto.output, inputs, name, scope, own, schema)

    def _call(
        self,
        op: OnnxOp,
        schema: onnx.defs.OpSchema | None,
        proto: onnx.NodeProto,
        given: list[onnx.AttributeProto],
        inputs: list[Any],
        name: str,
        scope: Scope,
        opset: int,
    ) -> Sequence[Any]:
        while op.most is not None and len(inputs) > op.most and inputs[-1] is None:
            inputs.pop()
        if op.most is not None and len(inputs) > op.most:
            raise ModelError(f"expected at most {op.most} inputs, got {len(inputs)}")
        if len(inputs) < op.required or any(v is None for v in inputs[: op.required]):
            got = sum(v is not None for v in inputs)
            raise ModelError(f"expected {op.required} inputs, got {got}")
        if not op.structures:
            for i, v in enumerate(inputs):
                if is_structure(v):
                    got = describe(form_of(v))
                    raise ModelError(f"input {i} expected a tensor, got {got}")
        attributes = keywords(given, op, schema, self.model.reader)
        node = Node(self, proto, name, scope, opset)
        found = op.function(self.builder, node, *inputs, **attributes)
        results = found if isinstance(found, tuple | list) else (found,)
        for value in results:
            if isinstance(value, ir.Value):
                limits.rank(TensorType.of(value).rank)
        self.kinds.carry(op, given, inputs, results)
        return results

    def _expand(
        self,
        function: onnx.FunctionProto,
        given: list[onnx.AttributeProto],
        wanted: Sequence[str],
        inputs: list[Any],
        name: str,
        scope: Scope,
        opsets: Mapping[str, int],
        schema: onnx.defs.OpSchema | None = None,
    ) -> Sequence[Any]:
        """Import a function's body in place of a call of it.

        An output that the call leaves out (`wanted` shorter, or "" there) need not be made: bodies
        that depend on the call's form do not make it.
        """
        bound = {a.name: a for a in function.attribute_proto}
        if schema is not None:
            for key, stated in schema.attributes.items():
                if stated.default_value is not None and stated.default_value.name:
                    bound[key] = stated.default_value
        bound |= {a.name: a for a in given}
        merged = {**scope.opsets, **opsets}
        inner = Scope(merged, prefix=f"{name}/", bound=bound, depth=scope.depth + 1)
        if len(inputs) > len(function.input):
            raise ModelError(f"expected at most {len(function.input)} inputs, got {len(inputs)}")
        absent = set(function.input[len(inputs) :])
        for formal, value in zip(function.input, inputs, strict=False):
            if value is None:
                absent.add(formal)
            else:
                inner.values[formal] = value
        body = [without(node, absent) for node in function.node]
        self.nodes(body, inner)
        asked = [i < len(wanted) and bool(wanted[i]) for i in range(len(function.output))]
        names = [n for n, a in zip(function.output, asked, strict=True) if a]
        made = iter(self.outputs(names, inner))
        return [next(made) if a else None for a in asked]

    @property
    def declared(self) -> dict[str, TensorType]:
        """The types that the file states for its values, or ONNX infers."""
        if self._declared is None:
            self._declared = declared_types(self.model.proto)
        return self._declared

    def _unknown(self, proto: onnx.NodeProto, scope: Scope) -> Sequence[Any]:
        """A `migraphx.unknown` with the types that the file states, or ONNX infers."""
        inputs = [self.value(x, scope) for x in proto.input if x]
        if any(v is _POISON for v in inputs):
            return [_POISON] * len(proto.output)
        if any(is_structure(v) for v in inputs):
            raise NotSupported("a sequence or an optional")
        like = TensorType.of(inputs[0]) if inputs else TensorType(dtypes.FLOAT, ())
        types = [self.declared.get(o, like) for o in proto.output if o]
        found = self.builder.op("unknown", inputs, op=proto.op_type, results=types)
        made = iter(found if isinstance(found, tuple) else (found,))
        return [next(made) if o else None for o in proto.output]

    def _folded(self, value: Any) -> Any:
        """A small integer or bool result that is known now, as a literal."""
        t = TensorType.of(value)
        owner = value.owner
        if t.dtype.is_float or isinstance(owner, ir.Block) or is_literal(owner):
            return value
        known = self.builder.const(value)
        return value if known is None else self.builder.literal(known.astype(t.dtype.np))


__all__ = ["Importer", "Node", "import_model", "parse_onnx", "parse_onnx_buffer"]
