"""Rows that waves do not divide: how all lanes of a group share what is computed of each.

IREE's own choice gives such a row, if its extent is fixed, to one lane. A masked part of a row
takes no more than a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.ir import ir, linalg
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.hardware.chips import CHIPS, Chip, amd_chip
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.matmul.compilation_info import lanes_attribute, numbers
from mgx_mlir.passes.lowering.options import LowerOptions

_MOST_WAVES = 16  # waves that share a row
_BYTES = 16  # bits that a lane loads at once
# ops of a kernel of rows beside its loops
_OTHERS = (
    "arith.constant", "tensor.empty", "linalg.fill", "flow.return", "tensor.expand_shape",
    "tensor.collapse_shape", "tensor.dim",
)  # fmt: skip


def are_uneven(options: LowerOptions, dims: Sequence[int]) -> bool:
    """Return whether rows along the last of `dims`, which is fixed, are a GPU's, and divided by no
    wave.
    """
    chip = amd_chip(options.arch) if options.target == "gpu" and options.tiles else None
    if chip is None or 0 in dims or not dims or dims[-1] == DYN:
        return False
    return dims[-1] > chip.lanes and dims[-1] % chip.lanes != 0


def share(e: LoweringContext, block: ir.Block, results: Sequence[ir.Value]) -> list[ir.Value]:
    """Give the loops of a kernel over uneven rows, and the sums of these, their threads.

    Return the kernel's results, some of them made by other loops then.
    """
    found = list(results)
    sums = [op for op in _loops(block) if _is_sum(op)]
    if not sums or any(o.name not in ("linalg.generic", *_OTHERS) for o in _operations(block)):
        return found
    dims = ir.RankedTensorType(sums[0].inputs[0].type).shape
    if not are_uneven(e.options, dims) or not all(_is_over(op, dims) for op in _loops(block)):
        return found
    # IREE fuses loops into others that read them, which then have lost their attributes
    for op in _loops(block):
        found = _inlined(e, op, found)
    for op in reversed(_loops(block)):
        if not any(list(r.uses) or r in found for r in op.results):
            op.operation.erase()
    inner = [op for op in _loops(block) if _shape(op) == dims]
    sums = [op for op in inner if _is_sum(op)]
    bits = element_bits(sums[0].inputs[0].type)
    form = _Form.of(CHIPS[e.options.arch], dims[-1], max(bits // 8, 1), len(dims))
    for op in inner:
        op.attributes["lowering_config"] = form.config(summed=_is_sum(op))
    # IREE takes the threads of a dispatch from one op
    del sums[-1].attributes["lowering_config"]
    sums[-1].attributes["compilation_info"] = form.info()
    return found


def _inlined(
    e: LoweringContext, op: linalg.GenericOp, results: Sequence[ir.Value]
) -> list[ir.Value]:
    """Compute in a loop itself what it reads of loops that sum nothing; return `results` anew."""
    makers = [_element_loop(v, op.operation.block) for v in op.inputs]
    if not any(makers):
        return list(results)
    inputs: list[ir.Value] = []
    maps: list[ir.AffineMap] = []
    rank, own = len(op.iterator_types), [m.value for m in op.indexing_maps]
    for v, to, maker in zip(op.inputs, own, makers, strict=False):
        if maker is None:
            inputs.append(v)
            maps.append(to)
            continue
        inputs += maker.inputs
        for m in list(maker.indexing_maps)[:-1]:
            maps.append(ir.AffineMap.get(rank, 0, [_moved(x, to) for x in m.value.results]))

    def body(*args: ir.Value) -> list[ir.Value]:
        given, read = iter(args), list[ir.Value]()
        for maker in makers:
            if maker is None:
                read.append(next(given))
            else:
                read += _again(maker, [next(given) for _ in maker.inputs])
        return _again(op, [*read, *given])

    outs = list(op.outputs)
    iterators = ["reduction" if "reduction" in str(i) else "parallel" for i in op.iterator_types]
    with ir.InsertionPoint(op):
        made = e.generic(inputs, outs, [*maps, *own[-len(outs) :]], iterators, body)
    now: dict[ir.Value, ir.Value] = {}
    for old, new in zip(op.results, made, strict=True):
        now[old] = new
    found = [now.get(r, r) for r in results]
    for old, new in now.items():
        old.replace_all_uses_with(new)
    op.operation.erase()
    return found


def _moved(at: ir.AffineExpr, to: ir.AffineMap) -> ir.AffineExpr:
    """Return where a loop reads what another one, whose own index `to` gives, reads `at`."""
    return to.results[at.position] if isinstance(at, ir.AffineDimExpr) else at


def _again(op: linalg.GenericOp, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Return what a loop's body gives of these values, in the body that is being built."""
    block = op.regions[0].blocks[0]
    now: dict[ir.Value, ir.Value] = {}
    for argument, value in zip(block.arguments, values, strict=False):
        now[argument] = value
    for inner in _operations(block):
        operands = [now.get(v, v) for v in inner.operands]
        if inner.name == "linalg.yield":
            return operands
        copy = inner.clone().operation
        for i, v in enumerate(operands):
            copy.operands[i] = v
        for old, new in zip(inner.results, copy.results, strict=True):
            now[old] = new
    raise AssertionError("the body of a loop ends with a yield")


def _element_loop(v: ir.Value, block: ir.Block) -> linalg.GenericOp | None:
    """Return the loop of one result, that sums nothing, which makes a value in the block."""
    made = None if isinstance(v.owner, ir.Block) else v.owner.operation.opview
    if not isinstance(made, linalg.GenericOp) or _is_sum(made) or len(made.results) != 1:
        return None
    return made if made.operation.block == block else None


def alone(
    e: LoweringContext, kind: ir.Type, extents: Sequence[Extent], build: Callable[[], ir.Value]
) -> ir.Value:
    """Return the result of `build()`, a loop over uneven rows, made by a dispatch of its own."""

    def shared() -> list[ir.Value]:
        e.in_region = True
        try:
            found = build()
        finally:
            e.in_region = False
        return share(e, ir.InsertionPoint.current.block, [found])

    return index.alone(e, [kind], [extents], shared)[0]


@dataclass(frozen=True)
class _Form:
    """Share of a row: `run` elements of a lane at once, by the lanes of `waves` waves."""

    chip: Chip
    waves: int
    run: int
    rank: int

    @classmethod
    def of(cls, chip: Chip, length: int, size: int, rank: int) -> _Form:
        """Return the form for rows of elements of `size` bytes."""
        run = max(_BYTES // size, 1)
        # rows of less than four bytes begin where a load of several may not
        while run > 1 and (chip.lanes * run > length or (size < 4 and length % run)):
            run //= 2
        waves = 1
        while waves < _MOST_WAVES and waves * chip.lanes * run < length:
            waves *= 2
        return cls(chip, waves, run, rank)

    def info(self) -> ir.Attribute:
        """Return the threads of a sum of rows."""
        one, lanes = [1] * (self.rank - 1), [self.chip.lanes]
        return lanes_attribute(self.chip, one, lanes, [self.waves], [self.run], one)

    def config(self, *, summed: bool) -> ir.Attribute:
        """Return the share of the same threads in another loop, or another sum."""
        part = "partial_reduction" if summed else "serial"
        one, none = [1] * (self.rank - 1), [0] * (self.rank - 1)
        order, lanes = numbers(range(self.rank)), self.chip.lanes
        return ir.Attribute.parse(
            f"#iree_gpu.lowering_config<{{lane_basis = [{numbers([*one, lanes])}, {order}], "
            f"{part} = {numbers([*none, lanes * self.waves * self.run])}, subgroup_basis = "
            f"[{numbers([*one, self.waves])}, {order}], thread = {numbers([*none, self.run])}}}>"
        )


def _operations(block: ir.Block) -> list[ir.Operation]:
    return [op.operation for op in block.operations]


def _loops(block: ir.Block) -> list[linalg.GenericOp]:
    return [op for op in block.operations if isinstance(op, linalg.GenericOp)]


def element_bits(kind: ir.Type) -> int:
    """Return the width of a tensor's elements, 64 for others than integers and floats."""
    element = ir.RankedTensorType(kind).element_type
    return element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 64


def _is_sum(op: linalg.GenericOp) -> bool:
    return any("reduction" in str(i) for i in op.iterator_types)


def _is_over(op: linalg.GenericOp, dims: Sequence[int]) -> bool:
    """Return whether a loop takes what it reads of rows of `dims` in their order."""
    iterators = [str(i) for i in op.iterator_types]
    body = op.regions[0].blocks[0]
    plain = not any(
        o.regions or o.name in ("tensor.extract", "linalg.index") for o in _operations(body)
    )
    if not plain or any("reduction" in i for i in iterators[:-1]):
        return False
    unread = not list(body.arguments[len(op.inputs)].uses)
    wanted = [dims] if _is_sum(op) else [dims, dims[:-1]]
    return _shape(op) in wanted and (unread or _is_sum(op))


def _shape(op: linalg.GenericOp) -> list[int] | None:
    """Return the extents of a loop, None where no tensor of it has all of them."""
    whole = ir.AffineMap.get_identity(len(op.iterator_types))
    tensors = zip([*op.inputs, *op.outputs], op.indexing_maps, strict=True)
    found = [v for v, m in tensors if m.value == whole]
    return ir.RankedTensorType(found[0].type).shape if found else None
