"""com.microsoft: matmuls and gathers with weights of 2, 4 and 8 bits in blocks."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from mgx_mlir.core import literals
from mgx_mlir.core.dtypes import FLOAT, INT32, INT64, UINT8, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, product, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.helpers import (
    axis_in,
    compare,
    convert,
    greater_equal,
    number,
    reshape,
    slice_,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.contrib_fused import NEEDED, activated, present
from mgx_mlir.frontends.onnx.ops.contrib_norm import rms_norm
from mgx_mlir.frontends.onnx.ops.linear import matmul
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"
_HALVES = 2  # least accuracy_level that allows f16


def unpacked(b: Builder, x: Value, bits: int) -> Value:
    """Return the `bits`-wide numbers of the bytes along the last axis, the lowest bits first."""
    if bits == 8:
        return x
    if bits == 4:
        return b.unpack_int4(x, axis=-1)
    if bits != 2:
        raise NotSupported(f"weights of {bits} bits")
    rank = len(b.dims(x))
    whole = unsqueeze(b, convert(b, x, INT32), [rank])
    steps = b.literal(np.array([1, 4, 16, 64], np.int32))
    parts = convert(b, b.mod(b.div(whole, steps), number(b, 4, whole)), UINT8)
    dims = b.dims(x)
    return b.reshape(parts, dims=[*[0] * (rank - 1), dims[-1] * 4])


def expanded(b: Builder, codes: Value, scales: Value, zeros: Value | int, kind: DType) -> Value:
    """(codes - zeros) scales in `kind`; codes {.., blocks, size}, the others {.., blocks}."""
    rank = len(b.dims(codes))
    value = convert(b, codes, kind)
    if isinstance(zeros, int):
        value = b.sub(value, zeros) if zeros else value
    else:
        value = b.sub(value, unsqueeze(b, convert(b, zeros, kind), [rank - 1]))
    return b.mul(value, unsqueeze(b, convert(b, scales, kind), [rank - 1]))


def _zeros(b: Builder, zeros: Value | None, rows: int, blocks: int, bits: int) -> Value | int:
    """Return zero points {rows, blocks}: from packed bytes, or from a plain tensor."""
    if zeros is None:
        return 1 << (bits - 1)
    if b.dtype(zeros) is not UINT8:
        return reshape(b, zeros, [rows, blocks])
    packed = reshape(b, zeros, [rows, -(-blocks * bits // 8)])
    return slice_(b, unpacked(b, packed, bits), [1], [0], [blocks])


def weights(
    b: Builder,
    packed: Value,
    scales: Value,
    zeros: Value | None,
    groups: Value | None,
    *,
    k: int,
    n: int,
    bits: int,
    block_size: int,
    kind: DType,
) -> Value:
    """Return the matrix {n, k} of MatMulNBits in `kind`. `groups` has the block of each column."""
    blocks = -(-k // block_size) if block_size > 0 else 0
    if blocks < 1 or block_size * bits % 8:
        raise ModelError(f"blocks of {block_size} do not fit {k} inputs of {bits} bits")
    form = [n, blocks, block_size * bits // 8]
    if DYN not in b.dims(packed) and product(b.dims(packed)) != product(form):
        got = show_dims(b.dims(packed))
        raise ModelError(f"weights of {n} rows and {k} inputs expected dims {form}, got {got}")
    codes = unpacked(b, reshape(b, packed, form), bits)
    scales = reshape(b, scales, [n, blocks])
    points = _zeros(b, zeros, n, blocks, bits)
    if groups is not None:
        flat = slice_(b, reshape(b, codes, [n, blocks * block_size]), [1], [0], [k])
        places = convert(b, groups, INT64)
        factor = b.gather(convert(b, scales, kind), places, axis=1)
        shift = points if isinstance(points, int) else b.gather(points, places, axis=1)
        shift = shift if isinstance(shift, int) else convert(b, shift, kind)
        return b.mul(b.sub(convert(b, flat, kind), shift), factor)
    full = expanded(b, codes, scales, points, kind)
    return slice_(b, reshape(b, full, [n, blocks * block_size]), [1], [0], [k])


def _in_half(b: Builder, scales: Value) -> Value:
    """Return constant scales as f16, if they are normal f16 numbers."""
    if not literals.is_literal(scales) or b.dtype(scales) is not FLOAT:
        return scales
    numbers = literals.array_of(scales.owner)
    info, size = np.finfo(np.float16), np.abs(numbers)
    if not np.all((size <= info.max) & ((size >= info.smallest_normal) | (size == 0))):
        return scales
    return b.literal(numbers.astype(np.float16).astype(np.float32))


@onnx_op("MatMulNBits", domain=MS)
def matmul_nbits(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    scales: Value,
    zeros: Value | None = None,
    groups: Value | None = None,
    bias: Value | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Value:
    """Import MatMulNBits: x w^T + bias; x is never rounded. Accuracy levels from 2 on allow
    rounding it to f16, bf16 or 8 bits; there scales are stored in f16, which changes the result
    less, and takes half their bytes.
    """
    if weight_prepacked:
        raise NotSupported("weight_prepacked")
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    if accuracy_level >= _HALVES:
        scales = _in_half(b, scales)
    matrix = weights(
        b, w, scales, zeros, groups, k=K, n=N, bits=bits, block_size=block_size, kind=kind
    )
    out = matmul(b, convert(b, x, kind), transpose(b, matrix, [1, 0]))
    if bias is not None:
        out = b.add(out, convert(b, bias, kind))
    return convert(b, out, dtype)


def _normed(
    b: Builder, x: Value, skip: Value | None, scale: Value | None, epsilon: float
) -> tuple[Value, Value]:
    """Return the input after its RMS normalisation, if it has one, and the sum with `skip`."""
    total = x if skip is None else b.add(x, skip)
    return (total if scale is None else rms_norm(b, total, scale, -1, epsilon)[0]), total


@onnx_op("MatMulNBitsMlp", domain=MS)
def matmul_nbits_mlp(
    b: Builder,
    node: Node,
    x: Value,
    skip: Value | None = None,
    norm_scale: Value | None = None,
    gate: Value = NEEDED,
    gate_scales: Value = NEEDED,
    gate_bias: Value | None = None,
    up: Value = NEEDED,
    up_scales: Value = NEEDED,
    up_bias: Value | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    activation: str,
    bits: int = 4,
    block_size: int,
    epsilon: float = 1e-5,
) -> Outputs:
    """Import MatMulNBitsMlp: activation(x gate^T) * (x up^T) of a normalised x."""
    present(gate_B=gate, gate_scales=gate_scales, up_B=up, up_scales=up_scales)
    y, total = _normed(b, x, skip, norm_scale, epsilon)
    form: dict[str, int] = {
        "K": K, "N": N, "bits": bits, "block_size": block_size, "accuracy_level": accuracy_level,
    }  # fmt: skip
    left = matmul_nbits(b, node, y, gate, gate_scales, None, None, gate_bias, **form)
    right = matmul_nbits(b, node, y, up, up_scales, None, None, up_bias, **form)
    name = {"silu": "SiLU", "swish": "SiLU", "gelu": "Gelu", "relu": "Relu"}
    return b.mul(activated(b, left, name.get(activation, activation), ()), right), total


@onnx_op("MatMulNBitsQkv", domain=MS)
def matmul_nbits_qkv(
    b: Builder,
    node: Node,
    x: Value,
    skip: Value | None = None,
    norm_scale: Value = NEEDED,
    q: Value = NEEDED,
    q_scales: Value = NEEDED,
    q_bias: Value | None = None,
    k: Value = NEEDED,
    k_scales: Value = NEEDED,
    k_bias: Value | None = None,
    v: Value = NEEDED,
    v_scales: Value = NEEDED,
    v_bias: Value | None = None,
    *,
    K: int,
    Nkv: int,
    Nq: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    epsilon: float = 1e-6,
) -> Outputs:
    """Import MatMulNBitsQkv: normalise, then multiply by three low-bit matrices."""
    present(norm_scale=norm_scale, q_B=q, q_scales=q_scales, k_B=k, k_scales=k_scales)
    present(v_B=v, v_scales=v_scales)
    y, total = _normed(b, x, skip, norm_scale, epsilon)
    parts = ((q, q_scales, q_bias, Nq), (k, k_scales, k_bias, Nkv), (v, v_scales, v_bias, Nkv))
    form: dict[str, int] = {
        "K": K, "bits": bits, "block_size": block_size, "accuracy_level": accuracy_level,
    }  # fmt: skip
    products = [
        matmul_nbits(b, node, y, w, scales, None, None, bias, N=n, **form)
        for w, scales, bias, n in parts
    ]
    return *products, total


# ---- 4-bit floats ------------------------------------------------------------------------------

# values of the 16 codes, as bitsandbytes defines them
_FP4 = np.array(
    [0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4], np.float32
)  # the upper half of the codes are their negatives
_TABLES = {
    0: np.concatenate([_FP4, -_FP4]),
    1: np.array(
        [
            -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
            -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
            0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
            0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
        ],
        np.float32,
    ),
}  # fmt: skip


@onnx_op("MatMulBnb4", domain=MS)
def matmul_bnb4(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    absmax: Value,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,
) -> Value:
    """Import MatMulBnb4: look codes up in a table; the first code of a byte is in its upper
    half.
    """
    if quant_type not in _TABLES:
        raise ModelError(f"attribute 'quant_type' expected 0 or 1, got {quant_type}")
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    count = N * K
    pairs = b.unpack_int4(reshape(b, w, [-(-count // 2), 1]), axis=-1)
    pairs = b.concat([slice_(b, pairs, [1], [i], [i + 1]) for i in (1, 0)], axis=1)
    codes = slice_(b, reshape(b, pairs, [-(-count // 2) * 2]), [0], [0], [count])
    table = b.literal(_TABLES[quant_type].astype(kind.np))
    values = b.gather(table, convert(b, codes, INT32), axis=0)
    scales = convert(b, absmax, kind)
    blocks = -(-count // block_size)
    if blocks * block_size != count:
        limits.table((count,), "places")
        where = np.arange(count) // block_size
        matrix = b.mul(values, b.gather(scales, b.literal(where.astype(np.int32)), axis=0))
    else:
        matrix = b.mul(reshape(b, values, [blocks, block_size]), reshape(b, scales, [blocks, 1]))
    matrix = reshape(b, matrix, [N, K])
    matrix = transpose(b, matrix, [1, 0]) if transB else matrix
    return convert(b, matmul(b, convert(b, x, kind), matrix), dtype)


# ---- gather -----------------------------------------------------------------------------------


@onnx_op("GatherBlockQuantized", domain=MS)
def gather_block_quantized(
    b: Builder,
    node: Node,
    data: Value,
    indices: Value,
    scales: Value,
    zeros: Value | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Value:
    """Import GatherBlockQuantized: gather rows, then scale them; an index out of range gives
    zeros.
    """
    dims, rank = b.dims(data), len(b.dims(data))
    along, blocked = axis_in(gather_axis, rank), axis_in(quantize_axis, rank)
    if DYN in dims or block_size < 1:
        raise NotSupported("data of dynamic dims, or one block for a whole axis")
    if b.dtype(data).is_float:
        raise NotSupported(f"data of {b.dtype(data)}")
    held = node.kind(data)
    if held not in (0, TensorProto.INT4, TensorProto.UINT4) or (not held and bits not in (2, 4, 8)):
        raise NotSupported("data of these types")
    per_byte = 1 if held else 8 // bits
    extent = dims[along]
    index = convert(b, indices, INT64)
    inside = b.logical_and(greater_equal(b, index, -extent), compare(b, "less", index, extent))
    index = b.where(compare(b, "less", index, 0), b.add(index, extent), index)
    index = b.min(b.max(index, 0), extent - 1)
    more = len(b.dims(indices)) - 1  # axes that the gather adds
    codes = b.gather(data, index, axis=along)
    if per_byte > 1:
        codes = unpacked(b, codes, bits)
        if zeros is not None:
            columns = b.dims(scales)[-1]
            zeros = slice_(b, unpacked(b, zeros, bits), [rank - 1], [0], [columns])
    kind = wide(b.dtype(scales))

    def looked_up(v: Value) -> Value:
        if along != blocked:
            v = b.gather(v, index, axis=along)
            axis = blocked + (more if blocked > along else 0)
            size, have = b.dims(codes)[axis], b.dims(v)[axis]
            limits.table((size,), "places")
            place = np.minimum(np.arange(size) // block_size, have - 1)
            return convert(b, b.gather(v, b.literal(place), axis=axis), kind)
        return convert(b, b.gather(v, b.div(index, block_size), axis=along), kind)

    value = convert(b, codes, kind)
    if zeros is not None:
        value = b.sub(value, looked_up(zeros))
    elif not held:
        value = b.sub(value, 1 << (bits - 1))
    value = b.mul(value, looked_up(scales))
    hide = unsqueeze(b, inside, range(len(b.dims(inside)), len(b.dims(inside)) + rank - along - 1))
    return convert(b, b.where(hide, value, 0), b.dtype(scales))
