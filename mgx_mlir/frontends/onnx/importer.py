"""Walks an ONNX graph and builds the program: scopes, literals, node dispatch, function bodies."""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from mgx_mlir import dialects
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import MgxError, ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import own
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends.dims import DynamicDim
from mgx_mlir.frontends.importer import GraphImporter, Stop, outputs_of
from mgx_mlir.frontends.onnx import ops
from mgx_mlir.frontends.onnx.alternatives import Alternatives, Choices
from mgx_mlir.frontends.onnx.attributes import keywords, resolved, schema_of, strings_of
from mgx_mlir.frontends.onnx.bodies import (
    UseBody,
    domain_of,
    has_body,
    opsets_of,
    schema_body,
    without,
)
from mgx_mlir.frontends.onnx.forms import form_of
from mgx_mlir.frontends.onnx.graph import label, topological
from mgx_mlir.frontends.onnx.inputs import Input, check_names, read_inputs
from mgx_mlir.frontends.onnx.kinds import Kinds
from mgx_mlir.frontends.onnx.load import LoadedModel, load_bytes, load_file
from mgx_mlir.frontends.onnx.node import Node, Scope
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.frontends.onnx.outputs import declared_types, results, state_groups
from mgx_mlir.frontends.onnx.outside import make_inputs
from mgx_mlir.frontends.onnx.registry import OnnxOp, find, oldest, refused
from mgx_mlir.frontends.onnx.required_sizes import RequiredSizes, Sizes
from mgx_mlir.frontends.onnx.structures import Texts, TextTable, build
from mgx_mlir.frontends.onnx.text_graph import take_out
from mgx_mlir.frontends.onnx.text_plan import TextPlan
from mgx_mlir.frontends.onnx.texts import as_numbers
from mgx_mlir.frontends.onnx.unit_axes import UnitAxes
from mgx_mlir.frontends.problems import NotSupported, Refused
from mgx_mlir.frontends.program import Parameter
from mgx_mlir.frontends.values import POISON, Failed, Held, Value, has_failed
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.text_steps import set_steps
from mgx_mlir.programs.texts import set_texts
from mgx_mlir.rewrite.switches import flag

LOG = logging.getLogger("mgx_mlir.onnx")


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
    if options is not None and options.external_weights_as_parameters:
        make_inputs(model.proto.graph)
    take_out(model)

    sizes: Sizes | None = {}
    fail = may_help = False

    def read(choices: Choices) -> ProgramIR:
        nonlocal sizes, may_help
        while True:
            reading = Importer(model, options or OnnxOptions(), choices, sizes)
            reading.branches_may_fail = fail
            try:
                found = reading.program()
            finally:
                may_help |= reading.has_wrong_branch
            more = reading.required.more()
            if more is None:
                return found
            sizes = more

    try:
        return Alternatives(read, model.proto.graph).program()
    except MgxError:
        if not may_help:
            raise
        fail = True  # a branch that cannot be imported must not be taken at run time
        return Alternatives(read, model.proto.graph).program()


class Importer(GraphImporter[onnx.NodeProto, Scope]):
    """One import of an ONNX model."""

    max_depth = 32
    branches_may_fail = False  # a run that takes a failed branch of an If ends with an error
    has_wrong_branch = False

    def __init__(
        self,
        model: LoadedModel,
        options: OnnxOptions,
        choices: Choices | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        super().__init__(model.name, options)
        self.required = RequiredSizes(options, sizes or {})
        self.choices = choices or {}
        self.model, self.options = model, options
        self.functions = {
            (domain_of(f.domain), f.name, f.overload): f for f in model.proto.functions
        }
        self.inputs: list[Input] = []
        self.tracing = flag("MIGRAPHX_TRACE_ONNX_PARSER")
        self.kinds = Kinds()
        self.ones = UnitAxes()
        self.text_table = TextTable()
        self._declared: dict[str, TensorType] | None = None

    # ---- the function --------------------------------------------------------------------------

    def parameters(self) -> list[Parameter]:
        graph = self.model.proto.graph
        plan = self.model.text_plan or TextPlan()
        self.inputs = read_inputs(graph, self.options, self.problems, plan.inputs)
        if not self.problems:
            check_names(graph, self.options, self.inputs, self.source)
        for i in self.inputs:
            i.parameters = [self.required.parameter(p) for p in i.parameters]
        return [p for i in self.inputs for p in i.parameters]

    def outputs(self, arguments: Sequence[Value]) -> list[Held]:
        scope = Scope(self.model.opsets)
        self._bind(arguments, scope)
        self.model.reader.read_ahead(self.model.proto.graph.initializer)
        return self.body(self.model.proto.graph, scope)

    def results(self, outputs: Sequence[Held]) -> list[tuple[Value, ir.Attribute]]:
        return results(self.model.proto.graph, outputs, self.kinds, self.ones)

    def finish(self, function: ir.OpView, outputs: Sequence[Held]) -> None:
        state_groups(function, self.inputs, self.model.proto.graph, outputs)
        parameters = [p for i in self.inputs for p in i.parameters]
        set_texts(function, self.text_table, [i for i, p in enumerate(parameters) if _text(p)])
        if self.model.text_plan is not None:
            set_steps(function, self.model.text_plan.steps)

    def _bind(self, given: Sequence[Value], scope: Scope) -> None:
        """Bind the graph's inputs to their names."""
        arguments = iter(given)
        for i in self.inputs:
            if i.name in scope.values:
                self.problems.error(ModelError(f"input '{i.name}' is stated twice"), "")
            if i.failed:
                scope.values[i.name] = POISON
                continue
            made = [next(arguments) for _ in i.parameters]
            for p, value in zip(i.parameters, made, strict=True):
                symbols = [d.symbol if isinstance(d, DynamicDim) else None for d in p.dims]
                ranges = [(d.min, d.max) if isinstance(d, DynamicDim) else (d, d) for d in p.dims]
                self.builder.probe.argument(value, symbols, ranges)
                self.required.argument(p, self.builder.probe.dims(value))
                self.kinds.mark(value, p.number)
            if i.value is not None:
                made = [self.builder.literal(i.value)]
            (held,) = build([i.form], made)
            text = any(_text(p) for p in i.parameters)
            if text and isinstance(held, ir.Value):
                held = Texts(held, self.text_table)
            scope.values[i.name] = held

    # ---- graphs and nodes ----------------------------------------------------------------------

    def body(self, graph: onnx.GraphProto, scope: Scope) -> list[Held]:
        """Import a graph's nodes into `scope`; return its output values."""
        for tensor in graph.initializer:
            other = scope.values.get(tensor.name)
            if isinstance(other, onnx.TensorProto) and other != tensor:
                error = ModelError(f"initializer '{tensor.name}' is stated twice, with two values")
                if scope.depth:
                    raise error  # the node that contains this body reports it
                self.problems.error(error, scope.prefix)
                raise Stop
            scope.values[tensor.name] = tensor
        for sparse in graph.sparse_initializer:
            scope.values[sparse.values.name] = sparse
        scope.graph = graph
        self.nodes(graph.node, scope)
        return self.named([o.name for o in graph.output], scope)

    def nodes(self, nodes: Sequence[onnx.NodeProto], scope: Scope) -> None:
        """Import nodes, producers first."""
        try:
            order, moved = topological(nodes, scope.values)
        except ModelError as e:
            if scope.depth:
                raise  # the node that contains this body reports it
            self.problems.error(e, scope.prefix)
            raise Stop from None
        if moved:
            LOG.warning("%s: nodes are not in topological order, sorted", self.source)
        for index, node in order:
            self.node(node, index, scope)

    def named(self, names: Sequence[str], scope: Scope) -> list[Held]:
        """Return the values of outputs by name; record missing ones."""
        values: list[Held] = []
        for name in names:
            try:
                found = self.value(name, scope)
                values.append(self.ones.whole(self.builder, found) if scope.depth else found)
            except MgxError as e:
                self.problems.error(
                    ModelError(f"output '{name}': {e.message}", notes=e.notes), scope.prefix
                )
                values.append(POISON)
        return values

    def value(self, name: str, scope: Scope) -> Held:
        """Return the value of a name; an initializer becomes a literal at its first use."""
        owner = scope.holder(name)
        if owner is None:
            raise ModelError(f"value '{name}' is not produced by any node or initializer")
        value = owner.values[name]
        if isinstance(value, onnx.TensorProto | onnx.SparseTensorProto):
            if isinstance(value, onnx.TensorProto) and value.data_type == onnx.TensorProto.STRING:
                made = owner.values[name] = self.texts(value)
                return made
            try:
                array = self._tensor(value)
            except MgxError:
                owner.values[name] = POISON
                raise
            with ir.Location.name(name):
                digest = self.model.reader.digest
                made = owner.values[name] = self.builder.literal(own(array), digest=digest)
            if isinstance(value, onnx.TensorProto):
                self.kinds.mark(made, value.data_type)
            return made
        return value

    def texts(self, proto: onnx.TensorProto) -> Texts:
        """Return a tensor of strings as indices into a table of strings."""
        found = [s.decode(errors="replace") for s in proto.string_data]
        table = tuple(dict.fromkeys(found))
        if len(found) != math.prod(proto.dims):
            raise ModelError(f"initializer '{proto.name}' has {len(found)} strings")
        index = np.array([table.index(s) for s in found], np.int64).reshape(tuple(proto.dims))
        return Texts(self.builder.literal(index), table)

    def _tensor(self, proto: onnx.TensorProto | onnx.SparseTensorProto) -> np.ndarray:
        if isinstance(proto, onnx.TensorProto):
            return self.model.reader.read(proto)
        return self.model.reader.sparse(proto, f"sparse initializer '{proto.values.name}'")

    def node(self, proto: onnx.NodeProto, index: int, scope: Scope) -> None:
        """Import one node; errors are recorded and its outputs poisoned."""
        name = scope.prefix + label(proto, index)
        if self.tracing:
            ins, outs = ",".join(proto.input), ",".join(proto.output)
            print(f"Parse: {proto.op_type} '{name}' ({ins}) -> {outs}", file=sys.stderr)
        with ir.Location.name(name, ir.Location.file(self.source, index, 0)):
            found = self.attempt(proto, proto.op_type, name, scope)
            results = None if isinstance(found, Failed) else found
            for i, output in enumerate(proto.output):
                if not output:
                    continue
                value = results[i] if results and i < len(results) else None
                if value is None and results is not None:
                    self.problems.unsupported(
                        self.operator(proto, scope), f"output {i}", f"'{name}'"
                    )
                folded = self.folded(value)
                if isinstance(folded, ir.Value):
                    self.kinds.mark(folded, self.kinds.of(value))
                scope.values[output] = POISON if folded is None else folded

    def operator(self, proto: onnx.NodeProto, scope: Scope) -> str:
        domain = domain_of(proto.domain)
        text = f"{domain}::{proto.op_type}" if domain else proto.op_type
        opset = scope.opsets.get(domain)
        text += f" (opset {opset})" if opset else " (domain not imported)"
        first = oldest(domain, proto.op_type)
        if first is not None and opset is not None and first > opset:
            text += f", supported from opset {first}"
        return text

    def build(
        self, proto: onnx.NodeProto, name: str, scope: Scope
    ) -> Sequence[Held | None] | Failed:
        domain = domain_of(proto.domain)
        opset = scope.opsets.get(domain, 0 if domain in ("", "ai.onnx.ml") else 1)
        local = self.functions.get((domain, proto.op_type, proto.overload))
        op, schema = None, None
        if local is None:
            op, schema, opset = self._form(proto, domain, opset, name)
        if op is None and local is None and not has_body(schema):
            for x in proto.input:  # a missing input is a separate error
                if x:
                    self.value(x, scope)
            raise Refused(refused(domain, proto.op_type))
        inputs = [self.value(x, scope) if x else None for x in proto.input]
        if has_failed(inputs):
            return POISON
        given = resolved(proto, scope.bound)
        if not domain and proto.op_type == "Constant" and (texts := strings_of(given)) is not None:
            return [self.texts(texts)]
        if local is not None:
            return self._expand(local, given, proto.output, inputs, name, scope, opsets_of(local))
        if op is not None:
            try:
                return self._call(op, schema, given, inputs, Node(self, proto, name, scope, opset))
            except UseBody:
                if schema is None or not has_body(schema):
                    raise NotSupported("") from None
        assert schema is not None
        function = schema_body(schema, proto, given, inputs, opset)
        own = opsets_of(function)
        return self._expand(function, given, proto.output, inputs, name, scope, own, schema)

    def _form(
        self, proto: onnx.NodeProto, domain: str, opset: int, name: str
    ) -> tuple[OnnxOp | None, onnx.defs.OpSchema | None, int]:
        """Return the operator that a node is read as, its schema and opset."""
        schema = schema_of(domain, proto.op_type, opset)
        form = form_of(proto, domain, opset)
        if form.stated or has_body(schema):
            return find(domain, proto.op_type, opset), schema, opset
        LOG.info("%s: node '%s': read as %s", self.source, name, form.name)
        return form.op, schema_of(form.domain, proto.op_type, form.opset), form.opset

    def _call(
        self,
        op: OnnxOp,
        schema: onnx.defs.OpSchema | None,
        given: list[onnx.AttributeProto],
        inputs: list[Held | None],
        node: Node,
    ) -> Sequence[Held | None]:
        inputs, table = as_numbers(self.builder, op, inputs, self.text_table)
        self.check_operands(op, inputs)
        attributes = keywords(given, op, schema, self.model.reader)
        inner = node.scope.depth > 0
        inputs, ones = self.ones.read(self.builder, op, inputs, attributes, inner=inner)
        results = outputs_of(op.function(self.builder, node, *inputs, **attributes))
        self.kinds.carry(op, given, inputs, results)
        if not inner:
            self.required.read(self.builder.probe, op, inputs, attributes)
        for v in results if ones else ():
            if isinstance(v, ir.Value):
                self.ones.mark(v, ones)
        if table is not None:
            return [Texts(v, table) if isinstance(v, ir.Value) else v for v in results]
        return results

    def _expand(
        self,
        function: onnx.FunctionProto,
        given: list[onnx.AttributeProto],
        wanted: Sequence[str],
        inputs: list[Held | None],
        name: str,
        scope: Scope,
        opsets: Mapping[str, int],
        schema: onnx.defs.OpSchema | None = None,
    ) -> Sequence[Held | None]:
        """Import a function's body in place of its call.

        An output that the call does not name (`wanted` is shorter, or has "") may be missing:
        bodies that depend on the call's form do not compute it.
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
        made = iter(self.named(names, inner))
        return [next(made) if a else None for a in asked]

    @property
    def declared(self) -> dict[str, TensorType]:
        """Types of values that the file states, or ONNX infers."""
        if self._declared is None:
            self._declared = declared_types(self.model.proto)
        return self._declared

    def unknown(self, proto: onnx.NodeProto, scope: Scope) -> Sequence[Held | None] | Failed:
        """Build a `migraphx.unknown` with the types that the file states, or ONNX infers."""
        inputs = [self.value(x, scope) for x in proto.input if x]
        if has_failed(inputs):
            return POISON
        values = [v for v in inputs if isinstance(v, ir.Value)]
        if len(values) < len(inputs):
            raise NotSupported("a sequence or an optional")
        like = TensorType.of(values[0]) if values else TensorType(dtypes.FLOAT, ())
        types = [self.declared.get(o, like) for o in proto.output if o]
        made = iter(self.unknown_op(proto.op_type, values, types))
        return [next(made) if o else None for o in proto.output]


def _text(p: Parameter) -> bool:
    return p.number == onnx.TensorProto.STRING


__all__ = ["Importer", "import_model", "parse_onnx", "parse_onnx_buffer"]
