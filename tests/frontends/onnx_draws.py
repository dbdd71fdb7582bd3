"""Random nodes of ai.onnx: each function draws one case, valid and within what its oracle does.

Where onnxruntime departs from the operator's text the oracle is onnx.reference; the reason stands
at the case.
"""

from __future__ import annotations

from typing import Any

import contrib_cases
import numpy as np
from contrib_cases import Draws

ORT, REFERENCE = "onnxruntime", "onnx.reference"
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def case(op: str, *inputs: Any, opset: int, outputs: Any = 1, **more: Any) -> contrib_cases.Case:
    """A node of ai.onnx; what is not a field of Case is an attribute."""
    fields = {k: more.pop(k) for k in ("constants", "oracle", "tol", "off_by_one") if k in more}
    given = list(inputs)
    while given and given[-1] is None:
        given.pop()
    return contrib_cases.Case(op, given, more, outputs, domain="", opset=opset, **fields)


def sizes(d: Draws, n: int, low: int, high: int) -> list[int]:
    return [d.size(low, high) for _ in range(n)]


def maybe(d: Draws, share: float = 0.5, **attributes: Any) -> dict[str, Any]:
    return attributes if d.coin(share) else {}


# ---- windows -----------------------------------------------------------------------------------


def conv_transpose(d: Draws) -> Any:
    n, group = d.pick(1, 2, 2, 3), d.pick(1, 1, 2, 3)
    channels, out = group * d.size(1, 2), d.size(1, 2)
    dims, kernel = sizes(d, n, 1, 5), sizes(d, n, 1, 3)
    stride = sizes(d, n, 1, 3) if d.coin(0.7) else [1] * n
    dilation = sizes(d, n, 1, 2) if d.coin(0.4) else [1] * n
    window = [(k - 1) * r + 1 for k, r in zip(kernel, dilation, strict=True)]
    extra = [d.size(0, s - 1) for s in stride] if d.coin(0.4) else [0] * n
    more: dict[str, Any] = {"strides": stride, "dilations": dilation, "output_padding": extra}
    how, oracle = d.pick("pads", "SAME_UPPER", "SAME_LOWER", "VALID", "shape"), ORT
    if how == "pads":
        more["pads"] = [d.size(0, w // 2) for w in window * 2]
    elif how == "shape":
        full = [s * (i - 1) + e + w for s, i, e, w in zip(stride, dims, extra, window, strict=True)]
        more["output_shape"] = [max(1, f - d.size(0, 2)) for f in full]
        more |= maybe(d, auto_pad=d.pick("SAME_UPPER", "SAME_LOWER"))
    else:
        more["auto_pad"] = how
    if how.startswith("SAME") and any(s > w for s, w in zip(stride, window, strict=True)):
        # onnxruntime does not give input * stride elements; the reference cannot do groups
        oracle, channels, group = REFERENCE, d.size(1, 2), 1
    arrays = [d.floats(d.size(1, 2), channels, *dims), d.floats(channels, out, *kernel)]
    bias = d.floats(out * group) if d.coin() else None
    return case("ConvTranspose", *arrays, bias, opset=22, group=group, oracle=oracle, **more)


def pool(d: Draws) -> Any:
    op, n, opset = d.pick("AveragePool", "MaxPool", "LpPool"), d.pick(1, 2, 2, 3), 22
    dims, kernel = sizes(d, n, 1, 7), sizes(d, n, 1, 5)
    stride = sizes(d, n, 1, 3)
    more: dict[str, Any] = {"kernel_shape": kernel, "strides": stride}
    dilation = sizes(d, n, 1, 2) if d.coin(0.3) else [1] * n
    window = [(k - 1) * r + 1 for k, r in zip(kernel, dilation, strict=True)]
    if d.coin():
        more["pads"] = [d.size(0, k - 1) for k in kernel * 2]
        more |= maybe(d, ceil_mode=1)
    pads = more.get("pads", [0] * 2 * n)
    dims = [max(i, w - p - q) for i, w, p, q in zip(dims, window, pads[:n], pads[n:], strict=True)]
    outputs = 1
    if op == "AveragePool":
        more |= maybe(d, count_include_pad=1)
    elif op == "LpPool":
        more["p"] = d.size(1, 3)
    else:
        more |= maybe(d, storage_order=1)
        outputs = d.size(1, 2)
    x = d.floats(d.size(1, 2), d.size(1, 2), *dims)
    return case(op, x, opset=opset, outputs=outputs, dilations=dilation, **more)


def deform_conv(d: Draws) -> Any:
    group, offsets, channels = d.pick(1, 2), d.pick(1, 2), 2 * d.size(1, 2)
    out, batch, dims, kernel = (
        group * d.size(1, 2),
        d.size(1, 2),
        sizes(d, 2, 5, 7),
        sizes(d, 2, 1, 3),
    )
    stride, dilation, pads = sizes(d, 2, 1, 2), sizes(d, 2, 1, 2), sizes(d, 4, 0, 2)
    moved = [
        (n + p + q - (k - 1) * r - 1) // s + 1
        for n, p, q, k, r, s in zip(dims, pads[:2], pads[2:], kernel, dilation, stride, strict=True)
    ]
    taps = offsets * kernel[0] * kernel[1]
    x, w = d.floats(batch, channels, *dims), d.floats(out, channels // group, *kernel)
    return case(
        "DeformConv", x, w, d.floats(batch, 2 * taps, *moved, scale=1.5),
        d.floats(out) if d.coin() else None, d.floats(batch, taps, *moved) if d.coin() else None,
        opset=22, group=group, offset_group=offsets, strides=stride, dilations=dilation, pads=pads,
        tol=1e-4,
    )  # fmt: skip


def depth_to_space(d: Draws) -> Any:
    block, n = d.size(1, 3), d.size(1, 2)
    if d.coin():
        x = d.floats(n, block * block * d.size(1, 3), *sizes(d, 2, 1, 3))
        return case("DepthToSpace", x, opset=13, blocksize=block, mode=d.pick("DCR", "CRD"))
    x = d.floats(n, d.size(1, 3), block * d.size(1, 3), block * d.size(1, 3))
    return case("SpaceToDepth", x, opset=13, blocksize=block)


# ---- sampling ----------------------------------------------------------------------------------


def resize(d: Draws) -> Any:
    """The oracle is onnx.reference: onnxruntime takes few ranks, and the roi of two axes only.

    The reference counts a size before it is rounded, and one element as -0.5 (the text says 0): no
    such are drawn. test_interpolation.py compares them with onnxruntime.
    """
    mode, rank = d.pick("nearest", "linear", "cubic"), d.size(2, 4)
    dims, axes = sizes(d, rank, 1, 6), list(range(rank))
    more: dict[str, Any] = {"mode": mode}
    more["coordinate_transformation_mode"] = how = d.pick(
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
        "half_pixel_symmetric",
    )  # fmt: skip
    if mode == "nearest":
        more["nearest_mode"] = d.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    else:
        more |= maybe(d, 0.4, antialias=1)
    if mode == "cubic":
        more |= maybe(d, 0.4, cubic_coeff_a=-0.5) | maybe(d, 0.4, exclude_outside=1)
    if d.coin():
        axes = sorted(int(a) for a in d.np.permutation(rank)[: d.size(1, rank)])
        more["axes"] = axes
    roi = None
    exact = how in ("align_corners", "tf_crop_and_resize")
    least = 2 if how == "pytorch_half_pixel" else 1
    if how == "tf_crop_and_resize":
        roi = np.concatenate([d.np.random(len(axes)) * 0.4, 0.6 + d.np.random(len(axes)) * 0.4])
        roi = roi.astype(np.float32)
        more["extrapolation_value"] = 7.0
    if d.coin():
        if not exact and least == 1:
            more |= maybe(d, 0.4, keep_aspect_ratio_policy=d.pick("not_larger", "not_smaller"))
        what = [None, d.ints(least, 9, len(axes), dtype=np.int64)]
    else:
        factors = [d.pick(0.5, 0.6, 0.8, 1, 1.5, 2, 2.3, 3) for _ in axes]
        what = [
            np.array(
                [
                    f if dims[a] * f >= least and not (exact and dims[a] * f % 1) else 1
                    for f, a in zip(factors, axes, strict=True)
                ],
                np.float32,
            )
        ]
    return case(
        "Resize", d.floats(*dims), roi, *what, opset=19, constants=(1, 2, 3), oracle=REFERENCE,
        tol=2e-5, **more,
    )  # fmt: skip


def grid_sample(d: Draws) -> Any:
    n = d.pick(2, 2, 3)
    mode = d.pick("linear", "nearest", "cubic" if n == 2 else "linear")
    padding = d.pick("zeros", "border", "reflection")
    batch = d.size(1, 2)
    grid = (d.np.random((batch, *sizes(d, n, 1, 4), n)) * 3 - 1.5).astype(np.float32)
    return case(
        "GridSample", d.floats(batch, d.size(1, 2), *sizes(d, n, 1, 5)), grid, opset=20, mode=mode,
        padding_mode=padding, align_corners=d.size(0, 1), tol=1e-4,
    )  # fmt: skip


def roi_align(d: Draws) -> Any:
    batch, h, w, n = d.size(1, 2), d.size(2, 7), d.size(2, 7), d.size(1, 4)
    start = d.np.random((n, 2)) * [w, h]
    rois = np.concatenate([start, start + d.np.random((n, 2)) * [w, h]], 1).astype(np.float32)
    return case(
        "RoiAlign", d.floats(batch, d.size(1, 3), h, w), rois, d.ints(0, batch, n, dtype=np.int64),
        opset=16, mode=d.pick("avg", "max"), output_height=d.size(1, 4), output_width=d.size(1, 4),
        sampling_ratio=d.size(0, 3), spatial_scale=d.pick(1.0, 0.5, 2.0),
        coordinate_transformation_mode=d.pick("half_pixel", "output_half_pixel"), tol=1e-4,
    )  # fmt: skip


# ---- cutting and joining -----------------------------------------------------------------------


def pad(d: Draws) -> Any:
    rank = d.size(1, 4)
    dims, mode = sizes(d, rank, 2, 5), d.pick("constant", "reflect", "edge", "wrap")
    axes = [int(a) for a in d.np.permutation(rank)[: d.size(1, rank)]]
    low = -1 if d.coin(0.4) and mode != "reflect" else 0
    pads = [d.size(low, dims[a] - 1 if mode == "reflect" else 3) for a in axes * 2]
    dtype = d.pick(np.float32, np.float64, np.int32, np.int64)
    value = np.array(5, dtype) if mode == "constant" and d.coin() else None
    return case(
        "Pad", d.floats(*dims, scale=10).astype(dtype), np.array(pads), value, np.array(axes),
        opset=19, mode=mode, constants=d.pick((), (1, 2, 3)),
    )  # fmt: skip


def slice_(d: Draws) -> Any:
    """A backwards end of INT_MAX is the last element in the text, the first in onnxruntime."""
    rank = d.size(1, 4)
    dims = sizes(d, rank, 1, 6)
    axes = [int(a) for a in d.np.permutation(rank)[: d.size(1, rank)]]
    steps = [d.pick(1, 1, 2, 3, -1, -2, -3, 7) for _ in axes]
    far = (-(2**31), -(2**63), -100, 100)

    def bound(axis: int, step: int) -> int:
        if d.coin(0.25):
            return d.pick(*far, *((2**31 - 1, 2**63 - 1) if step > 0 else ()))
        return d.size(-dims[axis] - 2, dims[axis] + 2)

    starts, ends = ([bound(a, s) for a, s in zip(axes, steps, strict=True)] for _ in range(2))
    return case(
        "Slice", d.floats(*dims), *(np.array(v, np.int64) for v in (starts, ends, axes, steps)),
        opset=13, constants=d.pick((), (1, 2, 3, 4)),
    )  # fmt: skip


def gather(d: Draws) -> Any:
    rank = d.size(1, 3)
    dims, axis = sizes(d, rank, 1, 5), d.size(0, rank - 1)
    x = d.floats(*dims).astype(d.pick(np.float32, np.float64, np.int64, np.bool_))
    kind, at = d.pick(np.int32, np.int64), d.pick(axis, axis - rank)
    if d.coin():
        own = [d.size(1, 6) if i == axis else d.size(1, n) for i, n in enumerate(dims)]
        index = d.ints(-dims[axis], dims[axis], *own, dtype=kind)
        return case("GatherElements", x, index, opset=13, axis=at)
    index = d.ints(-dims[axis], dims[axis], *sizes(d, d.size(0, 2), 1, 3), dtype=kind)
    return case("Gather", x, index, opset=13, axis=at)


def scatter_elements(d: Draws) -> Any:
    rank = d.size(1, 3)
    dims, axis = sizes(d, rank, 1, 5), d.size(0, rank - 1)
    dtype = d.pick(np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8)
    own = [d.size(1, n) for n in dims]
    reduction = d.pick("none", "add", "mul", "max", "min")
    if reduction == "none":  # places that differ
        index = np.argsort(d.np.random(dims), axis)[tuple(slice(n) for n in own)]
        index = index - np.where(d.np.random(own) < 0.5, dims[axis], 0)
    else:
        index = d.ints(-dims[axis], dims[axis], *own)
    return case(
        "ScatterElements", d.floats(*dims, scale=5).astype(dtype),
        index.astype(d.pick(np.int32, np.int64)), d.floats(*own, scale=5).astype(dtype), opset=18,
        axis=d.pick(axis, axis - rank), reduction=reduction, constants=d.pick((), (1,)),
    )  # fmt: skip


def scatter_nd(d: Draws) -> Any:
    rank = d.size(1, 3)
    dims, depth = sizes(d, rank, 1, 5), d.size(1, rank)
    dtype = d.pick(np.float32, np.float64, np.int32, np.int64)
    places = int(np.prod(dims[:depth]))
    reduction = d.pick("none", "add", "mul", "max", "min")
    if reduction == "none":
        flat = d.np.permutation(places)[: d.size(1, places)]
    else:
        flat = d.ints(0, places, d.size(1, 4))
    index = np.stack(np.unravel_index(flat, dims[:depth]), -1)
    index = index - np.where(d.np.random(index.shape) < 0.4, np.array(dims[:depth]), 0)
    x, y = (d.floats(*v, scale=5).astype(dtype) for v in (dims, [len(flat), *dims[depth:]]))
    return case("ScatterND", x, index.astype(np.int64), y, opset=18, reduction=reduction)


def topk(d: Draws) -> Any:
    """Few values: ties go to the lower index."""
    rank = d.size(1, 3)
    dims, axis = sizes(d, rank, 1, 6), d.size(0, rank - 1)
    x = d.ints(-2, 3, *dims).astype(d.pick(np.float32, np.float64, np.int32, np.int64))
    k = np.array([d.size(1, dims[axis])])
    at, constants = d.pick(axis, axis - rank), d.pick((), (1,))
    return case(
        "TopK", x, k, opset=11, outputs=2, axis=at, largest=d.size(0, 1), constants=constants
    )


def einsum(d: Draws) -> Any:
    """Terms with repeated letters, an ellipsis, and results of any letters or none."""
    extent = {c: d.size(1, 3) for c in "ijkl"}
    dots = sizes(d, d.size(0, 2), 1, 3) if d.coin(0.4) else None
    terms, arrays, used = [], [], set()
    for _ in range(d.size(1, 3)):
        letters = [d.pick(*"ijkl") for _ in range(d.size(1, 3))]
        used |= set(letters)
        dims = [extent[c] for c in letters]
        if dots is not None:
            at = d.size(0, len(letters))
            letters[at:at], dims[at:at] = ["..."], dots
        terms.append("".join(letters))
        arrays.append(d.floats(*dims))
    equation = ",".join(terms)
    if d.coin(0.8):
        out = [c for c in sorted(used) if d.coin(0.6)]
        if dots is not None:
            at = d.size(0, len(out))
            out[at:at] = ["..."]
        equation += "->" + "".join(out)
    return case("Einsum", *arrays, opset=12, equation=equation, oracle=REFERENCE)


# ---- quantised ---------------------------------------------------------------------------------


def qlinear_conv(d: Draws) -> Any:
    group = d.pick(1, 1, 2)
    out, dims, kernel = group * d.size(1, 3), sizes(d, 2, 5, 7), sizes(d, 2, 1, 3)
    dtype = d.pick(np.uint8, np.int8)
    weights = d.pick(np.uint8, np.int8) if dtype is np.uint8 else np.int8
    per = (out,) if d.coin() else ()
    w_zero = np.zeros(per, weights) if weights is np.int8 else np.full(per, d.size(0, 255), weights)
    x, w = d.bytes(1, 2 * group, *dims, dtype=dtype), d.bytes(out, 2, *kernel, dtype=weights)
    scale = np.asarray(d.positive(*per) * 0.1)
    x_zero, y_zero = d.bytes(dtype=dtype), d.bytes(dtype=dtype)
    bias = d.ints(-1000, 1000, out) if d.coin() else None
    return case(
        "QLinearConv", x, np.float32(0.05), x_zero, w, scale, w_zero, np.float32(2), y_zero, bias,
        opset=10, group=group, strides=sizes(d, 2, 1, 2), dilations=sizes(d, 2, 1, 2),
        pads=sizes(d, 4, 0, 2), constants=(1, 2, 3, 4, 5, 6, 7, 8), off_by_one=True,
    )  # fmt: skip


def qlinear_matmul(d: Draws) -> Any:
    m, k, n = sizes(d, 3, 1, 6)
    dtype, weights = d.pick(np.uint8, np.int8), d.pick(np.uint8, np.int8)
    per = (n,) if d.coin() else ()
    x, w = d.bytes(2, m, k, dtype=dtype), d.bytes(k, n, dtype=weights)
    scale, zero = np.asarray(d.positive(*per) * 0.1), d.bytes(*per, dtype=weights)
    if dtype is np.int8:
        weights, w, zero = np.int8, d.bytes(k, n, dtype=np.int8), d.bytes(*per, dtype=np.int8)
    return case(
        "QLinearMatMul", x, np.float32(0.02), d.bytes(dtype=dtype), w, scale, zero, np.float32(0.3),
        d.bytes(dtype=dtype), opset=10, constants=(1, 2, 4, 5, 6, 7), off_by_one=True,
    )  # fmt: skip


def quantize(d: Draws) -> Any:
    """Per tensor, per channel and per block, each way, on any axis."""
    rank = d.size(2, 4)  # onnxruntime takes no blocks of a vector
    dims, axis = sizes(d, rank, 1, 6), d.size(0, rank - 1)
    dtype = d.pick(np.uint8, np.int8, np.int16, np.uint16)
    more: dict[str, Any] = {"axis": d.pick(axis, axis - rank)}
    own: list[int] = []
    how = d.pick("tensor", "axis", "block")
    if how == "axis":
        own = [dims[axis]]
    elif how == "block":
        block = d.size(1, dims[axis])
        dims[axis] = block * max(1, dims[axis] // block)
        own = [n // block if i == axis else n for i, n in enumerate(dims)]
        more["block_size"] = block
    scale, zero = np.asarray(d.positive(*own) * 0.4), d.bytes(*own, dtype=dtype)
    constants = d.pick((), (1, 2))
    if d.coin():
        x = d.floats(*dims, scale=9)
        return case("QuantizeLinear", x, scale, zero, opset=21, constants=constants, **more)
    x = d.bytes(*dims, dtype=dtype)
    return case("DequantizeLinear", x, scale, zero, opset=21, constants=constants, **more)


# ---- attention ---------------------------------------------------------------------------------


def attention(d: Draws) -> Any:
    """onnx.reference is wrong where a bool mask is smaller than what is_causal hides."""
    batch, heads, rep = d.size(1, 2), d.size(1, 3), d.pick(1, 1, 2, 3)
    rows, keys, size, values = d.size(1, 4), d.size(1, 5), d.pick(2, 4), d.pick(2, 4, 6)
    past = d.size(1, 3) if d.coin(0.4) else 0
    total, queries = keys + past, heads * rep
    more: dict[str, Any] = maybe(d, 0.3, softcap=2.0) | maybe(d, 0.3, scale=0.25)
    more["is_causal"] = d.size(0, 1)
    shapes = [(queries, rows, size), (heads, keys, size), (heads, keys, values)]
    if d.coin():
        more |= {"q_num_heads": queries, "kv_num_heads": heads}
        arrays = [d.floats(batch, n, h * s) for h, n, s in shapes]
    else:
        arrays = [d.floats(batch, h, n, s) for h, n, s in shapes]
    mask = None
    if d.coin(0.6):
        dims = d.pick(
            (rows, total), (1, rows, total), (queries, rows, total), (batch, 1, rows, total),
            (batch, queries, rows, total),
        )  # fmt: skip
        mask = d.np.random(dims) < 0.7 if d.coin() else d.floats(*dims)
        mask[..., 0] = 1  # a row that sees nothing is NaN in onnxruntime
    caches = [d.floats(batch, heads, past, s) for s in (size, values)] if past else [None] * 2
    outputs = 4 if d.coin(0.4) else 3 if past else 1
    if outputs == 4:
        more["qk_matmul_output_mode"] = d.size(0, 3)
    return case("Attention", *arrays, mask, *caches, opset=23, outputs=outputs, **more)


def rotary_embedding(d: Draws) -> Any:
    batch, heads, length, half = d.size(1, 2), d.size(1, 3), d.size(1, 4), d.size(1, 4)
    turned = 2 * d.size(1, half)
    more: dict[str, Any] = {"interleaved": d.size(0, 1)}
    if turned != 2 * half:
        more["rotary_embedding_dim"] = turned
    x = d.floats(batch, heads, length, 2 * half)
    if d.coin():
        x, more["num_heads"] = d.floats(batch, length, heads * 2 * half), heads
    if d.coin():
        tables = [d.floats(batch, length, turned // 2) for _ in range(2)]
        return case("RotaryEmbedding", x, *tables, opset=23, **more)
    tables = [d.floats(9, turned // 2) for _ in range(2)]
    places = d.ints(0, 9, batch, length, dtype=np.int64)
    return case("RotaryEmbedding", x, *tables, places, opset=23, **more)


# ---- numbers -----------------------------------------------------------------------------------


def reduce(d: Draws) -> Any:
    rank = d.size(0, 4)
    dims = sizes(d, rank, 1, 4)
    op = "Reduce" + d.pick(
        "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"
    )
    axes = [int(a) - rank * d.coin() for a in d.np.permutation(rank)[: d.size(0, rank)]]
    x = np.asarray(d.positive(*dims, dtype=d.pick(np.float32, np.float64)) * 3)
    return case(
        op, x, np.array(axes, np.int64) if axes or d.coin() else None, opset=18,
        keepdims=d.size(0, 1), noop_with_empty_axes=d.size(0, 1), constants=d.pick((), (1,)),
    )  # fmt: skip


def dft(d: Draws) -> Any:
    """Lengths that are primes, products, and cut or padded; numpy in f64 is the oracle."""
    n, parts, inverse = d.size(1, 36), d.size(1, 2), d.size(0, 1)
    dtype = d.pick(np.float32, np.float64)
    onesided = int(not inverse and parts == 1 and d.coin())
    axis = d.size(1, 2)
    dims = [2, n if axis == 1 else 3, n if axis == 2 else 3, parts]
    length = d.size(1, n + 3) if d.coin(0.3) else None

    def want(x: np.ndarray, points: Any = None, **_: Any) -> np.ndarray:
        z = x[..., 0].astype(np.complex128) + (1j * x[..., 1] if parts == 2 else 0)
        z = (np.fft.ifft if inverse else np.fft.fft)(
            z, None if points is None else int(points), axis
        )
        if onesided:
            z = z[:, : z.shape[1] // 2 + 1] if axis == 1 else z[:, :, : z.shape[2] // 2 + 1]
        return np.stack([z.real, z.imag], -1).astype(dtype)

    points = None if length is None else np.array(length, np.int64)
    made = case(
        "DFT", d.floats(*dims, dtype=dtype), points, opset=19, axis=axis, inverse=inverse,
        onesided=onesided, constants=(1,), tol=1e-6 if dtype is np.float32 else 1e-14,
    )  # fmt: skip
    made.want = want
    return made


DRAWS = (
    conv_transpose, pool, deform_conv, depth_to_space, resize, grid_sample, roi_align, pad, slice_,
    gather, scatter_elements, scatter_nd, topk, einsum, qlinear_conv, qlinear_matmul, quantize,
    attention, rotary_embedding, reduce, dft,
)  # fmt: skip
