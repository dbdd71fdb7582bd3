"""Creation of kernel ops from groups of ops: the building half of the fuse passes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import OPS
from mgx_mlir.passes.analysis.kernel_ops import copy_op, is_uniform
from mgx_mlir.passes.fusion.plan import Grouping, PlannedKernel


class KernelBuilder:
    """Builds the kernels of a grouping in its block."""

    def __init__(self, grouping: Grouping) -> None:
        self.ops, self.index, self.kernel = grouping.ops, grouping.index, grouping.kernel
        self.producers, self.through = grouping.producers, grouping.through

    def run(self) -> None:
        """Build every kernel of the grouping, and erase what moved into kernels."""
        for unit in self.ordered():
            self.emit(unit)
        # erase ops that moved into kernels, users first, with broadcasts and literals that only
        # they read
        for i in reversed(range(len(self.ops) - 1)):
            op = self.ops[i]
            unused = not any(True for r in op.results for _ in r.uses)
            view = self.through[i] or is_literal(op)
            if self.kernel[i] is not None or (view and unused):
                assert unused, f"a value of {op.name} is used outside of its kernel"
                op.erase()

    def ordered(self) -> list[list[int]]:
        """Return kernels and lone ops in a topological order, without the terminator."""
        units: list[list[int]] = []
        unit_of: dict[int, int] = {}
        for i in range(len(self.ops) - 1):
            k = self.kernel[i]
            if i in unit_of:
                continue
            members = sorted(k.members) if k is not None else [i]
            for m in members:
                unit_of[m] = len(units)
            units.append(members)
        waits = [0] * len(units)
        feeds: list[set[int]] = [set() for _ in units]
        for i in range(len(self.ops) - 1):
            for p in self.needs(i):
                a, b = unit_of[p], unit_of[i]
                if a != b and b not in feeds[a]:
                    feeds[a].add(b)
                    waits[b] += 1
        ready = [(units[u][0], u) for u in range(len(units)) if not waits[u]]
        heapq.heapify(ready)
        out: list[list[int]] = []
        while ready:
            _, u = heapq.heappop(ready)
            out.append(units[u])
            for b in feeds[u]:
                waits[b] -= 1
                if not waits[b]:
                    heapq.heappush(ready, (units[b][-1], b))
        assert len(out) == len(units), "the grouping has a cycle"
        return out

    def needs(self, i: int) -> Iterator[int]:
        """Return the producers that must come before op `i`.

        For a kernel's op also the sources of broadcasts, which are copied inside.
        """
        for p in self.producers[i]:
            if self.kernel[i] is None:
                yield p
                continue
            while self.through[p]:
                below = self.producers[p]
                yield from below[1:]
                if not below:
                    break
                p = below[0]
            else:
                yield p

    def emit(self, members: list[int]) -> None:
        """Move a unit to the end of the block; build its kernel op."""
        end = self.ops[-1]
        kernel = self.kernel[members[0]]
        if kernel is None:
            self.ops[members[0]].move_before(end)
            return
        for m in members:
            self.ops[m].move_before(end)
        self.build(kernel, members, end)

    def build(self, kernel: PlannedKernel, members: list[int], end: ir.Operation) -> None:
        """Build the kernel op of `members` ahead of the terminator `end`."""
        ops = [self.ops[m] for m in members]
        own: set[ir.Value] = {r for op in ops for r in op.results}
        inside = set(members)
        inputs: dict[ir.Value, None] = {}
        views: list[ir.Operation] = []
        for op in ops:
            for v in op.operands:
                self._reach(v, own, inputs, views)
        outputs = [r for op in ops for r in op.results if self._escapes(r, inside)]
        locations = list(dict.fromkeys(op.location for op in ops))
        attributes: dict[str, object] = {}
        if kernel.kind == "group":
            attributes["tag"] = kernel.tag
        elif kernel.kind == "fused_reduce":
            attributes["axes"] = kernel.axes or ()
        with ir.InsertionPoint(end), ir.Location.fused(locations):
            new = OPS[kernel.kind](
                list(inputs), results=[r.type for r in outputs], **attributes
            ).operation
            block = new.regions[0].blocks.append(
                *[v.type for v in inputs], arg_locs=[ir.Location.unknown()] * len(inputs)
            )
        known: dict[ir.Value, ir.Value] = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for view in views:
                copy_op(view, known)
            for op in ops:
                self._copy_views(op, known, own)
                copy_op(op, known)
            OPS["yield"]([known[r] for r in outputs], loc=ops[-1].location)
        for old, result in zip(outputs, new.results, strict=True):
            old.replace_all_uses_with(result)

    def _reach(
        self,
        v: ir.Value,
        own: set[ir.Value],
        inputs: dict[ir.Value, None],
        views: list[ir.Operation],
    ) -> None:
        """Record the outer values that a kernel needs for `v`."""
        if v in own or v in inputs:
            return
        owner = v.owner
        if isinstance(owner, ir.Block):
            inputs[v] = None
            return
        at = self.index.get(v)  # None: made in a block around this one
        if at is not None and self.through[at]:
            if owner.operands[0] not in own:
                self._reach(owner.operands[0], own, inputs, views)
            return
        if is_literal(owner) and is_uniform(owner):
            if owner not in views:
                views.append(owner)
            return
        inputs[v] = None

    def _copy_views(
        self, op: ir.Operation, known: dict[ir.Value, ir.Value], own: set[ir.Value]
    ) -> None:
        """Copy the broadcasts that `op` reads into the kernel."""
        for v in op.operands:
            chain: list[ir.Operation] = []
            while v not in known and not isinstance(v.owner, ir.Block):
                chain.append(v.owner)
                v = v.owner.operands[0]
            for view in reversed(chain):
                copy_op(view, known)

    def _escapes(self, r: ir.Value, inside: set[int]) -> bool:
        """Say whether a member's result is used outside of the kernel."""
        for use in r.uses:
            j = self._index_of(use.owner)
            if j is None or j in inside:
                if j is None:
                    return True
                continue
            if self.through[j] and self._only_inside(use.owner, inside):
                continue
            return True
        return False

    def _only_inside(self, view: ir.Operation, inside: set[int]) -> bool:
        for use in view.operation.results[0].uses:
            j = self._index_of(use.owner)
            if j is not None and j in inside:
                continue
            if j is not None and self.through[j] and self._only_inside(use.owner, inside):
                continue
            return False
        return True

    def _index_of(self, op: ir.Operation) -> int | None:
        results = op.operation.results
        if not len(results):
            return None
        return self.index.get(results[0])
