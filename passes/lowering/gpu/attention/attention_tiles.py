"""Tiles of attention kernels on GPUs, as attributes that IREE takes.

A workgroup takes some rows of queries, 16 or 32 to a wave, and walks over the keys, a tile at a
time. Both matmuls are matrix instructions; the second reads the first one's results from registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from operator import mul

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir, vector
from mgx_mlir.hardware.chips import CHIPS, Chip
from mgx_mlir.passes.lowering.gpu import schedules
from mgx_mlir.passes.lowering.gpu.attention import attention_lanes as lanes
from mgx_mlir.passes.lowering.gpu.matmul import mma
from mgx_mlir.passes.lowering.gpu.matmul.compilation_info import numbers
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE, MmaIntrinsic
from mgx_mlir.passes.lowering.gpu.schedules import AttentionClocks


@dataclass(frozen=True)
class AttentionIntrinsics:
    """IREE's attributes of the matrix instructions of an attention.

    The result layout of the first is the operand layout of the second.
    """

    plain: str  # instruction of both matmuls, of depth 16
    wide: str  # instruction of the first matmul where its depth is a multiple of 32

    def first(self, width: int) -> str:
        """Return the intrinsic of the first matmul: the wide one where the width allows it."""
        return self.wide if width % (2 * SIDE) == 0 else self.plain


_BYTES = 2
_HELD = 40960  # bytes of the LDS that the tiles may take
_PADDED = 8  # bytes that IREE adds to a row in the LDS: columns then lie in different banks
_CACHE = 64  # bytes that a unit gets from the cache a clock
_LDS = 128  # bytes that a unit gets from the LDS a clock
# model of a lane's registers on gfx942: constant, and per element of its scores, of its share of
# the tiles of keys and values, and of its sums
_REGISTERS = (40.0, 1.5, 1.5, 4 / 3)
# most registers of a lane by this model: kernels above it wait ten times as long; _MORE where no
# tile needs fewer
_MOST_REGISTERS, _MORE = 204, 256
# most registers of a lane where a unit has at most one workgroup of four waves
_ALL_REGISTERS = 330
_DEEP_REGISTERS = 224  # the same on chips of deep matrix instructions (gfx950)
# most elements of a wave's share of the tiles of keys and values, by lanes of a wave: kernels with
# more of them being loaded spill (test_attention_forms)
_LOADED = {64: 8192, 32: 1024}
_LOADED_MASKED = 512  # the same where keys are masked, on chips whose lanes hold operands twice
# most scores and sums of a lane on NVIDIA: with more, and the queries, it spills
_RESULTS = 128
_RUN = 8  # elements of a load
_DEPTH = 128  # most elements of a row of values per workgroup on RDNA, which has no more registers
_DEPTH_MASKED = 64  # the same for parts of keys that are masked
_PART, _PART_OF_WIDE = 64, 32  # elements per workgroup of longer rows; where queries are as wide
# hand-written loop: most elements per lane being loaded, fewest keys; two lines per wave if there
# are _FULL workgroups or more per unit
_MOST_AHEAD, _LEAST_BLOCK_KEYS, _FULL = 64, 256, 4 / 3
_NARROW = 64  # most elements of a row that is narrow
# upper bounds of the number of parts: the sum reads one partial result per part; with _ENOUGH_PARTS
# per unit the kernel is bound by memory, half of which is read
_MOST_PARTS, _ENOUGH_PARTS = 32, 16
_PART_KEYS = 64  # fewest keys of a part
_WAVES = {64: 1, 32: 4}  # waves per SIMD by wave size; RDNA needs four to hide memory latency
# LLVM schedules reads before waits, with registers for at most two waves per SIMD
_READ_AHEAD = '"amdgpu-sched-strategy" = "iterative-ilp"'
_TWO_WAVES = '"amdgpu-waves-per-eu" = "2,2"'

_NEAR = 8 / 7
_FLUSHED = 'iree_codegen.denormal_fp_math_f32 = #iree_codegen.denormal_fp_math<"preserve-sign">'
# on NVIDIA rows of shared memory are padded, and copied ahead, by targets/worker_nvidia.py
_COPIED_AHEAD = (
    "gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2, "
    "no_reduce_shared_memory_bank_conflicts = true>, "
)
_AHEAD = "gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = {}>, "


@dataclass(frozen=True)
class AttentionTile:
    """Tile of IREE's attention op."""

    waves: int  # waves per workgroup
    keys: int  # keys per tile
    depth: int  # columns of the result per workgroup
    lines: int = 1  # query rows per wave, in MMA units; one LDS read of a tile serves all

    @property
    def rows(self) -> int:
        """Queries of a workgroup."""
        return self.waves * self.lines * SIDE

    def share(self, chip: Chip, width: int) -> tuple[float, float, float, float]:
        """Return 1, and a lane's elements of scores, of keys and values, and of sums."""
        scores = self.lines * SIDE * self.keys / chip.lanes
        loaded = self.keys * (width + self.depth) / (self.waves * chip.lanes)
        return 1.0, scores, loaded, self.lines * SIDE * self.depth / chip.lanes

    def registers(self, chip: Chip, width: int) -> float:
        """Return about how many registers a lane takes."""
        return sum(map(mul, _REGISTERS, self.share(chip, width)))

    def resident(self, chip: Chip, width: int) -> int:
        """Return how many workgroups a unit holds."""
        lds = _BYTES * self.keys * (width + self.depth) + _PADDED * (self.keys + self.depth)
        registers = ceil(self.registers(chip, width))
        waves = chip.occupancy(registers, lds, self.waves * chip.lanes)
        return max(1, waves * chip.simds // self.waves)


@dataclass(frozen=True)
class AttentionShape:
    """Extents of an attention."""

    count: int  # attentions: one for each head of each batch entry
    queries: int
    keys: int
    width: int  # elements of a row of queries or keys
    depth: int  # elements of a row of values
    shared: bool = False  # heads share keys, and are additional rows beside the queries
    masked: bool = False  # the last tile of keys is partial, or their number dynamic


def intrinsics_of(arch: str, dtype: DType, width: int, depth: int) -> AttentionIntrinsics | None:
    """Return the matrix instructions for an attention; None where IREE is to choose."""
    chip, wide = CHIPS.get(arch), mma.intrinsic_of(arch, dtype, 2 * SIDE)
    plain = mma.shallow_intrinsic(arch, dtype) or mma.INTRINSICS.get(arch, {}).get(dtype)
    if chip is None or plain is None or wide is None or width % SIDE or depth % SIDE:
        return None
    if plain.bytes != _BYTES or plain.depth != SIDE:
        return None
    # for lanes that share operands, only one result layout exists
    turned = chip.copies == 1 and not chip.is_nvidia
    return AttentionIntrinsics(plain.layout(turned=turned), wide.layout(turned=turned))


def filled_width(width: int) -> int:
    """Return the length to which rows of queries and keys are padded, to be divisible among
    lanes.
    """
    return width if width & width - 1 == 0 else 1 << width.bit_length()


def choose(arch: str, a: AttentionShape) -> AttentionTile | None:
    """Return the tile for an attention; None where lanes cannot share any tile evenly.

    Among tiles within a seventh of the least time it is the one with most rows, which reads keys
    and values least often.
    """
    chip = CHIPS[arch]
    part = _PART if a.width <= _DEPTH else _PART_OF_WIDE
    most = _DEPTH_MASKED if a.masked and a.shared else _DEPTH
    depth = part if chip.lanes == 32 and a.depth > most and a.depth % part == 0 else a.depth
    known = {
        AttentionTile(waves, keys, depth, lines): clocks
        for (waves, keys, lines), clocks in schedules.attention(arch, a.width, depth).items()
    }
    fits = [t for t in known if _fits(chip, a, t)] or [t for t in known if _fits(chip, a, t, _MORE)]
    clocks = {t: _clocks(chip, a, t, known[t]) for t in fits}
    least = min(clocks.values(), default=0.0)
    near = [t for t, n in clocks.items() if n <= _NEAR * least]
    return max(near, key=lambda t: (t.rows, -clocks[t]), default=None)


def _fits(chip: Chip, a: AttentionShape, tile: AttentionTile, most: int = _MOST_REGISTERS) -> bool:
    held = tile.keys * (a.width + tile.depth)
    threads = tile.waves * chip.lanes
    # hazard 39: a tile larger than the query count gives wrong results
    if tile.rows > SIDE and tile.rows > a.queries:
        return False
    # beside shared heads a partial tile gives wrong results (test_shared_heads)
    if a.shared and a.queries % tile.rows:
        return False
    shared = _is_shared(tile.keys, a.width, threads) and _is_shared(tile.depth, tile.keys, threads)
    least = tile.keys == SIDE and tile.lines == 1
    loaded = _LOADED_MASKED if a.masked and chip.copies > 1 else _LOADED[chip.lanes]
    few = held <= loaded * tile.waves and tile.keys < 2 * a.keys
    if chip.is_nvidia:  # copies take no registers
        few = sum(tile.share(chip, a.width)[1::2]) <= _RESULTS and tile.keys < 2 * a.keys
    alone = tile.waves <= chip.simds and _groups(a, tile) <= chip.units
    if chip.lanes == 64:
        deep = _DEEP_REGISTERS if chip.depth > SIDE else 0
        most = max(most, deep, _ALL_REGISTERS if alone else 0)
        few = few and tile.registers(chip, a.width) <= most
    return shared and (least or few) and held * _BYTES <= (chip.lds if alone else _HELD)


def _is_shared(rows: int, length: int, threads: int) -> bool:
    """Return whether threads can load a tile with the same number of whole runs each."""
    run = run_of(rows, length, threads)
    if run == 0 or length % run:
        return False
    across = length // run
    return threads % across == 0 and rows % (threads // across) == 0


def _groups(a: AttentionShape, tile: AttentionTile) -> int:
    """Return how many workgroups an attention has."""
    return a.count * -(-a.queries // tile.rows) * (a.depth // tile.depth)


def _clocks(chip: Chip, a: AttentionShape, tile: AttentionTile, own: AttentionClocks) -> float:
    """Return the time bound: throughput of the units, or latency of the waves."""
    each = -(-_groups(a, tile) // chip.units)
    steps = -(-a.keys // tile.keys)
    together = -(-each * tile.waves // chip.simds)
    # each wave reads the tiles; all waves together load them
    moved = tile.keys * (a.width + tile.depth) * _BYTES
    lds = each * moved * (tile.waves + 1) / _LDS
    rounds = -(-each // tile.resident(chip, a.width))
    alone = rounds * (steps * own.iteration + own.ends)
    return max(steps * max(together * own.busy, lds, each * moved / _CACHE), alone)


@dataclass(frozen=True)
class Parts:
    """Parts of the keys, each of which has workgroups of its own."""

    count: int  # number of parts
    keys: int  # keys of a part, in whole tiles
    tile: AttentionTile  # tile of a workgroup


def choose_parts(arch: str, a: AttentionShape) -> Parts | None:
    """Return the parts for rows of queries over keys; None where no tile has all rows.

    Their number fills the SIMDs with `_WAVES` each, but is no larger than saturates memory. It is
    lowered by up to half if then it divides the keys, which are read in place.
    """
    waves = next((n for n in (1, 2, 4) if n * SIDE >= a.queries), None)
    if waves is None:
        return None
    chip = CHIPS[arch]
    each = _WAVES[chip.lanes]
    room = each * chip.units * chip.simds // (a.count * waves)
    most = _ENOUGH_PARTS if a.count * _ENOUGH_PARTS >= each * chip.units else _MOST_PARTS
    count = min(most, -(-a.keys // _PART_KEYS), max(2, room))
    if a.count == 1:
        count = max(2, count)  # with a dim of one part, IREE's tiles read wrong numbers
    least = min(count, max(count // 2, 2))
    found = [_parts(arch, a, n, waves) for n in range(count, least - 1, -1)]
    first = found[0]
    if first is None:
        return None
    tile = first.tile.keys  # smaller ones wait longer
    near = (p for p in found if p is not None and p.tile.keys >= tile)
    return next((p for p in near if p.count * p.keys == a.keys), first)


def _parts(arch: str, a: AttentionShape, count: int, waves: int) -> Parts | None:
    each = -(-a.keys // count)
    masked = a.masked or count * each != a.keys or each % SIDE != 0
    part = AttentionShape(
        a.count * count, waves * SIDE, each, a.width, a.depth, shared=True, masked=masked
    )
    tile = choose(arch, part)
    if tile is None:
        return None
    each = -(-each // tile.keys) * tile.keys
    return Parts(-(-a.keys // each), each, tile)


@dataclass(frozen=True)
class Dims:
    """Dims of an attention op, by their index."""

    lead: Sequence[int]  # dims ahead of those of the matmuls
    m: int  # M: queries
    k: int  # K1: elements of a row of queries or keys
    n: int  # K2: keys
    d: int  # N: elements of a row of values
    blocks: Sequence[int] = ()  # blocks of keys, each as long as a tile, ahead of K2

    def over(self, of: Mapping[int, int], other: int) -> list[int]:
        """Return a number for each dim."""
        return [of.get(i, other) for i in range(self.d + 1)]


def attributes(
    arch: str, kind: AttentionIntrinsics, tile: AttentionTile, dims: Dims, width: int
) -> dict[str, ir.Attribute]:
    """Build the lowering config of an attention op over dims (batch.., M, K1, K2, N)."""
    chip = CHIPS[arch]
    ones = dict.fromkeys(dims.lead, 1)
    basis = dims.over({dims.m: tile.waves}, 1)
    keys = [*dims.blocks, dims.n]
    first = _config(kind.first(width), basis, [*dims.lead, dims.m, dims.k, *keys])
    second = _config(kind.plain, basis, [*dims.lead, dims.m, *keys, dims.d])
    rows = dims.over({**ones, dims.m: tile.rows, dims.d: tile.depth}, 0)
    step = dims.over({**dict.fromkeys(dims.blocks, 1), dims.n: tile.keys}, 0)
    config = f"{_promoted([1, 2])}, reduction = {numbers(step)}, workgroup = {numbers(rows)}"
    # the next tile is loaded during an iteration; RDNA has no registers for it
    ahead = _AHEAD.format(2) if chip.lanes == 64 else ""
    if chip.is_nvidia:
        ahead = _COPIED_AHEAD
    # vector registers hold two waves per SIMD for dynamic lengths, three with deep instructions; by
    # default LLVM aims at more, which spills two scalar registers on gfx90a
    if dims.blocks and chip.lanes == 64 and chip.depth == SIDE:
        ahead += f"llvm_func_attrs = {{{_TWO_WAVES}}}, "
    return {
        "decomposition_config": ir.Attribute.parse(f"{{pv_attrs = {second}, qk_attrs = {first}}}"),
        "compilation_info": _info(
            chip, tile.waves, f"#iree_gpu.lowering_config<{{{config}}}>", ahead
        ),
    }


@dataclass(frozen=True)
class BlockTile:
    """Tile of the hand-written attention loop."""

    waves: int  # waves per workgroup
    keys: int  # keys per block
    lines: int = 1  # query rows per wave, in MMA units

    @property
    def rows(self) -> int:
        """Queries of a workgroup."""
        return self.waves * self.lines * SIDE

    def lds(self, width: int, depth: int) -> int:
        """Return the bytes of the LDS that a block of keys and one of values take."""
        return _BYTES * ((width + lanes.RUN) * self.keys + (self.keys + lanes.RUN) * depth)


def blocks(chip: Chip, a: AttentionShape, *, causal: bool) -> BlockTile | None:
    """Return the tile of the hand-written loop over blocks of keys; None where none fits.

    It has eight waves if there are enough queries, with two lines each of wide rows if most units
    still have work. The number of keys is limited by the LDS and by loads in flight. Causal tiles
    of few rows skip more.
    """
    if chip.lanes != 64 or a.keys < _LEAST_BLOCK_KEYS or max(a.width, a.depth) > _DEPTH:
        return None  # two lines of a wave of wider rows spill
    order = [(8, 2), (8, 1), (4, 1)]
    narrow = a.width <= _NARROW  # with 128 keys one line is as fast
    # with deep instructions the vector units are the bound, and two waves share one
    if chip.depth > SIDE and narrow and a.count * a.queries // (4 * SIDE) <= chip.units:
        order = [(4, 1), (8, 1)]
    for waves, lines in order:
        for keys in (128, 64, 32):
            tile = BlockTile(waves, keys, lines)
            groups = a.count * a.queries // tile.rows
            if lines == 2 and (causal or narrow or keys == 128 or _FULL * groups < chip.units):
                continue
            if _holds(chip, a, tile):
                return tile
    return None


def _holds(chip: Chip, a: AttentionShape, tile: BlockTile) -> bool:
    if a.queries % tile.rows or a.keys % tile.keys or tile.lds(a.width, a.depth) > chip.lds:
        return False
    if tile.keys * (a.width + a.depth) // (tile.waves * chip.lanes) > _MOST_AHEAD:
        return False
    return load_layouts(tile, chip.lanes, a.width, a.depth) is not None


def run_of(rows: int, length: int, threads: int) -> int:
    """Return the number of adjacent elements of a tile that a thread loads."""
    return min(_RUN, rows * length // threads)


def block_intrinsic(arch: str, dtype: DType, width: int, depth: int) -> MmaIntrinsic | None:
    """Return the matrix instruction of both matmuls of the hand-written loop; None without one."""
    if width % lanes.DEEP or depth % SIDE or intrinsics_of(arch, dtype, width, depth) is None:
        return None
    return mma.INTRINSICS[arch][dtype]


@dataclass(frozen=True)
class Loaded:
    """Layouts of a block of keys and of one of values, as lanes load and hold them."""

    keys: lanes.Layout  # keys [keys, width], as they are loaded
    values: lanes.Layout  # values [keys, depth], as they are loaded
    turned: lanes.Layout  # transposed values [depth, keys], keys in the second matmul's order

    def turn(self, x: ir.Value) -> ir.Value:
        """Return a lane's share of values, transposed."""
        wide = self.values.element[1]
        t = ir.VectorType(x.type)
        x = lanes.shaped(x, [lanes.RUN, wide])
        turned = ir.VectorType.get([wide, lanes.RUN], t.element_type)
        return vector.TransposeOp(turned, x, [1, 0]).result


def load_layouts(tile: BlockTile, wave: int, width: int, depth: int) -> Loaded | None:
    """Return how the lanes of a workgroup load blocks; None where they cannot share them evenly."""
    threads, four = tile.waves * wave, lanes.RUN // 2
    run = run_of(tile.keys, width, threads)
    if not _is_shared(tile.keys, width, threads) or run % 2:
        return None
    across = width // run
    down = threads // across
    keys = lanes.Layout((tile.keys // down, 1), (down, across), (1, run), (across, 1))
    # a lane has four keys of each half of 32 keys, and some elements of each; a wave has all of 32
    # adjacent keys
    wide = tile.keys * depth // (threads * lanes.RUN)
    groups = tile.keys // lanes.DEEP
    if wide == 0 or depth % (SIDE * wide) or tile.waves % groups:
        return None
    beside = depth // (SIDE * wide)
    if groups * beside != tile.waves:
        return None
    values = lanes.Layout(
        (2, 1), (four, SIDE), (four, wide), (1, four), (groups, beside), (1, groups)
    )
    turned = lanes.Layout(
        (1, 1), (SIDE, four), (wide, lanes.RUN), (four, 1), (beside, groups), (groups, 1)
    )
    return Loaded(keys, values, turned)


def block_info(arch: str, tile: BlockTile) -> ir.Attribute:
    """Build the compilation info of the hand-written loop, for its last op."""
    chip = CHIPS[arch]
    attributes = _READ_AHEAD + (f", {_TWO_WAVES}" if tile.waves == 8 else "")
    # the loop prefetches, so IREE must not pipeline it, and it defines the rows' layout in the LDS
    options = (
        "gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 0, "
        f"no_reduce_shared_memory_bank_conflicts = true>, llvm_func_attrs = {{{attributes}}}, "
    )
    # the layout of its elements is that of the second matmul
    config = (
        f"#iree_gpu.lowering_config<{{lane_basis = [[{SIDE // 4}, {SIDE}], [1, 0]], "
        f"subgroup_basis = [[{tile.waves}, 1], [0, 1]], thread = [1, {SIDE // 4}], "
        "workgroup = [0, 0]}>"
    )
    return _info(chip, tile.waves, config, options)


def _info(chip: Chip, waves: int, config: str, options: str) -> ir.Attribute:
    """Return the compilation info of a kernel of `waves` waves per workgroup."""
    return ir.Attribute.parse(
        f"#iree_codegen.compilation_info<lowering_config = {config}, translation_info = "
        "<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = "
        f"[{waves * chip.lanes}, 1, 1] subgroup_size = {chip.lanes}, {{{options}{_FLUSHED}}}>>"
    )


def _config(layout: str, basis: Sequence[int], dims: Sequence[int]) -> str:
    # a wave reads its own queries, and has its scores in registers
    return (
        f"{{lowering_config = #iree_gpu.lowering_config<{{mma_kind = {layout}, "
        f"{_promoted([1])}, subgroup_basis = [{numbers(basis)}, {numbers(dims)}]}}>}}"
    )


def _promoted(operands: Sequence[int]) -> str:
    each = ", ".join(["#iree_gpu.derived_thread_config"] * len(operands))
    return f"promote_operands = {numbers(operands)}, promotion_types = [{each}]"


__all__ = [
    "AttentionIntrinsics",
    "AttentionShape",
    "AttentionTile",
    "BlockTile",
    "Dims",
    "Loaded",
    "Parts",
    "attributes",
    "block_info",
    "block_intrinsic",
    "blocks",
    "choose",
    "choose_parts",
    "filled_width",
    "intrinsics_of",
    "load_layouts",
    "run_of",
]
