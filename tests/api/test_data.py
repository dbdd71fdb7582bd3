"""shape, dynamic_dimension, argument, and the makers of arguments."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.errors import FileError, ShapeError, UsageError
from mgx_mlir.core.random_numbers import random_words
from mgx_mlir.frontends.dims import DynamicDim
from tests.support.models import bytes_of, node

shape, dim = migraphx.shape, migraphx.shape.dynamic_dimension


def test_a_shape_without_lens_is_a_scalar() -> None:
    s = shape(type="float")
    assert (s.lens(), s.strides(), s.ndim(), s.elements()) == ([1], [0], 1, 1)
    assert s.scalar()
    assert not shape(type="float", lens=[1]).scalar()
    assert shape(type="float", lens=[1], strides=[0]) == s
    assert str(s) == "float_type, {1}, {0}"


def test_shape_methods() -> None:
    s = shape(type="half_type", lens=[2, 3, 4])
    assert s.type() == shape.type_t.half_type == 1
    assert (s.type_string(), s.type_size(), s.bytes(), s.elements()) == ("half_type", 2, 48, 24)
    assert s.strides() == [12, 4, 1]
    assert (s.standard(), s.packed(), s.transposed(), s.broadcasted(), s.dynamic()) == (
        True, True, False, False, False,
    )  # fmt: skip
    assert s == shape(type=shape.type_t.half_type, lens=(2, 3, 4))
    assert s != shape(type="half", lens=[2, 3, 5])
    assert s.dyn_dims() == []


def test_strides_and_permutations() -> None:
    t = shape(type="float", lens=[2, 3], strides=[1, 2])
    assert t.packed()
    assert t.transposed()
    assert not t.standard()
    b = shape(type="float", lens=[2, 3], strides=[0, 1])
    assert b.broadcasted()
    assert not b.packed()
    assert b.bytes() == 12
    # memory order NHWC of an NCHW shape
    p = shape(type="float", lens=[1, 2, 3, 4], permutation=[0, 2, 3, 1])
    assert p.strides() == [24, 1, 8, 2]
    assert shape(type="int8", lens=[4, 0]).bytes() == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "flot"}, "unknown type 'flot'"),
        ({"lens": [2], "strides": [1, 1]}, "as many strides as lens"),
        ({"lens": [-1]}, "no negative length"),
        ({"lens": [2, 2], "permutation": [0, 0]}, "permutation expected"),
        ({"strides": [1]}, "require lens"),
        ({"dyn_dims": [dim(1, 2)], "lens": [1]}, "either dyn_dims or lens"),
    ],
)
def test_wrong_shapes(given: dict[str, object], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        shape(**given)  # type: ignore[arg-type]


def test_dynamic_shapes() -> None:
    d = dim(1, 4, {2, 4})
    assert (d.min, d.max, d.optimals, d.is_fixed()) == (1, 4, {2, 4}, False)
    s = shape(type="float", dyn_dims=[d, dim(3, 3)])
    assert s.dynamic()
    assert s.dyn_dims() == [d, dim(3, 3)]
    assert str(s) == "dynamic, float_type, {[1..4], 3}"
    assert s.ndim() == 2
    with pytest.raises(ShapeError, match="dynamic"):
        s.lens()
    assert dim(3, 3).is_fixed()
    assert not shape(type="float", dyn_dims=[dim(2, 2)]).dynamic()
    for wrong in ((4, 1), (1, 4, {5})):
        with pytest.raises(ShapeError):
            dim(*wrong)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.int8, np.uint64, np.bool_,
              ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn],
)  # fmt: skip
def test_an_argument_shares_the_memory_it_is_made_from(dtype: object) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)  # type: ignore[call-overload]
    a = migraphx.argument(x)
    assert a.data_ptr() == x.ctypes.data
    back = np.asarray(a)
    assert back.dtype == x.dtype
    assert np.shares_memory(back, x)
    assert a.get_shape().lens() == [2, 3]
    assert [float(v) for v in a.tolist()] == [float(v) for v in x.reshape(-1)]
    assert a == migraphx.argument(x.copy())
    assert a != migraphx.argument(x.reshape(3, 2))


def test_arguments_of_other_buffers() -> None:
    assert migraphx.argument(bytearray(b"\x01\x02")).tolist() == [1, 2]
    assert migraphx.argument(memoryview(np.arange(3.0))).get_shape().type_string() == "double_type"
    t = migraphx.argument(np.zeros((2, 3), np.float32).T)
    assert t.get_shape().strides() == [1, 3]
    assert migraphx.argument(np.float32(2)).get_shape() == shape(type="float")
    for wrong in ("text", 3, [1, 2], np.array(["a"]), np.array([1j])):
        with pytest.raises(ShapeError):
            migraphx.argument(wrong)


def test_create_and_fill() -> None:
    a = migraphx.create_argument(shape(type="int8", lens=[2, 2]), [1, 2, 3, 4])
    assert np.array(a).tolist() == [[1, 2], [3, 4]]
    t = migraphx.create_argument(shape(type="float", lens=[2, 2], strides=[1, 2]), [1, 2, 3, 4])
    assert np.array(t).tolist() == [[1, 2], [3, 4]]
    assert t.get_shape().strides() == [1, 2]
    assert migraphx.fill_argument(shape(type="bool", lens=[2]), 1).tolist() == [True, True]
    with pytest.raises(ShapeError, match="expected 4 values"):
        migraphx.create_argument(shape(type="int8", lens=[2, 2]), [1])


def test_argument_from_pointer() -> None:
    x = np.arange(6, dtype=np.int32)
    a = migraphx.argument_from_pointer(
        shape(type="int32", lens=[2, 3], strides=[1, 2]), x.ctypes.data
    )
    x[1] = 7
    assert np.array(a).tolist() == [[0, 2, 4], [7, 3, 5]]
    with pytest.raises(ShapeError, match="address"):
        migraphx.argument_from_pointer(shape(type="int32", lens=[1]), 0)


def words_one_by_one(count: int, seed: int) -> list[int]:
    """The generator as its authors give it, a word at a time."""
    full = 2**64 - 1
    x, y, z = 123456789, 362436069, 521288629 ^ seed
    out = []
    for _ in range(count):
        x ^= (x << 16) & full
        x ^= x >> 5
        x ^= (x << 1) & full
        x, y, z = y, z, x ^ y ^ z
        out.append(z)
    return out


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 500])
def test_random_words(count: int) -> None:
    assert random_words(count, 12345).tolist() == words_one_by_one(count, 12345)


def test_generated_arguments() -> None:
    s = shape(type="float", lens=[20, 50])
    a = migraphx.generate_argument(s, 3)
    assert a == migraphx.generate_argument(s, 3)
    assert a != migraphx.generate_argument(s, 4)
    x = np.array(a)
    assert x.min() >= -1
    assert x.max() < 1
    assert 0.5 < x.std() < 0.65  # uniform: 0.577
    first = words_one_by_one(1, 3)[0]
    assert x[0, 0] == np.float32(first % 32768 / 16384 - 1)
    for name, low, high in (("int8", -16, 16), ("uint16", 0, 1023), ("int64", -(2**39), 2**39)):
        v = np.array(migraphx.generate_argument(shape(type=name, lens=[1000]))).astype(np.float64)
        assert v.min() >= low
        assert v.max() <= high
        assert v.std() > (high - low) / 8
    assert set(migraphx.generate_argument(shape(type="bool", lens=[64])).tolist()) == {True, False}


def test_argument_files(tmp_path) -> None:
    for x in (np.arange(6, dtype=np.float16).reshape(2, 3), np.array(3.0), np.zeros((0, 2), bool)):
        migraphx.argument.save(migraphx.argument(x), tmp_path / "a.arg")
        back = migraphx.argument.load(tmp_path / "a.arg")
        assert back == migraphx.argument(x)
    pair = migraphx.argument.tuple_of([migraphx.argument(np.arange(3)), migraphx.argument(x)])
    migraphx.argument.save(pair, tmp_path / "t.arg")
    assert migraphx.argument.load(tmp_path / "t.arg") == pair
    assert len(pair.get_shape().sub_shapes()) == 2
    (tmp_path / "b.arg").write_bytes(b"\x82\xa5shape")
    for name in ("b.arg", "missing.arg"):
        with pytest.raises(FileError, match=name):
            migraphx.argument.load(tmp_path / name)


@pytest.mark.parametrize("most", [2**63 - 1, 2**63, 2**64 - 1, 10**23])
def test_bounds_that_no_size_reaches_bound_nothing(most: int) -> None:
    data = bytes_of([node("Relu", "x", "y")], {"x": ["n", 3]}, "y")
    program = migraphx.parse_onnx_buffer(data, default_dyn_dim_value=dim(1, most))
    found = program.get_parameter_shapes()["x"].dyn_dims()[0]
    assert (found.min, found.max) == (1, 2**64 - 1)
    with pytest.raises(ShapeError, match=f"expected a min below 2\\*\\*63, got {2**63}"):
        dim(2**63, 2**63 + most)
    with pytest.raises(UsageError, match="expected sizes below"):
        DynamicDim(1, 2**63)


@pytest.mark.parametrize("given", [[2, 3], None, np.zeros(2)])
def test_arguments_are_made_of_shapes(given: Any) -> None:
    makers = (
        migraphx.generate_argument,
        lambda s: migraphx.fill_argument(s, 1),
        lambda s: migraphx.create_argument(s, [1.0]),
    )
    for make in makers:
        with pytest.raises(ShapeError, match=f"expected a shape, got {type(given).__name__}"):
            make(given)


@pytest.mark.parametrize("given", [[np.zeros(2, np.float32)], np.zeros(2, np.float32), None])
def test_a_program_takes_inputs_by_name(given: Any) -> None:
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", shape(type="float", lens=[2]))
    main.add_return([main.add_instruction(migraphx.op("relu"), [x])])
    with pytest.raises(UsageError, match=f"inputs by name, a dict, got {type(given).__name__}"):
        program.run(given)
