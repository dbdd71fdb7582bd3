"""Per-lane layout of blocked attention: which fragments a lane holds, and the operations on them.

Matrix instructions are CDNA's 16x16 ones, with transposed results: a lane has four adjacent keys of
one query, and four lanes share 16 keys of a query. Operands have the layout of the instructions of
depth 32: eight adjacent elements per lane. No data moves between the two matmuls. Of 32 keys a lane
has the weights of four of the first 16 and of four of the others. These are its eight operands of
one deep instruction, and values are in the LDS in that order of keys. Instructions of depth 16 take
the same eight in two halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE
from mgx_mlir.passes.lowering.scalar import constant_of

RUN = 8  # adjacent elements of an operand that a lane reads
_FOUR = 4  # adjacent elements of a result per lane; lanes that share a row
DEEP = _FOUR * RUN  # elements that the lanes of a row read of an operand


@dataclass(frozen=True)
class Layout:
    """Distribution of a matrix over waves and lanes.

    Each list has one number for rows and one along them. An index is made of the wave, then
    `batch`, then `thread`, then `element`.
    """

    batch: tuple[int, ...]
    thread: tuple[int, ...]
    element: tuple[int, ...]
    thread_strides: tuple[int, ...]
    waves: tuple[int, ...] = (1, 1)
    wave_strides: tuple[int, ...] = (0, 0)

    @property
    def dims(self) -> list[int]:
        """Return the extents of the whole."""
        each = zip(self.waves, self.batch, self.thread, self.element, strict=True)
        return [a * b * c * d for a, b, c, d in each]

    @property
    def lane(self) -> list[int]:
        """Return the extents of a lane's share, as IREE lays them out."""
        return [*self.batch, *(1 for _ in self.batch), *self.element]

    @property
    def attribute(self) -> ir.Attribute:
        """Return IREE's attribute."""
        names = ("subgroup_tile", "batch_tile", "outer_tile", "thread_tile", "element_tile",
                 "subgroup_strides", "thread_strides")  # fmt: skip
        each = (self.waves, self.batch, [1] * len(self.batch), self.thread, self.element,
                self.wave_strides, self.thread_strides)  # fmt: skip
        said = ", ".join(f"{n} = {[*v]}" for n, v in zip(names, each, strict=True))
        return ir.Attribute.parse(f"#iree_vector_ext.nested_layout<{said}>")


def operand_layout(rows: int, length: int, run: int = RUN, waves: int = 0) -> Layout:
    """Return how lanes hold an operand of a matmul; all waves the same, or each its rows."""
    own, strides = ((waves, 1), (1, 0)) if waves else ((1, 1), (0, 0))
    batch = (rows // (max(waves, 1) * SIDE), length // (_FOUR * run))
    return Layout(batch, (SIDE, _FOUR), (1, run), (1, SIDE), own, strides)


def result_layout(rows: int, length: int, waves: int) -> Layout:
    """Return how lanes hold the result of a matmul."""
    return operand_layout(rows, length, _FOUR, waves)


def row_layout(rows: int, waves: int) -> Layout:
    """Return how lanes hold one number for each row."""
    return Layout((rows // (waves * SIDE),), (SIDE,), (1,), (1,), (waves,), (1,))


def part_layout(rows: int, waves: int) -> Layout:
    """Return how lanes hold one number for each row and lane of it."""
    return Layout((rows // (waves * SIDE), 1), (SIDE, _FOUR), (1, 1), (1, SIDE), (waves, 1), (1, 0))


def simt(x: ir.Value, layout: Layout, dims: Sequence[int]) -> ir.Value:
    """Return a lane's share of a vector, in these extents."""
    kind = ir.VectorType(x.type).element_type
    lane = _op("to_simt", laid(x, layout), ir.VectorType.get(layout.lane, kind))
    return shaped(lane, dims)


def simd(x: ir.Value, layout: Layout) -> ir.Value:
    """Return the vector of all lanes' shares."""
    kind = ir.VectorType(x.type).element_type
    whole = ir.VectorType.get(layout.dims, kind)
    return laid(_op("to_simd", shaped(x, layout.lane), whole), layout)


def laid(x: ir.Value, layout: Layout) -> ir.Value:
    """Annotate how lanes share a vector."""
    return _op("to_layout", x, x.type, layout=layout.attribute)


def through_lds(given: Sequence[tuple[ir.Value, Layout]]) -> list[ir.Value]:
    """Change the layouts of vectors through the LDS: all are written, then read.

    Rows are padded by RUN elements (16 bytes), so that a lane reads its run at once, and runs of
    adjacent rows are in different banks.
    """
    lds = ir.Attribute.parse("#gpu.address_space<workgroup>")
    told = {"memory_space": lds, "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0])}
    zero = arith.ConstantOp(ir.IndexType.get(), 0).result
    # until all waves have read what the iteration before has written
    ir.Operation.create("gpu.barrier")
    written: list[ir.Value] = []
    same = ir.AffineMap.get_identity(2)
    for x, _ in given:
        t = ir.VectorType(x.type)
        held = ir.RankedTensorType.get([t.shape[0], t.shape[1] + RUN], t.element_type, lds)
        own = ir.Operation.create(
            "bufferization.alloc_tensor", results=[held], attributes=told
        ).result
        written.append(
            vector.TransferWriteOp(held, x, own, [zero, zero], same, [True, True]).result
        )
    met = ir.Operation.create(
        "iree_gpu.value_barrier", results=[x.type for x in written], operands=written
    ).results
    found: list[ir.Value] = []
    for x, (of, layout) in zip(met, given, strict=True):
        t = ir.VectorType(of.type)
        none = arith.ConstantOp(t.element_type, ir.FloatAttr.get(t.element_type, 0)).result
        read = vector.TransferReadOp(t, x, [zero, zero], same, none, [True, True]).result
        found.append(laid(read, layout))
    return found


def shaped(x: ir.Value, dims: Sequence[int]) -> ir.Value:
    """Return a vector in another shape."""
    t = ir.VectorType(x.type)
    if list(t.shape) == [*dims]:
        return x
    return vector.ShapeCastOp(ir.VectorType.get([*dims], t.element_type), x).result


def _op(name: str, x: ir.Value, kind: ir.Type, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(
        f"iree_vector_ext.{name}", results=[kind], operands=[x], attributes=attributes
    ).result


def matmul(rows: ir.Value, columns: ir.Value, init: ir.Value, kind: str, depth: int) -> ir.Value:
    """Return init + rows x columns^T by a matrix instruction of depth `depth`."""
    (m, k), (n, _) = (ir.VectorType(x.type).shape for x in (rows, columns))
    tiles = [
        _tiled(rows, [m // SIDE, SIDE, k // depth, depth], [0, 2, 1, 3]),
        _tiled(columns, [n // SIDE, SIDE, k // depth, depth], [0, 2, 3, 1]),
        _tiled(init, [m // SIDE, SIDE, n // SIDE, SIDE], [0, 2, 1, 3]),
    ]
    maps = (
        ir.AffineMap.get(3, 0, [ir.AffineDimExpr.get(d) for d in dims])
        for dims in ((0, 1), (2, 1), (0, 2))
    )
    iterators = (f"#linalg.iterator_type<{s}>" for s in ("parallel", "reduction", "parallel"))
    found = ir.Operation.create(
        "iree_codegen.inner_tiled",
        results=[tiles[2].type],
        operands=tiles,
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
            "iterator_types": ir.Attribute.parse(f"[{', '.join(iterators)}]"),
            "kind": ir.Attribute.parse(f"#iree_gpu.mma_layout<{kind}, col_major = true>"),
            "semantics": ir.Attribute.parse(
                "#iree_gpu.mma_semantics<distributed = false, opaque = true>"
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
        },
    ).result
    kind_of = ir.VectorType(init.type).element_type
    whole = ir.VectorType.get([m // SIDE, SIDE, n // SIDE, SIDE], kind_of)
    turned = vector.TransposeOp(whole, found, [0, 2, 1, 3]).result
    return shaped(turned, [m, n])


def _tiled(x: ir.Value, dims: Sequence[int], order: Sequence[int]) -> ir.Value:
    t = ir.VectorType.get([dims[i] for i in order], ir.VectorType(x.type).element_type)
    return vector.TransposeOp(t, shaped(x, dims), list(order)).result


def splat(number: float, dims: Sequence[int]) -> ir.Value:
    """Return a vector of one number."""
    t = ir.VectorType.get([*dims], ir.F32Type.get())
    one = ir.FloatAttr.get(ir.F32Type.get(), number)
    return constant_of(t, ir.DenseElementsAttr.get_splat(t, one))


def pair_sums(x: ir.Value) -> ir.Value:
    """Return the sums of the even and of the odd elements of each row: two at once."""
    rows, length = ir.VectorType(x.type).shape
    while length > 2:
        length //= 2
        x = arith.AddFOp(_part(x, 0, rows, length), _part(x, length, rows, length)).result
    return x


def _part(x: ir.Value, start: int, rows: int, length: int) -> ir.Value:
    t = ir.VectorType.get([rows, length], ir.VectorType(x.type).element_type)
    return vector.ExtractStridedSliceOp(t, x, [0, start], [rows, length], [1, 1]).result


def along(x: ir.Value, length: int) -> ir.Value:
    """Broadcast one number per row, [rows, 1], to [rows, length]."""
    t = ir.VectorType(x.type)
    if length == t.shape[1]:
        return x
    return vector.BroadcastOp(ir.VectorType.get([t.shape[0], length], t.element_type), x).result


def sums_of_pairs(x: ir.Value) -> ir.Value:
    """Return the sums of rows of two: [rows, 1]."""
    rows, _ = ir.VectorType(x.type).shape
    return arith.AddFOp(_part(x, 0, rows, 1), _part(x, 1, rows, 1)).result


def row_maxima(x: ir.Value, least: ir.Value) -> ir.Value:
    """Return the largest of each row and of `least`."""
    return _reduced("maximumf", x, least)


def row_sums(x: ir.Value) -> ir.Value:
    """Return the sum of each row."""
    return _reduced("add", x, splat(0, ir.VectorType(x.type).shape[:1]))


def _reduced(kind: str, x: ir.Value, init: ir.Value) -> ir.Value:
    return ir.Operation.create(
        "vector.multi_reduction", results=[init.type], operands=[x, init],
        attributes={
            "kind": ir.Attribute.parse(f"#vector.kind<{kind}>"),
            "reduction_dims": ir.DenseI64ArrayAttr.get([1]),
        },
    ).result  # fmt: skip


def first_places(rows: int) -> ir.Value:
    """Return the distance of a lane's first key from its row, by row and lane: [rows, 4]."""
    kind = ir.IndexType.get()
    whole = ir.VectorType.get([rows, _FOUR], kind)
    lane = _counted(_FOUR)
    four = arith.ConstantOp(kind, _FOUR).result
    key = arith.MulIOp(lane, vector.BroadcastOp(lane.type, four).result).result
    wide = vector.BroadcastOp(ir.VectorType.get([_FOUR, rows], kind), _counted(rows)).result
    row = vector.TransposeOp(whole, wide, [1, 0]).result
    return arith.SubIOp(vector.BroadcastOp(whole, key).result, row).result


def _counted(length: int) -> ir.Value:
    """Return the vector of 0, 1, 2 and so on."""
    kind = ir.VectorType.get([length], ir.IndexType.get())
    return ir.Operation.create("vector.step", results=[kind]).result


__all__ = [
    "DEEP", "RUN", "Layout", "along", "first_places", "laid", "matmul", "operand_layout",
    "pair_sums", "part_layout", "result_layout", "row_layout", "row_maxima", "row_sums", "shaped",
    "simd", "simt", "splat", "sums_of_pairs", "through_lds",
]  # fmt: skip
