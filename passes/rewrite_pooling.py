"""rewrite_pooling: pooling over a whole plane is a reduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mgx_mlir.core.passes import PatternPass
from mgx_mlir.core.pattern import Rewriter, no_match, pattern
from mgx_mlir.core.shapes import DYN, TensorType


@pattern("pooling")
def find_global_pooling(op: Any, rw: Rewriter) -> Any:
    """pooling(x) over all of each plane -> reduce_mean(x) or reduce_max(x)"""
    if op.mode not in ("average", "max"):
        return no_match("mode {} has no reduction", op.mode)
    t = TensorType.of(op.operands[0])
    last = "channels_last" in type(op).ATTRS and op.channels_last
    axes = list(range(1, t.rank - 1)) if last else list(range(2, t.rank))
    if not op.dyn_global:
        extents = tuple(t.dims[a] for a in axes)
        if DYN in extents or tuple(op.lengths) != extents:
            return no_match("window {} is not the plane {}", op.lengths, extents)
        if any(op.padding) or op.padding_mode != "default_" or any(d != 1 for d in op.dilations):
            return no_match("it has padding or dilations")
    out = TensorType.of(op.results[0]).dims
    if any(out[a] != 1 for a in axes):
        return no_match("it has more than one window")
    if not t.dtype.is_float and op.mode == "average":
        return no_match("the mean of {} rounds otherwise", t.dtype)
    return rw.op("reduce_mean" if op.mode == "average" else "reduce_max", op.operands[0], axes=axes)


@dataclass(frozen=True)
class RewritePooling(PatternPass):
    """Replace global pooling by reductions."""

    name: ClassVar[str] = "rewrite_pooling"
    patterns = (find_global_pooling,)
