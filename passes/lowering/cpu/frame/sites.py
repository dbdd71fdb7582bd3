"""The sites that CPU kernel rules are given: a kernel, an op outside of kernels, an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mgx_mlir.core import literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.expr import Expr
from mgx_mlir.passes.lowering.registry import Results
from mgx_mlir.passes.lowering.select import Refusal, refused


@dataclass(frozen=True)
class KernelSite:
    """A kernel whose operands are bound under its body's arguments; nothing else is lowered."""

    op: ir.Operation
    body: ir.Block
    isa: Isa

    @property
    def members(self) -> list[ir.Operation]:
        """The ops of the body, its terminator last."""
        return [o.operation for o in self.body.operations]

    @property
    def stored(self) -> list[DType]:
        """The element types of the kernel's results."""
        return [TensorType.of(v).dtype for v in self.members[-1].operands]


@dataclass(frozen=True)
class OpSite:
    """An op outside of kernels, with its lowered operands; the first one is a tensor."""

    op: Any  # the op class of the rule's roots
    operands: Sequence[Results | None]
    isa: Isa

    @property
    def first(self) -> ir.Value:
        """The first operand's tensor."""
        x = self.operands[0]
        assert isinstance(x, ir.Value)
        return x

    @property
    def tensors(self) -> list[ir.Value]:
        """The operands that are one tensor each."""
        return [v for v in self.operands if isinstance(v, ir.Value)]

    @property
    def parts(self) -> list[ir.Value]:
        """The tensors of a variadic first operand."""
        group = self.operands[0]
        assert isinstance(group, Sequence)
        return [v for v in group if isinstance(v, ir.Value)]


@dataclass(frozen=True)
class ExprSite:
    """An expression outside of kernels that is to become a tensor."""

    x: Expr
    isa: Isa


def literal_of(v: ir.Value) -> ir.Value | None:
    """Return the literal that a kernel reads as `v`, None if it is no constant."""
    if isinstance(v.owner, ir.Block) and is_a(v.owner.owner.operation, Kernel):
        v = v.owner.owner.operation.operands[ir.BlockArgument(v).arg_number]
    return v if literals.is_literal(v) else None


def number_of(v: ir.Value) -> float | int | None:
    """Return the number that all elements of a literal are, None for other values."""
    literal = literal_of(v)
    array = None if literal is None else literals.seen_of(literal.owner)
    if array is None or not array.size or not literals.is_uniform(array):
        return None
    first = array.flat[0]
    return float(first) if TensorType.of(v).dtype.is_float else int(first)


def by_form(
    refusal: Callable[[Any], str | None],
) -> Callable[[LoweringContext, OpSite], Refusal | None]:
    """Return a match that judges an op by its form alone; its plan is None."""
    return lambda _, site: refused(refusal(site.op))
