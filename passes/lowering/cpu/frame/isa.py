"""Properties of the CPU instruction sets that vector kernels are made for, in one table."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from mgx_mlir.core.dtypes import DType
from mgx_mlir.hardware.machine import compiled_as, has_tile_registers, processor_features


@dataclass(frozen=True)
class Isa:
    """Properties of one CPU instruction set; instructions are LLVM intrinsics, "" for none.

    Accumulators of a tile and their operands fit into the registers.
    """

    lanes: int  # f32 elements of a register
    tiles: tuple[tuple[int, int], ...]  # convolutions: (pixels, registers), best first
    dot_tiles: tuple[tuple[int, int], ...]  # matmuls: (rows, registers), best first
    reached: tuple[float, ...] = (0.85, 0.97, 1.0, 1.0)  # share of the peak, by a tile's registers
    # tile of scores (keys, registers of queries), and of weighted values (elements, registers)
    attention_tile: tuple[int, int] = (8, 2)
    registers: int = 32
    turns_squares: bool = False  # static transposes use our loops, which are faster than LLVM's
    # registers computed together, so that spilled constants are read once
    pointwise_registers: int = 1
    bf16_dot: str = ""  # adds the products of two bf16 neighbours to each lane of f32
    tile_dot: str = ""  # multiplies tiles of bf16 in registers of their own (tile_registers.py)
    tile_bytes: tuple[str, str] = ("", "")  # the same for u8 by i8, and for i8 by i8
    byte_dot: str = ""  # adds the products of four u8 by i8 neighbours to each lane of i32
    signed_bytes: bool = False  # `byte_dot` takes i8 by i8
    byte_pairs: str = ""  # sums the products of two u8 by i8 neighbours in i16, saturating
    word_dot: str = ""  # sums the products of two i16 neighbours in i32
    table: str = ""  # looks f32 lanes up among 16, by the low four bits of an i32
    byte_table: str = ""  # looks bytes up among those of two registers
    # looks bytes up among the 16 of each 128 bits, by their low four bits; 0 if the top bit is set
    byte_row: str = ""
    bf16_round: str = ""  # rounds a register of f32 to bf16
    # bytes ahead of a read of weights that memory is asked for them, 0: the hardware alone asks
    ahead: int = 0
    scale: str = ""  # multiplies f32 by powers of two: to infinity, or to 0

    def lanes_of(self, dtype: DType) -> int:
        """Return how many elements of a type are in a register."""
        return max(1, self.lanes * 4 // dtype.size)

    @property
    def sums(self) -> int:
        """Return how many registers of sums hide the latency of multiply-adds, and fit."""
        return min(16, self.registers - 4)

    @property
    def least_sums(self) -> int:
        """Return the registers of sums that hide the latency of multiply-adds."""
        return 10

    @property
    def looks_up(self) -> bool:
        """Return whether an instruction looks bytes up."""
        return bool(self.byte_table or self.byte_row)

    @property
    def widened(self) -> tuple[str, ...]:
        """Return the types whose matmuls are computed in f32, for lack of an instruction."""
        return ("half",) if self.bf16_dot else ("half", "bf16")


# 16 to 28 accumulators reach one fused multiply-add per cycle. More than 8 rows at a power-of-two
# distance map to the same sets of the L1 cache (docs/kernels.md).
AVX512 = Isa(
    16,
    ((6, 4), (8, 2), (8, 3), (8, 1)),
    dot_tiles=((8, 3), (6, 4), (8, 2), (8, 1)),
    byte_pairs="llvm.x86.avx512.pmaddubs.w.512",
    turns_squares=True,
    word_dot="llvm.x86.avx512.pmaddw.d.512",
    table="llvm.x86.avx512.permvar.sf.512",
    scale="llvm.x86.avx512.mask.scalef.ps.512",
)
AVX512_VNNI = replace(AVX512, byte_dot="llvm.x86.avx512.vpdpbusd.512")
AVX512_VBMI = replace(AVX512_VNNI, byte_table="llvm.x86.avx512.vpermi2var.qi.512")
AVX512_BF16 = replace(
    AVX512_VBMI,
    bf16_dot="llvm.x86.avx512bf16.dpbf16ps.512",
    bf16_round="llvm.x86.avx512bf16.cvtneps2bf16.512",
)
# Zen 5: a row by 4-bit weights reads 39 GB/s with 4096 and more, of 42 that a sum reads, and 23
# without; 8192 is faster by a tenth for eight rows and for codes of 8 bits
# (docs/quantization.md)
ZEN5 = replace(AVX512_BF16, ahead=8192)
AMX = replace(
    AVX512_BF16,
    tile_dot="llvm.x86.tdpbf16ps.internal",
    tile_bytes=("llvm.x86.tdpbusd.internal", "llvm.x86.tdpbssd.internal"),
)
AVX2 = Isa(
    8,
    ((6, 2), (4, 3), (8, 1)),
    dot_tiles=((6, 2), (4, 3), (8, 1)),
    reached=(0.85, 1.0, 0.93),
    attention_tile=(6, 2),
    registers=16,
    byte_pairs="llvm.x86.avx2.pmadd.ub.sw",
    turns_squares=True,
    pointwise_registers=2,
    word_dot="llvm.x86.avx2.pmadd.wd",
    byte_row="llvm.x86.avx2.pshuf.b",
)
AVX2_VNNI = replace(AVX2, byte_dot="llvm.x86.avx512.vpdpbusd.256")
NEON = Isa(4, ((6, 4), (6, 1)), dot_tiles=((6, 4), (8, 2), (8, 1)), attention_tile=(6, 4))
NEON_DOT = replace(NEON, byte_dot="llvm.aarch64.neon.sdot.v4i32.v16i8", signed_bytes=True)
# for an unknown CPU: wide vectors, which LLVM splits
ANY = Isa(16, ((8, 2), (8, 1)), dot_tiles=((8, 2), (8, 1)))

# LLVM's names of CPUs, by their beginnings
_NAMES: tuple[tuple[Isa, tuple[str, ...]], ...] = (
    (AMX, ("sapphirerapids", "emeraldrapids", "graniterapids", "diamondrapids")),
    (AVX512_BF16, ("znver4",)),
    (ZEN5, ("znver5", "znver6")),
    (replace(AVX512_BF16, byte_table=""), ("cooperlake",)),
    (AVX512_VBMI, ("icelake", "tigerlake", "rocketlake")),
    (AVX512_VNNI, ("cascadelake",)),
    (AVX512, ("x86-64-v4", "skylake-avx512", "cannonlake")),
    (AVX2_VNNI, ("alderlake", "raptorlake", "meteorlake", "gracemont", "arrowlake", "lunarlake",
                 "pantherlake", "sierraforest", "grandridge", "clearwaterforest")),
    (AVX2, ("znver", "x86-64-v3", "haswell", "broadwell", "skylake", "core-avx2")),
    (NEON_DOT, ("apple-m", "cortex-a76", "cortex-a77", "cortex-a78", "cortex-a710",
                "cortex-a715", "cortex-a720", "cortex-a725", "cortex-x", "neoverse", "ampere1")),
    (NEON, ("cortex-a7", "a64fx")),
)  # fmt: skip


# the instruction set of the current lowering, for code without access to the target
_CURRENT: ContextVar[Isa | None] = ContextVar("isa", default=None)


@contextmanager
def kernels_for(isa: Isa | None) -> Generator[None]:
    """Make kernels for an instruction set: `current_isa` is it."""
    before = _CURRENT.set(isa)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def current_isa() -> Isa | None:
    """Return the instruction set that kernels are made for; None outside of a lowering."""
    return _CURRENT.get()


def isa_of(cpu: str) -> Isa | None:
    """Return the instruction set of a CPU, `host` or a name of LLVM's.

    None: it is unknown or has no fused multiply-add, and kernels are left to IREE.
    """
    if cpu == "host":
        features = processor_features()
        if "avx512f" in features and "avx512vl" in features:
            if "avx512_bf16" in features and "avx512_vnni" in features:
                if "avx512vbmi" not in features:
                    return replace(AVX512_BF16, byte_table="")
                if {"clzero", "avx_vnni"} <= features:  # AMD's alone, and new in Zen 5
                    return ZEN5
                return AMX if has_tile_registers() else AVX512_BF16
            if "avx512_vnni" not in features:
                return AVX512
            # LLVM targets at least AVX2 then (hardware/machine.py)
            return AVX512_VBMI if compiled_as(features).startswith("icelake") else AVX512_VNNI
        if "avx2" in features and "fma" in features:
            return AVX2_VNNI if "avx_vnni" in features else AVX2
        if "asimd" not in features:
            return None
        return NEON_DOT if "asimddp" in features else NEON
    return next((isa for isa, names in _NAMES if cpu.startswith(names)), None)
