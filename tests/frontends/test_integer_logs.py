"""Reductions and powers through logarithms of integers: in f64, cut to the type at the end."""

from __future__ import annotations

import math

import numpy as np
import onnx.parser
import pytest

import mgx_mlir

X = np.array([[1, 2, 4], [5, 3, 20], [3, 3, 2]])
WANTED = {
    "ReduceLogSum": np.log(X.sum(1)),
    "ReduceLogSumExp": np.log(np.exp(X.astype(float)).sum(1)),
}


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("op", WANTED)
def test_of_integers(op: str, target: str) -> None:
    kinds = ("int32", "int64", "uint32", "uint64")
    given = ", ".join(f"{k}[3, 3] {k}_x" for k in kinds)
    made = ", ".join(f"{k}[3] {k}_y" for k in kinds)
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g ({given}) => ({made})
      <int64[1] one = {{1}}> {{
      {" ".join(f"{k}_y = {op} <keepdims = 0> ({k}_x, one)" for k in kinds)}
    }}"""
    data = onnx.parser.parse_model(text).SerializeToString()
    program = mgx_mlir.compile(data, target, cache=False)
    for got in program.run({f"{k}_x": X.astype(k) for k in kinds}):
        np.testing.assert_array_equal(got, np.trunc(WANTED[op]))


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_powers_of_whole_numbers_are_whole(target: str) -> None:
    """exp(5 log 20) is just below 3,200,000."""
    text = """<ir_version: 8, opset_import: ["" : 18]> g (int32[a] x, int64[a] z, float[a] y) =>
      (int32[a] p, int64[a] q) { p = Pow(x, y) q = Pow(z, y) }"""
    program = mgx_mlir.compile(onnx.parser.parse_model(text).SerializeToString(), target)
    cases = [(x, n, x**n) for x in range(-12, 25) for n in range(7)]
    cases += [(x, n + 0.5, math.isqrt(x ** (2 * n + 1))) for x in range(25) for n in range(7)]
    x, y, want = (np.array(v) for v in zip(*(c for c in cases if abs(c[2]) < 2**31), strict=True))
    feeds = {"x": x.astype(np.int32), "z": x.astype(np.int64), "y": y.astype(np.float32)}
    for got in program.run(feeds):
        np.testing.assert_array_equal(got, want)
