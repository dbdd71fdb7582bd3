"""What vector kernels know of a processor: lanes and registers. Such numbers stand here only."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from mgx_mlir.hardware.machine import compiled_as, processor_features


@dataclass(frozen=True)
class Isa:
    """What one is.

    lanes: of f32 in a register. registers: how many there are. tiles: the accumulators of a
    convolution, (pixels, registers), best first; with the operands they fill no more than the
    registers there are. dot_tiles: those of a matrix product. reached: what these reach of the
    peak, by their registers from 1 on. attention_tile: keys by the registers of queries that their
    scores are made of, and elements of a value by those that weigh it. turns_squares: transposes
    are loops of ours there, faster than the compiler's. pointwise_registers: as many are computed
    together where operators go along vectors, so that constants that find no register are read
    once for them.

    bf16_dot: LLVM's instruction that adds the products of two neighbours of bf16 to each lane of
    f32, if there is one. byte_dot: the one that adds the products of four neighbours of 8 bits, u8
    and i8, to each lane of i32; signed_bytes: it takes i8 and i8. byte_pairs: the one that sums
    those of two neighbours of u8 and i8 in each lane of i16, and saturates. word_dot: the one that
    sums those of two of i16 in each lane of i32. table: the one that looks each lane up among 16
    numbers of f32, by the low four bits of an i32. byte_table: the one that looks each lane of
    bytes up among those of two registers; byte_row: by its low four bits among 16, which are in
    each 128 bits of a register, 0 where its highest bit is set. bf16_round: the one that rounds a
    register of f32 to bf16.
    """

    lanes: int
    tiles: tuple[tuple[int, int], ...]
    dot_tiles: tuple[tuple[int, int], ...]
    reached: tuple[float, ...] = (0.85, 0.97, 1.0, 1.0)
    attention_tile: tuple[int, int] = (8, 2)
    registers: int = 32
    turns_squares: bool = False
    pointwise_registers: int = 1
    bf16_dot: str = ""
    byte_dot: str = ""
    signed_bytes: bool = False
    byte_pairs: str = ""
    word_dot: str = ""
    table: str = ""
    byte_table: str = ""
    byte_row: str = ""
    bf16_round: str = ""

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
        """Whether it has an instruction that looks bytes up."""
        return bool(self.byte_table or self.byte_row)

    @property
    def widened(self) -> tuple[str, ...]:
        """The types of which it has no products: those are computed in f32."""
        return ("half",) if self.bf16_dot else ("half", "bf16")


# With 16 to 28 accumulators a fused multiply-add a cycle is reached; more than 8 rows that are a
# power of two apart fall into the same sets of the first cache (docs/kernels.md).
AVX512 = Isa(
    16,
    ((6, 4), (8, 2), (8, 3), (8, 1)),
    dot_tiles=((8, 3), (6, 4), (8, 2), (8, 1)),
    byte_pairs="llvm.x86.avx512.pmaddubs.w.512",
    word_dot="llvm.x86.avx512.pmaddw.d.512",
    table="llvm.x86.avx512.permvar.sf.512",
)
AVX512_VNNI = replace(AVX512, byte_dot="llvm.x86.avx512.vpdpbusd.512")
AVX512_VBMI = replace(AVX512_VNNI, byte_table="llvm.x86.avx512.vpermi2var.qi.512")
AVX512_BF16 = replace(
    AVX512_VBMI,
    bf16_dot="llvm.x86.avx512bf16.dpbf16ps.512",
    bf16_round="llvm.x86.avx512bf16.cvtneps2bf16.512",
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
# of a processor that is not known: wide vectors, which the compiler cuts
ANY = Isa(16, ((8, 2), (8, 1)), dot_tiles=((8, 2), (8, 1)))

# names of LLVM's processors, by what their names begin with
_NAMES: tuple[tuple[Isa, tuple[str, ...]], ...] = (
    (AVX512_BF16, ("znver4", "znver5", "znver6", "sapphirerapids", "emeraldrapids",
                   "graniterapids", "diamondrapids")),
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


# the one that kernels are made for now: their parts ask for it, who do not know of targets
_CURRENT: ContextVar[Isa | None] = ContextVar("isa", default=None)


@contextmanager
def kernels_for(isa: Isa | None) -> Generator[None]:
    """Make kernels for a processor: `current_isa` is it."""
    before = _CURRENT.set(isa)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def current_isa() -> Isa | None:
    """Return the processor that kernels are made for; None where nobody says."""
    return _CURRENT.get()


def isa_of(cpu: str) -> Isa | None:
    """Return the vectors of a processor, `host` or a name of LLVM's; None: unknown, or no fused
    multiply-add, and kernels are left to the compiler."""
    if cpu == "host":
        features = processor_features()
        if "avx512f" in features and "avx512vl" in features:
            if "avx512_bf16" in features and "avx512_vnni" in features:
                has_tables = "avx512vbmi" in features
                return AVX512_BF16 if has_tables else replace(AVX512_BF16, byte_table="")
            if "avx512_vnni" not in features:
                return AVX512
            # the compiler is told of no less (hardware/machine.py)
            return AVX512_VBMI if compiled_as(features).startswith("icelake") else AVX512_VNNI
        if "avx2" in features and "fma" in features:
            return AVX2_VNNI if "avx_vnni" in features else AVX2
        if "asimd" not in features:
            return None
        return NEON_DOT if "asimddp" in features else NEON
    return next((isa for isa, names in _NAMES if cpu.startswith(names)), None)
