"""fuse_attention: scores, softmax and weighted sum become one kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import BroadcastOp, Pointwise, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.fused import Group
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.movement import Concat, Slice
from mgx_mlir.dialects.migraphx.pointwise_binary import Mul
from mgx_mlir.dialects.migraphx.pointwise_trig import Cos, Sin
from mgx_mlir.dialects.migraphx.views import Reshape, Transpose
from mgx_mlir.passes.analysis.access_maps import Unreadable, reader
from mgx_mlir.passes.analysis.attention_form import (
    CACHED,
    TAGS,
    attention_form,
    read_queries,
    scale_and_mask,
)
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.analysis.kernel_ops import (
    Known,
    copy_body,
    copy_op,
    copy_ops,
    in_kernel,
    is_uniform,
    make_kernel,
)
from mgx_mlir.passes.analysis.view_chains import VIEWS_AND_SLICE
from mgx_mlir.passes.fuse_attention.flash_decoding import find_flash_decoding
from mgx_mlir.passes.fuse_attention.masks import find_masks
from mgx_mlir.passes.fuse_attention.parts import Parts, attention_parts, unguarded
from mgx_mlir.passes.fuse_attention.widened import find_widened_attention
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import (
    NoMatch,
    Pattern,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)
from mgx_mlir.symbolic.named_extents import NamedExtent

_ABSORBED = (*VIEWS_AND_SLICE, Convert)
_CACHE = "concat_past_present"


@pattern(Dot, benefit=2)
def find_kv_cache_attention(op: Dot, rw: Rewriter) -> Replacement:
    """dot(softmax(f(dot(q, concat_past_present(k)))), concat_past_present(v)) -> group"""
    parts = attention_parts(op, rw.options)
    if isinstance(parts, NoMatch):
        return parts
    for v, what in ((parts.first.b, "keys"), (op.b, "values")):
        if defined_by(_through(v), _CACHE) is None:
            return no_match("the {} are not a concat_past_present", what)
    return _fused(op, rw, parts, CACHED)


@pattern(Dot)
def find_attention(op: Dot, rw: Rewriter) -> Replacement:
    """dot(softmax(f(dot(q, k))), v) -> group of them, with the views of q, k and v

    Uniform factors of q and k become one factor of the scores. With fast math, a guard that
    replaces NaN weights by 0 is applied to the results instead: the same unless v has NaN or
    infinity.
    """
    parts = attention_parts(op, rw.options)
    return parts if isinstance(parts, NoMatch) else _fused(op, rw, parts, "attention")


@pattern(Transpose, Reshape)
def find_attention_output(op: Transpose | Reshape, rw: Rewriter) -> Replacement:
    """transpose(group of attention) -> group of the transposed one"""
    chain = [op.operation]
    source = op.operation.operands[0]
    if in_kernel(op.operation):
        return no_match("it is in a kernel")
    while (view := defined_by(source, Transpose, Reshape)) is not None and has_one_use(source):
        chain.insert(0, view.operation)
        source = view.operation.operands[0]
    group = defined_by(source, Group)
    if group is None or group.tag not in TAGS:
        return no_match("the operand is no attention")
    if any(len(o.operands) != 1 for o in chain) or not has_one_use(source):
        return no_match("the attention has other readers")
    if not _tells_sizes(group.operation.operands, chain):
        return no_match("the dims do not follow from the operands of the attention")
    rw.merge_location(group, *chain[:-1])

    def build(arguments: list[ir.Value]) -> Sequence[ir.Value]:
        known = dict(zip([source], copy_body(group.operation, arguments), strict=True))
        copy_ops(chain, known)
        return [known[op.operation.results[0]]]

    types = [op.operation.results[0].type]
    new = make_kernel("group", list(group.operation.operands), types, build, tag=group.tag)
    return _accepted(new, rw)


@dataclass(frozen=True)
class FuseAttention(PatternPass):
    """Attention as one `group` kernel, in forms that the target has a kernel for.

    min-queries: below it separate dots are faster, if keys and values are not contiguous along
    their rows.
    """

    name: ClassVar[str] = "fuse_attention"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_masks,
        find_kv_cache_attention,
        find_attention,
        find_attention_output,
        find_widened_attention,
        find_flash_decoding,
    )
    min_queries: int = option(1, "least queries of an attention whose rows are not contiguous")
    min_wide: int = option(1, "least queries of an attention in f32")
    flash: bool = option(False, "the kernel supports only a scale and a mask of the scores")
    splits: int = option(
        0, "parts of the keys that find_flash_decoding makes; 0: it is off, -1: as many as fit"
    )
    min_chunk: int = option(32, "least keys of a part, where splits is -1")
    max_splits: int = option(16, "most parts, where splits is -1")
    threshold: int = option(32, "least keys for a split, where splits is -1")
    fast_math: bool = option(False, "zeros instead of NaN may be selected in the result")


def _through(v: ir.Value) -> ir.Value:
    """Return the source of a chain of views and slices."""
    while is_a(v.owner, VIEWS_AND_SLICE):
        v = v.owner.operands[0]
    return v


# ---- rewriting ---------------------------------------------------------------------------------


def _factor(op: ir.Operation) -> tuple[ir.Value, float] | None:
    """Return (x, c) of a multiplication x * c by one number, else None."""
    if not is_a(op, Mul):
        return None
    a, b = op.operands
    for x, c in ((a, b), (b, a)):
        number = splat(c)
        if number is not None:
            return x, float(number)
    return None


def _absorbed(
    v: ir.Value, lane: int | None, whole: Collection[ir.Value] | None = None
) -> list[ir.Operation]:
    """Return the longest chain of views of a dot operand that the kernel can read through, the
    outermost last. With `whole`, include multiplications by one number, except those in it."""
    found: list[ir.Operation] = []
    at = v
    while not isinstance(at.owner, ir.Block):
        owner = at.owner.operation
        product = None if whole is None or at in whole else _factor(owner)
        if product is None and (not is_a(owner, _ABSORBED) or len(owner.operands) != 1):
            break
        found.append(owner)
        at = owner.operands[0] if product is None else product[0]
    while found:
        product = _factor(found[-1])
        source = found[-1].operands[0] if product is None else product[0]
        try:
            reader(v, lane, {source}, run=16)
            if _tells_sizes([source], found):
                break
        except Unreadable:
            pass
        found.pop()
    found.reverse()
    return found


def _tells_sizes(sources: Iterable[ir.Value], views: Iterable[ir.Operation]) -> bool:
    """Return whether the dynamic dims of views follow from the dims of their sources.

    A kernel knows only the dims of its operands. A reshape can have one new extent, as -1.
    """
    told = {d.expr for v in sources for d in TensorType.of(v).dims if isinstance(d, NamedExtent)}

    def is_told(d: NamedExtent) -> bool:
        space = d.expr.space
        atoms = (space.polynomial({(atom,): 1}) for atom in d.expr.atoms())
        return d.expr in told or all(x in told for x in atoms)

    def stated(o: ir.Operation) -> list[int]:
        if is_a(o, Reshape):
            own, out = TensorType.of(o.operands[0]).dims, TensorType.of(o.results[0]).dims
            new = [d for i, d in enumerate(out) if is_named(d) and own[i : i + 1] != (d,)]
            return new if len(new) > 1 else []
        return [*o.opview.starts, *o.opview.ends] if is_a(o, Slice) else []

    return all(is_told(d) for o in views for d in stated(o) if isinstance(d, NamedExtent))


def _turned(q: ir.Value) -> list[ir.Operation]:
    """Return the ops on queries around a concat (a rotary embedding), first to last; [] if none."""
    found: list[ir.Operation] = []

    def visit(v: ir.Value) -> None:
        owner = v.owner
        if isinstance(owner, ir.Block) or owner.operation in found:
            return
        if is_literal(owner) and is_uniform(owner.operation):
            found.append(owner.operation)
            return
        computes = is_a(owner, Concat) or is_a(owner, Pointwise)
        # angles are common to all heads, and each head's kernel would recompute them
        if is_a(owner, (Cos, Sin)) or (computes and not has_one_use(v)):
            return
        if computes or (is_a(owner, VIEWS_AND_SLICE) and len(owner.operands) == 1):
            for x in owner.operands:
                visit(x)
            found.append(owner.operation)

    visit(q)
    if not any(is_a(o, Concat) for o in found):
        return []
    inside = {r for o in found for r in o.results}
    try:
        read_queries(q, {x for o in found for x in o.operands if x not in inside})
    except Unreadable:
        return []
    return found


def _broadcasts_of(v: ir.Value) -> list[ir.Operation]:
    """Return the broadcasts behind another operand of the scores."""
    views: list[ir.Operation] = []
    while is_a(v.owner, BroadcastOp):
        if len(v.owner.operands) != 1:
            break
        views.append(v.owner.operation)
        v = v.owner.operands[0]
    views.reverse()
    return views


def _fused(op: Dot, rw: Rewriter, parts: Parts, tag: str) -> Replacement:
    """Build the `group` of an attention: its views, dots, scores and softmax."""
    first, guarded = parts.first, parts.guarded
    lane = TensorType.of(first.out).rank - 1
    turned = [] if rw.options.flash else _turned(first.a)
    values = _absorbed(op.b, None)
    constants = _constants(parts.scores)
    inside = {r for o in (*constants, *parts.scores) for r in o.results}
    spread: list[ir.Operation] = []
    for x in dict.fromkeys(x for o in parts.scores for x in o.operands if x not in inside):
        spread += [o for o in _broadcasts_of(x) if o not in spread]
    # do not decompose a multiplication with other users
    whole = {x for o in (*turned, *values, *spread, *parts.scores) for x in o.operands}
    whole.add(op.b)
    queries = turned or _absorbed(first.a, lane, whole)
    keys = _absorbed(first.b, None, whole)
    views = list(dict.fromkeys((*queries, *keys, *values, *spread)))
    products = [
        (o.results[0], found)
        for o in (*(queries if not turned else ()), *keys)
        if (found := _factor(o)) is not None
    ]
    scales = dict(products)
    factor = prod(c for _, (_, c) in products)
    weights = unguarded(op.a)[0]
    rounds = weights.owner.operation if weights != parts.softmax.out else None
    made = [first.operation, *parts.scores, parts.softmax.operation]
    made += [op.operation] if rounds is None else [rounds, op.operation]
    inside.update(r for o in (*views, *made) for r in o.results)
    reads = [
        x
        for o in views
        for x in ([scales[o.results[0]][0]] if o.results[0] in scales else o.operands)
    ]
    reads += [first.a, first.b, op.b, *(x for o in parts.scores for x in o.operands)]
    inputs = list(dict.fromkeys(x for x in reads if x not in inside))
    rw.merge_location(*made[:-1])

    def build(arguments: list[ir.Value]) -> Sequence[ir.Value]:
        known: Known = dict(zip(inputs, arguments, strict=True))
        copy_ops(constants, known)
        for o in views:
            if o.results[0] in scales:
                known[o.results[0]] = known[scales[o.results[0]][0]]
            else:
                copy_op(o, known)
        copy_op(first.operation, known)
        if factor != 1.0:
            known[first.out] = _scaled(rw, known[first.out], factor)
        copy_ops(made[1:-1], known)
        known[op.a] = known[weights]
        copy_op(op.operation, known)
        found = known[op.out]
        return [_without_nan(rw, found) if guarded else found]

    return _accepted(make_kernel("group", inputs, [op.out.type], build, tag=tag), rw)


def _accepted(group: ir.Operation, rw: Rewriter) -> Replacement:
    """Return the results of a group with a kernel; erase a group without, and return why."""
    try:
        form = attention_form(group.regions[0].blocks[0])
        few = not is_named(form.queries) and form.queries < rw.options.min_queries
        if few and form.rows is None:
            refusal = no_match("{} queries are few, their rows not contiguous", form.queries)
        elif _is_wide(group) and not is_named(form.queries) and form.queries < _least_wide(rw):
            refusal = no_match("{} queries of f32 are few", form.queries)
        elif not rw.options.flash or scale_and_mask(form) is not None:
            return list(group.results)
        else:
            refusal = no_match("the scores are more than scaled and masked")
    except Unreadable as e:
        refusal = no_match("{}", str(e))
    rw.keep()  # the built ops are inside of the group
    group.erase()
    return refusal


def _least_wide(rw: Rewriter) -> int:
    """Return the least queries of an attention in f32; parts of the keys fill a GPU, too."""
    return rw.options.min_wide if rw.options.splits in (0, 1) else 1


def _is_wide(group: ir.Operation) -> bool:
    """Return whether an attention reads f32; one of 16 bits may compute in f32."""
    kinds = {TensorType.of(x).dtype for x in group.operands}
    return dtypes.FLOAT in kinds and not any(t.is_float and t.size < 4 for t in kinds)


def _constants(scores: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Return the splat literals, and their views, that the scores' ops read, to be moved inside."""
    out: list[ir.Operation] = []
    for op in scores:
        for x in op.operands:
            chain: list[ir.Operation] = []
            if splat(x) is None or not TensorType.of(x).elements:
                continue
            while not is_literal(x):
                chain.append(x.owner.operation)
                x = x.owner.operands[0]
            for o in [x.owner.operation, *reversed(chain)]:
                if o not in out:
                    out.append(o)
    return out


def _scaled(rw: Rewriter, x: ir.Value, factor: float) -> ir.Value:
    t = TensorType.of(x)
    number = rw.literal(np.array(factor).astype(t.dtype.np))
    return rw.op("mul", x, rw.multibroadcast(number, t.dims))


def _without_nan(rw: Rewriter, x: ir.Value) -> ir.Value:
    t = TensorType.of(x)
    zero = rw.multibroadcast(rw.literal(np.array(0).astype(t.dtype.np)), t.dims)
    return rw.op("where", rw.op("isnan", x), zero, x)
