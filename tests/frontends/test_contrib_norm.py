"""com.microsoft: normalisations, against onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contrib_cases import Case, Draws, check, model, run

from mgx_mlir.core.errors import MgxError
from tests.support.draws import seeds


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_skip_and_rms(dtype: Any) -> None:
    g, cases = Draws(1), []
    for _ in range(4):
        dims = (g.size(1, 3), g.size(1, 6), g.size(2, 24))
        n = dims[-1]
        x = g.floats(*dims, dtype=dtype)
        skip = g.floats(*g.pick(dims, (1, *dims[1:]), dims[1:]), dtype=dtype)
        gamma, beta, bias = (g.floats(n, dtype=dtype) for _ in range(3))
        a = {"epsilon": g.pick(1e-5, 1e-12 if dtype is np.float32 else 1e-4)}
        beta, bias = beta if g.coin() else None, bias if g.coin() else None
        outputs = (0, 3) if g.coin() else 1
        cases.append(Case("SkipLayerNormalization", [x, skip, gamma, beta, bias], a, outputs))
        given = [x, g.floats(*dims, dtype=dtype), gamma, bias]
        cases.append(Case("SkipSimplifiedLayerNormalization", given, a, outputs))
        axis = g.pick(-1, 1, 2)
        scale = g.floats(*dims[axis:], dtype=dtype)
        a = {"axis": axis, "epsilon": 1e-5}
        cases.append(Case("SimplifiedLayerNormalization", [x, scale], a, domain=""))
        given = [x[0], skip[-1] if skip.ndim == 3 else skip, gamma]
        cases.append(Case("SkipSimplifiedLayerNormalization", given))
    check(cases)


def test_simplified_layer_normalization_of_com_microsoft() -> None:
    g = Draws(2)

    def want(x: np.ndarray, scale: np.ndarray, axis: int, epsilon: float) -> np.ndarray:
        x = x.astype(np.float64)
        return x / np.sqrt((x * x).mean(axis, keepdims=True) + epsilon) * scale

    a = {"axis": -1, "epsilon": 1e-5}
    check([Case("SimplifiedLayerNormalization", [g.floats(3, 8), g.floats(8)], a, want=want)])


def test_the_mean_of_squares_of_skip_simplified_layer_normalization() -> None:
    """Output 1, of which onnxruntime writes nothing."""
    g = Draws(3)

    def want(x, skip, gamma, epsilon):
        total = x.astype(np.float64) + skip
        square = (total * total).mean(-1, keepdims=True)
        inverse = 1 / np.sqrt(square + epsilon)
        return total * inverse * gamma, square, inverse, total

    given = [g.floats(2, 3, 8), g.floats(2, 3, 8), g.floats(8)]
    name, a = "SkipSimplifiedLayerNormalization", {"epsilon": 1e-5}
    check([Case(name, given, a, [0, 1, 2, 3], want=want)])


def test_batch_normalization_of_one_dim_is_of_one_channel() -> None:
    g = Draws(4)

    def want(x, scale, bias, mean, variance, epsilon=1e-5):
        return (x.astype(np.float64) - mean) / np.sqrt(variance + epsilon) * scale + bias

    given = [g.floats(10), *(g.floats(1) for _ in range(3)), np.abs(g.floats(1)) + 1]
    check([Case("BatchNormalization", given, domain="", opset=13, want=want)], free={0})


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def group_norm(x, gamma, beta, activation, groups, channels_last=1, epsilon=1e-5):
    x = np.moveaxis(x, -1, 1) if channels_last else x
    rows = x.astype(np.float64).reshape(x.shape[0], groups, -1)
    rows = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + epsilon)
    y = rows.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
    y = silu(y) if activation else y
    return np.moveaxis(y, 1, -1) if channels_last else y


def skip_group_norm(x, gamma, beta, skip, bias=None, *, channels_last=1, **attributes):
    c = gamma.size
    if channels_last:
        total = x + (skip if skip.ndim == 4 else skip[:, None, None])
        total = total if bias is None else total + bias
    else:
        if skip.ndim == 2:
            skip = skip[:, :, None, None]
        elif skip.shape[1:3] == (1, 1) and c != 1:
            skip = np.moveaxis(skip, -1, 1)
        total = x + skip
        total = total if bias is None else total + bias[:, None, None]
    return group_norm(total, gamma, beta, channels_last=channels_last, **attributes), total


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_groups(seed: int) -> None:
    """onnxruntime has them for GPUs only."""
    g, cases = Draws(20 + seed), []
    for _ in range(6):
        groups = g.size(1, 3)
        c = groups * g.size(2, 3)
        n, h, w = g.size(1, 2), g.size(1, 4), g.size(2, 4)
        last = int(g.coin())
        dims = (n, h, w, c) if last else (n, c, h, w)
        a = {"groups": groups, "activation": int(g.coin()), "channels_last": last}
        a["epsilon"] = g.pick(1e-5, 1e-3)
        x, gamma, beta = g.floats(*dims), g.floats(c), g.floats(c)
        cases.append(Case("GroupNorm", [x, gamma, beta], a, want=group_norm))
        skip = g.floats(*g.pick(dims, (n, c), (n, 1, 1, c)))
        given = [x, gamma, beta, skip, g.floats(c) if g.coin() else None]
        cases.append(Case("SkipGroupNorm", given, a, 2, want=skip_group_norm))
    check(cases)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_branches(dtype: Any) -> None:
    g, cases = Draws(3), []
    for _ in range(4):
        lead, c, h = (g.size(1, 3), g.size(1, 3)), g.size(2, 4), g.size(2, 9)
        grouped, flat = g.floats(*lead, c, h, dtype=dtype), g.floats(*lead, c * h, dtype=dtype)
        for x, a in ((grouped, {}), (flat, {"num_branches": c})):
            scale = g.pick(None, (c * h,), (c, h), (h,))
            scale = None if scale is None else g.floats(*scale, dtype=dtype)
            cases.append(Case("BranchwiseRMSNorm", [x, scale], {"epsilon": 1e-4, **a}))
            pre = g.floats(*lead, *g.pick((c,), (c, 1), (c, h)), dtype=dtype)
            scaled = {"reduction_scale": 0.5, **a}
            cases.append(Case("HyperConnectionPreMix", [x, pre], scaled))
            block = g.floats(*lead, h, dtype=dtype)
            post = g.floats(*lead, *g.pick((c,), (c, 1), (c, h)), dtype=dtype)
            mix = g.floats(*lead, c, c, dtype=dtype) if g.coin() else None
            cases.append(Case("HyperConnectionPostMix", [x, block, post, mix], a))
        size = g.size(2, 6)
        x = g.floats(*lead, size * g.size(1, 3), dtype=dtype)
        gate = g.floats(*x.shape, dtype=dtype)
        a = {"activation": g.pick("silu", "swish", "sigmoid"), "epsilon": 1e-4}
        cases.append(Case("GatedRMSNorm", [x, g.floats(size, dtype=dtype), gate], a))
        key, query = (g.floats(*lead, c, h, dtype=dtype) for _ in range(2))
        scales = [g.floats(c, h, dtype=dtype) for _ in range(3)]
        given = [key, query, g.floats(*lead, h, dtype=dtype), *scales]
        cases.append(Case("EngramGate", given, outputs=2))
        cases.append(Case("EngramGate", given[:5], {"epsilon": 1e-3}))
    check(cases)


def branch_cases() -> list[Case]:
    """Two branches of four: each operator on operands of the dims that the schema states."""
    g, flat = Draws(5), {"num_branches": 2}
    x, gates = g.floats(2, 3, 8), g.floats(2, 3, 2)
    return [
        Case("BranchwiseRMSNorm", [x, g.floats(2, 4)], flat),
        Case("HyperConnectionPreMix", [x, gates], flat),
        Case("HyperConnectionPostMix", [x, g.floats(2, 3, 4), gates, g.floats(2, 3, 2, 2)], flat),
        Case("GatedRMSNorm", [x, g.floats(4), g.floats(2, 3, 8)], constants={1}),
    ]


def test_branches_of_dynamic_size() -> None:
    cases = branch_cases()
    for case in cases:
        told = {1: case.op.endswith("PreMix"), 2: case.op.endswith("PostMix")}
        # a last dim of gates tells their form
        case.dynamic = {i for i in range(4) if not told.get(i)}
    check(cases)


@pytest.mark.parametrize("dynamic", [(), range(4)], ids=["fixed", "dynamic"])
@pytest.mark.parametrize(("of", "operand"), [(0, 1), (1, 1), (2, 1), (2, 2), (2, 3), (3, 2)])
def test_branches_that_would_broadcast_are_refused(of: int, operand: int, dynamic: Any) -> None:
    """Operands of one row, or of other rows, for two; onnxruntime refuses them."""
    case = branch_cases()[of]
    whole = np.asarray(case.inputs[operand])
    for wrong in (whole[:1], np.concatenate([whole, whole, whole])):
        inputs = [wrong if i == operand else x for i, x in enumerate(case.inputs)]
        given = replace(case, inputs=inputs, constants=(), dynamic=dynamic)
        data, feeds, _ = model([given])
        with pytest.raises(MgxError, match="c0"):
            run(data, feeds, "ref")


def test_embeddings() -> None:
    g, cases = Draws(4), []
    for _ in range(5):
        n, length, size, words = g.size(1, 3), g.size(1, 6), g.size(2, 12), 9
        ids = g.ints(0, words, n, length)
        segments = g.ints(0, 2, n, length) if g.coin() else None
        table = None if segments is None else g.floats(2, size)
        mask = g.pick(None, (np.arange(length) < g.ints(0, length + 1, n, 1)).astype(np.int32))
        positions = g.pick(None, g.ints(0, 8, n, length), g.ints(0, 8, 1, length))
        given = [ids, segments, g.floats(words, size), g.floats(8, size), table]
        given += [g.floats(size), g.floats(size), mask, positions]
        outputs = g.pick(2, 3)
        cases.append(Case("EmbedLayerNormalization", given, {"epsilon": 1e-5}, outputs))
        kind = g.pick(np.uint8, np.int8)

        def table_of(*dims: int, kind: Any = kind) -> list[np.ndarray]:
            return [g.bytes(*dims, dtype=kind), g.positive() / 64, g.bytes(dtype=kind)]

        tables = [table_of(words, size), table_of(8, size), table_of(2, size)]
        tables += [table_of(size), table_of(size)]
        if segments is None:
            tables[2] = [None, None, None]
        columns = [list(c) for c in zip(*tables, strict=True)]
        given = [ids, segments, *columns[0], mask, *columns[1], *columns[2]]
        a = {"epsilon": 1e-5}
        cases.append(Case("QEmbedLayerNormalization", given, a, 2, constants=range(8, 18)))
    check(cases)
