"""Reading a model: cut, without literals, from a script, from odd names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import mgx_mlir
from tests.driver.conftest import Driver, weights

NETWORK = 'x = main.add_parameter("x", migraphx.shape(type="float_type", lens=[2, 3]))'


def script(path: Path, *lines: str) -> Path:
    head = ("import migraphx", "p = migraphx.program()", "main = p.get_main_module()")
    path.write_text("\n".join([*head, *lines]) + "\n")
    return path


# ---- --trim and --trim-size ----------------------------------------------------------------------


def test_the_last_operations_become_a_model_of_their_own(driver: Driver, models: Path) -> None:
    read = ("read", models / "mnist.onnx", "--trim", 1)
    lines = driver(*read, "--trim-size", 3).lines
    # multibroadcast, add, softmax; what they read besides constants is a parameter
    operators = [line.split(" = ")[1].partition("(")[0].partition("[")[0] for line in lines[2:]]
    assert operators == ["multibroadcast", "add", "softmax"]
    assert lines[0].startswith("@0 = @literal{")
    assert lines[1] == "x0 = @param:x0 -> float_type, {1, 10}, {10, 1}"
    assert driver("read", models / "mnist.onnx", "--trim-size", 2).status == 2
    ran = driver("verify", "--cpu", models / "mnist.onnx", "--trim", 1, "--trim-size", 3)
    assert ran.status == 0


def test_a_trimmed_model_computes_what_it_showed(
    driver: Driver, models: Path, tmp_path: Path
) -> None:
    path = tmp_path / "relu.mxr"
    # ... relu | dot multibroadcast add softmax @return
    assert driver("read", models / "mnist.onnx", "--trim", 5, "-o", path).status == 0
    x = np.random.default_rng(0).standard_normal((1, 28, 28)).astype(np.float32)
    [found] = mgx_mlir.load(path).run({"x": x})
    held = weights()
    wanted = np.maximum(x.reshape(1, 784).astype(np.float64) @ held["w0"] + held["b0"], 0)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-5)


def test_a_cut_through_control_flow(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "if.mlir").write_text("""
        func.func @main(%c: tensor<1xi1>, %x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "migraphx.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
          %1 = "migraphx.if"(%c) ({
            %2 = "migraphx.neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
            "migraphx.yield"(%2) : (tensor<2xf32>) -> ()
          }, {
            "migraphx.yield"(%0) : (tensor<2xf32>) -> ()
          }) : (tensor<1xi1>) -> tensor<2xf32>
          return %1 : tensor<2xf32>
        }""")
    # the branches read a parameter in place of the exp that is cut off
    ran = driver("read", tmp_path / "if.mlir", "--trim", 1, "--trim-size", 1)
    assert ran.status == 0
    assert "exp" not in ran.out
    assert "= neg(x0)" in ran.out
    again = driver("verify", "--ref", tmp_path / "if.mlir", "-t", 1, "-s", 1, "-p", "normalize_ops")
    assert again.status == 0


def test_replaced_literals(driver: Driver, models: Path, tmp_path: Path) -> None:
    found = driver("params", models / "mnist.onnx", "--replace-literals").lines
    assert found[:5] == [
        "x: float_type, {1, 28, 28}, {784, 28, 1}",
        "literal:0: float_type, {784, 128}, {128, 1}",
        "literal:1: float_type, {128}, {1}",
        "literal:2: float_type, {128, 10}, {10, 1}",
        "literal:3: float_type, {10}, {1}",
    ]
    path = tmp_path / "open.mxr"
    assert driver("read", models / "mnist.onnx", "--replace-literals", "-o", path).status == 0
    x = np.random.default_rng(0).standard_normal((1, 28, 28)).astype(np.float32)
    held = weights()
    given = {f"literal:{i}": held[k] for i, k in enumerate(("w0", "b0", "w1", "b1"))}
    [found] = mgx_mlir.load(path).run({"x": x, **given})
    [wanted] = mgx_mlir.compile(models / "mnist.onnx", "ref").run({"x": x})
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


# ---- scripts -------------------------------------------------------------------------------------


def test_a_script(driver: Driver, tmp_path: Path) -> None:
    path = script(tmp_path / "m.py", NETWORK, 'main.add_instruction(migraphx.op("relu"), [x])')
    ran = driver("run", "--ref", path)
    assert ran.status == 0
    assert "@0 = ref::relu(x) -> float_type, {2, 3}, {3, 1}" in ran.lines
    # the program need not be called p where it is the only one
    other = tmp_path / "other.py"
    other.write_text(path.read_text().replace("p = ", "model = ").replace("p.get", "model.get"))
    assert driver("read", other).out == driver("read", path).out
    import sys

    assert "migraphx" not in sys.modules


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["x = ("], "the script is not valid Python"),
        ([NETWORK, "1 / 0"], "m.py:5: error: the script failed: ZeroDivisionError"),
        (["import sys", "sys.exit(3)"], "the script failed: SystemExit"),
        (["del p"], "expected a program in the variable 'p', the script makes 0"),
        ([NETWORK, 'main.add_instruction(migraphx.op("rellu"), [x])'], "did you mean 'relu'?"),
        (["p = 3\nq = migraphx.program()\nr = migraphx.program()"], "the script makes 2"),
    ],
)
def test_scripts_that_fail(driver: Driver, tmp_path: Path, lines: list[str], message: str) -> None:
    ran = driver("read", script(tmp_path / "m.py", *lines))
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
    assert len([line for line in ran.errors if not line.startswith(("Reading", "note: "))]) == 1


# ---- what is written -----------------------------------------------------------------------------


def test_a_model_for_netron(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "shown.onnx"
    options = ("--netron", "--debug-symbols", "-o", path)
    assert driver("read", models / "mnist.onnx", *options).status == 0
    graph = onnx.load(path).graph
    assert [v.name for v in graph.input] == ["x"]
    assert [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim] == [1, 28, 28]
    assert [n.op_type for n in graph.node] == [
        "reshape", "dot", "multibroadcast", "add", "relu", "dot", "multibroadcast", "add",
        "softmax",
    ]  # fmt: skip
    assert graph.output[0].name == graph.node[-1].output[0]
    assert [list(t.dims) for t in graph.initializer] == [[10], [128, 10], [128], [784, 128]]
    assert not any(t.raw_data or t.float_data for t in graph.initializer)
    attributes = {a.name: a.s for a in graph.node[-1].attribute}
    assert attributes == {"axis": b"1", "debug_symbols": b"probs"}
    # every name that is read is made
    made = {v.name for v in (*graph.input, *graph.initializer)}
    for node in graph.node:
        assert set(node.input) <= made
        made.update(node.output)
    ran = driver("compile", "--cpu", models / "mnist.onnx", "--netron", "-o", path)
    assert ran.status == 0
    assert "cpu::dot_add_relu" in [n.op_type for n in onnx.load(path).graph.node]


def test_a_compiled_file_is_read_as_it_is(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.mxr"
    driver("compile", "--cpu", models / "mnist.onnx", "-o", path)
    assert "cpu::dot_add_relu(" in driver("read", path).out
    plain = driver("read", models / "mnist.onnx").out
    assert driver("read", path, "--strip-context").out == plain
    assert driver("params", path, "--strip-context").status == 2


def test_names_with_unknown_endings_are_migraphx_files(driver: Driver, tmp_path: Path) -> None:
    assert driver("read", "--test", "-o", tmp_path / "saved").status == 0
    assert driver("read", tmp_path / "saved").out == driver("read", "--test").out
    (tmp_path / "m.xyz").write_bytes(b"\\x08\\x09 no map")
    ran = driver("read", tmp_path / "m.xyz")
    assert ran.status == 2
    assert "--onnx, --tf, --migraphx" in ran.errors[-1]


def test_a_batch_of_stated_dims(driver: Driver) -> None:
    ran = driver("run", "--ref", "--test", "--batch", 4)
    assert ran.errors[-1].startswith("error: option '--batch' has no effect")
    assert "Batch size: 4" in driver("perf", "--ref", "--test", "--batch", 4, "-n", 2).lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch", 4], "option '--batch' has no effect"),
        (["--input-dim", "@a", 4, 5], "option '--input-dim' has no effect"),
        (["--brief"], "option '--brief' is for --graphviz"),
        (["--trim-size", 2], "option '--trim-size' needs --trim"),
        (["--strip-context"], "is for saved programs"),
        (["--debug-symbols", "--cpp"], "option '--debug-symbols' is for"),
        (["--nhwc"], "option '--nhwc' is for TensorFlow models"),
        (["--dim-param", "@n", 4], "option '--dim-param' is for ONNX models"),
        (["--json", "--text"], "expected one of"),
    ],
)
def test_options_without_an_effect(driver: Driver, options: list[object], message: str) -> None:
    ran = driver("read", "--test", *options)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.errors[0]
