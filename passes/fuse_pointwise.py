"""fuse_pointwise: group ops into kernels, each of which becomes one dispatch."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, attributes_of, op_class
from mgx_mlir.core.passes import Pass, option
from mgx_mlir.core.program_ir import functions
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.control_flow import CONTROL, host_arguments_of, host_results

# a kernel around one of these takes the pointwise ops that follow it
ANCHORS = frozenset(("convolution", "dot"))
# a kernel of their own, which also takes what follows; they reorder or window their operand
MOVERS = frozenset(("transpose", "pooling"))
# a kernel alone: the compiler tiles nothing together with it
ALONE = frozenset(("gather",))
# these read their operands as tensors, never through a broadcast: a copy of one, ahead of them
# in their kernel, is not tiled with them
OPAQUE = ANCHORS | MOVERS | ALONE
REDUCTIONS = frozenset(
    ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "softmax",
     "logsoftmax")
)  # fmt: skip
# views that a kernel reads through: they become index maps
THROUGH = frozenset(("multibroadcast", "broadcast", "scalar"))
HOST_ELEMENTS = 64  # integer tensors up to this size, made of dims and literals, stay on the host
MAX_BUFFERS = 30  # inputs and results of a kernel: IREE's CPU devices bind 32 buffers at most


@dataclass(frozen=True)
class FusePointwise(Pass):
    """Group pointwise ops, reductions and the ops before them into kernel ops.

    A kernel is `pointwise`, `fused_reduce` (one reduced iteration space) or `group` (around a
    dot, a convolution, a pooling or a transpose). Broadcasts of a kernel's operands go inside.
    """

    name: ClassVar[str] = "fuse_pointwise"
    max_inputs: int = option(24, "operands that a kernel may have")

    def run(self, module: ir.Operation) -> bool:
        changed = False
        for function in list(functions(module)):
            for block in function.regions[0].blocks:
                changed |= self.fuse(block, set())
        return changed

    def fuse(self, block: ir.Block, hostlike: set[ir.Value]) -> bool:
        """Form the kernels of a block and of the branches and loops in it.

        `hostlike`: the values from outside that are scalars of the host.
        """
        fusion = _Fusion(block, self.max_inputs, hostlike)
        changed = fusion.run()
        for op in [view.operation for view in block.operations]:
            if op.name in CONTROL:
                for inner, arguments in host_arguments_of(op, fusion.hostlike.__contains__):
                    changed |= self.fuse(inner, fusion.hostlike | arguments)
        return changed


@dataclass(eq=False)
class _Kernel:
    """A kernel while it grows. `dims` is its iteration space, `axes` what is reduced in it."""

    kind: str
    dims: tuple[int, ...]
    tag: str = ""
    axes: tuple[int, ...] | None = None
    members: list[int] = field(default_factory=list)

    @property
    def row_dims(self) -> tuple[int, ...]:
        axes = self.axes or ()
        return tuple(1 if i in axes else d for i, d in enumerate(self.dims))


class _Fusion:
    """The grouping of one block."""

    def __init__(self, block: ir.Block, max_inputs: int, hostlike: set[ir.Value]) -> None:
        self.block, self.max_inputs = block, max_inputs
        self.ops = [view.operation for view in block.operations]
        self.index: dict[ir.Value, int] = {
            r: i for i, op in enumerate(self.ops) for r in op.results
        }
        self.names = [op.name.removeprefix("migraphx.") for op in self.ops]
        self.kernel: list[_Kernel | None] = [None] * len(self.ops)
        self.grown: list[_Kernel] = []  # kernels of two ops and more; members are in order
        # broadcasts that kernels read through; one to run-time dims needs its other operand
        self.through = [
            name in THROUGH and TensorType.of(op.results[0]).is_static
            for name, op in zip(self.names, self.ops, strict=True)
        ]
        self.hostlike = set(hostlike)
        # the producers of each op, by index, and the users of each op
        self.producers: list[list[int]] = []
        self.users: list[list[int]] = [[] for _ in self.ops]
        for i, op in enumerate(self.ops):
            found = sorted({self.index[v] for v in _captured(op) if v in self.index})
            self.producers.append(found)
            for j in found:
                self.users[j].append(i)
        for i, read in enumerate(self.users):
            self.through[i] &= not any(self.names[u] in OPAQUE for u in read)

    def run(self) -> bool:
        for i, op in enumerate(self.ops[:-1]):
            self.place(i, op)
        kernels = list(dict.fromkeys(k for k in self.kernel if k is not None))
        if not kernels:
            return False
        for unit in self.ordered():
            self.emit(unit)
        # what moved into kernels goes last, users first, with the broadcasts only it read
        for i in reversed(range(len(self.ops) - 1)):
            op = self.ops[i]
            unused = not any(True for r in op.results for _ in r.uses)
            if self.kernel[i] is not None or (self.through[i] and unused):
                assert unused, f"a value of {op.name} is used outside of its kernel"
                op.erase()
        return True

    # ---- deciding ----------------------------------------------------------------------------

    def place(self, i: int, op: ir.Operation) -> None:
        """Put one op into a kernel, a new or a grown one, or leave it alone."""
        name = self.names[i]
        if op.name in CONTROL:
            self.hostlike |= host_results(op, self.hostlike.__contains__)
        if not op.name.startswith("migraphx.") or len(op.results) != 1 or len(op.regions):
            return
        out = TensorType.of(op.results[0])
        if self.on_host(op, name, out):
            self.hostlike.add(op.results[0])
            return
        if out.elements == 0 or any(TensorType.of(v).elements == 0 for v in op.operands):
            return
        cls = op_class(op)
        if cls is not None and cls.pointwise:
            self.place_pointwise(i, out)
        elif name in REDUCTIONS and out.rank:
            self.place_reduction(i, op)
        elif name in ALONE and TensorType.of(op.operands[1]).elements == 1:
            return  # one row is a plain copy, which a region may not hold
        elif name in ANCHORS or name in MOVERS or name in ALONE:
            self.add(_Kernel("group", out.dims, tag=name), i)

    def on_host(self, op: ir.Operation, name: str, out: TensorType) -> bool:
        """Whether the op works on dims: the lowering keeps those as scalars."""
        if name == "dimensions_of":
            return True
        if out.dtype.is_float or not out.is_static or out.elements > HOST_ELEMENTS:
            return False
        if name == "literal":
            return True
        return bool(len(op.operands)) and all(v in self.hostlike for v in op.operands)

    def add(self, kernel: _Kernel, i: int) -> None:
        kernel.members.append(i)
        self.kernel[i] = kernel
        if len(kernel.members) == 2:
            self.grown.append(kernel)

    def source(self, v: ir.Value) -> tuple[int | None, bool]:
        """The op that a value comes from through broadcasts, and whether there were any."""
        i = self.index.get(v)
        through = False
        while i is not None and self.through[i]:
            through = True
            i = self.index.get(self.ops[i].operands[0])
        return i, through

    def place_pointwise(self, i: int, out: TensorType) -> None:
        best: _Kernel | None = None
        others: list[_Kernel] = []
        for v in self.ops[i].operands:
            j, through = self.source(v)
            k = self.kernel[j] if j is not None else None
            if k is None or j is None or not self.fits(k, j, out.dims, through):
                continue
            if k in others or k is best:
                continue
            if best is None or _rank(k) > _rank(best):
                if best is not None:
                    others.append(best)
                best = k
            else:
                others.append(k)
        if best is None or not self.acyclic(best, [i]):
            best = next((k for k in others if self.acyclic(k, [i])), None)
        if best is None:
            self.add(_Kernel("pointwise", out.dims), i)
            return
        self.add(best, i)
        if self.too_wide(best):
            best.members.pop()
            self.kernel[i] = None
            self.add(_Kernel("pointwise", out.dims), i)
            return
        for k in others:
            if k is not best and k.kind == "pointwise" and k.dims in (best.dims, best.row_dims):
                self.merge(best, k)

    def fits(self, k: _Kernel, j: int, dims: tuple[int, ...], through: bool) -> bool:
        """Whether a pointwise op of `dims` may follow member `j` of kernel `k`."""
        if k.kind == "fused_reduce":
            # what does not come after the reduction would be a second loop beside it
            return dims in (k.dims, k.row_dims) and self.after_reduction(k, j)
        return dims == k.dims and not through and k.tag not in ALONE

    def after_reduction(self, k: _Kernel, j: int) -> bool:
        """Whether member `j` depends on the last reduction of `k`."""
        last = max(m for m in k.members if self.names[m] in REDUCTIONS)
        inside, stack, seen = set(k.members), [j], set()
        while stack:
            m = stack.pop()
            if m == last:
                return True
            if m in seen or m < last:
                continue
            seen.add(m)
            stack += [p for p in self.producers[m] if p in inside or self.through[p]]
        return False

    def place_reduction(self, i: int, op: ir.Operation) -> None:
        source = TensorType.of(op.operands[0])
        attributes = attributes_of(op)
        axes = attributes["axes"] if "axes" in attributes else (attributes["axis"],)
        axes = tuple(sorted(a % source.rank for a in axes)) or tuple(range(source.rank))
        j, through = self.source(op.operands[0])
        k = self.kernel[j] if j is not None and not through else None
        if k is not None and j is not None and k.dims == source.dims and self.acyclic(k, [i]):
            if k.kind == "pointwise" and self.same_space(k, source.dims):
                outside = [m for m in k.members if any(
                    u != i and u not in k.members for u in self.real_users(m))]  # fmt: skip
                # the reduction's own operand may be a second result, no other value may; over
                # run-time dims there is no region, and the compiler gets two results wrong
                if not set(outside) - (set() if DYN in k.dims else {j}):
                    k.kind, k.axes = "fused_reduce", axes
                    self.add(k, i)
                    return
            elif k.kind == "fused_reduce" and k.axes == axes and self.after_reduction(k, j):
                self.add(k, i)
                return
        self.add(_Kernel("fused_reduce", source.dims, axes=axes), i)

    def same_space(self, k: _Kernel, dims: tuple[int, ...]) -> bool:
        return all(TensorType.of(self.ops[m].results[0]).dims == dims for m in k.members)

    def merge(self, into: _Kernel, k: _Kernel) -> None:
        """Take over a pointwise kernel whose values only `into` uses."""
        inside = {*into.members, *k.members}
        for m in k.members:
            if any(u not in inside for u in self.real_users(m)):
                return
        members = list(k.members)
        if not self.acyclic(into, members):
            return
        into.members = sorted([*into.members, *members])
        for m in members:
            self.kernel[m] = into
        if self.too_wide(into):
            into.members = [m for m in into.members if m not in members]
            for m in members:
                self.kernel[m] = k

    def real_users(self, i: int) -> Iterator[int]:
        """Users of an op, through broadcasts."""
        for u in self.users[i]:
            if self.through[u]:
                yield from self.real_users(u)
            else:
                yield u

    def too_wide(self, k: _Kernel) -> bool:
        inside = set(k.members)
        inputs = set()
        for m in k.members:
            for v in self.ops[m].operands:
                j, _ = self.source(v)
                if j is None or j not in inside:
                    inputs.add(v)
        results = sum(any(u not in inside for u in self.real_users(m)) for m in k.members)
        return len(inputs) > self.max_inputs or len(inputs) + results > MAX_BUFFERS

    def acyclic(self, k: _Kernel, news: Sequence[int]) -> bool:
        """Whether `k` with `news` added can still run as one: nothing outside lies between."""
        inside = {*k.members, *news}
        first = self.floor(min(k.members))
        stack = [p for n in news for p in self.producers[n] if p not in inside]
        seen: set[int] = set()
        while stack:
            j = stack.pop()
            if j in seen:
                continue
            seen.add(j)
            other = self.kernel[j]
            group = other.members if other is not None and other is not k else [j]
            if max(group) < first:
                continue
            for m in group:
                seen.add(m)
                for p in self.producers[m]:
                    if p in inside:
                        # a broadcast that only this kernel reads goes inside with it
                        if self.through[m] and all(u in inside for u in self.real_users(m)):
                            continue
                        return False
                    stack.append(p)
        return True

    def floor(self, first: int) -> int:
        """The index below which nothing depends on op `first`: a kernel with ops on both sides
        of an index carries dependences back over it."""
        while True:
            below = [
                k.members[0]
                for k in self.grown
                if k.members and k.members[0] < first <= k.members[-1]
            ]
            if not below:
                return first
            first = min(below)

    # ---- emitting ----------------------------------------------------------------------------

    def ordered(self) -> list[list[int]]:
        """Kernels and lone ops in an order that respects every use; the terminator is left out."""
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
        """What must come before op `i`: its producers; for a kernel's op, what lies behind
        broadcasts too, since those are copied inside."""
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

    def build(self, kernel: _Kernel, members: list[int], end: ir.Operation) -> None:
        ops = [self.ops[m] for m in members]
        own = {r for op in ops for r in op.results}
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
        known = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for view in views:
                _copy(view, known)
            for op in ops:
                self._copy_views(op, known, own)
                _copy(op, known)
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
        """Note what a kernel needs from outside for `v`."""
        if v in own or v in inputs:
            return
        owner = v.owner
        if isinstance(owner, ir.Block):
            inputs[v] = None
            return
        name = owner.name.removeprefix("migraphx.")
        if name in THROUGH and self.through[self.index[v]]:
            if owner.operands[0] not in own:
                self._reach(owner.operands[0], own, inputs, views)
            return
        if name == "literal" and _is_uniform(owner):
            if owner not in views:
                views.append(owner)
            return
        inputs[v] = None

    def _copy_views(
        self, op: ir.Operation, known: dict[ir.Value, ir.Value], own: set[ir.Value]
    ) -> None:
        """Broadcasts that `op` reads, inside the kernel."""
        for v in op.operands:
            chain: list[ir.Operation] = []
            while v not in known and not isinstance(v.owner, ir.Block):
                chain.append(v.owner)
                v = v.owner.operands[0]
            for view in reversed(chain):
                _copy(view, known)

    def _escapes(self, r: ir.Value, inside: set[int]) -> bool:
        """Whether a member's result is used outside of the kernel."""
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


def _rank(k: _Kernel) -> tuple[int, int]:
    """Which of several kernels a pointwise op joins: an anchor's, a reduction's, the latest."""
    kinds = {"group": 2, "fused_reduce": 1, "pointwise": 0}
    return kinds[k.kind] - (k.tag in MOVERS) * 2, max(k.members)


def _captured(op: ir.Operation) -> Iterator[ir.Value]:
    """Operands of an op and of everything in its regions."""
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _captured(inner.operation)


def _is_uniform(op: ir.Operation) -> bool:
    """A literal that a kernel can hold itself: all its elements are equal."""
    if "value" not in op.attributes:
        return False
    array = literals.array_of(op)
    raw = array.reshape(-1).view(f"u{array.dtype.itemsize}")
    return bool(raw.size and (raw == raw[0]).all())


def _copy(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> None:
    """Clone an op at the insertion point with its operands replaced."""
    new = op.clone(ir.InsertionPoint.current).operation
    for n, v in enumerate(op.operands):
        new.operands[n] = known[v]
    for old, result in zip(op.results, new.results, strict=True):
        known[old] = result
