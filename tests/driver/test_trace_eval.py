"""MIGRAPHX_TRACE_EVAL: instructions of the reference, kernels of compiled programs."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.runtime.trace_eval import summary_lines, value_kinds
from mgx_mlir.runtime.trace_level import trace_level
from tests.driver.conftest import Driver

LEVEL = "MIGRAPHX_TRACE_EVAL"


@pytest.mark.parametrize(
    ("text", "level"), [("", 0), ("0", 0), ("1", 1), ("2", 2), ("9", 3), ("true", 1), ("no", 0)]
)
def test_levels(monkeypatch: pytest.MonkeyPatch, text: str, level: int) -> None:
    monkeypatch.setenv(LEVEL, text)
    assert trace_level() == level


def test_instructions_of_the_reference(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL, "1")
    ran = driver("run", "--ref", "--test")
    starts = ("Run instruction", "Time", "Output has", "Output:")
    said = [line for line in ran.errors if line.startswith(starts)]
    assert said[0].startswith("Run instruction: b = @param:b -> float_type, {5, 3}, {3, 1}")
    assert said[2].startswith("Run instruction: @0 = ref::dot(a,b) -> ")
    assert re.match(r"Time: [\d.e-]+ms$", said[3])
    assert len(said) == 4


def test_values_of_the_reference(models: Path, monkeypatch, capfd: pytest.CaptureFixture) -> None:
    monkeypatch.setenv(LEVEL, "2")
    program = mgx_mlir.compile(models / "wider.onnx", "ref")
    x = np.array([[-1, 2, 0, 4], [-5, 6, -7, 8]], np.float32)
    program.run({"x": x})
    said = capfd.readouterr().err.splitlines()
    y = np.maximum(x, 0)
    assert said[-3:] == [
        "Output has normal, zero",
        "Output: 0, 2, 0, 4, 0, 6, 0, 8",
        f"Min value: 0, Max value: 8, Mean: {y.mean():g}, StdDev: {y.std():g}",
    ]
    monkeypatch.setenv(LEVEL, "3")
    program.run({"x": x})
    assert capfd.readouterr().err.splitlines()[-1] == "Output: 0, 2, 0, 4, 0, 6, 0, 8"
    monkeypatch.delenv(LEVEL)
    program.run({"x": x})
    assert capfd.readouterr().err == ""


def test_kernels(driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = driver("run", "--cpu", models / "mnist.onnx")
    monkeypatch.setenv(LEVEL, "2")
    ran = driver("run", "--cpu", models / "mnist.onnx")
    assert ran.status == 0
    assert ran.out == plain.out
    assert any("kernels of a second build" in line for line in ran.errors)
    at = next(i for i, line in enumerate(ran.errors) if " = cpu::dot_add_relu(" in line)
    assert ran.errors[at].startswith("Run instruction: @")
    assert re.match(r"Time: [\d.e-]+ms$", ran.errors[at + 1])
    assert ran.errors[at + 2] == "Output has normal, zero"
    assert len(ran.errors[at + 3].split(",")) == 11
    assert ran.errors[at + 4].startswith("Min value: 0, Max value: ")
    # results of a softmax add up to 1
    mean = float(re.search(r"Mean: ([\d.e-]+)", ran.errors[-1])[1])
    assert mean == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("array", "kinds"),
    [
        (np.array([1.0, 0.0], np.float32), ["normal", "zero"]),
        (np.array([1e-45, np.inf, np.nan], np.float32), ["subnormal", "inf", "nan"]),
        (np.array([1e-45], np.float64), ["normal"]),
        (np.array([1e-6], np.float16), ["subnormal"]),
        (np.array([2], ml_dtypes.bfloat16), ["normal"]),
        (np.array([0, 3], np.int8), ["normal", "zero"]),
        (np.array([True]), ["normal"]),
    ],
)
def test_kinds_of_values(array: np.ndarray, kinds: list[str]) -> None:
    assert value_kinds(array) == kinds


def test_short_and_empty_outputs() -> None:
    assert summary_lines(np.zeros((0, 3))) == ["Output is empty"]
    assert summary_lines(np.arange(12))[1] == "Output: 0, 1, 2, 3, 4, ..., 7, 8, 9, 10, 11"
    assert summary_lines(np.float32(2))[1] == "Output: 2"
