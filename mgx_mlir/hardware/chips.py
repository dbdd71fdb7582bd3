"""GPUs by architecture: figures that bound kernel times, from vendors' data sheets and guides.

Sources of AMD's: the CDNA 2, CDNA 3 and CDNA 4 white papers, the data sheets of MI210, MI300X,
MI355X, and of the Radeon RX 6000, 7000 and 9000 series, the RDNA 2, 3 and 4 ISA guides. Of APUs,
the product pages of Ryzen 6000 to AI 300, with the fastest memory that they take. Registers and
granules: LLVM's AMDGPUUsage ("VGPR" of the kernel descriptor) and its GPU definitions, by
which gfx1100, gfx1101, gfx1151 and gfx12 have 1536 registers of a SIMD, other RDNA 1024; a test
has the occupancies that LLVM 19's llc prints. Of the Instinct MI60 and Radeon VII: their data
sheets and the Vega 7nm ISA guide.

Sources of NVIDIA's: units, clocks, bandwidth and dense 16-bit FLOPs of the data sheets of A100
(SXM, 80 GB), A40, L40S and H200 (SXM); FLOPs are per unit and clock. Warps, registers and shared
memory of the CUDA programming guide's table of compute capabilities. AMD's terms are used for
NVIDIA too: a compute unit is a multiprocessor, a wave a warp, the LDS shared memory, a SIMD one of
four partitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mgx_mlir.hardware.architectures import vendor_of


@dataclass(frozen=True)
class Chip:
    """One GPU, the largest of its architecture."""

    units: int  # compute units
    ghz: float  # peak clock in GHz
    bandwidth: float  # memory bandwidth in GB/s
    matrix: int  # FLOPs of 16-bit matrix instructions per compute unit and clock; 0 without them
    vector: int  # FLOPs of f32 vector instructions per compute unit and clock
    lds: int  # LDS bytes per compute unit
    simds: int  # SIMDs per compute unit
    registers: int  # vector registers of a SIMD, for each lane of a wave
    granule: int  # allocation unit of vector registers
    waves: int  # waves that a SIMD holds at most
    lanes: int  # lanes of a wave
    copies: int = 1  # copies of a matrix operand in the registers of a wave
    single: float = 0.0  # rate of f32 matrix instructions as a share of `matrix`; 0 without them
    byte: float = 1.0  # rate of 8-bit matrix instructions as a multiple of `matrix`
    depth: int = 16  # least depth of a 16-bit 16x16 matrix instruction at the full rate
    lds_read: int = 128  # bytes per clock that a compute unit reads from the LDS
    cache: int = 64  # bytes per clock that a compute unit reads from the cache beyond its own
    workgroup_lds: int = 0  # most LDS bytes of a workgroup, 0: all
    # bytes per clock and compute unit from the caches beyond its own while all units load; fitted
    # to published times (benchmarks/gpu_published.py); 0: unknown
    together: int = 0
    arch: str = ""  # gfx or sm_ name

    @property
    def is_nvidia(self) -> bool:
        """Return whether the vendor is NVIDIA."""
        return vendor_of(self.arch) == "nvidia"

    def matrix_rate(self, kind: str, depth: int) -> float:
        """Return the share of `matrix` that a 16x16 instruction on elements of a type reaches.

        kind: the type in the assembler's name: f16, bf16_1k, i8, fp8_fp8, f32.
        """
        if kind in ("f32", "f64", "xf32"):
            return self.single
        byte = kind.startswith(("i8", "iu8", "fp8", "bf8", "f8"))
        peak = self.byte if byte else 1.0
        if self.lanes == 64:  # on CDNA a shallow instruction takes as long as a deep one
            return peak * min(1.0, depth / (self.depth * peak))
        return peak

    @property
    def matrix_peak(self) -> float:
        """16-bit operations per second of all matrix units."""
        return self.units * self.matrix * self.ghz * 1e9

    @property
    def vector_peak(self) -> float:
        """f32 operations per second without matrix instructions."""
        return self.units * self.vector * self.ghz * 1e9

    def occupancy(self, registers: int, lds: int, workgroup: int) -> int:
        """Return the waves per SIMD for a kernel's registers per lane, LDS and workgroup size."""
        given = -(-max(registers, 1) // self.granule) * self.granule
        found = min(self.waves, self.registers // given)
        if lds:
            waves = -(-workgroup // self.lanes)
            found = min(found, self.lds // lds * waves // self.simds)
        return found


LAUNCH_US = 3.0  # overhead of a launch, "a few us" on these chips; not measured here
_KB = 1024
_CHIPS = {
    "gfx906": Chip(64, 1.8, 1024, 0, 128, 64 * _KB, 4, 256, 4, 10, 64),
    "gfx90a": Chip(104, 1.7, 1638, 1024, 256, 64 * _KB, 4, 512, 8, 8, 64, single=1 / 4),
    "gfx942": Chip(304, 2.1, 5300, 2048, 256, 64 * _KB, 4, 512, 8, 8, 64, single=1 / 8, byte=2),
    "gfx950": Chip(
        256,
        2.4,
        8000,
        4096,
        256,
        160 * _KB,
        4,
        512,
        8,
        8,
        64,
        single=1 / 16,
        byte=2,
        depth=32,
        lds_read=256,
        together=20,
    ),
    "gfx1030": Chip(80, 2.31, 576, 0, 128, 64 * _KB, 2, 1024, 16, 16, 32),
    "gfx1031": Chip(40, 2.6, 432, 0, 128, 64 * _KB, 2, 1024, 16, 16, 32),
    "gfx1032": Chip(32, 2.635, 280, 0, 128, 64 * _KB, 2, 1024, 16, 16, 32),
    "gfx1033": Chip(8, 1.6, 88, 0, 128, 64 * _KB, 2, 1024, 16, 16, 32),
    "gfx1034": Chip(16, 2.815, 144, 0, 128, 64 * _KB, 2, 1024, 16, 16, 32),
    "gfx1035": Chip(12, 2.4, 102, 0, 128, 64 * _KB, 2, 1024, 16, 16, 32),
    "gfx1036": Chip(2, 2.2, 83, 0, 128, 64 * _KB, 2, 1024, 16, 16, 32),
    "gfx1100": Chip(96, 2.5, 960, 512, 256, 64 * _KB, 2, 1536, 24, 16, 32, copies=2),
    "gfx1101": Chip(60, 2.43, 624, 512, 256, 64 * _KB, 2, 1536, 24, 16, 32, copies=2),
    "gfx1102": Chip(32, 2.755, 288, 512, 256, 64 * _KB, 2, 1024, 16, 16, 32, copies=2),
    "gfx1103": Chip(12, 2.8, 120, 512, 256, 64 * _KB, 2, 1024, 16, 16, 32, copies=2),
    "gfx1150": Chip(16, 2.9, 128, 512, 256, 64 * _KB, 2, 1024, 16, 16, 32, copies=2),
    "gfx1151": Chip(40, 2.9, 256, 512, 256, 64 * _KB, 2, 1536, 24, 16, 32, copies=2),
    "gfx1152": Chip(8, 3.0, 128, 512, 256, 64 * _KB, 2, 1024, 16, 16, 32, copies=2),
    "gfx1153": Chip(2, 2.8, 128, 512, 256, 64 * _KB, 2, 1024, 16, 16, 32, copies=2),
    "gfx1200": Chip(32, 3.13, 320, 1024, 256, 64 * _KB, 2, 1536, 24, 16, 32, byte=2),
    "gfx1201": Chip(64, 2.97, 640, 1024, 256, 64 * _KB, 2, 1536, 24, 16, 32, byte=2),
    "sm_80": Chip(
        108, 1.41, 2039, 2048, 128, 164 * _KB, 4, 512, 8, 16, 32, workgroup_lds=163 * _KB
    ),
    "sm_86": Chip(84, 1.74, 696, 1024, 256, 100 * _KB, 4, 512, 8, 12, 32, workgroup_lds=99 * _KB),
    "sm_89": Chip(
        142, 2.52, 864, 1024, 256, 100 * _KB, 4, 512, 8, 12, 32, byte=2, workgroup_lds=99 * _KB
    ),
    # measured on an H200 (driver 580, 2026-11-29): mma.sync 2650 of the 4096 FLOPs that wgmma has,
    # the cache with all units at once; code is sm_89's
    "sm_90": Chip(
        132, 1.98, 4800, 2650, 256, 228 * _KB, 4, 512, 8, 16, 32, byte=2, cache=39,
        workgroup_lds=99 * _KB,
    ),
}  # fmt: skip
CHIPS = {arch: replace(chip, arch=arch) for arch, chip in _CHIPS.items()}


def amd_chip(arch: str) -> Chip | None:
    """Return the figures of an AMD architecture, None for others and unknown ones."""
    chip = CHIPS.get(arch)
    return None if chip is None or chip.is_nvidia else chip
