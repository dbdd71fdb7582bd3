"""name_dynamic_dims: give names to dynamic dims that input sizes determine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import ClassVar

from mgx_mlir.core.dynamic_dims import may_be_negative
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, BroadcastOp, attributes_of, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.attention import ConcatPastPresent
from mgx_mlir.dialects.migraphx.broadcasts import BroadcastForDot, BroadcastWithDims, DimensionsOf
from mgx_mlir.dialects.migraphx.control import If, Loop
from mgx_mlir.dialects.migraphx.indexing import NonZero
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.dialects.migraphx.selection import NonMaxSuppression, Unique
from mgx_mlir.dialects.migraphx.views import Reshape
from mgx_mlir.passes.analysis.extent_values import UnknownExtent, extent_of, value_of
from mgx_mlir.passes.simplify_dyn_ops import restate_results
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.dim_probe import DimProbe
from mgx_mlir.programs.program_ir import entry_block, functions, has_dynamic_dims
from mgx_mlir.programs.signature import Signature
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.symbolic.expressions import Atom, Expr, Int, size_of
from mgx_mlir.symbolic.named_extents import Naming

# ops that compute sizes, which are not replaced
_MAKERS = (ConcatPastPresent, Loop, NonZero, NonMaxSuppression, Unique)


@dataclass(frozen=True)
class NameDynamicDims(Pass):
    """Dynamic dims that the inputs' sizes determine become names in the types.

    With `made`, so do sizes that depend on values, in results whose size no pass changes.

    A name is a number larger than any size, the same for equal expressions. So passes see equal
    dynamic dims as equal, and treat them as known in reshapes and broadcasts. `forget_dynamic_dims`
    undoes it; in between, the numbers are valid only in this process. Programs of several
    functions, and bodies of loops, are not changed.
    """

    name: ClassVar[str] = "name_dynamic_dims"
    made: bool = option(True, "sizes that depend on values get names too")

    def run(self, module: ir.Operation) -> bool:
        found = list(functions(module))
        if len(found) != 1 or not has_dynamic_dims(found[0]):
            return False
        function = found[0]
        names = Names(entry_block(function), _probe_of(function), made=self.made)
        changed = names.state()
        restate_results(function)
        return changed


def _probe_of(function: ir.OpView) -> DimProbe:
    """Return a probe of a function's dynamic dims, which knows the dims of its arguments."""
    probe = DimProbe()
    probe.active = True
    for argument, port in zip(
        entry_block(function).arguments, Signature.of(function).inputs, strict=True
    ):
        symbols = [r.symbol for r in port.ranges]
        probe.argument(argument, symbols, [(r.min, r.max) for r in port.ranges])
    return probe


def _values(block: ir.Block) -> list[ir.Value]:
    return [*block.arguments, *(r for op in block.operations for r in op.results)]


class Names:
    """Naming of dims in a block and its branches; `probe` knows the dims of its arguments."""

    def __init__(self, block: ir.Block, probe: DimProbe, *, made: bool = True) -> None:
        self.block, self.probe = block, probe
        self.naming = Naming(probe.prover)
        dims = (d for a in block.arguments for d in probe.dims(a))
        self.sizes = {atom for d in dims if isinstance(d, Expr) for atom in d.atoms()}
        self.made = made

    def _tell_dims(self, op: ir.Operation) -> None:
        """dimensions_of(x) -> numbers and dims of arguments, so that x is not used"""
        attributes = attributes_of(op)
        found = self.probe.dims(op.operands[0])
        places = [(a, i, d) for a in self.block.arguments for i, d in enumerate(self.probe.dims(a))]
        b = Builder()

        def held(alone: Expr) -> ir.Value | None:
            return next((extent_of(b, a, i) for a, i, d in places if d is alone), None)

        def part(e: Int) -> ir.Value:
            whole = next(((a, i) for a, i, d in places if d is e), None)
            if whole is not None:
                return b.shape(whole[0], whole[1], whole[1] + 1)
            return b.op("unsqueeze", value_of(b, e, held), axes=[0])

        with ir.InsertionPoint(op), op.location:
            try:
                parts = [*map(part, found[attributes["start"] : attributes["end"] or len(found)])]
            except UnknownExtent:
                return
            new = parts[0] if len(parts) == 1 else b.op("concat", parts, axis=0)
        op.results[0].replace_all_uses_with(new)
        op.erase()

    def _is_first(self, op: ir.Operation) -> bool:
        """Return whether dimensions_of reads dims of an argument that no earlier one has."""
        source, attributes = op.operands[0], attributes_of(op)
        if not isinstance(source.owner, ir.Block):
            return False
        own = self.probe.dims(source)
        asked = own[attributes["start"] : attributes["end"] or len(own)]
        earlier = itertools.takewhile(lambda a: a != source, self.block.arguments)
        known = {id(d) for a in earlier for d in self.probe.dims(a)}
        return all(isinstance(d, int) or id(d) not in known for d in asked)

    def state(self) -> bool:
        """Write the names into all types, and into ops that took these dims as operands."""
        for v in _values(self.block):  # in order, as facts about sizes help later values
            self.probe.known(v)
        self.sizes |= self._made_sizes() if self.made else set()
        for view in list(self.block.operations):
            if is_a(view, DimensionsOf) and not self._is_first(view.operation):
                self._tell_dims(view.operation)
        blocks = list(self._blocks(self.block))
        values = [v for block in blocks for v in _values(block)]
        told: list[tuple[ir.Value, TensorType]] = []
        # all values first, as facts learned from an op also hold for earlier ops
        found = {v: self.probe.dims(v) for v in values if not TensorType.of(v).is_static}
        for v in _values(self.block):  # a branch may not have run, so it proves nothing
            for e in found.get(v, ()):
                self.probe.prover.learn(e)  # no extent is negative where an op has run
        for op in self.block.operations:
            if isinstance(op, Dot):
                self._learn_depth(op)
        for v, expressions in found.items():
            t = TensorType.of(v)
            dims = zip(t.dims, expressions, strict=True)
            named = t.with_dims(self._name(e) if d == DYN else d for d, e in dims)
            if named != t:
                told.append((v, named))
        for v, named in told:
            v.set_type(named.mlir())
        for block in blocks:
            for view in list(block.operations):
                self._simplify(view.operation)
            self._share_broadcasts(block)
        return bool(told)

    def _learn_depth(self, dot: Dot) -> None:
        """Learn that the depths of a matmul's operands are equal, which is checked at run time."""
        depth = self.probe.dims(dot.a)[-1] - self.probe.dims(dot.b)[-2]
        if not isinstance(depth, int):
            self.probe.prover.learn(depth)
            self.probe.prover.learn(-depth)

    def _blocks(self, block: ir.Block) -> Iterator[ir.Block]:
        """Yield a block and those of the branches in it, whose arguments are an if's operands."""
        yield block
        for view in block.operations:
            op = view.operation
            if not is_a(op, If):
                continue
            for region in op.regions:
                inner = region.blocks[0]
                for argument, v in zip(inner.arguments, list(op.operands)[1:], strict=True):
                    self.probe.seen[argument] = self.probe.known(v)
                yield from self._blocks(inner)

    def _made_sizes(self) -> set[Atom]:
        """Return the extents that depend on values, of results whose size no pass changes."""
        makers = [op.operation for op in self.block.operations if is_a(op, _MAKERS)]
        dims = (d for op in makers for r in op.results for d in self.probe.dims(r))
        return {atom for d in dims if (atom := size_of(d)) is not None}

    def _name(self, e: Int) -> int:
        if isinstance(e, int):
            return e if e >= 0 else DYN
        if not self._is_told(e):
            return DYN
        found = self.naming.of(e)
        return DYN if may_be_negative(found) else found

    def _is_told(self, e: Expr) -> bool:
        """Return whether an expression depends only on input sizes, so that it can be
        recomputed.
        """
        for atom in e.atoms():
            if atom.kind == "size":
                if atom not in self.sizes:
                    return False
            elif atom.kind == "function" or not all(
                self._is_told(x) for x in atom.arguments if isinstance(x, Expr)
            ):
                return False
        return True

    def _share_broadcasts(self, block: ir.Block) -> None:
        """Merge broadcasts of a value to the same named dims."""
        made: dict[tuple[ir.Value, ir.Type], ir.Value] = {}
        for view in list(block.operations):
            op = view.operation
            if is_a(op, BroadcastWithDims) and TensorType.of(op.results[0]).is_static:
                first = made.setdefault((op.operands[0], op.results[0].type), op.results[0])
                if first != op.results[0]:
                    op.results[0].replace_all_uses_with(first)
                    op.erase()

    def _simplify(self, op: ir.Operation) -> None:
        """Replace a view with computed dims by one with named dims in an attribute."""
        if not is_a(op, (Reshape, Resize, BroadcastOp, BroadcastWithDims, BroadcastForDot)):
            return
        out = TensorType.of(op.results[0])
        x = op.operands[0]
        own = TensorType.of(x).dims
        if not out.is_static or DYN in own or 0 in out.dims or 0 in own:
            return
        if own == out.dims:
            op.results[0].replace_all_uses_with(x)
            op.erase()
            return
        if is_a(op, Reshape):
            name, operands, attributes = "reshape", x, {"dims": out.dims}
        elif is_a(op, Resize):
            if op.opview.target is None or TensorType.of(op.opview.target).dtype.is_float:
                return  # with scales, extents do not determine coordinates
            name, operands = "resize", x
            attributes = {**attributes_of(op), "sizes": list(out.dims)}
        elif is_a(op, BroadcastOp) and len(op.operands) == 1:
            return
        elif op.name == "migraphx.broadcast":
            axis = OPS["broadcast"].ATTRS["axis"].read(op.attributes)
            name, operands, attributes = "broadcast", x, {"axis": axis, "out_lens": out.dims}
        else:
            tail = out.dims[len(out.dims) - len(own) :]
            if any(d not in (1, w) for d, w in zip(own, tail, strict=True)):
                return  # the dim that is 1 is only known at run time
            name, operands, attributes = "multibroadcast", [x], {"out_lens": out.dims}
        with ir.InsertionPoint(op), op.location:
            try:
                new = OPS[name](operands, **attributes)
            except MgxError:
                return
        new.result.set_type(op.results[0].type)
        op.results[0].replace_all_uses_with(new.result)
        op.erase()
