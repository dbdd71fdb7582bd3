"""Patterns of simplify_algebra on matmuls and convolutions of broadcast values, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.view_chains import VIEWS, Map, build_map, trace, varying
from mgx_mlir.rewrite.pattern import Replacement, Rewriter, defined_by, no_match, pattern


@pattern(Dot)
def find_dot_broadcast(op: Dot, rw: Rewriter) -> Replacement:
    """dot(broadcast(a), broadcast(b)) -> broadcast(dot(a, b)), repeated along batch axes"""
    out = TensorType.of(op.results[0])
    if out.rank < 3:
        return no_match("it has no batch")
    if not out.is_static:
        return no_match("dynamic dims")
    if any(defined_by(v, *VIEWS) is None for v in op.operands):
        return no_match("an operand is not repeated")
    found = [trace(v) for v in op.operands]
    if any(f is None for f in found):
        return no_match("an operand has run-time or empty dims")
    sources = [f for f in found if f is not None]
    kept = frozenset[int]().union(*(varying(m) for _, m, _ in sources))
    repeated = [i for i in range(out.rank - 2) if i not in kept and out.dims[i] != 1]
    if not repeated:
        return no_match("its operands are not repeated along a batch axis together")
    rw.merge_location(*(o for _, _, ops in sources for o in ops))
    operands = [
        build_map(rw, x, tuple(() if i in repeated else atoms for i, atoms in enumerate(m)))
        for x, m, _ in sources
    ]
    return rw.multibroadcast(rw.op("dot", *operands), out.dims)


@pattern(Convolution)
def find_conv_broadcast_input(op: Convolution, rw: Rewriter) -> Replacement:
    """conv(broadcast(x), w) -> broadcast(dot(x, sum of w)), x repeated in space, w constant

    With padding (stride and dilation 1) an image of one window is convolved, and the middle of its
    result is repeated.
    """
    out = TensorType.of(op.results[0])
    if not out.is_static or not is_constant(op.operands[1]):
        return no_match("dynamic dims, or the weights are not constant")
    found = trace(op.operands[0])
    if found is None:
        return no_match("the input has run-time or empty dims")
    source, m, ops = found
    spatial = range(1, out.rank - 1) if op.channels_last else range(2, out.rank)
    dims = TensorType.of(op.operands[0]).dims
    if varying(m) & set(spatial) or prod(dims[i] for i in spatial) == 1:
        return no_match("the input is not repeated in space")
    if is_constant(op.operands[0]):
        return no_match("the input is constant, and the result will be folded")
    if op.padding_mode != "default_":
        return no_match("padding is '{}'", op.padding_mode)
    if any(op.padding):
        return _padded(op, rw, source, m, spatial, ops)
    if op.group != 1:
        return no_match("it has {} groups", op.group)
    rw.merge_location(*ops)
    w = op.operands[1]
    kernel = range(out.rank - 2) if op.channels_last else range(2, out.rank)
    t = TensorType.of(w)
    if any(t.dims[i] != 1 for i in kernel):
        w = rw.op("reduce_sum", w, axes=list(kernel))
    columns, rows = (t.dims[-1], t.dims[-2]) if op.channels_last else t.dims[:2]
    if op.channels_last:
        w = rw.op("reshape", w, dims=[rows, columns])
    else:
        w = rw.op("reshape", w, dims=[columns, rows])
        w = rw.op("transpose", w, permutation=[1, 0])
    channel = out.rank - 1 if op.channels_last else 1
    y = rw.op("dot", build_map(rw, source, (m[0], m[channel])), w)
    y = rw.op("reshape", y, dims=[1 if i in spatial else d for i, d in enumerate(out.dims)])
    return rw.multibroadcast(y, out.dims)


def _padded(
    op: Convolution,
    rw: Rewriter,
    source: ir.Value,
    m: Map,
    spatial: range,
    ops: Sequence[ir.Operation],
) -> Replacement:
    """Convolve an image of one window, then stretch each spatial axis to its length."""
    if any(n != 1 for n in (*op.stride, *op.dilation)):
        return no_match("padding with a stride or a dilation")
    dims, out = TensorType.of(op.operands[0]).dims, TensorType.of(op.results[0]).dims
    n = len(spatial)
    kernel_dims = TensorType.of(op.operands[1]).dims
    kernel = kernel_dims[:n] if op.channels_last else kernel_dims[2:]
    begin = op.padding[:n]
    if any(k > dims[i] for k, i in zip(kernel, spatial, strict=True)):
        return no_match("the window is larger than the image")
    if all(k == dims[i] for k, i in zip(kernel, spatial, strict=True)):
        return no_match("the image is as large as one window")
    rw.merge_location(*ops)
    small = list(m)
    for k, i in zip(kernel, spatial, strict=True):
        small[i] = ((k, 0),) if k != 1 else ()
    x = build_map(rw, source, tuple(small))
    y = rw.op("convolution", x, op.operands[1], **attributes_of(op))
    for i, at in zip(spatial, begin, strict=True):
        have = rw.dims(y)
        if have[i] == out[i]:
            continue
        cuts = [(0, at), (at, at + 1), (at + 1, have[i])]
        parts = [
            rw.op("slice", y, axes=[i], starts=[low], ends=[high])
            if (low, high) != (0, have[i]) else y
            for low, high in cuts if high > low
        ]  # fmt: skip
        middle = 1 if at else 0
        stretched = [d if j != i else out[i] - have[i] + 1 for j, d in enumerate(have)]
        parts[middle] = rw.multibroadcast(parts[middle], stretched)
        y = parts[0] if len(parts) == 1 else rw.op("concat", parts, axis=i)
    return y
