"""References of quantised and packed operators against onnxruntime and formulas."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.op import OPS
from tests.dialect.evaluation import infer
from tests.support.ops import evaluate
from tests.support.oracle import run_node


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16])
def test_quantizelinear(kind: type) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.normal(0, 60, 500), np.arange(-8, 8) / 2, [np.inf, -np.inf, 1e30]]
    ).astype(np.float32)
    scale, zero = np.float32(0.25), kind(3)
    want = run_node("QuantizeLinear", x, np.array(scale), np.array(zero))
    scales, zeros = np.full_like(x, scale), np.full(x.shape, zero, kind)
    np.testing.assert_array_equal(evaluate("quantizelinear", x, scales, zeros), want)
    np.testing.assert_array_equal(
        evaluate("quantizelinear", x, scales, zeros, out_type=dtypes.from_numpy(kind)), want
    )
    back = run_node("DequantizeLinear", want, np.array(scale), np.array(zero))
    np.testing.assert_array_equal(evaluate("dequantizelinear", want, scales, zeros), back)


def test_quantize_defaults_and_f8() -> None:
    x = np.array([-1, 0.5, 1.5, 2.5, 300, np.nan], np.float32)
    one = np.ones_like(x)
    assert evaluate("quantizelinear", x, one).tolist() == [0, 0, 2, 2, 255, 0]
    f8 = evaluate("quantizelinear", x * 2, one, out_type=dtypes.FP8E4M3FN)
    assert f8.dtype == ml_dtypes.float8_e4m3fn
    np.testing.assert_array_equal(f8.astype(float), [-2, 1, 3, 5, 448, np.nan])
    half = evaluate("dequantizelinear", f8[:4], np.full(4, 0.5, np.float16))
    assert half.dtype == np.float16
    assert half.tolist() == [-1, 0.5, 1.5, 2.5]


def test_pack_and_unpack_int4() -> None:
    for kind, low in ((np.int8, -8), (np.uint8, 0)):
        pairs = np.array(list(itertools.product(range(low, low + 16), repeat=2)), kind)
        packed = evaluate("pack_int4", pairs)
        assert packed.dtype == kind
        assert packed.shape == (256, 1)
        want = [((b & 15) << 4) | (a & 15) for a, b in pairs.tolist()]
        assert packed.view(np.uint8).reshape(-1).tolist() == want
        np.testing.assert_array_equal(evaluate("unpack_int4", packed), pairs)
        columns = np.ascontiguousarray(pairs.T)
        np.testing.assert_array_equal(
            evaluate("unpack_int4", evaluate("pack_int4", columns, axis=0), axis=0), columns
        )
    for values, kind, want in (([100, -100], np.int8, [7, -8]), ([100, 3], np.uint8, [15, 3])):
        packed = evaluate("pack_int4", np.array(values, kind))
        assert evaluate("unpack_int4", packed).tolist() == want


def test_pack_and_unpack_fp4() -> None:
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    x = np.linspace(-7, 7, 1402).astype(np.float32)
    found = evaluate("unpack_fp4", evaluate("pack_fp4", x)).astype(float)
    grid = np.concatenate([-values, values])
    nearest = np.abs(x[:, None] - grid[None]).min(axis=1)
    np.testing.assert_array_equal(np.abs(x - found), nearest.astype(np.float32))
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, np.inf, np.nan, -5], np.float32)
    assert evaluate("unpack_fp4", evaluate("pack_fp4", ties)).astype(float).tolist() == [
        0, 1, 1, 2, 2, 4, 4, 6, 0, -4,
    ]  # fmt: skip
    assert infer("pack_fp4", "tensor<?x4xf16>") == ["tensor<?x2xui8>"]
    assert infer("unpack_fp4", "tensor<?xui8>", axis=0) == ["tensor<?xf8E4M3FN>"]


def test_quant_dot() -> None:
    for operands, _ in OPS["quant_dot"].examples():
        a, b = operands[:2]
        found = evaluate("quant_dot", *operands)
        if a.dtype.kind in "iu":
            # exact: onnxruntime's products of u8 and i8 saturate on processors without VNNI
            want = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
            assert found.dtype == np.int32
        else:
            wide = [v.astype(np.float64) for v in (a, b)]
            if len(operands) > 2:
                wide = [v * s for v, s in zip(wide, operands[2], strict=True)]
            want = wide[0] @ wide[1]
            assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_quant_convolution() -> None:
    for operands, attributes in OPS["quant_convolution"].examples():
        x, w = operands[:2]
        ahead = [(0, 0), *((p, p) for p in attributes.get("padding", [0, 0]))]
        ahead.insert(3 if attributes.get("channels_last") else 0, (0, 0))
        given = {
            "strides": list(attributes.get("stride", [1, 1])),
            "group": attributes.get("group", 1),
        }
        found = evaluate("quant_convolution", *operands, **attributes)
        wide = [v.astype(np.float32) for v in (x, w)]
        if len(operands) > 2:
            wide = [v * s for v, s in zip(wide, operands[2], strict=True)]
        wide[0] = np.pad(wide[0], ahead, constant_values=attributes.get("pad_value", 0))
        if attributes.get("channels_last"):
            wide = [wide[0].transpose(0, 3, 1, 2), wide[1].transpose(3, 2, 0, 1)]
        want = run_node("Conv", *wide, **given)
        if attributes.get("channels_last"):
            want = want.transpose(0, 2, 3, 1)
        assert found.dtype == (np.int32 if x.dtype.kind in "iu" else np.float32)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)


def test_errors() -> None:
    f32, i8 = "tensor<4xf32>", "tensor<4xi8>"
    for name, types, attributes, message in (
        ("quantizelinear", [f32, "tensor<4xf16>"], {}, "scale expected the input's type f32"),
        ("quantizelinear", [f32, f32, i8], {"out_type": "uint8"}, "zero_point expected type ui8"),
        ("quantizelinear", [f32, f32, "tensor<4xf8E5M2>"], {}, "requires attribute 'out_type'"),
        ("quantizelinear", [f32, f32], {"out_type": "half"}, "out_type expected an integer or f8"),
        ("dequantizelinear", [i8, f32, "tensor<4xui8>"], {}, "zero_point expected the input's"),
        ("pack_int4", ["tensor<3xi8>"], {}, "expected an even extent along axis 0, got 3"),
        ("pack_int4", ["tensor<4xi32>"], {}, "expected i8 or ui8, got i32"),
        ("quant_dot", ["tensor<2x3xi8>", "tensor<3x2xf32>"], {}, "expected operands of one type"),
        ("quant_dot", ["tensor<2x3xf32>", "tensor<3x2xf32>"], {}, "got f32"),
    ):
        with pytest.raises(ShapeError, match=message):
            infer(name, *types, **attributes)
