"""com.microsoft: shapes, windows, transforms, words and hashes, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_cases import Case, Draws, check, model

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer


def test_shapes() -> None:
    g, cases = Draws(1), []
    x = g.floats(2, 3, 5, 4)
    for k in (None, 0, 1, -2):
        at = None if k is None else np.array(k, np.int64)
        for upper in (0, 1):
            cases.append(Case("Trilu", [x, at], {"upper": upper}, constants=[1]))
    for axis in (0, -1, 2):
        cases.append(Case("ExpandDims", [x, np.array(axis, np.int32)], constants=[1]))
    pads = np.array([0, 1, 0, 0, 2, 0, 1, -1], np.int64)
    cases.append(Case("Pad", [x, pads, np.float32(1.5)], constants=[1, 2]))
    cases.append(Case("Pad", [x, pads[None]], constants=[1]))
    pads = np.array([0, 1, 1, 0, 0, 2, 1, 0], np.int64)
    for mode in ("reflect", "edge"):
        cases.append(Case("Pad", [x, pads], {"mode": mode}, constants=[1]))
    for kind in (np.float32, np.int64, np.int32):
        start, limit, delta = (np.array(v, kind) for v in (1, 9, 3))
        cases.append(Case("Range", [start, limit, delta], constants=[0, 1, 2]))
        cases.append(Case("Range", [start.reshape(1), limit], constants=[0, 1]))
    cases.append(Case("GatherND", [x, np.array([[0, 1], [1, 2]], np.int64)]))
    for dim, size, step in ((-1, 2, 1), (2, 3, 2), (0, 1, 1)):
        a = {"dim": dim, "size": size, "step": step}
        cases.append(Case("UnfoldTensor", [x], a))
    ids = g.ints(0, 9, 2, 3, dtype=np.int64)
    cases.append(Case("TorchEmbedding", [g.floats(9, 4), ids], want=lambda t, i: t[i]))
    check(cases)


def test_flags() -> None:
    """onnxruntime has it for GPUs only."""
    g, cases = Draws(2), []
    good = g.floats(2, 3)
    for bad in (None, np.inf, np.nan):
        other = g.floats(4)
        if bad is not None:
            other[2] = bad
        for a in ({}, {"isinf_only": 1}, {"isnan_only": 1}):

            def want(*xs, isinf_only=0, isnan_only=0):
                found = False
                for x in xs:
                    found |= not isnan_only and np.isinf(x).any()
                    found |= not isinf_only and np.isnan(x).any()
                return np.array(not found)

            cases.append(Case("IsAllFinite", [good, other], a, want=want))
    check(cases)


def test_unique() -> None:
    g, cases = Draws(3), []
    cases.append(Case("Unique", [g.ints(0, 5, 12, dtype=np.float32)], outputs=3))
    whole = g.ints(0, 5, 12, dtype=np.int64)

    def firsts(x):
        seen = list(dict.fromkeys(x.tolist()))
        places = np.array([seen.index(v) for v in x])
        return np.array(seen), places, np.bincount(places)

    cases.append(Case("Unique", [whole], outputs=3, want=firsts))
    cases.append(Case("Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], outputs=3))
    check(cases)


def test_windows() -> None:
    g, cases = Draws(4), []
    for kind in (np.uint8, np.int8):
        x = g.bytes(2, 6, 5, 3, dtype=kind)
        a = {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [0, 1, 1, 1]}
        cases.append(Case("NhwcMaxPool", [x], a))
        a = {"kernel_shape": [3, 2], "dilations": [1, 2], "ceil_mode": 1, "strides": [2, 2]}
        cases.append(Case("NhwcMaxPool", [x], a))
    x = g.floats(2, 3, 6, 5)
    w = g.floats(3, 2, 3, 2)
    pads = np.array([1, 0, 0, 1], np.int64)
    a = {"strides": [2, 1], "kernel_shape": [3, 2]}
    given = [x, w, pads, g.floats(2)]
    cases.append(Case("ConvTransposeWithDynamicPads", given, a, constants=[2]))
    grid = g.floats(2, 4, 3, 2)
    for mode in ("bilinear", "nearest", "bicubic"):
        # bicubic borders: onnxruntime clamps the point, ONNX and torch the pixels that it reads
        for padding in ("zeros", "border", "reflection")[:: 2 if mode == "bicubic" else 1]:
            a = {"mode": mode, "padding_mode": padding, "align_corners": int(g.coin())}
            cases.append(Case("GridSample", [x, grid], a))
    check(cases)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_crop_and_resize(mode: str) -> None:
    g, cases = Draws(5), []
    x = g.floats(2, 3, 6, 7)
    for rows, columns in ((3, 4), (1, 2), (5, 1)):
        corners = np.sort(g.np.random((4, 2, 2)), 1).astype(np.float32)
        corners[3] *= 1.3  # beyond the image
        rois = corners.reshape(4, 4)
        size = np.array([rows, columns], np.int32)
        a: dict[str, Any] = {"mode": mode, "extrapolation_value": 2.5}
        given = [x, rois, g.ints(0, 2, 4), size]
        cases.append(Case("CropAndResize", given, a, constants=[3], tol=3e-5))
        cases.append(Case("CropAndResize", given, a, tol=3e-5))
    check(cases)
    check(cases, free={0, 1, 2}, target="ref")


def test_matrices() -> None:
    g, cases = Draws(6), []
    for dims in ((3, 3), (2, 4, 4), (2, 3, 1, 1), (5, 5)):
        cases.append(
            Case("Inverse", [g.floats(*dims) + np.eye(dims[-1], dtype=np.float32)], tol=1e-4)
        )
    swap = np.array([[0, 2, 1], [1, 0, 0], [0, 1, 3]], np.float32)  # needs its pivots
    cases.append(Case("Inverse", [swap]))
    cases.append(Case("Inverse", [g.floats(3, 3).astype(np.float64) + np.eye(3)]))

    def distances(x, y, metric):
        apart = ((x[:, None].astype(np.float64) - y) ** 2).sum(-1)
        return np.sqrt(apart) if metric == "euclidean" else apart

    for metric in ("sqeuclidean", "euclidean"):
        given = [g.floats(4, 5), g.floats(3, 5)]
        cases.append(Case("CDist", given, {"metric": metric}, tol=3e-5))
        far = [v + np.float32(1000) for v in given]  # squares of 1000 have no digits for these
        cases.append(Case("CDist", far, {"metric": metric}, want=distances))
    x = g.floats(2, 3, 8)

    def rfft(x, signal_ndim):
        f = np.fft.rfft(x)
        return np.stack([f.real, f.imag], -1)

    def irfft(x, signal_ndim):
        return np.fft.irfft(x[..., 0] + 1j * x[..., 1])

    cases.append(Case("Rfft", [x], {"signal_ndim": 1}, want=rfft))
    half = g.floats(2, 5, 2)
    cases.append(Case("Irfft", [half], {"signal_ndim": 1}, want=irfft))

    def product(x, y, conj=False):
        z = (x[..., 0] + 1j * x[..., 1]) * (y[..., 0] + (-1j if conj else 1j) * y[..., 1])
        return np.stack([z.real, z.imag], -1)

    given = [g.floats(2, 3, 2), g.floats(3, 2)]
    cases.append(Case("ComplexMul", given, want=product))
    cases.append(Case("ComplexMulConj", given, want=lambda x, y: product(x, y, True)))
    check(cases)


def test_words_are_rows_of_a_matrix() -> None:
    """onnxruntime takes a tensor of rank 3, and reads its first elements as {words, characters}."""
    g = Draws(3)
    words = g.ints(1, 9, 2, 3, 6)
    given = [words, g.floats(5, 1, 3, 4), g.floats(5), g.floats(9, 4)]
    data, _, _ = model([Case("WordConvEmbedding", given)])
    with pytest.raises(ModelError, match="words, characters}, got rank 3"):
        parse_onnx_buffer(data)


def test_hashes_are_unsigned_where_positive_is_one() -> None:
    keys = np.arange(5, dtype=np.int32)
    check([Case("MurmurHash3", [keys], {"positive": p}) for p in (1, 0, 2, -1)], target="ref")


def test_words() -> None:
    g, cases = Draws(7), []
    for window in (2, 3):
        words = g.ints(1, 9, 4, 6)
        for row, length in zip(words, (6, 1, window, 5), strict=True):
            row[length:] = 0
        given = [words, g.floats(5, 1, window, 4), g.floats(5), g.floats(9, 4)]
        a = {"embedding_size": 5, "conv_window_size": window, "char_embedding_size": 4}
        cases.append(Case("WordConvEmbedding", given, a))
    for size in (1, 2, 3):
        ids = g.ints(0, 4, 3, 7, dtype=np.int64)
        cases.append(Case("NGramRepeatBlock", [ids, g.floats(3, 6)], {"ngram_size": size}))
    check(cases)


def test_hashes() -> None:
    g, cases = Draws(8), []
    xs = [
        g.ints(-(2**31), 2**31, 9),
        g.ints(0, 2**32, 9, dtype=np.uint32),
        g.ints(-(2**62), 2**62, 9, dtype=np.int64),
        g.ints(0, 2**62, 9, dtype=np.uint64),
        g.floats(9),
        g.floats(9).astype(np.float64),
    ]
    for x in xs:
        for positive, kind in ((1, np.uint32), (0, np.int32)):
            a = {"positive": positive, "seed": 42}
            cases.append(Case("MurmurHash3", [x], a, kinds={0: kind}))
    check(cases)


def buckets(table, queries, keys, max_distance, is_bidirectional=0):
    count = len(table)
    table = table.reshape(-1, count).T  # stored head by head
    out = np.zeros((1, table.shape[1], int(queries[0]), int(keys[0])))
    for q in range(int(queries[0])):
        for k in range(int(keys[0])):
            n, base, size = q - k, 0, count
            if is_bidirectional:
                size //= 2
                base, n = (size if n < 0 else 0), abs(n)
            n = max(n, 0)
            exact = size // 2
            if n >= exact:
                far = np.log(n / exact) / np.log(max_distance / exact) * (size - exact)
                n = min(exact + int(far), size - 1)
            out[0, :, q, k] = table[base + n]
    return out


def gated(query, bias, rel, weight, wb, eco, num_heads):
    batch, length, _hidden = query.shape
    x = (query + bias).reshape(batch, length, num_heads, -1).transpose(0, 2, 1, 3)
    y = (x @ weight + wb).reshape(batch, num_heads, length, 2, -1).sum(-1)
    u, r = np.moveaxis(1 / (1 + np.exp(-y)), -1, 0)[..., None]
    return (u * (r * eco - 1) + 2) * rel


def test_relative_positions() -> None:
    """onnxruntime has them for GPUs only."""
    g, cases = Draws(9), []
    for both in (0, 1):
        given = [g.floats(32, 3), np.array([21], np.int64), np.array([21], np.int64)]
        a = {"max_distance": 128, "is_bidirectional": both}
        for constants in ([1, 2], [2], []):  # the others are computed at run time
            cases.append(Case("RelativePositionBias", given, a, constants=constants, want=buckets))
    given = [g.floats(8, 2), np.array([40], np.int64), np.array([3], np.int64)]
    cases.append(Case("RelativePositionBias", given, {"max_distance": 20}, want=buckets))
    heads, size, length = 2, 4, 5
    given = [g.floats(2, length, heads * size), g.floats(heads * size)]
    given += [g.floats(1, heads, length, length), g.floats(size, 8), g.floats(8)]
    given += [g.floats(1, heads, 1, 1)]
    cases.append(Case("GatedRelativePositionBias", given, {"num_heads": heads}, want=gated))
    check(cases)
