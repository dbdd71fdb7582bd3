"""A pattern of simplify_qdq: ops from one 8-bit value to another become a table."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.op import Pointwise, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.byte_table import SIZE
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.quant import QuantizeLinear
from mgx_mlir.passes.analysis.constants import is_constant, splat
from mgx_mlir.passes.analysis.qdq_values import QUANTISERS
from mgx_mlir.passes.analysis.view_chains import VIEWS
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.rewrite.pattern import Replacement, Rewriter, no_match, pattern

BYTES = (dtypes.INT8, dtypes.UINT8)
_MOST = 64  # most ops of a table
_LEAST = 2  # least ops of a table


@pattern(QuantizeLinear, Convert)
def find_byte_table(op: QuantizeLinear | Convert, rw: Rewriter) -> Replacement:
    """quantizelinear(f(dq(x, s, z)), t, w) -> byte_table(x), f pointwise ops and numbers

    x and the result have 8 bits, so there are 256 values, which are computed at compile time by the
    model's ops. Only with the option `tables`, for CPUs with byte lookups.
    """
    if not rw.options.tables:
        return no_match("the option tables is off")
    kind = TensorType.of(op.result).dtype
    if kind not in BYTES:
        return no_match("the result is of {}", kind)
    cone = _Cone(rw, TensorType.of(op.result).dims)
    source = cone.only_source(op.operation)
    if source is None:
        return no_match("it is not computed from one 8-bit value and numbers")
    ops = cone.between(source, op.operation)
    if len(ops) < _LEAST:
        return no_match("it is one op")
    rw.merge_location(*ops[:-1])
    return rw.op("byte_table", source, table=cone.table(source, ops), out_type=kind)


class _Cone:
    """Sources from which pointwise ops compute values of some dims."""

    def __init__(self, rw: Rewriter, dims: tuple[int, ...]) -> None:
        self.rw, self.dims = rw, dims
        self.numbers: dict[ir.Value, np.ndarray] = {}
        self._known: dict[ir.Value, frozenset[ir.Value] | None] = {}

    def only_source(self, op: ir.Operation) -> ir.Value | None:
        """Return the only 8-bit value that an op depends on, if there is one."""
        found = self._read_by(op)
        return next(iter(found)) if found is not None and len(found) == 1 else None

    def between(self, source: ir.Value, op: ir.Operation) -> list[ir.Operation]:
        """Return the ops from a source to an op, each once, that op last."""
        found: dict[ir.Operation, None] = {}
        seen: set[ir.Operation] = set()

        def visit(o: ir.Operation) -> None:
            seen.add(o)
            for v in o.operands:
                if v != source and self._known.get(v) and v.owner.operation not in seen:
                    visit(v.owner.operation)
            found[o] = None

        visit(op)
        return list(found)

    def _read_by(self, op: ir.Operation) -> frozenset[ir.Value] | None:
        """Return the 8-bit values that an op depends on; None if it depends on others too."""
        out: frozenset[ir.Value] = frozenset()
        for v in op.operands:
            found = self._sources(v)
            if found is None:
                return None
            out |= found
        return out

    def _sources(self, v: ir.Value) -> frozenset[ir.Value] | None:
        if v not in self._known:
            if len(self._known) > _MOST:
                return None
            self._known[v] = self._looked_for(v)
        return self._known[v]

    def _looked_for(self, v: ir.Value) -> frozenset[ir.Value] | None:
        t, owner = TensorType.of(v), v.owner
        number = self._number(v)
        if number is not None:
            self.numbers[v] = number
            return frozenset()
        if t.dims != self.dims or is_constant(v):
            return None
        found = None
        if not isinstance(owner, ir.Block) and _is_plain(owner.operation):
            found = self._read_by(owner.operation)
        if t.dtype in BYTES and (found is None or len(found) != 1):
            return frozenset((v,))
        return found

    def _number(self, v: ir.Value) -> np.ndarray | None:
        """Return the one number that a constant repeats."""
        number = splat(v)
        if number is not None:
            return np.full(SIZE, number, TensorType.of(v).dtype.np)
        while not isinstance(v.owner, ir.Block) and is_a(v.owner, VIEWS):
            v = v.owner.operands[0]
        if TensorType.of(v).elements != 1 or not is_constant(v):
            return None
        found = self.rw.const(v)
        return None if found is None else np.repeat(found.reshape(1), SIZE)

    def table(self, source: ir.Value, ops: list[ir.Operation]) -> list[int]:
        """Return the ops' result for each value of the source, indexed by its bits."""
        bits = np.arange(SIZE, dtype=np.uint8)
        known = {**self.numbers, source: bits.view(TensorType.of(source).dtype.np)}
        run = Interpreter(None, WeightStore())  # type: ignore[arg-type]
        for op in ops:
            with np.errstate(all="ignore"):
                known[op.results[0]] = run.evaluate(op, [known[v] for v in op.operands])[0]
        return [int(n) for n in known[ops[-1].results[0]]]


def _is_plain(op: ir.Operation) -> bool:
    """Return whether an op is pointwise, and not a kernel of several."""
    return is_a(op, (Pointwise, *QUANTISERS)) and len(op.results) == 1 and not len(op.regions)
