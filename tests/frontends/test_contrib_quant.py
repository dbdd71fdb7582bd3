"""com.microsoft: 8-bit operators, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_cases import Case, Draws, check

from tests.support.draws import seeds


def scale(g: Draws, low: float = 0.01) -> np.ndarray:
    return np.asarray(low + 0.05 * g.np.random(), np.float32)


def part(g: Draws, kind: Any, *dims: int, zero: bool = True) -> list[np.ndarray | None]:
    """A tensor, its scale and its zero point."""
    return [g.bytes(*dims, dtype=kind), scale(g), g.bytes(dtype=kind) if zero else None]


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_pointwise(kind: Any) -> None:
    g, cases = Draws(1), []

    def add(name: str, inputs: list[Any], a: dict[str, Any] | None = None, **more: Any) -> None:
        cases.append(Case(name, inputs, a or {}, off_by_one=True, **more))

    for _ in range(2):
        dims = (g.size(1, 3), g.size(2, 4), g.size(2, 5))
        zero = g.coin(0.7)
        x, y = part(g, kind, *dims, zero=zero), part(g, kind, *dims[1:], zero=zero)
        out = [scale(g, 0.03), g.bytes(dtype=kind)]
        add("QLinearAdd", [*x, *y, *out])
        add("QLinearMul", [*x, *y, *out])
        add("QLinearSigmoid", [*x, np.float32(1 / 256), out[1]], constants=[1, 2, 3, 4])
        add("QLinearLeakyRelu", [*x, *out], {"alpha": 0.2}, constants=[1, 2, 3, 4])
        axis = g.pick(-1, 1, 0)
        last = {"axis": axis, "opset": g.pick(11, 13)}
        zero_out = np.asarray(0 if kind is np.uint8 else -128, kind)
        add("QLinearSoftmax", [*x, np.float32(1 / 256), zero_out], last)
        add("QLinearSoftmax", [*x, np.float32(1 / 256), zero_out], last, dynamic=(0,))
        condition = g.np.random(dims) < 0.5
        full = part(g, kind, *dims)
        other = part(g, kind, *dims)
        add("QLinearWhere", [condition, *full, *other, *out], constants=[2, 3, 5, 6, 7, 8])
        axis = g.size(-3, 2)
        pieces: list[Any] = []
        for _ in range(3):
            d = list(dims)
            d[axis] = g.size(1, 3)
            pieces += part(g, kind, *d)
        add("QLinearConcat", [*out, *pieces], {"axis": axis})
    check(cases)


def rounded(x: np.ndarray, s: np.ndarray, z: np.ndarray) -> np.ndarray:
    info = np.iinfo(z.dtype)
    return np.clip(np.rint(x / s) + z, info.min, info.max).astype(z.dtype)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_windows(kind: Any) -> None:
    g, cases = Draws(2), []
    for _ in range(4):
        last = int(g.coin())
        n, c, h, w = g.size(1, 2), g.size(1, 3), g.size(4, 7), g.size(4, 7)
        dims = (n, h, w, c) if last else (n, c, h, w)
        x = part(g, kind, *dims)
        out = [scale(g), g.bytes(dtype=kind)]
        a: dict[str, Any] = {
            "kernel_shape": [g.size(1, 3), 2],
            "strides": [g.size(1, 2), 1],
            "channels_last": last,
            "count_include_pad": int(g.coin()),
            "pads": [0, 1, 0, g.size(0, 1)],
        }
        cases.append(Case("QLinearAveragePool", [*x, *out], a, off_by_one=True))
        a = {"channels_last": last}
        cases.append(Case("QLinearGlobalAveragePool", [*x, *out], a, off_by_one=True))

        def mean(x, s, z, t, y, axes, keepdims):
            real = (x.astype(np.float64) - z) * s
            return rounded(real.mean(tuple(axes), keepdims=bool(keepdims)), t, y)

        a = {"axes": [1, 3], "keepdims": int(g.coin())}
        cases.append(Case("QLinearReduceMean", [*x, *out], a, want=mean, off_by_one=True))
        a = {"axes": [0, -1], "keepdims": int(g.coin())}

        def total(x, axes, keepdims):
            return x.sum(tuple(axes), dtype=np.int32, keepdims=bool(keepdims))

        cases.append(Case("ReduceSumInteger", [x[0]], a, want=total))
        weights = part(g, np.int8 if kind is np.int8 else np.uint8, 2, c, 2, 3)
        a = {"kernel_shape": [2, 3], "channels_last": last, "pads": [1, 0, 0, 1]}
        given = [*x, *weights, np.float32(c * 0.5), out[1], g.ints(-500, 500, 2)]
        cases.append(Case("QLinearConv", given, a, off_by_one=True, constants=range(1, 9)))
        b = part(g, kind, *dims)

        def product(x, xz, y, yz):
            return (x.astype(np.int32) - xz) * (y.astype(np.int32) - yz)

        cases.append(Case("MulInteger", [x[0], x[2], b[0], b[2]], want=product))
    check(cases)


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_products(seed: int) -> None:
    g, cases = Draws(10 + seed), []
    for _ in range(5):
        m, k, n = g.size(1, 5), g.size(1, 9), g.size(1, 6)
        left, right = g.pick(np.uint8, np.int8), g.pick(np.uint8, np.int8)
        left = np.uint8 if right is np.uint8 else left  # onnxruntime has only this pair
        columns = g.coin()
        of = (n,) if columns else ()
        w = g.bytes(k, n, dtype=right)
        w_scale = np.asarray(0.01 + 0.05 * g.np.random(of), np.float32)
        w_zero = np.asarray(g.bytes(*of, dtype=right))
        x = g.bytes(2, m, k, dtype=left)
        tail = [w_zero, g.pick(None, g.floats(n))]
        given = [x, w, scale(g), w_scale, g.bytes(dtype=left), *tail]
        cases.append(Case("MatMulIntegerToFloat", given))
        cases.append(Case("MatMulIntegerToFloat", [x, w, scale(g), w_scale]))
        real = g.floats(2, m, k)
        fixed = [1, 2, 3]
        cases.append(Case("DynamicQuantizeMatMul", [real, w, w_scale, *tail], constants=fixed))
        cases.append(Case("DynamicQuantizeMatMul", [real, w, w_scale]))
        a: dict[str, Any] = {"transA": int(g.coin()), "transB": int(g.coin())}
        a["alpha"] = g.pick(1.0, 0.5)
        rows = g.bytes(*((k, m) if a["transA"] else (m, k)), dtype=left)
        matrix = w.T.copy() if a["transB"] else w
        given = [rows, scale(g), g.bytes(dtype=left), matrix, w_scale, w_zero]
        c = g.pick(None, g.ints(-900, 900, n), g.ints(-900, 900, m, n))
        cases.append(Case("QGemm", [*given, c], a))
        out = [np.float32(1.5), g.bytes(dtype=left)]
        cases.append(Case("QGemm", [*given, c, *out], a, off_by_one=True))
        short = g.ints(-300, 300, 2, m, k, dtype=np.int16), g.ints(-300, 300, k, n, dtype=np.int16)
        cases.append(Case("MatMulInteger16", short))
    check(cases)


def test_attention() -> None:
    g, cases = Draws(3), []
    for _ in range(5):
        batch, rows, count, size = g.size(1, 2), g.size(1, 4), g.size(1, 3), g.size(1, 4)
        hidden = count * size
        kind = g.pick(np.uint8, np.int8)
        of = (3 * hidden,) if g.coin() else ()
        w_scale = np.asarray(0.005 + 0.01 * g.np.random(of), np.float32)
        w_zero = g.bytes(*of, dtype=kind)
        past = g.pick(None, g.floats(2, batch, count, 2, size))
        a: dict[str, Any] = {"num_heads": count, "unidirectional": int(g.coin())}
        if past is not None:
            a["unidirectional"] = 1
        keys = rows + (0 if past is None else 2)
        mask = g.pick(None, np.full(batch, keys, np.int32))
        given = [g.bytes(batch, rows, 6, dtype=np.uint8), g.bytes(6, 3 * hidden, dtype=kind)]
        given += [g.floats(3 * hidden), np.float32(0.01), w_scale, mask]
        given += [g.bytes(dtype=np.uint8), w_zero, past]
        fixed = [1, 3, 4, 6, 7]
        outputs = 1 if past is None else 2
        cases.append(Case("QAttention", given, a, outputs, constants=fixed, tol=3e-5))
    check(cases)


def test_conversions() -> None:
    g, cases = Draws(4), []
    for kind in (np.uint8, np.int8, np.uint16, np.int16):
        x = g.floats(3, 4, 5, scale=3)
        for axis in (None, 1, -1):
            of = () if axis is None else (x.shape[axis],)
            s = np.asarray(0.02 + 0.02 * g.np.random(of), np.float32)
            z = g.ints(0, 9, *of, dtype=kind)
            a = {} if axis is None else {"axis": axis}
            cases.append(Case("QuantizeLinear", [x, s, z], a, off_by_one=True))
            codes = g.bytes(*x.shape, dtype=kind)
            cases.append(Case("DequantizeLinear", [codes, s, z], a))
    cases.append(Case("QuantizeLinear", [x, np.float32(0.03)], off_by_one=True))
    wide = g.ints(-9999, 9999, 3, 4)
    cases.append(Case("DequantizeLinear", [wide, np.float32(0.03)]))
    one = [g.ints(-9, 9, 1), np.array([0.5], np.float32), np.int32(0)]
    cases.append(Case("DequantizeLinear", one, {"axis": 1}))  # one scale: the axis says nothing
    check(cases)
