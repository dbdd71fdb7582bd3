"""Reports of verify: failures, variables, JSON, and kinds of target sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mgx_mlir.compiler.models import read_model
from mgx_mlir.debug.compare import compare
from mgx_mlir.debug.tolerances import (
    FULL_PRECISION,
    LOW_PRECISION,
    Tolerances,
    output_tolerances,
)
from mgx_mlir.tools.driver.verify_report import failure_lines, output_json
from tests.driver.conftest import Driver
from tests.support.models import model_of

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16
SIDES = ("cpu", "ref")


def lines(a: Any, b: Any, limits: Tolerances = FULL_PRECISION) -> list[str]:
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    return failure_lines(compare("y", a, b, limits, SIDES), "m.onnx", a, b)


def test_lines_are_those_of_migraphx() -> None:
    assert lines([1, 2, 0.5], [1, 2, 0.25]) == [
        "FAILED: m.onnx",
        "RMS Error: 0.0721688",  # 0.25 / (sqrt(3) * 2)
        "ref: 1, 2, 0.25",
        "target: 1, 2, 0.5",
        "Max diff: 0.25",
        "Mismatch at 2: 0.25 != 0.5",
    ]
    assert lines([0, 0], [0, 1])[4:] == [
        "Target data is all zeros", "Max diff: 1", "Mismatch at 1: 1 != 0",
    ]  # fmt: skip
    assert lines([1, 2], [0, 0])[4] == "Ref data is all zeros"
    assert lines([1, np.nan, 3], [np.inf, 2, 3])[5:] == [
        "Mismatch at 0: inf != 1",
        "Non finite number found in ref at 0: inf",
        "Non finite number found in target at 1: nan",
    ]
    shapes = compare("y", np.zeros(3, np.float32), np.zeros((1, 3), np.float64), FULL_PRECISION)
    assert failure_lines(shapes, "m.onnx", np.zeros(3), np.zeros(3)) == [
        "FAILED: m.onnx",
        "Shape mismatch {double_type, {1, 3}} != {float_type, {3}}",
    ]


def test_both_sides_are_printed_where_they_are_short_or_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = np.arange(40.0)
    assert not any(line.startswith("ref:") for line in lines(long, long + 1))
    monkeypatch.setenv("MIGRAPHX_VERIFY_DUMP_DIFF", "1")
    found = lines(long, long + 1)
    assert found[2].startswith("ref: 1, 2, 3")
    assert found[3].endswith("38, 39")
    monkeypatch.setenv("MIGRAPHX_VERIFY_DUMP_DIFF", "0")
    assert not any(line.startswith("ref:") for line in lines(long, long + 1))


def test_the_elementwise_test_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    b = np.full(10_000, 0.01)
    a = b.copy()
    a[7] += 4e-5  # far beyond 5e-5 of the largest magnitude; the rms is 4e-5
    limits = Tolerances(rms=1e-3, atol=5e-5, rtol=5e-5)
    assert not compare("y", a, b, limits.with_environment()).passed
    monkeypatch.setenv("MIGRAPHX_VERIFY_ENABLE_ALLCLOSE", "1")
    assert compare("y", a, b, limits.with_environment()).passed
    a[7] = 1.0
    assert not compare("y", a, b, Tolerances(rms=1).with_environment()).passed
    monkeypatch.setenv("MIGRAPHX_VERIFY_ENABLE_ALLCLOSE", "0")
    alone = Tolerances(rms=1).with_environment()
    assert compare("y", a, b, alone).passed
    assert str(alone) == "rms-tol 1 only"
    # a stated limit is held
    assert not compare("y", a, b, alone.with_limits(None, 1e-3, None)).passed
    a[7] = np.nan
    assert not compare("y", a, b, alone).passed


def test_limits_are_those_of_what_an_output_comes_from(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["full"]),
        helper.make_node("Relu", ["h"], ["half"]),
        helper.make_node("Cast", ["half"], ["wide"], to=F32),
        helper.make_node("Add", ["wide", "x"], ["mixed"]),
    ]
    model = model_of(
        nodes, [("x", F32, [3]), ("h", F16, [3])],
        [("full", F32, [3]), ("half", F16, [3]), ("mixed", F32, [3])],
    )  # fmt: skip
    program = read_model(model.SerializeToString())
    assert output_tolerances(program) == [FULL_PRECISION, LOW_PRECISION, LOW_PRECISION]
    assert output_tolerances(program, low=True) == [LOW_PRECISION] * 3


def test_a_type_that_is_only_passed_through_has_a_limit_that_tells() -> None:
    """Rounding to bf16 that is left out is beyond it, a few elements on another number are not."""
    nodes = [
        helper.make_node("Cast", ["x"], ["b"], to=TensorProto.BFLOAT16),
        helper.make_node("Cast", ["b"], ["back"], to=F32),
        helper.make_node("Exp", ["back"], ["y"]),
        helper.make_node("Cast", ["h"], ["wide"], to=F32),
    ]
    model = model_of(
        nodes, [("x", F32, [3]), ("h", F16, [3])], [("y", F32, [3]), ("wide", F32, [3])]
    )
    limits, exact = output_tolerances(read_model(model.SerializeToString()))
    assert exact == FULL_PRECISION
    rng = np.random.default_rng(0)
    for x in (rng.standard_normal(10_000), rng.uniform(0.5, 1, 50), np.full(4, 0.1)):
        x = x.astype(np.float32)
        rounded = x.astype(ml_dtypes.bfloat16).astype(np.float32)
        assert not compare("y", x, rounded, limits).passed
        moved = rounded.copy()
        moved[: max(1, x.size // 50)] *= 1 + 2.0**-8
        assert compare("y", moved, rounded, limits).passed


def test_a_shape_mismatch_fails(driver: Driver, models: Path, tmp_path: Path) -> None:
    nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    onnx.save(model_of(nodes, [("x", F32, [2, 4])], [("y", F32, [4, 2])]), tmp_path / "other.onnx")
    ran = driver("verify", "--cpu", models / "wider.onnx", "--against", tmp_path / "other.onnx",
                 "--migraphx-lines")  # fmt: skip
    assert ran.status == 1
    at = ran.lines.index(f"FAILED: {models / 'wider.onnx'}")
    assert ran.lines[at + 1] == "Shape mismatch {float_type, {4, 2}} != {float_type, {2, 4}}"
    assert "passed" not in ran.out + ran.err


def test_migraphx_lines_of_a_run(driver: Driver, models: Path) -> None:
    both = ("--against", models / "flipped.onnx")
    ran = driver("verify", "--cpu", models / "mnist.onnx", *both, "--migraphx-lines")
    at = ran.lines.index(f"FAILED: {models / 'mnist.onnx'}")
    assert [line.split(":")[0].split(" at ")[0] for line in ran.lines[at + 1 : -1]] == [
        "RMS Error", "ref", "target", "Max diff", "Mismatch",
    ]  # fmt: skip
    ran = driver("verify", "--cpu", models / "mnist.onnx", "--migraphx-lines")
    assert "MIGraphX verification passed successfully." in ran.errors
    assert "cpu::" in ran.out


def test_a_screen_holds_the_verdict(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", models / "mnist.onnx")
    row, verdict = ran.lines
    assert row.startswith("y: max abs diff ")
    assert verdict.startswith("verification passed: cpu and ref agree in 1 output (rms-tol 1e-05")
    assert "MIGraphX" not in ran.err
    ran = driver("verify", "--cpu", models / "logs.onnx")
    assert ran.status == 1
    assert ran.lines[-1].startswith("FAILED: ")
    assert "--bisect names the first wrong instruction" in ran.errors[-1]
    assert "ref::" in driver("verify", "--cpu", models / "logs.onnx", "--verbose").out


def test_of_many_outputs_those_that_fail_are_listed(driver: Driver, tmp_path: Path) -> None:
    outputs = [(f"y{i}", F32, [2]) for i in range(10)]
    nodes = [helper.make_node("Abs", ["x"], [name]) for name, *_ in outputs[1:]]
    for op in ("Abs", "Neg"):
        first = helper.make_node(op, ["x"], ["y0"])
        onnx.save(model_of([first, *nodes], [("x", F32, [2])], outputs), tmp_path / f"{op}.onnx")
    ran = driver("verify", "--cpu", tmp_path / "Abs.onnx")
    assert ran.lines[0] == "10 outputs pass; --verbose lists them"
    assert len(ran.lines) == 2
    ran = driver("verify", "--cpu", tmp_path / "Neg.onnx", "--against", tmp_path / "Abs.onnx")
    assert ran.lines[0].endswith(": FAIL")
    assert ran.lines[-2] == "9 other outputs pass; --verbose lists them"
    assert "differ in y0 (" in ran.lines[-1]


def test_json(driver: Driver, models: Path, tmp_path: Path) -> None:
    ran = driver("verify", "--cpu", models / "logs.onnx", "--json")
    assert ran.status == 1
    found = json.loads(ran.out)
    assert (found["report"], found["passed"]) == ("mgx-driver verify 1", False)
    assert (found["target"], found["reference"]) == ("cpu", "ref")
    y, z = found["outputs"]
    assert (y["name"], y["passed"], z["passed"]) == ("y", False, True)
    assert y["non_finite"]["cpu"] == {"index": 0, "value": "nan"}
    assert z["all_zero"] == ["cpu", "ref"]
    assert z["limits"]["rms"] == 1e-5
    path = tmp_path / "r.json"
    ran = driver("verify", "--cpu", models / "mnist.onnx", "--json", "-o", path)
    assert (ran.status, ran.out) == (0, "")
    assert json.loads(path.read_text())["passed"] is True


def test_json_of_a_comparison() -> None:
    a = np.array([1, 2, np.nan], np.float32)
    found = output_json(compare("y", a, np.array([1, 3, 3], np.float32), FULL_PRECISION, SIDES))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["mismatch"] == {"index": 1, "target": 2.0, "reference": 3.0}
    assert found["differing"] == 2
    assert found["max_abs"] == 1.0
    shapes = output_json(compare("y", a, a[:2], FULL_PRECISION, SIDES))
    assert shapes["shapes"] == {"cpu": "float_type, {3}", "ref": "float_type, {2}"}


# ---- what the target side can be -----------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--fp16", "--bf16"])
def test_in_smaller_types(driver: Driver, models: Path, flag: str) -> None:
    ran = driver("verify", "--cpu", models / "mnist.onnx", flag, "--json")
    assert ran.status == 0
    (y,) = json.loads(ran.out)["outputs"]
    assert y["limits"]["rms"] == 0.08
    assert y["max_abs"] > 1e-6  # not what f32 gives
    ran = driver("verify", "--cpu", models / "mnist.onnx", flag, "--verbose")
    kind = "half_type" if flag == "--fp16" else "bf16_type"
    loaded, reference, target = ran.out.split("\n\n")[:3]
    assert kind not in loaded + reference
    assert kind in target
    strict = driver("verify", "--cpu", models / "mnist.onnx", flag, "--rms-tol", 1e-6)
    assert strict.status == 1
    assert driver("verify", "--ref", models / "mnist.onnx", flag).status == 0


def test_values_beyond_f16_are_named(driver: Driver, tmp_path: Path) -> None:
    """Sums reach 1e8: infinite in f16, while bf16 holds them."""
    w = np.full((64, 4), 30000, np.float32)
    path = tmp_path / "large.onnx"
    nodes = [helper.make_node("Abs", ["x"], ["p"]), helper.make_node("MatMul", ["p", "w"], ["y"])]
    onnx.save(model_of(nodes, {"x": [2, 64]}, {"y": [2, 4]}, {"w": w}), path)
    ran = driver("verify", "--cpu", path, "--fp16")
    assert ran.status == 1
    assert "note: f16 ends at 65504, the model's values are larger; --bf16 has f32's range" in (
        ran.errors
    )
    ran = driver("verify", "--cpu", path, "--bf16")
    assert ran.status == 0
    assert "65504" not in ran.err


@pytest.mark.parametrize("flag", ["--int8", "--fp8", "--int4-weights"])
def test_8_and_4_bits(driver: Driver, models: Path, flag: str) -> None:
    """The target's side is quantised, the reference is the model as it stands."""
    ran = driver("verify", "--cpu", models / "mnist.onnx", flag, "--verbose")
    assert ran.status == 0, ran.out
    reference, target = ran.out.split("\n\n")[1:3]
    assert "quantizelinear" not in reference
    assert "quant" in target or "unpack_int4" in target
    strict = driver("verify", "--cpu", models / "mnist.onnx", flag, "--rms-tol", 1e-6)
    assert strict.status == 1


def test_calibration(driver: Driver, models: Path, tmp_path: Path) -> None:
    mnist = models / "mnist.onnx"
    dims = onnx.load(mnist).graph.input[0].type.tensor_type.shape.dim
    rng = np.random.default_rng(0)
    name = onnx.load(mnist).graph.input[0].name
    for i in range(3):
        x = rng.standard_normal([d.dim_value for d in dims]).astype(np.float32)
        np.savez(tmp_path / f"{i}.npz", **{name: x})
    for more in ([], ["--calibration-method", "entropy"]):
        ran = driver("verify", "--cpu", mnist, "--int8", "--calibrate", tmp_path, *more)
        assert ran.status == 0, ran.err
        assert any("by ranges of" in line for line in ran.errors)
    for wrong, message in (
        (["--calibrate", tmp_path], "option '--calibrate' needs --int8, --fp8 or --int4-weights"),
        (["--int8", "--fp8"], "options '--int8' and '--fp8' exclude each other"),
        (["--fp16", "--bf16"], "options '--fp16' and '--bf16' exclude each other"),
        (["--int8", "--calibration-method", "mse"],
         "option '--calibration-method' needs --calibrate"),
        (["--int8", "--calibrate", tmp_path / "none"], "no such file or folder"),
        (["--int8", "--calibrate", mnist], "unknown form of calibration data"),
    ):  # fmt: skip
        ran = driver("verify", "--cpu", mnist, *wrong)
        assert (ran.status, ran.out.count("pass")) == (2, 0)
        assert message in ran.err


def test_what_was_compiled_before(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.mxr"
    assert driver("compile", "--cpu", models / "mnist.onnx", "-o", path).status == 0
    ran = driver("verify", models / "mnist.onnx", "--compiled-model", path)
    assert ran.status == 0
    assert f"Compiled: {path} holds code for cpu" in ran.errors
    assert not any(line.startswith("Compiled in") for line in ran.errors)
    assert driver("verify", models / "flipped.onnx", "-c", path).status == 1

    def failed(*options: object) -> str:
        ran = driver("verify", models / "mnist.onnx", *options)
        assert (ran.status, ran.out) == (2, "")
        return ran.err

    assert "the compiled model is for cpu, the target is ref" in failed("-c", path, "--ref")
    assert "takes no passes and no other types" in failed("-c", path, "--fp16")
    assert driver("read", models / "mnist.onnx", "-o", tmp_path / "p.mxr").status == 0
    assert "holds no compiled program" in failed("-c", tmp_path / "p.mxr")
    assert "cannot open the file" in failed("-c", tmp_path / "no.mxr")
    (tmp_path / "bad.mxr").write_bytes(path.read_bytes()[:-100])
    assert f"{tmp_path / 'bad.mxr'}: error: " in failed("-c", tmp_path / "bad.mxr")
    ran = driver("verify", models / "wider.onnx", "-c", path)
    assert ran.status == 2
    assert "input 'x'" in ran.err
