"""Zero copy on a processor: main:#output_N, pointers, and MIGraphX's keyword names."""

from __future__ import annotations

import copy
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.errors import RunError, UsageError

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def two_results() -> Any:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[3, 4]))
    relu = m.add_instruction(migraphx.op("relu"), [x])
    m.add_return([relu, m.add_instruction(migraphx.op("reduce_sum", axes=[0, 1]), [x])])
    return p


@pytest.fixture(scope="module", params=["ref", "cpu"])
def compiled(request: pytest.FixtureRequest) -> Any:
    p = two_results()
    p.compile(migraphx.get_target(request.param), offload_copy=False)
    return p


def test_results_are_parameters(compiled: Any) -> None:
    shapes = compiled.get_parameter_shapes()
    assert list(shapes) == ["x", "main:#output_0", "main:#output_1"]
    assert compiled.get_parameter_names() == list(shapes)
    assert shapes["main:#output_0"].lens() == [3, 4]
    assert shapes["main:#output_1"].lens() == [1, 1]
    with_copies = two_results()
    with_copies.compile(migraphx.get_target("ref"))
    assert with_copies.get_parameter_names() == ["x"]
    with pytest.raises(RunError, match="main:#output_0"):
        with_copies.run({"x": X, "main:#output_0": np.zeros_like(X)})


def test_results_are_written_there(compiled: Any) -> None:
    shapes = compiled.get_parameter_shapes()
    held, turned = np.full((3, 4), 7, np.float32), np.zeros((1, 1), np.float32)
    out = migraphx.argument_from_pointer(shape=shapes["main:#output_0"], address=held.ctypes.data)
    x = migraphx.argument_from_pointer(shapes["x"], X.ctypes.data)
    found = compiled.run({"x": x, "main:#output_0": out, "main:#output_1": turned})
    assert found[0] is out
    np.testing.assert_array_equal(held, np.maximum(X, 0))
    np.testing.assert_allclose(turned, X.sum(), atol=1e-5)
    turned[...] = 5
    assert found[1].tolist() == [5.0]
    # some of them, or none
    held[...] = 7
    assert compiled.run({"x": X, "main:#output_1": turned})[0].tolist() == list(X.clip(0).flat)
    assert held[0, 0] == 7
    # any strides
    wide = np.zeros((4, 3), np.float32)
    compiled.run({"x": X, "main:#output_0": wide.T})
    np.testing.assert_array_equal(wide.T, np.maximum(X, 0))


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_results_of_views_have_dense_shapes(target: str) -> None:
    """A slice, a transpose and a broadcast: their strides are of what the passes see, no more."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[3, 4]))
    m.add_return(
        [
            m.add_instruction(migraphx.op("slice", axes=[1], starts=[1], ends=[3]), [x]),
            m.add_instruction(migraphx.op("transpose", permutation=[1, 0]), [x]),
            m.add_instruction(migraphx.op("multibroadcast", out_lens=[2, 3, 4]), [x]),
        ]
    )
    p.compile(migraphx.get_target(target), offload_copy=False)
    shapes = [s for n, s in p.get_parameter_shapes().items() if n != "x"]
    assert [s.strides() for s in shapes] == [[2, 1], [3, 1], [12, 4, 1]]
    assert [s.strides() for s in p.get_output_shapes()] == [[2, 1], [3, 1], [12, 4, 1]]
    assert [a.get_shape().strides() for a in p.run({"x": X})] == [[2, 1], [3, 1], [12, 4, 1]]


def test_an_input_is_a_buffer_too(compiled: Any) -> None:
    held = X.copy()
    compiled.run({"x": held, "main:#output_0": held})
    np.testing.assert_array_equal(held, np.maximum(X, 0))


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (np.zeros((4, 3), np.float32), "expected float_type, {3, 4}, got float_type, {4, 3}"),
        (np.zeros((3, 4)), "expected float_type, {3, 4}, got double_type, {3, 4}"),
        ([0.0] * 12, "expected an argument or array, got list"),
        (None, "expected data with the buffer protocol, got NoneType"),
        (np.broadcast_to(np.float32(0), (3, 4)), "got read-only memory"),
    ],
)
def test_wrong_buffers(compiled: Any, buffer: object, message: str) -> None:
    with pytest.raises(RunError) as caught:
        compiled.run({"x": X, "main:#output_0": buffer})
    assert message in str(caught.value)


def test_no_such_result(compiled: Any) -> None:
    with pytest.raises(RunError, match="main:#output_2: expected a number below 2"):
        compiled.run({"x": X, "main:#output_2": np.zeros(1)})


def test_a_pointer_that_is_none(compiled: Any) -> None:
    bad = migraphx.argument_from_pointer(compiled.get_parameter_shapes()["x"], 4096)
    assert bad.data_ptr() == 4096
    with pytest.raises(UsageError, match="this process cannot read"):
        np.array(bad)
    with pytest.raises(RunError, match=r"x: .*cannot read"):
        compiled.run({"x": bad})
    small = migraphx.argument_from_pointer(compiled.get_parameter_shapes()["main:#output_1"], 4096)
    with pytest.raises(RunError, match="main:#output_1"):
        compiled.run({"x": X, "main:#output_1": small})


def test_dynamic_dims() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    some = migraphx.shape.dynamic_dimension(1, 8)
    x = m.add_parameter("x", migraphx.shape(type="float_type", dyn_dims=[some, 4]))
    m.add_return([m.add_instruction(migraphx.op("relu"), [x])])
    p.compile(migraphx.get_target("ref"), offload_copy=False)
    assert p.get_parameter_shapes()["main:#output_0"].dynamic()
    held = np.zeros((3, 4), np.float32)
    p.run({"x": X, "main:#output_0": held})
    np.testing.assert_array_equal(held, np.maximum(X, 0))
    with pytest.raises(RunError, match=r"expected float_type, \{2, 4\}, got float_type, \{3, 4\}"):
        p.run({"x": X[:2], "main:#output_0": held})


def test_files_keep_it(compiled: Any, tmp_path: Path) -> None:
    migraphx.save(compiled, tmp_path / "p.mxr")
    again = migraphx.load(tmp_path / "p.mxr")
    assert "main:#output_0" in again.get_parameter_shapes()
    held = np.zeros((3, 4), np.float32)
    again.run({"x": X, "main:#output_0": held})
    np.testing.assert_array_equal(held, np.maximum(X, 0))


def test_clones(compiled: Any) -> None:
    made = compiled.clone()
    assert made.is_compiled()
    assert made.get_parameter_names() == compiled.get_parameter_names()
    np.testing.assert_array_equal(np.array(made.run({"x": X})[0]), np.maximum(X, 0))
    first = two_results()
    second = first.clone()
    assert first == second
    second.compile(migraphx.get_target("ref"))
    assert not first.is_compiled()
    assert copy.copy(first.get_parameter_names()) == ["x"]


def test_memory_of_an_argument() -> None:
    a = migraphx.argument(X.copy())
    view = memoryview(np.asarray(a))  # memoryview(a) from Python 3.12 on
    assert (view.shape, view.format) == ((3, 4), "f")
    view[0, 0] = 9.0
    assert a.tolist()[0] == 9.0


# keyword names of src/py/migraphx_py.cpp
KEYWORDS = {
    "argument_from_pointer": ["shape", "address"],
    "parse_tf": ["filename", "is_nhwc", "batch_size", "map_input_dims", "output_names"],
    "parse_onnx": [
        "filename", "default_dim_value", "default_dyn_dim_value", "dim_params", "map_input_dims",
        "map_dyn_input_dims", "skip_unknown_operators", "print_program_on_error",
        "max_loop_iterations", "limit_max_iterations", "use_debug_symbols",
    ],
    "parse_onnx_buffer": [
        "filename", "default_dim_value", "default_dyn_dim_value", "map_input_dims",
        "map_dyn_input_dims", "skip_unknown_operators", "print_program_on_error",
        "external_data_path", "use_debug_symbols",
    ],
    "load": ["filename", "format"], "save": ["p", "filename", "format"],
    "load_buffer": ["b"], "save_buffer": ["p"],
    "generate_argument": ["s", "seed"], "fill_argument": ["s", "value"],
    "quantize_fp16": ["prog", "ins_names"], "quantize_bf16": ["prog", "ins_names"],
    "quantize_int8": ["prog", "t", "calibration", "ins_names"],
    "quantize_fp8": ["prog", "t", "calibration"], "autocast_fp8": ["prog"],
    "allocate_gpu": ["s", "host"], "to_gpu": ["arg", "host"],
}  # fmt: skip


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords(name: str) -> None:
    found = list(inspect.signature(getattr(migraphx, name)).parameters)
    assert found[: len(KEYWORDS[name])] == KEYWORDS[name]


def test_a_buffer_by_its_keyword() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    )
    p = migraphx.parse_onnx_buffer(filename=model.SerializeToString())
    assert p.get_parameter_names() == ["x"]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["", "u"])
def test_types_as_c_spells_them(bits: int, sign: str) -> None:
    assert migraphx.shape(type=f"{sign}int{bits}_t").type_string() == f"{sign}int{bits}_type"


def test_autocast_order() -> None:
    """The new parameters come behind the others, the last first: as in MIGraphX."""
    p = migraphx.program()
    m = p.get_main_module()
    names = {"a": "fp8e4m3fn_type", "b": "half_type", "c": "fp8e4m3fn_type"}
    values = [m.add_parameter(n, migraphx.shape(type=t, lens=[2])) for n, t in names.items()]
    m.add_return(values)
    migraphx.autocast_fp8(p)
    assert p.get_parameter_names() == ["b", "c", "a"]
    found = p.run({"a": np.float32([1, 2]), "b": np.float16([3, 4]), "c": np.float32([5, 6])})
    assert [a.tolist() for a in found] == [[1, 2], [3, 4], [5, 6]]
