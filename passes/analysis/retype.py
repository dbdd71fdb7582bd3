"""Ops in other element types: with operands converted before them, and results after them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

# defines the operators
import mgx_mlir.dialects  # noqa: F401  # pyright: ignore[reportUnusedImport]
from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import PipelineError, ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Kernel, Op, attributes_of, is_a, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.buffers import Capture, Undefined, Unknown
from mgx_mlir.dialects.migraphx.control import If, Loop, RunOnTarget, SelectModule, Yield
from mgx_mlir.dialects.migraphx.convert import BitCast, Convert
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.quant import (
    PackFp4,
    PackInt4,
    QuantConvolution,
    QuantDot,
    UnpackFp4,
    UnpackInt4,
)
from mgx_mlir.programs.program_ir import functions
from mgx_mlir.rewrite.passes import make_pass, option, run_pass

ALL = "all"
_KEPT = "mgx.kept"
# ops that depend on the bits or the type of their operands
_NEVER = (
    Convert, BitCast, Literal, Capture, Undefined, Unknown, PackInt4, UnpackInt4, PackFp4,
    UnpackFp4, SelectModule, RunOnTarget, If, Loop, Yield,
)  # fmt: skip

Values = MutableMapping[ir.Value, ir.Value]


@dataclass(frozen=True)
class Retyping:
    """The ops to compute in `target` instead of `types`, with options.

    `ops` holds names, or `all`; `skip` those of `all` that stay. An op that does not accept the
    target type stays. With `carry` results are passed on in the target type, and converted back
    only for ops that keep their types; conversions to `types` then go to the target.
    """

    types: frozenset[DType]
    target: DType
    ops: frozenset[str] = frozenset((ALL,))
    skip: frozenset[str] = frozenset()
    carry: bool = False
    kept: Sequence[ir.Operation] = ()

    def run(self, module: ir.Operation) -> bool:
        """Apply to every op of the module but those inside kernels."""
        changed = False
        # an attribute: an op's hash changes with its operands
        for op in self.kept:
            op.attributes[_KEPT] = ir.UnitAttr.get()
        for function in functions(module):
            for block in function.regions[0].blocks:
                changed |= self._block(block, ChainMap())
        for op in self.kept:
            del op.attributes[_KEPT]
        if self.carry:  # remove unused conversions
            run_pass(make_pass("dead_code_elimination"), module)
        return changed

    def _block(self, block: ir.Block, known: ChainMap[ir.Value, ir.Value]) -> bool:
        """Retype the ops of a block; say whether any changed.

        `known` holds values in the target type, of this block and those around it.
        """
        changed = False
        for view in list(block.operations):
            op = view.operation
            if len(op.regions):
                if not is_a(op, Kernel):
                    for region in op.regions:
                        for inner in region.blocks:
                            changed |= self._block(inner, known.new_child())
            elif self.carry and is_a(op, Convert):
                changed |= self._conversion(op, known)
            elif self._wants(op):
                changed |= self._op(op, known)
        return changed

    def _wants(self, op: ir.Operation) -> bool:
        cls = op_class(op)
        if cls is None or issubclass(cls, _NEVER):
            return False
        name = cls.mnemonic
        chosen = name in self.ops or (ALL in self.ops and name not in self.skip)
        return chosen and _KEPT not in op.attributes and self._has_type(op.operands)

    def _has_type(self, values: Iterable[ir.Value]) -> bool:
        return any(TensorType.of(v).dtype in self.types for v in values)

    def _op(self, op: ir.Operation, known: Values) -> bool:
        with op.location, ir.InsertionPoint(op):
            # the float dot takes operands of one type only
            general = None if self.target.is_integer else _general(op)
            operands: list[ir.Value] = []
            made: list[ir.Value] = []
            for v in op.operands:
                if general is None and TensorType.of(v).dtype not in self.types:
                    operands.append(v)
                    continue
                if v not in known:
                    known[v] = _convert(v, self.target)
                    made.append(v)
                operands.append(known[v])
            attributes = attributes_of(op)
            if general is not None:
                attributes.pop("pad_value", None)  # attribute of integers only
            results = rebuilt(op, operands, attributes, general)
            if results is None:
                for v in made:
                    known.pop(v).owner.operation.erase()
                return False
            for old, new in zip(op.results, results, strict=True):
                self._replace(old, new, known)
        op.erase()
        return True

    def _replace(self, old: ir.Value, new: ir.Value, known: Values) -> None:
        """Replace an old result by the new one, converted back to its type."""
        kind = TensorType.of(old).dtype
        back = new if TensorType.of(new).dtype is kind else _convert(new, kind)
        old.replace_all_uses_with(back)
        if self.carry and back != new and TensorType.of(new).dtype is self.target:
            known[back] = new

    def _conversion(self, op: ir.Operation, known: Values) -> bool:
        """Replace a conversion from or to `types` by the carried value; return whether it was
        removed.


        """
        x, out = op.operands[0], op.result
        if TensorType.of(x).dtype in self.types and x in known:
            with op.location, ir.InsertionPoint(op):
                kind = TensorType.of(out).dtype
                wide = known[x]
                if kind in self.types:
                    known[out] = wide
                    return False
                new = wide if kind is self.target else _convert(wide, kind)
            out.replace_all_uses_with(new)
            op.erase()
            return True
        if TensorType.of(out).dtype in self.types and x.type != out.type:
            if TensorType.of(x).dtype is self.target:
                known[out] = x
            elif TensorType.of(x).dtype not in self.types:
                with op.location, ir.InsertionPoint(op):
                    known[out] = _convert(x, self.target)
        return False


def _general(op: ir.Operation) -> str | None:
    """Return the float op that corresponds to an 8-bit dot or convolution."""
    return "dot" if is_a(op, QuantDot) else "convolution" if is_a(op, QuantConvolution) else None


def _convert(v: ir.Value, dtype: DType) -> ir.Value:
    return OPS["convert"](v, target_type=dtype).operation.result


def rebuilt(
    op: ir.Operation,
    operands: Sequence[ir.Value],
    attributes: dict[str, Any],
    name: str | None = None,
) -> list[ir.Value] | None:
    """Build an op of the same name (or of `name`) on other operands at the insertion point.

    None where the op does not take them.
    """
    cls = op_class(op)
    assert cls is not None
    groups: list[Any] = []
    at = 0
    for group, values in zip(cls.OPERANDS, cls.split_operands(op), strict=True):
        part = list(operands[at : at + len(values)])
        at += len(values)
        groups.append(part if group.arity == "variadic" else part[0] if part else None)
    made = cls if name is None else OPS[name]
    try:
        built = made(*groups[: len(made.OPERANDS)], **attributes)
    except ShapeError:
        return None
    results: list[ir.Value] = list(built.operation.results)
    same = [TensorType.of(r).dims for r in results] == [TensorType.of(r).dims for r in op.results]
    if not same:  # dims given by a builder, which infer cannot reproduce
        built.operation.erase()
        return None
    return results


# ---- options -------------------------------------------------------------------------------------


def types_option(names: Sequence[str]) -> frozenset[DType]:
    """Return the element types of an option; PipelineError for an unknown one."""
    return frozenset(type_option(name) for name in names)


def type_option(name: str) -> DType:
    """Return the element type of an option; PipelineError for an unknown one."""
    try:
        return dtypes.from_name(name)
    except ShapeError as e:
        raise PipelineError(e.message) from None


def ops_option(names: Sequence[str]) -> frozenset[str]:
    """Return the op names of an option, or `all`; PipelineError for one that is no operator."""
    for name in names:
        if name != ALL and name not in OPS:
            raise PipelineError(f"unknown operator '{name}'")
    return frozenset(names)


def named_ops(
    module: ir.Operation, names: Sequence[str], but: tuple[type[Op], ...] = ()
) -> list[ir.Operation]:
    """Return the ops outside of kernels that an option names; `all` excludes those of `but`."""
    chosen = tuple(OPS[name] for name in ops_option(names) if name != ALL)
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if is_a(op, Kernel):
            return ir.WalkResult.SKIP
        every = ALL in names and op_class(op) is not None and not is_a(op, but)
        if every or is_a(op, chosen):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def ops_field(default: tuple[str, ...] = (ALL,)) -> Any:
    """Return the dataclass field of an option that holds op names, or `all`."""
    return option(default, "names of the ops that are converted, or all")
