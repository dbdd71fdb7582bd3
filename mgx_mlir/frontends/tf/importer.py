"""Walks a TensorFlow graph from its outputs and builds the program, functions inlined."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mgx_mlir.core.dtypes import INT64, DType
from mgx_mlir.core.errors import MgxError, ModelError
from mgx_mlir.core.files import readable_name
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.onnx.options import Dim
from mgx_mlir.frontends.operands import KnownOperands
from mgx_mlir.frontends.problems import UNFORESEEN, NotSupported, Problems, unforeseen
from mgx_mlir.frontends.tf.attributes import FunctionRef, keywords, value_of
from mgx_mlir.frontends.tf.flow import Flow
from mgx_mlir.frontends.tf.graph import ASSIGNS, Body, Ref, ordered
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.registry import TfOp, find
from mgx_mlir.frontends.tf.tensors import TensorReader
from mgx_mlir.frontends.tf.values import POISON, HostValue, has_failed, is_host
from mgx_mlir.programs.build import Builder

MAX_DEPTH = 64  # functions within functions
MAX_NODES = 1_000_000  # after expansion: a few nested functions can stand for billions
MAX_CALLS = 20_000


class Stop(Exception):
    """Ends the import at once; the problem is noted."""


@dataclass(frozen=True)
class Input:
    """A parameter of the program: what it is called, the value it stands for, and its type."""

    name: str
    ref: Ref
    dtype: DType
    dims: tuple[Dim, ...]


@dataclass(frozen=True)
class Output:
    name: str
    ref: Ref


@dataclass
class LoadedModel:
    """What is imported: the graph, its functions, what goes in and out, and the variables."""

    name: str
    graph: Any
    reader: TensorReader
    inputs: list[Input] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    variables: Mapping[str, Any] = field(default_factory=dict)  # node -> a function that reads it
    body: Any = None

    def __post_init__(self) -> None:
        self.name = readable_name(self.name)


class Scope:
    """The values by node in a graph, a function's body, or a region of one of them."""

    def __init__(
        self,
        body: Body,
        flow: Flow,
        *,
        outer: Scope | None = None,
        prefix: str = "",
        bound: Mapping[str, Any] | None = None,
        depth: int = 0,
    ) -> None:
        self.body, self.flow, self.outer, self.prefix, self.depth = body, flow, outer, prefix, depth
        self.bound: Mapping[str, Any] = bound or {}
        self.values: dict[str, Any] = {}  # a node's outputs
        self.sides: dict[Ref, int] = {}  # the branches of conditions that this is in

    def find(self, name: str) -> Sequence[Any] | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return None

    def inner(self) -> Scope:
        """A region of this scope: sees its values, keeps its own."""
        scope = Scope(
            self.body, self.flow, outer=self, prefix=self.prefix, bound=self.bound, depth=self.depth
        )
        scope.sides = self.sides
        return scope


class Node(KnownOperands):
    """What an operator's function knows about the node it imports."""

    def __init__(self, importer: Importer, proto: Any, name: str, scope: Scope) -> None:
        self.importer, self.proto, self.name, self.scope = importer, proto, name, scope
        self.op_type: str = proto.op

    def wants(self, output: int) -> bool:
        """Whether a node reads this output."""
        asked = self.importer.asked if self.scope.depth == 0 else ()
        ref = (self.proto.name, output)
        return self.scope.body.used(ref) or ref in asked

    def channels_last(self, data_format: str | None) -> bool:
        """Whether channels are the last axis: by the attribute, else by the user's option."""
        if not data_format:
            return self.importer.options.is_nhwc
        if data_format not in ("NHWC", "NCHW", "NDHWC", "NCDHW", "NWC", "NCW"):
            raise NotSupported(f"data_format {data_format}")
        return data_format.endswith("C")

    def attribute(self, name: str) -> Any:
        """An attribute that the operator's function does not state; None where there is none."""
        a = self.proto.attr.get(name) if name in self.proto.attr else None
        if a is None:
            return None
        return value_of(a, name, self.importer.model.reader, self.scope.bound)

    def signature(self, function: FunctionRef) -> Any:
        """The function that an attribute names, as the file states it."""
        return self.importer.function(function.name)

    def call(self, function: FunctionRef, inputs: Sequence[Any], label: str = "") -> list[Any]:
        """Import a function's body here; what it gives."""
        return self.importer.call(function, inputs, self.scope, f"{self.name}/{label}")

    def failed(self, count: int) -> tuple[Any, ...]:
        """The outputs of a node that something failed in, which is noted."""
        return (POISON,) * count


class Importer:
    """One import: the module being built and the problems found so far."""

    def __init__(self, model: LoadedModel, options: TfOptions) -> None:
        self.model, self.options = model, options
        self.problems = Problems(model.name)
        self.builder = Builder()
        self.functions = {f.signature.name: f for f in model.graph.library.function}
        self.bodies: dict[str, tuple[Body, Flow]] = {}
        self.asked: Collection[Ref] = {o.ref for o in model.outputs}
        self.count = self.calls = 0

    # ---- bodies --------------------------------------------------------------------------------

    def body_of(self, nodes: Sequence[Any], function: Any = None) -> Body:
        return Body(nodes, function, self._outputs_of)

    def _outputs_of(self, op: str) -> Sequence[str]:
        found = self.functions.get(op)
        return [a.name for a in found.signature.output_arg] if found is not None else ()

    def function(self, name: str) -> Any:
        found = self.functions.get(name)
        if found is None:
            raise ModelError(f"there is no function '{name}' in the file")
        return found

    def call(
        self, function: FunctionRef, inputs: Sequence[Any], scope: Scope, prefix: str
    ) -> list[Any]:
        """Import a function's body in place of a call of it."""
        proto = self.function(function.name)
        if scope.depth >= MAX_DEPTH:
            raise ModelError(f"functions nest deeper than {MAX_DEPTH}, '{function.name}' the last")
        self.calls += 1
        if self.calls > MAX_CALLS:
            self.problems.error(ModelError("functions nest too deep or too often"), prefix)
            raise Stop
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
        """NotSupported where running these nodes changes a variable."""
        for name in body.reached(names):
            if body.nodes[name].op in ASSIGNS:
                raise ModelError(
                    f"node '{name}' ({body.nodes[name].op}) changes a variable, "
                    "which no program of ours can",
                    notes=["export the model for inference"],
                )

    # ---- nodes ---------------------------------------------------------------------------------

    def values(self, refs: Sequence[Ref], scope: Scope) -> list[Any]:
        """The values of refs, what they need imported first."""
        self.demand([n for n, _ in refs], scope)
        return [self.value(r, scope) for r in refs]

    def demand(self, names: Sequence[str], scope: Scope) -> None:
        """Import every node that these need."""
        flow, body = scope.flow, scope.body

        def reads(name: str) -> list[str]:
            if name not in body.nodes:
                return []
            try:
                found = flow.reads(name, scope)
            except ModelError:
                return []  # its own import tells
            return [n for n in found if n in body.nodes]

        known = [n for n in names if n in body.nodes]
        for name in ordered(known, reads, lambda n: scope.find(n) is not None, body.position):
            if scope.find(name) is None:  # one node of a loop gives the values of others
                self.node(name, scope)

    def value(self, ref: Ref, scope: Scope) -> Any:
        name, index = ref
        found = scope.find(name)
        if found is None:
            raise ModelError(f"input '{name}' is not produced by any node")
        if found is POISON:
            return POISON
        if index >= len(found) or found[index] is None:
            raise ModelError(f"input '{name}:{index}': the node does not have this output")
        return found[index]

    def node(self, name: str, scope: Scope) -> None:
        """Import one node; whatever is wrong with it is noted and its outputs are poisoned."""
        proto = scope.body.nodes[name]
        shown = scope.prefix + name
        what = f"node '{shown}' ({proto.op})"
        self.count += 1
        if self.count > MAX_NODES:
            self.problems.error(ModelError("functions nest too deep or too often"), what)
            raise Stop
        place = ir.Location.file(self.model.name, scope.body.position[name], 0)
        results: Any = POISON
        with ir.Location.name(shown, place):
            try:
                results = self._import(proto, shown, scope)
            except NotSupported as e:
                if e.message or not self.options.skip_unknown_operators:
                    self.problems.unsupported(proto.op, e.message, f"'{shown}'")
                else:
                    results = self._unknown(proto, scope)
            except MgxError as e:
                self.problems.error(e, what)
            except RecursionError:
                self.problems.error(ModelError("nests too deep"), what)
            except UNFORESEEN as e:
                self.problems.error(unforeseen(e), what)
            if results is not POISON:
                results = tuple(self._folded(v) for v in results)
        if name not in scope.values:
            scope.values[name] = results

    def _import(self, proto: Any, shown: str, scope: Scope) -> Any:
        handled = scope.flow.build(self, proto.name, scope)
        if handled is not None:
            return handled
        op = find(proto.op)
        local = proto.op in self.functions
        refs = scope.body.refs(proto.name)
        inputs = [self.value(r, scope) for r in refs]  # a missing input is an error of its own
        if op is None and not local:
            raise NotSupported("")
        if has_failed(inputs):
            return POISON
        if local:
            return self.call(FunctionRef(proto.op, dict(proto.attr)), inputs, scope, f"{shown}/")
        assert op is not None
        return self._call(op, proto, inputs, shown, scope)

    def _call(
        self, op: TfOp, proto: Any, inputs: list[Any], shown: str, scope: Scope
    ) -> Sequence[Any]:
        if op.most is not None and len(inputs) > op.most:
            raise ModelError(f"expected at most {op.most} inputs, got {len(inputs)}")
        if len(inputs) < op.required:
            raise ModelError(f"expected {op.required} inputs, got {len(inputs)}")
        if not op.raw:
            for i, v in enumerate(inputs):
                if is_host(v):
                    raise ModelError(f"input {i} expected a tensor, got a {v.what}")
        given = keywords(proto.attr, op, self.model.reader, scope.bound)
        node = Node(self, proto, shown, scope)
        found = op.function(self.builder, node, *inputs, **given)
        found = found if isinstance(found, tuple | list) else (found,)
        return POISON if found and has_failed(found) else found

    def _unknown(self, proto: Any, scope: Scope) -> Any:
        """A `migraphx.unknown` with the type of its first input."""
        inputs = [self.value(r, scope) for r in scope.body.refs(proto.name)]
        if has_failed(inputs) or any(is_host(v) for v in inputs):
            return POISON
        count = 1
        while scope.body.used((proto.name, count)):
            count += 1
        like = TensorType.of(inputs[0]) if inputs else TensorType(INT64, ())
        found = self.builder.op("unknown", inputs, op=proto.op, results=[like] * count)
        return found if isinstance(found, tuple) else (found,)

    def _folded(self, value: Any) -> Any:
        """A small integer or bool result that is known now, as a literal."""
        if value is None or isinstance(value, HostValue):
            return value
        t = TensorType.of(value)
        limits.rank(t.rank)
        owner = value.owner
        if t.dtype.is_float or isinstance(owner, ir.Block) or is_literal(owner):
            return value
        known = self.builder.const(value)
        return value if known is None else self.builder.literal(known.astype(t.dtype.np))

    # ---- the program ---------------------------------------------------------------------------

    def outputs(self, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """The values of the model's outputs, its inputs bound to `arguments`."""
        body = self.model.body or self.body_of(self.model.graph.node)
        scope = Scope(body, Flow(body))
        for i, value in zip(self.model.inputs, arguments, strict=True):
            name, index = i.ref
            row = list(scope.values.get(name, ()))
            row += [None] * (index + 1 - len(row))
            row[index] = value
            scope.values[name] = row
        found: list[Any] = []
        with contextlib.suppress(Stop):
            try:
                self.check_effects(body, [o.ref[0] for o in self.model.outputs])
                self.demand([o.ref[0] for o in self.model.outputs], scope)
            except MgxError as e:
                self.problems.error(e, "")
                raise Stop from None
            for o in self.model.outputs:
                try:
                    value = self.value(o.ref, scope)
                    if is_host(value):
                        raise ModelError(f"expected a tensor, got a {value.what}")
                    found.append(value)
                except MgxError as e:
                    message = ModelError(f"output '{o.name}': {e.message}", notes=e.notes)
                    self.problems.error(message, "")
        return found

    def stop_on_problems(self, module: ir.Module) -> None:
        if self.problems:
            if self.options.print_program_on_error:
                print(module, file=sys.stderr)
            self.problems.raise_all()
