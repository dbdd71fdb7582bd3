"""Products, convolutions and poolings against ONNX Runtime, and against loops over windows."""

import itertools

import numpy as np
import pytest

from mgx_mlir.core.op import OPS
from mgx_mlir.dialects.migraphx.windows import both_pads
from tests.support.ops import evaluate
from tests.support.oracle import run_node

CONVOLUTIONS = [
    pytest.param(*case, id=str(i)) for i, case in enumerate(OPS["convolution"].examples())
]
TRANSPOSED = [
    pytest.param(*case, id=str(i)) for i, case in enumerate(OPS["convolution_backwards"].examples())
]
POOLINGS = [pytest.param(*case, id=str(i)) for i, case in enumerate(OPS["pooling"].examples())]


def onnx_window(at, n):
    """ONNX's attributes of a window, from MIGraphX's."""
    out = {"strides": at.get("stride", [1] * n)}
    if at.get("padding_mode", "default_") != "default_":
        out["auto_pad"] = at["padding_mode"].upper()
    else:
        pads = both_pads(at.get("padding", [0] * n), n)
        out["pads"] = [b for b, _ in pads] + [a for _, a in pads]
    return out


def close(got, want, rtol=1e-5):
    # f32 sums of up to a few hundred products, in another order
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * 10)


@pytest.mark.parametrize(("operands", "at"), CONVOLUTIONS)
def test_convolution(operands, at):
    x, w = operands
    got = evaluate("convolution", x, w, **at)
    if at.get("channels_last"):
        x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, (-1, -2), (0, 1))
        got = np.moveaxis(got, -1, 1)
    n = x.ndim - 2
    wide = np.float32 if x.dtype.kind == "i" or x.dtype.itemsize == 2 else x.dtype
    if not x.size:
        assert got.shape == (0, 2, 3)
        return
    want = run_node(
        "Conv",
        np.ascontiguousarray(x).astype(wide),
        np.ascontiguousarray(w).astype(wide),
        dilations=at.get("dilation", [1] * n),
        group=at.get("group", 1),
        **onnx_window(at, n),
    )
    # f16: one rounding of a sum that is right in f32
    close(got.astype(wide), want, 1e-3 if x.dtype == np.float16 else 1e-5)


@pytest.mark.parametrize(("operands", "at"), TRANSPOSED)
def test_convolution_backwards(operands, at):
    x, w = operands
    n = x.ndim - 2
    want = run_node(
        "ConvTranspose",
        x,
        w,
        dilations=at.get("dilation", [1] * n),
        group=at.get("group", 1),
        **onnx_window(at, n),
    )
    close(evaluate("convolution_backwards", x, w, **at), want)


@pytest.mark.parametrize("stride", [1, 2])
def test_im2col_times_weights_is_the_convolution(stride):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 3, 7, 6)).astype(np.float32)
    w = rng.standard_normal((4, 3, 3, 2)).astype(np.float32)
    at = {"padding": [1, 0], "stride": [stride, stride]}
    columns = evaluate("im2col", x, w, **at)
    want = run_node("Conv", x, w, strides=[stride] * 2, pads=[1, 0, 1, 0])
    close((columns @ w.reshape(4, -1).T).T.reshape(want.shape), want)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
def test_dot(dtype, batch):
    rng = np.random.default_rng(2)
    a = (rng.standard_normal((*batch, 4, 5)) * 4).astype(dtype)
    b = (rng.standard_normal((*batch, 5, 3)) * 4).astype(dtype)
    got = evaluate("dot", a, b)
    assert got.dtype == dtype
    want = np.einsum("...ij,...jk->...ik", a.astype(np.float64), b.astype(np.float64))
    close(got.astype(np.float64), want, {2: 1e-3, 4: 1e-5, 8: 1e-12}[np.dtype(dtype).itemsize])


def window_cells(x, at, n):
    """(place in the result, cells of the window inside of the padding) by plain loops."""
    lengths = at.get("lengths", [1] * n)
    stride = at.get("stride", [1] * n)
    dilations = at.get("dilations", [1] * n)
    spatial = x.shape[2:]
    if at.get("dyn_global"):
        lengths, stride, dilations = spatial, [1] * n, [1] * n
        pads = [(0, 0)] * n
        counts = [1] * n
    elif at.get("padding_mode", "default_") != "default_":
        counts, pads = [], []
        for d, k, s, r in zip(spatial, lengths, stride, dilations, strict=True):
            c = -(-d // s)
            total = max((c - 1) * s + (k - 1) * r + 1 - d, 0)
            half = total // 2
            upper = at["padding_mode"] == "same_upper"
            pads.append((half, total - half) if upper else (total - half, half))
            counts.append(c)
    else:
        pads, counts = both_pads(at.get("padding", [0] * n), n), []
        for d, k, s, r, (b, a) in zip(spatial, lengths, stride, dilations, pads, strict=True):
            c = 0
            while c * s + (k - 1) * r < d + a + b:  # the window ends inside
                c += 1
            if at.get("ceil_mode") and (c - 1) * s + (k - 1) * r + 1 < d + a + b and c * s < d + b:
                c += 1
            counts.append(c)
    for place in np.ndindex(*counts):
        cells = []
        for offset in itertools.product(*(range(k) for k in lengths)):
            at_input = [
                p * s + o * r - b
                for p, s, o, r, (b, _) in zip(place, stride, offset, dilations, pads, strict=True)
            ]
            if all(-b <= i < d + a for i, d, (b, a) in zip(at_input, spatial, pads, strict=True)):
                cells.append(at_input)
        yield counts, place, cells


def pool_by_loops(x, at):
    n = x.ndim - 2
    spatial, out = x.shape[2:], None
    for counts, place, cells in window_cells(x, at, n):
        if out is None:
            out = np.zeros((*x.shape[:2], *counts))
        inside = [c for c in cells if all(0 <= i < d for i, d in zip(c, spatial, strict=True))]
        values = np.stack([x[(..., *c)].astype(np.float64) for c in inside])
        mode, p = at.get("mode", "average"), at.get("lp_order", 2)
        if mode == "max":
            found = values.max(0)
        elif mode == "average":
            found = values.sum(0) / (len(cells) if at.get("count_include_pad") else len(inside))
            found = np.trunc(found) if x.dtype.kind == "i" else found
        elif p == 0:
            found = (values != 0).sum(0)
        else:
            found = (np.abs(values) ** p).sum(0) ** (1 / p)
        out[(slice(None), slice(None), *place)] = found
    return out


@pytest.mark.parametrize(("operands", "at"), POOLINGS)
def test_pooling_by_loops(operands, at):
    (x,) = operands
    got = evaluate("pooling", x, **at)
    if at.get("channels_last"):
        x, got = np.moveaxis(x, -1, 1), np.moveaxis(got, -1, 1)
    if not x.size:
        assert not got.size
        return
    close(got.astype(np.float64), pool_by_loops(x, at), 1e-3 if x.dtype == np.float16 else 1e-5)


@pytest.mark.parametrize(("operands", "at"), POOLINGS)
def test_pooling_against_onnxruntime(operands, at):
    (x,) = operands
    mode = at.get("mode", "average")
    n = x.ndim - 2
    if x.dtype.kind == "i" or x.dtype == np.float16 or at.get("lp_order") == 0 or not x.size:
        pytest.skip("not a type or norm of ONNX Runtime")
    if at.get("channels_last"):
        pytest.skip("channels first only in ONNX")
    op = {"average": "AveragePool", "max": "MaxPool", "lpnorm": "LpPool"}[mode]
    more = {"p": at.get("lp_order", 2)} if mode == "lpnorm" else {}
    if at.get("dyn_global"):
        want = run_node("Global" + op, x, **more)
    else:
        if mode == "average":
            more["count_include_pad"] = int(at.get("count_include_pad", False))
        want = run_node(
            op,
            x,
            kernel_shape=at.get("lengths", [1] * n),
            dilations=at.get("dilations", [1] * n),
            ceil_mode=int(at.get("ceil_mode", False)),
            opset=22,
            **onnx_window(at, n),
            **more,
        )
    close(evaluate("pooling", x, **at), want)


def test_resnet_layers_take_seconds_not_minutes():
    import time

    rng = np.random.default_rng(3)
    layers = [(64, 64, 56, 3), (256, 64, 56, 1), (128, 128, 28, 3), (512, 512, 7, 3)]
    started = time.perf_counter()
    for c, o, size, k in layers:
        x = rng.standard_normal((1, c, size, size)).astype(np.float32)
        w = rng.standard_normal((o, c, k, k)).astype(np.float32)
        OPS["convolution"].reference(x, w, padding=[k // 2, k // 2])
    # 0.1 s on an idle core: by loops it would be minutes
    assert time.perf_counter() - started < 10
