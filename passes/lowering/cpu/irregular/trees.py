"""Sums over decision trees as one CPU kernel: eight trees at once, and through them row after row.

A step of a walk waits for three dependent loads; interleaved walks hide that latency.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.trees import TreeSums
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.sites import by_form
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.select import KernelRule
from mgx_mlir.passes.lowering.tree_walks import Trees, walked

_TYPES = (dtypes.FLOAT, dtypes.DOUBLE)
_TOGETHER = 8
_WIDE = 16  # outputs of one vector
_MOST = 4  # vectors of outputs: their sums stay in registers
_STEPS = 1 << 14  # steps of walks in a workgroup; fewer do not pay for its start


def refusal(op: TreeSums) -> str | None:
    """Return why the kernel does not take an op, None if it does."""
    x, nodes, roots, weights = (TensorType.of(v) for v in (op.x, op.nodes, op.roots, op.weights))
    if x.dtype not in _TYPES:
        return f"it compares {x.dtype}"
    known = (x.dims[1], *nodes.dims, *roots.dims, *weights.dims)
    if DYN in known:
        return "the size of its trees is not known"
    if 0 in (*x.dims, *known):
        return "it has no elements"
    return "it has too many outputs" if weights.dims[1] > _WIDE * _MOST else None


def build(e: LoweringContext, op: TreeSums, operands: Sequence[ir.Value]) -> list[ir.Value]:
    """Build the sums over eight trees at once, row after row."""
    x, weights = TensorType.of(op.x), TensorType.of(op.weights)
    groups, count = TensorType.of(op.roots).dims
    outputs = groups * weights.dims[1]
    rows = e.extent(operands[0], 0)
    step = max(1, min(64, _STEPS // (groups * count * max(1, op.depth))))

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        size = k.covered(k.at[0], step, k.inner(rows))
        made = _Sums(k, op, size).made(k.empty([size, outputs], weights.dtype))
        return [ResultTile(made, [k.at[0], 0], [size, outputs])]

    made = dispatch(operands, [([rows, outputs], x.dtype)], [(rows, step)], body, [rows])
    return [e.refine(made[0], TensorType.of(op.out))]


RULE = KernelRule(
    "tree_sums", (TreeSums,), by_form(refusal),
    lambda e, site, _: build(e, site.op, site.tensors),
)  # fmt: skip


class _Sums:
    """Builds the sums of some rows: trees stay in the cache while rows walk them."""

    def __init__(self, k: WorkgroupBuilder, op: TreeSums, rows: Index) -> None:
        self.k, self.rows = k, rows
        x, self.outputs = TensorType.of(op.x), TensorType.of(op.weights).dims[1]
        self.groups, self.count = TensorType.of(op.roots).dims
        self.dtype = x.dtype
        source, roots, nodes, split, self.weights = k.inputs
        self.parts = [(at, min(_WIDE, self.outputs - at)) for at in range(0, self.outputs, _WIDE)]
        kinds = [TensorType.of(v).dtype for v in (op.roots, op.nodes)]

        def number(table: ir.Value, where: list[Index], dtype: DType) -> ir.Value:
            return index.to_index(k.element(table, where), dtype)

        self.trees = Trees(
            depth=op.depth,
            dtype=x.dtype,
            flags=TensorType.of(op.nodes).dims[1] == 4,
            count=k.index(TensorType.of(op.split).dims[0]),
            features=k.index(x.dims[1]),
            roots=lambda *at: number(roots, list(at), kinds[0]),
            nodes=lambda at, column: number(nodes, [at, column], kinds[1]),
            split=lambda at: k.element(split, [at]),
            value=lambda row, at: k.element(source, [row, at]),
        )

    def made(self, into: ir.Value) -> ir.Value:
        """Return the tile with the sums."""
        k = self.k
        whole = self.count - self.count % _TOGETHER

        def zeros(i: Index, into: ir.Value) -> ir.Value:
            zero = k.number(0.0, self.dtype)
            many = self.groups * self.outputs
            return k.loop(0, many, 1, [into], lambda j, c: [k.put(zero, c[0], [i, j])])[0]

        def group(number: ir.Value, into: ir.Value) -> ir.Value:
            if whole:
                into = k.loop(
                    0, whole, _TOGETHER, [into],
                    lambda i, c: [self.trees_of(number, i, _TOGETHER, c[0])],
                )[0]  # fmt: skip
            if whole < self.count:
                into = self.trees_of(number, whole, self.count - whole, into)
            return into

        into = k.loop(0, self.rows, 1, [into], lambda i, c: [zeros(i, c[0])])[0]
        if self.groups == 1:
            return group(k.index(0), into)
        return k.loop(0, self.groups, 1, [into], lambda g, c: [group(g, c[0])])[0]

    def trees_of(self, group: ir.Value, first: Index, count: int, into: ir.Value) -> ir.Value:
        """Return the tile with what neighbouring trees add to each row."""
        k = self.k
        roots = [self.trees.root(group, k.index(k.add(first, i))) for i in range(count)]
        start = k.mul(group, self.outputs)

        def row(i: ir.Value, into: ir.Value) -> ir.Value:
            positions = [[i, k.add(start, at)] for at, _ in self.parts]
            sums = [
                k.read(into, position, lanes)
                for position, (_, lanes) in zip(positions, self.parts, strict=True)
            ]
            for leaf in walked(self.trees, k.index(k.add(k.at[0], i)), roots):
                for n, (at, lanes) in enumerate(self.parts):
                    sums[n] = arith.AddFOp(sums[n], k.read(self.weights, [leaf, at], lanes)).result
            for position, total in zip(positions, sums, strict=True):
                into = k.write(total, into, position)
            return into

        return k.loop(0, self.rows, 1, [into], lambda i, c: [row(i, c[0])])[0]
