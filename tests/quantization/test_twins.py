"""Errors of matmuls in smaller types, against numpy in f64; skipped ones, and reasons."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import mgx_mlir as migraphx
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import UsageError
from mgx_mlir.quantization.quantize import prepared
from mgx_mlir.quantization.sensitivity import Narrow, Sensitivity, sensitivities
from mgx_mlir.quantization.sites import left_out, sites
from mgx_mlir.quantization.twins import in_floats, in_int4, left_out_of_int4

RNG = np.random.default_rng(3)
REF = migraphx.get_target("ref")
X = RNG.standard_normal((6, 64)).astype(np.float32)
W = (RNG.standard_normal((64, 10)) * np.exp2(RNG.integers(-4, 4, 10))).astype(np.float32)
ODD = RNG.standard_normal((10, 5)).astype(np.float32)
BODY = "h = MatMul(x,w) r = Relu(h) y = MatMul(r,v) t = Transpose<perm=[1,0]>(r) z = MatMul(t,r)"


def program() -> migraphx.program:
    shapes = "(float[6,64] x) => (float[6,5] y, float[10,10] z)"
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g {shapes} {{ {BODY} }}'
    )
    held: dict[str, np.ndarray] = {"w": W, "v": ODD}
    made.graph.initializer.extend(numpy_helper.from_array(a, k) for k, a in held.items())
    return migraphx.parse_onnx_buffer(made.SerializeToString())


def figures(want: np.ndarray, got: np.ndarray) -> tuple[float, float]:
    """The ratio of signal to noise in decibels and the cosine, in f64."""
    a, b = want.astype(np.float64), got.astype(np.float64)
    cosine = (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())
    return float(10 * np.log10((a**2).sum() / ((a - b) ** 2).sum())), float(cosine)


def in_groups(w: np.ndarray, group: int) -> np.ndarray:
    """Weights at 16 levels between the least and the greatest of each group of a column."""
    parts = w.astype(np.float64).reshape(-1, group, w.shape[1])
    low = np.minimum(parts.min(1, keepdims=True), 0)
    step = (np.maximum(parts.max(1, keepdims=True), 0) - low) / 15
    zero = np.rint(-low / step)
    codes = np.clip(np.rint(parts / step) + zero, 0, 15)
    return ((codes - zero) * step).reshape(w.shape)


def first(narrow: Narrow) -> Sensitivity:
    base = prepared(program().program_ir)
    found = sensitivities(base, sites(base)[:1], narrow, [{"x": X}], "ref")
    assert [s.name for s in found] == ["MatMul_0"]
    return found[0]


@pytest.mark.parametrize(
    ("dtype", "own"), [(dtypes.HALF, np.float16), (dtypes.BF16, ml_dtypes.bfloat16)]
)
def test_16_bits(dtype: dtypes.DType, own: type) -> None:
    x, w = (a.astype(own).astype(np.float64) for a in (X, W))
    want = figures(X.astype(np.float64) @ W, (x @ w).astype(np.float32).astype(own))
    got = first(in_floats(dtype))
    assert abs(got.sqnr - want[0]) < 1.0  # sums of 16 bits are rounded in one order or another
    assert abs(got.cosine - want[1]) < 1e-4


@pytest.mark.parametrize("group", [16, 32, 64])
def test_4_bits(group: int) -> None:
    want = figures(X.astype(np.float64) @ W, X.astype(np.float64) @ in_groups(W, group))
    got = first(in_int4(group))
    assert abs(got.sqnr - want[0]) < 0.1  # steps are rounded to f16
    assert abs(got.cosine - want[1]) < 1e-4


def test_a_type_that_overflows() -> None:
    """Sums beyond f16's largest number are the worst loss, not an error."""
    base = prepared(program().program_ir)
    given = [{"x": X * np.float32(3e4)}]
    found = sensitivities(base, sites(base)[:1], in_floats(dtypes.HALF), given, "ref")
    assert (found[0].sqnr, found[0].cosine) == (-np.inf, 0.0)


def test_8_bits_with_bias_correction() -> None:
    """The figures are of the product with its correction."""
    data = [{"x": X + 4}]
    plain, corrected = (
        migraphx.quantize_int8(
            program(), REF, data, ["dot"], bias_correction=b, sensitivity=True, method="minmax"
        ).sensitivities[0]
        for b in (False, True)
    )
    scale = np.abs(X + 4).max() / 127
    x = np.rint((X + 4).astype(np.float64) / scale) * scale
    steps = np.abs(W).max(0) / 127
    w = np.rint(W / steps) * steps
    want = (X + 4).astype(np.float64) @ W
    shift = (X + 4).astype(np.float64).mean(0) @ (w - W)
    assert abs(plain.sqnr - figures(want, x @ w)[0]) < 0.03
    assert abs(corrected.sqnr - figures(want, x @ w - shift)[0]) < 0.03
    assert abs(corrected.sqnr - plain.sqnr) > 0.1


def test_samples_to_judge_on() -> None:
    """Without calibration data errors and sensitivities are of the samples that are given."""
    found = migraphx.quantize_int8(
        program(), REF, evaluate=iter([{"x": X}] * 3), sensitivity=True, max_error=1e-9
    )
    assert sorted(found.kept) == sorted(s.name for s in found.sensitivities)
    assert found.error == 0
    with pytest.raises(UsageError, match="the evaluation data has no sample"):
        migraphx.quantize_int8(program(), REF, evaluate=iter([]), sensitivity=True)
    with pytest.raises(UsageError, match="a report of sensitivity need calibration data"):
        migraphx.quantize_int8(program(), REF, sensitivity=True)


def test_what_is_left_out() -> None:
    found = migraphx.quantize_int8(program(), REF, [{"x": X}])
    why = "both operands are computed, as in attention, which stays one kernel"
    assert [(s.name, s.kind, s.why) for s in found.left_out] == [("MatMul_4", "dot", why)]
    base = prepared(program().program_ir)
    assert left_out(base, computed_operands=True) == []
    others = left_out(base, ["convolution"], computed_operands=True)
    assert [s.name for s in others] == ["MatMul_0", "MatMul_2", "MatMul_4"]
    assert {s.why for s in others} == {"only convolution were asked for"}
    four = left_out_of_int4(sites(base, computed_operands=True))
    assert [(s.name, s.why) for s in four] == [
        ("MatMul_2", "the last extent of its weights is odd, and two share a byte"),
        ("MatMul_4", "its second operand is computed"),
    ]
