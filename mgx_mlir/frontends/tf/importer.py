"""Walks a TensorFlow graph from its outputs and builds the program, functions inlined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import INT64, DType
from mgx_mlir.core.errors import MgxError, ModelError
from mgx_mlir.core.files import readable_name
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends.dims import Dim, DynamicDim
from mgx_mlir.frontends.importer import GraphImporter, Stop, outputs_of
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.program import Parameter
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.attributes import FunctionRef, keywords
from mgx_mlir.frontends.tf.complex_numbers import complex_result
from mgx_mlir.frontends.tf.flow import Flow
from mgx_mlir.frontends.tf.graph import ASSIGNS, Body, Ref, ordered
from mgx_mlir.frontends.tf.node import Node, Scope
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.registry import find
from mgx_mlir.frontends.tf.tensors import TensorReader
from mgx_mlir.frontends.tf.values import Complex
from mgx_mlir.frontends.values import POISON, Failed, Held, HostValue, Value, has_failed
from mgx_mlir.programs.program_ir import NAME

MAX_CALLS = 20_000


@dataclass(frozen=True)
class Input:
    """A parameter of the program: its name, its value, and its type."""

    name: str
    ref: Ref
    dtype: DType
    dims: tuple[Dim, ...]


@dataclass(frozen=True)
class Output:
    """A result of the program, and its value."""

    name: str
    ref: Ref


@dataclass
class LoadedModel:
    """Imported model: the graph, its functions, inputs, outputs, and variables."""

    name: str
    graph: schema.Graph
    reader: TensorReader
    inputs: list[Input] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    variables: Mapping[str, Callable[[], np.ndarray]] = field(
        default_factory=dict
    )  # values by node
    tables: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict
    )  # values by node
    body: Body | None = None

    def __post_init__(self) -> None:
        self.name = readable_name(self.name)


class Importer(GraphImporter[schema.Node, Scope]):
    """One import of a TensorFlow model."""

    max_depth = 64

    def __init__(self, model: LoadedModel, options: TfOptions) -> None:
        super().__init__(model.name, options)
        self.model, self.options = model, options
        self.swap = options.migraphx_layout and options.is_nhwc
        self.functions = {f.signature.name: f for f in model.graph.library.function}
        self.bodies: dict[str, tuple[Body, Flow]] = {}
        self.asked: Collection[Ref] = {o.ref for o in model.outputs}
        self.calls = 0

    # ---- the program ---------------------------------------------------------------------------

    def parameters(self) -> list[Parameter]:
        whole = self.options.map_input_dims  # the user's dims, in the program's layout
        return [
            Parameter(
                i.name, i.dtype, _first(i.dims) if self.swap and i.name not in whole else i.dims
            )
            for i in self.model.inputs
        ]

    def outputs(self, arguments: Sequence[Value]) -> list[Held]:
        body = self.model.body or self.body_of(self.model.graph.node)
        scope = Scope(body, Flow(body))
        self._bind(arguments, scope)
        names = [o.ref[0] for o in self.model.outputs]
        try:
            self.check_effects(body, names)
            self.demand(names, scope)
        except MgxError as e:
            self.problems.error(e, "")
            raise Stop from None
        found: list[Held] = []
        for o in self.model.outputs:
            try:
                value = self.value(o.ref, scope)
                if isinstance(value, HostValue):
                    raise ModelError(f"expected a tensor, got {value.describe()}")
                found.append(value)
            except MgxError as e:
                message = ModelError(f"output '{o.name}': {e.message}", notes=e.notes)
                self.problems.error(message, "")
        return found

    def results(self, outputs: Sequence[Held]) -> list[tuple[Value, ir.Attribute]]:
        return [
            (self._swapped(v, [0, 3, 1, 2]), ir.DictAttr.get({NAME: ir.StringAttr.get(o.name)}))
            for o, v in zip(self.model.outputs, outputs, strict=True)
            if isinstance(v, ir.Value)
        ]

    def _bind(self, arguments: Sequence[Value], scope: Scope) -> None:
        """Set the values of nodes that are inputs of the program."""
        parameters = self.parameters()
        for i, p, value in zip(self.model.inputs, parameters, arguments, strict=True):
            symbols = [d.symbol if isinstance(d, DynamicDim) else None for d in p.dims]
            self.builder.probe.argument(value, symbols)
            name, index = i.ref
            row = list(scope.values.get(name, ()))
            row += [None] * (index + 1 - len(row))
            row[index] = self._swapped(value, [0, 2, 3, 1])
            scope.values[name] = row

    def _swapped(self, v: Value, order: list[int]) -> Value:
        """Return a tensor of rank 4 in the other layout, if an option asks for it."""
        wanted = self.swap and TensorType.of(v).rank == 4
        return self.builder.transpose(v, permutation=order) if wanted else v

    # ---- bodies --------------------------------------------------------------------------------

    def body_of(
        self, nodes: Sequence[schema.Node], function: schema.Function | None = None
    ) -> Body:
        """Return the nodes of a graph or function of this file."""
        return Body(nodes, function, self._outputs_of)

    def _outputs_of(self, op: str) -> Sequence[str]:
        found = self.functions.get(op)
        return [a.name for a in found.signature.output_arg] if found is not None else ()

    def function(self, name: str) -> schema.Function:
        """Return the function of this name; ModelError if the file has none."""
        found = self.functions.get(name)
        if found is None:
            raise ModelError(f"there is no function '{name}' in the file")
        return found

    def call(
        self, function: FunctionRef, inputs: Sequence[Held], scope: Scope, prefix: str
    ) -> list[Held]:
        """Import a function's body in place of its call."""
        proto = self.function(function.name)
        if scope.depth >= self.max_depth:
            raise ModelError(
                f"functions nest deeper than {self.max_depth}, '{function.name}' the last"
            )
        self.calls += 1
        if self.calls > MAX_CALLS:
            self.stop(prefix)
        if function.name not in self.bodies:
            made = self.body_of(proto.node_def, proto)
            self.bodies[function.name] = made, Flow(made)
        body, flow = self.bodies[function.name]
        if len(inputs) != len(body.arguments):
            raise ModelError(
                f"function '{function.name}' expected {len(body.arguments)} inputs, "
                f"got {len(inputs)}"
            )
        bound = {**proto.attr, **function.attributes}
        inner = Scope(body, flow, prefix=prefix, bound=bound, depth=scope.depth + 1)
        for name, value in zip(body.arguments, inputs, strict=True):
            inner.values[name] = (value,)
        refs = []
        for a in proto.signature.output_arg:
            if a.name not in proto.ret:
                raise ModelError(f"function '{function.name}' does not say what '{a.name}' is")
            refs.append(body.ref(proto.ret[a.name]))
        self.check_effects(body, [n for n, _ in refs] + list(proto.control_ret.values()))
        return self.values(refs, inner)

    def check_effects(self, body: Body, names: Sequence[str]) -> None:
        """Raise NotSupported if running these nodes changes a variable."""
        for name in body.reached(names):
            if body.nodes[name].op in ASSIGNS:
                raise ModelError(
                    f"node '{name}' ({body.nodes[name].op}) changes a variable, "
                    "and programs have no state",
                    notes=["export it for inference: random layers of Keras 3 with training=False"],
                )

    # ---- nodes ---------------------------------------------------------------------------------

    def values(self, refs: Sequence[Ref], scope: Scope) -> list[Held]:
        """Return the values of refs, after importing the nodes that they need."""
        self.demand([n for n, _ in refs], scope)
        return [self.value(r, scope) for r in refs]

    def demand(self, names: Sequence[str], scope: Scope) -> None:
        """Import every node that these depend on."""
        flow, body = scope.flow, scope.body

        def reads(name: str) -> list[str]:
            if name not in body.nodes:
                return []
            try:
                found = flow.reads(name, scope)
            except ModelError:
                return []  # importing the function itself reports the error
            return [n for n in found if n in body.nodes]

        known = [n for n in names if n in body.nodes]
        for name in ordered(known, reads, lambda n: scope.find(n) is not None, body.position):
            # importing one node of a loop also sets the values of others
            if scope.find(name) is None:
                self.node(name, scope)

    def value(self, ref: Ref, scope: Scope) -> Held:
        """Return the output of an imported node; ModelError if it has none."""
        name, index = ref
        found: Any = scope.find(name)
        if found is None:
            raise ModelError(f"input '{name}' is not produced by any node")
        if found is POISON:
            return POISON
        if index >= len(found) or found[index] is None:
            raise ModelError(f"input '{name}:{index}': the node does not have this output")
        return found[index]

    def node(self, name: str, scope: Scope) -> None:
        """Import one node; errors are recorded and its outputs poisoned."""
        proto = scope.body.nodes[name]
        shown = scope.prefix + name
        place = ir.Location.file(self.source, scope.body.position[name], 0)
        with ir.Location.name(shown, place):
            found = self.attempt(proto, proto.op, shown, scope)
            results: Failed | tuple[Held | None, ...] = POISON
            if found is not None and not isinstance(found, Failed) and not has_failed(found):
                results = tuple(self.folded(v) for v in found)
        if name not in scope.values:
            scope.values[name] = results

    def operator(self, proto: schema.Node, scope: Scope) -> str:
        return proto.op

    def build(self, proto: schema.Node, name: str, scope: Scope) -> Sequence[Held | None] | Failed:
        handled = scope.flow.build(self, proto.name, scope)
        if handled is not None:
            return handled
        op = find(proto.op)
        local = proto.op in self.functions
        # a missing input is a separate error
        inputs: list[Any] = [self.value(r, scope) for r in scope.body.refs(proto.name)]
        if op is None and not local:
            raise NotSupported("")
        if has_failed(inputs):
            return POISON
        if local:
            return self.call(FunctionRef(proto.op, dict(proto.attr)), inputs, scope, f"{name}/")
        assert op is not None
        given = keywords(proto.attr, op, self.model.reader, scope.bound)
        node = Node(self, proto, name, scope)
        if not op.structures and any(isinstance(v, Complex) for v in inputs):
            return outputs_of(complex_result(self.builder, node, op, inputs, given))
        self.check_operands(op, inputs)
        return outputs_of(op.function(self.builder, node, *inputs, **given))

    def unknown(self, proto: schema.Node, scope: Scope) -> Sequence[Held | None] | Failed:
        """Build a `migraphx.unknown` with the type of its first input."""
        inputs = [self.value(r, scope) for r in scope.body.refs(proto.name)]
        values = [v for v in inputs if isinstance(v, ir.Value)]
        if len(values) < len(inputs):
            return POISON
        count = 1
        while scope.body.used((proto.name, count)):
            count += 1
        like = TensorType.of(values[0]) if values else TensorType(INT64, ())
        return self.unknown_op(proto.op, values, [like] * count)


def _first(dims: Sequence[Dim]) -> list[Dim]:
    """Return dims of a channels-last tensor of rank 4 in channels-first order."""
    return [dims[0], dims[3], dims[1], dims[2]] if len(dims) == 4 else list(dims)
