"""Lowerings of reductions, softmax and local response normalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.core.op import Op
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.normalize import LogSoftmax, Lrn, Softmax
from mgx_mlir.dialects.migraphx.reduce import (
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from mgx_mlir.passes.lowering import host
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.contraction import pad_tensor
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, View, identity
from mgx_mlir.passes.lowering.gpu import rows as gpu_rows
from mgx_mlir.passes.lowering.ops.run_time_axes import chosen_dims, reduce_chosen
from mgx_mlir.passes.lowering.registry import Results, lowers
from mgx_mlir.passes.lowering.scalar import (
    ArithScalars,
    Number,
    ScalarLike,
    TypedScalar,
    computed,
    ordered,
    signless,
    widen,
)
from mgx_mlir.passes.lowering.views import reshape_tensor

LOG2_E = 1.4426950408889634
Combine = Callable[[ArithScalars, TypedScalar, TypedScalar], TypedScalar]

_COMBINE: dict[str, Combine] = {
    "add": lambda b, x, y: b.add(x, y),
    "mul": lambda b, x, y: b.mul(x, y),
    "max": lambda b, x, y: b.max(x, y),
    "min": lambda b, x, y: b.min(x, y),
    "and": lambda b, x, y: b.and_(x, y),
    "or": lambda b, x, y: b.or_(x, y),
}


def start_value(how: str, dtype: DType) -> Number:
    """Return the neutral element of a combination."""
    if how == "add" or how == "or":
        return 0
    if how == "mul":
        return 1
    if how == "and":
        return 1 if dtype.is_bool else -1
    return dtype.lowest() if how == "max" else dtype.highest()


def reduce_tensor(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    axes: Sequence[int],
    how: str,
    acc: DType,
    *,
    map_element: Callable[[ArithScalars, TypedScalar], TypedScalar] | None = None,
) -> ir.Value:
    """Reduce `axes` away (they are dropped); the sum is of `acc`.

    Adjacent reduced axes are collapsed into one first: two reduction loops are six times slower.
    """
    x, axes = _collapse_adjacent(e, x, sorted(axes))
    x = e.hidden(x)
    extents = e.extents(x)
    rank = len(extents)
    kept = [i for i in range(rank) if i not in axes]
    if _is_lone_row(e, x, dtype, axes):
        kind = ir.RankedTensorType.get(e.static_dims(extents[:-1]), signless(acc))
        again = partial(reduce_tensor, e, x, dtype, axes, how, acc, map_element=map_element)
        return gpu_rows.alone(e, kind, extents[:-1], again)
    init = e.fill([extents[i] for i in kept], acc, start_value(how, acc))
    d = [ir.AffineDimExpr.get(i) for i in range(rank)]
    maps = [ir.AffineMap.get_identity(rank), ir.AffineMap.get(rank, 0, [d[i] for i in kept])]
    iterators = [REDUCTION if i in axes else PARALLEL for i in range(rank)]
    b = ArithScalars(acc, acc)
    read = e.reader(x, dtype)

    def body(element: ir.Value, total: ir.Value) -> ir.Value:
        value = widen(read(TypedScalar(element, dtype)))
        if map_element is not None:
            value = map_element(b, value)
        if value.dtype is not acc:
            value = b.cast(value, acc)
        return _COMBINE[how](b, TypedScalar(total, acc), value).value

    found = e.generic([x], [init], maps, iterators, body)[0]
    if DYN in ir.RankedTensorType(x.type).shape and not e.in_region:
        # a reduction over dynamic dims does not compile when fused with its consumer
        return e.barrier(found, [extents[i] for i in kept])
    return found


def _is_lone_row(e: LoweringContext, x: ir.Value, dtype: DType, axes: Sequence[int]) -> bool:
    """Return whether a GPU reduces, outside of kernels, rows that waves do not divide."""
    own = ir.RankedTensorType(x.type).shape
    lone = not e.in_region and list(axes) == [len(own) - 1] and not dtype.is_bool
    return lone and gpu_rows.are_uneven(e.options, own)


def _collapse_adjacent(
    e: LoweringContext, x: ir.Value, axes: list[int]
) -> tuple[ir.Value, list[int]]:
    kind = ir.RankedTensorType(x.type)
    if not any(a + 1 in axes for a in axes):
        return x, axes
    groups: list[list[int]] = []
    out: list[int] = []
    for i in range(kind.rank):
        if i in axes and groups and groups[-1][-1] in axes:
            groups[-1].append(i)
            continue
        if i in axes:
            out.append(len(groups))
        groups.append([i])
    dims: list[int] = []
    for g in groups:
        n = 1
        for i in g:
            n = DYN if DYN in (n, kind.shape[i]) else n * kind.shape[i]
        dims.append(n)
    flat = tensor.CollapseShapeOp(
        ir.RankedTensorType.get(dims, kind.element_type), x, groups
    ).result
    return flat, out


def kept_view(reduced: Expr, t: TensorType, axes: Sequence[int], extents: list[Extent]) -> View:
    """Return a reduced tensor with its reduced axes back as extents of 1."""
    kept = [i for i in range(t.rank) if i not in axes]
    return View(t, reduced, tuple(kept), extents)


def _kept(e: LoweringContext, stored: ir.Value, t: TensorType, axes: Sequence[int]) -> Expr:
    """Return the result of a reduction with `keepdims`: a view of the reduced tensor."""
    have = e.extents(stored)
    kept = iter(have)
    extents: list[Extent] = [1 if i in axes else next(kept) for i in range(t.rank)]
    dims = tuple(d for i, d in enumerate(t.dims) if i not in axes)
    leaf = Leaf(TensorType(t.dtype, dims), stored)
    view = kept_view(leaf, t, axes, extents)
    view.make = lambda: _with_ones(e, stored, t, axes, extents)
    return view


def _with_ones(
    e: LoweringContext, stored: ir.Value, t: TensorType, axes: Sequence[int], extents: list[Extent]
) -> ir.Value:
    """Return a reduced tensor with extents of 1 at the reduced axes.

    In a kernel several dynamic dims are no reshape of the flow dialect, which has no code there.
    """
    if not e.in_region or list(t.dims).count(DYN) < 2:
        return reshape_tensor(e, stored, t, extents)
    groups: list[list[int]] = [[]]
    for i in range(t.rank):
        if i not in axes and any(k not in axes for k in groups[-1]):
            groups.append([])
        groups[-1].append(i)
    kind = ir.RankedTensorType.get(
        e.static_dims(extents), ir.RankedTensorType(stored.type).element_type
    )
    return tensor.ExpandShapeOp(
        kind, stored, groups, e.dynamic_values(extents), e.static_dims(extents)
    ).result


def _stored(e: LoweringContext, value: ir.Value, acc: DType, t: TensorType) -> ir.Value:
    """Return an accumulated tensor in the type of the result."""
    if acc is t.dtype:
        return value
    kind = TensorType(t.dtype, tuple(ir.RankedTensorType(value.type).shape))

    def body(b: ArithScalars, x: TypedScalar) -> TypedScalar:
        return x if t.dtype.is_low_precision else b.cast(x, t.dtype)

    return e.map_elements([value], [acc], kind, body)


def _axes(e: LoweringContext, op: Op, t: TensorType) -> list[int] | None:
    """Return the axes that are reduced.

    All of them where none is named; None: known at run time.
    """
    axes: Sequence[Extent] = op.axes
    if op.axes_tensor is not None:
        if e.elements(op.axes_tensor) is None:
            return None
        axes = host.extents_of(e, op.axes_tensor)
    known = [a % t.rank for a in axes if isinstance(a, int)]
    if len(known) < len(axes):
        return None
    return known or list(range(t.rank))


# combination of elements, by op
_HOW: dict[type[Op], str] = {
    ReduceSum: "add", ReduceMean: "add", ReduceMax: "max", ReduceMin: "min", ReduceProd: "mul",
    ReduceAll: "and", ReduceAny: "or",
}  # fmt: skip


@lowers(*_HOW)
def reduction(op: Op, ins: tuple[ir.Value, ir.Value | None], e: LoweringContext) -> Results:
    """Combine the elements along the reduced axes; logical reductions combine bools."""
    x, how, is_mean = ins[0], _HOW[type(op)], isinstance(op, ReduceMean)
    t, out = TensorType.of(op.operation.operands[0]), TensorType.of(op.out)
    axes, dtype = _axes(e, op, t), t.dtype
    if how in ("and", "or"):
        truth = TensorType(dtypes.BOOL, tuple(ir.RankedTensorType(x.type).shape))
        x = e.map_elements([x], [dtype], truth, lambda b, v: b.cast(v, dtypes.BOOL))
        dtype = dtypes.BOOL
    acc = computed(dtype)
    if is_mean and dtype.is_integer:  # the sum of narrow integers would wrap
        acc = dtypes.UINT64 if dtype.is_unsigned else dtypes.INT64
    if axes is None:
        chosen, start = chosen_dims(e, op.axes_tensor, t.rank), start_value(how, acc)
        found, count = reduce_chosen(e, x, dtype, chosen, _COMBINE[how], acc, start)
        return _stored(e, _divide_by_count(e, found, acc, [count]) if is_mean else found, acc, out)
    reduce = _on_gpu if e.options.target == "gpu" else reduce_tensor
    x, flat = _collapse_adjacent(e, x, sorted(axes))

    def reduced() -> ir.Value:
        found = reduce(e, x, dtype, flat, how, acc)
        if is_mean:
            found = _divide_by_count(e, found, acc, [e.extent(x, a) for a in flat])
        return _stored(e, found, acc, out)

    if _is_lone_row(e, x, dtype, flat):
        dims = e.extents(x)[:-1]
        kind = ir.RankedTensorType.get(e.static_dims(dims), signless(out.dtype))
        return _kept(e, gpu_rows.alone(e, kind, dims, reduced), out, axes)
    return _kept(e, reduced(), out, axes)


def _on_gpu(
    e: LoweringContext, x: ir.Value, dtype: DType, axes: Sequence[int], how: str, acc: DType
) -> ir.Value:
    """Reduce as reduce_tensor for GPUs: narrow integers in 32 bits, as IREE crashes on them
    along dynamic dims.
    """
    narrow = acc.is_integer and not acc.is_bool and acc.bits < 32
    wide = (dtypes.UINT32 if acc.is_unsigned else dtypes.INT32) if narrow else acc
    if how in ("max", "min") and not wide.is_bool and wide is not dtypes.UINT32:
        found = _extreme(e, x, dtype, axes, how, wide)
    else:
        found = reduce_tensor(e, x, dtype, axes, how, wide)
    if wide is acc:
        return found
    shape = TensorType(acc, tuple(ir.RankedTensorType(found.type).shape))
    return e.map_elements([found], [wide], shape, lambda b, v: b.cast(v, acc))


def _extreme(
    e: LoweringContext, x: ir.Value, dtype: DType, axes: Sequence[int], how: str, acc: DType
) -> ir.Value:
    """Return the extreme by integer keys in the elements' order, with NaN beyond all others.

    A GPU's float instruction drops NaN. For integers along dynamic dims IREE uses the neutral
    element of unsigned 32-bit or signed 64-bit ones (hazard 42), so the keys have these types.
    """
    signed = dtypes.INT64 if acc.bits == 64 else dtypes.INT32
    kind = dtypes.INT64 if acc.bits == 64 else dtypes.UINT32
    sign = 1 << (acc.bits - 1)
    beyond = int(start_value("min" if how == "max" else "max", kind))

    def moved(b: ArithScalars, bits: TypedScalar, to: DType) -> TypedScalar:
        """Convert between the order of unsigned and of signed integers."""
        same = acc.is_unsigned == kind.is_unsigned
        found = b.bitcast(bits, to)
        return found if same else b.xor(found, sign)

    def key(b: ArithScalars, value: TypedScalar) -> TypedScalar:
        if value.dtype.is_integer:
            own = dtypes.UINT64 if acc.is_unsigned else signed
            return moved(b, b.cast(value, own), kind)
        found = moved(b, ordered(b, b.bitcast(value, signed), signed), kind)
        return b.select(b.is_nan(value), b.const(beyond, kind), found)

    def back(b: ArithScalars, found: TypedScalar) -> TypedScalar:
        # the extreme of an empty tensor, which is no key of an element
        least = key(b, b.const(start_value(how, acc), acc))
        bits = moved(b, getattr(b, how)(found, least), dtypes.UINT64 if acc.is_unsigned else signed)
        return b.bitcast(ordered(b, bits, signed) if acc.is_float else bits, acc)

    found = reduce_tensor(e, x, dtype, axes, how, kind, map_element=key)
    shape = TensorType(acc, tuple(ir.RankedTensorType(found.type).shape))
    return e.map_elements([found], [kind], shape, back)


def _divide_by_count(
    e: LoweringContext, total: ir.Value, acc: DType, extents: Sequence[Extent]
) -> ir.Value:
    """Return each element over the product of `extents`."""

    count = e.product(extents)
    shape = TensorType(acc, tuple(ir.RankedTensorType(total.type).shape))
    if isinstance(count, int):
        divisor: ScalarLike = count
        if acc.is_integer and count == 0:
            return total  # the mean of nothing: the empty sum
    else:
        i64 = ir.IntegerType.get_signless(64)
        number = TypedScalar(arith.IndexCastOp(i64, count).result, dtypes.INT64)
        divisor = ArithScalars(acc, acc).cast(number, acc)
        if acc.is_integer:
            divisor = ArithScalars(acc, acc).max(divisor, 1)

    # a division by a number other than a power of two is ten GPU instructions
    once = e.options.target == "gpu" and acc is dtypes.FLOAT
    factor = 1 / count if once and isinstance(count, int) and count else None

    def body(b: ArithScalars, x: TypedScalar) -> TypedScalar:
        return b.div(x, divisor) if factor is None else b.mul(x, factor)

    return e.map_elements([total], [acc], shape, body)


# ---- softmax -------------------------------------------------------------------------------------


def _made(e: LoweringContext, x: ir.Value) -> ir.Value:
    """Materialise rows of dynamic length.

    Outside of regions a GPU's kernel of their sums would keep computed elements of a row in a
    dynamically sized array, which LLVM cannot allocate.
    """
    kind = ir.RankedTensorType(x.type)
    if kind.has_static_shape or not _stands_alone(e):
        return x
    return e.barrier(x, e.extents(x))


def _stands_alone(e: LoweringContext) -> bool:
    """Return whether IREE decides the fusion for a GPU."""
    return e.options.target == "gpu" and not e.in_region


def _power(e: LoweringContext, b: ArithScalars, v: TypedScalar, most: TypedScalar) -> TypedScalar:
    """Return exp(v - most)."""
    below = b.sub(v, most)
    if e.options.target != "gpu" or below.dtype is not dtypes.FLOAT:
        return b.exp(below)
    # a GPU has an instruction for 2^x, and needs thirteen for e^x; rounding the product changes
    # the sum by at most 2e-8
    return b.exp2(b.mul(below, LOG2_E))


def _shifted_exp(
    e: LoweringContext, x: ir.Value, t: TensorType, axis: int
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """(row maximum, exp(x - maximum), its row sum), all in the computed type."""
    acc = computed(t.dtype)
    rank = t.rank
    rows = tuple(i for i in range(rank) if i != axis)
    extents = e.extents(x)
    wide = TensorType(acc, t.dims)

    def power(b: ArithScalars, v: TypedScalar, m: TypedScalar) -> TypedScalar:
        return _power(e, b, v, m)

    x = _made(e, x)
    peak = reduce_tensor(e, x, t.dtype, [axis], "max", acc)
    powers = e.map_elements(
        [x, peak],
        [t.dtype, acc],
        wide,
        power,
        maps=[identity(rank), rows],
        extents=extents,
    )
    if t.is_static or not _stands_alone(e):
        return peak, powers, reduce_tensor(e, powers, acc, [axis], "add", acc)
    # hazard 43: the sum recomputes the powers, as a kernel with both is refused
    total = _sum_of_powers(e, x, peak, t, axis)
    return peak, powers, e.barrier(total, [extents[i] for i in rows])


def _sum_of_powers(
    e: LoweringContext, x: ir.Value, peak: ir.Value, t: TensorType, axis: int
) -> ir.Value:
    """Return the sum of exp(x - peak), which it computes by itself."""
    acc, rank, extents = computed(t.dtype), t.rank, e.extents(x)
    rows = [i for i in range(rank) if i != axis]
    d = [ir.AffineDimExpr.get(i) for i in range(rank)]
    kept = ir.AffineMap.get(rank, 0, [d[i] for i in rows])
    b = ArithScalars(acc, acc)
    read = e.reader(x, t.dtype)

    def add(element: ir.Value, most: ir.Value, sum_: ir.Value) -> ir.Value:
        v, m = widen(read(TypedScalar(element, t.dtype))), TypedScalar(most, acc)
        return b.add(TypedScalar(sum_, acc), _power(e, b, v, m)).value

    return e.generic(
        [x, peak],
        [e.fill([extents[i] for i in rows], acc, 0)],
        [ir.AffineMap.get_identity(rank), kept, kept],
        [REDUCTION if i == axis else PARALLEL for i in range(rank)],
        add,
    )[0]


@lowers(Softmax, LogSoftmax)
def softmax(op: Softmax | LogSoftmax, ins: Sequence[ir.Value], e: LoweringContext) -> ir.Value:
    """exp(x - max) / sum, or x - max - log(sum); 16- and 8-bit floats through f32."""
    x, t, is_log = ins[0], TensorType.of(op.out), isinstance(op, LogSoftmax)
    if t.rank == 0:
        return e.fill([], t.dtype, 0 if is_log else 1)
    axis, acc = op.axis % t.rank, computed(t.dtype)
    rows = tuple(i for i in range(t.rank) if i != axis)
    # a division is ten GPU instructions, so divide once per row, not per element
    once = e.options.target == "gpu"

    def divided(b: ArithScalars, v: TypedScalar, s: TypedScalar) -> TypedScalar:
        return b.mul(v, b.div(1, s)) if once else b.div(v, s)

    def share(b: ArithScalars, v: TypedScalar, m: TypedScalar, s: TypedScalar) -> TypedScalar:
        return divided(b, _power(e, b, v, m), s)

    def less(b: ArithScalars, v: TypedScalar, m: TypedScalar, s: TypedScalar) -> TypedScalar:
        return b.sub(b.sub(v, m), b.log(s))

    if e.in_region and axis == t.rank - 1 and gpu_rows.are_uneven(e.options, t.dims):
        # parts of a row compute its powers again: together they have no room in registers
        peak = reduce_tensor(e, x, t.dtype, [axis], "max", acc)
        total = _sum_of_powers(e, x, peak, t, axis)
        kinds, body = [t.dtype, acc, acc], less if is_log else share
        maps = [identity(t.rank), rows, rows]
        return e.map_elements([x, peak, total], kinds, t, body, maps=maps, extents=e.extents(x))
    peak, powers, total = _shifted_exp(e, x, t, axis)
    values, body = ([x, peak, total], less) if is_log else ([powers, total], divided)
    kinds = [t.dtype if is_log else acc, *[acc] * (len(values) - 1)]
    maps = [identity(t.rank), *[rows] * (len(values) - 1)]
    return e.map_elements(values, kinds, t, body, maps=maps, extents=e.extents(x))


@lowers(Lrn)
def lrn(op: Lrn, ins: Sequence[ir.Value], e: LoweringContext) -> ir.Value:
    """x / (bias + alpha / size * sum of squares over `size` channels) ^ beta."""
    x, t = ins[0], TensorType.of(op.out)
    acc = computed(t.dtype)
    size, alpha, beta, bias = op.size, op.alpha, op.beta, op.bias
    low = (size - 1) // 2
    extents = e.extents(x)
    dims = list(t.dims)
    if dims[1] != DYN:
        dims[1] += size - 1
    lows: list[Extent] = [0] * t.rank
    highs: list[Extent] = [0] * t.rank
    lows[1], highs[1] = low, size - 1 - low
    padded = pad_tensor(e, x, lows, highs, dims, 0)
    rank = t.rank
    d = [ir.AffineDimExpr.get(i) for i in range(rank + 1)]
    maps = [
        ir.AffineMap.get(rank + 1, 0, [d[0], d[1] + d[rank], *d[2:rank]]),
        ir.AffineMap.get(rank + 1, 0, [d[rank]]),
        ir.AffineMap.get(rank + 1, 0, d[:rank]),
    ]
    b = ArithScalars(acc, acc)

    def body(element: ir.Value, _: ir.Value, total: ir.Value) -> ir.Value:
        v = widen(TypedScalar(element, t.dtype))
        return b.add(TypedScalar(total, acc), b.mul(v, v)).value

    squares = e.generic(
        [padded, e.empty([size], acc)],
        [e.fill(extents, acc, 0)],
        maps,
        [PARALLEL] * rank + [REDUCTION],
        body,
    )[0]

    def scaled(s: ArithScalars, v: TypedScalar, total: TypedScalar) -> TypedScalar:
        base = s.add(s.mul(total, alpha / size), bias)
        return s.div(v, s.pow(base, beta))

    return e.map_elements([x, squares], [t.dtype, acc], t, scaled, extents=extents)
