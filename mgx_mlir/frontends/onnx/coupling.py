"""Class probabilities from pairwise probabilities, coupled as in libsvm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import BOOL, INT64
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends.helpers import compare, convert, greater_equal, number, slice_, unsqueeze
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.control import counted_loop
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_SWEEPS = 100  # most sweeps, as in libsvm


def coupled_probabilities(b: Builder, node: Node, pairs: Value, count: int) -> Value:
    """Return {N, count} probabilities; `pairs` {N, count (count - 1) / 2} are those of the first
    class of each pair.

    The second method of Wu, Lin and Weng: p minimises the sum of (r_ji p_i - r_ij p_j)^2, by sweeps
    over the classes until Q p is within 0.005 / count of its mean. A converged row stays unchanged,
    so that results do not depend on the other rows.
    """
    table = [[None] * count for _ in range(count)]  # r_ij, columns {N, 1}
    rows: list[list[Any]] = [list(r) for r in table]
    at = 0
    for i in range(count):
        for j in range(i + 1, count):
            rows[i][j] = slice_(b, pairs, [1], [at], [at + 1])
            rows[j][i] = b.sub(number(b, 1, pairs), rows[i][j])
            at += 1
    matrix: list[Value] = []  # the rows of Q, {N, count} each
    for i in range(count):
        squares = [b.mul(rows[j][i], rows[j][i]) for j in range(count) if j != i]
        own = squares[0]
        for s in squares[1:]:
            own = b.add(own, s)
        row = [own if j == i else b.neg(b.mul(rows[j][i], rows[i][j])) for j in range(count)]
        matrix.append(b.concat(row, axis=1))
    q = b.concat([unsqueeze(b, r, [1]) for r in matrix], axis=1)
    own = b.concat([slice_(b, r, [1], [i], [i + 1]) for i, r in enumerate(matrix)], axis=1)
    start = b.add(b.mul(own, 0), 1 / count)
    eye = np.eye(count, dtype=np.float32)

    def inside(arguments: Sequence[ir.Value]) -> list[Any]:
        p = arguments[2]
        qp = b.reduce_sum(b.mul(q, unsqueeze(b, p, [1])), axes=[2])
        qp = b.reshape(qp, dims=[0, count])
        total = b.reduce_sum(b.mul(p, qp), axes=[1])
        off = b.reduce_max(b.abs(b.sub(qp, total)), axes=[1])
        dynamic_rows = greater_equal(b, off, 0.005 / count)
        made = p
        for i in range(count):
            own_i, qp_i = (slice_(b, v, [1], [i], [i + 1]) for v in (own, qp))
            step = b.div(b.sub(total, qp_i), own_i)
            scale = b.add(step, 1)
            more = b.mul(step, b.add(b.mul(step, own_i), b.mul(qp_i, 2)))
            total = b.div(b.div(b.add(total, more), scale), scale)
            qp = b.div(b.add(qp, b.mul(step, matrix[i])), scale)
            made = b.div(b.add(made, b.mul(step, b.literal(eye[i : i + 1]))), scale)
        made = b.where(dynamic_rows, made, p)
        going = compare(b, "greater", b.reduce_sum(convert(b, dynamic_rows, INT64), axes=[0, 1]), 0)
        return [b.reshape(convert(b, going, BOOL), dims=[]), made]

    flags = [TensorType(INT64, ()), TensorType(BOOL, ())]
    count_, true = b.literal(np.int64(_SWEEPS)), b.literal(np.bool_(True))
    found = counted_loop(b, node, count_, true, [start], inside, flags)
    assert found is not None
    return found[0]
