"""normalize_ops: canonical attributes: non-negative axes, bounds in range, full padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, attributes_of, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.indexing import Gather, OneHot
from mgx_mlir.dialects.migraphx.linear import Conv
from mgx_mlir.dialects.migraphx.movement import (
    Concat,
    Reverse,
    ScanSlice,
    Slice,
    Step,
    slice_bounds,
)
from mgx_mlir.dialects.migraphx.normalize import SoftmaxBase, TopK
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import (
    DequantizeLinear,
    PackFp4,
    PackInt4,
    QuantConvolution,
    QuantizeLinear,
    UnpackFp4,
    UnpackInt4,
)
from mgx_mlir.dialects.migraphx.reduce import ArgExtreme, PrefixScanSum, Reduction
from mgx_mlir.dialects.migraphx.scatter import ScatterBase
from mgx_mlir.dialects.migraphx.selection import Unique
from mgx_mlir.dialects.migraphx.views import Flatten, Squeeze, Unsqueeze
from mgx_mlir.rewrite.passes import Pass

# ops whose `axis` or `axes` counts in the dims of the first operand, and of the result
_AXES_OF_OPERAND = (
    Flatten, Gather, SoftmaxBase, ArgExtreme, TopK, PrefixScanSum, Concat, ScatterBase, ScanSlice,
    Unique, PackInt4, UnpackInt4, PackFp4, UnpackFp4, QuantizeLinear, DequantizeLinear, Squeeze,
    Slice, Step, Reverse, Reduction,
)  # fmt: skip
_AXES_OF_RESULT = (OneHot, Unsqueeze)
_AXES = _AXES_OF_OPERAND + _AXES_OF_RESULT
_PADDED = (Conv, QuantConvolution, Pooling)


@dataclass(frozen=True)
class NormalizeOps(Pass):
    """Make axes non-negative, clamp slice bounds, write padding as begins and ends."""

    name: ClassVar[str] = "normalize_ops"

    def run(self, module: ir.Operation) -> bool:
        changed = False

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal changed
            if is_a(op, (*_AXES, *_PADDED)):
                changed |= normalize(cast(Op, op.opview))
            return ir.WalkResult.ADVANCE

        module.walk(visit)
        return changed


def normalize(op: Op) -> bool:
    """Write an op's attributes in canonical form; return whether any changed."""
    before = dict(op.attributes.items())
    if is_a(op, _AXES):
        rank = TensorType.of(op.results[0] if is_a(op, _AXES_OF_RESULT) else op.operands[0]).rank
        attributes = attributes_of(op)
        if attributes.get("axis") is not None and attributes["axis"] < 0:
            # an axis may be one past the last (flatten): it stays
            op.axis += rank
        if attributes.get("axes") is not None:
            op.axes = [a + rank if a < 0 else a for a in attributes["axes"]]
    if is_a(op, Slice):
        _normalize_slice(op)
    if is_a(op, _PADDED):
        _normalize_padding(op)
    return dict(op.attributes.items()) != before


def _normalize_slice(op: Op) -> None:
    """Write bounds in [0, extent] where the extent is known, ends not before starts."""
    axes, starts, ends = op.axes, op.starts, op.ends
    dims = TensorType.of(op.operands[0]).dims
    if axes is None or starts is None or ends is None or not len(axes) == len(starts) == len(ends):
        return  # some come as operands
    extents: list[int] = [dims[a] for a in axes]
    if DYN in extents:
        return
    bounds = [slice_bounds(s, e, n) for s, e, n in zip(starts, ends, extents, strict=True)]
    op.starts = [b[0] for b in bounds]
    op.ends = [max(b[0], b[1]) for b in bounds]


def _normalize_padding(op: Op) -> None:
    padding: Sequence[int] | None = op.padding
    spatial = TensorType.of(op.operands[0]).rank - 2
    if padding is not None and len(padding) == spatial and spatial > 0:
        op.padding = [*padding, *padding]
