"""Matrix instructions of GPUs, by IREE's name, for elements of a type.

Those of AMD have tiles of 16x16, those of NVIDIA of 16x8. All sum in f32 or i32. 16 rows or columns
fill small matmuls best; those of 32x32 reach the same rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.hardware.chips import Chip

SIDE = 16  # rows and columns of a matrix instruction of AMD


@dataclass(frozen=True)
class MmaIntrinsic:
    """A matrix instruction."""

    name: str  # IREE's name
    depth: int  # elements along the depth
    bytes: int  # bytes of an operand's element
    paired: bool = False  # two consecutive instructions with adjacent operands
    rows: int = SIDE  # rows of its result
    columns: int = SIDE  # columns of its result

    @property
    def rows_bytes(self) -> int:
        """Bytes of its rows, one operand."""
        return self.rows * self.depth * self.bytes

    @property
    def columns_bytes(self) -> int:
        """Bytes of its columns, the other operand."""
        return self.columns * self.depth * self.bytes

    @property
    def padding(self) -> int:
        """Bytes between two rows in the LDS: IREE adds 8; a row that `ldmatrix` reads begins at a
        multiple of 16."""
        return 8 if self.columns == SIDE else 16

    def layout(self, *, turned: bool = False) -> str:
        """Return IREE's attribute.

        turned: a lane holds neighbouring columns of a row of the result, instead of neighbouring
        rows of a column. IREE swaps the operands for that.
        """
        kind = "virtual_mma_layout" if self.paired else "mma_layout"
        return f"#iree_gpu.{kind}<{self.name}{', col_major = true' if turned else ''}>"

    def clocks(self, chip: Chip) -> float:
        """Return the clocks that it takes on the SIMD of its wave."""
        rate = chip.matrix * chip.matrix_rate(self._element, self.depth) / chip.simds
        return 2 * self.rows * self.columns * self.depth / rate

    @property
    def _element(self) -> str:
        return {1: "i8", 2: "f16", 4: "f32"}[self.bytes]


def _kinds(
    bits16: str, depth: int, *, bf16: str = "", bf16_depth: int = 0
) -> dict[DType, MmaIntrinsic]:
    bf16 = bf16 or bits16.replace("_F16", "_BF16")
    return {
        dtypes.HALF: MmaIntrinsic(bits16, depth, 2),
        dtypes.BF16: MmaIntrinsic(bf16, bf16_depth or depth, 2),
    }


_SINGLE = {dtypes.FLOAT: MmaIntrinsic("MFMA_F32_16x16x4_F32", 4, 4)}
_CDNA3 = {
    **_kinds("MFMA_F32_16x16x16_F16", 16),
    dtypes.INT8: MmaIntrinsic("MFMA_I32_16x16x32_I8", 32, 1),
}
_RDNA3 = {
    **_kinds("WMMAR3_F32_16x16x16_F16", 16),
    dtypes.INT8: MmaIntrinsic("WMMAR3_I32_16x16x16_I8", 16, 1),
}
_RDNA4 = {
    **_kinds("WMMAR4_F32_16x16x16_F16", 16),
    dtypes.INT8: MmaIntrinsic("WMMAR4_I32_16x16x16_I8", 16, 1),
    dtypes.FP8E4M3FN: MmaIntrinsic("WMMAR4_F32_16x16x16_F8E4M3FN", 16, 1),
    dtypes.FP8E5M2: MmaIntrinsic("WMMAR4_F32_16x16x16_F8E5M2", 16, 1),
}


def _sync(name: str, depth: int, size: int) -> MmaIntrinsic:
    """Return an instruction of a warp; IREE 3.13 has no layout for NV_WMMA, and none for int8."""
    return MmaIntrinsic(f"NV_MMA_SYNC_F32_16x8x{name}", depth, size, columns=8)


_AMPERE = {dtypes.HALF: _sync("16_F16", 16, 2), dtypes.BF16: _sync("16_BF16", 16, 2)}
_ADA = {
    **_AMPERE,
    dtypes.FP8E4M3FN: _sync("32_F8E4M3FN", 32, 1),
    dtypes.FP8E5M2: _sync("32_F8E5M2", 32, 1),
}
# architecture -> type of both operands -> instruction
INTRINSICS: dict[str, dict[DType, MmaIntrinsic]] = {
    "gfx90a": {
        **_kinds("MFMA_F32_16x16x16_F16", 16, bf16="MFMA_F32_16x16x8_BF16", bf16_depth=8),
        dtypes.INT8: MmaIntrinsic("MFMA_I32_16x16x16_I8", 16, 1),
        **_SINGLE,
    },
    "gfx942": {
        **_CDNA3,
        dtypes.FP8E4M3FNUZ: MmaIntrinsic("MFMA_F32_16x16x32_F8E4M3FNUZ", 32, 1),
        dtypes.FP8E5M2FNUZ: MmaIntrinsic("MFMA_F32_16x16x32_F8E5M2FNUZ", 32, 1),
        **_SINGLE,
    },
    "gfx950": {
        **_kinds("MFMA_F32_16x16x32_F16", 32),
        dtypes.INT8: MmaIntrinsic("MFMA_I32_16x16x64_I8", 64, 1),
        dtypes.FP8E4M3FN: MmaIntrinsic("MFMA_F32_16x16x32_F8E4M3FN", 32, 1),
        dtypes.FP8E5M2: MmaIntrinsic("MFMA_F32_16x16x32_F8E5M2", 32, 1),
        **_SINGLE,
    },
    **dict.fromkeys(("gfx1100", "gfx1101", "gfx1102", "gfx1103"), _RDNA3),
    **dict.fromkeys(("gfx1150", "gfx1151", "gfx1152", "gfx1153"), _RDNA3),
    "gfx1200": _RDNA4,
    "gfx1201": _RDNA4,
    "sm_80": _AMPERE,
    "sm_86": _AMPERE,
    "sm_89": _ADA,
    "sm_90": _ADA,
}
# pairs of instructions, for depths of whole pairs: a lane reads 16 bytes of the LDS in place of 8,
# and waits half as often; IREE has none for bf16
_F16_PAIR = MmaIntrinsic("VMFMA_F32_16x16x32_F16", 32, 2, paired=True)
_PAIRS = {(arch, dtypes.HALF): _F16_PAIR for arch in ("gfx90a", "gfx942")}


# instructions of half the rate, for depths that the deep ones do not divide, as a convolution's
# channels cannot have a partial step
_SHALLOW = {"gfx950": _CDNA3}


def shallow_intrinsic(arch: str, dtype: DType) -> MmaIntrinsic | None:
    """Return the instruction of half the depth, where a chip has it at half the rate."""
    return _SHALLOW.get(arch, {}).get(dtype)


def intrinsic_of(arch: str, dtype: DType, depth: int) -> MmaIntrinsic | None:
    """Return the instruction for elements of a type in runs of `depth`, None without one."""
    pair = _PAIRS.get((arch, dtype))
    one = INTRINSICS.get(arch, {}).get(dtype)
    if pair is None or one is None:
        return one
    # a depth that neither divides has a partial step in any case
    return one if depth % one.depth == 0 and depth % pair.depth else pair


def multiplies_fnuz(arch: str | None) -> bool:
    """Return whether a GPU multiplies f8E4M3FNUZ matrices, and f8E4M3FN ones not."""
    known = INTRINSICS.get(arch or "", {})
    return dtypes.FP8E4M3FNUZ in known and dtypes.FP8E4M3FN not in known


__all__ = [
    "INTRINSICS", "SIDE", "MmaIntrinsic", "intrinsic_of", "multiplies_fnuz", "shallow_intrinsic",
]  # fmt: skip
