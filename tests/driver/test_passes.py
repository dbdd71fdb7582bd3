"""Passes on the command line (--apply-pass, --optimize) and in the environment (MIGRAPHX_...)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.rewrite.pattern import disabled
from tests.driver.conftest import Driver

TWICE = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %2 = "migraphx.convert"(%1) {target_type = f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "migraphx.exp"(%2) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "migraphx.neg"(%3) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}
"""  # noqa: E501


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "twice.mlir"
    path.write_text(TWICE)
    return path


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRACE_COMPILE", "TRACE_PASSES", "TIME_PASSES", "DISABLE_PASSES",
                 "TRACE_MATCHES", "TRACE_MATCHES_FOR"):  # fmt: skip
        monkeypatch.delenv(f"MIGRAPHX_{name}", raising=False)


def test_passes_are_applied_as_the_model_is_read(driver: Driver, file: Path) -> None:
    plain = driver("read", file).out
    assert plain.count("transpose") == 2
    ran = driver("read", file, "--apply-pass", "simplify_reshapes", "eliminate_dead_code")
    assert ran.status == 0
    assert "transpose" not in ran.out
    assert "convert" in ran.out
    ran = driver("read", "-p", "mgx-simplify-reshapes{max-iterations=8}", "cse", "--mlir", file)
    assert ran.status == 0
    assert '"migraphx.convert"(%arg0)' in ran.out
    assert "transpose" not in driver("read", file, "-O").out


def test_unknown_passes_are_named(driver: Driver, file: Path) -> None:
    ran = driver("read", file, "--apply-pass", "simplify_algebr")
    assert (ran.status, ran.out) == (2, "")
    assert "unknown pass 'simplify_algebr'" in ran.err
    assert "did you mean 'mgx-simplify-algebra'?" in ran.err


def test_verify_checks_the_passes_against_the_model_as_it_is(driver: Driver, file: Path) -> None:
    ran = driver("verify", file, "--ref", "--verbose", "-p", "simplify_reshapes", "fuse_pointwise")
    assert ran.status == 0
    assert "ref::transpose" in ran.out  # the reference's trace
    agree = "ref after simplify_reshapes, fuse_pointwise and ref agree in 1 output"
    assert f"verification passed: {agree}" in ran.out
    assert driver("verify", file, "--ref").status == 2


def test_traces_of_passes(driver: Driver, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def errors(*flags: str) -> list[str]:
        ran = driver("read", file, "-p", *(flags or ("simplify_reshapes",)))
        assert ran.status == 0
        return ran.errors

    quiet = errors()
    monkeypatch.setenv("MIGRAPHX_TRACE_PASSES", "1")
    assert "Pass: simplify_reshapes" in errors()
    monkeypatch.setenv("MIGRAPHX_TRACE_PASSES", "0")
    assert errors() == quiet
    monkeypatch.setenv("MIGRAPHX_TIME_PASSES", "1")
    assert any(line.startswith("simplify_reshapes: ") and line.endswith("ms") for line in errors())
    monkeypatch.delenv("MIGRAPHX_TIME_PASSES")
    monkeypatch.setenv("MIGRAPHX_TRACE_COMPILE", "1")
    programs = "\n".join(errors("simplify_reshapes", "eliminate_convert")).split("module {")[1:]
    assert [p.count("migraphx.transpose") for p in programs] == [2, 0, 0]
    assert [p.count("migraphx.convert") for p in programs] == [1, 1, 0]


def test_traces_of_matches(driver: Driver, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def matches() -> list[str]:
        ran = driver("read", file, "-p", "optimize_module")
        return [line for line in ran.errors if "match" in line and " by " in line]

    assert matches() == []
    monkeypatch.setenv("MIGRAPHX_TRACE_MATCHES", "1")
    applied = matches()
    assert any(": matched by find_transpose: migraphx.transpose {" in line for line in applied)
    assert not any("no match by" in line for line in applied)
    monkeypatch.setenv("MIGRAPHX_TRACE_MATCHES", "2")
    assert any("no match by find_transpose: input is not a transpose" in m for m in matches())
    assert len(matches()) > len(applied)
    monkeypatch.delenv("MIGRAPHX_TRACE_MATCHES")
    monkeypatch.setenv("MIGRAPHX_TRACE_MATCHES_FOR", "find_transpose")
    assert matches()
    assert all("matched by find_transpose" in line for line in matches())


def test_disabled_passes(
    driver: Driver, file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MIGRAPHX_DISABLE_PASSES", "simplify_reshapes,simplify_reshape")
    ran = driver("read", file, "-p", "simplify_reshapes", "eliminate_convert")
    assert ran.out.count("transpose") == 2
    assert "convert" not in ran.out
    said = "there is no pass 'simplify_reshape', did you mean 'simplify_reshapes'?"
    assert said in caplog.text


def test_the_cache_knows_what_the_environment_changes(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    options = CompileOptions("cpu")
    key = options.key()
    with disabled(["find_transpose"]):
        assert options.key() != key
    fused = compile_program(str(file), "cpu")
    monkeypatch.setenv("MIGRAPHX_DISABLE_PASSES", "fuse_pointwise_reduce")
    assert options.key() != key
    apart = compile_program(str(file), "cpu")
    assert not apart.stats.cached
    assert len(fused.kernels) == 1
    assert not apart.kernels
    assert compile_program(str(file), "cpu").stats.cached
    x = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(fused.run(x)[0], apart.run(x)[0], rtol=1e-6)
    # a traced compile is run, not looked up
    monkeypatch.setenv("MIGRAPHX_TRACE_PASSES", "1")
    capfd.readouterr()
    assert not compile_program(str(file), "cpu").stats.cached
    assert "Pass: simplify_reshapes" in capfd.readouterr().err
