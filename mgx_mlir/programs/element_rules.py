"""Elements of small tensors that shapes are computed from, as expressions.

An array holds numbers and expressions (dtype object). A bool is 0 or 1. A float is a number, or an
opaque function, because float arithmetic rounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Pointwise, is_a, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.symbolic.expressions import Atom, Expr, Int, high_of, low_of
from mgx_mlir.symbolic.space import Space

MOST_ELEMENTS = 64
MOST_FLOATS = 4  # most floats of a literal, such as the scales of an image's dims

# Ops that only move elements, with the operand groups that hold the elements.
_MOVES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("identity", "contiguous", "layout", "transpose", "reshape_lazy", "flatten",
         "squeeze", "unsqueeze", "slice", "step", "reverse", "concat", "scalar", "gather",
         "gathernd", "scan_slice"), (0,)),
    "scatter_none": (0, 2),
    "scatternd_none": (0, 2),
}  # fmt: skip
# Floats that represent all integers below exactly.
_EXACT = {dtypes.DOUBLE: 1 << 53, dtypes.FLOAT: 1 << 24}

Scalar = Any  # a number or an expression


class ElementRules:
    """Computes elements of results as expressions in one set of symbols."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._run = Interpreter(None, literals.WeightStore())  # type: ignore[arg-type]
        unary: dict[str, Callable[[Int], Int]] = {
            "neg": lambda a: -a,
            "abs": lambda a: space.pos(a) + space.pos(-a),
            "sign": lambda a: space.at_least(a - 1) - space.at_least(-a - 1),
            "relu": space.pos,
            "not": lambda a: 1 - space.truth(a),
        }
        binary: dict[str, Callable[[Int, Int], Int]] = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "sqdiff": lambda a, b: (a - b) * (a - b),
            "min": space.minimum,
            "max": space.maximum,
            "div": lambda a, b: 0 if b == 0 else self._truncated(a, b),
            "mod": lambda a, b: 0 if b == 0 else a - b * space.floordiv(a, b),
            "fmod": lambda a, b: 0 if b == 0 else a - b * self._truncated(a, b),
            "equal": space.equal,
            "less": lambda a, b: 1 - space.not_less(a, b),
            "greater": lambda a, b: 1 - space.not_less(b, a),
            "logical_and": lambda a, b: space.truth(a) * space.truth(b),
            "logical_or": lambda a, b: 1 - (1 - space.truth(a)) * (1 - space.truth(b)),
            "logical_xor": self._differ,
        }
        ternary: dict[str, Callable[[Int, Int, Int], Int]] = {
            "clip": lambda x, low, high: space.minimum(space.maximum(x, low), high),
            "where": lambda c, a, b: space.select(space.truth(c), a, b),
        }
        self._numbers: dict[str, Callable[..., Int]] = {**unary, **binary, **ternary}

    def literal(self, op: ir.Operation, t: TensorType) -> np.ndarray | None:
        """Return the elements of a small literal."""
        most = MOST_FLOATS if t.dtype.is_float else MOST_ELEMENTS
        return numbers_of(literals.array_of(op)) if t.elements <= most else None

    def results(
        self,
        op: ir.Operation,
        attributes: dict[str, Any],
        given: Sequence[np.ndarray | None],
        dims: Sequence[Sequence[Int]],
    ) -> list[np.ndarray | None]:
        """Compute the elements of each result, None if unknown. `dims`: dims of the results."""
        nothing: list[np.ndarray | None] = [None] * len(dims)
        if any(not _is_small(d) for d in dims) or len(op.regions):
            return nothing
        name = mnemonic(op)
        kinds = [TensorType.of(r).dtype for r in op.results]
        if name in ("multibroadcast", "broadcast"):
            return [self._spread(name, given[0], attributes, dims[0])]
        if name == "require":
            return [given[0]]  # an assertion passes its input on
        known = [a for a in given if a is not None]
        if len(known) != len(given) or not known:
            return nothing
        try:
            if not any(isinstance(v, Expr) for a in known for v in a.flat):
                return self._evaluated(op, known)
            if name in ("reshape", "broadcast_with_dims"):
                return [self._spread(name, known[0], attributes, dims[0])]
            if name in _MOVES:
                return self._moved(op, _MOVES[name], known)
            if is_a(op, Pointwise):
                return self._pointwise(op, attributes, known)
            reduced = self._reduced(name, attributes, known[0], kinds[0])
            return nothing if reduced is None else [reduced]
        except (MgxError, ArithmeticError, ValueError, IndexError):
            return nothing  # invalid operands are reported when the op is built or run

    # ---- numbers alone, and moves ------------------------------------------------------------

    def _evaluated(self, op: ir.Operation, arrays: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        real = [
            a.astype(TensorType.of(v).dtype.np) for a, v in zip(arrays, op.operands, strict=True)
        ]
        with np.errstate(all="ignore"):
            found = self._run.evaluate(op, real)
        return [numbers_of(a) if a.size <= MOST_ELEMENTS else None for a in found]

    def _moved(
        self, op: ir.Operation, groups: Sequence[int], arrays: Sequence[np.ndarray]
    ) -> list[np.ndarray | None]:
        """Run the op's reference on indices of the elements, which shows where each one moves."""
        cls = OPS[mnemonic(op)]
        table: list[Scalar] = []
        inputs: list[np.ndarray] = []
        at = 0
        for i, values in enumerate(cls.split_operands(op)):
            for a in arrays[at : at + len(values)]:
                if i in groups:
                    inputs.append(np.arange(len(table), len(table) + a.size).reshape(a.shape))
                    table += list(a.flat)
                elif all(isinstance(v, int) for v in a.flat):
                    inputs.append(a.astype(np.int64))
                else:
                    return [None]
            at += len(values)
        # integers that the operands' own types could not hold
        (places,) = self._run.evaluate(op, inputs, typed=False)
        return [array_of([table[int(p)] for p in places.flat], places.shape)]

    @staticmethod
    def _spread(
        name: str, a: np.ndarray | None, attributes: dict[str, Any], dims: Sequence[Int]
    ) -> np.ndarray | None:
        """Broadcast a tensor to the dims of the result, if these are numbers."""
        if a is None:
            return None
        shape = [int(d) for d in dims if isinstance(d, int)]
        if name == "reshape":
            return a.reshape(shape)
        behind = len(dims) - attributes["axis"] - a.ndim if name == "broadcast" else 0
        return np.broadcast_to(a.reshape(a.shape + (1,) * behind), shape)

    # ---- pointwise ---------------------------------------------------------------------------

    def _pointwise(
        self, op: ir.Operation, attributes: dict[str, Any], arrays: Sequence[np.ndarray]
    ) -> list[np.ndarray | None]:
        name = mnemonic(op)
        source = TensorType.of(op.operands[-1]).dtype
        kind = TensorType.of(op.results[0]).dtype
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        rows = list(zip(*(a.flat for a in np.broadcast_arrays(*arrays)), strict=True))
        plain = [i for i, row in enumerate(rows) if not any(isinstance(v, Expr) for v in row)]
        out: list[Scalar] = [None] * len(rows)
        if plain:
            columns = [array_of([rows[i][j] for i in plain]) for j in range(len(arrays))]
            (found,) = self._evaluated(op, columns)
            for i, v in zip(plain, found if found is not None else (), strict=True):
                out[i] = v
        rule = self._numbers.get(name)
        for i, row in enumerate(rows):
            if out[i] is not None:
                continue
            if name == "convert":
                out[i] = self._converted(row[0], source, kind)
            elif rule is None or source.is_float or kind.is_float:
                out[i] = self._function(name, attributes, row, kind)
            else:
                out[i] = self._held(rule(*row), kind)
        return [array_of(out, shape)]

    def _function(
        self, name: str, attributes: dict[str, Any], row: Sequence[Scalar], kind: DType
    ) -> Scalar:
        if name in ("floor", "ceil", "nearbyint") and _whole(row[0]) is not None:
            return row[0]
        if name == "pow" and not kind.is_float and row[1] in (0, 1, 2, 3, 4):
            return self._held(math.prod([row[0]] * row[1]), kind)
        told = tuple(v if isinstance(v, int | Expr) else repr(v) for v in row)
        return self.space.function(f"{name} {kind.mlir} {sorted(attributes.items())}", told)

    def _converted(self, x: Scalar, source: DType, kind: DType) -> Scalar:
        if kind.is_float:
            return self._function("convert", {}, [x], kind)
        if not source.is_float:
            return self.space.truth(x) if kind.is_bool else self._held(x, kind)
        inside = _whole(x)
        most = _EXACT.get(source)
        if inside is not None and most is not None:
            low, high = low_of(inside), high_of(inside)
            # sizes are never as large as the integers that f64 cannot represent
            if source is dtypes.DOUBLE or (
                low is not None and high is not None and -most <= low and high <= most
            ):
                return self._held(inside, kind)
        return self._function("convert", {}, [x], kind)

    def _held(self, x: Int, kind: DType) -> Int:
        """Return x in an integer type; None if a narrow or unsigned type may not hold it."""
        if kind.is_bool:
            return x
        least, most = kind.lowest(), kind.highest()
        if isinstance(x, int):
            fits = least <= x <= most
        elif kind.size >= 4:
            fits = not kind.is_unsigned or self.space.nonnegative(x)
        else:
            fits = None not in (x.low, x.high) and least <= (x.low or 0) and (x.high or 0) <= most
        if fits:
            return x
        return self.space.function(f"held {kind.mlir}", (x,))

    def _truncated(self, a: Int, b: Int) -> Int:
        """Compute a / b rounded towards 0."""
        space = self.space
        if isinstance(b, int) and b < 0:
            a, b = -a, -b
        exact = space.exact(a, b)
        if exact is not None:
            return exact
        if space.nonnegative(b):
            if space.nonnegative(a):
                return space.floordiv(a, b)
            if space.nonnegative(-a):
                return -space.floordiv(-a, b)
        return space.function("quotient", (a, b))

    def _differ(self, a: Int, b: Int) -> Int:
        a, b = self.space.truth(a), self.space.truth(b)
        return a + b - 2 * (a * b)

    # ---- reductions --------------------------------------------------------------------------

    def _reduced(
        self, name: str, attributes: dict[str, Any], a: np.ndarray, kind: DType
    ) -> np.ndarray | None:
        space = self.space
        if kind.is_float:
            return None
        if name == "prefix_scan_sum":
            return self._running(a, attributes, kind)
        rules: dict[str, Callable[[Int, Int], Int]] = {
            "reduce_sum": lambda x, y: x + y,
            "reduce_prod": lambda x, y: x * y,
            "reduce_max": space.maximum,
            "reduce_min": space.minimum,
            "reduce_all": lambda x, y: space.truth(x) * space.truth(y),
            "reduce_any": lambda x, y: 1 - (1 - space.truth(x)) * (1 - space.truth(y)),
        }
        rule = rules.get(name)
        if rule is None:
            return None
        axes = tuple(x % a.ndim for x in attributes["axes"]) or tuple(range(a.ndim))
        left = [i for i in range(a.ndim) if i not in axes]
        count = math.prod(a.shape[i] for i in axes)
        if not count:
            return None
        rows = a.transpose(*left, *axes).reshape(-1, count)
        shape = [1 if i in axes else n for i, n in enumerate(a.shape)]
        found: list[Scalar] = []
        for row in rows:
            total: Scalar = row[0]
            for x in row[1:]:
                total = rule(total, x)
            found.append(self._held(total, kind))
        return array_of(found, shape)

    def _running(self, a: np.ndarray, attributes: dict[str, Any], kind: DType) -> np.ndarray:
        axis = attributes["axis"] % a.ndim
        moved = np.moveaxis(a, axis, -1)
        rows: list[Scalar] = []
        for row in moved.reshape(-1, moved.shape[-1]):
            line = list(row[::-1] if attributes["reverse"] else row)
            sums = list(itertools.accumulate(line))
            if attributes["exclusive"]:
                sums = [0, *sums[:-1]][: len(line)]
            rows += sums[::-1] if attributes["reverse"] else sums
        found = array_of([self._held(x, kind) for x in rows], moved.shape)
        return np.moveaxis(found, -1, axis)


def _is_small(dims: Sequence[Int]) -> bool:
    """Return whether a result has few elements, or a rank that its op states."""
    n = 1
    for d in dims:
        if not isinstance(d, int) or d == DYN:
            return False
        n *= d
    return n <= MOST_ELEMENTS


def _whole(x: Scalar) -> Int | None:
    """Return the integer that a float was converted from."""
    found = x.only() if isinstance(x, Expr) else None
    if found is None or found[1] or found[0].kind != "function":
        return None
    atom: Atom = found[0]
    name, *rest = atom.arguments
    if str(name).startswith("convert f") and len(rest) == 1 and isinstance(rest[0], Expr):
        inner = rest[0].only()
        if inner is None or not str(inner[0].arguments[0]).startswith("convert f"):
            return rest[0]
    return None


def array_of(values: Sequence[Scalar], shape: Sequence[int] | None = None) -> np.ndarray:
    """Return an array of numbers and expressions; a vector if no shape is passed."""
    out = np.empty(len(values), object)
    out[:] = list(values)
    return out if shape is None else out.reshape(tuple(shape))


def numbers_of(a: np.ndarray) -> np.ndarray:
    """Return an array of Python numbers."""
    if a.dtype.kind == "b":
        a = a.astype(np.int8)
    elif not dtypes.is_numpys(a.dtype):
        a = a.astype(np.float64)
    return array_of(a.reshape(-1).tolist(), a.shape)
