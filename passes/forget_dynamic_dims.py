"""forget_dynamic_dims: named dynamic dims become `?` again, and ops take them as operands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from mgx_mlir.core.dynamic_dims import FIRST, is_named
from mgx_mlir.core.errors import PassError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, attributes_of, is_a, op_class
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.fused import FusedConcat, Group
from mgx_mlir.dialects.migraphx.movement import Slice
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.dialects.migraphx.views import Reshape
from mgx_mlir.passes.analysis.attention_form import TAGS
from mgx_mlir.passes.analysis.extent_values import UnknownExtent, extent_of, value_of
from mgx_mlir.passes.simplify_dyn_ops import restate_results
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import entry_block, functions
from mgx_mlir.rewrite.passes import Pass
from mgx_mlir.symbolic.expressions import Expr, Int
from mgx_mlir.symbolic.named_extents import NamedExtent, Naming
from mgx_mlir.symbolic.polynomials import polynomials

Place = tuple[ir.Value, int]  # a value, and the number of a dim


@dataclass(frozen=True)
class ForgetDynamicDims(Pass):
    """Undo `name_dynamic_dims`: types say `?`, reshapes and broadcasts take their dims at run time.

    A reshape that copies extents in place, or has one dynamic dim, keeps stating its dims (by 0 and
    -1). A broadcast gets operands with these dims. If there are none, the dims are computed from
    the inputs' extents, before kernels; a kernel that needs them inside is dissolved. Attention
    and `fused_concat` keep the equalities of their operands' dims.
    """

    name: ClassVar[str] = "forget_dynamic_dims"

    def run(self, module: ir.Operation) -> bool:
        changed = False
        for function in list(functions(module)):
            found = _Function(function)
            changed |= found.forget()
        return changed


class _Unstated(Exception):
    """A kernel has a broadcast to dims that none of its operands has."""


def _named(dims: Iterable[int]) -> bool:
    return any(is_named(d) for d in dims)


class _Function:
    """The names in one function."""

    def __init__(self, function: ir.OpView) -> None:
        self.function, self.block = function, entry_block(function)
        self.naming: Naming | None = None
        self.arguments: dict[int, Place] = {}
        self._sizes: dict[int, ir.Value] = {}  # extents as 0-d tensors, at the start of the block

    def forget(self) -> bool:
        """Replace all names."""
        for v in self._values(self.block):
            for d in TensorType.of(v).dims:
                if isinstance(d, NamedExtent):
                    self.naming = d.naming
        if self.naming is None:
            return False
        self._walk(self.block, Scope(None))
        for v in list(self._values(self.block)):
            t = TensorType.of(v)
            if _named(t.dims):
                v.set_type(t.with_dims(DYN if is_named(d) else d for d in t.dims).mlir())
        restate_results(self.function)
        self._check(self.block)
        self.naming.forget()
        return True

    def _values(self, block: ir.Block) -> Iterator[ir.Value]:
        """Yield all values of a block and of the blocks in it."""
        yield from block.arguments
        for op in block.operations:
            for region in op.operation.regions:
                for inner in region.blocks:
                    yield from self._values(inner)
            yield from op.operation.results

    def _walk(self, block: ir.Block, scope: Scope) -> None:
        for a in block.arguments:
            scope.add(a)
        _sink_broadcasts(block)
        todo = [view.operation for view in block.operations]
        late: list[ir.Operation] = []
        while todo:
            op = todo.pop(0)
            try:
                for region in op.regions:
                    for inner in region.blocks:
                        self._walk(inner, Scope(None if is_a(op, Kernel) else scope))
            except _Unstated:
                todo[:0] = _inlined(op)
                continue
            if is_a(op, FusedConcat) or (is_a(op, Group) and op.opview.tag in TAGS):
                _state_extents(op)
            if op in late:
                late.remove(op)
            elif is_a(op.parent, Kernel) and _is_named_broadcast(op):
                beside = self._beside(op, scope)
                if beside is not None:  # the other operand comes first, and has the dims
                    op.move_after(beside)
                    todo.insert(todo.index(beside) + 1, op)
                    late.append(op)
                    continue
            if op_class(op) is not None and self._states_names(op):
                with ir.InsertionPoint(op), op.location:
                    op = self._replaced(op, scope)
            for r in op.results:
                scope.add(r)

    def _states_names(self, op: ir.Operation) -> bool:
        return any(
            _named(cast("Sequence[int]", v)) if isinstance(v, tuple | list) else is_named(v)
            for v in attributes_of(op).values()
            if isinstance(v, tuple | list | int)
        )

    def _replaced(self, op: ir.Operation, scope: Scope) -> ir.Operation:
        """Replace an op by its form with dims as operands."""
        b, out = Builder(), TensorType.of(op.results[0])
        x = op.operands[0]
        new: ir.Value
        if is_a(op, Reshape):
            new = self._reshape(b, x, out, scope)
        elif is_a(op, Multibroadcast) or is_a(op, Broadcast):
            new = self._broadcast(b, op, out, scope)
        elif is_a(op, Slice):
            new = self._slice(b, op, scope)
        elif is_a(op, Resize):
            new = self._resize(b, op, out, scope)
        else:
            raise PassError(f"'{op.name}' op has an attribute that names a dynamic dim")
        new.set_type(op.results[0].type)
        op.results[0].replace_all_uses_with(new)
        op.erase()
        return new.owner.operation if not isinstance(new.owner, ir.Block) else op

    def _reshape(self, b: Builder, x: ir.Value, out: TensorType, scope: Scope) -> ir.Value:
        own = TensorType.of(x).dims
        dims = [0 if i < len(own) and is_named(d) and d == own[i] else d
                for i, d in enumerate(out.dims)]  # fmt: skip
        # an unnamed one is inferred from the element count, as the op stated
        left = [i for i, d in enumerate(dims) if is_named(d) or d == DYN]
        if len(left) <= 1:
            for i in left:
                dims[i] = -1
            return b.op("reshape", x, dims=dims)
        stated = [-1 if d == DYN else d for d in out.dims]
        return b.op("reshape", x, self._vector(b, stated, scope), allowzero=True, results=[out])

    def _broadcast(self, b: Builder, op: ir.Operation, out: TensorType, scope: Scope) -> ir.Value:
        x = op.operands[0]
        if is_a(op, Broadcast):
            axis = attributes_of(op)["axis"]
            rank = TensorType.of(x).rank
            if out.rank - axis - rank:
                x = b.op("unsqueeze", x, axes=list(range(rank, out.rank - axis)))
        refs = self._having(out.dims, op)
        if refs is not None:
            return b.op("multibroadcast", [x, *refs], results=[out])
        refs = scope.covering(out.dims, TensorType.of(x))
        if refs is not None:
            fixed = [1 if is_named(d) else d for d in out.dims]
            low = all(TensorType.of(v).rank < out.rank for v in (x, *refs))
            if low or not _have(fixed, [x, *refs]):  # only the dynamic dims matter
                refs = [*refs, b.op("multibroadcast", [b.literal(0, out.dtype)], out_lens=fixed)]
            return b.op("multibroadcast", [x, *refs], results=[out])
        if is_a(op.parent, Kernel):
            raise _Unstated
        return b.op("broadcast_with_dims", x, self._vector(b, out.dims, scope), results=[out])

    def _beside(self, op: ir.Operation, scope: Scope) -> ir.Operation | None:
        """Return the last broadcast that shares a reader with one whose dims no value has so
        far.
        """
        out, own = TensorType.of(op.results[0]), TensorType.of(op.operands[0])
        if is_a(op, Broadcast):
            own = own.with_dims(
                [*own.dims, *[1] * (out.rank - attributes_of(op)["axis"] - own.rank)]
            )
        if self._having(out.dims, op) or scope.covering(out.dims, own) is not None:
            return None
        first = _first(u.owner.operation for u in op.results[0].uses)
        found: ir.Operation | None = None
        for v in () if first is None else first.operands:
            made = None if isinstance(v.owner, ir.Block) else v.owner.operation
            if made is None or not (made.block == op.block and _is_named_broadcast(made)):
                continue
            later = found is None or found.is_before_in_block(made)
            if later and op.is_before_in_block(made):
                found = made
        return found

    def _having(self, dims: Sequence[int], op: ir.Operation) -> list[ir.Value] | None:
        """Return the other operand of a broadcast's reader, if it has these dims."""
        for use in op.results[0].uses:
            for v in use.owner.operands:
                made = v.owner
                if v == op.results[0] or TensorType.of(v).dims != tuple(dims):
                    continue
                if isinstance(made, ir.Block):
                    if made == op.block:
                        return [v]
                elif made.operation.block == op.block and made.operation.is_before_in_block(op):
                    return [v]
        return None

    def _slice(self, b: Builder, op: ir.Operation, scope: Scope) -> ir.Value:
        attributes = attributes_of(op)
        if len(op.operands) > 1:
            raise PassError("a slice has bounds of both kinds, and names among them")
        starts, ends = (self._vector(b, attributes[n], scope) for n in ("starts", "ends"))
        axes = attributes["axes"]
        return b.op("slice", op.operands[0], starts, ends, axes=axes,
                    results=[TensorType.of(op.results[0])])  # fmt: skip

    def _resize(self, b: Builder, op: ir.Operation, out: TensorType, scope: Scope) -> ir.Value:
        attributes = {**attributes_of(op), "sizes": ()}
        own, sizes = TensorType.of(op.operands[0]).dims, attributes_of(op)["sizes"]
        kept = [-1 if n in (0, d) else n for n, d in zip(sizes, own, strict=True)]
        target = self._vector(b, kept, scope)
        return b.op("resize", op.operands[0], target, results=[out], **attributes)

    # ---- extents as values -------------------------------------------------------------------

    def _vector(self, b: Builder, dims: Sequence[int], scope: Scope) -> ir.Value:
        """Return dims as a 1-D i64 tensor."""
        parts: list[ir.Value] = []
        at = 0
        while at < len(dims):
            if not is_named(dims[at]):
                parts.append(b.ints([dims[at]]))
            else:
                parts.append(b.op("unsqueeze", self._extent(b, dims[at], scope), axes=[0]))
            at += 1
        return parts[0] if len(parts) == 1 else b.op("concat", parts, axis=0)

    def _extent(self, b: Builder, d: int, scope: Scope) -> ir.Value:
        """Return an extent as a 0-d i64 tensor: of a value that has it, or computed."""
        place = scope.place(d)
        if place is not None:
            return extent_of(b, *place)
        assert isinstance(d, NamedExtent)
        return self._of_expression(b, d.expr, scope)

    def _of_expression(self, b: Builder, e: Int, scope: Scope) -> ir.Value:
        naming = self.naming
        assert naming is not None

        def held(alone: Expr) -> ir.Value | None:
            place = scope.place(naming.of(alone))
            return None if place is None else extent_of(b, *place)

        try:
            return value_of(b, e, held)
        except UnknownExtent as found:
            raise PassError(str(found)) from None

    def _check(self, block: ir.Block) -> None:
        """Raise PassError where a number derived from a name is left."""
        for view in block.operations:
            op = view.operation
            for r in op.results:
                if any(int.__ge__(d, FIRST) for d in TensorType.of(r).dims):
                    raise PassError(f"'{op.name}' op has a dim computed from a name: {r.type}")
            for region in op.regions:
                for inner in region.blocks:
                    self._check(inner)


def _have(fixed: Sequence[int], values: Sequence[ir.Value]) -> bool:
    """Return whether values have all of these extents, by dims counted from the last."""
    kinds = [TensorType.of(v).dims for v in values]
    found = [{d[-i] for d in kinds if len(d) >= i} for i in range(1, len(fixed) + 1)]
    return all(d in (1, *held) for d, held in zip(reversed(fixed), found, strict=True))


def _inlined(op: ir.Operation) -> list[ir.Operation]:
    """Replace a kernel by the ops of its body, and return them."""
    body = op.regions[0].blocks[0]
    for argument, v in zip(body.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(v)
    *ops, end = [view.operation for view in body.operations]
    for r, v in zip(op.results, list(end.operands), strict=True):
        r.replace_all_uses_with(v)
    for inner in ops:
        inner.move_before(op)
    op.erase()
    return ops


def _state_extents(op: ir.Operation) -> None:
    """Write the equalities of a kernel's operands' dynamic dims into its attribute."""
    kinds = [TensorType.of(v) for v in op.operands]
    if any(_named(t.dims) for t in kinds):
        rows = polynomials([[d.expr if isinstance(d, NamedExtent) else d for d in t.dims]
                            for t in kinds])  # fmt: skip
        op.attributes["extents"] = ir.ArrayAttr.get([ir.StringAttr.get(r) for r in rows])


def _first(ops: Iterable[ir.Operation]) -> ir.Operation | None:
    """Return the first of ops that are in one block."""
    found: ir.Operation | None = None
    for op in ops:
        if found is None or op.is_before_in_block(found):
            found = op
    return found


def _is_named_broadcast(op: ir.Operation) -> bool:
    """Return whether an op is a broadcast with named dynamic dims in an attribute."""
    if not is_a(op, (Multibroadcast, Broadcast)) or len(op.operands) > 1:
        return False
    return _named(TensorType.of(op.results[0]).dims)


def _sink_broadcasts(block: ir.Block) -> None:
    """Move each broadcast down to its first reader, where more values have its dims."""
    order = {view.operation: i for i, view in enumerate(block.operations)}
    for op in reversed(order):
        if _is_named_broadcast(op):
            readers = [u.owner.operation for u in op.results[0].uses]
            first = min((r for r in readers if r in order), key=order.__getitem__, default=None)
            if first is not None and len(readers) == sum(r in order for r in readers):
                op.move_before(first)


class Scope:
    """The values that an op can read, by their dynamic dims."""

    def __init__(self, around: Scope | None) -> None:
        self.places: dict[int, Place] = dict(around.places) if around else {}
        self.by_dims: dict[tuple[int, ...], ir.Value] = dict(around.by_dims) if around else {}

    def add(self, v: ir.Value) -> None:
        """Add a value that is visible from here on."""
        t = TensorType.of(v)
        if _named(t.dims):
            self.by_dims.setdefault(t.dims, v)
            for i, d in enumerate(t.dims):
                if is_named(d):
                    self.places.setdefault(d, (v, i))

    def place(self, d: int) -> Place | None:
        """Return a value that has the extent, and the number of that dim."""
        return self.places.get(d)

    def covering(self, dims: Sequence[int], own: TensorType) -> list[ir.Value] | None:
        """Return values that `own` broadcasts with to `dims`; None where there are none."""
        found = self.by_dims.get(tuple(dims))
        if found is not None:
            return [found]
        # several that together have each dynamic dim, and otherwise 1 or the same extent
        left = {i for i, d in enumerate(dims) if is_named(d)}
        left -= {len(dims) - own.rank + i for i, d in enumerate(own.dims) if is_named(d)}
        chosen: list[ir.Value] = []
        for held, v in self.by_dims.items():
            first = len(dims) - len(held)
            fits = first >= 0 and all(d in (1, dims[first + i]) for i, d in enumerate(held))
            told = {first + i for i, d in enumerate(held) if is_named(d)} if fits else set[int]()
            if told & left:
                chosen.append(v)
                left -= told
        return None if left else chosen
