"""Instructions of AMD kernels by class, and what a chip's registers and LDS allow."""

from __future__ import annotations

import pytest

from mgx_mlir.debug.gpu_kernels import peak_of
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.targets.assembly import Mix, mixes

TEXT = """
\t.text
\t.globl\tfirst
first:
; %bb.0:
\ts_load_dwordx4 s[0:3], s[4:5], 0x0
\tbuffer_load_dwordx4 v[0:3], v8, s[0:3], 0 offen
\tbuffer_load_ushort v4, v8, s[0:3], 0 offen
\tglobal_store_b128 v[0:1], v[2:5], off
\tds_read_u16 v1, v2
\tds_read_b128 v[4:7], v2
\tds_load_b64 v[4:5], v2
\tds_write_b64 v2, v[4:5]
.LBB0_1:
\tv_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]
\tv_add_f32_e32 v1, v2, v3
\tv_fma_f32 v1, v2, v3, v4
\tscratch_load_dword v1, off, s32
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\t.p2align\t6
second:
\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]
\ts_endpgm
\t.set second.num_vgpr, 24
"""


def test_classes() -> None:
    found = mixes(TEXT.splitlines())
    assert list(found) == ["first", "second"]
    first = found["first"]
    assert (first.matrix, first.vector, first.scalar, first.scratch) == (1, 2, 2, 1)
    assert (first.memory, first.wide) == (3, 2)
    assert (first.lds, first.lds_reads, first.lds_wide) == (4, 3, 2)
    assert first.instructions == 13
    assert first.kinds == {"v_mfma_f32_16x16x16_f16": 1}
    assert first.matrix_share == pytest.approx(1 / 3)
    assert first.lds_wide_share == pytest.approx(2 / 3)
    second = found["second"]
    assert (second.matrix, second.lds_wide_share, second.wide_share) == (1, None, None)


@pytest.mark.parametrize(
    ("arch", "registers", "lds", "workgroup", "waves"),
    [
        ("gfx942", 64, 0, 256, 8),
        ("gfx942", 65, 0, 256, 7),  # 72 of 512
        ("gfx942", 129, 0, 256, 3),
        ("gfx942", 32, 33792, 256, 1),  # one workgroup of four waves on four SIMDs
        ("gfx942", 32, 16384, 512, 8),
        ("gfx1100", 256, 0, 256, 5),  # 264 of 1536
        ("gfx1100", 96, 0, 256, 16),
        ("gfx1100", 96, 32768, 128, 4),  # two workgroups of four waves on two SIMDs
    ],
)
def test_occupancy(arch: str, registers: int, lds: int, workgroup: int, waves: int) -> None:
    assert CHIPS[arch].occupancy(registers, lds, workgroup) == waves


# waves of a SIMD that `llc` of LLVM 19.1.7 prints for kernels of 64, 96 and 121 registers in
# workgroups of at most 256 work items ("; Occupancy:"); it does not know gfx950 and gfx1153
_LLVM_OCCUPANCY = {
    (4, 2, 2): ("gfx906",),
    (8, 5, 4): ("gfx90a", "gfx942"),
    (16, 10, 8): (
        *("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
        *("gfx1102", "gfx1103", "gfx1150", "gfx1152"),
    ),
    (16, 16, 10): ("gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"),
}  # fmt: skip


@pytest.mark.parametrize(("waves", "architectures"), _LLVM_OCCUPANCY.items())
def test_occupancy_is_that_of_llvm(waves: tuple[int, ...], architectures: tuple[str, ...]) -> None:
    for arch in architectures:
        chip = CHIPS[arch]
        assert tuple(chip.occupancy(n, 0, 256) for n in (64, 96, 121)) == waves, arch


@pytest.mark.parametrize(
    ("mnemonics", "tera"),
    [
        (("v_mfma_f32_16x16x16_f16", "v_add_f32"), 1307),
        (("v_mfma_i32_16x16x32_i8",), 2615),
        (("v_mfma_f32_16x16x32_fp8_fp8",), 2615),
        (("v_mfma_f32_16x16x4_f32",), 163),
        (("v_mfma_f32_16x16x4_f32", "v_mfma_f32_16x16x16_bf16"), 1307),
        (("v_fma_f32",), 163),
    ],
)
def test_the_peak_is_that_of_the_instructions(mnemonics: tuple[str, ...], tera: int) -> None:
    """The data sheet of MI300X."""
    mix = Mix()
    for m in mnemonics:
        mix.count(m)
    assert peak_of(mix, CHIPS["gfx942"]) == pytest.approx(tera * 1e12, rel=0.01)


def test_peaks() -> None:
    """The data sheet of MI300X: 1307 TFLOP/s in f16, 163 in f32 with packed instructions."""
    chip = CHIPS["gfx942"]
    assert chip.matrix_peak == pytest.approx(1307e12, rel=1e-3)
    assert chip.vector_peak == pytest.approx(163.4e12, rel=1e-3)
