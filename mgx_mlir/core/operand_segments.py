"""Parsing and printing of modules without the segment sizes that IRDL needs on variadic ops."""

from __future__ import annotations

import io
import re

from mgx_mlir.core import interrupts
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Op, op_class
from mgx_mlir.core.op_fields import segment_sizes, spread

_OPERANDS, _RESULTS = "operandSegmentSizes", "resultSegmentSizes"
_NAME = re.compile(r'"migraphx\.([a-z_]\w*)"')


def default_sizes(cls: type[Op], op: ir.Operation) -> list[int] | None:
    """Return the default operand segment sizes, by which operands fill the fields in order.

    None where the number of operands does not allow that.
    """
    types = [v.type for v in op.operands]
    needed = sum(g.arity == "single" for g in cls.OPERANDS)
    spare = len(types) - needed
    held: list[list[ir.Type]] = []
    at = 0
    for g in cls.OPERANDS:
        if g.arity == "single":
            size = 1
        else:
            size = spare if g.arity == "variadic" else min(spare, 1)
            spare -= size
        held.append(types[at : at + max(size, 0)])
        at += max(size, 0)
    return None if spare else segment_sizes(cls.OPERANDS, held)


@interrupts.held
def parse_module(source: str | bytes, context: ir.Context) -> ir.Module:
    """Parse MLIR text (or bytecode) into `context`.

    Ops may leave out resultSegmentSizes, and operandSegmentSizes where operands fill the fields in
    order. Raises ir.MLIRError, with the diagnostics in `context`, as ir.Module.parse does.
    """
    if isinstance(source, bytes) or not _has_segments(source):
        return ir.Module.parse(source, context)
    # a registered dialect requires the sizes, so add them in a context without it
    with ir.Context() as lenient:
        lenient.allow_unregistered_dialects = True
        handler = lenient.attach_diagnostic_handler(lambda _: True)
        try:
            module = ir.Module.parse(source)
            complete(module.operation)
            buffer = io.BytesIO()
            module.operation.write_bytecode(buffer)
        except ir.MLIRError:
            buffer = None  # the parse below reports the error
        finally:
            handler.detach()
    return ir.Module.parse(source if buffer is None else buffer.getvalue(), context)


def _has_segments(source: str) -> bool:
    names = {m[1] for m in _NAME.finditer(source)}
    return any(n in OPS and (OPS[n].segmented_operands or OPS[n].segmented_results) for n in names)


def complete(root: ir.Operation) -> None:
    """Add the missing segment sizes to every op under `root`."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        cls = op_class(op)
        if cls is None:
            return ir.WalkResult.ADVANCE
        if cls.segmented_results and _RESULTS not in op.attributes:
            op.attributes[_RESULTS] = _array(spread([r.type for r in op.results]), op)
        if cls.segmented_operands and _OPERANDS not in op.attributes:
            sizes = default_sizes(cls, op)
            if sizes is not None:
                op.attributes[_OPERANDS] = _array(sizes, op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)


def _only_variadic(cls: type[Op]) -> bool:
    """Return whether there is only one variadic field, whose size follows from the operand
    count.
    """
    return [g.arity for g in cls.OPERANDS if g.arity != "single"] == ["variadic"]


def _array(sizes: list[int], op: ir.Operation) -> ir.Attribute:
    return ir.DenseI32ArrayAttr.get(sizes, context=op.context)


@interrupts.held
def asm(root: ir.Operation, **flags: object) -> str:
    """`root.get_asm(**flags)` without the segment sizes that parse_module can add again."""
    with root.context, ir.Location.unknown():
        copy = root.clone()
        removed = False

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal removed
            cls = op_class(op)
            if cls is None:
                return ir.WalkResult.ADVANCE
            if cls.segmented_results and _RESULTS in op.attributes:
                del op.attributes[_RESULTS]
                removed = True
            if cls.segmented_operands and _OPERANDS in op.attributes:
                stated = list(ir.DenseI32ArrayAttr(op.attributes[_OPERANDS]))
                if stated == default_sizes(cls, op) or _only_variadic(cls):
                    del op.attributes[_OPERANDS]
                    removed = True
            return ir.WalkResult.ADVANCE

        copy.walk(visit)
        if not removed:
            return root.get_asm(**flags)  # type: ignore[arg-type]
        # the copy is invalid now, so print it without verifying
        return copy.get_asm(**{**flags, "assume_verified": True})
