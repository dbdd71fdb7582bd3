"""report --gpu: figures of kernels from their code, with no device."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.driver.conftest import Driver

M, K, N = 64, 256, 128


@pytest.fixture
def model(tmp_path: Path) -> Path:
    weights = np.random.default_rng(0).standard_normal((K, N)).astype(np.float16)
    path = tmp_path / "dot.mlir"
    path.write_text(f"""func.func @main(%x: tensor<{M}x{K}xf16>) -> tensor<{M}x{N}xf16> {{
      %w = "migraphx.literal"() {{value = dense<"0x{weights.tobytes().hex()}">
        : tensor<{K}x{N}xf16>}} : () -> tensor<{K}x{N}xf16>
      %0 = "migraphx.dot"(%x, %w)
        : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16>
      %1 = "migraphx.softmax"(%0) {{axis = 1 : i64}} : (tensor<{M}x{N}xf16>) -> tensor<{M}x{N}xf16>
      return %1 : tensor<{M}x{N}xf16>
    }}""")
    return path


def test_figures(driver: Driver, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "kernels.json"
    ran = driver("report", "--gpu", "--arch", "gfx942,gfx1100", model, "-o", out)
    assert (ran.status, ran.out) == (0, "")
    for found, arch, lanes in zip(
        json.loads(out.read_text()), ("gfx942", "gfx1100"), (64, 32), strict=True
    ):
        assert found["arch"] == arch
        totals = found["totals"]
        assert (totals["dispatches"], totals["kernels"], totals["on_host"]) == (2, 2, 0)
        assert (totals["with_spills"], totals["with_scratch"]) == (0, 0)
        assert totals["multiply_without_matrix"] == []
        dot = next(k for k in found["kernels"] if "matmul" in k["name"])
        assert dot["wavefront"] == lanes
        assert dot["matrix"] > 0
        assert dot["lds_wide_share"] == 1.0
        # the result stays f32 for the softmax
        assert dot["bytes"] == 2 * (M * K + K * N) + 4 * M * N
        assert dot["operations"] == 2 * M * K * N
        assert dot["bound_us"] > 0
        softmax = next(k for k in found["kernels"] if k is not dot)
        assert (softmax["matrix"], softmax["launches"]) == (0, 1)
        assert totals["bound_us"] == pytest.approx(dot["bound_us"] + softmax["bound_us"])


def test_table(driver: Driver, model: Path) -> None:
    ran = driver("report", "--gpu", "--arch", "mi300x", model)
    assert ran.status == 0
    assert ran.lines[0].split()[:6] == ["n", "vgpr", "agpr", "sgpr", "spill", "scratch"]
    assert "gfx942: 2 dispatches of 2 kernels, 0 not on the GPU" in ran.lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gpu", "--arch", "gfx942", "--seed", "1"], "--seed is for a page"),
        (["--gpu", "--arch", "gfx000"], "unknown GPU architecture 'gfx000'"),
        (["--cpu", "--json"], "--json is for the table of --gpu"),
        (["--gpu", "--arch", "gfx942", "-o", "page.html"], "no GPU is found"),
    ],
)
def test_what_is_refused(driver: Driver, model: Path, options: list[str], message: str) -> None:
    ran = driver("report", *options, model)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
