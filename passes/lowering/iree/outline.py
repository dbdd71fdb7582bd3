"""Outline kernels to executables beside the functions that launch them.

iree-compile does that only after some fifty passes over functions that contain all kernels. These
passes change nothing in our kernels; with executables from the start, compiles are a quarter
faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import LAUNCH
from mgx_mlir.passes.lowering.equal_kernels import APART, CODE
from mgx_mlir.passes.lowering.iree.iree_ops import SEGMENTS, TIED, build, flow_return


def outline_kernels(module: ir.Module) -> None:
    """flow.dispatch.workgroups { kernel } -> flow.executable { kernel }, flow.dispatch of it

    Dispatches that share code (equal_kernels.CODE) launch the executable of the first.
    """
    found = _dispatches(module)
    codes = [op.attributes.get(CODE, i) for i, op in enumerate(found)]
    built = {c: op for c, op in zip(codes, found, strict=True) if len(op.regions[0].blocks)}
    shared: dict[Hashable, str] = {}
    for name, code in zip(_names(found), codes, strict=True):
        if code not in shared:
            shared[code] = name
            with ir.InsertionPoint(module.body), built[code].location:
                _executable(name, built[code])
    for op, code in zip(found, codes, strict=True):
        with ir.InsertionPoint(op), op.location:
            launched = _launch(shared[code], op)
        for old, new in zip(op.results, launched.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def drop_unread_kernels(module: ir.Module) -> None:
    """Erase dispatches whose results are unused, or used only by views.

    They arise where an operand was materialised before its kernel, which then reads the operand's
    source. Code that other dispatches share moves to the first of these.
    """
    live: dict[Hashable, ir.Operation] = {}  # code -> its first dispatch, of those met so far
    for op in reversed(_dispatches(module)):
        code = op.attributes.get(CODE)
        if any(map(_is_read, op.results)):
            live[code] = op
            continue
        for r in op.results:
            _erase_readers(r)
        blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
        heir = None if code is None else live.get(code)
        if heir is not None and blocks:
            for block, region in zip(blocks, heir.regions, strict=True):
                block.append_to(region)
            if APART in op.attributes:
                heir.attributes[APART] = op.attributes[APART]
        op.erase()


_VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape", "tensor.cast"})


def _is_read(value: ir.Value) -> bool:
    """Return whether an op reads a value, or a view of it."""
    readers = [use.owner.operation for use in value.uses]
    return any(o.name not in _VIEWS or _is_read(o.results[0]) for o in readers)


def _erase_readers(value: ir.Value) -> None:
    for use in list(value.uses):
        reader = use.owner.operation
        _erase_readers(reader.results[0])
        reader.erase()


def _dispatches(module: ir.Module) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name != "flow.dispatch.workgroups":
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.SKIP

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def leave_out_kernels(module: ir.Module) -> None:
    """flow.dispatch.workgroups { kernel } -> flow.dispatch.workgroups { }

    Of dispatches whose code is compiled apart. Their interfaces stay.
    """
    for op in _dispatches(module):
        if APART in op.attributes:
            block = op.regions[0].blocks[0]
            for inner in reversed([view.operation for view in block.operations]):
                inner.erase()
            with ir.InsertionPoint(block):
                flow_return()


def outline_alone(dispatch: ir.Operation) -> ir.Module:
    """flow.dispatch.workgroups { kernel } -> a module of flow.executable { kernel } alone

    The dispatch is unchanged.
    """
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        copy = dispatch.clone()
        _executable("kernel_dispatch", copy)
        copy.erase()
    return module


def _names(dispatches: Sequence[ir.Operation]) -> list[str]:
    """Return `kernel_dispatch_3_dot_add`, or `.._part1of2` where an op of the program has several.

    Reports find the op by that (tools/driver/timing.py).
    """
    made_for = [ir.StringAttr(op.attributes[LAUNCH]).value for op in dispatches]
    counts, seen = Counter(made_for), Counter[str]()
    names: list[str] = []
    for number, label in enumerate(made_for):
        seen[label] += 1
        _, _, name = label.partition(" ")
        part = f"_part{seen[label]}of{counts[label]}" if label and counts[label] > 1 else ""
        names.append(f"kernel_dispatch_{number}" + (f"_{name}" if name else "") + part)
    return names


def _executable(name: str, op: ir.Operation) -> None:
    """Build an executable of a dispatch's kernel and of its count of workgroups."""
    symbol = ir.StringAttr.get(name)
    named = {"sym_name": symbol}
    private = {**named, "sym_visibility": ir.StringAttr.get("private")}
    if APART in op.attributes:
        private[APART] = op.attributes[APART]
    made = build("flow.executable", attributes=private, regions=1)
    with ir.InsertionPoint(made.regions[0].blocks.append()):
        reference = {**named, "function_ref": ir.FlatSymbolRefAttr.get(name)}
        export = build("flow.executable.export", attributes=reference, regions=1)
        module = build("builtin.module", regions=1)
        build("flow.executable_end")
    kernel, count = (region.blocks[0] for region in op.regions)
    count.append_to(export.regions[0])
    with ir.InsertionPoint(module.regions[0].blocks.append()):
        kind = ir.FunctionType.get([a.type for a in kernel.arguments], [])
        typed = {**named, "function_type": ir.TypeAttr.get(kind)}
        function = build("func.func", attributes=typed, regions=1)
    kernel.append_to(function.regions[0])
    end = kernel.operations[len(kernel.operations) - 1].operation
    with ir.InsertionPoint(end):
        build("func.return")
    end.erase()


def _launch(name: str, op: ir.Operation) -> ir.Operation:
    """Build the launch of an executable with the operands and extents of a dispatch."""
    kept = {key: op.attributes[key] for key in (SEGMENTS, TIED) if key in op.attributes}
    entry = ir.Attribute.parse(f"[@{name}::@{name}]")
    types = [r.type for r in op.results]
    return build("flow.dispatch", op.operands, types, attributes={"entry_points": entry, **kept})
