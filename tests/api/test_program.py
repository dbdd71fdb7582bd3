"""Compiling and running: a MIGraphX script as its users write it, and what run refuses."""

from __future__ import annotations

import inspect
import subprocess
import sys
import time
from dataclasses import fields
from typing import Any

import numpy as np
import onnx
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.errors import RunError, ShapeError, TargetError, UsageError
from tests.support.models import parsed
from tests.support.oracle import ort_session

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    """A small convolutional classifier with a free batch dimension."""
    weights = {
        "w": RNG.standard_normal((4, 1, 3, 3)), "b": RNG.standard_normal(4),
        "v": RNG.standard_normal((4, 3)),
    }  # fmt: skip
    made = parsed(
        """(float[batch,1,8,8] x) => (float[batch,3] y) {
        [conv] c = Conv <pads = [1,1,1,1]> (x, w, b) [relu] r = Relu (c)
        [pool] p = GlobalAveragePool (r) [flat] f = Flatten (p) [matmul] m = MatMul (f, v)
        [softmax] y = Softmax <axis = 1> (m) }""",
        weights,
    )
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    onnx.save(made, path)
    return str(path)


def expected(model: str, x: np.ndarray) -> np.ndarray:

    return ort_session(model).run(None, {"x": x})[0]


@pytest.mark.parametrize("name", ["ref", "cpu"])
def test_a_script(model: str, name: str) -> None:
    p = migraphx.parse_onnx(model)
    assert p.get_parameter_names() == ["x"]
    assert p.get_parameter_shapes()["x"].lens() == [1, 1, 8, 8]
    assert [s.lens() for s in p.get_output_shapes()] == [[1, 3]]
    assert not p.is_compiled()
    p.compile(migraphx.get_target(name))
    assert p.is_compiled()
    p.finalize()
    params = {n: migraphx.generate_argument(s, 5) for n, s in p.get_parameter_shapes().items()}
    out = p.run(params)
    assert len(out) == 1
    assert out[0].get_shape().lens() == [1, 3]
    x = np.array(params["x"])
    np.testing.assert_allclose(np.array(out[0]), expected(model, x), rtol=1e-5, atol=1e-6)
    assert abs(sum(out[0].tolist()) - 1) < 1e-5
    # plain arrays do as well, and so does a second run
    again = p.run({"x": x})
    assert np.array_equal(np.array(again[0]), np.array(out[0]))
    assert f"{name}::" in repr(p)
    with pytest.raises(UsageError, match="compiled already"):
        p.compile(migraphx.get_target(name))


def test_dims_by_option(model: str) -> None:
    dim = migraphx.shape.dynamic_dimension
    with open(model, "rb") as f:
        data = f.read()
    for p, first in (
        (migraphx.parse_onnx(model, default_dim_value=3), 3),
        (migraphx.parse_onnx(model, map_input_dims={"x": [2, 1, 8, 8]}), 2),
        (migraphx.parse_onnx(model, dim_params={"batch": 5}), 5),
        (migraphx.parse_onnx_buffer(data, default_dim_value=4), 4),
    ):
        assert p.get_parameter_shapes()["x"].lens()[0] == first
    p = migraphx.parse_onnx(model, default_dyn_dim_value=dim(1, 4, {2}))
    shapes = p.get_parameter_shapes()
    assert shapes["x"].dyn_dims()[0] == dim(1, 4, {2})
    assert p.get_output_shapes()[0].dyn_dims() == [dim(1, 4), dim(3, 3)]
    x = RNG.standard_normal((3, 1, 8, 8)).astype("f4")
    np.testing.assert_allclose(
        np.array(p.run({"x": x})[0]), expected(model, x), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(RunError, match="dim 0"):
        p.run({"x": np.zeros((5, 1, 8, 8), "f4")})
    with pytest.raises(UsageError, match="one of default_dim_value"):
        migraphx.parse_onnx(model, default_dim_value=2, default_dyn_dim_value=dim(1, 4))


@pytest.mark.parametrize("given", [{"min": 1, "max": 4}, (1, 4), [1, 4, {2}]])
def test_compile_takes_dims_in_every_form(model: str, given: Any) -> None:
    x = RNG.standard_normal((3, 1, 8, 8)).astype("f4")
    for options in ({"default_dyn_dim_value": given}, {"dim_params": {"batch": given}}):
        program = migraphx.compile(model, target="ref", **options)
        np.testing.assert_allclose(
            program.run({"x": x})[0], expected(model, x), rtol=1e-5, atol=1e-6
        )
        with pytest.raises(RunError, match="dim 0"):
            program.run({"x": np.zeros((5, 1, 8, 8), "f4")})
    with pytest.raises(ShapeError, match="expected a dynamic_dimension"):
        migraphx.compile(model, target="ref", default_dyn_dim_value={"max": 4})


def test_compile_names_the_kinds_of_models_that_it_takes(model: str) -> None:
    proto = onnx.load(model)
    for given in (proto, proto.SerializeToString()):
        assert migraphx.compile(given, target="ref").output_names
    with pytest.raises(UsageError, match="got GraphProto"):
        migraphx.compile(proto.graph, target="ref")


def test_debug_symbols(model: str) -> None:
    p = migraphx.parse_onnx(model, use_debug_symbols=True)
    assert "# relu" in repr(p)
    assert "# relu" not in repr(migraphx.parse_onnx(model))


def test_trace_sees_every_instruction(model: str) -> None:
    for compiled in (False, True):
        p = migraphx.parse_onnx(model)
        if compiled:
            p.compile(migraphx.get_target("ref"))
        seen: list[tuple[str, list[int]]] = []
        x = RNG.standard_normal((1, 1, 8, 8)).astype("f4")
        out = p.run(
            {"x": x}, trace=lambda i, r, s=seen: s.append((i.name(), r[0].get_shape().lens()))
        )
        names = [n.removeprefix("ref::") for n, _ in seen]
        assert "convolution" in names
        assert names[-1] == "softmax"
        assert seen[-1][1] == [1, 3]
        np.testing.assert_allclose(np.array(out[0]), expected(model, x), rtol=1e-5, atol=1e-6)


def test_kernels_cannot_be_traced(model: str) -> None:
    p = migraphx.parse_onnx(model)
    p.compile(migraphx.get_target("cpu"))
    with pytest.raises(RunError, match="cannot be traced"):
        p.run({"x": np.zeros((1, 1, 8, 8), "f4")}, trace=lambda i, r: None)


@pytest.mark.parametrize("name", [None, "ref", "cpu"])
def test_all_wrong_inputs_are_reported_before_anything_runs(name: str | None) -> None:
    p = migraphx.program()
    m = p.get_main_module()
    shape = migraphx.shape
    a = m.add_parameter("a", shape(type="float", lens=[2, 3]))
    b = m.add_parameter("b", shape(type="float", lens=[2, 3]))
    c = m.add_parameter("c", shape(type="int32", lens=[4]))
    m.add_return([m.add_instruction(migraphx.op("add"), [a, b]), c])
    if name is not None:
        p.compile(migraphx.get_target(name))
    with pytest.raises(RunError) as e:
        p.run({"a": np.zeros((3, 2), "f4"), "c": np.zeros(4, "i8"), "d": 1})
    text = str(e.value)
    for part in ("missing inputs: b", "unknown inputs: d", "'a'", "{3, 2}", "'c'", "int64"):
        assert part in text
    ok = {"a": np.ones((2, 3), "f4"), "b": np.ones((2, 3), "f4"), "c": np.arange(4, dtype="i4")}
    assert np.array(p.run(ok)[0]).tolist() == [[2] * 3] * 2
    assert np.array(p.run(ok)[1]).tolist() == [0, 1, 2, 3]
    with pytest.raises(RunError, match="'a'"):
        p.run({**ok, "a": np.array([["x"] * 3] * 2)})


def test_a_scalar_parameter_takes_a_scalar_or_one_element() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float"))
    m.add_instruction(migraphx.op("neg"), [x])
    for value in (np.float32(2), np.array(2, "f4"), np.array([2], "f4"), 2.0):
        assert p.run({"x": value})[0].tolist() == [-2]


def test_compile_leaves_the_program_as_it_was_when_it_fails() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    m.add_instruction(migraphx.op("neg"), [x])
    text = repr(p)
    with pytest.raises(migraphx.MgxError):
        p.compile(migraphx.get_target("cpu", opt_level="O9"))
    assert repr(p) == text
    assert not p.is_compiled()
    with pytest.raises(UsageError, match="exhaustive_tune is for cpu and gpu"):
        p.compile(migraphx.get_target("ref"), exhaustive_tune=True)
    with pytest.raises(TargetError, match="unknown target 'fpga'"):
        migraphx.get_target("fpga")
    with pytest.raises(UsageError, match="not compiled"):
        p.finalize()
    assert x.name() == "@param"  # references are still good


def test_compile_takes_an_api_program() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    m.add_instruction(migraphx.op("neg"), [x])
    c = migraphx.compile(p, target="ref")
    assert c.run({"x": np.ones(2, "f4")})[0].tolist() == [-1, -1]
    assert not p.is_compiled()


def test_equality_is_that_of_the_text() -> None:
    def made(axis: int) -> migraphx.program:
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(type="float", lens=[2, 2]))
        m.add_instruction(migraphx.op("softmax", axis=axis), [x])
        return p

    assert made(0) == made(0)
    assert made(0) != made(1)
    assert made(0) != "text"


def test_operators_are_listed() -> None:
    found = migraphx.get_onnx_operators()
    assert found == sorted(set(found))
    assert {"Conv", "MatMul", "Softmax"} <= set(found)


def test_import_is_light() -> None:
    code = (
        "import sys, mgx_mlir\n"
        "heavy = {'onnx', 'iree', 'torch_mlir', 'numpy', 'msgpack'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
    assert time.perf_counter() - start < 5  # a busy machine; what is imported is the point


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("cpu", {"disable": ["fuse_pointwize"]}, "unknown pass 'fuse_pointwize'"),
        ("cpu", {"disable": "fuse_pointwise"}, "expected a list of passes"),
        ("cpu", {"threads": 1.5}, "threads expected an integer"),
        ("cpu", {"timeout": -1}, "timeout expected seconds"),
        ("cpu", {"ref_double": True}, "ref_double is for ref"),
        ("cpu", {"arch": ["generic", "host"]}, "arch expected the name of one CPU"),
        ("cpu", {"max_run_seconds": 0}, "max_run_seconds expected a number above 0"),
        ("ref", {"threads": "2", "timeout": "1"}, "threads expected .*; timeout expected seconds"),
        ("ref", {"arch": "gfx942"}, "arch is for cpu and gpu"),
        ("cpu", {"tuning_inputs": lambda s: {}}, "tuning_inputs needs exhaustive_tune"),
        ("cpu", {"hip_graph": True}, "only gpu programs are graphs of a GPU"),
        ("ref", {"map_input_dims": {"x": [2.5, 1, 8, 8]}}, "a size for each dim, got 2.5"),
        ("ref", {"map_input_dims": {"x": "4188"}}, "a size for each dim, got '4'"),
    ],
)
def test_options_of_compile_that_would_do_nothing(model, target, options, message) -> None:
    with pytest.raises(UsageError, match=message):
        migraphx.compile(model, target, **options)


def test_options_may_be_one_object(model) -> None:
    """Keywords take the place of its fields, and help() shows all of them."""
    options = migraphx.CompileOptions("ref", ref_double=True, importer={"default_dim_value": 2})
    made = migraphx.compile(model, options=options)
    assert (made.target, made._interpreter.compute) == ("ref", "f64")
    assert made.signature.inputs[0].dims == (2, 1, 8, 8)
    other = migraphx.compile(model, options=options, ref_double=False, default_dim_value=3)
    assert (other.target, other._interpreter.compute) == ("ref", "f32")
    assert other.signature.inputs[0].dims == (3, 1, 8, 8)
    shown = inspect.signature(migraphx.compile).parameters
    assert list(shown)[:3] == ["model", "target", "options"]
    assert {f.name for f in fields(migraphx.CompileOptions)} - set(shown) == {
        "importer",
        "tuning",
        "matmuls",
        "trusts_values",
    }


def test_results_are_not_written_to_one_place(model) -> None:
    """A writable array of stride 0 kept the last row of all."""
    p = migraphx.compile(model, "ref")
    place = np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (2, 3), (0, 4))
    with pytest.raises(RunError, match="several elements at one address"):
        p.run([np.ones((2, 1, 8, 8), np.float32)], out=[place])


def test_a_result_is_not_written_in_another_byte_order(model) -> None:
    p = migraphx.compile(model, "ref")
    swapped = np.zeros((2, 3), np.dtype(np.float32).newbyteorder())
    with pytest.raises(RunError, match="expected float32, got float32 of another byte order"):
        p.run([np.ones((2, 1, 8, 8), np.float32)], out=[swapped])


def test_results_are_not_written_over_each_other() -> None:
    """The first of two results in one array held the second one."""
    text = """<ir_version: 9, opset_import: ["": 20]>
        g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) { y = Relu (x) z = Neg (x) }"""
    p = migraphx.compile(onnx.parser.parse_model(text).SerializeToString(), "ref")
    x, memory = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros(20, np.float32)
    one, later = memory[:8].reshape(2, 4), memory[4:12].reshape(2, 4)
    for out in ([one, one], [one, later], {"z": one, "y": later}, [one[::-1], one]):
        with pytest.raises(RunError, match=r"'out' of '[yz]' shares memory with 'out' of '[yz]'"):
            p.run([x], out=out)
    wide = memory[:16].reshape(2, 8)
    for out in ([wide[:, :4], wide[:, 4:]], [wide[:, ::2], wide[:, 1::2]], [one, None]):
        y, z = p.run([x], out=out)
        assert (y == x).all()
        assert (z == -x).all()
