"""The lowering of `roll` to linalg."""

from __future__ import annotations

from mgx_example.ops import Roll
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.registry import lowers


@lowers(Roll)
def roll(op: Roll, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Read each element from `shift` places before it, modulo the extent."""
    x, t = ins[0], TensorType.of(op.input)
    axis, own = axis_of(op.axis, t.rank), e.extents(x)
    if 0 in own:
        return x

    def body(where: list[ir.Value]) -> ir.Value:
        n = own[axis]
        ahead = e.rem(abs(op.shift), n)
        back = e.sub(n, ahead) if op.shift > 0 else ahead  # -shift modulo n: not negative
        source = list(where)
        source[axis] = e.index(e.rem(e.add(where[axis], back), n))
        return index.read(x, source)

    return index.from_positions(e, own, t.dtype, body)
