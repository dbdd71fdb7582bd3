"""Matmuls of a quantised model that run in 8 bits, and why other quantise-dequantise pairs stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.stages import steps_of
from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import ViewOp, is_a, is_terminator, mnemonic
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, UnpackInt4
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.quantization.sites import op_name
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.rewrite.rewrite_trace import APPLIED, MatchTrace, op_text

_STEPS = ("simplify-qdq", "pack-weights")
_WIDENED = "find_blocked_weights"
_BEHIND = 8  # most ops between a dot and the codes of its weights
_PRODUCTS = ("dot", "convolution")
_QUANTISED = ("quant_dot", "quant_convolution")
# op kinds that read a dequantised value without computing on it
_PATTERNS = {
    **dict.fromkeys(_PRODUCTS, ("match_find_mx_quantizable_ops", "match_find_quantizable_ops")),
    "pooling": ("find_pooled",),
    "quantizelinear": ("find_quantised_again",),
}


@dataclass(frozen=True)
class Stayed:
    """A dequantised value that a target computes with in floats."""

    node: str  # source node of the value
    dtype: str  # type of the codes
    weights: bool  # codes are constant
    reader: str  # source node of the reading op
    kind: str  # kind of the reading op; "return" for a result of the program
    why: str  # reason why the reading op does not use the codes

    def __str__(self) -> str:
        what = "weights" if self.weights else "values"
        by = "a result of the program" if self.kind == "return" else f"{self.kind} '{self.reader}'"
        return f"{self.node}: {what} of {self.dtype}, read by {by}: {self.why}"


@dataclass(frozen=True)
class QuantisedPairs:
    """Quantised dots and convolutions of a model, and the remaining pairs."""

    products: tuple[str, ...]  # names of dots and convolutions in 8 bits
    stayed: tuple[Stayed, ...]
    # float dots whose kernels convert weights of few bits: name and bits
    widened: tuple[tuple[str, int], ...] = ()


def quantised_pairs(program: ProgramIR, options: CompileOptions) -> QuantisedPairs:
    """Run the passes of a target up to `simplify_qdq` and `pack_weights`, and judge the rest.

    The program is not changed. If the reader of a remaining pair is pointwise, the pair costs a
    conversion in that kernel, and no additional memory traffic.
    """
    copy = program.clone()
    steps = steps_of(options)
    last = max(i for i, s in enumerate(steps) if any(n in s.replace("_", "-") for n in _STEPS))
    wanted = frozenset(name for names in _PATTERNS.values() for name in names) | {_WIDENED}
    trace = MatchTrace(wanted)
    run_pipeline(copy.module, steps[: last + 1], store=copy.store, trace=trace)
    refusals = {
        (a.name, a.op): a.outcome for a in trace.attempts if a.outcome != APPLIED
    }  # the last pipeline position counts
    products: list[str] = []
    widened: list[tuple[str, int]] = []
    stayed: dict[Stayed, None] = {}
    with copy.ctx, copy.store.active():
        for op in _ops(copy.module.operation):
            if mnemonic(op) in _QUANTISED:
                products.append(op_name(op))
            if is_a(op, BlockedDot):
                widened.append((op_name(op), op.opview.bits))
            if is_a(op, Dot) and (codes := _halves(op)) is not None:
                kind = f"{'u' if TensorType.of(codes).dtype.is_unsigned else ''}i4"
                why = refusals.get((_WIDENED, op_text(op)), "no kernel reads the codes directly")
                left = Stayed(op_name(codes.owner), kind, True, op_name(op), "dot", why)
                stayed[left] = None
            if not is_a(op, DequantizeLinear) or _is_sum(op.operands[0]):
                continue
            if splat(op.operands[0]) is not None:  # a bound of a pair that became a clip
                continue
            source = op.operands[0]
            kind, constant = TensorType.of(source).dtype.mlir, _is_constant(source)
            for reader in _readers(op.results[0]):
                name = "return" if is_terminator(reader) else mnemonic(reader)
                found = Stayed(
                    op_name(op), kind, constant, op_name(reader), name, _why(reader, name, refusals)
                )
                stayed[found] = None
    return QuantisedPairs(tuple(products), tuple(stayed), tuple(widened))


def _halves(dot: ir.Operation) -> ir.Value | None:
    """Return the 4-bit codes that a dot's weights are made of, None for other weights."""
    value = dot.operands[1]
    for _ in range(_BEHIND):
        owner = value.owner
        if isinstance(owner, ir.Block) or not len(owner.operands):
            return None
        if is_a(owner, UnpackInt4):
            return value if _is_constant(owner.operands[0]) else None
        value = owner.operands[0]
    return None


def _why(reader: ir.Operation, name: str, refusals: dict[tuple[str, str], str]) -> str:
    text = op_text(reader)
    for each in reversed(_PATTERNS.get(name, ())):
        found = refusals.get((each, text))
        if found is not None:
            return found
    if name == "return":
        return "results are floats"
    return "it has no 8-bit form, and is computed in floats"


def _ops(root: ir.Operation) -> Iterator[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("migraphx."):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return iter(found)


def _behind(value: ir.Value) -> ir.Value:
    """Return the value behind views."""
    while not isinstance(value.owner, ir.Block) and is_a(value.owner, (ViewOp, Convert)):
        if not len(value.owner.operation.operands):
            return value
        value = value.owner.operation.operands[0]
    return value


def _is_sum(codes: ir.Value) -> bool:
    """Return whether a value is the dequantised sum of an 8-bit dot."""
    owner = _behind(codes).owner
    return not isinstance(owner, ir.Block) and (
        TensorType.of(codes).dtype.bits == 32 and not literals.is_literal(owner)
    )


def _is_constant(codes: ir.Value) -> bool:
    owner = _behind(codes).owner
    return not isinstance(owner, ir.Block) and literals.is_literal(owner)


def _readers(value: ir.Value) -> Iterator[ir.Operation]:
    """Return the ops that read a value, through views."""
    for use in value.uses:
        op = use.owner.operation
        if not is_terminator(op) and is_a(op, (ViewOp, Convert)):
            if use.operand_number == 0:
                yield from _readers(op.results[0])
        else:
            yield op
