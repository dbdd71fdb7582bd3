"""IREE's `compilation_info` for the matmuls, convolutions and windows of GPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import gcd, prod

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.hardware.chips import CHIPS, Chip, amd_chip
from mgx_mlir.passes.lowering import select
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.gpu import schedules
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import (
    DOT,
    GemmConfig,
    GemmShape,
    of_dynamic_rows,
)
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE, MmaIntrinsic, intrinsic_of
from mgx_mlir.passes.lowering.gpu.matmul.scalar_tiles import (
    is_short_row,
    lane_tile,
    thread_tile,
    thread_windows,
)
from mgx_mlir.passes.lowering.gpu.matmul.tiles import Extents, MmaSchedule, choose
from mgx_mlir.passes.lowering.gpu.schedules import ThreadTile
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

# LLVM's limit of unrolled operations for loops between barriers, where a lane has few registers;
# with its default 300 it hoists all loads, and spills up to 64 registers
_KEPT_LOOP = {"amdgpu-unroll-threshold": "50"}


@dataclass(frozen=True)
class MatmulSite:
    """A matmul or convolution inside of a kernel."""

    arch: str  # gfx name
    gemm: GemmShape
    config: GemmConfig
    residual: bool = False  # kernel also reads a tensor of the result's dims

    def __str__(self) -> str:
        dims = "x".join(map(str, (*self.gemm.batch, *self.gemm.dims)))
        return f"{self.gemm.op} {dims} {self.gemm.dtype}"


def _attribute_of(e: LoweringContext, site: MatmulSite, info: ir.Attribute) -> list[ir.Attribute]:
    return [info]


def _few_rows(e: LoweringContext, site: MatmulSite) -> ir.Attribute | Refusal:
    """Take a vector times weights, or few rows without a matrix instruction."""
    arch, gemm = site.arch, site.gemm
    tile = lane_tile(arch, gemm)
    if tile is not None:  # lanes take neighbouring elements along the depth
        sizes, rows = [tile.rows, tile.columns], [1, 1]
        return lanes_attribute(
            CHIPS[arch], rows, [CHIPS[arch].lanes], [tile.waves], [tile.run], sizes
        )
    if is_short_row(arch, gemm):  # each thread has a column
        _, columns, depth = gemm.dims
        step = next(n for n in (8, 4, 2, 1) if depth % n == 0)
        lanes = CHIPS[arch].lanes
        return threads_attribute(CHIPS[arch], lanes, [1, 1], [1, min(columns, lanes)], [step])
    return Refusal("it is not a float vector times weights, nor few rows for lanes to sum")


def _thread_tiles(e: LoweringContext, site: MatmulSite) -> ir.Attribute | Refusal:
    """Take matmuls without a matrix instruction: each thread has its own sums."""
    arch, gemm = site.arch, site.gemm
    if gemm.intrinsic(arch) is not None:
        return Refusal("matrix instructions multiply it")
    return _plain_info(arch, gemm) or Refusal("it is too small, or neither f32 nor i32")


def _matrix_tiles(e: LoweringContext, site: MatmulSite) -> ir.Attribute | Refusal:
    """Take matmuls by matrix instructions, with the configured tiles.

    A GEMM in parts is [parts, rows, columns, depth of a part], a whole one [batch.., rows,
    columns, depth].
    """
    arch, gemm, config = site.arch, site.gemm, site.config
    mma, tile = gemm.intrinsic(arch), config.tile
    if mma is None:
        return Refusal(f"no matrix instruction of {arch} multiplies it")
    if tile is None:
        return Refusal("its tiles are left to IREE")
    chip, of = CHIPS[arch], gemm.extents
    own = _sizes(mma, tile)
    depth = of.depth // config.split
    if gemm.op != DOT:  # images one by one
        sizes = [1, tile.tiles[0], *own]
        wave = [1, *tile.subgroup]
        return _info(chip, mma, tile, sizes, wave, depth, columns=of.columns, convolution=True)
    one = [1] * (1 if config.split > 1 else len(gemm.batch))
    several = tile.workgroups(mma, of) > chip.units
    return _info(
        chip, mma, tile, [*one, *own], [*one, *tile.subgroup[1:]], depth, columns=of.columns,
        several=site.residual and several, cut=tile.is_cut(mma, of),
    )  # fmt: skip


# the first match gives the op's compilation info
MATMULS = (
    KernelRule("few_rows", (), _few_rows, _attribute_of),
    KernelRule("thread_tiles", (), _thread_tiles, _attribute_of),
    KernelRule("matrix_tiles", (), _matrix_tiles, _attribute_of),
)


@dataclass(frozen=True)
class FormSite:
    """A matmul or convolution in a form that has its own rule."""

    arch: str  # gfx name
    info: Callable[[str], ir.Attribute | None]  # compilation info by gfx name; None: no tile fits


def _form(e: LoweringContext, site: FormSite) -> ir.Attribute | Refusal:
    return site.info(site.arch) or Refusal("no tile fits its sizes and types")


# one rule per form; without it, IREE chooses the tiles
FEW_BITS_WORDS = KernelRule("few_bits_words", (), _form, _attribute_of)
FEW_BITS_TILES = KernelRule("few_bits_tiles", (), _form, _attribute_of)
GATHERED_WINDOWS = KernelRule("gathered_windows", (), _form, _attribute_of)
IMAGE_WINDOWS = KernelRule("image_windows", (), _form, _attribute_of)
FORMS = (FEW_BITS_WORDS, FEW_BITS_TILES, GATHERED_WINDOWS, IMAGE_WINDOWS)


def give_form(
    e: LoweringContext,
    found: ir.Value,
    rule: KernelRule,
    part: str,
    info: Callable[[str], ir.Attribute | None],
) -> None:
    """Annotate the op of a matmul or convolution by the rule of its form; part: its name beside its
    kernel's."""
    if e.options.tiles:
        _put_first(e, found, (rule,), FormSite(e.options.arch, info), part)


def _put_first(
    e: LoweringContext, found: ir.Value, rules: Sequence[KernelRule], site: object, part: str
) -> None:
    info = select.lower(e, rules, site, None, part=part)
    if info is not None:
        found.owner.attributes["compilation_info"] = info[0]


def gathered_info(arch: str, dtype: DType, out: Sequence[int], depth: int) -> ir.Attribute | None:
    """Return the info of gathered rows [n, .., ow, k] by [f, k], k whole matrix instructions.

    The result is [n, .., ow, f].
    """
    mma = intrinsic_of(arch, dtype, depth)
    if mma is None or amd_chip(arch) is None:
        return None
    *lead, along, columns = out
    of = Extents(prod(lead), along, columns, depth, gathered=True)
    tile = choose(CHIPS[arch], mma, of)
    return _windows_info(arch, mma, tile, [1] * (len(lead) - 1), of)


def windows_info(arch: str, gemm: GemmShape, ones: int, vectors: int) -> ir.Attribute | None:
    """Return the info of windows [n, .., ow, depth] of a convolution by its filters.

    ones: axes ahead of the lines and their elements. vectors: most that a wave gathers in an
    iteration.
    """
    if amd_chip(arch) is None:
        return None
    mma, of = gemm.intrinsic(arch), replace(gemm.extents, gathered=True, vectors=vectors)
    if mma is None:
        plain = thread_windows(arch, gemm)
        if plain is None:
            return None
        tile, along = plain
        return _plain(arch, tile, [1, tile.size[0] // along], along, [1, 1])
    return _windows_info(arch, mma, choose(CHIPS[arch], mma, of), [1] * ones, of)


def _sizes(mma: MmaIntrinsic, tile: MmaSchedule) -> list[int]:
    """Return the rows along a line and the columns of a workgroup."""
    return [tile.tiles[1] * mma.rows, tile.tiles[2] * mma.columns]


def _windows_info(
    arch: str, mma: MmaIntrinsic, tile: MmaSchedule, ones: Sequence[int], of: Extents
) -> ir.Attribute:
    """Return the attribute of a tile for [.., lines, along, columns], `ones` ahead of the lines."""
    # elements of a partial last step would go through memory
    steps = next(s for s in range(tile.k_tiles, 0, -1) if of.depth // mma.depth % s == 0)
    sizes = [*ones, tile.tiles[0], *_sizes(mma, tile)]
    tile = replace(tile, k_tiles=steps)
    wave = [*ones, *tile.subgroup]
    return _info(CHIPS[arch], mma, tile, sizes, wave, of.depth, columns=of.columns, gathered=True)


def words_info(arch: str, rows: Sequence[int], words: Sequence[int]) -> ir.Attribute | None:
    """Return the info of few rows [rows.., blocks, words of a block] by words [columns, blocks,
    words] of codes.

    A lane loads neighbouring words of one block, of several columns where those are many and a row
    is alone: the row is then read less often.
    """
    chip = CHIPS.get(arch)
    if chip is None:
        return None
    columns, blocks, count = words
    run = next(n for n in (4, 2, 1) if count % n == 0)
    along = gcd(count // run, chip.lanes)
    known = schedules.lane_tiles(arch)
    full = chip.units * chip.simds
    deep = blocks * along >= known.word_loads * known.word_waves * chip.lanes
    waves = known.word_waves if deep and columns <= known.word_wave_columns * full else 1
    # IREE distributes no tile of several rows and columns
    most = known.word_columns if prod(rows) == 1 else 1
    own = next(
        (n for n in (8, 4, 2) if n <= most and columns % n == 0 and columns // n * waves >= full), 1
    )
    one = [1] * (len(rows) + 1)
    lanes = [chip.lanes // along, along]
    return lanes_attribute(chip, one, lanes, [waves, 1], [1, run], [*rows, own])


def blocks_info(arch: str, gemm: GemmShape, count: int) -> ir.Attribute | None:
    """Return the info of rows [.., rows, blocks, count] by widened codes [columns, blocks,
    count], with the tile of `gemm`.
    """
    shape = gemm.usual() if gemm.is_dynamic else gemm
    chip = amd_chip(arch)
    if chip is None or shape is None:
        return None
    lead = [1] * len(shape.batch)
    mma = intrinsic_of(arch, dtypes.from_name(shape.dtype), count)
    if mma is not None and count % mma.depth:
        return None
    if mma is None:
        plain = thread_tile(arch, shape)
        if plain is None:
            return None
        blocks, codes = steps_of(count, shape.dims[2] // count, plain.depth)
        return _plain(arch, plain, lead, plain.size[0], lead, [blocks, codes])
    tile = choose(chip, mma, shape.extents)
    blocks, codes = steps_of(count, shape.dims[2] // count, tile.k_tiles * mma.depth)
    own = [*lead, *_sizes(mma, tile)]
    return _info(
        chip, mma, tile, own, [*lead, *tile.subgroup[1:]], shape.dims[2], columns=shape.dims[1],
        steps=[blocks, codes // mma.depth],
    )  # fmt: skip


def steps_of(count: int, blocks: int, depth: int) -> tuple[int, int]:
    """Return a step of about `depth` codes: its number of blocks, and codes of each block.

    Steps of whole blocks divide their number, as IREE crashes on a partial step.
    """
    if count > depth:
        return 1, gcd(count, depth)
    return next(n for n in range(max(depth // count, 1), 0, -1) if blocks % n == 0), count


def _plain_info(arch: str, gemm: GemmShape) -> ir.Attribute | None:
    windows = thread_windows(arch, gemm)
    if windows is not None:
        tile, along = windows
        return _plain(arch, tile, [1, tile.size[0] // along], along, [1, 1], convolution=True)
    tile = thread_tile(arch, gemm)
    if tile is None:
        return None
    one = [1] * len(gemm.batch)
    return _plain(arch, tile, one, tile.size[0], one)


def _plain(
    arch: str,
    tile: ThreadTile,
    lead: Sequence[int],
    rows: int,
    one: Sequence[int],
    steps: Sequence[int] = (),
    *,
    convolution: bool = False,
) -> ir.Attribute:
    """Return the attribute of a tile of threads.

    lead, one: extents of a workgroup and of a thread ahead of the rows. steps: those of the dims
    that are summed, where there are several.
    """
    size = [*lead, rows, tile.size[1]]
    depth = list(steps) or [tile.depth]
    kept = CHIPS[arch].lanes == 32 and not CHIPS[arch].is_nvidia
    whole = f"padding_conv = {numbers([*size, 0, 0, 0])}, " if convolution else ""
    return _attribute(
        f"padding = {numbers([*size, *depth])}, {whole}promote_operands = [0, 1], "
        f"reduction = {numbers([*[0] * len(size), *depth])}, "
        f"thread = {numbers([*one, *tile.thread, *[0] * len(depth)])}, "
        f"workgroup = {numbers([*size, *[0] * len(depth)])}",
        tile.threads,
        CHIPS[arch],
        _options(0, _KEPT_LOOP if kept else {}, convolution=convolution, apart=False),
    )


def window_info(
    arch: str, out: Sequence[int | ir.Value], spatial: int, *, planar: bool = False
) -> ir.Attribute | None:
    """Return the info of windows of images that are reduced, results [n, .., c].

    A thread takes adjacent channels and one element of the window at a time; else windows at the
    border are put in scratch memory. planar: results are [n, c, ..], a thread takes one of them.
    """
    chip = amd_chip(arch)
    along, channels = out[-2:]
    if not isinstance(along, int) or not isinstance(channels, int):
        return None
    if chip is None:
        return None
    run = next((n for n in (4, 2) if channels % n == 0 and channels >= n * SIDE), 1)
    run = 1 if planar else run
    across = max(n for n in range(1, chip.lanes + 1) if (channels // run) % n == 0)
    images = max(n for n in range(1, chip.lanes // across + 1) if along % n == 0)
    lead = [1] * (len(out) - 2)
    size = [*lead, images, across * run]
    return threads_attribute(chip, across * images, [*lead, 1, run], size, [1] * spatial)


def group_info(
    arch: str, dtype: DType, out: Sequence[int | ir.Value], channels: int | ir.Value, sums: int
) -> ir.Attribute | None:
    """Return the info of grouped convolutions, results [n, .., groups, filters], as window_info.

    channels: of a group. sums: number of dims that are summed, the channels first. Without channels
    that a matrix instruction divides, IREE's own kernels are taken on CDNA alone: on RDNA they are
    unrolled whole, with up to 26 registers and 156 bytes in memory.
    """
    chip = amd_chip(arch)
    if chip is None or not isinstance(channels, int) or not dtype.is_float:
        return None
    mma = intrinsic_of(arch, dtype, channels)
    divided = mma is not None and channels % mma.depth == 0
    plain = channels == 1 or (chip.lanes == 32 and not divided)
    return window_info(arch, out, sums) if plain else None


def element_info(arch: str, out: Sequence[int]) -> ir.Attribute | None:
    """Return the info of a loop with much computation per element: a thread has one element of
    a row.
    """
    chip = amd_chip(arch)
    if chip is None:
        return None
    across = max(n for n in range(1, chip.lanes + 1) if out[-1] % n == 0)
    lead = [1] * (len(out) - 1)
    return threads_attribute(chip, chip.lanes, [*lead, 1], [*lead, across])


def give(e: LoweringContext, found: ir.Value, info: Callable[[str], ir.Attribute | None]) -> None:
    """Annotate the op that makes a value of static dims by `info` of the target's chip."""
    if ir.RankedTensorType(found.type).has_static_shape:
        put(e, found, info)


def give_matmul(
    e: LoweringContext,
    found: ir.Value,
    gemm: Callable[[], GemmShape],
    config: GemmConfig | None = None,
    *,
    residual: bool = False,
) -> None:
    """Annotate the op of a matmul by a config, or that of the options; residual: as for MatmulSite.

    A GEMM of dynamic rows has the tile of a usual number of them.
    """
    if not e.options.tiles:
        return
    arch, made = e.options.arch, gemm()
    if made.is_dynamic:
        usual = made.usual()
        if usual is None or usual.op != DOT:  # IREE takes none for a convolution (hazard 37)
            return
        made, config = usual, of_dynamic_rows(arch, usual)
    config = config or e.options.gemm_config(made, e.function)
    site = MatmulSite(arch, made, config, residual)
    _put_first(e, found, MATMULS, site, str(site))


def put(e: LoweringContext, found: ir.Value, info: Callable[[str], ir.Attribute | None]) -> None:
    """Annotate the op that makes a value by `info` of the chip; None: IREE chooses."""
    chosen = info(e.options.arch) if e.options.tiles else None
    if chosen is not None:
        found.owner.attributes["compilation_info"] = chosen


def _info(
    chip: Chip,
    mma: MmaIntrinsic,
    tile: MmaSchedule,
    sizes: Sequence[int],
    wave: Sequence[int],
    depth: int,
    *,
    columns: int,
    several: bool = False,
    cut: bool = False,
    convolution: bool = False,
    gathered: bool = False,
    steps: Sequence[int] = (),
) -> ir.Attribute:
    """Return the attribute of a tile of matrix instructions.

    sizes: those of a workgroup, in elements. wave: share of a wave, in matrix instructions.
    columns: those of the result. several: units get more than one workgroup, which read a residual.
    cut: tiles of a GEMM are partial. gathered: rows are, each vector by a mask. steps: those of the
    dims that are summed, where there are several, the last in matrix instructions.
    """
    each = list(steps) or [tile.k_tiles]
    whole = f"padding_conv = {numbers([*sizes, 0, 0, 0])}, " if convolution else ""
    # a wave with the columns of one instruction would load partial runs by branches
    turned = chip.lanes == 64 and (columns % sizes[-1] == 0 or tile.subgroup[2] > 1)
    keeps = chip.lanes == 32 or tile.keeps_loop(mma, depth, several=several)
    attributes = dict(_KEPT_LOOP) if keeps and not chip.is_nvidia else {}
    # the second strategy uses all registers, also for the epilogue of many results; with masks
    # scalar registers spill, and it gains 2 % at most
    few = prod(tile.subgroups) <= chip.simds
    how = "iterative-maxocc" if tile.is_large and few else "" if gathered else "iterative-ilp"
    if how and tile.reads_ahead(chip, mma, depth):
        attributes["amdgpu-sched-strategy"] = how
    return _attribute(
        f"mma_kind = {mma.layout(turned=turned)}, "
        f"padding = {numbers([*sizes, *each[:-1], each[-1] * mma.depth])}, {whole}"
        f"promote_operands = [0, 1], reduction = {numbers([*[0] * len(sizes), *each])}, "
        f"subgroup = {numbers([*wave, *[0] * len(each)])}, "
        f"workgroup = {numbers([*sizes, *[0] * len(each)])}",
        prod(tile.subgroups) * chip.lanes,
        chip,
        _options(
            tile.stages(chip, mma, depth, cut=cut),
            attributes,
            convolution=convolution,
            apart=chip.is_nvidia,
        ),
    )


def lanes_attribute(
    chip: Chip,
    one: Sequence[int],
    lanes: Sequence[int],
    waves: Sequence[int],
    run: Sequence[int],
    size: Sequence[int],
) -> ir.Attribute:
    """Return the attribute of sums that lanes and waves share along the reduced dims.

    one: 1 for each other dim. run: elements that a lane loads. size: a workgroup's other dims.
    """
    order, none = numbers(range(len(one) + len(lanes))), [0] * len(one)
    own = [prod(each) for each in zip(lanes, waves, run, strict=True)]
    return _attribute(
        f"lane_basis = [{numbers([*one, *lanes])}, {order}], "
        f"partial_reduction = {numbers([*none, *own])}, "
        f"subgroup_basis = [{numbers([*one, *waves])}, {order}], "
        f"thread = {numbers([*none, *run])}, workgroup = {numbers([*size, *[0] * len(lanes)])}",
        chip.lanes * prod(waves),
        chip,
        ", {gpu_pipeline_options = #iree_gpu.pipeline_options<"
        "no_reduce_shared_memory_bank_conflicts = false>}",
        pipeline="VectorDistribute",
    )


def threads_attribute(
    chip: Chip, count: int, own: Sequence[int], size: Sequence[int], summed: Sequence[int] = ()
) -> ir.Attribute:
    """Return the attribute of `count` threads with separate results.

    own, size: results of a thread and of a workgroup. summed: elements of an iteration along each
    dim that is summed.
    """
    none = [0] * len(summed)
    reduction = f"reduction = {numbers([*[0] * len(size), *summed])}, " if summed else ""
    return _attribute(
        f"{reduction}thread = {numbers([*own, *none])}, workgroup = {numbers([*size, *none])}",
        count,
        chip,
    )


def _options(stages: int, attributes: Mapping[str, str], *, convolution: bool, apart: bool) -> str:
    """Return options of the pipeline; stages: k-iterations in flight."""
    igemm = ", use_igemm_convolution = true" if convolution else ""
    each = ", ".join(f'"{name}" = "{value}"' for name, value in attributes.items())
    functions = f", llvm_func_attrs = {{{each}}}" if each else ""
    return (
        f", {{gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = {stages}, "
        f"no_reduce_shared_memory_bank_conflicts = {str(apart).lower()}{igemm}>{functions}}}"
    )


def _attribute(
    config: str, threads: int, chip: Chip, options: str = "", *, pipeline: str = "TileAndFuse"
) -> ir.Attribute:
    return ir.Attribute.parse(
        "#iree_codegen.compilation_info<"
        f"lowering_config = #iree_gpu.lowering_config<{{{config}}}>, "
        f"translation_info = <pipeline = #iree_gpu.pipeline<{pipeline}> "
        f"workgroup_size = [{threads}, 1, 1] subgroup_size = {chip.lanes}{options}>>"
    )


def numbers(values: Sequence[int]) -> str:
    """Return a list in the syntax of IREE's attributes."""
    return f"[{', '.join(map(str, values))}]"


__all__ = [
    "FEW_BITS_TILES", "FEW_BITS_WORDS", "FORMS", "GATHERED_WINDOWS", "IMAGE_WINDOWS", "MATMULS",
    "FormSite", "MatmulSite", "element_info", "give", "give_form", "give_matmul",
    "group_info", "numbers", "put", "steps_of", "window_info", "windows_info",
]  # fmt: skip
