"""Every option of MIGraphX's driver page (its table 2), and what it changes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from examples import mnist
from tests.driver.conftest import Driver
from tests.driver.test_tf_sessions import convolution_file
from tests.support.models import model_of

F32 = TensorProto.FLOAT

# the options as the page's table 2 lists them
TABLE_2 = """
--help | -h
--test
--onnx
--tf
--migraphx
--migraphx-json
--batch
--nhwc
--nchw
--skip-unknown-operators
--trim | -t
--optimize | -O
--graphviz | -g
--brief
--cpp
--json
--text
--binary
--output | -o
--fill0
--fill1
--input-dim
--dyn-input-dim
--default-dyn-dim
--gpu
--cpu
--ref
--enable-offload-copy
--disable-fast-math
--exhaustive-tune
--fp16
--int8
--fp8
--rms-tol
--atol
--rtol
--per-instruction | -i
--reduce | -r
--iterations | -n
--list | -l
"""
OPTIONS = [line.split(" | ") for line in TABLE_2.split("\n") if line]
Effect = Callable[[Driver, Path, Path, str], None]
EFFECTS: dict[str, Effect] = {}


def effect(*flags: str) -> Callable[[Effect], Effect]:
    """Register what shows the effect of an option; it gets each spelling of it."""

    def register(show: Effect) -> Effect:
        for flag in flags:
            EFFECTS[flag] = show
        return show

    return register


def test_every_option_of_the_table_has_an_effect() -> None:
    assert set(EFFECTS) == {spellings[0] for spellings in OPTIONS}


@pytest.mark.parametrize("flag", [f for spellings in OPTIONS for f in spellings])
def test_effect(flag: str, driver: Driver, models: Path, tmp_path: Path) -> None:
    first = next(spellings[0] for spellings in OPTIONS if flag in spellings)
    EFFECTS[first](driver, models, tmp_path, flag)


def good(ran: object) -> str:
    assert ran.status == 0, ran.err
    return ran.out


# ---- general -------------------------------------------------------------------------------------


@effect("--help")
def _help(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    assert good(driver("read", flag)).startswith("usage: mgx-driver read ")


@effect("--list")
def _list(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    assert {"add", "@param", "softmax"} <= set(good(driver("op", flag)).split())
    assert "Relu" in good(driver("onnx", flag)).split()
    assert "Conv2D" in good(driver("tf", flag)).split()


# ---- the model -----------------------------------------------------------------------------------


@effect("--test")
def _test(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    assert good(driver("read", flag)).endswith("@0 = dot(a,b) -> float_type, {4, 3}, {3, 1}\n")


@effect("--onnx", "--tf", "--migraphx", "--migraphx-json")
def _kind(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    pb, model = mnist.write(tmp)
    for name in ("p.mxr", "p.json"):
        good(driver("read", model, "-o", tmp / name))
    source = {"--onnx": model, "--tf": pb, "--migraphx": tmp / "p.mxr",
              "--migraphx-json": tmp / "p.json"}[flag]  # fmt: skip
    other = tmp / "model.mlir"  # a name of another kind
    shutil.copy(source, other)
    assert driver("read", other).status == 2
    assert good(driver("read", other, flag)) == good(driver("read", source))


@effect("--batch")
def _batch(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    path = models / "open.onnx"
    assert "x: float_type, {1, 3}" in good(driver("params", path))
    assert "x: float_type, {4, 3}" in good(driver("params", path, flag, 4))
    # for a model with dynamic dims it is the size to run at
    dynamic = ("--default-dyn-dim", "{min:1, max:8}")
    again = ("--ref", "-p", "dead_code_elimination", "--json")
    for size in (2, 5):
        found = json.loads(good(driver("verify", path, *dynamic, flag, size, *again)))
        assert found["outputs"][0]["elements"] == size * 3
    assert driver("read", path, *dynamic, flag, 4).status == 2


@effect("--nhwc", "--nchw")
def _layout(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    path = convolution_file(tmp / "convolution.pb")
    shape = {"--nhwc": "{1, 3, 3, 8}", "--nchw": "{1, 8, 3, 3}"}[flag]
    assert f"z: float_type, {shape}" in good(driver("params", path, flag))


@effect("--skip-unknown-operators")
def _skip(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    nodes = [helper.make_node("NoSuchOperator", ["x"], ["y"])]
    onnx.save(model_of(nodes, [("x", F32, [2])], [("y", F32, [2])]), tmp / "u.onnx")
    assert driver("read", tmp / "u.onnx").status == 2
    assert "= unknown:NoSuchOperator(x)" in good(driver("read", tmp / "u.onnx", flag))


@effect("--trim")
def _trim(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    whole = good(driver("read", models / "mnist.onnx")).splitlines()
    assert good(driver("read", models / "mnist.onnx", flag, 3)).splitlines() == whole[:-3]
    assert driver("read", models / "mnist.onnx", flag, len(whole)).status == 2


@effect("--optimize")
def _optimize(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    plain = good(driver("read", models / "mnist.onnx"))
    assert "multibroadcast" in plain
    assert len(good(driver("read", models / "mnist.onnx", flag))) < len(plain)


@effect("--input-dim")
def _input_dim(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    found = good(driver("params", models / "open.onnx", flag, "@x", 7, 3))
    assert found.splitlines()[0] == "x: float_type, {7, 3}, {3, 1}"


@effect("--dyn-input-dim", "--default-dyn-dim")
def _dynamic(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    dim = "{min:1, max:8, optimals:[2]}"
    values = (flag, "@x", f"[{dim}, 3]") if flag == "--dyn-input-dim" else (flag, dim)
    found = good(driver("params", models / "open.onnx", *values))
    named = ", named {n, 3}" if flag == "--default-dyn-dim" else ""
    assert found.splitlines()[0] == "x: dynamic, float_type, {[1..8], 3}" + named
    ran = driver("compile", "--cpu", models / "open.onnx", *values)
    assert any(line.startswith("Variants: main_2 for ") for line in ran.errors)
    assert 'module: "main_2"' in ran.out


# ---- output --------------------------------------------------------------------------------------


@effect("--graphviz")
def _graphviz(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    assert good(driver("read", "--test", flag)).startswith("digraph {")


@effect("--brief")
def _brief(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    whole = good(driver("read", "--test", "-g"))
    brief = good(driver("read", "--test", "-g", flag))
    assert "float_type" in whole
    assert "float_type" not in brief
    assert driver("read", "--test", flag).status == 2


@effect("--cpp")
def _cpp(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    assert "migraphx::program p;" in good(driver("read", "--test", flag))


@effect("--json")
def _json(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    assert json.loads(good(driver("read", "--test", flag)))["migraphx_version"]


@effect("--text")
def _text(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    good(driver("read", "--test", flag, "-o", tmp / "p.json"))
    assert (tmp / "p.json").read_text() == good(driver("read", "--test"))


@effect("--binary")
def _binary(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    good(driver("read", "--test", flag, "-o", tmp / "p.txt"))
    assert good(driver("read", tmp / "p.txt", "--migraphx")) == good(driver("read", "--test"))


@effect("--output")
def _output(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    ran = driver("read", "--test", flag, tmp / "odd.name")
    assert (ran.status, ran.out) == (0, "")
    # an unknown ending is MIGraphX's binary form, which is read as such again
    assert good(driver("read", tmp / "odd.name")) == good(driver("read", "--test"))


# ---- inputs --------------------------------------------------------------------------------------


@effect("--fill0", "--fill1")
def _fill(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    value = float(flag[-1])
    nodes = [helper.make_node("Sub", ["x", "c"], ["y"])]
    held = {"c": np.full((2, 4), value, np.float32)}
    onnx.save(model_of(nodes, [("x", F32, [2, 4])], [("y", F32, [2, 4])], held), tmp / "s.onnx")
    again = ("--ref", "-p", "dead_code_elimination", "--json")
    for options, zeros in (((), 0), ((flag, "x"), 2)):
        found = json.loads(good(driver("verify", tmp / "s.onnx", *again, *options)))
        assert len(found["outputs"][0]["all_zero"]) == zeros
    assert "no input 'z'" in driver("run", "--ref", tmp / "s.onnx", flag, "z").err


# ---- the target ----------------------------------------------------------------------------------


@effect("--gpu", "--cpu", "--ref")
def _target(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    ran = driver("compile", "--test", flag)
    lines = good(ran).splitlines()
    assert lines[-1].partition(" = ")[2].startswith(f"{flag[2:]}::dot(a,b) -> ")
    context = "@0 = check_context::migraphx::gpu::context -> float_type, {}, {}"
    assert (lines[0] == context) == (flag == "--gpu")
    assert any(line.startswith(f"Target: {flag[2:]}") for line in ran.errors)


@effect("--enable-offload-copy")
def _offload(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    plain = good(driver("compile", "--test", "--gpu"))
    copied = good(driver("compile", "--test", "--gpu", flag))
    assert "copy" not in plain
    assert copied.splitlines()[3:] == [
        "@1 = hip::copy_to_gpu(b) -> float_type, {5, 3}, {3, 1}",
        "@2 = hip::copy_to_gpu(a) -> float_type, {4, 5}, {5, 1}",
        "@3 = gpu::dot(@2,@1) -> float_type, {4, 3}, {3, 1}",
        "@4 = hip::copy_from_gpu(@3) -> float_type, {4, 3}, {3, 1}",
    ]
    for target in ("--cpu", "--ref"):
        assert "is for --gpu, the target is" in driver("compile", "--test", target, flag).err


@effect("--disable-fast-math")
def _fast_math(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    # 0 * x is 0 but for what is not finite
    (tmp / "z.mlir").write_text("""
        func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
          %0 = "migraphx.literal"() {value = dense<0.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
          %1 = "migraphx.mul"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
          %2 = "migraphx.exp"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
          return %2 : tensor<2x3xf32>
        }""")
    assert "cpu::" not in good(driver("compile", "--cpu", tmp / "z.mlir"))
    assert "cpu::mul_exp(x0)" in good(driver("compile", "--cpu", tmp / "z.mlir", flag))
    assert driver("compile", "--ref", "--test", flag).status == 2


@effect("--exhaustive-tune")
def _tune(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    with pytest.MonkeyPatch.context() as m:
        m.setenv("MIGRAPHX_PROBLEM_CACHE", str(tmp / "t.json"))
        m.setenv("MIGRAPHX_MLIR_TUNE_LIMIT", "2")
        m.setenv("MIGRAPHX_BENCHMARKING_NRUNS", "3")
        ran = driver("compile", "--cpu", "--threads", 1, "--test", flag)
        good(ran)
        assert "choices searched" in ran.err
        [[problem, solution]] = json.loads((tmp / "t.json").read_text())
        assert problem["name"] == "cpu::program"
        assert {"vector_kernels", "data_tiling", "opt_level"} <= set(solution)
        ran = driver("compile", "--cpu", "--threads", 1, "--test")
        assert f", from {tmp / 't.json'}" in ran.err
    assert "nothing can be tuned" in driver("compile", "--ref", "--test", flag).err or (
        "is for --cpu and --gpu" in driver("compile", "--ref", "--test", flag).err
    )


# ---- quantization --------------------------------------------------------------------------------


@effect("--fp16")
def _fp16(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    assert "half_type" not in good(driver("compile", "--ref", "--test"))
    assert "ref::dot(" in (found := good(driver("compile", "--ref", "--test", flag)))
    assert re.search(r"ref::dot\(.*\) -> half_type, \{4, 3\}", found)


@effect("--int8", "--fp8")
def _in_8_bits(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    name = {"--int8": "int8_type", "--fp8": "fp8e4m3fn_type"}[flag]
    assert name not in good(driver("compile", "--ref", models / "mnist.onnx"))
    assert name in good(driver("compile", "--ref", models / "mnist.onnx", flag))


# ---- verify and perf -----------------------------------------------------------------------------


@effect("--rms-tol", "--atol", "--rtol")
def _tolerance(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    wide = {"--rms-tol": 10.0, "--atol": 0.0, "--rtol": 1e9}
    if flag == "--atol":
        wide |= {"--atol": 10.0, "--rtol": 0.0}
    pair = ("verify", "--cpu", models / "flipped.onnx", "--against", models / "mnist.onnx")

    def status(limits: dict[str, float]) -> int:
        return driver(*pair, *(x for item in limits.items() for x in item)).status

    assert status(wide) == 0
    assert status({**wide, flag: 0.0}) == 1


@effect("--per-instruction")
def _per_instruction(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    found = json.loads(good(driver("verify", "--cpu", models / "mnist.onnx", flag, "--json")))
    plain = json.loads(good(driver("verify", "--cpu", models / "mnist.onnx", "--json")))
    assert "instructions" not in plain
    assert {row["verdict"] for row in found["instructions"]} == {"right"}
    compared = [row["op"] for row in found["instructions"]]
    assert compared == ["dot", "add", "relu", "dot", "add", "softmax"]


@effect("--reduce")
def _reduce(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    # nothing fails, so there is nothing to reduce, and that is said; failures: test_blame.py
    ran = driver("verify", "--cpu", "--test", flag)
    assert good(ran) != good(driver("verify", "--cpu", "--test"))


@effect("--iterations")
def _iterations(driver: Driver, models: Path, tmp: Path, flag: str) -> None:
    found = json.loads(good(driver("perf", "--ref", "--test", flag, 3, "--json")))
    assert found["iterations"] == 3
