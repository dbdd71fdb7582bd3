"""com.microsoft: activations, biases and fused products, against onnxruntime."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from contrib_cases import Case, Draws, check, expected

from mgx_mlir.core.errors import MgxError
from tests.support.draws import seeds

_erf = np.vectorize(math.erf)


def gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + _erf(x / np.sqrt(2)))


def f64(*xs: np.ndarray) -> list[np.ndarray]:
    return [np.asarray(x, np.float64) for x in xs]


def test_activations() -> None:
    g, cases = Draws(1), []
    for _ in range(3):
        dims = (g.size(1, 3), g.size(1, 5), g.size(1, 20))
        x, bias = g.floats(*dims, scale=2), g.floats(dims[-1])
        cases += [
            Case("Gelu", [x]),
            Case("BiasGelu", [x, bias]),
            Case("FastGelu", [x, bias]),
            Case("FastGelu", [x]),
            Case("QuickGelu", [x], {"alpha": g.pick(1.0, 1.702, -0.5)}),
            Case("ScaledSiLU", [x], {"alpha": 0.7}),
            Case("ScaledSiLU", [x, g.floats()]),
            Case("GatedAdd", [x, g.floats(*dims), g.floats(*dims[:-1], 1)]),
            Case("ScaledSiLU", [x.astype(np.float16)], {"alpha": 0.7}),
        ]
    check(cases)


def swiglu(gate, up=None, *, activation_alpha=1.0, activation_beta=0.0, limit=0.0, **_):
    """In f64; onnxruntime has it for GPUs alone."""
    gate, up = f64(*(np.split(gate, 2, -1) if up is None else (gate, up)))
    if limit > 0:
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return gate / (1 + np.exp(-activation_alpha * gate)) * (up + activation_beta)


def test_swiglu() -> None:
    g = Draws(2)
    form = {"activation_alpha": 1.702, "activation_beta": 1.0, "limit": 0.8}

    def router(x, w, router_size, **how):
        y = np.asarray(x, np.float64) @ w
        return y[..., :router_size], swiglu(y[..., router_size:], **how)

    cases = [
        Case("SwiGLU", [g.floats(2, 6), g.floats(2, 6)], want=swiglu),
        Case("SwiGLU", [g.floats(2, 3, 6)], form, want=swiglu),
        Case("SwiGLU", [g.floats(2, 6, dtype=np.float16)], form, want=swiglu),
        Case("SwiGLU", [g.floats(2, 6, dtype=np.float16)], {"round_activation": 1}, want=swiglu),
        Case("RouterGateUpProj", [g.floats(2, 3, 4), g.floats(4, 9)], {"router_size": 3, **form},
             outputs=2, want=router),
    ]  # fmt: skip
    check(cases, target="ref")
    check(cases)


def test_a_projected_gate() -> None:
    """onnxruntime has it for GPUs, in bf16 alone: every step is rounded."""
    g, kind = Draws(3), ml_dtypes.bfloat16

    def want(x, y, gate, weight):
        product = (gate.astype(np.float32) @ weight.astype(np.float32)).astype(kind)
        s = (1 / (1 + np.exp(-product.astype(np.float32)))).astype(kind)
        part = (y.astype(np.float32) * s.astype(np.float32)).astype(kind)
        return (x.astype(np.float32) + part.astype(np.float32)).astype(kind)

    dims = ((2, 3, 4), (2, 3, 4), (2, 3, 8), (8, 1))
    given = [g.floats(*d, dtype=kind) for d in dims]
    check([Case("GatedAdd", given, want=want)])
    with pytest.raises(MgxError, match="gate_weight with float_type"):
        check([Case("GatedAdd", [g.floats(*d) for d in dims], want=lambda *_: [])])


def test_without_a_kernel_in_onnxruntime() -> None:
    g, cases = Draws(2), []
    x, bias, skip = g.floats(2, 3, 8), g.floats(8), g.floats(2, 3, 8)
    cases.append(Case("BiasAdd", [x, bias, skip], want=lambda x, y, z: x + y + z))
    cases.append(
        Case(
            "BiasSplitGelu",
            [x, bias],
            want=lambda x, y: (x + y)[..., :4] * gelu((x + y)[..., 4:].astype(np.float64)),
        )
    )

    def summed(x, y, z=None, *rest, **a):
        total = x + y if z is None else x + y + z
        return total, np.ones(x.shape, bool)

    cases.append(Case("BiasDropout", [x, bias, skip], outputs=2, want=summed))
    cases.append(Case("BiasDropout", [x, bias], outputs=1, want=lambda x, y: x + y))
    half, off = np.float32(0.5), np.bool_(False)
    given = [x, bias, skip, np.array(half), np.array(off)]
    cases.append(Case("BiasDropout", given, constants=[4], outputs=2, want=summed))

    def bits(x, y, z=None, **a):
        return summed(x, y, z)[0], np.full(-(-x.size // 32), 2**32 - 1, np.uint32)

    cases.append(Case("BitmaskBiasDropout", [x, bias, skip], outputs=2, want=bits))
    ones = np.full(2, 2**32 - 1, np.uint32)
    cases.append(Case("BitmaskDropout", [x], outputs=2, want=lambda x: (x, ones)))
    w = g.floats(8, 5)

    def fast(x):
        return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    cases.append(Case("GemmFastGelu", [x, w], want=lambda x, w: fast(x @ w)))
    cases.append(Case("GemmFastGelu", [x, w, g.floats(5)], want=lambda x, w, c: fast(x @ w + c)))
    cases.append(
        Case(
            "FusedMatMulActivation",
            [x, g.floats(5, 8)],
            {"activation": "Relu", "transB": 1, "alpha": 0.5},
            want=lambda x, w, **a: np.maximum(0.5 * (x @ w.T), 0),
        )
    )

    def softmax(v, axis):
        e = np.exp(v - v.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    cases.append(
        Case(
            "FusedMatMulActivation",
            [x, w],
            {"activation": "Softmax", "activation_axis": 1},
            want=lambda x, w, **a: softmax(x @ w, 1),
        )
    )
    data = g.floats(2, 3, 4, 5)

    def bias_softmax(x, y, axis, is_inner_broadcast):
        if is_inner_broadcast:
            y = y.reshape(*y.shape[: y.ndim - (4 - axis)], *[1] * (4 - y.ndim), *x.shape[axis:])
        total = (x.astype(np.float64) + y).reshape(*x.shape[:axis], -1)
        return softmax(total, -1).reshape(x.shape)

    for axis, inner, dims in (
        (3, 0, (4, 5)),
        (3, 1, (2, 5)),
        (3, 1, (2, 1, 1, 5)),
        (2, 0, (3, 4, 5)),
        (2, 1, (2, 4, 5)),
        (1, 0, (3, 4, 5)),
    ):
        attributes = {"axis": axis, "is_inner_broadcast": inner}
        cases += [
            Case(
                "BiasSoftmax", [data, g.floats(*dims)], attributes, want=bias_softmax, dynamic=free
            )
            for free in ((), (0,))
        ]
    check(cases)


@pytest.mark.parametrize("seed", seeds(2, 3))
def test_matmul(seed: int) -> None:
    g, cases = Draws(10 + seed), []
    for _ in range(8):
        m, k, n = (g.size(1, 5) for _ in range(3))
        batch = tuple(g.size(1, 3) for _ in range(g.size(0, 2)))
        a = {key: int(g.coin()) for key in ("transA", "transB", "transBatchA", "transBatchB")}
        if not batch:
            a["transBatchA"] = a["transBatchB"] = 0
        rows = (k, m) if a["transA"] else (m, k)
        columns = (n, k) if a["transB"] else (k, n)
        x = (rows[0], *batch, rows[1]) if a["transBatchA"] else (*batch, *rows)
        y = (columns[0], *batch, columns[1]) if a["transBatchB"] else (*batch, *columns)
        a["alpha"] = g.pick(1.0, 0.5, -2.0)
        cases.append(Case("FusedMatMul", [g.floats(*x), g.floats(*y)], a))
        plain = {key: a[key] for key in ("transA", "transB", "alpha")}
        given = [g.floats(*batch, *rows), g.floats(*columns)]
        cases.append(Case("TransposeMatMul", given, plain))
    check(cases)


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_gemm(seed: int) -> None:
    g, cases = Draws(20 + seed), []
    activations = (
        ("Relu", {}),
        ("Tanh", {}),
        ("Sigmoid", {}),
        ("LeakyRelu", {"activation_alpha": 0.2}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
        ("Elu", {"activation_alpha": 0.7}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("ThresholdedRelu", {"activation_alpha": 0.3}),
    )
    for name, parameters in activations:
        m, k, n = (g.size(1, 6) for _ in range(3))
        a = {"transA": int(g.coin()), "transB": int(g.coin()), "alpha": g.pick(1.0, 0.5)}
        a |= {"beta": g.pick(1.0, 2.0), "activation": name, **parameters}
        x = g.floats(*((k, m) if a["transA"] else (m, k)))
        y = g.floats(*((n, k) if a["transB"] else (k, n)))
        c = g.pick(None, g.floats(n), g.floats(m, 1), g.floats(m, n), g.floats())
        cases.append(Case("FusedGemm", [x, y, c], a))
    check(cases)


def last(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1)


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_convolution(seed: int) -> None:
    g, cases = Draws(30 + seed), []
    activations = (
        ("", []),
        ("Relu", []),
        ("Tanh", []),
        ("Sigmoid", []),
        ("LeakyRelu", [0.2]),
        ("Clip", [-0.3, 0.6]),
        ("HardSigmoid", [0.3, 0.4]),
    )
    for name, parameters in activations:
        group = g.pick(1, 2)
        n, channels, out = g.size(1, 2), 2 * group, 2 * group
        kernel = [g.size(1, 3), g.size(1, 3)]
        a = {
            "group": group,
            "kernel_shape": kernel,
            "strides": [g.size(1, 2), g.size(1, 2)],
            "dilations": [1, g.size(1, 2)],
        }
        if g.coin(0.3):
            a["auto_pad"] = g.pick("SAME_UPPER", "SAME_LOWER", "VALID")
            a["dilations"] = [1, 1]
        else:
            a["pads"] = [g.size(0, 2) for _ in range(4)]
        x = g.floats(n, channels, g.size(5, 8), g.size(5, 8))
        w = g.floats(out, channels // group, *kernel)
        bias = g.floats(out) if g.coin() else None
        plain = dict(a)
        if name:
            a["activation"] = name
        if parameters:
            a["activation_params"] = parameters
        fused = Case("FusedConv", [x, w, bias], a)
        z = None
        if g.coin():
            z = g.floats(*expected(fused)[0].shape)
            fused = Case("FusedConv", [x, w, bias, z], a)
        cases.append(fused)
        [want] = expected(fused)
        turned = [last(x), w, bias, None if z is None else last(z)]
        cases.append(Case("NhwcFusedConv", turned, a, want=lambda *_, w=want, **__: last(w)))
        [want] = expected(Case("Conv", [x, w, bias], plain, domain=""))
        cases.append(Case("NhwcConv", turned[:3], plain, want=lambda *_, w=want, **__: last(w)))
    check(cases)
