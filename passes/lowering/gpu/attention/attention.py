"""Attention on GPUs: iree_linalg_ext.attention, which the compiler tiles over the keys."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import normalize_axes
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.movement import Slice, slice_bounds
from mgx_mlir.dialects.migraphx.views import Reshape, Transpose
from mgx_mlir.passes.analysis.access_maps import Unreadable
from mgx_mlir.passes.analysis.attention_form import AttentionForm, attention_form, scale_and_mask
from mgx_mlir.passes.lowering import kernel_region, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Leaf, Splat, View, behind_views, identity
from mgx_mlir.passes.lowering.gpu.products.mma import SIDE
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree.linalg_ext import attention
from mgx_mlir.passes.lowering.ops.movement import extract_slice
from mgx_mlir.passes.lowering.scalar import constant
from mgx_mlir.passes.lowering.select import KernelRule, Refusal


@dataclass(frozen=True)
class AttentionKernel:
    """An attention of fixed dims that has a dispatch region of its own, and what it computes."""

    op: ir.Operation
    body: ir.Block
    form: AttentionForm
    scale: float
    mask: ir.Value | None

    @property
    def type(self) -> TensorType:
        """Return the type of the second matmul."""
        return TensorType.of(self.form.output)

    def has_one_type(self) -> bool:
        """Return whether queries, keys and values have the type of the second matmul."""
        return all(TensorType.of(v).dtype is self.type.dtype for v in self.form.multiplied)


def read(op: ir.Operation, body: ir.Block) -> AttentionKernel | Refusal:
    """Read the attention that a kernel computes."""
    try:
        form = attention_form(body)
    except Unreadable as error:
        return Refusal(str(error))
    found = scale_and_mask(form)
    if found is None:
        return Refusal("its scores are not a multiple of the first matmul and a mask")
    return AttentionKernel(op, body, form, *found)


def read_site(site: GpuKernelSite) -> AttentionKernel | Refusal:
    """Read the attention of a kernel for which a rule may make a dispatch region."""
    if not site.bounded:
        return Refusal("it has no dispatch region of its own")
    return read(site.op, site.body)


def match(e: LoweringContext, site: GpuKernelSite) -> AttentionKernel | Refusal:
    """Take an attention that IREE tiles right by its own choice."""
    k = read_site(site)
    if isinstance(k, Refusal):
        return k
    form = k.form
    # with few rows each lane would copy the repeated heads into memory of its own, unrolled
    few = form.queries < SIDE
    if few and form.queries > 1 and k.type.dtype.size == 2:
        return Refusal("IREE's tiles of 16 rows are wrong for 2 to 15 queries (hazard 39)")
    if few and any(_is_repeated(dot.owner.operands[1]) for dot in (form.product, form.output)):
        return Refusal("each lane would copy the keys that heads share")
    return k


def build(e: LoweringContext, site: GpuKernelSite, k: AttentionKernel) -> list[ir.Value]:
    """Build IREE's attention op without tiles."""
    return around(e, k, lambda: _plain(e, k.form, k.scale, k.mask))


RULE = KernelRule("attention_op", (), match, build)


def _is_repeated(v: ir.Value) -> bool:
    """Return whether keys or values are shared by heads: a reshape of broadcast ones."""
    while is_a(v.owner, (Reshape, Transpose)):
        v = v.owner.operands[0]
    return is_a(v.owner, Multibroadcast)


def around(e: LoweringContext, k: AttentionKernel, second: Callable[[], Expr]) -> list[ir.Value]:
    """Return a kernel's results: a region of what is ahead of the second matmul, the matmul that
    `second` makes, and what follows it."""
    ops = [o.operation for o in k.body.operations]

    def results() -> list[ir.Value]:
        lower_operands(e, k)
        e.bind(k.form.output, second())
        for op in ops:
            if _follows(op, k.form):
                e.operation(op)
        return e.tensors(list(ops[-1].operands))

    return in_region(e, k, results)


def in_region(
    e: LoweringContext, k: AttentionKernel, results: Callable[[], list[ir.Value]]
) -> list[ir.Value]:
    """Return a kernel's results, made in a dispatch region."""
    extents = [list(TensorType.of(r).dims) for r in k.op.results]
    with e.kernel():
        return kernel_region.dispatched(e, k.op, extents, results)


def lower_operands(e: LoweringContext, k: AttentionKernel) -> None:
    """Lower what an attention's matmuls and mask read: what lies between them is one op."""
    first, second = k.form.product.owner, k.form.output.owner
    inner = {first.operation, second.operation, *k.form.scores, *k.form.softmax}
    for view in k.body.operations:
        op = view.operation
        if op in inner or _follows(op, k.form):
            continue
        if is_a(op, Yield):
            break
        cut = _sliced_view(e, op) if is_a(op, Slice) else None
        if cut is None:
            e.operation(op)
        else:
            e.bind(op.results[0], cut)


@contextmanager
def drafted(e: LoweringContext, k: AttentionKernel) -> Generator[None]:
    """Lower a kernel's operands for a look at what they are; all of it is dropped again."""
    draft = ir.Operation.create("mgx.draft", regions=1)
    inside, e.in_region = e.in_region, True
    try:
        with ir.InsertionPoint(draft.regions[0].blocks.append()), e.inner_scope(), e.kernel():
            lower_operands(e, k)
            yield
    finally:
        e.in_region = inside
        draft.erase()


def _plain(e: LoweringContext, form: AttentionForm, scale: float, mask: ir.Value | None) -> Expr:
    """Return the second product, in tiles of the compiler's."""
    queries, keys, values = map(e.expr, form.multiplied)
    rank = len(form.lead)
    lead = list(range(rank))
    m, k, n, d = rank, rank + 1, rank + 2, rank + 3
    # the compiler takes the extents from these three
    operands = [
        _operand(e, queries, [*lead, m, k], needed=[*lead, m, k]),
        _operand(e, keys, [*lead, k, n], needed=[n]),
        _operand(e, values, [*lead, n, d], needed=[d]),
    ]
    t = TensorType.of(form.output)
    number = constant(scale, t.dtype).value
    extra = [] if mask is None else [_operand(e, e.expr(mask), [*lead, m, n])]
    return Leaf(t, attention(e, operands, number, extra, [*lead, m, d], rank + 4, t))


def _follows(op: ir.Operation, form: AttentionForm) -> bool:
    """Return whether an op computes with the second product."""
    if is_a(op, Yield):
        return False
    seen = [op]
    while seen:
        for x in seen.pop().operands:
            if x == form.output:
                return True
            if not isinstance(x.owner, ir.Block):
                seen.append(x.owner.operation)
    return False


def _sliced_view(e: LoweringContext, op: ir.Operation) -> Expr | None:
    """Return a slice of a transposed tensor as the transposed slice: it is read where it stands.

    The compiler would keep the tensor between the two in scratch memory. So it would where a
    reshape joins an axis to the sliced one ahead of the slice, which then takes one row of it, or
    where axes of extent 1 are added to the slice, as of one token.
    """
    if len(op.operands) > 1:
        return None
    t, own = TensorType.of(op.results[0]), TensorType.of(op.operands[0]).dims
    offsets = [0] * t.rank
    slice_ = op.opview
    axes = normalize_axes(slice_.axes, t.rank)
    for axis, start, end in zip(axes, slice_.starts, slice_.ends, strict=True):
        offsets[axis], _ = slice_bounds(start, end, own[axis])
    x, at = behind_views(e.expr(op.operands[0]))
    sizes, places = list(t.dims), list(range(t.rank))
    joined = _joined(op.operands[0], axes, offsets, t)
    if joined is not None:
        ahead, axis, row = joined
        x, at = behind_views(e.expr(ahead))
        offsets[axis : axis + 1] = [row, 0]
        sizes.insert(axis, 1)
        places.insert(axis, -1)  # nothing says where in the axis of rows: it is one
    if not isinstance(x, Leaf):
        return None
    # what no dim says where, is read at 0
    small = x.type.with_dims(1 if i is None else sizes[i] for i in at)
    first = [0 if i is None else offsets[i] for i in at]
    cut = extract_slice(e, x.value, first, list(small.dims))
    read = tuple(None if i is None or places[i] < 0 else places[i] for i in at)
    if joined is None and small.is_static and _adds_ones(small, read, t):
        return Leaf(t, views.reshape_tensor(e, cut, t, list(t.dims)))
    return View(t, Leaf(small, cut), read, list(t.dims))


def _adds_ones(small: TensorType, read: Sequence[int | None], t: TensorType) -> bool:
    """Return whether what is read of a tensor is all of it, in order, with axes of extent 1."""
    order = [i for i in read if i is not None]
    return small.rank != t.rank and order == sorted(order) and prod(small.dims) == prod(t.dims)


def _joined(
    v: ir.Value, axes: Sequence[int], offsets: Sequence[int], t: TensorType
) -> tuple[ir.Value, int, int] | None:
    """Return what a reshape joined to `v`, the sliced axis, and the row that a slice takes of it.

    None where `v` is no [.., rows * length, ..] of [.., rows, length, ..], or the slice of type `t`
    takes no whole row.
    """
    if len(axes) != 1 or not is_a(v.owner, Reshape):
        return None
    (axis,), source = axes, v.owner.operands[0]
    dims, length = TensorType.of(source).dims, t.dims[axis]
    own = list(TensorType.of(v).dims)
    if length <= 0 or offsets[axis] % length or own[axis] % length:
        return None
    if list(dims) != [*own[:axis], own[axis] // length, length, *own[axis + 1 :]]:
        return None
    return source, axis, offsets[axis] // length


def _operand(
    e: LoweringContext, x: Expr, dims: list[int], needed: Sequence[int] = ()
) -> tuple[ir.Value, list[int]]:
    """Return a tensor, and which of the op's dims each of its own is.

    The dims `needed` are always among the tensor's.
    """
    whole = x
    x, at = behind_views(x)
    absent = [i for i, dim in enumerate(dims) if dim in needed and i not in at]
    if any(whole.type.dims[i] != 1 for i in absent):
        x, at, absent = whole, identity(whole.type.rank), []
    if isinstance(x, Splat):
        value = e.fill(x.extents, x.type.dtype, x.number)
    else:
        value = e.tensor(x)
    extents = {place: x.type.dims[i] for i, place in enumerate(at) if place is not None}
    places = list(extents)
    if absent or len(places) < len(at):
        for i in absent:
            before = (j for j, place in enumerate(places) if place > i)
            places.insert(next(before, len(places)), i)
        small = x.type.with_dims(extents.get(place, 1) for place in places)
        value = views.reshape_tensor(e, value, small, list(small.dims))
    if x.type.dtype.is_bool:
        value = e.cast_tensor(value, dtypes.BOOL, dtypes.INT8)
    return value, [dims[place] for place in places]
