"""Reductions of many lanes, and of dynamic dims, which the compiler joins in ways of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import mgx_mlir
from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.op import OPS
from tests.emulator import operators
from tests.emulator.operators import ARCHS
from tests.lowering.harness import Case, as_dynamic

TYPES = (
    dtypes.FLOAT, dtypes.HALF, dtypes.BF16, dtypes.DOUBLE,
    dtypes.INT8, dtypes.UINT8, dtypes.INT32, dtypes.UINT32, dtypes.INT64, dtypes.UINT64,
)  # fmt: skip


def drawn(dims: tuple[int, ...], dtype: DType, low: int, high: int) -> np.ndarray:
    """Between two bounds: what is padded must be neutral for numbers of either sign."""
    rng = np.random.default_rng([low + 100, high + 100, dtype.number])
    if dtype.is_float:
        return rng.uniform(low, high, dims).astype(np.float32).astype(dtype.np)
    return rng.integers(low, high, dims).astype(dtype.np)


def cases(dtype: DType) -> Iterator[Case]:
    for low, high in ((1, 4), (-4, -1)):
        if low < 0 and dtype.is_unsigned:
            continue
        rows, columns = drawn((3, 700), dtype, low, high), drawn((700, 5), dtype, low, high)
        for how in ("max", "min", "sum", "mean"):
            for x, axes in ((rows, [1]), (columns, [0]), (rows, [0, 1])):
                yield Case(OPS[f"reduce_{how}"], (x,), {"axes": axes})
        names = ["argmax", "argmin", *(["softmax", "logsoftmax"] if dtype.is_float else [])]
        for name in names:
            yield Case(OPS[name], (rows,), {"axis": 1})


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("arch", ARCHS)
def test_long_reductions(arch: str, dtype: DType, library: Path) -> None:
    static = list(cases(dtype))
    found = static + [d for c in static if (d := as_dynamic(c))]
    operators.run(operators.compiled(found, arch), found).check()


@pytest.mark.parametrize("arch", ARCHS)
def test_long_reductions_of_integers(arch: str, library: Path) -> None:
    """A few of them, in CI, along dynamic dims: what is neutral for them is not that of others."""
    own = [c for c in cases(dtypes.INT32) if c.cls.mnemonic in ("reduce_max", "reduce_min")]
    found = [d for c in own if (d := as_dynamic(c))]
    operators.run(operators.compiled(found, arch), found).check()


EXTREMES = """<ir_version: 9, opset_import: ["" : 20]>
g (TYPE[N,M] x) => (TYPE[1,1] a, TYPE[1,1] b, TYPE[N,1] c, TYPE[1,M] d)
<int64[1] first = {0}, int64[1] last = {1}>
{ a = ReduceMin(x)  b = ReduceMax(x)  c = ReduceMin(x, last)  d = ReduceMax(x, first) }"""


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", ["int64", "uint64", "double"])
def test_dynamic_extremes_of_64_bits(kind: str, arch: str, library: Path) -> None:
    """Elements lie on one side of the value that IREE starts with (hazard 42)."""
    model = onnx.parser.parse_model(EXTREMES.replace("TYPE", kind)).SerializeToString()
    program: Any = mgx_mlir.compile(model, "gpu", arch=arch, emulate=True)
    rng, to = np.random.default_rng(4), np.float64 if kind == "double" else np.dtype(kind)
    for dims in ((1, 1), (3, 2), (70, 130)):
        for start in (3, 2**63 + 3 if kind == "uint64" else -90):
            x = rng.integers(0, 80, dims).astype(to) + np.asarray(start, to)
            want = [x.min(keepdims=True), x.max(keepdims=True),
                    x.min(1, keepdims=True), x.max(0, keepdims=True)]  # fmt: skip
            for got, expected in zip(program.run([x]), want, strict=True):
                np.testing.assert_array_equal(got, expected)


SOFTMAX = """<ir_version: 9, opset_import: ["" : 20]>
g (float[N,M] x) => (float[N,M] y, float[N,M] z) { y = Softmax<axis=0>(x)  z = Softmax(x) }"""


@pytest.mark.parametrize("arch", ARCHS)
def test_softmax_along_a_dynamic_leading_axis(arch: str, library: Path) -> None:
    model = onnx.parser.parse_model(SOFTMAX).SerializeToString()
    program: Any = mgx_mlir.compile(model, "gpu", arch=arch, emulate=True)
    rng = np.random.default_rng(5)
    for dims in ((1, 1), (3, 2), (0, 2), (67, 33)):
        x = rng.standard_normal(dims).astype(np.float32) * 9
        for axis, got in enumerate(program.run([x])):
            most = x.max(axis, keepdims=True, initial=-np.inf)
            powers = np.exp(x.astype(np.float64) - most)
            want = powers / powers.sum(axis, keepdims=True)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


ODD_ROWS = """<ir_version: 9, opset_import: ["" : 20]>
g (float16[N,5] x, float16[N,2,7,7] w, float16[5,1] u, float16[N,7,M] v, float[N,8] p,
   float[8,5] y)
=> (float16[N,1] a, float16[N,5] b, float16[N,2,1,1] c, float16[N,1] d, float16[N,1] e,
    float16[N,7,M] f, float16[N,5] g)
<int64[1] last = {1}, int64[1] one = {1}, int64[1] two = {2}>
{ a = ReduceSum(x, last)  b = Softmax(x)  c = GlobalAveragePool(w)  d = ReduceL2(x, last)
  e = MatMul(x, u)  image = Slice(w, one, two, one)  square = Squeeze(image, one)
  f = MatMul(square, v)  h = MatMul(p, y)  g = Cast<to=10>(h) }"""


@pytest.mark.parametrize("arch", ARCHS)
def test_rows_of_five_and_seven_in_f16(arch: str, library: Path) -> None:
    """LLVM crashes where it reads such rows as f32, or rounds f32 results of a dot to them
    (hazard 44)."""
    model = onnx.parser.parse_model(ODD_ROWS).SerializeToString()
    program: Any = mgx_mlir.compile(model, "gpu", arch=arch, emulate=True)
    rng = np.random.default_rng(6)
    for rows in (1, 3, 66):
        dims = ((rows, 5), (rows, 2, 7, 7), (5, 1), (rows, 7, 4))
        x, w, u, v = (rng.standard_normal(d).astype(np.float16) for d in dims)
        p, y = (rng.standard_normal(d).astype(np.float32) for d in ((rows, 8), (8, 5)))
        wide = x.astype(np.float64)
        powers = np.exp(wide)
        want = [wide.sum(1, keepdims=True), powers / powers.sum(1, keepdims=True),
                w.astype(np.float64).mean((2, 3), keepdims=True),
                np.sqrt((wide**2).sum(1, keepdims=True)), wide @ u,
                w[:, 1].astype(np.float64) @ v, p @ y]  # fmt: skip
        for got, expected in zip(program.run([x, w, u, v, p, y]), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)
