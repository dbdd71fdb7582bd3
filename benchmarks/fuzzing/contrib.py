"""Growers of com.microsoft operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.fuzzing.graph import Graph, Rejected, Value
from benchmarks.fuzzing.growers import grows
from benchmarks.fuzzing.layers import weight
from benchmarks.fuzzing.pointwise import partner
from benchmarks.fuzzing.quantised import off
from benchmarks.fuzzing.views import any_value, axis_of
from benchmarks.fuzzing.windows import spatial, window

MS = "com.microsoft"


def rows(g: Graph, low: int = 2, high: int = 4) -> tuple[Value, int]:
    """A value whose last extent is fixed, and that extent."""
    x = g.value(kinds=(np.float32,), low=low, high=high, test=lambda v: v.extent(-1))
    return x, x.extent(-1) or 1


@grows(3)
def fused_activations(g: Graph) -> Any:
    op = g.pick("Gelu", "FastGelu", "QuickGelu", "BiasGelu", "FastGeluBias")
    x, n = rows(g, 1)
    if op == "BiasGelu":
        return g.node(op, x, weight(g, [n]), domain=MS)
    if op == "FastGeluBias":
        return g.node("FastGelu", x, weight(g, [n]), domain=MS)
    more = {"alpha": g.pick(1.0, 1.702, 0.5)} if op == "QuickGelu" else {}
    return g.node(op, x, domain=MS, **more)


@grows(2)
def fused_products(g: Graph) -> Any:
    op = g.pick("FusedMatMul", "FusedGemm", "FusedConv")
    acts = {"Relu": None, "LeakyRelu": [0.2], "Tanh": None, "Sigmoid": None}
    act = g.pick(*acts)
    more: dict[str, Any] = {"activation": act}
    if op == "FusedConv":
        x = spatial(g, 2)
        if x.dtype != np.float32:
            raise Rejected("not f32")
        kernel, attributes = window(g, x, 2)
        if acts[act]:
            more["activation_params"] = acts[act]
        out = g.size(1, 6)
        w = weight(g, [out, x.extent(1) or 1, *kernel], scale=0.3)
        b = weight(g, [out]) if g.coin() else None
        return g.node(op, x, w, b, domain=MS, **attributes, **more)
    x, k = rows(g, 2, 2 if op == "FusedGemm" else 4)
    n = g.extent()
    if op == "FusedGemm":
        if acts[act]:
            more["activation_alpha"] = 0.2
        tb = g.size(0, 1)
        w = weight(g, [n, k] if tb else [k, n])
        return g.node(
            op, x, w, weight(g, [n]), domain=MS, transB=tb, alpha=g.pick(1.0, 0.5), **more
        )
    tb = g.size(0, 1)
    return g.node(
        op, x, weight(g, [n, k] if tb else [k, n]), domain=MS, transB=tb, alpha=g.pick(1.0, 0.25)
    )


@grows(2)
def skip_norms(g: Graph) -> Any:
    x, n = rows(g, 3, 3)
    if n < 2:
        raise Rejected("short rows")
    others = [v for v in g.seen if v.dtype == x.dtype and v.dims == x.dims]
    skip = g.pick(*others)
    op = g.pick("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
    bias = weight(g, [n]) if g.coin() else None
    given = [x, skip, weight(g, [n], scale=1)]
    if op == "SkipLayerNormalization":
        given.append(weight(g, [n]))
    return g.node(
        op, *given, bias, domain=MS, epsilon=g.pick(1e-5, 1e-2), outputs=g.pick([0], [0, 3])
    )


@grows(2)
def multi_head_attention(g: Graph) -> Any:
    heads, size = g.size(1, 3), g.pick(2, 4, 8)
    batch, m, n = g.size(1, 2), g.pick(1, 3, 8, 9), g.pick(1, 4, 9)
    hidden = heads * size
    more: dict[str, Any] = {"num_heads": heads}
    if g.coin(0.3):
        more["scale"] = 0.3
    if g.coin():
        q, k, v = (g.input([batch, t, hidden]) for t in (m, n, n))
        bias = weight(g, [3 * hidden]) if g.coin(0.4) else None
        return g.node("MultiHeadAttention", q, k, v, bias, domain=MS, **more)
    x = g.input([batch, m, hidden])
    given = [x, weight(g, [hidden, 3 * hidden]), weight(g, [3 * hidden])]
    if g.coin(0.4):
        more["unidirectional"] = 1
    return g.node("Attention", *given, domain=MS, **more)


@grows(3, since=10)
def linear_8bit(g: Graph) -> Any:
    """QLinear operators; a value between two steps may fall to either, so scales are odd."""
    kind = g.pick(np.uint8, np.int8)

    def stored(x: Value) -> list[Value]:
        s = g.const(np.float32(g.rng.uniform(0.02, 0.06)))
        z = g.const(np.asarray(g.size(100, 140) if kind is np.uint8 else g.size(-9, 9), kind))
        off(g, x, s, 0)
        return [g.node("QuantizeLinear", x, s, z, exact=True), s, z]

    x = g.value(kinds=(np.float32,), low=1, high=4)
    op = g.pick("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat")
    q, s, z = stored(x)
    out = [
        g.const(np.float32(g.rng.uniform(0.03, 0.07))),
        g.const(np.asarray(g.size(3, 100), kind)),
    ]
    if op in ("QLinearAdd", "QLinearMul"):
        y = partner(g, x)
        made = g.node(op, q, s, z, *stored(y), *out, domain=MS)
    elif op == "QLinearConcat":
        made = g.node(op, *out, q, s, z, q, s, z, axis=axis_of(g, x.rank), domain=MS)
    else:
        more = {"alpha": 0.1} if op == "QLinearLeakyRelu" else {}
        made = g.node(op, q, s, z, *out, domain=MS, **more)
    return g.node("DequantizeLinear", made, *out)


@grows(1.5)
def weights_of_4_bits(g: Graph) -> Any:
    x, k = rows(g, 2, 3)
    bits, block, n = 4, g.pick(16, 32), g.size(1, 9)
    blocks = -(-k // block)
    b = g.const(g.numbers([n, blocks, block * bits // 8], np.uint8, low=0, high=255))
    s = g.const(g.rng.uniform(0.01, 0.05, n * blocks).astype(np.float32))
    z = None
    if g.coin():
        z = g.const(g.numbers([n * ((blocks + 1) // 2)], np.uint8, low=0, high=255))
    return g.node(
        "MatMulNBits", x, b, s, z, domain=MS, K=k, N=n, bits=bits, block_size=block,
        accuracy_level=0,
    )  # fmt: skip


@grows(1)
def ms_tensors(g: Graph) -> Any:
    op = g.pick(
        "ExpandDims", "Trilu", "Inverse", "ComplexMul", "CDist", "Unique", "DynamicQuantizeMatMul"
    )
    if op == "ExpandDims":
        x = any_value(g, high=4)
        return g.node(
            op, x, g.const(np.array(g.size(-x.rank - 1, x.rank), np.int32)), domain=MS, exact=True
        )
    if op == "Trilu":
        return g.node(
            op,
            any_value(g, low=2),
            g.const(np.array(g.size(-2, 2))),
            upper=g.size(0, 1),
            domain=MS,
            exact=True,
        )
    if op == "Inverse":
        n = g.size(1, 3)
        m = g.rng.normal(0, 1, [n, n]).astype(np.float32) + 3 * np.eye(n, dtype=np.float32)
        return g.node(op, g.operand(m), domain=MS)
    if op == "CDist":
        n = g.size(1, 5)
        x, y = (g.input([g.size(1, 5), n]) for _ in range(2))
        return g.node(op, x, y, metric=g.pick("euclidean", "sqeuclidean"), domain=MS)
    if op == "Unique":
        x = g.value(kinds=(np.float32,), low=1, high=1, test=lambda v: v.exact)
        return g.node(op, x, outputs=3, domain=MS, exact=True)
    if op == "DynamicQuantizeMatMul":
        raise Rejected("its rounding depends on the product")
    x = g.input([g.size(1, 3), 2])
    return g.node(op, x, g.input([x.extent(0), 2]), domain=MS)
