"""split_single_dyn_dim: a program with one dynamic extent as a choice among static programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.op import OPS, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.control import SelectModule
from mgx_mlir.passes.simplify_dyn_ops import refine
from mgx_mlir.programs.program_ir import entry_block, functions, main_function
from mgx_mlir.programs.signature import DimRange, Signature
from mgx_mlir.rewrite.passes import Pass, option


@dataclass(frozen=True)
class SplitSingleDynDim(Pass):
    """Make a static copy of @main for each size of its only dynamic extent.

    Every input that is not static has one dynamic extent, the same for all: one symbol with a known
    range. @main then chooses among `@dim_<n>` by select_module, and each size is compiled
    separately. MIGraphX does so by default. Here programs with dynamic extents are compiled
    directly, so the pass is in no pipeline, and the cpu and gpu targets do not lower select_module.
    """

    name: ClassVar[str] = "split_single_dyn_dim"
    max_sizes: int = option(64, "most sizes of the extent")

    def run(self, module: ir.Operation) -> bool:
        main = main_function(module)
        sizes = _sizes(main, self.max_sizes)
        chosen = any(is_a(v, SelectModule) for v in entry_block(main).operations)
        if sizes is None or chosen:
            return False
        taken = {ir.StringAttr(f.attributes["sym_name"]).value for f in functions(module)}
        names: list[str] = []
        for n in sizes:
            name = f"dim_{n}"
            while name in taken:
                name += "_"
            taken.add(name)
            names.append(name)
            _specialize(main, name, n)
        refine(module)
        _choose(main, names)
        return True


def _sizes(main: ir.OpView, most: int) -> range | None:
    """Return the sizes of a function's only dynamic extent; None where it has none, or several."""
    found: set[DimRange] = set()
    count = 0
    for port, argument in zip(Signature.of(main).inputs, entry_block(main).arguments, strict=True):
        dynamic_dims = [
            r for r, d in zip(port.ranges, argument.type.shape, strict=True) if d == DYN
        ]
        if len(dynamic_dims) > 1:
            return None
        count += len(dynamic_dims)
        found.update(dynamic_dims)
    if len(found) != 1:
        return None
    (extent,) = found
    # without a name two extents of one range may still differ
    if extent.max is None or (count > 1 and extent.symbol is None):
        return None
    sizes = range(extent.min, extent.max + 1)
    return sizes if 0 < len(sizes) <= most else None


def _specialize(main: ir.OpView, name: str, n: int) -> None:
    """Copy a function, before it, with `n` for its dynamic extents."""
    block = entry_block(main)
    types = [
        t.with_dims(n if d == DYN else d for d in t.dims)
        for t in (TensorType.of(a) for a in block.arguments)
    ]
    results = [v.type for v in list(block.operations)[-1].operands]
    with ir.InsertionPoint(main), main.location:
        new = func.FuncOp(name, ([t.mlir() for t in types], results), visibility="private")
    copy = new.add_entry_block()
    known: dict[ir.Value, ir.Value] = dict(zip(block.arguments, copy.arguments, strict=True))
    for view in block.operations:
        _copy(view.operation, copy, known)


def _copy(op: ir.Operation, into: ir.Block, known: dict[ir.Value, ir.Value]) -> None:
    """Clone an op at the end of a block, regions too, with what it reads replaced."""
    new = op.clone(ir.InsertionPoint(into)).operation

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for i, v in enumerate(inner.operands):
            if v in known:
                inner.operands[i] = known[v]
        return ir.WalkResult.ADVANCE

    new.walk(visit)
    known.update(zip(op.results, new.results, strict=True))


def _choose(main: ir.OpView, names: list[str]) -> None:
    """Replace the body of `main` by a call of one of the functions."""
    block = entry_block(main)
    ops = [view.operation for view in block.operations]
    end = ops[-1]
    with ir.InsertionPoint(end), end.location:
        call = OPS["select_module"](
            list(block.arguments), results=[v.type for v in end.operands], callees=names
        )
    for i, result in enumerate(call.operation.results):
        end.operands[i] = result
    for op in reversed(ops[:-1]):
        op.erase()
