"""References of reductions, scans, softmax, topk and lrn against onnxruntime and formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.op import OPS
from tests.dialect.evaluation import infer
from tests.support.ops import evaluate
from tests.support.oracle import NotImplementedByOracle, run_node


def _mean(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    total = np.sum(x, axis=axis, keepdims=keepdims)
    return total / np.float64(x.size / total.size)


REDUCTIONS = {
    "reduce_sum": ("ReduceSum", np.sum), "reduce_mean": ("ReduceMean", _mean),
    "reduce_max": ("ReduceMax", np.max), "reduce_min": ("ReduceMin", np.min),
    "reduce_prod": ("ReduceProd", np.prod),
}  # fmt: skip


def _i64(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_reductions(name: str) -> None:
    onnx_op, wide = REDUCTIONS[name]
    seen: set[str] = set()
    for operands, attributes in OPS[name].examples():
        x, axes = operands[0], attributes.get("axes", ())
        if len(operands) > 1:
            axes = tuple(int(a) for a in operands[1])
        found = evaluate(name, *operands, **attributes)
        if x.dtype.kind in "iu" and name == "reduce_mean":
            total = np.sum(x.astype(np.int64), axis=axes or None, keepdims=True)
            count = max(x.size // total.size, 1)
            want = np.trunc(total / count).astype(x.dtype)
        elif x.dtype.kind in "iub" or (x.size == 0 and name != "reduce_mean"):
            try:
                want = run_node(onnx_op, x, _i64(axes), keepdims=1)
            except NotImplementedByOracle:
                continue
        else:
            with np.errstate(all="ignore"):
                want = wide(x.astype(np.float64), axis=tuple(axes) or None, keepdims=True)
        rtol = 1e-3 if x.dtype == np.float16 else 1e-6
        np.testing.assert_allclose(found.astype(float), want.astype(float), rtol=rtol, atol=1e-6)
        assert found.shape == want.shape
        seen.add(x.dtype.name)
    assert {"float32", "float16", "float64", "int32"} <= seen


def test_reductions_of_nothing() -> None:
    x = np.zeros((2, 0), np.float32)
    want = {"sum": 0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1}
    for name, value in want.items():
        found = evaluate(f"reduce_{name}", x, axes=[1])
        np.testing.assert_array_equal(found, np.full((2, 1), value, np.float32))
    ints = x.astype(np.int32)
    limits = np.iinfo(np.int32)
    for name, value in {**want, "mean": 0, "max": limits.min, "min": limits.max}.items():
        assert evaluate(f"reduce_{name}", ints, axes=[1]).tolist() == [[value], [value]]
    assert evaluate("reduce_all", x.astype(bool), axes=[1]).all()
    assert not evaluate("reduce_any", x.astype(bool), axes=[1]).any()


def test_reductions_of_nan_and_overflow() -> None:
    x = np.array([[1, np.nan, 3], [np.inf, 1, 2], [np.inf, -np.inf, 0]], np.float32)
    for name in REDUCTIONS:
        found = evaluate(name, x, axes=[1]).reshape(-1)
        assert np.isnan(found[0]), name
    assert evaluate("reduce_sum", x, axes=[1]).reshape(-1)[1] == np.inf
    assert np.isnan(evaluate("reduce_sum", x, axes=[1]).reshape(-1)[2])
    half = np.full(5000, 40, np.float16)  # the partial sums leave the range of f16
    assert evaluate("reduce_mean", half, axes=[0]).tolist() == [40]
    bytes_ = np.full(100, 100, np.int8)
    assert evaluate("reduce_mean", bytes_, axes=[0]).tolist() == [100]
    assert evaluate("reduce_sum", bytes_, axes=[0]).tolist() == [16]  # 10000 modulo 256
    assert evaluate("reduce_mean", np.array([-3, -4], np.int32), axes=[0]).tolist() == [-3]


def test_all_and_any() -> None:
    x = np.array([[1, 2, 0], [3, 4, 5], [0, 0, 0]], np.int32)
    for kind in (np.bool_, np.int32, np.uint8):
        found = evaluate("reduce_all", x.astype(kind), axes=[1])
        assert found.tolist() == [[0], [1], [0]]
        assert evaluate("reduce_any", x.astype(kind), axes=[1]).tolist() == [[1], [1], [0]]


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg_extremes(name: str) -> None:
    op = {"argmax": "ArgMax", "argmin": "ArgMin"}[name]
    count = 0
    for (x,), attributes in OPS[name].examples():
        if x.dtype.kind == "f" and np.isnan(x).any():
            continue
        given = {"axis": 0, "select_last_index": 0, **attributes}
        given["select_last_index"] = int(given["select_last_index"])
        np.testing.assert_array_equal(
            evaluate(name, x, **attributes), run_node(op, x, keepdims=1, **given)
        )
        count += 1
    assert count >= 10


def test_arg_extremes_of_nan() -> None:
    """NaN is the extreme of both, as in numpy; ties to the first or the last."""
    x = np.array([1, np.nan, 3, np.nan, 0], np.float32)
    for name in ("argmax", "argmin"):
        assert evaluate(name, x, axis=0).tolist() == [1]
        assert evaluate(name, x, axis=0, select_last_index=True).tolist() == [3]


def test_prefix_sum() -> None:
    seen = 0
    for (x,), attributes in OPS["prefix_scan_sum"].examples():
        found = evaluate("prefix_scan_sum", x, **attributes)
        try:
            want = run_node(
                "CumSum",
                x,
                _i64(attributes["axis"]),
                exclusive=int(attributes.get("exclusive", False)),
                reverse=int(attributes.get("reverse", False)),
            )
        except NotImplementedByOracle:
            want = np.cumsum(x.astype(np.float64), axis=attributes["axis"])
            if x.dtype.kind in "iu":
                want = want.astype(np.int64).astype(x.dtype)
        rtol = 2e-3 if x.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(found.astype(float), want.astype(float), rtol=rtol, atol=1e-5)
        seen += 1
    assert seen > 12
    empty = np.zeros((2, 0), np.float32)
    for exclusive in (False, True):
        assert evaluate("prefix_scan_sum", empty, axis=1, exclusive=exclusive).shape == (2, 0)


@pytest.mark.parametrize("name", ["softmax", "logsoftmax"])
def test_softmax(name: str) -> None:
    for (x,), attributes in OPS[name].examples():
        wide = x.astype(np.longdouble)
        axis = attributes["axis"]
        with np.errstate(all="ignore"):
            shifted = wide - np.max(wide, axis=axis, keepdims=True, initial=-np.inf)
            total = np.sum(np.exp(shifted), axis=axis, keepdims=True)
            want = np.exp(shifted) / total if name == "softmax" else shifted - np.log(total)
        found = evaluate(name, x, **attributes)
        rtol = {"float64": 1e-13, "float32": 1e-5}.get(x.dtype.name, 1e-2)
        np.testing.assert_allclose(
            found.astype(float), want.astype(float), rtol=rtol, atol=1e-6 if rtol > 1e-9 else 1e-14
        )
        if x.dtype == np.float32 and np.isfinite(x).all() and x.size:
            op = {"softmax": "Softmax", "logsoftmax": "LogSoftmax"}[name]
            np.testing.assert_allclose(found, run_node(op, x, axis=axis), rtol=1e-4, atol=1e-6)


def test_topk() -> None:
    seen = 0
    for operands, attributes in OPS["topk"].examples():
        if len(operands) > 1 or (operands[0].dtype.kind == "f" and np.isnan(operands[0]).any()):
            continue
        (x,) = operands
        if attributes["k"] == 0:
            continue
        values, indices = evaluate("topk", x, **attributes)
        axis, largest = attributes["axis"], int(attributes.get("largest", True))
        try:
            want = run_node(
                "TopK", x, _i64([attributes["k"]]), outputs=2, axis=axis, largest=largest, sorted=1
            )
        except NotImplementedByOracle:
            continue
        np.testing.assert_array_equal(values, want[0])
        np.testing.assert_array_equal(indices, want[1])
        seen += 1
    assert seen >= 12


def test_topk_of_nan_names_and_nothing() -> None:
    x = np.array([1, np.nan, -np.inf, np.inf, np.nan], np.float32)
    values, indices = evaluate("topk", x, k=5, axis=0)
    assert indices.tolist() == [1, 4, 3, 0, 2]
    values, indices = evaluate("topk", x, k=3, axis=0, largest=False)
    assert indices.tolist() == [2, 0, 3]
    assert values.tolist() == [-np.inf, 1, np.inf]
    values, indices = evaluate("topk", x[:3], np.array([7, 8, 9]), k=2, axis=0)
    assert indices.tolist() == [8, 7]
    assert [v.shape for v in evaluate("topk", x, k=0, axis=0)] == [(0,), (0,)]
    unsigned = np.array([3, 255, 0, 255], np.uint8)
    assert evaluate("topk", unsigned, k=4, axis=0)[1].tolist() == [1, 3, 0, 2]


def _lrn(x: np.ndarray, *, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    """ONNX's sum, element by element: onnxruntime takes odd sizes only."""
    out = np.empty_like(x)
    for at in np.ndindex(*x.shape):
        n, c, *rest = at
        low, high = max(0, c - (size - 1) // 2), min(x.shape[1] - 1, c + size // 2)
        total = sum(x[(n, i, *rest)] ** 2 for i in range(low, high + 1))
        out[at] = x[at] / (bias + alpha / size * total) ** beta
    return out


def test_lrn() -> None:
    for (x,), attributes in OPS["lrn"].examples():
        found = evaluate("lrn", x, **attributes)
        if attributes["size"] % 2:
            want = run_node("LRN", x.astype(np.float32), **attributes)
        else:
            want = _lrn(x.astype(np.float64), **attributes)
        rtol = 2e-3 if x.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(found.astype(float), want, rtol=rtol, atol=rtol)


def test_inference_with_dynamic_dims() -> None:
    assert infer("reduce_sum", "tensor<?x3x?xf32>", axes=[0]) == ["tensor<1x3x?xf32>"]
    assert infer("reduce_sum", "tensor<?x3xf32>", "tensor<1xi64>") == ["tensor<?x?xf32>"]
    assert infer("reduce_sum", "tensor<1x3xf32>", "tensor<?xi64>") == ["tensor<1x?xf32>"]
    assert infer("argmax", "tensor<?x?xf16>", axis=-1) == ["tensor<?x1xi64>"]
    assert infer("topk", "tensor<?x?xf32>", k=4, axis=1) == ["tensor<?x4xf32>", "tensor<?x4xi64>"]
    assert infer("add", "tensor<?x3xf32>", "tensor<2x?xf32>") == ["tensor<2x3xf32>"]
    assert infer("where", "tensor<?x3xi1>", "tensor<2x?xf16>", "tensor<?x?xf16>") == [
        "tensor<2x3xf16>"
    ]
    for name, types, attributes, message in (
        ("reduce_sum", ["tensor<2xf32>"], {"axes": [1]}, "axis (1) is out of range for rank 1"),
        ("reduce_sum", ["tensor<2xi1>"], {}, "expected a float or integer type, got i1"),
        ("argmax", ["tensor<2x0xf32>"], {"axis": 1}, "expected elements along axis 1, got none"),
        ("topk", ["tensor<3xf32>"], {"k": 4}, "k expected 0 to 3 of axis 0, got 4"),
        ("softmax", ["tensor<3xi32>"], {"axis": 0}, "expected a float type, got i32"),
        ("lrn", ["tensor<3xf32>"], {}, "expected channels at axis 1"),
    ):
        with pytest.raises(ShapeError, match=message.replace("(", r"\(").replace(")", r"\)")):
            infer(name, *types, **attributes)
