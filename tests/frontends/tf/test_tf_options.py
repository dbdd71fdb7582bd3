"""Options of reading a TensorFlow graph: layouts, dynamic dims, names; API and command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import UsageError
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.tools.driver.main import main

sys.path.insert(0, str(Path(__file__).parent))

from tf_graphs import FLOAT, Graph, small


@pytest.fixture
def image():
    """A convolution whose node does not say where the channels are, and a pool that says last."""
    g = Graph()
    g.placeholder(dims=(2, 5, 6, 3))
    random = np.random.RandomState(0)
    g.const("w", random.standard_normal((3, 3, 3, 4)).astype(np.float32))
    g.node("y", "Conv2D", "x", "w", strides=[1, 1, 1, 1], padding="SAME")
    g.node("z", "Relu", "y")
    return g


def run(program, *inputs):
    compiled = mgx_mlir.compile(program, "ref")
    return compiled.run(*inputs)


def test_channels_are_where_the_option_says(image):
    x = np.random.RandomState(1).standard_normal((2, 5, 6, 3)).astype(np.float32)
    [last] = run(image.parse(), x)
    assert last.shape == (2, 5, 6, 4)
    [first] = run(
        image.parse(is_nhwc=False, map_input_dims={"x": [2, 3, 5, 6]}), x.transpose(0, 3, 1, 2)
    )
    np.testing.assert_allclose(first.transpose(0, 2, 3, 1), last, rtol=1e-5, atol=1e-6)


def test_a_node_that_says_where_is_not_overruled(image):
    image.proto.node[2].attr["data_format"].s = b"NHWC"
    x = np.random.RandomState(1).standard_normal((2, 5, 6, 3)).astype(np.float32)
    [last] = run(image.parse(), x)
    [same] = run(image.parse(is_nhwc=False), x)
    np.testing.assert_array_equal(last, same)


def test_the_layout_of_migraphx(image):
    """Images go in and come out channels first, of a channels-last graph."""
    x = np.random.RandomState(1).standard_normal((2, 5, 6, 3)).astype(np.float32)
    [last] = run(image.parse(), x)
    program = image.parse(migraphx_layout=True)
    assert "tensor<2x3x5x6xf32>" in str(program.module).splitlines()[1]
    [first] = run(program, np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    np.testing.assert_array_equal(first.transpose(0, 2, 3, 1), last)


@pytest.mark.parametrize(
    ("options", "dims"),
    [({}, "1x3"), ({"batch_size": 4}, "4x3"), ({"batch_size": None}, "?x3")],
)
def test_dynamic_dims(options, dims):
    g = Graph()
    g.placeholder(dims=(-1, 3))
    g.node("y", "Relu", "x")
    assert f"tensor<{dims}xf32>" in str(g.parse(**options).module)


def test_outputs_are_what_nobody_reads_in_the_order_of_the_file():
    g = Graph()
    g.placeholder()
    g.node("late", "Relu", "first")
    g.node("first", "Neg", "x")
    g.node("other", "Abs", "x")
    g.node("unused", "NoOp")
    compiled = mgx_mlir.compile(g.parse(), "ref")
    assert compiled.output_names == ["late", "other"]


def test_output_names_choose_and_order():
    program = small().parse(output_names=["z", "y:0"])
    assert mgx_mlir.compile(program, "ref").output_names == ["z", "y:0"]
    with pytest.raises(UsageError, match="got a string"):
        TfOptions(output_names="z")


def test_inputs_that_no_output_needs_are_none():
    g = small()
    g.placeholder("lost", (4,), FLOAT)
    assert mgx_mlir.compile(g.parse(), "ref").input_names == ["x"]


def test_nodes_are_locations():
    from mgx_mlir.core.operand_segments import asm

    program = small().parse()
    with program.ctx:
        text = asm(program.module.operation, enable_debug_info=True, use_local_scope=True)
    assert 'loc("y"' in text


# ---- the API and the command line ----------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.pb"
    path.write_bytes(small().proto.SerializeToString())
    return path


def test_parse_tf(file):
    program = mgx_mlir.parse_tf(str(file), output_names=["z"])
    assert list(program.get_parameter_shapes()) == ["x"]
    program.compile(mgx_mlir.get_target("ref"))
    x = np.ones((2, 3), np.float32)
    found = np.array(program.run({"x": x})[0])
    np.testing.assert_allclose(found, x @ np.arange(6, dtype=np.float32).reshape(3, 2))


def test_compile_takes_the_path(file):
    assert mgx_mlir.compile(file, "ref", batch_size=2).input_names == ["x"]
    with pytest.raises(UsageError, match="unexpected keyword argument 'batch'"):
        mgx_mlir.compile(file, "ref", batch=2)


def driver(capsys, *words):
    status = main([str(w) for w in words])
    out = capsys.readouterr()
    return status, out.out, out.err


def test_list(capsys):
    status, out, _ = driver(capsys, "tf", "--list")
    names = out.split()
    assert status == 0
    assert names == sorted(names)
    assert {"Conv2D", "MatMul", "While", "ReadVariableOp"} <= set(names)


def test_params_and_read(capsys, file):
    assert "x: float_type, {2, 3}, {3, 1}" in driver(capsys, "params", file)[1]
    assert "z: float_type, {2, 2}, {2, 1}" in driver(capsys, "params", file)[1]
    assert "dot(x," in driver(capsys, "read", file)[1]
    assert "relu" not in driver(capsys, "read", file, "--output-names", "y")[1]


def test_verify(capsys, file):
    status, out, _ = driver(capsys, "verify", "--cpu", file)
    assert (status, "verification passed" in out) == (0, True)


def test_perf(capsys, file):
    status, out, _ = driver(capsys, "perf", "--cpu", file, "-n", "3")
    assert (status, "Rate:" in out) == (0, True)


def test_tf_whatever_the_name(capsys, file):
    other = file.rename(file.with_name("model.bin"))
    assert "dot(x," in driver(capsys, "read", "--tf", other)[1]
    assert driver(capsys, "read", other)[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dim-param", "@n", "4"], "'--dim-param' is for ONNX models"),
        (["--nhwc", "--nchw"], "expected one of --nhwc, --nchw"),
        (["--input-dim", "@q", "4"], "no input of the model"),
        (["--output-names", "q"], "output 'q' is no node"),
    ],
)
def test_options_that_do_not_fit(capsys, file, words, message):
    status, _, err = driver(capsys, "read", file, *words)
    assert status == 2
    assert message in err


def test_options_of_tensorflow_are_refused_for_others(capsys):
    status, _, err = driver(capsys, "read", "--test", "--nchw")
    assert status == 2
    assert "'--nchw' is for TensorFlow models" in err


def test_the_module_prints_programs(file):
    words = [sys.executable, "-m", "mgx_mlir.frontends.tf", str(file), "--locations"]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "migraphx.dot" in found.stdout


def test_nan_lies_behind_the_last_boundary():
    """TensorFlow 2.21 gives the same: std::upper_bound finds no boundary above it."""
    g = Graph()
    g.placeholder(dims=(6,))
    g.node("y", "Bucketize", "x", boundaries=[0.0, 1.0, 2.0])
    x = np.array([np.nan, 0.5, 3, 1, np.inf, -np.inf], np.float32)
    program = g.parse()
    found = Interpreter(program.module, program.store).run({"x": x})[0]
    np.testing.assert_array_equal(found, [3, 1, 3, 2, 3, 0])
