"""Shape and configuration of each matmul of a GPU program.

A `GemmShape` has all facts that a choice depends on; a `GemmConfig` is the choice, annotated for
IREE. Without a searched one, the bound of `tiles.py` chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from math import prod
from typing import cast

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.hardware.chips import CHIPS, LAUNCH_US, Chip
from mgx_mlir.passes.lowering.gpu import schedules
from mgx_mlir.passes.lowering.gpu.matmul.mma import (
    INTRINSICS,
    SIDE,
    MmaIntrinsic,
    intrinsic_of,
    shallow_intrinsic,
)
from mgx_mlir.passes.lowering.gpu.matmul.tiles import (
    Extents,
    MmaSchedule,
    candidates,
    choose,
    clocks,
)

DOT, CONVOLUTION = "dot", "convolution"
ROWS, COLUMNS = "rows", "columns"
_LEAST_ROWS = 2  # a GEMM with a vector reads its matrix once: IREE's reductions do that
_USUAL_ROWS = 128  # assumed number of rows where it is dynamic
# vectors of a wave with masks by row and by depth: with more, scalar registers spill on CDNA
_MASKED = 256
_USUAL_SIDE = 32  # assumed height and width of an image where they are dynamic
_SPLITS = (2, 4, 8, 16, 32)
# split-k must take at most this share of the unsplit GEMM's bound, as the time of a launch is an
# estimate
WORTH = 2 / 3
_ALIGNED = 16  # bytes that a lane loads at once
# limits of numbers in files
_MOST_DIM = (1 << 31) - 1
_KERNELS = ("migraphx.fused_reduce", "migraphx.group")
# ops of a hundred clocks and more for each element of a lane
_HEAVY = {f"migraphx.{name}" for name in ("erf", "exp", "sigmoid", "tanh")}
_RANKS = {DOT: 3, CONVOLUTION: 9}
_LARGEST = {"size": 64, "waves": 16, "steps": 64, "split": 64, "batch": 8}


@dataclass(frozen=True)
class GemmShape:
    """The facts of a matmul or convolution that the choice of its tile depends on."""

    op: str  # "dot" or "convolution"
    dtype: str  # type of both operands
    # rows, columns and depth of a dot; for a convolution, dims of its channels-last result, then
    # its window, channels and strides
    dims: tuple[int, ...]
    layout: str = ROWS  # second operand is stored in "rows" along the depth, or in "columns"
    batch: tuple[int, ...] = ()  # batch dims
    # kernel has an epilogue of many instructions; a config from a search applies with or without
    heavy: bool = field(default=False, compare=False)

    @property
    def extents(self) -> Extents:
        """Return the extents of the matmul, as the matrix instructions see them."""
        if self.op == DOT:
            rows, columns, depth = self.dims
            return Extents(prod(self.batch), rows, columns, depth, apart=True, heavy=self.heavy)
        n, lines, along, columns, *window = self.dims[:7]
        return Extents(n * lines, along, columns, window[0] * window[1] * window[2])

    @property
    def is_dynamic(self) -> bool:
        """Return whether a dim is dynamic."""
        return DYN in (*self.dims, *self.batch)

    def usual(self) -> GemmShape | None:
        """Return a GEMM whose rows alone are dynamic, or a convolution whose images are, with a
        usual number of them, else None.

        With a dynamic batch of a GEMM IREE's copies to the LDS read beyond the last row.
        """
        if self.op == CONVOLUTION:
            sizes = (1, _USUAL_SIDE, _USUAL_SIDE)
            if DYN in self.dims[3:]:
                return None
            own = (u if d == DYN else d for d, u in zip(self.dims, sizes, strict=False))
            return replace(self, dims=(*own, *self.dims[3:]))
        if self.batch or DYN in self.dims[1:]:
            return None
        return replace(self, dims=(_USUAL_ROWS, *self.dims[1:]))

    def intrinsic(self, arch: str) -> MmaIntrinsic | None:
        """Return the matrix instruction to use, None without a useful one."""
        run = self.dims[2] if self.op == DOT else self.dims[6]
        mma = intrinsic_of(arch, dtypes.from_name(self.dtype), run)
        if mma is None or arch not in CHIPS:
            return None
        if self.op == DOT:
            found = mma if min(self.dims[:2]) >= _LEAST_ROWS else None
        else:
            kinds = (mma, shallow_intrinsic(arch, dtypes.from_name(self.dtype)))
            whole = (m for m in kinds if m and self.dims[6] % max(SIDE, m.depth) == 0)
            found = next(whole, None)
        if found is None or not found.paired or self.is_dynamic:
            return found
        # a pair has fewer reads, which matters where a wave waits
        large = choose(CHIPS[arch], found, self.extents).is_large
        return INTRINSICS[arch][dtypes.from_name(self.dtype)] if large else found

    def to_json(self) -> dict[str, object]:
        """Return the shape in the form of solution files."""
        return {"op": self.op, "dtype": self.dtype, "dims": list(self.dims),
                "layout": self.layout, "batch": list(self.batch)}  # fmt: skip


def shape_of_dot(op: ir.Operation, depth: int = 0) -> GemmShape:
    """Return the shape of a dot of rank 2 with constant weights; depth: that of its operands as
    they are stored, where that is more."""
    a, b = (TensorType.of(v) for v in list(op.operands)[:2])
    dims = (a.dims[0], b.dims[1], max(depth, b.dims[0]))
    parent = op.operation.parent
    heavy = (
        parent is not None
        and parent.name in _KERNELS
        and any(o.operation.name in _HEAVY for o in op.operation.block)
    )
    return GemmShape(DOT, a.dtype.name, dims, heavy=heavy)


@dataclass(frozen=True)
class GemmConfig:
    """The choice of how a matmul or convolution is computed."""

    tile: MmaSchedule | None  # tile and waves; None leaves them to IREE
    split: int = 1  # parts of the depth, summed by separate workgroups; a second kernel adds them

    def __str__(self) -> str:
        if self.tile is None:
            return "IREE's"
        size, waves = ("x".join(map(str, n)) for n in (self.tile.tiles, self.tile.subgroups))
        parts = f" in {self.split} parts" if self.split > 1 else ""
        return f"{size} by {waves} waves, {self.tile.k_tiles} deep{parts}"

    def to_json(self) -> dict[str, object]:
        """Return the choice in the form of solution files."""
        t = self.tile
        keys = t and {"size": t.tiles, "waves": t.subgroups, "steps": t.k_tiles}
        return {"tile": keys, "split": self.split}


# config that a search found for a matmul, in a function of the program
GemmConfigs = Callable[[GemmShape, str], GemmConfig | None]


def of_dynamic_rows(arch: str, gemm: GemmShape) -> GemmConfig:
    """Return the config of the bound for a GEMM of dynamic rows, at their usual number."""
    mma, of = gemm.intrinsic(arch), replace(gemm.extents, vectors=_MASKED)
    return GemmConfig(None if mma is None else choose(CHIPS[arch], mma, of))


def default(arch: str, gemm: GemmShape) -> GemmConfig:
    """Return the config of the bound."""
    chip, mma, of = CHIPS[arch], gemm.intrinsic(arch), gemm.extents
    if mma is None:
        return GemmConfig(None)
    whole = GemmConfig(choose(chip, mma, of))
    split = [GemmConfig(choose(chip, mma, part), s) for s, part in _parts(gemm, mma)]
    found = min([whole, *split], key=lambda c: bound_us(chip, mma, gemm, c))
    less = bound_us(chip, mma, gemm, found) / bound_us(chip, mma, gemm, whole)
    return found if less <= WORTH else whole


def alternatives(arch: str, gemm: GemmShape, count: int) -> list[GemmConfig]:
    """Return the configs that a search compares.

    The default comes first, then those with low bounds and IREE's own.
    """
    chip, mma = CHIPS[arch], gemm.intrinsic(arch)
    first = default(arch, gemm)
    if mma is None:
        return [first]
    found = [GemmConfig(t) for t in candidates(chip, mma, gemm.extents, count)]
    for s, part in _parts(gemm, mma):
        found += [GemmConfig(t, s) for t in candidates(chip, mma, part, 2)]
    found.sort(key=lambda c: bound_us(chip, mma, gemm, c))
    return list(dict.fromkeys([first, GemmConfig(None), *found]))[:count]


def bound_us(chip: Chip, mma: MmaIntrinsic, gemm: GemmShape, config: GemmConfig) -> float:
    """Return the bound on the time of a matmul and of its launches beyond one."""
    assert config.tile is not None
    of, s = gemm.extents, config.split
    read = (of.lines * of.along + of.columns) * of.depth * mma.bytes
    moved = read / (chip.bandwidth * 1e3)
    if s == 1:
        return max(clocks(chip, mma, config.tile, of) / chip.ghz / 1e3, moved)
    part = replace(of, lines=s * of.lines, depth=of.depth // s, apart=True, heavy=False)
    each = clocks(chip, mma, config.tile, part)
    sums = 4 * s * of.lines * of.along * of.columns / (chip.bandwidth * 1e3)  # written, then read
    return (
        max(each / chip.ghz / 1e3, moved + sums)
        + LAUNCH_US + schedules.gemm_costs(chip.arch).sum / chip.ghz / 1e3 + sums
    )  # fmt: skip


def padded_depth(arch: str, gemm: GemmShape) -> int:
    """Return the depth that a GEMM of constant weights should have.

    It is its own, or padded with zeros to rows of a multiple of 16 bytes, if that pays for one more
    launch. Unaligned rows are read element by element: in the bounds of compiled code that takes 2
    to 4 times as long for whole tiles on CDNA, else 5 to 15 times.
    """
    mma, of = gemm.intrinsic(arch), gemm.extents
    stored = gemm.op == DOT and gemm.layout == ROWS
    if mma is None or not stored or of.depth * mma.bytes % _ALIGNED == 0:
        return of.depth
    chip = CHIPS[arch]
    tile = choose(chip, mma, of)
    us = clocks(chip, mma, tile, of) / chip.ghz / 1e3
    cut = of.along % (tile.tiles[1] * mma.rows) or of.columns % (tile.tiles[2] * mma.columns)
    known = schedules.gemm_costs(arch)
    times = known.unaligned_partial if cut or chip.copies > 1 else known.unaligned
    moved = 2 * of.along * of.depth * mma.bytes / (chip.bandwidth * 1e3)
    more = LAUNCH_US + known.sum / chip.ghz / 1e3 + moved
    run = _ALIGNED // mma.bytes
    return -(-of.depth // run) * run if (times - 1) * us > more else of.depth


def _parts(gemm: GemmShape, mma: MmaIntrinsic) -> list[tuple[int, Extents]]:
    """Return the counts of equal parts of the depth of a GEMM, with a part's extents."""
    of = gemm.extents
    if gemm.op != DOT or gemm.layout != ROWS:
        return []
    return [
        (s, Extents(s, of.along, of.columns, of.depth // s, apart=True))
        for s in _SPLITS
        if of.depth % (s * mma.depth) == 0 and of.depth // s >= 8 * mma.depth
    ]


def shape_from_json(value: object) -> GemmShape | None:
    """Return a shape as `to_json` wrote it; None for anything else."""
    keys = {"op", "dtype", "dims", "layout", "batch"}
    row = _row(value)
    if row is None or set(row) != keys:
        return None
    op, dtype, layout = row["op"], row["dtype"], row["layout"]
    dims, batch = _numbers(row["dims"], _MOST_DIM), _numbers(row["batch"], _MOST_DIM)
    if not isinstance(op, str) or dims is None or len(dims) != _RANKS.get(op):
        return None
    if batch is None or len(batch) > _LARGEST["batch"]:
        return None
    if not isinstance(layout, str) or layout not in [ROWS, COLUMNS]:
        return None
    names = [d.name for kinds in INTRINSICS.values() for d in kinds]
    if not isinstance(dtype, str) or dtype not in names:
        return None
    return GemmShape(op, dtype, dims, layout, batch)


def config_from_json(value: object) -> GemmConfig | None:
    """Return a config as `to_json` wrote it; None for anything else, or an impossible config."""
    row = _row(value)
    if row is None or set(row) != {"tile", "split"}:
        return None
    split = _numbers([row["split"]], _LARGEST["split"])
    if split is None:
        return None
    if row["tile"] is None:
        return GemmConfig(None) if split == (1,) else None
    tile = _row(row["tile"])
    if tile is None or set(tile) != {"size", "waves", "steps"}:
        return None
    size, waves = (_numbers(tile[key], _LARGEST[key]) for key in ("size", "waves"))
    steps = _numbers([tile["steps"]], _LARGEST["steps"])
    if size is None or waves is None or steps is None or len(size) != 3 or len(waves) != 3:
        return None
    if any(n % w for n, w in zip(size, waves, strict=True)):
        return None
    return GemmConfig(MmaSchedule(size, waves, steps[0]), split[0])


def _row(value: object) -> Mapping[object, object] | None:
    return cast(Mapping[object, object], value) if isinstance(value, Mapping) else None


def _numbers(value: object, most: int) -> tuple[int, ...] | None:
    """Return the integers of a list, each from 1 to `most`; None for anything else."""
    if not isinstance(value, list):
        return None
    listed = cast(list[object], value)
    found = tuple(n for n in listed if type(n) is int and 1 <= n <= most)
    return found if len(found) == len(listed) else None


__all__ = [
    "COLUMNS", "CONVOLUTION", "DOT", "WORTH", "GemmConfig", "GemmConfigs", "GemmShape",
    "alternatives", "bound_us", "config_from_json", "default", "of_dynamic_rows", "padded_depth",
    "shape_from_json", "shape_of_dot",
]  # fmt: skip
