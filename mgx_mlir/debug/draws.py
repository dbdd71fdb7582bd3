"""Purposes of a program's integer inputs, found from the ops that read them: index, mask, size."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, attributes_of, is_a, mnemonic, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.debug.purposes import Draw, Purpose
from mgx_mlir.dialects.migraphx.control import If
from mgx_mlir.programs.program_ir import ProgramIR, argument_names, entry_block

_WIDE = 4  # element bytes from which on MIGraphX's random integers exceed useful ranges

# ops whose result has the operand's own values
_MOVES = {
    "identity", "contiguous", "layout", "transpose", "reshape", "reshape_lazy", "flatten",
    "squeeze", "unsqueeze", "broadcast", "multibroadcast", "scalar", "broadcast_with_dims",
    "broadcast_for_dot", "slice", "step", "reverse", "scan_slice", "concat", "where", "convert",
}  # fmt: skip
# operands that state a size
_SIZES = {
    "reshape": ("dims_tensor",), "broadcast_with_dims": ("dims",), "allocate": ("dims",),
    "slice": ("input_starts", "input_ends", "input_axes"), "resize": ("target",),
    "dynamic_range": ("start", "limit", "delta"), "onehot": ("depth_input",),
    "loop": ("iterations",),
}  # fmt: skip
_TRUTH = {"equal", "greater", "less", "not", "logical_and", "logical_or", "logical_xor"}


def draws(program: ProgramIR) -> dict[str, Draw]:
    """Return the way to draw each integer input of a program; the default is `any`."""
    out = {}
    with program.ctx:
        main = program.main()
        for name, value in zip(argument_names(main), entry_block(main).arguments, strict=True):
            t = TensorType.of(value)
            wide = t.dtype.is_integer and t.dtype.size >= _WIDE
            out[name] = _Uses(value).draw(wide) if t.dtype.is_integer else Draw()
    return out


class _Uses:
    """Search for the uses of an integer value in a program."""

    def __init__(self, value: ir.Value) -> None:
        self.bounds: list[int] = []
        self.purposes: set[Purpose] = set()
        self.seen: set[tuple[ir.Value, bool]] = set()
        self.work: list[tuple[ir.Value, bool]] = [(value, True)]

    def draw(self, wide: bool) -> Draw:
        while self.work:
            value, exact = self.work.pop()
            if (value, exact) in self.seen:
                continue
            self.seen.add((value, exact))
            for use in value.uses:
                self._use(use.owner.operation, use.operand_number, exact)
        if "size" in self.purposes:
            return Draw("size")
        if self.bounds:
            return Draw("index", max(min(self.bounds), 1))
        return Draw("mask") if wide and "mask" in self.purposes else Draw()

    def _use(self, op: ir.Operation, number: int, exact: bool) -> None:
        name, cls = mnemonic(op), op_class(op)
        if name == "yield":
            self._leave(op, number, exact)
            return
        if cls is None:
            return
        if is_a(op, Kernel):
            self.work.append((op.regions[0].blocks[0].arguments[number], exact))
            return
        group = _group(cls, op, number)
        if group in _SIZES.get(name, ()):
            self.purposes.add("size")
            return
        bound = _index_bound(name, group, op)
        if bound is not None:
            # results of arithmetic have other ranges: small inputs keep them small
            if exact:
                self.bounds.append(bound)
            else:
                self.purposes.add("mask")
            return
        results = [(r, TensorType.of(r).dtype) for r in op.results]
        if name in _TRUTH or any(not d.is_integer for _, d in results):
            self.purposes.add("mask")
        kept = exact and name in _MOVES
        self.work += [(r, kept) for r, d in results if d.is_integer]

    def _leave(self, op: ir.Operation, number: int, exact: bool) -> None:
        parent = op.parent.operation
        if is_a(parent, (Kernel, If)):
            self.work.append((parent.results[number], exact))


def _group(cls: type, op: ir.Operation, number: int) -> str:
    """Return the name of the operand field that an operand belongs to."""
    at = 0
    for group, values in zip(cls.OPERANDS, cls.split_operands(op), strict=True):
        at += len(values)
        if number < at:
            return group.name
    return ""


def _index_bound(name: str, group: str, op: ir.Operation) -> int | None:
    """Return the number of entries that an index operand selects from; None for other operands."""
    if group == "seqlens_k":
        table, axis = (op.operands[2], 2 if name == "concat_past_present" else 0)
        return _extent(table, axis)
    if group != "indices":
        return None
    dims = TensorType.of(op.operands[0]).dims
    if name == "gather" or name.startswith("scatter_"):
        return _extent(op.operands[0], int(attributes_of(op)["axis"]))
    if name == "gathernd" or name.startswith("scatternd"):
        first = int(attributes_of(op).get("batch_dims") or 0)
        last = TensorType.of(op.operands[1]).dims[-1]
        known = [d for d in dims[first : first + max(last, 1)] if d >= 0]
        return min(known, default=1)
    if name == "onehot":
        depth = attributes_of(op).get("depth")
        return int(depth) if depth else 2
    return None


def _extent(table: ir.Value, axis: int) -> int:
    dims = TensorType.of(table).dims
    found = dims[axis] if dims else 1
    return found if found >= 0 else 1


__all__ = ["draws"]
