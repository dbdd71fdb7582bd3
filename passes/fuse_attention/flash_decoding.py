"""find_flash_decoding: split an attention over many keys into parts, combined by log-sum-exp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.fused import Group
from mgx_mlir.passes.analysis.access_maps import Unreadable
from mgx_mlir.passes.analysis.attention_form import DECODING, TAGS, AttentionForm, attention_form
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.analysis.kernel_ops import Known, copy_op, copy_ops, make_kernel
from mgx_mlir.passes.analysis.rebuild import rebuild
from mgx_mlir.rewrite.pattern import Replacement, Rewriter, no_match, pattern


@pattern(Group)
def find_flash_decoding(op: Group, rw: Rewriter) -> Replacement:
    """group of attention over n keys -> groups over n / splits keys, combined by log-sum-exp

    For few queries and many keys, where heads alone do not fill a GPU.
    """
    splits = rw.options.splits
    if splits in (0, 1):
        return no_match("splits is below 2")
    if op.tag not in TAGS:
        return no_match("the group is no attention")
    body = op.operation.regions[0].blocks[0]
    try:
        form = attention_form(body)
    except Unreadable as e:
        return no_match("{}", str(e))
    if splits < 0:
        splits = _parts(form.keys, rw.options)
        if splits < 2:
            return no_match("{} keys are too few for parts", form.keys)
    if form.keys % splits:
        return no_match("{} keys are not {} equal parts", form.keys, splits)
    return _joined(op, rw, form, body, splits)


def _parts(keys: int, options: Any) -> int:
    """Return the most equal parts of the keys that the options allow."""
    if keys < options.threshold:
        return 1
    most = min(options.max_splits, keys // max(options.min_chunk, 1))
    return next((n for n in range(most, 1, -1) if keys % n == 0), 1)


def _joined(
    op: Op, rw: Rewriter, form: AttentionForm, body: ir.Block, splits: int
) -> list[ir.Value]:
    ops = [o.operation for o in body.operations]
    first, second = form.product.owner.operation, form.output.owner.operation
    behind = _followers(ops, second)
    chain = {*form.scores, first, second, *form.softmax, *behind}
    known: Known = dict(zip(body.arguments, op.operation.operands, strict=True))
    for o in ops[:-1]:
        # ops before the dots stay outside; the softmax is rebuilt below
        if o not in chain:
            copy_op(o, known)
    q, k = (known[v] for v in first.operands)
    v = known[second.operands[1]]
    t = TensorType.of(form.output)
    lead, n = len(form.lead), form.keys // splits
    q = rw.multibroadcast(
        rw.op("unsqueeze", q, axes=[lead]), (*form.lead, splits, form.queries, form.width)
    )
    k = _split(rw, k, lead + 1, splits, n, lead)
    v = _split(rw, v, lead, splits, n, lead)
    others = {
        x: _score_operand(rw, known[x], lead, splits, n)
        for o in form.scores
        for x in o.operands
        if x in known and x != form.product
    }
    inputs = list(dict.fromkeys((q, k, v, *others.values())))
    part = TensorType(t.dtype, (*form.lead, splits, form.queries, form.depth))
    rows = TensorType(dtypes.FLOAT, (*form.lead, splits, form.queries, 1))

    def build(arguments: list[ir.Value]) -> Sequence[ir.Value]:
        inner = dict(zip(inputs, arguments, strict=True))
        scores = rw.op("dot", inner[q], inner[k])
        made = {form.product: scores, **{x: inner[y] for x, y in others.items()}}
        for o in form.scores:
            out = TensorType.of(o.results[0]).with_dims(TensorType.of(scores).dims)
            made[o.results[0]] = rebuild(o.opview, [made[x] for x in o.operands], out)
        weights, logs = _softmax(rw, _as(rw, made[form.weights], dtypes.FLOAT))
        return [rw.op("dot", _as(rw, weights, t.dtype), inner[v]), logs]

    types = [part.mlir(), rows.mlir()]
    group = make_kernel("group", inputs, types, build, tag=DECODING)
    found, sums = group.results
    known[form.output] = _weighted(rw, found, sums, lead, t)
    copy_ops(behind, known)
    return [known[x] for x in ops[-1].operands]


def _followers(ops: Sequence[ir.Operation], second: ir.Operation) -> list[ir.Operation]:
    """Return the ops after the second dot, with the constants that only they read."""
    at = ops.index(second)
    return list(ops[at + 1 : -1])


def _split(rw: Rewriter, x: ir.Value, axis: int, splits: int, n: int, place: int) -> ir.Value:
    """Split an axis of `x` into parts, with the parts' axis at `place`."""
    dims = list(TensorType.of(x).dims)
    apart = rw.op("reshape", x, dims=[*dims[:axis], splits, n, *dims[axis + 1 :]])
    order = [i for i in range(len(dims) + 1) if i != axis]
    order.insert(place, axis)
    return apart if order == sorted(order) else rw.op("transpose", apart, permutation=order)


def _score_operand(rw: Rewriter, x: ir.Value, lead: int, splits: int, n: int) -> ir.Value:
    """Build an operand of the scores, (lead.., queries, keys), in parts of the keys."""
    dims = TensorType.of(x).dims
    number = splat(x)
    if number is not None:
        wide = (*dims[:lead], splits, dims[lead], n)
        return rw.multibroadcast(rw.literal(number, rw.dtype(x)), wide)
    return _split(rw, x, lead + 1, splits, n, lead)


def _as(rw: Rewriter, x: ir.Value, dtype: DType) -> ir.Value:
    return x if TensorType.of(x).dtype is dtype else rw.op("convert", x, target_type=dtype)


def _softmax(rw: Rewriter, scores: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the softmax over the last dim, and the logarithm of the sum that it divides by.

    A part with all scores -inf has weights 0 and sum 0; only a row that is -inf in every part is
    NaN.
    """
    dims = TensorType.of(scores).dims
    axis = len(dims) - 1
    high = rw.op("reduce_max", scores, axes=[axis])
    rows = TensorType.of(high).dims

    def unless(x: ir.Value, found: float, instead: float) -> ir.Value:
        a, b = (
            rw.multibroadcast(rw.literal(np.float32(n), dtypes.FLOAT), rows)
            for n in (found, instead)
        )
        return rw.op("where", _as(rw, rw.op("equal", x, a), dtypes.BOOL), b, x)

    high = unless(high, -np.inf, 0.0)
    shares = rw.op("exp", rw.op("sub", scores, rw.multibroadcast(high, dims)))
    total = rw.op("reduce_sum", shares, axes=[axis])
    shares = rw.op("div", shares, rw.multibroadcast(unless(total, 0.0, 1.0), dims))
    return shares, rw.op("add", high, rw.op("log", total))


def _weighted(rw: Rewriter, parts: ir.Value, sums: ir.Value, axis: int, t: TensorType) -> ir.Value:
    """Build the parts' results, weighted by their share of the whole sum, in f32."""
    dims = TensorType.of(sums).dims
    high = rw.multibroadcast(rw.op("reduce_max", sums, axes=[axis]), dims)
    shares = rw.op("exp", rw.op("sub", sums, high))
    total = rw.multibroadcast(rw.op("reduce_sum", shares, axes=[axis]), dims)
    shares = rw.op("div", shares, total)
    spread = rw.multibroadcast(shares, TensorType.of(parts).dims)
    weighted = rw.op("mul", _as(rw, parts, dtypes.FLOAT), spread)
    joined = _as(rw, rw.op("reduce_sum", weighted, axes=[axis]), t.dtype)
    return rw.op("reshape", joined, dims=list(t.dims))
