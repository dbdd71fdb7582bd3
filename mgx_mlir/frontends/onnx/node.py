"""An ONNX node as its importer function sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import onnx

from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import importer as shared
from mgx_mlir.frontends.onnx.alternatives import Choice, Undecided
from mgx_mlir.frontends.onnx.graph import captured, readers
from mgx_mlir.frontends.values import POISON, Failed, Held, Value, has_failed

if TYPE_CHECKING:
    from mgx_mlir.frontends.onnx.importer import Importer

HeldT = TypeVar("HeldT", bound=Held)


class Scope(shared.Scope):
    """Values by name in one graph or function body: imported ones, or tensor protos not read
    yet.
    """

    def __init__(
        self,
        opsets: Mapping[str, int],
        *,
        outer: Scope | None = None,
        prefix: str = "",
        bound: Mapping[str, onnx.AttributeProto] | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(outer=outer, prefix=prefix, bound=bound, depth=depth)
        self.opsets = opsets
        self.graph: onnx.GraphProto | None = None  # None in a function's body


class Node(shared.NodeBase):
    """A node as its operator's function sees it."""

    def __init__(
        self, importer: Importer, proto: onnx.NodeProto, name: str, scope: Scope, opset: int
    ) -> None:
        super().__init__(importer.builder, proto.op_type, name)
        self.importer, self.proto, self.scope = importer, proto, scope
        self.opset = opset  # opset of the node's domain

    def joined_along(self, output: int) -> int | None:
        """Return the axis of the ConcatFromSequence that is an output's only reader."""
        name, graph = self.proto.output[output], self.scope.graph
        found = readers(graph.node, name) if graph else []
        if len(found) != 1 or found[0].op_type != "ConcatFromSequence":
            return None
        if graph is None or any(o.name == name for o in graph.output):
            return None
        given = {a.name: a.i for a in found[0].attribute}
        return None if given.get("new_axis", 0) else given.get("axis", 0)

    def wants(self, output: int) -> bool:
        """Return whether the node names this output."""
        return output < len(self.proto.output) and bool(self.proto.output[output])

    @property
    def output_count(self) -> int:
        """Number of outputs, including unnamed ones."""
        return len(self.proto.output)

    def stated_dim(self, operand: int, axis: int) -> int | None:
        """Return a dim of an operand as the file states it, if the program does not know it."""
        t = self.importer.declared.get(self.proto.input[operand])
        return t.dims[axis] if t and axis < t.rank and t.dims[axis] != DYN else None

    def without_ones(self, value: Value, axes: Sequence[int]) -> Value:
        """Return a value without its axes that have extent 1 at run time."""
        ones = self.importer.ones
        ones.mark(value, axes)
        if not self.scope.depth:
            return value
        found = ones.whole(self._builder, value)
        return found if isinstance(found, Value) else value

    def value(self, name: str) -> Held:
        """Return the value of a name in the node's scope."""
        return self.importer.value(name, self.scope)

    def kind(self, value: Held) -> int:
        """Return the ONNX element type of a value in a storage type; else 0."""
        return self.importer.kinds.of(value)

    def mark(self, value: HeldT, kind: int) -> HeldT:
        """Record a value's ONNX element type; return the value."""
        self.importer.kinds.mark(value, kind)
        return value

    def inline(
        self,
        graph: onnx.GraphProto,
        inputs: Sequence[Held] = (),
        opsets: Mapping[str, int] | None = None,
    ) -> list[Held]:
        """Import a subgraph in place, its inputs bound to values; return its outputs."""
        scope = Scope(
            opsets or self.scope.opsets,
            outer=self.scope,
            prefix=f"{self.name}/",
            bound=self.scope.bound,
            depth=self.scope.depth + 1,
        )
        for formal, value in zip(graph.input, inputs, strict=True):
            scope.values[formal.name] = value
        return self.importer.body(graph, scope)

    def taken(self) -> Choice:
        """Return the choice for this `If`, whose branches differ in rank.

        Raises Undecided if there is no choice yet.
        """
        importer = self.importer
        like = self.proto.SerializeToString(deterministic=True)
        chosen = importer.choices.get(self.name, importer.choices.get(like))
        if chosen is None:
            if not importer.problems:
                raise Undecided(self.name, like)
            return Choice.CHECKED  # no choice gives a valid program
        return chosen

    def settle(self, graph: onnx.GraphProto) -> bool:
        """Import the captures of a subgraph outside of its region; return False if some failed."""
        names = [n for n in sorted(captured(graph)) if self.scope.find(n) is not None]
        return not has_failed([self.value(n) for n in names])

    def failed(self) -> tuple[Failed, ...]:
        """Return poisoned outputs for a node whose error was recorded."""
        return (POISON,) * len(self.proto.output)
