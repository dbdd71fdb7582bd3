"""Nodes that their opset does not have in that form: read as what is meant, with its numbers.

Each is compared with onnxruntime on the model as it should be, or with numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mgx_mlir as migraphx
from mgx_mlir.core.errors import ModelError, UnsupportedModel
from tests.support.models import bytes_of
from tests.support.oracle import ort_session

RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 4, 6)).astype(np.float32)
U8 = RNG.integers(0, 255, (1, 3, 6, 6)).astype(np.uint8)
S = np.array(0.1, np.float32)
S2 = np.array(0.0723, np.float32)  # no multiple of S: nothing ties
Z = np.array(7, np.uint8)
MS = "com.microsoft"
HALF, LONG = TensorProto.FLOAT16, TensorProto.INT64


def model(
    op: str,
    inputs: Sequence[Any],
    attributes: dict[str, Any],
    *,
    opset: int = 19,
    domain: str = "",
    outputs: int = 1,
    dynamic_inputs: int = 1,
) -> bytes:
    """A model of one node: the first `dynamic_inputs` are inputs, the others initializers, None is
    one that is left out."""
    given = {f"x{i}": np.asarray(a) for i, a in enumerate(inputs) if a is not None}
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    made = helper.make_node(
        op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes
    )
    ports = {n: given[n] for n in names[:dynamic_inputs]}
    held = {n: numpy_helper.from_array(a, n) for n, a in given.items() if n not in ports}
    empty = [helper.make_empty_tensor_value_info(o) for o in made.output]
    return bytes_of([made], ports, empty, held, opset=opset, ir_version=8, ms=1)


def ours(data: bytes, *inputs: np.ndarray) -> list[np.ndarray]:
    p = migraphx.parse_onnx_buffer(data)
    return [np.array(a) for a in p.run(dict(zip(p.get_parameter_names(), inputs, strict=True)))]


def theirs(data: bytes, *inputs: np.ndarray) -> list[Any]:
    session = ort_session(data)
    names = [i.name for i in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def i64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# opset, domain, operands behind the first, attributes; of each pair the form that is found ahead
Form = tuple[int, str, list[Any], dict[str, Any]]
PAIRS: dict[str, tuple[str, np.ndarray, Form, Form]] = {
    "onnxruntime's without its domain": (
        "QLinearAdd", U8, (19, "", [S, Z, U8, S2, Z, S, Z], {}),
        (19, MS, [S, Z, U8, S2, Z, S, Z], {}),
    ),
    "a pool without its domain": (
        "QLinearAveragePool", U8, (19, "", [S, Z, S2, Z], {"kernel_shape": [2, 2]}),
        (19, MS, [S, Z, S2, Z], {"kernel_shape": [2, 2]}),
    ),
    "below its first opset": ("HardSwish", X, (13, "", [], {}), (14, "", [], {})),
    "of ONNX, later": (
        "Gelu", X, (19, "", [], {"approximate": "tanh"}), (20, "", [], {"approximate": "tanh"}),
    ),
    "of both, by its attributes": ("Gelu", X, (19, "", [], {}), (19, MS, [], {})),
    "bounds as attributes": (
        "Slice", X, (19, "", [], {"starts": [1], "ends": [-1], "axes": [2]}),
        (19, "", [i64(1), i64(-1), i64(2)], {}),
    ),
    "axes of a slice as attribute": (
        "Slice", X, (19, "", [i64(1), i64(-1)], {"axes": [2]}),
        (19, "", [i64(1), i64(-1), i64(2)], {}),
    ),
    "axes as attribute": (
        "ReduceMax", X, (19, "", [], {"axes": [1], "keepdims": 0}),
        (19, "", [i64(1)], {"keepdims": 0}),
    ),
    "axes as operand too early": (
        "ReduceSum", X, (12, "", [i64(1)], {"keepdims": 0}), (13, "", [i64(1)], {"keepdims": 0}),
    ),
    "place of an operand": (
        "Add", X, (13, "", [X[0, :, 0]], {"axis": 1, "broadcast": 1}),
        (13, "", [X[0, :, :1]], {}),
    ),
    "pads as attribute": (
        "Pad", X, (13, "", [], {"pads": [0, 1, 0, 0, 0, 2], "value": 2.0}),
        (13, "", [i64(0, 1, 0, 0, 0, 2), np.float32(2)], {}),
    ),
    "axes in the place of a value": (
        "Pad", X, (19, "", [i64(1, 2), i64(2)], {"mode": "edge"}),
        (19, "", [i64(1, 2), None, i64(2)], {"mode": "edge"}),
    ),
    "k as attribute": ("TopK", X, (19, "", [], {"k": 2}), (19, "", [i64(2)], {})),
    "scales as attribute": (
        "Upsample", X, (19, "", [], {"scales": [1.0, 2.0, 3.0]}),
        (9, "", [np.array([1, 2, 3], np.float32)], {}),
    ),
    "scales in Resize's place": (
        "Upsample", X, (19, "", [None, np.array([1, 2, 3], np.float32)], {}),
        (9, "", [np.array([1, 2, 3], np.float32)], {}),
    ),
    "an integer for a number": (
        "LeakyRelu", X, (19, "", [], {"alpha": 2}), (19, "", [], {"alpha": 2.0}),
    ),
    "a list of one": (
        "IsInf", X, (19, "", [], {"detect_negative": [0]}), (19, "", [], {"detect_negative": 0}),
    ),
    "lengths as attribute": (
        "ReverseSequence", X, (19, "", [], {"sequence_lens": [1, 2, 1, 2]}),
        (19, "", [i64(1, 2, 1, 2)], {}),
    ),
    "parts by the outputs": (
        "Split", X, (19, "", [], {"axis": 2}), (19, "", [], {"axis": 2, "num_outputs": 2}),
    ),
    "a fraction for integers": (
        "Shrink", np.arange(-4, 5, dtype=np.int8), (19, "", [], {"bias": 1.5, "lambd": 1.5}),
        (19, "", [], {"bias": 1.5, "lambd": 1.5}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    op, x, found, meant = PAIRS[name]
    count = 2 if op in ("TopK", "Split") else 1

    def made(form: Form) -> bytes:
        opset, domain, more, attributes = form
        return model(op, [x, *more], attributes, opset=opset, domain=domain, outputs=count)

    wanted = theirs(made(meant), x)
    got = ours(made(found), x)
    assert len(got) == len(wanted) == count
    for a, b in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_errors_are_of_the_stated_version() -> None:
    with pytest.raises(ModelError, match="has no attribute 'nonsense', it has: keepdims, noop"):
        migraphx.parse_onnx_buffer(model("ReduceSum", [X], {"nonsense": 1}))
    with pytest.raises(UnsupportedModel, match=r"QLinearNonsense \(opset 19\)"):
        migraphx.parse_onnx_buffer(model("QLinearNonsense", [X], {}))
    with pytest.raises(ModelError, match="attribute 'alpha' expected FLOAT, got INT"):
        migraphx.parse_onnx_buffer(model("LeakyRelu", [X], {"alpha": 2**60 + 1}))
    with pytest.raises(ModelError, match="attribute 'axis' expected INT, got INTS"):
        migraphx.parse_onnx_buffer(model("Flatten", [X], {"axis": [1, 2]}))


def test_clip_of_recurrent_layers() -> None:
    w, r = (RNG.standard_normal((1, 3, n)).astype(np.float32) for n in (6, 3))
    data = [model("RNN", [X, w, r], {"hidden_size": 3, "clip": c}) for c in (1, 1.0)]
    np.testing.assert_allclose(ours(data[0], X)[0], theirs(data[1], X)[0], atol=1e-5)


def test_group_normalization_by_channel() -> None:
    scale, bias = (RNG.standard_normal(4).astype(np.float32) for _ in range(2))
    data = [model("GroupNormalization", [X, scale, bias], {"num_groups": 2}, opset=n)
            for n in (18, 21)]  # fmt: skip
    wanted = ReferenceEvaluator(onnx.load_from_string(data[1])).run(None, {"x0": X})
    np.testing.assert_allclose(ours(data[0], X)[0], wanted[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stash", [0, 1])
def test_stash_type(stash: int) -> None:
    """Without one f16 is computed in f16: the squares of 300 are beyond it."""
    x = np.array([[300.0, -300.0, 300.0, -300.0]], np.float16)
    data = model("LayerNormalization", [x, np.ones(4, np.float16)], {"stash_type": stash})
    found = ours(data, x)[0]
    wanted = np.array([[1, -1, 1, -1]]) if stash else np.zeros((1, 4))
    np.testing.assert_allclose(found, wanted, atol=1e-2)


@pytest.mark.parametrize(("axis", "dims"), [(1, (2, 2)), (0, (1, 4))])
def test_blocks_that_the_scale_says(axis: int, dims: tuple[int, int]) -> None:
    x = (RNG.standard_normal((2, 4)) * 3).astype(np.float32)
    scale = RNG.uniform(0.2, 1, (2, 2)).astype(np.float32)
    if axis == 0:
        x, scale = x.T.copy(), scale.T.copy()
    told = model("QuantizeLinear", [x, scale], {"axis": axis, "block_size": 2}, opset=21)
    left_out = model("QuantizeLinear", [x, scale], {}, opset=21)
    np.testing.assert_array_equal(ours(left_out, x)[0], theirs(told, x)[0])


def test_a_scale_for_each_element() -> None:
    x, zero = RNG.standard_normal((2, 4)).astype(np.float32), np.zeros((2, 4), np.int8)
    scale = np.exp(RNG.standard_normal((2, 4))).astype(np.float32) / 20
    [y] = ours(model("QuantizeLinear", [x, scale, zero], {}, opset=21), x)
    assert np.array_equal(y, np.clip(np.rint(x / scale), -128, 127))


def test_pads_that_reflect_more_than_once() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for pads in ((2, 0, 0, 0), (0, 0, 0, 3)):
        with pytest.raises(ModelError, match="expected reflecting pads smaller than dim"):
            ours(model("Pad", [x, i64(*pads)], {"mode": "reflect"}), x)


def test_a_scale_for_each_column_of_the_left() -> None:
    x, w = RNG.integers(-9, 9, (4, 3)).astype(np.int8), U8[0, 0, :3, :2].copy()
    sx, sw = np.array([0.1, 0.2, 0.3], np.float32), np.array([0.5, 0.25], np.float32)
    zx, zw, bias = np.array([1, 2, 3], np.int8), np.array([4, 5], np.uint8), np.float32([1, 2])
    data = model("MatMulIntegerToFloat", [x, w, sx, sw, zx, zw, bias], {})
    wanted = ((x.astype(float) - zx) * sx) @ ((w.astype(float) - zw) * sw) + bias
    np.testing.assert_allclose(ours(data, x)[0], wanted, rtol=1e-5)


def test_rotary_positions_of_i32() -> None:
    caches = [RNG.standard_normal((9, 3)).astype(np.float32) for _ in range(2)]
    wanted = theirs(model("RotaryEmbedding", [X, i64(2), *caches], {}, domain=MS), X)
    first = np.array([2], np.int32)
    found = ours(model("RotaryEmbedding", [X, first, *caches], {}, domain=MS), X)
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-5)


def test_packed_attention_with_places_held() -> None:
    """Exporters of packed models fill the inputs key and value with one number."""
    heads, kv_heads, size, length = 4, 2, 16, 3
    packed = RNG.standard_normal((1, length, (heads + 2 * kv_heads) * size)).astype(np.float16)
    past = np.zeros((1, kv_heads, 5, size), np.float16)
    lengths, total = np.array([[length - 1]], np.int32), np.array(length, np.int32)
    caches = [RNG.standard_normal((5, size // 2)).astype(np.float16) for _ in range(2)]
    attributes = {"num_heads": heads, "kv_num_heads": kv_heads, "do_rotary": 1}

    def made(place: np.ndarray | None) -> bytes:
        operands = [packed, place, place, past, past, lengths.reshape(1), total, *caches]
        return model("GroupQueryAttention", operands, attributes, domain=MS, outputs=3)

    wanted = theirs(made(None), packed)
    for place in (np.zeros(1, np.float32), None):
        for a, b in zip(ours(made(place), packed), wanted, strict=True):
            np.testing.assert_allclose(a[:, :, :3], b[:, :, :3], atol=2e-2)


# ---- what ONNX does not list -------------------------------------------------------------------


def test_image_scaler() -> None:
    x = RNG.standard_normal((1, 3, 2, 2)).astype(np.float32)
    data = model("ImageScaler", [x], {"scale": 0.5, "bias": [0.1, 0.2, 0.3]}, opset=8)
    wanted = x * 0.5 + np.reshape([0.1, 0.2, 0.3], (3, 1, 1))
    np.testing.assert_allclose(ours(data, x)[0], wanted, rtol=1e-6, atol=1e-6)


def test_constant_fill() -> None:
    stated = model("ConstantFill", [], {"shape": [2, 3], "value": 1.5}, dynamic_inputs=0)
    np.testing.assert_array_equal(ours(stated)[0], np.full((2, 3), 1.5, np.float32))
    by_input = model(
        "ConstantFill", [i64(2, 1)], {"input_as_shape": 1, "dtype": LONG, "value": 3.0},
        dynamic_inputs=0,
    )  # fmt: skip
    assert (found := ours(by_input)[0]).tolist() == [[3], [3]]
    assert found.dtype == np.int64
    like = model("ConstantFill", [X], {"extra_shape": [2]})
    assert ours(like, X)[0].shape == (2, 4, 6, 2)
    with pytest.raises(ModelError, match="expected no negative dims"):
        migraphx.parse_onnx_buffer(model("ConstantFill", [], {"shape": [-2]}, dynamic_inputs=0))


@pytest.mark.parametrize(("mode", "reduce"), [(0, np.sum), (1, np.mean), (2, np.max)])
def test_embedding_bag(mode: int, reduce: Any) -> None:
    table = RNG.standard_normal((5, 2)).astype(np.float32)
    attributes = {"operator": "embedding_bag", "mode": mode}
    data = model("ATen", [table, i64(1, 0, 4), i64(0)], attributes, opset=11)
    np.testing.assert_allclose(ours(data, table)[0], reduce(table[[1, 0, 4]], 0)[None], rtol=1e-6)
    several = model("ATen", [table, i64(1, 0, 4), i64(0, 2)], attributes, opset=11)
    with pytest.raises(UnsupportedModel, match="more than one bag"):
        migraphx.parse_onnx_buffer(several)


def mx_scales(x: np.ndarray, axis: int) -> np.ndarray:
    """A power of two for each element: of its block of 32 along an axis."""
    out = np.empty_like(x)
    for begin in range(0, x.shape[axis], 32):
        place = [slice(None)] * x.ndim
        place[axis] = slice(begin, begin + 32)
        top = np.abs(x[tuple(place)]).max(axis, keepdims=True)
        out[tuple(place)] = 2.0 ** (np.floor(np.log2(top)) - 2)
    return out


@pytest.mark.parametrize(("dims", "axis"), [((3, 64, 2), 1), ((71, 5), 0), ((4, 4), -1)])
def test_blocks_of_4_bit_floats(dims: tuple[int, ...], axis: int) -> None:
    x = (RNG.standard_normal(dims) * 9).astype(np.float32)
    scale = mx_scales(x, axis % len(dims))
    wanted = (x / scale).astype(ml_dtypes.float4_e2m1fn).astype(np.float32) * scale
    attributes = {"axis": axis, "block_size": 32, "element_dtype": "fp4_e2m1", "rounding_mode": 2}
    np.testing.assert_array_equal(
        ours(model("MXQuantizeDequantize", [x], attributes), x)[0], wanted
    )
    data = model("DynamicScale", [x], {"group_dim": axis, "group_size": 32, "output_dtype": 23})
    found = ours(data, x)[0]
    ahead = np.take(scale, range(0, dims[axis], 32), axis)
    np.testing.assert_array_equal(found, ahead)


def test_a_block_of_zeros() -> None:
    x = np.zeros((2, 32), np.float32)
    for name in ("MXQuantizeDequantize", "MXFixNeuron"):  # two names of one
        assert not ours(model(name, [x], {"axis": 1}), x)[0].any()
