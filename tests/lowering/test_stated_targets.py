"""AMD GPUs that IREE has no name for: the module states their target."""

from __future__ import annotations

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.hardware.architectures import ARCHITECTURES, check_arch
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.hardware.iree_targets import stated_target
from mgx_mlir.targets.flags import gpu_ladder
from mgx_mlir.targets.report import gpu_report
from tests.support.models import parsed

STATED = [a for a in ARCHITECTURES if stated_target(a)]
QUICK = ("gfx906", "gfx1030")
# numbers of the processors in the low byte of an ELF file's flags: LLVM's AMDGPUUsage
ELF = {
    "gfx906": 0x2F, "gfx1030": 0x36, "gfx1031": 0x37, "gfx1032": 0x38, "gfx1033": 0x39,
    "gfx1034": 0x3E, "gfx1035": 0x3D, "gfx1036": 0x45, "gfx1102": 0x47, "gfx1152": 0x55,
    "gfx1153": 0x58,
}  # fmt: skip
NET = """(float[n,40] x, float16[16,64] h) => (float[n,24] y, float16[16,32] z) {
m = MatMul (x, w) y = Softmax <axis = -1> (m) z = MatMul (h, v) }"""


def compiled(arch: str) -> IreeProgram:
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((40, 24)).astype(np.float32),
        "v": rng.standard_normal((64, 32)).astype(np.float16),
    }
    model = parsed(NET, weights, opset=18).SerializeToString()
    made = mgx_mlir.compile(model, "gpu", arch=arch, cache=False)
    assert isinstance(made, IreeProgram)
    return made


@pytest.mark.parametrize(
    "arch", [a if a in QUICK else pytest.param(a, marks=pytest.mark.slow) for a in STATED]
)
def test_code_is_that_processor_s(arch: str) -> None:
    found = compiled(arch).executable
    assert not found.fallbacks
    kernels = gpu_report(found.vmfb).kernels
    assert {k.arch for k in kernels} == {arch}
    assert all(k.vgpr_spills == 0 and k.scratch == 0 for k in kernels)
    image = bytes(found.vmfb)
    assert image[image.index(b"\x7fELF") + 48] == ELF[arch]


def test_their_figures() -> None:
    assert set(ELF) == set(STATED)
    for arch in STATED:
        assert arch in CHIPS
        assert f'arch = "{arch}"' in (stated_target(arch) or "")
        assert not any("rocm-target" in f for s in gpu_ladder(arch) for f in s.flags)
    # IREE's flag is the way of those that it knows
    assert stated_target("gfx1100") is None
    assert any("rocm-target=gfx1100" in f for f in gpu_ladder("gfx1100")[0].flags)
    assert CHIPS["gfx1102"].registers * 3 == CHIPS["gfx1100"].registers * 2
    # 97 registers: a group of 32 waves fits the one, and not the other
    assert CHIPS["gfx1100"].occupancy(97, 0, 1024) > CHIPS["gfx1102"].occupancy(97, 0, 1024)


def test_their_products() -> None:
    names = {"RX 6700 XT": "gfx1031", "RX-7600": "gfx1102", "Radeon VII": "gfx906"}
    assert {n: check_arch(n) for n in names} == names
