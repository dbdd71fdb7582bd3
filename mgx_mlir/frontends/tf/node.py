"""A TensorFlow node as its importer function sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mgx_mlir.frontends import importer as shared
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.attributes import FunctionRef, value_of
from mgx_mlir.frontends.tf.graph import Body, Ref
from mgx_mlir.frontends.values import POISON, Failed, Held

if TYPE_CHECKING:
    from mgx_mlir.frontends.tf.flow import Flow
    from mgx_mlir.frontends.tf.importer import Importer


class Scope(shared.Scope):
    """Outputs by node in a graph, a function's body, or one of their regions."""

    def __init__(
        self,
        body: Body,
        flow: Flow,
        *,
        outer: Scope | None = None,
        prefix: str = "",
        bound: Mapping[str, schema.Attr] | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(outer=outer, prefix=prefix, bound=bound, depth=depth)
        self.body, self.flow = body, flow
        self.sides: dict[Ref, int] = {}  # sides of conditions around this scope

    def inner(self) -> Scope:
        """Return a region of this scope, which sees the scope's values and has its own."""
        scope = Scope(
            self.body, self.flow, outer=self, prefix=self.prefix, bound=self.bound, depth=self.depth
        )
        scope.sides = self.sides
        return scope


class Node(shared.NodeBase):
    """A node as its operator's function sees it."""

    def __init__(self, importer: Importer, proto: schema.Node, name: str, scope: Scope) -> None:
        super().__init__(importer.builder, proto.op, name)
        self.importer, self.proto, self.scope = importer, proto, scope

    def wants(self, output: int) -> bool:
        """Return whether a node reads this output."""
        asked = self.importer.asked if self.scope.depth == 0 else ()
        ref = (self.proto.name, output)
        return self.scope.body.used(ref) or ref in asked

    def channels_last(self, data_format: str | None) -> bool:
        """Return whether channels are last, by the attribute or else the user's option."""
        if not data_format:
            return self.importer.options.is_nhwc
        if data_format not in ("NHWC", "NCHW", "NDHWC", "NCDHW", "NWC", "NCW"):
            raise NotSupported(f"data_format {data_format}")
        return data_format.endswith("C")

    def attribute(self, name: str) -> Any:
        """Return an attribute that is no parameter of the operator's function; None without one."""
        if name not in self.proto.attr:
            return None
        reader = self.importer.model.reader
        return value_of(self.proto.attr[name], name, reader, self.scope.bound)

    def signature(self, function: FunctionRef) -> schema.Function:
        """Return the function that an attribute names, as in the file."""
        return self.importer.function(function.name)

    def call(self, function: FunctionRef, inputs: Sequence[Held], label: str = "") -> list[Held]:
        """Import a function's body here; return its results."""
        return self.importer.call(function, inputs, self.scope, f"{self.name}/{label}")

    def failed(self, count: int) -> tuple[Failed, ...]:
        """Return poisoned outputs for a node whose error was recorded."""
        return (POISON,) * count
