"""com.microsoft: rotary embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import Dim, Sum, within
from mgx_mlir.frontends.helpers import (
    arange,
    convert,
    extent,
    known_extent,
    slice_,
    squeeze,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.attention import rotary_embedding
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"


def _heads(b: Builder, x: Value, cos: Value, num_heads: int, turned: int) -> int:
    """Return the number of heads of an input of rank 3; it is optional for a full rotation."""
    if num_heads:
        return num_heads
    hidden, half = b.dims(x)[2], b.dims(cos)[1]
    if turned or DYN in (hidden, half) or half == 0 or hidden % (2 * half):
        raise ModelError("expected num_heads with a partial rotation")
    return hidden // (2 * half)


@onnx_op("RotaryEmbedding", domain=MS)
def rotary(
    b: Builder,
    node: Node,
    x: Value,
    positions: Value,
    cos: Value,
    sin: Value,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Value:
    """Import RotaryEmbedding. One position is every row's first; else each token has its own.

    Positions of packed batches are not checked here, because their limits differ.
    """
    if scale != 1:
        raise NotSupported(f"scale {scale}")
    dims = b.dims(x)
    if len(dims) == 3:
        num_heads = _heads(b, x, cos, num_heads, rotary_embedding_dim)
    if len(b.dims(positions)) == 1:
        axis = 1 if len(dims) == 3 else 2
        length = dims[axis]
        places = arange(b, extent(b, x, axis) if length == DYN else length)
        first = Sum(1, ((cos, 0, 1), (x, axis, -1)), "the rows of cos_cache from the first one on")
        positions = within(b, positions, "position_ids", 0, first, computed=False)
        positions = unsqueeze(b, b.add(places, convert(b, positions, INT64)), [0])
    return rotary_embedding(
        b, node, x, cos, sin, positions, interleaved=interleaved, num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )  # fmt: skip


def _sections(sections: Sequence[int], layout: int) -> np.ndarray:
    """Return the position stream, of three, for each column of the caches."""
    limits.table((sum(sections),), "columns")
    if layout == 0:
        return np.repeat(np.arange(3), sections)
    out = np.zeros(sum(sections), np.int64)
    for stream in (1, 2):
        out[stream : sections[stream] * 3 : 3] = stream
    return out


@onnx_op("MRotaryEmbedding", domain=MS)
def m_rotary(
    b: Builder,
    node: Node,
    x: Value,
    positions: Value,
    cos: Value,
    sin: Value,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    mrope_layout: int = 0,
    mrope_section: Sequence[int],
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Value:
    """Import MRotaryEmbedding: three positions per token (time, height, width) rotate parts of the
    pairs.
    """
    if scale != 1:
        raise NotSupported(f"scale {scale}")
    sections = list(mrope_section)
    if len(sections) != 3 or min(sections) < 0 or mrope_layout not in (0, 1):
        raise ModelError(f"mrope_section {sections} with mrope_layout {mrope_layout}")
    cos, sin = (known_extent(b, v, 1, sum(sections), "a cache") for v in (cos, sin))
    half = b.dims(cos)[1]
    if half != sum(sections):
        raise ModelError(f"mrope_section {sections} does not fit caches of {half} columns")
    if len(b.dims(x)) == 3:
        num_heads = _heads(b, x, cos, num_heads, rotary_embedding_dim)
    streams = _sections(sections, mrope_layout)
    rows = Dim(cos, 0, "the rows of cos_cache")
    positions = within(b, positions, "position_ids", 0, rows, computed=False)

    def angles(cache: Value) -> Value:
        """Return {batch, length, half}: each column from the row at its own stream's position."""
        out: Value | None = None
        for i in range(3):
            place = squeeze(b, slice_(b, positions, [0], [i], [i + 1]), [0])
            rows = b.gather(cache, place, axis=0)
            out = rows if out is None else b.where(b.literal(streams == i), rows, out)
        assert out is not None
        return out

    return rotary_embedding(
        b, node, x, angles(cos), angles(sin), interleaved=interleaved, num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )  # fmt: skip


@onnx_op("GemmaRotaryEmbedding", domain=MS)
def gemma_rotary(
    b: Builder, node: Node, angles: Value, q: Value, q_rot: Value, k: Value, k_rot: Value
) -> Outputs:
    """Import GemmaRotaryEmbedding: q cos + q_rot sin, and for k; cos and sin are rounded to q's
    type.
    """
    dtype = b.dtype(q)
    cos, sin = (unsqueeze(b, convert(b, f(angles), dtype), [1]) for f in (b.cos, b.sin))

    def turned(x: Value, other: Value) -> Value:
        kind = wide(dtype)
        x, other, c, s = (convert(b, v, kind) for v in (x, other, cos, sin))
        return convert(b, b.add(b.mul(x, c), b.mul(other, s)), dtype)

    return turned(q, q_rot), turned(k, k_rot)
