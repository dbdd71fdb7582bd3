"""Reductions through logarithms of integers: in f64, cut to the type at the end."""

from __future__ import annotations

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
