"""Matmuls of any rank and einsum, for every file format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, broadcast_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import Extent, extents, product, reshaped, spread, zeros_of
from mgx_mlir.frontends.helpers import (
    axis_range,
    compare,
    same_extent,
    squeeze,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def matmul(b: Builder, x: Value, y: Value, op: str = "dot") -> Value:
    """Return numpy's matmul: vectors get an axis, batch dims broadcast."""
    dx, dy = b.dims(x), b.dims(y)
    if not dx or not dy:
        raise ModelError("expected tensors of rank 1 or more, got a scalar")
    drop = []
    if len(dx) == 1:
        x = unsqueeze(b, x, [0])
        drop.append(-2)
    if len(dy) == 1:
        y = unsqueeze(b, y, [1])
        drop.append(-1)
    x, y = batched(b, x, y)
    out = b.op(op, x, y)
    rank = len(b.dims(out))
    return squeeze(b, out, [rank + d for d in drop])


def batched(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Broadcast the batch dims of a dot's operands against each other."""
    dx, dy = b.dims(x), b.dims(y)
    if len(dx) == len(dy) and (len(dx) == 2 or (DYN not in (*dx, *dy) and dx[:-2] == dy[:-2])):
        return x, y
    rank = max(len(dx), len(dy))
    bx, by = dx[:-2], dy[:-2]
    if DYN in (*bx, *by) or (DYN in (*dx, *dy)):
        return _batched_dynamic(b, x, y, rank)
    batch = broadcast_dims(bx, by)
    return (
        b.multibroadcast(x, (*batch, *dx[-2:])),
        b.multibroadcast(y, (*batch, *dy[-2:])),
    )


def _batched_dynamic(b: Builder, x: Value, y: Value, rank: int) -> tuple[Value, Value]:
    ranks = {len(b.dims(x)), len(b.dims(y))}
    if len(ranks) == 1 and all(_same(b, x, y, i) for i in range(rank - 2)):
        return x, y

    def head(v: Value) -> Value:
        """Return the batch dims that the other operand broadcasts to, and two dims of 1.

        It is no slice of `v`, whose matrices may be empty.
        """
        return zeros_of(b, [*extents(b, v)[:-2], 1, 1], b.dtype(v))

    return b.broadcast(x, head(y))[0], b.broadcast(y, head(x))[0]


def _same(b: Builder, x: Value, y: Value, i: int) -> bool:
    return b.probe.same(x, i, y, i)


def squared_distances(b: Builder, x: Value, y: Value) -> Value:
    """Return the squared distance of each row of x and each row of y.

    It sums squared differences: |x|^2 - 2 x y^T + |y|^2 loses all digits for rows that lie far from
    0 and close together, and is NaN for infinite ones.
    """
    apart = b.sub(b.unsqueeze(x, axes=[1]), b.unsqueeze(y, axes=[0]))
    return b.squeeze(b.reduce_sum(b.mul(apart, apart), axes=[2]), axes=[2])


def einsum(b: Builder, xs: Sequence[Value], equation: str) -> Value:
    """Contract two operands at a time: labels of only one side are summed, the rest is a dot."""
    terms, out = parse_einsum(equation, [len(b.dims(x)) for x in xs])
    parts = _broadcast(b, [_diagonals(b, x, term) for x, term in zip(xs, terms, strict=True)])
    acc, labels = parts[0]
    for i, (y, other) in enumerate(parts[1:], 1):
        later = set(out) | {c for _, t in parts[i + 1 :] for c in t}
        acc, labels = _contract(b, acc, labels, y, other, later)
    gone = [i for i, c in enumerate(labels) if c not in out]
    if gone:
        acc = squeeze(b, b.reduce_sum(acc, axes=gone), gone)
        labels = [c for c in labels if c in out]
    if acc is xs[0] and labels == out:
        return acc
    return transpose(b, acc, [labels.index(c) for c in out])


def parse_einsum(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Return label lists of each operand and the result; an ellipsis becomes labels 0, 1, ..."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    sides = left.split(",")
    if len(sides) != len(ranks):
        raise ModelError(f"equation '{equation}' has {len(sides)} operands, got {len(ranks)}")
    terms = []
    for side, rank in zip(sides, ranks, strict=True):
        terms.append(_term(side, rank, equation))
    widest = max((sum(c.isdigit() for c in t) for t in terms), default=0)
    # right-aligned: the last ellipsis axis has the same label in every operand
    for t in terms:
        own = [i for i, c in enumerate(t) if c.isdigit()]
        for k, i in enumerate(own):
            t[i] = str(widest - len(own) + k)
    dots = [str(i) for i in range(widest)]
    if arrow:
        letters = right.replace("...", "")
        if not letters.isalpha() and letters:
            raise ModelError(f"equation '{equation}' has an invalid result")
        at = right.find("...")
        out = [*right[:at], *dots, *right[at + 3 :]] if at >= 0 else [*right]
        if at < 0 and widest:
            out = [*right]
    else:
        seen = [c for t in terms for c in t if not c.isdigit()]
        out = [*dots, *sorted(c for c in set(seen) if seen.count(c) == 1)]
    known = {c for t in terms for c in t}
    if any(c not in known for c in out) or len(set(out)) != len(out):
        raise ModelError(f"equation '{equation}' has an invalid result")
    return terms, out


def _term(side: str, rank: int, equation: str) -> list[str]:
    letters = side.replace("...", "")
    if (letters and not letters.isalpha()) or side.count("...") > 1 or not letters.isascii():
        raise ModelError(f"equation '{equation}' has an invalid operand '{side}'")
    at = side.find("...")
    missing = rank - len(letters)
    if missing < 0 or (at < 0 and missing):
        raise ModelError(f"equation '{equation}': operand '{side}' does not fit rank {rank}")
    if at < 0:
        return [*letters]
    return [*side[:at], *(str(i) for i in range(missing)), *side[at + 3 :]]


def _diagonals(b: Builder, x: Value, labels: list[str]) -> tuple[Value, list[str]]:
    """Reduce repeated labels of one operand to the diagonal, by a masked sum."""
    labels = list(labels)
    while len(set(labels)) < len(labels):
        j = next(i for i, c in enumerate(labels) if c in labels[:i])
        i = labels.index(labels[j])
        dims = b.dims(x)
        if DYN not in (dims[i], dims[j]) and dims[i] != dims[j]:
            raise ModelError(f"label '{labels[j]}' has extents {dims[i]} and {dims[j]}")
        x = same_extent(b, x, i, x, j, f"one extent for label '{labels[j]}'")
        if DYN not in (dims[i], dims[j]):
            limits.table((dims[i], dims[j]), "a diagonal")
        places = [axis_range(b, x, axis) for axis in (i, j)]
        rest = [range(1, len(dims) - axis) for axis in (i, j)]
        row, column = (unsqueeze(b, p, r) for p, r in zip(places, rest, strict=True))
        kept = b.where(compare(b, "equal", row, column), x, 0)
        x = squeeze(b, b.reduce_sum(kept, axes=[j]), [j])
        del labels[j]
    return x, labels


def _broadcast(b: Builder, parts: list[tuple[Value, list[str]]]) -> list[tuple[Value, list[str]]]:
    """Broadcast ellipsis axes of operands; which extents are 1 is known only at run time."""
    for i, (x, labels) in enumerate(parts):
        for y, others in parts[:i] + parts[i + 1 :]:
            shared = [c for c in labels if c.isdigit() and c in others]
            open_ = [c for c in shared if _undecided(b, x, labels.index(c), y, others.index(c))]
            if open_:
                sizes = extents(b, y)
                like = [sizes[others.index(c)] if c in open_ else 1 for c in labels]
                x = b.broadcast(x, zeros_of(b, like, b.dtype(x)))[0]
        parts[i] = x, labels
    return parts


def _undecided(b: Builder, x: Value, i: int, y: Value, j: int) -> bool:
    """Return whether it is unknown at import if one of two extents is 1 and the other not."""
    pair = b.dims(x)[i], b.dims(y)[j]
    return DYN in pair and 1 not in pair and not b.probe.same(x, i, y, j)


def _contract(
    b: Builder, x: Value, lx: list[str], y: Value, ly: list[str], later: set[str]
) -> tuple[Value, list[str]]:
    """Return the contraction of two operands as one batched dot; labels not in `later` are
    summed.
    """
    for labels, other in ((lx, ly), (ly, lx)):
        gone = [i for i, c in enumerate(labels) if c not in other and c not in later]
        if gone:
            v = x if labels is lx else y
            v = squeeze(b, b.reduce_sum(v, axes=gone), gone)
            left = [c for c in labels if c in other or c in later]
            if labels is lx:
                x, lx = v, left
            else:
                y, ly = v, left
    batch = [c for c in lx if c in ly and c in later]
    inner = [c for c in lx if c in ly and c not in later]
    rows = [c for c in lx if c not in ly]
    cols = [c for c in ly if c not in lx]
    size: dict[str, Extent] = {}
    for labels, v in ((lx, x), (ly, y)):
        for c, d in zip(labels, extents(b, v), strict=True):
            if c not in size or size[c] == 1 or (isinstance(d, int) and d != 1):
                size[c] = d
    if not inner and not all(isinstance(d, int) for d in size.values()):
        return _outer(b, x, lx, y, ly, [*batch, *rows, *cols])
    x = _spread(b, x, lx, [*batch, *rows, *inner], size)
    y = _spread(b, y, ly, [*batch, *inner, *cols], size)
    nb, lead = len(batch), [size[c] for c in batch]
    if len(inner) != 1 or len(rows) > 1 or len(cols) > 1 or DYN not in (*b.dims(x), *b.dims(y)):
        m, k, n = (product(b, [size[c] for c in part]) for part in (rows, inner, cols))
        x, y = reshaped(b, x, [*lead, m, k]), reshaped(b, y, [*lead, k, n])
        out = reshaped(b, b.dot(x, y), [*lead, *(size[c] for c in (*rows, *cols))])
        return out, [*batch, *rows, *cols]
    if not rows:
        x = unsqueeze(b, x, [nb])
    if not cols:
        y = unsqueeze(b, y, [nb + 1])
    out = b.dot(x, y)
    drop = ([nb] if not rows else []) + ([nb + 1] if not cols else [])
    return squeeze(b, out, drop), [*batch, *rows, *cols]


def _outer(
    b: Builder, x: Value, lx: list[str], y: Value, ly: list[str], order: list[str]
) -> tuple[Value, list[str]]:
    """Return the outer product of operands, each broadcast to the labels."""
    parts = []
    for v, labels in ((x, lx), (y, ly)):
        own = [c for c in order if c in labels]
        v = transpose(b, v, [labels.index(c) for c in own])
        parts.append(unsqueeze(b, v, [i for i, c in enumerate(order) if c not in labels]))
    return b.mul(*parts), order


def _spread(
    b: Builder, v: Value, labels: list[str], order: list[str], size: Mapping[str, Extent]
) -> Value:
    """Transpose to `order`; broadcast an extent of 1 that is larger in the other operand."""
    v = transpose(b, v, [labels.index(c) for c in order])
    wanted = [size[c] for c in order]
    if not any(d == 1 and w != 1 for d, w in zip(b.dims(v), wanted, strict=True)):
        return v
    return spread(b, v, wanted)
