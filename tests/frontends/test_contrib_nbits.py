"""com.microsoft: weights of 2, 4 and 8 bits, and mixtures of experts, against onnxruntime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from contrib_cases import Case, Draws, check, ort

import mgx_mlir
from mgx_mlir.core.errors import MgxError, RunError
from tests.support.draws import seeds


def zero_points(g: Draws, n: int, blocks: int, bits: int) -> np.ndarray | None:
    packed = g.bytes(n, -(-blocks * bits // 8))
    return g.pick(None, packed, packed.reshape(-1), g.floats(n, blocks, scale=2))


@pytest.mark.parametrize("seed", seeds(2, 3))
def test_matmul(seed: int) -> None:
    g, cases = Draws(seed), []
    for bits in (4, 4, 8, 2):
        n, size = g.size(1, 9), g.pick(16, 32)
        k = size * g.size(1, 3) - g.pick(0, 5)
        blocks = -(-k // size)
        x = g.floats(*g.pick((2, 3), (3,)), k)
        w = g.bytes(n, blocks, size * bits // 8)
        zeros = zero_points(g, n, blocks, bits)
        if bits == 2 and zeros is not None and zeros.dtype != np.uint8:
            zeros = None
        bias = g.floats(n) if g.coin() else None
        a = {"K": k, "N": n, "bits": bits, "block_size": size}
        scales = g.positive(n, blocks) / 8
        scales = scales.reshape(-1) if zeros is not None and zeros.ndim == 1 else scales
        # in constants the compiler may unpack ahead, in inputs it may not
        fixed = range(1, 6) if g.coin() else ()
        given = [x, w, scales, zeros, None, bias]
        cases.append(Case("MatMulNBits", given, a, constants=fixed, want=by_hand(a)))
        if bits == 4:
            case = Case("MatMulNBits", given, {**a, "accuracy_level": 1}, constants=range(1, 6))
            cases.append(case)
            groups = g.ints(0, blocks, k)
            with_groups = [x, w, scales, zeros, groups, bias]
            cases.append(Case("MatMulNBits", with_groups, a, want=by_hand(a)))
    check(cases)


def by_hand(a: dict[str, int]) -> Any:
    """In f64; onnxruntime has some of the widths, and rounds x for others."""

    def want(x, w, scales, zeros, groups, bias, *, K, N, bits, block_size, accuracy_level=0):
        blocks = w.shape[1]
        each = 8 // bits
        parts = [(w >> (bits * i)) & ((1 << bits) - 1) for i in range(each)]
        codes = np.stack(parts, -1).reshape(N, -1)[:, :K].astype(np.float64)
        scales = scales.reshape(N, blocks)
        if zeros is None:
            points = np.full((N, blocks), 1 << (bits - 1))
        elif zeros.dtype == np.uint8:
            rows = zeros.reshape(N, -1)
            parts = [(rows >> (bits * i)) & ((1 << bits) - 1) for i in range(each)]
            points = np.stack(parts, -1).reshape(N, -1)[:, :blocks]
        else:
            points = zeros
        block = np.arange(K) // block_size if groups is None else groups
        full = (codes - points[:, block]) * scales[:, block]
        out = x @ full.T
        return out if bias is None else out + bias

    return want


def test_levels_that_allow_less() -> None:
    """From level 2 on scales are numbers of f16, but for those that it cannot hold."""
    g, cases = Draws(11), []
    a = {"K": 64, "N": 5, "bits": 4, "block_size": 32}
    for level, factor in ((1, 1.0), (2, 1.0), (4, 1.0), (4, 1e-6)):
        given = [g.floats(3, 64), g.bytes(5, 2, 16), g.positive(5, 2) * np.float32(factor)]

        def want(x, w, s, *, level=level, factor=factor, **a):
            short = level > 1 and factor == 1
            s = s.astype(np.float16) if short else s
            return by_hand(a)(x, w, s.astype(np.float64), None, None, None, **a)

        form = {**a, "accuracy_level": level}
        cases.append(Case("MatMulNBits", given, form, constants=(1, 2), want=want, tol=1e-6))
    check(cases)


def test_fused_projections() -> None:
    """onnxruntime has them for GPUs only."""
    g, cases = Draws(7), []
    k, n, m, size = 32, 5, 3, 16
    x, skip, norm = g.floats(2, k), g.floats(2, k), g.floats(k)

    def packed(rows: int) -> list[np.ndarray]:
        return [g.bytes(rows, 2, size // 2), g.positive(rows, 2) / 8, g.floats(rows)]

    def rms(v, epsilon):
        v = v.astype(np.float64)
        return v / np.sqrt((v * v).mean(-1, keepdims=True) + epsilon) * norm

    def product(v, parts, rows):
        a = {"K": k, "N": rows, "bits": 4, "block_size": size}
        return by_hand(a)(v, *parts[:2], None, None, parts[2], **a)

    def mlp(x, skip, norm_scale, *w, **a):
        total = x if skip is None else x + skip
        y = total if norm_scale is None else rms(total, 1e-5)
        gate, up = product(y, w[:3], n), product(y, w[3:], n)
        y = gate / (1 + np.exp(-gate)) * up
        return y if skip is None else (y, total)

    a: dict[str, Any] = {"K": k, "N": n, "block_size": size, "activation": "silu"}
    for given, outputs in (([x, skip, norm], 2), ([x, None, norm], 1), ([x, None, None], 1)):
        case = [*given, *packed(n), *packed(n)]
        cases.append(Case("MatMulNBitsMlp", case, a, outputs, want=mlp))

    def qkv(x, skip, norm_scale, *w, **a):
        total = x if skip is None else x + skip
        y = rms(total, 1e-6)
        rows = (n, m, m)
        products = [product(y, w[3 * i : 3 * i + 3], r) for i, r in enumerate(rows)]
        return products if skip is None else (*products, total)

    a = {"K": k, "Nq": n, "Nkv": m, "block_size": size}
    weights = [*packed(n), *packed(m), *packed(m)]
    cases.append(Case("MatMulNBitsQkv", [x, skip, norm, *weights], a, 4, want=qkv))
    cases.append(Case("MatMulNBitsQkv", [x, None, norm, *weights], a, 3, want=qkv))
    check(cases)


@pytest.mark.parametrize("kind", [0, 1])
def test_bnb4(kind: int) -> None:
    g, cases = Draws(8), []
    for _ in range(4):
        n, k, size = g.size(1, 7), g.pick(16, 24, 32, 33), 16
        count = n * k
        w = g.bytes(-(-count // 2))
        absmax = g.positive(-(-count // size))
        a = {"K": k, "N": n, "block_size": size, "quant_type": kind}
        given = [g.floats(3, k), w, absmax]
        cases.append(Case("MatMulBnb4", given, a, constants=[1, 2]))
    check(cases)


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_gather(seed: int) -> None:
    g, cases = Draws(20 + seed), []
    for kind in (ml_dtypes.int4, ml_dtypes.uint4, np.uint8):
        for bits in (4, 8) if kind is np.uint8 else (4,):
            rows, size = g.size(2, 6), 16
            columns = size * g.size(1, 2)
            blocks = columns // size
            if kind is np.uint8:
                data = g.bytes(rows, columns * bits // 8)
                zeros = g.bytes(rows, -(-blocks * bits // 8))
            else:
                low = -8 if kind is ml_dtypes.int4 else 0
                data = g.ints(low, low + 16, rows, columns).astype(kind)
                zeros = g.ints(low, low + 16, rows, blocks).astype(kind)
            zeros = zeros if g.coin() else None
            index = g.ints(-rows, rows, *g.pick((3,), (2, 2), ()), dtype=g.pick(np.int32, np.int64))
            a: dict[str, Any] = {"block_size": size, "bits": bits}
            scales = g.floats(rows, blocks)
            given = [data, index, scales, zeros]
            cases.append(Case("GatherBlockQuantized", given, a, constants=[0, 2, 3]))
            if kind is not np.uint8:
                index = g.ints(0, columns, 4)
                a = {**a, "gather_axis": 1, "quantize_axis": 1}
                given = [data, index, scales, zeros]
                cases.append(Case("GatherBlockQuantized", given, a, constants=[0, 2, 3]))
                data = g.ints(low, low + 16, 16, 5).astype(kind)
                a = {**a, "gather_axis": 1, "quantize_axis": 0}
                given = [data, g.ints(0, 5, 2, 2), g.floats(1, 5), g.pick(None, data[:1])]
                cases.append(Case("GatherBlockQuantized", given, a, constants=[0, 2, 3]))
    check(cases)


# ---- experts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_moe(seed: int) -> None:
    g, cases = Draws(30 + seed), []
    kinds = ("relu", "gelu", "silu", "identity", "swiglu")
    for activation in kinds:
        experts, hidden, inner = g.size(2, 5), g.size(2, 6), g.size(2, 6)
        dims = g.pick((5, hidden), (2, 3, hidden))
        tokens = int(np.prod(dims[:-1]))
        a: dict[str, Any] = {"activation_type": activation, "k": g.size(1, 2)}
        a["normalize_routing_weights"] = int(g.coin())
        wide = inner
        if activation == "swiglu":
            a |= {"swiglu_fusion": 1, "activation_alpha": 1.702}
            a |= {"activation_beta": 1.0, "swiglu_limit": 1.0}
            wide = 2 * inner
        bias = g.coin()
        router = g.floats(tokens, experts)
        router = np.rint(router) if g.coin() else router  # equal scores
        given = [g.floats(*dims), router]
        given += [g.floats(experts, wide, hidden), g.floats(experts, wide) if bias else None]
        given += [g.floats(experts, hidden, inner), g.floats(experts, hidden) if bias else None]
        cases.append(Case("MoE", given, a))
    check(cases)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_experts_of_any_number_of_tokens(target: str) -> None:
    """One program; the dims of an input, and of the router's scores, are those of the run."""
    text = """<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]> g (float[b,s,h] x,
      float[t,e] r, float[3,8,4] w, float[3,4,4] v) => (float[b,s,h] y) {
        y = com.microsoft.MoE<activation_type="swiglu", swiglu_fusion=1, k=2>(x,r,w,,v) }"""
    data = onnx.parser.parse_model(text).SerializeToString()
    program = mgx_mlir.compile(data, target)
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    g = Draws(4)
    held = {"w": g.floats(3, 8, 4), "v": g.floats(3, 4, 4)}
    for batch, length in ((2, 3), (1, 1), (1, 5)):
        feeds = {"x": g.floats(batch, length, 4), "r": g.floats(batch * length, 3), **held}
        (want,) = session.run(None, feeds)
        np.testing.assert_allclose(program.run(feeds)[0], want, rtol=1e-4, atol=1e-5)
    for wrong in ({"r": g.floats(1, 3)}, {"r": g.floats(5, 2)}, {"x": g.floats(1, 5, 3)}):
        with pytest.raises(RunError, match="MoE_0"):
            program.run({**feeds, **wrong})


def moe(x, router, fc1, _, fc2, *, activation_type, k=1, swiglu_fusion=1, swiglu_limit=np.inf,
        swiglu_limit_after_activation=0, activation_alpha=1.0, activation_beta=0.0):  # fmt: skip
    """In f64: what onnxruntime has for GPUs alone."""
    e = np.exp(router - router.max(1, keepdims=True))
    chances, out = e / e.sum(1, keepdims=True), np.zeros(x.shape)
    for t in range(len(x)):
        for expert in np.argsort(-chances[t])[:k]:
            y = fc1[expert].astype(np.float64) @ x[t]
            if activation_type == "relu2":
                y = np.maximum(y, 0) ** 2
            else:
                gate, line = (y[0::2], y[1::2]) if swiglu_fusion == 1 else np.split(y, 2)
                if activation_type == "geglu":
                    inner = np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)
                    y = gate / 2 * (1 + np.tanh(inner)) * line
                else:
                    limit, after = swiglu_limit, swiglu_limit_after_activation
                    gate = gate if after else np.minimum(gate, limit)
                    gate = gate / (1 + np.exp(-activation_alpha * gate))
                    gate = np.minimum(gate, limit) if after else gate
                    y = gate * (np.clip(line, -limit, limit) + activation_beta)
            out[t] += chances[t, expert] * (fc2[expert] @ y)
    return out


def test_activations_of_experts_for_gpus() -> None:
    g, cases = Draws(31), []
    swiglu = {"activation_type": "swiglu", "activation_alpha": 1.5, "swiglu_limit": 0.4}
    for form in (
        {"activation_type": "relu2"},
        {"activation_type": "geglu", "swiglu_fusion": 1},
        {"activation_type": "geglu", "swiglu_fusion": 2},
        {**swiglu, "swiglu_fusion": 1, "swiglu_limit_after_activation": 1},
        {**swiglu, "swiglu_fusion": 2, "swiglu_limit_after_activation": 1, "activation_beta": 1.0},
        {**swiglu, "swiglu_fusion": 2},
    ):
        given = [g.floats(4, 5), g.floats(4, 3), g.floats(3, 6, 5), None]
        given.append(g.floats(3, 5, 6 if form["activation_type"] == "relu2" else 3))
        cases.append(Case("MoE", given, {**form, "k": 2}, want=moe))
    check(cases)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"activation_type": "geglu"}, "expected swiglu_fusion 1 or 2 with geglu"),
        ({"activation_type": "swiglu"}, "expected fc3_experts_weights with swiglu"),
        ({"swiglu_limit_after_activation": 1}, "swiglu_limit_after_activation 1 does not fit relu"),
    ],
)
def test_experts_that_do_not_fit(form: dict[str, Any], why: str) -> None:
    g = Draws(32)
    given = [g.floats(4, 5), g.floats(4, 3), g.floats(3, 6, 5), None, g.floats(3, 5, 6)]
    with pytest.raises(MgxError, match=why):
        check([Case("MoE", given, form, want=lambda *_, **__: [])])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_group_router(dtype: Any) -> None:
    g, cases = Draws(33), []
    for _ in range(8):
        groups = g.pick(1, 2, 4)
        experts = groups * g.size(1, 4)
        kept = g.size(1, groups)
        a = {"n_group": groups, "topk_group": kept, "group_topk": g.size(1, 3)}
        a["top_k"] = g.size(1, kept * (experts // groups))
        if g.coin():
            a["router_sentinel"] = -50.0
        dims = g.pick((3,), (2, 3))
        given = [g.floats(*dims, experts, dtype=dtype), g.floats(experts)]
        cases.append(Case("MoEGroupRouter", given, a))
    check(cases)


def test_all_scores_of_a_router() -> None:
    """onnxruntime has the outputs, and the projection, for GPUs alone."""
    g = Draws(34)

    def want(x, bias, weight=None, **_):
        x = x.astype(np.float64) if weight is None else x.astype(np.float64) @ weight.T
        s = 1 / (1 + np.exp(-x))
        return s + bias, s

    given = [g.floats(3, 5), g.floats(5)]
    cases = [Case("MoEGroupRouter", given, {"top_k": 2}, [1, 2], want=want)]
    given = [g.floats(3, 256), g.floats(5), g.floats(5, 256)]
    cases.append(Case("MoEGroupRouter", given, {"top_k": 2}, [1, 2], want=want))
    check(cases)


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_qmoe(seed: int) -> None:
    g, cases = Draws(40 + seed), []
    for bits in (4, 8):
        for block in (0, 16):
            experts, hidden, inner = g.size(2, 4), 32, 16
            tokens = g.size(1, 4)
            a: dict[str, Any] = {"activation_type": "swiglu", "k": g.size(1, 2)}
            a |= {"swiglu_fusion": 1, "expert_weight_bits": bits, "activation_alpha": 1.702}
            a |= {"activation_beta": 1.0, "normalize_routing_weights": int(g.coin())}
            if block:
                a["block_size"] = block
            parts: list[Any] = []
            for rows, columns in ((2 * inner, hidden), (hidden, inner)):
                scales = (experts, rows) if not block else (experts, rows, columns // block)
                parts += [g.bytes(experts, rows, columns * bits // 8), g.positive(*scales) / 40]
                parts.append(g.floats(experts, rows) if g.coin() else None)
            given = [g.floats(tokens, hidden), g.floats(tokens, experts), *parts]
            case = Case("QMoE", given, a, constants=range(2, 8), want=qmoe)
            cases.append(case)
            if not block and bits == 4:
                cases.append(Case("QMoE", given, a, constants=range(2, 8), tol=1e-4))
                equal = [given[0], np.rint(given[1]), *given[2:]]
                cases.append(Case("QMoE", equal, a, constants=range(2, 8), tol=1e-4))
    check(cases)


def qmoe(x, router, *w, k, expert_weight_bits, activation_alpha, activation_beta, **_):
    """In f64; onnxruntime rounds x to 8 bits for some widths."""
    bits = expert_weight_bits

    def matrix(packed, scales):
        parts = [(packed >> (bits * i)) & ((1 << bits) - 1) for i in range(8 // bits)]
        codes = np.stack(parts, -1).reshape(*packed.shape[:2], -1).astype(np.float64)
        scales = scales[..., None] if scales.ndim == 2 else scales
        return (codes - (1 << (bits - 1))) * np.repeat(scales, codes.shape[2] // scales.shape[2], 2)

    one, two = matrix(w[0], w[1]), matrix(w[3], w[4])
    e = np.exp(router - router.max(1, keepdims=True))
    chances = e / e.sum(1, keepdims=True)
    out = np.zeros(x.shape)
    for t in range(len(x)):
        best = np.argsort(-chances[t])[:k]
        weights = chances[t, best]
        weights = weights / weights.sum()
        for expert, weight in zip(best, weights, strict=True):
            y = one[expert] @ x[t] + (0 if w[2] is None else w[2][expert])
            gate, line = y[0::2], y[1::2]
            y = gate / (1 + np.exp(-activation_alpha * gate)) * (line + activation_beta)
            out[t] += weight * (two[expert] @ y + (0 if w[5] is None else w[5][expert]))
    return out


@pytest.mark.parametrize("dims", [(0, 1, 8), (8, 0, 8), (7, 1, 8)])
def test_weights_of_other_dims_are_told_by_theirs(dims: tuple[int, ...]) -> None:
    node = onnx.helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=16, N=8, bits=4,
        block_size=16,
    )  # fmt: skip
    held = [
        onnx.numpy_helper.from_array(np.zeros(dims, np.uint8), "w"),
        onnx.numpy_helper.from_array(np.ones(8, np.float32), "s"),
    ]
    kind = onnx.TensorProto.FLOAT
    x, y = (onnx.helper.make_tensor_value_info(n, kind, [2, k]) for n, k in (("x", 16), ("y", 8)))
    graph = onnx.helper.make_graph([node], "g", [x], [y], held)
    opsets = [onnx.helper.make_opsetid(d, v) for d, v in (("", 18), ("com.microsoft", 1))]
    with pytest.raises(MgxError, match=r"8 rows and 16 inputs expected dims \[8, 1, 8\]"):
        mgx_mlir.compile(onnx.helper.make_model(graph, opset_imports=opsets), target="ref")
