"""A kernel that the backend cannot compile as one: compiled as several, and said so."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.targets.base import BackendOptions, CpuTarget, GpuTarget
from mgx_mlir.targets.diagnostics import CompileFailed, Failure
from zoo import made
from zoo.redraw import run_onnxruntime

FAILURE = Failure("compile", "no such tiling", "node 'x'", cause="kernel")


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[bool]:
    """Make the first `request.param[0]` compiles fail, of the kind `request.param[1]`."""
    failing, kind = request.param
    compile_lowered = CpuTarget.compile_lowered
    seen: list[bool] = []

    def fail(self: Any, lowered: Any, options: BackendOptions) -> Any:
        if options.after is not None:
            raise options.after  # the other flag sets fail as the best one did
        seen.append(b"dispatch." in lowered.bytecode)
        if len(seen) <= failing:
            # only a failure of a kernel is a reason to try again
            cause = "kernel" if kind in ("compile", "crash") else "other"
            raise CompileFailed(dataclasses.replace(FAILURE, kind=kind, cause=cause))
        return compile_lowered(self, lowered, options)

    monkeypatch.setattr(CpuTarget, "compile_lowered", fail)
    return seen


@pytest.mark.parametrize("attempts", [(1, "compile")], indirect=True)
def test_compiled_without_boundaries(
    attempts: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    model = made.mlp(3)
    x = {"x": np.random.default_rng(0).standard_normal((3, 20)).astype(np.float32)}
    with caplog.at_level(logging.WARNING):
        program = mgx_mlir.compile(model.SerializeToString(), target="cpu", cache=False)
    assert attempts == [True, False]
    assert program.executable.fallbacks[0] == "kernel-boundaries: node 'x': no such tiling"
    assert "compiled with kernel boundaries off" in caplog.text
    for got, wanted in zip(program.run(x), run_onnxruntime(model, x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_compiled_without_tiles(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """A tile of ours that a GPU's compiler refuses is given up before the kernels are."""
    compile_lowered = GpuTarget.compile_lowered
    tiled: list[bool] = []

    def fail(self: Any, lowered: Any, *args: Any, **kwargs: Any) -> Any:
        tiled.append(b"compilation_info" in lowered.bytecode)
        if tiled == [True]:
            raise CompileFailed(FAILURE)
        assert b"dispatch.region" in lowered.bytecode
        return compile_lowered(self, lowered, *args, **kwargs)

    monkeypatch.setattr(GpuTarget, "compile_lowered", fail)
    weights = np.random.default_rng(0).standard_normal((32, 16)).astype(np.float16)
    model = f"""func.func @main(%x: tensor<8x32xf16>) -> tensor<8x16xf16> {{
      %w = "migraphx.literal"() {{value = dense<"0x{weights.tobytes().hex()}">
        : tensor<32x16xf16>}} : () -> tensor<32x16xf16>
      %0 = "migraphx.dot"(%x, %w) : (tensor<8x32xf16>, tensor<32x16xf16>) -> tensor<8x16xf16>
      return %0 : tensor<8x16xf16>
    }}"""
    path = tmp_path / "dot.mlir"
    path.write_text(model)
    with caplog.at_level(logging.WARNING):
        program = mgx_mlir.compile(path, target="gpu", arch="gfx942", cache=False)
    assert tiled == [True, False]
    assert program.executable.fallbacks[0] == "tiles: node 'x': no such tiling"
    assert "compiled with tiles off" in caplog.text


@pytest.mark.parametrize(
    ("attempts", "count"),
    [((2, "compile"), 2), ((1, "flags"), 1), ((1, "timeout"), 1)],
    indirect=["attempts"],
)
def test_what_cannot_be_helped_is_the_first_error(attempts: list[bool], count: int) -> None:
    with pytest.raises(CompileFailed, match="no such tiling"):
        mgx_mlir.compile(made.mlp(3).SerializeToString(), target="cpu", cache=False)
    assert len(attempts) == count


@pytest.mark.parametrize("attempts", [(1, "compile")], indirect=True)
def test_what_the_backend_s_own_kernels_fail_with_says_so(attempts: list[bool]) -> None:
    with pytest.raises(CompileFailed, match="no such tiling") as caught:
        mgx_mlir.compile(
            made.mlp(3).SerializeToString(), target="cpu", cache=False, kernel_boundaries=False
        )
    assert "leave kernel_boundaries on" in str(caught.value)
    assert attempts == [False]
