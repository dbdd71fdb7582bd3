"""Choice of the ops of a block that run as one kernel: the deciding half of the fuse passes.

Ops are placed one by one, in order, each into the kernel of an operand, a new one, or none. The
enabled rules of the calling pass (`Grouping.rules`) decide which fusions are allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from mgx_mlir.core import dtypes
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import BroadcastOp, Op, Pointwise, attributes_of, is_a, mnemonic, op_class
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.broadcasts import DimensionsOf
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.normalize import SoftmaxBase
from mgx_mlir.dialects.migraphx.pointwise_binary import (
    Add,
    Equal,
    Greater,
    Less,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    Max,
    Min,
    Mul,
    Sub,
)
from mgx_mlir.dialects.migraphx.pointwise_other import Clip, Where
from mgx_mlir.dialects.migraphx.pointwise_unary import Abs, IsInf, IsNan, Neg, Not, Relu
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import QuantConvolution, QuantDot
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.passes.analysis.control_flow import CONTROL, host_results, values_read
from mgx_mlir.rewrite.pattern import Rule, rule

CREATE_POINTWISE = rule("create_pointwise_modules", "add(x, y) -> pointwise(x, y) {add}")
POINTWISE = rule(
    "find_pointwise_modules", "pointwise(pointwise(x), y) -> pointwise(x, y), one use or many"
)
BROADCAST = rule(
    "pointwise_broadcast_pointwise",
    "pointwise(broadcast(pointwise(x)), y) -> pointwise(x, y), cheap ops recomputed per element",
)
MULTI_OUTPUT = rule(
    "multi_output", "pointwise(y = pointwise(x)), y read elsewhere -> pointwise with both results"
)
CREATE_REDUCE = rule("create_reduce_modules", "reduce_sum(x) -> fused_reduce(x) {reduce_sum}")
POINTWISE_REDUCE = rule("find_pointwise_reduce", "reduce_sum(pointwise(x)) -> fused_reduce(x)")
REDUCE_POINTWISE = rule("find_reduce_pointwise", "pointwise(fused_reduce(x)) -> fused_reduce(x)")
REDUCE_REDUCE = rule(
    "find_reduce_reduce", "reduce_max(pointwise(fused_reduce(x))), same axes -> fused_reduce(x)"
)
STANDALONE = rule(
    "find_standalone_op", "dot, convolution, pooling, transpose or gather -> group of it"
)
POST_OPS = rule("find_post_ops", "pointwise(group(dot(x, w)), y) -> group(x, w, y)")

POINTWISE_RULES = (CREATE_POINTWISE, POINTWISE, BROADCAST, MULTI_OUTPUT)
REDUCE_RULES = (CREATE_REDUCE, POINTWISE_REDUCE, REDUCE_POINTWISE, REDUCE_REDUCE)
ANCHOR_RULES = (STANDALONE, POST_OPS)

# cheap enough to be computed once per element of what they are broadcast to
CHEAP = (
    Add, Sub, Mul, Max, Min, Neg, Abs, Relu, Clip, Where, Convert, Not, Equal, Greater, Less,
    LogicalAnd, LogicalOr, LogicalXor, IsNan, IsInf,
)  # fmt: skip
MAX_REPEATED = 4  # ops that a broadcast operand is made of, computed again
# anchors, which fuse their epilogue; they reorder or window their operand
MOVERS = (Transpose, Pooling)
# ops that read their operands as tensors, never through a broadcast, as IREE would not tile a
# broadcast inside of their kernel with them
OPAQUE = (BlockedDot, Convolution, Dot, *MOVERS, Gather)
REDUCTIONS = (NumberReduction, SoftmaxBase)
HOST_ELEMENTS = 64  # integer tensors up to this size, made of dims and literals, stay on the host
MAX_OPS = 256  # most ops of a kernel; more would take IREE long without gain
# most dynamic extents of a kernel: IREE's CPU dispatches have 64 constants, two for an extent
MAX_EXTENTS = 28
MAX_BUFFERS = 30  # inputs and results of a kernel: IREE's CPU devices bind 32 buffers at most


def never(op: ir.Operation) -> bool:
    """Return False: no op is an anchor."""
    return False


def is_8_bit_product(op: ir.Operation) -> bool:
    """Say whether an op is a dot or a convolution of 8-bit values."""
    return is_a(op, (QuantDot, QuantConvolution))


def is_weighted(op: ir.Operation) -> bool:
    """Say whether an op is an 8-bit matmul or convolution whose second operand is constant."""
    if not is_a(op, (QuantDot, QuantConvolution)) or len(op.operands) > 2:
        return False
    v = op.operands[1]
    while not isinstance(v.owner, ir.Block) and is_a(v.owner, BroadcastOp):
        v = v.owner.operands[0]
    return is_literal(v)


def is_computed_or_weighted(op: ir.Operation) -> bool:
    """Say whether an op is that, or a dot of 8-bit integers that are both computed."""
    if not is_a(op, QuantDot) or len(op.operands) > 2:
        return is_weighted(op)
    a, b = (TensorType.of(v).dtype for v in op.operands)
    return a.is_integer and b is dtypes.INT8


@dataclass(eq=False)
class PlannedKernel:
    """A growing kernel. `dims` is its iteration space, `axes` its reduced axes."""

    kind: str
    dims: tuple[int, ...]
    anchor: type[Op] | None = None  # op that a `group` is made around
    axes: tuple[int, ...] | None = None
    members: list[int] = field(default_factory=list[int])  # in order
    inside: set[int] = field(default_factory=set[int])  # the same
    inputs: set[ir.Value] = field(default_factory=set[ir.Value])
    results: set[int] = field(default_factory=set[int])  # members that others read

    @property
    def tag(self) -> str:
        """The name of the op that a `group` is made around."""
        return "" if self.anchor is None else self.anchor.mnemonic

    def is_around(self, *kinds: type[Op]) -> bool:
        """Say whether it is a `group` made around an op of one of `kinds`."""
        return self.anchor is not None and issubclass(self.anchor, kinds)

    @property
    def row_dims(self) -> tuple[int, ...]:
        """The dims with extent 1 along the reduced axes."""
        axes = self.axes or ()
        return tuple(1 if i in axes else d for i, d in enumerate(self.dims))


@dataclass(frozen=True)
class Widths:
    """Limits of a kernel's tensors: its inputs, and its inputs and results together."""

    inputs: int
    buffers: int = MAX_BUFFERS


class Grouping:
    """The grouping of one block."""

    def __init__(
        self,
        block: ir.Block,
        rules: Collection[Rule],
        most: Widths,
        hostlike: set[ir.Value],
        is_anchor: Callable[[ir.Operation], bool],
    ) -> None:
        self.rules, self.most, self.is_anchor = rules, most, is_anchor
        self.ops = [view.operation for view in block.operations]
        self.index: dict[ir.Value, int] = {
            r: i for i, op in enumerate(self.ops) for r in op.results
        }
        self.kernel: list[PlannedKernel | None] = [None] * len(self.ops)
        self.grown: list[PlannedKernel] = []  # kernels of two ops and more; members are in order
        # broadcasts that kernels read through; one to dynamic dims needs its other operand
        self.through = [
            is_a(op, BroadcastOp) and TensorType.of(op.results[0]).is_static for op in self.ops
        ]
        self.hostlike = set(hostlike)
        # number of the function's arguments with each named dim; None in a branch or a loop
        self.brought: Counter[int] | None = None
        if block.owner.operation.name == "func.func":
            dims = (d for v in block.arguments for d in TensorType.of(v).dims)
            self.brought = Counter(d for d in dims if is_named(d))
        # the producers of each op, by index, and the users of each op
        self.producers: list[list[int]] = []
        self.users: list[list[int]] = [[] for _ in self.ops]
        for i, op in enumerate(self.ops):
            found = sorted({self.index[v] for v in values_read(op) if v in self.index})
            self.producers.append(found)
            for j in found:
                self.users[j].append(i)
        for i, read in enumerate(self.users):
            self.through[i] &= not any(self.is_opaque(self.ops[u]) for u in read)

    def run(self) -> bool:
        """Assign every op; return whether there is a kernel."""
        for i, op in enumerate(self.ops[:-1]):
            self.place(i, op)
        kernels = list(dict.fromkeys(k for k in self.kernel if k is not None))
        if BROADCAST in self.rules:
            for k in reversed(kernels):
                self.repeat(k)
        for k in kernels:
            if k.kind == "pointwise" and sum(map(self.escapes, k.members)) > 1:
                MULTI_OUTPUT.applied(self.ops[k.members[-1]])
        return bool(kernels)

    def place(self, i: int, op: ir.Operation) -> None:
        """Assign one op to a new or an existing kernel, or to none."""
        if is_a(op, CONTROL):
            self.hostlike |= host_results(op, self.hostlike.__contains__)
        cls = op_class(op)
        if cls is None or len(op.results) != 1 or len(op.regions):
            return
        out = TensorType.of(op.results[0])
        if self.on_host(op, out):
            self.hostlike.add(op.results[0])
            return
        if out.elements == 0 or any(TensorType.of(v).elements == 0 for v in op.operands):
            return
        if is_a(op, Pointwise):
            self.place_pointwise(i, out)
        elif is_a(op, REDUCTIONS) and out.rank:
            self.place_reduction(i, op)
        elif is_a(op, Gather) and TensorType.of(op.operands[1]).elements == 1:
            return  # one row is a plain copy, which a region cannot contain
        elif STANDALONE in self.rules and self.is_opaque(op):
            self.add(PlannedKernel("group", out.dims, anchor=cls), i, STANDALONE)

    def is_opaque(self, op: ir.Operation) -> bool:
        """Say whether a kernel is made around an op, which reads its operands as tensors."""
        return is_a(op, OPAQUE) or self.is_anchor(op)

    def on_host(self, op: ir.Operation, out: TensorType) -> bool:
        """Return whether the op computes dims, which the lowering keeps as host scalars."""
        if is_a(op, DimensionsOf):
            return True
        if out.dtype.is_float or not out.is_known or out.elements > HOST_ELEMENTS:
            return False
        if is_literal(op):
            return True
        return bool(len(op.operands)) and all(v in self.hostlike for v in op.operands)

    def add(self, kernel: PlannedKernel, i: int, why: Rule) -> None:
        """Append op `i` to a kernel, by the rule `why`."""
        why.applied(self.ops[i])
        kernel.members.append(i)
        self.kernel[i] = kernel
        self.account(kernel, i)
        if len(kernel.members) == 2:
            self.grown.append(kernel)

    def source(self, v: ir.Value) -> tuple[int | None, bool]:
        """Return the op that a value comes from through broadcasts, and whether there were any."""
        i = self.index.get(v)
        through = False
        while i is not None and self.through[i]:
            through = True
            i = self.index.get(self.ops[i].operands[0])
        return i, through

    def place_pointwise(self, i: int, out: TensorType) -> None:
        """Put a pointwise op into the best kernel of its operands, or into a new one."""
        best: PlannedKernel | None = None
        others: list[PlannedKernel] = []
        for v in self.ops[i].operands:
            j, through = self.source(v)
            k = self.kernel[j] if j is not None else None
            if k is None or j is None or not self.fits(k, i, j, out.dims, through):
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
            self.start_pointwise(i, out)
            return
        self.add(best, i, _JOINS[best.kind])
        if self.too_wide(best):
            _JOINS[best.kind].refused(self.ops[i], "the kernel would have too many operands")
            self.kernel[i] = None
            self.recount(best, best.members[:-1])
            self.start_pointwise(i, out)
            return
        for k in others:
            if k is not best and k.kind == "pointwise" and k.dims in (best.dims, best.row_dims):
                self.merge(best, k)

    def start_pointwise(self, i: int, out: TensorType) -> None:
        """Begin a pointwise kernel with op `i`, where the rules allow it."""
        if CREATE_POINTWISE in self.rules:
            self.add(PlannedKernel("pointwise", out.dims), i, CREATE_POINTWISE)

    def fits(self, k: PlannedKernel, i: int, j: int, dims: tuple[int, ...], through: bool) -> bool:
        """Say whether pointwise op `i` of `dims` may follow member `j` of kernel `k`."""
        join, op = _JOINS[k.kind], self.ops[i]
        if join not in self.rules:
            return False
        if MULTI_OUTPUT not in self.rules and any(
            u != i and self.kernel[u] is not k for u in self.real_users(j)
        ):
            return False
        if k.kind == "fused_reduce":
            if dims not in (k.dims, k.row_dims) or not self.after_reduction(k, j):
                # an op that does not depend on the reduction would be a second, parallel loop
                join.refused(op, "it does not come after the reduction, or has other dims")
                return False
            return True
        # a gather is not fused with others, as IREE does not tile them together
        if dims != k.dims or through or k.is_around(Gather):
            join.refused(op, "{} is not the kernel's {}", dims, k.dims)
            return False
        if k.kind == "group" and self.leads_to_reduction(i, j):
            join.refused(op, "only a reduction reads it, and fuses it")
            return False
        if k.kind == "group" and self.is_read_later(i):
            join.refused(op, "a later kernel reads it, which can read its 8-bit source instead")
            return False
        return True

    def is_read_later(self, i: int) -> bool:
        """Return whether op `i` widens an 8-bit value for an op that joins a later anchor's kernel.

        This is the shortcut of a residual block; only ops with constants are between.
        """
        op = self.ops[i]
        if not is_a(op, Convert):
            return False
        source = TensorType.of(op.operands[0]).dtype
        if source not in (dtypes.INT8, dtypes.UINT8):
            return False
        at = i
        for _ in range(MAX_REPEATED):
            readers = list(self.real_users(at))
            if len(readers) != 1 or not is_a(self.ops[readers[0]], Pointwise):
                return False
            found = {self.source(v)[0] for v in self.ops[readers[0]].operands} - {at, None}
            others = [j for j in found if j is not None and not is_literal(self.ops[j])]
            if others:
                return any(self.comes_after_anchor(j, i) for j in others)
            at = readers[0]
        return False

    def comes_after_anchor(self, j: int, i: int) -> bool:
        """Return whether op `j` depends on an anchor that comes after op `i`."""
        stack, seen = [j], set[int]()
        while stack:
            m = stack.pop()
            if m <= i or m in seen:
                continue
            if self.is_anchor(self.ops[m]):
                return True
            seen.add(m)
            if is_a(self.ops[m], Pointwise) or self.through[m]:
                stack += self.producers[m]
        return False

    def leads_to_reduction(self, i: int, j: int) -> bool:
        """Return whether only a reduction reads op `i`, and other ops read its operand `j`.

        In the anchor's kernel it would be one more result in memory.
        """
        if POINTWISE_REDUCE not in self.rules:
            return False
        readers = list(self.real_users(i))
        if len(readers) != 1 or not is_a(self.ops[readers[0]], REDUCTIONS):
            return False
        return any(u != i for u in self.real_users(j))

    def after_reduction(self, k: PlannedKernel, j: int) -> bool:
        """Say whether member `j` depends on the last reduction of `k`."""
        last = next(m for m in reversed(k.members) if is_a(self.ops[m], REDUCTIONS))
        inside, stack = k.inside, [j]
        seen: set[int] = set()
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
        """Put a reduction into the kernel of its operand, or into a new one."""
        source = TensorType.of(op.operands[0])
        attributes = attributes_of(op)
        axes = attributes["axes"] if "axes" in attributes else (attributes["axis"],)
        axes = tuple(sorted(a % source.rank for a in axes)) or tuple(range(source.rank))
        j, through = self.source(op.operands[0])
        k = self.kernel[j] if j is not None and not through else None
        if k is not None and j is not None and k.dims == source.dims and self.acyclic(k, [i]):
            if k.kind == "pointwise" and self.takes_reduction(k, i, j, source.dims):
                k.kind, k.axes = "fused_reduce", axes
                self.add(k, i, POINTWISE_REDUCE)
                return
            if k.kind == "fused_reduce" and REDUCE_REDUCE in self.rules:
                if k.axes == axes and self.after_reduction(k, j):
                    self.add(k, i, REDUCE_REDUCE)
                    return
                REDUCE_REDUCE.refused(op, "axes {} are not the kernel's {}", axes, k.axes)
        if CREATE_REDUCE in self.rules:
            self.add(PlannedKernel("fused_reduce", source.dims, axes=axes), i, CREATE_REDUCE)

    def takes_reduction(self, k: PlannedKernel, i: int, j: int, dims: tuple[int, ...]) -> bool:
        """Say whether a pointwise kernel may become that of the reduction `i` of its member `j`."""
        if POINTWISE_REDUCE not in self.rules or not self.same_space(k, dims):
            return False
        inside = {i, *k.members}
        outside = {m for m in k.members if any(u not in inside for u in self.real_users(m))}
        # only the reduction's operand may be a second result; with dynamic dims there is no region,
        # and IREE computes two results wrongly
        allowed: set[int] = set() if DYN in k.dims or MULTI_OUTPUT not in self.rules else {j}
        if outside - allowed:
            POINTWISE_REDUCE.refused(self.ops[i], "other values of the kernel have outside readers")
            return False
        return True

    def same_space(self, k: PlannedKernel, dims: tuple[int, ...]) -> bool:
        """Say whether every member of a kernel gives a result of `dims`."""
        return all(TensorType.of(self.ops[m].results[0]).dims == dims for m in k.members)

    def merge(self, into: PlannedKernel, k: PlannedKernel) -> None:
        """Take over a pointwise kernel whose values only `into` uses."""
        inside = {*into.members, *k.members}
        for m in k.members:
            if any(u not in inside for u in self.real_users(m)):
                return
        members, before = list(k.members), list(into.members)
        if not self.acyclic(into, members):
            return
        for m in members:
            self.kernel[m] = into
        self.recount(into, sorted([*before, *members]))
        if self.too_wide(into):
            for m in members:
                self.kernel[m] = k
            self.recount(into, before)

    def repeat(self, k: PlannedKernel) -> None:
        """Merge a small pointwise kernel into its reader, through broadcasts."""
        if k.kind != "pointwise" or not k.members or len(k.members) > MAX_REPEATED:
            return
        readers = {u for m in k.members for u in self.real_users(m)} - set(k.members)
        into = {self.kernel[u] for u in readers}
        if len(into) != 1:
            return
        other = into.pop()
        if other is None or other.kind != "pointwise" or other.dims == k.dims:
            return
        op = self.ops[k.members[-1]]
        costly = [self.ops[m] for m in k.members if not is_a(self.ops[m], CHEAP)]
        if costly:
            why = "{} would be recomputed for each element"
            BROADCAST.refused(op, why, mnemonic(costly[0]))
            return
        self.merge(other, k)
        if self.kernel[k.members[0]] is other:
            BROADCAST.applied(op)

    def escapes(self, m: int) -> bool:
        """Say whether a member's value is a result of its kernel."""
        return any(self.kernel[u] is not self.kernel[m] for u in self.real_users(m))

    def real_users(self, i: int) -> Iterator[int]:
        """Return the users of an op, through broadcasts."""
        for u in self.users[i]:
            if self.through[u]:
                yield from self.real_users(u)
            else:
                yield u

    def account(self, k: PlannedKernel, i: int) -> None:
        """Note what a new last member reads and gives."""
        k.inside.add(i)
        for v in self.ops[i].operands:
            j, _ = self.source(v)
            if j is None or j not in k.inside:
                k.inputs.add(v)
            elif all(u in k.inside for u in self.real_users(j)):
                k.results.discard(j)
        if any(True for _ in self.real_users(i)):
            k.results.add(i)

    def recount(self, k: PlannedKernel, members: list[int]) -> None:
        """Give a kernel other members."""
        k.members, k.inside, k.inputs, k.results = members, set(), set(), set()
        for m in members:
            self.account(k, m)

    def too_wide(self, k: PlannedKernel) -> bool:
        """Say whether a kernel has too many operands and results, or too many ops."""
        inputs = len(k.inputs)
        return (
            inputs > self.most.inputs
            or inputs + len(k.results) > self.most.buffers
            or len(k.members) > MAX_OPS
            or self.dynamic_extents(k) > MAX_EXTENTS
        )

    def dynamic_extents(self, k: PlannedKernel) -> int:
        """Return a bound of the different dynamic extents of a kernel's operands and results.

        Tensors of one name share an extent, except arguments, which each bring their own.
        """
        types = [TensorType.of(v) for v in k.inputs]
        types += [TensorType.of(r) for j in k.results for r in self.ops[j].results]
        uses = Counter(d for t in types for d in t.dims if d == DYN or is_named(d))
        if self.brought is None:
            return uses.total()
        found = uses.pop(DYN, 0)
        return found + sum(min(n, self.brought[d] + 1) for d, n in uses.items())

    def acyclic(self, k: PlannedKernel, news: Sequence[int]) -> bool:
        """Return whether `k` with `news` added is still acyclic: no outer op is between its ops."""
        inside = k.inside if all(n in k.inside for n in news) else {*k.inside, *news}
        first = self.floor(k.members[0])
        stack = [p for n in news for p in self.producers[n] if p not in inside]
        seen: set[int] = set()
        while stack:
            j = stack.pop()
            if j in seen:
                continue
            seen.add(j)
            other = self.kernel[j]
            group = other.members if other is not None and other is not k else [j]
            if group[-1] < first:
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
        """Return the index below which no op depends on op `first`, considering that a kernel
        orders all of its ops together.


        """
        while True:
            below = [
                k.members[0]
                for k in self.grown
                if k.members and k.members[0] < first <= k.members[-1]
            ]
            if not below:
                return first
            first = min(below)


# the rule by which a pointwise op joins a kernel of a kind
_JOINS = {"pointwise": POINTWISE, "fused_reduce": REDUCE_POINTWISE, "group": POST_OPS}


def _rank(k: PlannedKernel) -> tuple[int, int]:
    """Rank the kernels that a pointwise op may join: an anchor's, a reduction's, the latest."""
    kinds = {"group": 2, "fused_reduce": 1, "pointwise": 0}
    return kinds[k.kind] - k.is_around(*MOVERS) * 2, k.members[-1]
