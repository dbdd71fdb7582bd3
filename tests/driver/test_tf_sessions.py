"""The sessions of MIGraphX's driver page on its frozen graph, which examples/mnist.py writes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from examples import mnist
from mgx_mlir.frontends.tf import schema
from tests.driver.conftest import Driver
from tests.driver.test_sessions import LINE, assert_program, literal

# the page's lines with 2.16's attributes: Identity nodes and constants that only an attribute
# comes from leave none
LOADED = [
    f"@0 = @literal{literal('b1')} -> float_type, {{10}}, {{1}}",
    "@1 = @literal{ ... } -> float_type, {128, 10}, {10, 1}",
    "@2 = @literal{ ... } -> float_type, {128}, {1}",
    "@3 = @literal{ ... } -> float_type, {784, 128}, {128, 1}",
    "x = @param:x -> float_type, {1, 28, 28}, {784, 28, 1}",
    "@4 = reshape[dims={-1, 784}](x) -> float_type, {1, 784}, {784, 1}",
    "@5 = dot(@4,@3) -> float_type, {1, 128}, {128, 1}",
    "@6 = broadcast[axis=1,out_lens={1, 128},out_dyn_dims={}](@2) -> float_type, {1, 128}, {0, 1}",
    "@7 = add(@5,@6) -> float_type, {1, 128}, {128, 1}",
    "@8 = relu(@7) -> float_type, {1, 128}, {128, 1}",
    "@9 = dot(@8,@1) -> float_type, {1, 10}, {10, 1}",
    "@10 = broadcast[axis=1,out_lens={1, 10},out_dyn_dims={}](@0) -> float_type, {1, 10}, {0, 1}",
    "@11 = add(@9,@10) -> float_type, {1, 10}, {10, 1}",
    "@12 = softmax[axis=1](@11) -> float_type, {1, 10}, {10, 1}",
    "@13 = @return(@12)",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return mnist.write(tmp_path_factory.mktemp("mnist"))


@pytest.fixture(scope="module")
def graph(files: tuple[Path, Path]) -> Path:
    return files[0]


def test_params(driver: Driver, graph: Path) -> None:
    ran = driver("params", graph)
    assert (ran.status, ran.errors) == (0, [f"Reading: {graph}"])
    assert ran.lines == [
        "x: float_type, {1, 28, 28}, {784, 28, 1}",
        "Identity: float_type, {1, 10}, {10, 1}",
    ]


def test_read(driver: Driver, graph: Path) -> None:
    ran = driver("read", graph)
    assert (ran.status, ran.errors) == (0, [f"Reading: {graph}"])
    assert ran.lines == LOADED


def test_compile(driver: Driver, graph: Path) -> None:
    ran = driver("compile", "--cpu", graph)
    assert ran.status == 0
    assert_program(ran.lines)
    assert ran.errors[1:3] == ["Compiling ...", f"Reading: {graph}"]


def test_run(driver: Driver, graph: Path) -> None:
    ran = driver("run", "--cpu", graph)
    assert ran.status == 0
    first, second = ran.out.split("\n\n")
    assert first.splitlines() == second.splitlines()
    assert_program(first.splitlines())
    assert "Allocating params ..." in ran.errors


def test_verify(driver: Driver, graph: Path) -> None:
    ran = driver("verify", "--cpu", "--verbose", graph)
    assert ran.status == 0
    read, ref, cpu, report = (part.splitlines() for part in ran.out.split("\n\n"))
    assert read == LOADED
    assert all(LINE.match(line) for line in ref)
    assert [line.replace("ref::", "") for line in ref] == LOADED
    assert_program(cpu)
    assert re.match(r"Identity: max abs diff [\d.e-]+, .*: pass$", report[0])
    assert report[1].startswith("verification passed: cpu and ref agree in 1 output")


def test_perf(driver: Driver, graph: Path) -> None:
    ran = driver("perf", "--cpu", graph, "-n", 5)
    assert ran.status == 0
    assert "Running performance report ..." in ran.errors
    assert re.search(r"^Rate: [\d.e+]+/sec$", ran.out, re.M)
    assert re.search(r"^cpu::dot_add_relu: [\d.e-]+ms, \d+%$", ran.out, re.M)


def test_both_forms_are_one_model(files: tuple[Path, Path]) -> None:
    x = np.random.default_rng(1).standard_normal((1, 28, 28)).astype(np.float32)
    values = {k: v.astype(np.float64) for k, v in mnist.weights().items()}
    hidden = np.maximum(x.reshape(1, 784) @ values["w0"] + values["b0"], 0)
    scores = np.exp(hidden @ values["w1"] + values["b1"])
    for path in files:
        [found] = mgx_mlir.compile(path, "cpu").run({"x": x})
        np.testing.assert_allclose(found, scores / scores.sum(), rtol=1e-5, atol=1e-7)


# ---- options -------------------------------------------------------------------------------------


def convolution_file(path: Path) -> Path:
    """A convolution of a dynamic batch whose node does not say where the channels are."""
    g = schema.Graph()
    x = g.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = 1
    for d in (-1, 4, 4, 4):
        x.attr["shape"].shape.dim.add(size=d)
    w = g.node.add(name="w", op="Const")
    w.attr["dtype"].type = 1
    tensor = w.attr["value"].tensor
    tensor.dtype, tensor.tensor_content = 1, np.ones((2, 2, 4, 8), np.float32).tobytes()
    for d in (2, 2, 4, 8):
        tensor.tensor_shape.dim.add(size=d)
    y = g.node.add(name="y", op="Conv2D", input=["x", "w"])
    y.attr["padding"].s = b"VALID"
    y.attr["strides"].list.i.extend([1, 1, 1, 1])
    g.node.add(name="z", op="Relu", input=["y"])
    path.write_bytes(g.SerializeToString())
    return path


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    return convolution_file(tmp_path / "convolution.pb")


@pytest.mark.parametrize(
    ("options", "inputs", "outputs"),
    [
        ([], "x: float_type, {1, 4, 4, 4}", "z: float_type, {1, 3, 3, 8}"),
        (["--nhwc"], "x: float_type, {1, 4, 4, 4}", "z: float_type, {1, 3, 3, 8}"),
        (["--nchw"], "x: float_type, {1, 4, 4, 4}", "z: float_type, {1, 8, 3, 3}"),
        (["--migraphx-layout"], "x: float_type, {1, 4, 4, 4}", "z: float_type, {1, 8, 3, 3}"),
        (["--batch", 5], "x: float_type, {5, 4, 4, 4}", "z: float_type, {5, 3, 3, 8}"),
        (
            ["--input-dim", "@x", 2, 6, 5, 4],
            "x: float_type, {2, 6, 5, 4}",
            "z: float_type, {2, 5, 4, 8}",
        ),
        (["--output-names", "y"], "x: float_type, {1, 4, 4, 4}", "y: float_type, {1, 3, 3, 8}"),
        (
            ["--default-dyn-dim", "{min:1,max:4}"],
            "x: dynamic, float_type, {[1..4], 4, 4, 4}",
            "z: dynamic, float_type, {[1..4], 3, 3, 8}",
        ),
    ],
)
def test_what_an_option_does(
    driver: Driver, convolution: Path, options: list[object], inputs: str, outputs: str
) -> None:
    ran = driver("params", convolution, *options)
    assert ran.status == 0
    first, second = ran.lines
    assert first.startswith(inputs)
    assert second.startswith(outputs)


def test_migraphx_layout_turns_images(driver: Driver, convolution: Path) -> None:
    """The parameter is channels first and is transposed to what the graph declares."""
    plain = driver("read", convolution).out
    turned = driver("read", convolution, "--migraphx-layout").out
    assert "transpose[permutation={0, 2, 3, 1}](x)" not in plain
    assert turned.count("transpose") > 0
    ran = driver("params", convolution, "--migraphx-layout", "--input-dim", "@x", 1, 4, 6, 5)
    assert ran.lines[0].startswith("x: float_type, {1, 4, 6, 5}")
    assert ran.lines[1].startswith("z: float_type, {1, 8, 5, 4}")


def test_unknown_operators(driver: Driver, convolution: Path) -> None:
    """All of them at once; read where that is asked for, and never compiled."""
    graph = schema.Graph.FromString(convolution.read_bytes())
    graph.node[-1].op = "Frobnicate"
    graph.node.add(name="other", op="Twiddle", input=["y"])
    convolution.write_bytes(graph.SerializeToString())
    ran = driver("read", convolution)
    assert (ran.status, ran.out) == (2, "")
    assert "2 nodes are not supported, of 2 kinds" in ran.err
    assert "Frobnicate" in ran.err
    assert "Twiddle" in ran.err
    ran = driver("read", convolution, "--skip-unknown-operators")
    assert ran.status == 0
    assert "unknown:Frobnicate(" in ran.out
    assert "unknown:Twiddle(" in ran.out
    ran = driver("compile", "--cpu", convolution, "--skip-unknown-operators")
    assert (ran.status, ran.out) == (2, "")
    assert "operator 'Frobnicate' has no importer" in ran.err
    assert "operator 'Twiddle' has no importer" in ran.err
    ran = driver("run", "--ref", convolution, "--skip-unknown-operators")
    assert (ran.status, ran.out) == (2, "")
    assert "operator 'Frobnicate' has no importer" in ran.err
