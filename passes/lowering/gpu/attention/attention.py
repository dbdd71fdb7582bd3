"""Attention on GPUs: parsing of its kernel, and iree_linalg_ext.attention with IREE's default
tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.dynamic_dims import UndecidedError, is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import normalize_axes
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.movement import Slice, slice_bounds
from mgx_mlir.dialects.migraphx.views import Reshape, Transpose
from mgx_mlir.hardware.architectures import vendor_of
from mgx_mlir.passes.analysis.access_maps import Unreadable
from mgx_mlir.passes.analysis.attention_form import AttentionForm, attention_form, scale_and_mask
from mgx_mlir.passes.lowering import kernel_region, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, Splat, View, behind_views, identity
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE
from mgx_mlir.passes.lowering.gpu.named_elements import NamedElements
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree.linalg_ext import attention
from mgx_mlir.passes.lowering.named_body import NamedBody
from mgx_mlir.passes.lowering.ops.movement import extract_slice
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, constant
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

T = TypeVar("T")
# lowest finite number of a mask: times log2(e) it is finite, and far below any score
_HIDES = -1e38


@dataclass(frozen=True)
class AttentionKernel:
    """A kernel that computes an attention."""

    op: ir.Operation
    body: ir.Block  # block of `op`, or the copy of it that names dynamic dims
    form: AttentionForm
    scale: float  # factor of the first matmul's results
    mask: ir.Value | None
    # body that names dynamic dims; None where dims are fixed and the kernel has its own region
    named: NamedBody | None = None

    @property
    def type(self) -> TensorType:
        """Return the type of the second matmul."""
        return TensorType.of(self.form.output)

    @property
    def leaves(self) -> list[ir.Value]:
        """Return the arguments of the body."""
        return list(self.body.arguments)

    @property
    def rounded(self) -> ir.Value:
        """Return the one conversion of the second matmul of `op`, or that matmul."""
        dots = [o for o in self.op.regions[0].blocks[0].operations if is_a(o, Dot)]
        output = dots[-1].operation.results[0]
        readers = [use.owner for use in output.uses]
        one = len(readers) == 1 and is_a(readers[0], Convert)
        return readers[0].results[0] if one else output

    @property
    def rounded_type(self) -> DType:
        """Return the type of `rounded`."""
        return TensorType.of(self.rounded).dtype

    def has_one_type(self) -> bool:
        """Return whether queries, keys and values have the type of the second matmul."""
        return all(TensorType.of(v).dtype is self.type.dtype for v in self.form.multiplied)

    def size(self, e: LoweringContext, d: int) -> Extent:
        """Return an extent: an int, or an MLIR value where it is dynamic."""
        return d if self.named is None else self.named.index(e, d)

    def sizes(self, e: LoweringContext) -> None:
        """Raise UndecidedError where no operand gives a dynamic extent."""
        for d in (*self.form.lead, self.form.queries, self.form.keys):
            self.size(e, d)

    def elements(self, e: LoweringContext, *, whole: bool = True) -> NamedElements:
        """Return the elements of its operands; whole: with their extents of 1."""
        tensors = (
            {a: e.tensor(a) for a in self.leaves} if self.named is None else self.named.tensors
        )
        return NamedElements(e, tensors, self.named, whole=whole)


def usual(d: int, number: int) -> int:
    """Return an extent, or the number that is assumed where it is dynamic."""
    return number if is_named(d) else d


def is_inside(value: ir.Value, block: ir.Block) -> bool:
    """Return whether a value is made in a block."""
    made = value.owner
    return not isinstance(made, ir.Block) and made.operation.block == block


def _read(
    op: ir.Operation, body: ir.Block, named: NamedBody | None = None
) -> AttentionKernel | Refusal:
    try:
        form = attention_form(body)
    except Unreadable as error:
        return Refusal(str(error))
    found = scale_and_mask(form)
    if found is None:
        return Refusal("its scores are not a multiple of the first matmul and a mask")
    return AttentionKernel(op, body, form, *found, named)


def read_site(site: GpuKernelSite) -> AttentionKernel | Refusal:
    """Parse an attention of static dims for which a rule may make a dispatch region."""
    if is_dynamic(site.body):
        return Refusal("its batch or lengths are dynamic dims")
    if not site.bounded:
        return Refusal("it has no dispatch region of its own")
    return _read(site.op, site.body)


def is_dynamic(body: ir.Block) -> bool:
    """Return whether a matmul of a kernel has dynamic dims."""
    dots = [o.operation for o in body.operations if is_a(o, Dot)]
    return not all(TensorType.of(v).is_static for o in dots for v in (*o.operands, *o.results))


def matched(
    e: LoweringContext, site: GpuKernelSite, plan_of: Callable[[AttentionKernel], T | Refusal]
) -> T | Refusal:
    """Read an attention of fixed or dynamic dims, and return what `plan_of` plans for it."""
    if not is_dynamic(site.body):
        k = read_site(site)
        return k if isinstance(k, Refusal) else plan_of(k)
    if not e.options.tiles or e.in_kernel:
        return Refusal("it is lowered without tiles")
    with e.kernel():
        tensors: dict[ir.Value, ir.Value] = {a: e.tensor(a) for a in site.body.arguments}
        named = NamedBody(e, site.op, site.body, tensors)
        try:
            k = _read(site.op, named.block, named)
            plan = k if isinstance(k, Refusal) else plan_of(k)
            if not isinstance(plan, Refusal):
                named.check_sizes()
                return plan
        except (Unreadable, UndecidedError) as error:
            plan = Refusal(str(error) or "its operands are not read by index maps")
    named.forget()
    return plan


def match(e: LoweringContext, site: GpuKernelSite) -> AttentionKernel | Refusal:
    """Take an attention that IREE's default tiles compute correctly."""
    k = read_site(site)
    if isinstance(k, Refusal):
        return k
    form = k.form
    # with few rows each lane would copy the repeated heads to scratch memory, unrolled
    few = form.queries < SIDE
    if few and form.queries > 1 and k.type.dtype.size == 2:
        return Refusal("IREE's tiles of 16 rows are wrong for 2 to 15 queries (hazard 39)")
    if few and any(_is_repeated(dot.owner.operands[1]) for dot in (form.product, form.output)):
        return Refusal("each lane would copy the keys that heads share")
    return k


def build(e: LoweringContext, site: GpuKernelSite, k: AttentionKernel) -> list[ir.Value]:
    """Build IREE's attention op without tiles."""
    return around(e, k, lambda _: _plain(e, k.form, k.scale, k.mask))


RULE = KernelRule("attention_op", (), match, build)


def _is_repeated(v: ir.Value) -> bool:
    """Return whether keys or values are shared by heads: a reshape of broadcast ones."""
    while is_a(v.owner, (Reshape, Transpose)):
        v = v.owner.operands[0]
    return is_a(v.owner, Multibroadcast)


def around(
    e: LoweringContext, k: AttentionKernel, second: Callable[[DType], Expr]
) -> list[ir.Value]:
    """Return a kernel's results: the second matmul that `second` makes, and its epilogue.

    second: takes the type that the matmul is rounded to. With fixed dims all is one region, with
    dynamic ones `second` makes its own.
    """
    ops = [o.operation for o in k.op.regions[0].blocks[0].operations]
    output, rounded = [o for o in ops if is_a(o, Dot)][-1].results[0], k.rounded

    def results() -> list[ir.Value]:
        if k.named is None:
            lower_operands(e, k)
        try:
            found = second(k.rounded_type)
        finally:
            if k.named is not None:
                k.named.forget()
        same = found.type.dtype is TensorType.of(output).dtype
        first = output if same else rounded
        e.bind(first, found)
        made = {first}
        for op in ops[:-1]:
            if not made.isdisjoint(op.operands):
                e.operation(op)
                made.update(op.results)
        return e.tensors(list(ops[-1].operands))

    if k.named is None:
        return in_region(e, k, results)
    with e.kernel():
        return results()


def in_region(
    e: LoweringContext, k: AttentionKernel, results: Callable[[], list[ir.Value]]
) -> list[ir.Value]:
    """Return a kernel's results, made in a dispatch region."""
    extents = [list(TensorType.of(r).dims) for r in k.op.results]
    with e.kernel():
        return kernel_region.dispatched(e, k.op, extents, results)


def lower_operands(e: LoweringContext, k: AttentionKernel) -> None:
    """Lower the operands of an attention's matmuls and its mask; the ops between are one op."""
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
    """Lower a kernel's operands to inspect their form; the ops are erased again."""
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
    """Return the second matmul, with IREE's default tiles."""
    queries, keys, values = map(e.expr, form.multiplied)
    rank = len(form.lead)
    lead = list(range(rank))
    m, k, n, d = rank, rank + 1, rank + 2, rank + 3
    # IREE takes the extents from these three
    operands = [
        _operand(e, queries, [*lead, m, k], needed=[*lead, m, k]),
        _operand(e, keys, [*lead, k, n], needed=[n]),
        _operand(e, values, [*lead, n, d], needed=[d]),
    ]
    t = TensorType.of(form.output)
    number = constant(scale, t.dtype).value
    extra = []
    if mask is not None:
        hides, places = _operand(e, e.expr(mask), [*lead, m, n])
        extra = [(bounded_mask(e, hides, TensorType.of(mask).dtype), places)]
    return Leaf(t, attention(e, operands, number, extra, [*lead, m, d], rank + 4, t))


def bounds_masks(e: LoweringContext, dtype: DType) -> bool:
    """Return whether masks of a type are bounded: on NVIDIA.

    IREE's kernels multiply masks by log2(e). The lowest f32 would become infinite, and a fully
    masked row NaN instead of equal weights.
    """
    return vendor_of(e.options.arch) == "nvidia" and dtype in (dtypes.FLOAT, dtypes.BF16)


def bounded(b: ArithScalars, x: TypedScalar) -> TypedScalar:
    """Return an element of a mask, or a finite one below all as a number that stays finite."""
    return b.select(b.cmp("gt", x, b.const(float("-inf"))), b.max(x, _HIDES), x)


def bounded_mask(e: LoweringContext, mask: ir.Value, dtype: DType) -> ir.Value:
    """Return a mask whose finite numbers stay finite in IREE's kernels."""
    if not bounds_masks(e, dtype):
        return mask
    return e.map_elements([mask], [dtype], TensorType.of(mask), bounded)


def _follows(op: ir.Operation, form: AttentionForm) -> bool:
    """Return whether an op depends on the result of the second matmul."""
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
    """Return a slice of a transposed tensor as the transpose of the slice, which is read in place.

    IREE would keep the transposed tensor in scratch memory. The same holds for a reshape before the
    slice that joins an axis to the sliced one, if the slice is one row of it. It also holds if axes
    of extent 1 are added to the slice, as for one token.
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
        places.insert(axis, -1)  # the axis of rows has extent 1, and no index
    if not isinstance(x, Leaf):
        return None
    # an axis without a dim is read at 0
    small = x.type.with_dims(1 if i is None else sizes[i] for i in at)
    first = [0 if i is None else offsets[i] for i in at]
    cut = extract_slice(e, x.value, first, list(small.dims))
    read = tuple(None if i is None or places[i] < 0 else places[i] for i in at)
    if joined is None and small.is_static and _adds_ones(small, read, t):
        return Leaf(t, views.reshape_tensor(e, cut, t, list(t.dims)))
    return View(t, Leaf(small, cut), read, list(t.dims))


def _adds_ones(small: TensorType, read: Sequence[int | None], t: TensorType) -> bool:
    """Return whether a tensor is read whole and in order, with axes of extent 1."""
    order = [i for i in read if i is not None]
    return small.rank != t.rank and order == sorted(order) and prod(small.dims) == prod(t.dims)


def _joined(
    v: ir.Value, axes: Sequence[int], offsets: Sequence[int], t: TensorType
) -> tuple[ir.Value, int, int] | None:
    """Return the tensor that a reshape joined to `v`, the sliced axis, and the row of a slice.

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
    """Return a tensor, and the op's dims of its axes.

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
