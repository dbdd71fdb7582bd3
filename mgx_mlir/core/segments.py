"""Reading and printing modules without the segment sizes that IRDL wants on variadic ops."""

from __future__ import annotations

import io
import re

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Op, op_class, segment_sizes, spread

_OPERANDS, _RESULTS = "operandSegmentSizes", "resultSegmentSizes"
_NAME = re.compile(r'"migraphx\.([a-z_]\w*)"')


def _inferable(cls: type[Op]) -> bool:
    """Whether the operand sizes follow from the operand count."""
    return sum(g.arity != "single" for g in cls.OPERANDS) <= 1


def parse_module(source: str | bytes, context: ir.Context) -> ir.Module:
    """Parse MLIR text (or bytecode) into `context`.

    Ops with a variadic field may leave out operandSegmentSizes and resultSegmentSizes. Raises
    ir.MLIRError, with the diagnostics in `context`, as ir.Module.parse does.
    """
    if isinstance(source, bytes) or not _has_variadic(source):
        return ir.Module.parse(source, context)
    # the sizes cannot be left out where the dialect is known: add them where it is not
    with ir.Context() as lenient:
        lenient.allow_unregistered_dialects = True
        handler = lenient.attach_diagnostic_handler(lambda _: True)
        try:
            module = ir.Module.parse(source)
            complete(module.operation)
            buffer = io.BytesIO()
            module.operation.write_bytecode(buffer)
        except ir.MLIRError:
            buffer = None  # the parse below says what is wrong
        finally:
            handler.detach()
    return ir.Module.parse(source if buffer is None else buffer.getvalue(), context)


def _has_variadic(source: str) -> bool:
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
        if cls.segmented_operands and _OPERANDS not in op.attributes and _inferable(cls):
            singles = sum(g.arity == "single" for g in cls.OPERANDS)
            types = [v.type for v in op.operands]
            rest = len(types) - singles
            if rest >= 0:
                held, at = [], 0
                for g in cls.OPERANDS:
                    size = 1 if g.arity == "single" else rest
                    held.append(types[at : at + size])
                    at += size
                op.attributes[_OPERANDS] = _array(segment_sizes(cls.OPERANDS, held), op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)


def _array(sizes: list[int], op: ir.Operation) -> ir.Attribute:
    return ir.DenseI32ArrayAttr.get(sizes, context=op.context)


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
            if cls.segmented_operands and _inferable(cls) and _OPERANDS in op.attributes:
                del op.attributes[_OPERANDS]
                removed = True
            return ir.WalkResult.ADVANCE

        copy.walk(visit)
        if not removed:
            return root.get_asm(**flags)  # type: ignore[arg-type]
        # the copy is not valid any more, which must not change how it is printed
        return copy.get_asm(**{**flags, "assume_verified": True})  # type: ignore[arg-type]
