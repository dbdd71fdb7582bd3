"""propagate_constant: evaluate what depends on literals alone, with the reference interpreter."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import BroadcastOp, Kernel, is_a, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import BroadcastWithDims
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, UnpackFp4, UnpackInt4
from mgx_mlir.dialects.migraphx.views import Contiguous, Reshape, Squeeze, Transpose, Unsqueeze
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.rewrite.rewrite_trace import op_text
from mgx_mlir.rewrite.switches import flag

_BROADCASTS = (BroadcastOp, BroadcastWithDims)
_THROUGH = (Reshape, Contiguous, DequantizeLinear, Transpose, Squeeze, Unsqueeze)
_UNPACK = (UnpackInt4, UnpackFp4)
# limits of intermediate growth: 4-bit weights become f64 before they are scaled
_WIDENED = 16  # times the bytes of the literals
_SPARE = 4  # times max_growth, for small ones
_IN_ALL = 16  # times max_growth: most growth of all literals of a module


@dataclass(frozen=True)
class PropagateConstant(Pass):
    """Replace ops whose operands are all literals by a literal of their value.

    Only the last op of a constant expression becomes a literal. Broadcasts that repeat data, and
    unpacked weights, are not folded. Nor are results that are larger than `max_growth` bytes and
    than their literals, or that need far more memory to compute. All literals of a module together
    grow by at most sixteen times `max_growth`.
    """

    name: ClassVar[str] = "propagate_constant"
    skip: tuple[str, ...] = option((), "ops to leave as they are")
    max_growth: int = option(16 << 20, "most bytes by which a result may exceed its literals")

    def run(self, module: ir.Operation) -> bool:
        folding = _Folding(self)
        for region in module.regions:
            for block in region.blocks:
                folding.collect(block)
        return folding.replace() > 0


class _Folding:
    """The constant values of one module, with arrays computed on demand."""

    def __init__(self, options: PropagateConstant) -> None:
        self.skip = frozenset(options.skip)
        self.max_growth = options.max_growth
        self.constant: dict[ir.Value, int] = {}  # value -> bytes of the literals that it depends on
        self.order: list[ir.Operation] = []
        self.arrays: dict[ir.Value, np.ndarray] = {}
        self.large: list[ir.Value] = []  # values in `arrays` to be dropped
        self.run = Interpreter(None, literals.WeightStore())  # type: ignore[arg-type]

    def collect(self, block: ir.Block) -> None:
        """Collect the constant ops of a block and of its inner blocks, in order."""
        for view in block.operations:
            op = view.operation
            if is_a(op, Kernel):
                continue
            for region in op.regions:
                for inner in region.blocks:
                    self.collect(inner)
            if is_literal(op):
                self.constant[op.result] = self.stored(op)
            elif self.is_foldable(op):
                size = self.literals_of(op)
                for r in op.results:
                    self.constant[r] = size
                self.order.append(op)

    def is_foldable(self, op: ir.Operation) -> bool:
        cls = op_class(op)
        if cls is None or not cls.is_pure() or len(op.regions) or cls.mnemonic in self.skip:
            return False
        if not len(op.operands) or not all(v in self.constant for v in op.operands):
            return False
        values = (*op.operands, *op.results)
        return all(TensorType.of(v).is_known for v in values) and self.is_bounded(op)

    @staticmethod
    def stored(op: ir.Operation) -> int:
        """Return the bytes of a literal; a splat has those of one element."""
        if "value" in op.attributes:
            value = op.attributes["value"]
            if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
                return TensorType.of(op.result).dtype.size
        return _bytes(op.result)

    def literals_of(self, op: ir.Operation) -> int:
        """Return the bytes of the literals that an op's operands depend on."""
        return sum(self.constant[v] for v in set(op.operands))

    def is_bounded(self, op: ir.Operation) -> bool:
        """Return whether the op's memory is in proportion to its literals.

        A broadcast is free; its readers are not.
        """
        most = _WIDENED * self.literals_of(op) + _SPARE * self.max_growth
        results = () if is_a(op, _BROADCASTS) else op.results
        return all(_bytes(v) <= most for v in (*op.operands, *results))

    def replace(self) -> int:
        """Replace each constant that has a non-constant user by a literal."""
        replaced = 0
        chosen = [op for op in self.order if self.is_last(op) and self.is_worth(op)]
        tracing = flag("MIGRAPHX_TRACE_PROPAGATE_CONSTANT")
        room = _IN_ALL * self.max_growth
        for op in chosen:
            growth = max(self.bytes_of(op) - self.constant[op.results[0]], 0)
            if growth > room:
                continue
            room -= growth
            if tracing:
                print(f"Constant replace: {op_text(op)}", file=sys.stderr)
            with ir.InsertionPoint(op), op.location:
                news = [literals.create_reordered(self.array(r)) for r in op.results]
            for old, new in zip(op.results, news, strict=True):
                old.replace_all_uses_with(new)
            replaced += 1
            # large intermediate values are not kept: few are needed twice
            for v in self.large:
                del self.arrays[v]
            self.large.clear()
        return replaced

    def is_last(self, op: ir.Operation) -> bool:
        """Return whether a user is not folded: not constant, or an op to keep."""
        for r in op.results:
            for use in r.uses:
                user = use.owner.operation
                results = user.results
                if not len(results) or results[0] not in self.constant or not self.is_worth(user):
                    return True
        return False

    def is_worth(self, op: ir.Operation) -> bool:
        """Return whether the op's value should become a literal."""
        if is_a(op, _UNPACK):
            return False
        if is_a(op, _BROADCASTS):
            return TensorType.of(op.result).elements <= TensorType.of(op.operands[0]).elements
        if is_a(op, _THROUGH):
            owner = op.operands[0].owner
            if is_a(owner, (*_BROADCASTS, *_THROUGH, *_UNPACK)):
                return self.is_worth(owner.operation)
        return self.bytes_of(op) <= self.constant[op.results[0]] + self.max_growth

    @staticmethod
    def bytes_of(op: ir.Operation) -> int:
        return sum(map(_bytes, op.results))

    def array(self, value: ir.Value) -> np.ndarray:
        """Return the value of a constant, computed on demand without recursion."""
        readers = self.readers(value)
        todo = [value]
        while todo:
            v = todo[-1]
            if v in self.arrays:
                todo.pop()
                continue
            op = v.owner.operation
            if is_literal(op):
                self.keep(v, literals.array_of(op))
                continue
            missing = [x for x in op.operands if x not in self.arrays]
            if missing:
                todo += missing
                continue
            with np.errstate(all="ignore"):
                found = self.run.evaluate(op, [self.arrays[x] for x in op.operands])
            for r, array in zip(op.results, found, strict=True):
                self.keep(r, array)
            for x in set(op.operands):
                readers[x] -= 1
                if not readers[x] and x in self.large:
                    self.large.remove(x)
                    del self.arrays[x]
        return self.arrays[value]

    def readers(self, value: ir.Value) -> Counter[ir.Value]:
        """Return how many ops read each value that has to be computed for `value`."""
        found: Counter[ir.Value] = Counter()
        todo = [value]
        seen: set[ir.Operation] = set()
        while todo:
            v = todo.pop()
            owner = v.owner.operation
            if v in self.arrays or owner in seen:
                continue
            seen.add(owner)
            found.update(set(owner.operands))
            todo += owner.operands
        return found

    def keep(self, value: ir.Value, array: np.ndarray) -> None:
        """Remember the array of a value."""
        if value not in self.arrays and array.nbytes >= 1 << 16:
            self.large.append(value)
        self.arrays[value] = array


def _bytes(value: ir.Value) -> int:
    t = TensorType.of(value)
    return t.elements * t.dtype.size
