"""Walk over a model's graph, shared by ONNX and TensorFlow: scopes, limits, failed nodes."""

from __future__ import annotations

import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from mgx_mlir.core import interrupts
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import MgxError, ModelError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore, is_literal
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.core.subbyte_types import BY_ONNX
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.options import ReadOptions
from mgx_mlir.frontends.problems import UNFORESEEN, NotSupported, Problems, Refused, unforeseen
from mgx_mlir.frontends.program import (
    DEBUG_SYMBOLS,
    Parameter,
    argument_attribute,
    check_valid,
    drop_unused,
    type_of,
)
from mgx_mlir.frontends.signatures import Operator
from mgx_mlir.frontends.values import Failed, Held, HostValue, Outputs, Value
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import VALUES, ProgramIR
from mgx_mlir.programs.value_rules import as_text

# limit after expansion: a few nested functions can expand to billions of nodes
MAX_NODES = 1_000_000
TOO_DEEP = "functions nest too deep or too often"


class Stop(Exception):
    """Raised to end the import at once, after the problem was recorded."""


class Scope:
    """Values by name in one graph or function body, and in the scopes around it.

    `bound` are the attributes of the function's call; `prefix` is prepended to node names in
    messages.
    """

    def __init__(
        self,
        *,
        outer: Scope | None = None,
        prefix: str = "",
        bound: Mapping[str, Any] | None = None,
        depth: int = 0,
    ) -> None:
        self.outer, self.prefix, self.depth = outer, prefix, depth
        self.bound: Mapping[str, Any] = bound or {}
        self.values: dict[str, Any] = {}

    def holder(self, name: str) -> Scope | None:
        """Return the innermost scope that has a value of this name."""
        scope: Scope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.outer
        return scope

    def find(self, name: str) -> object:
        """Return the value of a name, None if no scope has it."""
        scope = self.holder(name)
        return None if scope is None else scope.values[name]


class NodeBase:
    """A node as its importer function sees it."""

    def __init__(self, builder: Builder, op_type: str, name: str) -> None:
        self._builder, self.op_type, self.name = builder, op_type, name

    def const(self, value: Value, what: str) -> np.ndarray:
        """Return the array of an operand. NotSupported if it is computed at run time."""
        found = self._builder.const(value)
        if found is None:
            raise NotSupported(f"'{what}' is computed at run time")
        return found

    def ints(self, value: Value, what: str) -> list[int]:
        """Return a constant integer operand as a list."""
        return [int(x) for x in self.const(value, what).reshape(-1)]


ProtoT = TypeVar("ProtoT")
ScopeT = TypeVar("ScopeT", bound=Scope)


class GraphImporter(ABC, Generic[ProtoT, ScopeT]):
    """One import: the program being built and the problems found so far.

    A subclass reads the protos of one format. It chooses the order of the nodes and passes each to
    `attempt`.
    """

    max_depth: int  # depth of functions within functions

    def __init__(self, source: str, options: ReadOptions) -> None:
        self.source, self._options = source, options
        self.problems = Problems(source)
        self.builder = Builder()
        self.count = 0

    # ---- what a format defines -----------------------------------------------------------------

    @abstractmethod
    def parameters(self) -> Sequence[Parameter]:
        """Return the program's parameters; record errors in them."""

    @abstractmethod
    def outputs(self, arguments: Sequence[Value]) -> Sequence[Held]:
        """Import the graph with its parameters bound to `arguments`; return its outputs."""

    @abstractmethod
    def results(self, outputs: Sequence[Held]) -> list[tuple[Value, ir.Attribute]]:
        """Return the tensors that the program returns, each with its attributes."""

    def finish(self, function: ir.OpView, outputs: Sequence[Held]) -> None:
        """Set the function's attributes: facts of the file beyond parameters and results."""

    @abstractmethod
    def build(self, proto: ProtoT, name: str, scope: ScopeT) -> Sequence[Held | None] | Failed:
        """Import one node; return its outputs, POISON if one of its operands has failed."""

    @abstractmethod
    def unknown(self, proto: ProtoT, scope: ScopeT) -> Sequence[Held | None] | Failed:
        """Build a `migraphx.unknown` for a node of an unknown operator."""

    @abstractmethod
    def operator(self, proto: ProtoT, scope: ScopeT) -> str:
        """Return the operator's name in the list of unsupported operators."""

    # ---- the program ---------------------------------------------------------------------------

    def program(self) -> ProgramIR:
        """Build the program; raise all problems of the model at once."""
        ctx = new_context()
        with ctx, ir.Location.unknown(), (store := WeightStore()).active(), limits.reading():
            module = self._module()
        return ProgramIR(ctx, module, store, self.source)

    def _module(self) -> ir.Module:
        module = ir.Module.create()
        if self._options.use_debug_symbols:
            module.operation.attributes[DEBUG_SYMBOLS] = ir.UnitAttr.get()
        parameters = self.parameters()
        types = [type_of(p.dtype, p.dims).mlir() for p in parameters]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("main", (types, []))
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            outputs: Sequence[Held] = ()
            with contextlib.suppress(Stop):
                outputs = self.outputs(list(block.arguments))
            if self.problems:
                if self._options.print_program_on_error:
                    print(module, file=sys.stderr)
                self.problems.raise_all()
            results = self.results(outputs)
            func.ReturnOp([v for v, _ in results])
        kind = ir.FunctionType.get(types, [v.type for v, _ in results])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [argument_attribute(p.name, p.dims, BY_ONNX.get(p.number)) for p in parameters]
        )
        function.attributes["res_attrs"] = ir.ArrayAttr.get([a for _, a in results])
        if self.builder.rules:
            text = as_text(self.builder.rules)
            function.attributes[VALUES] = ir.StringAttr.get(text)
        self.finish(function, outputs)
        drop_unused(block)
        check_valid(module, self.source)
        return module

    # ---- nodes ---------------------------------------------------------------------------------

    def stop(self, node: str) -> NoReturn:
        """Record that the file expands beyond the limits, and end the import."""
        self.problems.error(ModelError(TOO_DEEP), node)
        raise Stop

    def attempt(
        self, proto: ProtoT, op_type: str, name: str, scope: ScopeT
    ) -> Sequence[Held | None] | Failed | None:
        """Import one node; return its outputs, None after an error was recorded."""
        interrupts.check()
        what = f"node '{name}' ({op_type})"
        self.count += 1
        if self.count > MAX_NODES or scope.depth > self.max_depth:
            self.stop(what)
        outer, self.builder.operator = self.builder.operator, op_type
        try:
            found = self.build(proto, name, scope)
            for value in () if isinstance(found, Failed) else found:
                if isinstance(value, ir.Value):
                    dims = TensorType.of(value).dims
                    limits.rank(len(dims))
                    limits.size(dims)
            return found
        except NotSupported as e:
            known = bool(e.message) and not isinstance(e, Refused)
            if not known and self._options.skip_unknown_operators:
                return self.unknown(proto, scope)
            operator = self.operator(proto, scope)
            self.problems.unsupported(operator, e.message, f"'{name}'", known=known)
        except MgxError as e:
            self.problems.error(e, what)
        except RecursionError:
            self.problems.error(ModelError("nests too deep"), what)
        except (*UNFORESEEN, ir.MLIRError) as e:
            self.problems.error(unforeseen(e), what)
        finally:
            self.builder.operator = outer
        return None

    @staticmethod
    def check_operands(op: Operator, inputs: list[Any]) -> None:
        """Drop absent operands at the end. ModelError if their number or kind does not fit."""
        while op.most is not None and len(inputs) > op.most and inputs[-1] is None:
            inputs.pop()
        if op.most is not None and len(inputs) > op.most:
            raise ModelError(f"expected at most {op.most} inputs, got {len(inputs)}")
        if len(inputs) < op.required or any(v is None for v in inputs[: op.required]):
            got = sum(v is not None for v in inputs)
            raise ModelError(f"expected {op.required} inputs, got {got}")
        for i, v in enumerate(() if op.structures else inputs):
            if isinstance(v, HostValue):
                raise ModelError(f"input {i} expected a tensor, got {v.describe()}")

    def unknown_op(
        self, op_type: str, inputs: Sequence[Value], types: Sequence[TensorType]
    ) -> tuple[Value, ...]:
        """Build a `migraphx.unknown` with results of `types`."""
        found = self.builder.op("unknown", inputs, op=op_type, results=types)
        return found if isinstance(found, tuple) else (found,)

    def folded(self, value: Held | None) -> Held | None:
        """Return a small integer or bool result as a literal if it is known."""
        if not isinstance(value, ir.Value):
            return value
        t, owner = TensorType.of(value), value.owner
        if t.dtype.is_float or isinstance(owner, ir.Block) or is_literal(owner):
            return value
        known = self.builder.const(value)
        return value if known is None else self.builder.literal(known.astype(t.dtype.np))


def outputs_of(found: Outputs) -> Sequence[Held | None]:
    """Return the result of an operator's function as a row of outputs."""
    if isinstance(found, Value | HostValue | Failed):
        return (found,)
    return found
