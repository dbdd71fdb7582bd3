"""The form of an attention kernel, recognised in its body, for the pass and the lowerings."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.normalize import Softmax
from mgx_mlir.dialects.migraphx.pointwise_binary import Add, Mul
from mgx_mlir.dialects.migraphx.views import NopView, ReshapeOp, Transpose
from mgx_mlir.passes.analysis.access_maps import (
    Reader,
    Unreadable,
    check_computable,
    reader,
    regrouped,
    varies_along,
)
from mgx_mlir.passes.analysis.constants import splat

_TYPES = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16)  # types of the softmax and the dots
CACHED = "kv_cache_attention"
TAGS = ("attention", CACHED)  # tags of groups that hold an attention
DECODING = "flash_decoding"  # tag of an attention over several parts of the keys
OPEN_LANES = 8  # run length in which rows of a dynamic length are read
KEY_BLOCK = 8  # keys whose scores are made together


@dataclass(frozen=True)
class Tile:
    """Reader of one operand of the scores or of the epilogue."""

    read: Reader
    turned: bool  # vectors are along the last axis, not along the queries
    uniform: bool = False  # all queries read the same elements


@dataclass(frozen=True)
class RowReaders:
    """Readers for one query at a time."""

    lanes: int  # neighbouring elements that are read together
    q: Reader  # queries along the width
    k: Reader  # keys along the width
    v: Reader  # values along the depth
    operands: dict[ir.Value, Reader]  # other operands along the keys or along the depth


@dataclass(frozen=True)
class AttentionForm:
    """An attention: g(softmax(f(q k^T)) v). Dynamic extents have names."""

    lead: tuple[int, ...]  # batch dims, heads among them
    queries: int
    keys: int
    width: int  # elements of a row of queries or keys
    depth: int  # elements of a row of values
    q: Reader  # queries (lead.., query, width), along the width
    q_run: int  # run length in which q can be read
    k: Reader  # keys (lead.., width, key), element by element
    v: Reader  # values (lead.., key, depth), element by element
    scores: list[ir.Operation]  # pointwise ops, in order, from the first matmul to the softmax
    product: ir.Value  # result of the first matmul
    weights: ir.Value  # input of the softmax
    softmax: list[ir.Operation]  # the softmax and, if there is one, the convert of its result
    output: ir.Value  # result of the second matmul
    epilogue: list[ir.Operation]  # pointwise ops behind the second matmul, in order
    operands: dict[ir.Value, Tile]  # inputs of `scores` and `epilogue` from outside of them
    final: ir.Value  # result of the epilogue
    out: TensorType  # type of the kernel's result
    # function from an index in `output` to the index in the kernel's result
    place: Callable[[Any, list[Any]], list[Any]]
    query_dim: int  # dim of the result that queries are in
    depth_dim: int  # dim of the result that the depth is in
    rows: RowReaders | None  # readers of whole rows, None where rows are not contiguous

    @property
    def multiplied(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The operands of the two dots: queries, transposed keys, values."""
        q, k = self.product.owner.operands
        return q, k, self.output.owner.operands[1]


def attention_form(block: ir.Block) -> AttentionForm:
    """Return the form of an attention kernel's body. Raises Unreadable where it has another."""
    ops = [o.operation for o in block.operations]
    yielded = list(ops[-1].operands)
    if len(yielded) != 1:
        raise Unreadable(f"{len(yielded)} results")
    leaves = set(block.arguments)
    softmaxes = [o for o in ops if is_a(o, Softmax)]
    dots = [o for o in ops if is_a(o, Dot)]
    if len(softmaxes) != 1 or len(dots) != 2:
        raise Unreadable("it is not one softmax between two dots")
    softmax, (first, second) = softmaxes[0], dots
    t, o = TensorType.of(first.results[0]), TensorType.of(second.results[0])
    middle = [softmax]
    shares = second.operands[0]
    if is_a(shares.owner, Convert):
        middle.append(shares.owner.operation)
        shares = shares.owner.operands[0]
    if shares != softmax.results[0] or not t.is_static or t.elements == 0:
        raise Unreadable("the second dot does not read the softmax, or dims are dynamic or empty")
    if not o.elements or t.dims[:-1] != o.dims[:-1]:
        raise Unreadable("the second dot has other rows than the first, or none")
    if any(TensorType.of(r).dtype not in _TYPES for d in middle for r in d.results):
        raise Unreadable(f"a softmax of {TensorType.of(middle[0].results[0]).dtype}")
    if softmax.opview.axis % t.rank != t.rank - 1 or t.rank < 2:
        raise Unreadable("the softmax is not over the keys")
    weights = softmax.operands[0]
    width = TensorType.of(first.operands[0]).dims[-1]
    operands: dict[ir.Value, Tile] = {}
    scores = _chain(weights, first.results[0], leaves, operands)
    final, views = _views_back(yielded[0])
    epilogue = _chain(final, second.results[0], leaves, operands)
    place, where = _placed(views, o.rank)
    q, q_run = read_queries(first.operands[0], leaves)
    rows = _row_readers(first, second, operands, leaves)
    if rows is None and (is_named(width) or is_named(o.dims[-1])):
        raise Unreadable("the head size is dynamic, and its rows are not contiguous")
    return AttentionForm(
        lead=t.dims[:-2], queries=t.dims[-2], keys=t.dims[-1], width=width, depth=o.dims[-1],
        q=q, q_run=q_run,
        k=reader(first.operands[1], None, leaves),
        v=reader(second.operands[1], None, leaves),
        scores=scores, product=first.results[0], weights=weights, softmax=middle,
        output=second.results[0], epilogue=epilogue, operands=operands, final=final,
        out=TensorType.of(yielded[0]), place=place, query_dim=where[0], depth_dim=where[1],
        rows=rows,
    )  # fmt: skip


def _row_readers(
    first: ir.Operation, second: ir.Operation, operands: Collection[ir.Value],
    leaves: Collection[ir.Value],
) -> RowReaders | None:  # fmt: skip
    """Return readers for one query at a time; None where rows are not contiguous."""
    t = TensorType.of(first.operands[1])
    extents = (t.dims[-2], TensorType.of(second.operands[1]).dims[-1])
    lanes: int | None = OPEN_LANES
    if not any(map(is_named, extents)):
        lanes = next((n for n in (16, 8, 4) if not any(d % n for d in extents)), None)
    if lanes is None:
        return None
    try:
        return RowReaders(
            lanes,
            q=reader(first.operands[0], t.rank - 1, leaves, run=lanes),
            k=reader(first.operands[1], t.rank - 2, leaves, run=lanes),
            v=reader(second.operands[1], t.rank - 1, leaves, run=lanes),
            operands={v: reader(v, t.rank - 1, leaves, run=lanes) for v in operands},
        )
    except Unreadable:
        return None


def read_queries(value: ir.Value, leaves: Collection[ir.Value]) -> tuple[Reader, int]:
    """Return the reader of queries along their width, and its run length."""
    lane = TensorType.of(value).rank - 1
    try:
        return reader(value, lane, leaves, run=16), 16
    except Unreadable:
        return reader(value, lane, leaves, run=8), 8


def _chain(
    value: ir.Value, start: ir.Value, leaves: Collection[ir.Value], operands: dict[ir.Value, Tile]
) -> list[ir.Operation]:
    """Return the pointwise ops from `start` to `value`; add their other operands to `operands`."""
    order: list[ir.Operation] = []
    dims = TensorType.of(start).dims

    def visit(v: ir.Value) -> None:
        if v == start or v in operands:
            return
        owner = v.owner
        if v in leaves or not is_a(owner, Pointwise) or TensorType.of(v).dims != dims:
            operands[v] = _tile(v, leaves)
            return
        check_computable(owner)
        if owner.operation not in order:
            for x in owner.operands:
                visit(x)
            order.append(owner.operation)

    visit(value)
    return order


def _tile(v: ir.Value, leaves: Collection[ir.Value]) -> Tile:
    """Return the reader of an operand of the scores, by vectors along the queries if possible."""
    rank = TensorType.of(v).rank
    if splat(v) is not None:
        return Tile(reader(v, None, leaves), False, True)
    try:
        # the last block of queries may start at any index
        queries = TensorType.of(v).dims[-2]
        aligned = not is_named(queries) and queries % 16 == 0
        read = reader(v, rank - 2, leaves, run=16 if aligned else 1)
        return Tile(read, False, not varies_along(v, rank - 2, leaves))
    except Unreadable:
        return Tile(reader(v, rank - 1, leaves, run=KEY_BLOCK), True)


def _views_back(value: ir.Value) -> tuple[ir.Value, list[ir.Operation]]:
    """Return the source of a chain of views, and the views in order."""
    views: list[ir.Operation] = []
    while not isinstance(value.owner, ir.Block):
        if not is_a(value.owner, (NopView, ReshapeOp, Transpose)):
            break
        views.append(value.owner.operation)
        value = value.owner.operands[0]
    views.reverse()
    return value, views


def _placed(
    views: list[ir.Operation], rank: int
) -> tuple[Callable[[Any, list[Any]], list[Any]], tuple[int, int]]:
    """Return coordinates in the last view of those in the first value, and query and depth axes.

    Raises Unreadable where a tile of queries and depth is not a rectangle in the result.
    """
    steps: list[Callable[[Any, list[Any]], list[Any]]] = []
    where = (rank - 2, rank - 1)
    for op in views:
        have, want = TensorType.of(op.operands[0]).dims, TensorType.of(op.results[0]).dims
        if is_a(op, NopView):
            continue
        if is_a(op, Transpose):
            permutation: list[int] = list(op.opview.permutation)
            steps.append(lambda k, at, p=permutation: [at[i] for i in p])
            where = (permutation.index(where[0]), permutation.index(where[1]))
            continue
        step, depth = regrouped(have, want, where[1])
        _, query = regrouped(have, want, where[0])
        if depth is None or query is None or depth == query:
            raise Unreadable("a tile of the result is no rectangle past a reshape")
        where = (query, depth)
        steps.append(step)

    def place(k: Any, at: list[Any]) -> list[Any]:
        for step in steps:
            at = step(k, at)
        return at

    out_rank = TensorType.of(views[-1].results[0]).rank if views else rank
    if where[1] != out_rank - 1:
        raise Unreadable("the depth is not the last dim of the result")
    return place, where


def scale_and_mask(form: AttentionForm) -> tuple[float, ir.Value | None] | None:
    """Return (s, m) of scores that are s * product + m, m perhaps absent; None for other scores."""
    scale, mask, at = 1.0, None, form.product
    for op in form.scores:
        others = [x for x in op.operands if x != at]
        if is_a(op, Mul) and mask is None and len(others) == 1:
            number = splat(others[0])
            if number is None:
                return None
            scale *= float(number)
        elif is_a(op, Add) and mask is None and len(others) == 1:
            mask = others[0]
        elif not is_a(op, Convert):
            return None
        at = op.results[0]
    return scale, mask
