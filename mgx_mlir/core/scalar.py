"""The protocol for lowering pointwise operators: scalar arithmetic on typed values.

A pointwise op class states its lowering once, as `scalar(b, *xs, **attributes)`: `b` is a
ScalarBuilder, `xs` one Scalar per operand, the keywords are the op's attributes. It returns one
Scalar of `b.result_dtype`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from mgx_mlir.core.dtypes import DType

Predicate: TypeAlias = Literal["eq", "ne", "lt", "le", "gt", "ge"]


class Scalar(Protocol):
    """One element: a value of the target's IR and its element type (signedness included)."""

    @property
    def dtype(self) -> DType: ...


Number: TypeAlias = "Scalar | int | float | bool"


class ScalarBuilder(Protocol):
    """Builds scalar arithmetic.

    Operands of one call have one dtype, except where stated; a Python number stands for a
    constant of the other operand's dtype (both numbers: of `dtype`). Nothing is converted
    implicitly. Results have the operands' dtype, comparisons and tests give bool.

    Floats of 16 and 8 bits are computed in f32: `dtype` and `result_dtype` are the types of the
    computation. `cast` to a 16- or 8-bit float rounds to it and returns the value as f32, which is
    exact. The
    caller widens operands before and narrows the result after.
    """

    @property
    def dtype(self) -> DType:
        """The type of the computation for the first operand."""
        ...

    @property
    def result_dtype(self) -> DType:
        """The type to return: the op's result type, f32 for 16- and 8-bit floats."""
        ...

    def const(self, value: float | int | bool, dtype: DType | None = None) -> Scalar:
        """Return a constant, of `dtype` unless another is given; integers wrap into the type."""
        ...

    # ---- arithmetic: floats and integers (wrapping); `add`, `mul`, `max` on bool are `or`, ------
    # ---- `and`, `or`; `min` on bool is `and`; `sub` on bool is `xor` -----------------------------
    def add(self, x: Number, y: Number) -> Scalar: ...
    def sub(self, x: Number, y: Number) -> Scalar: ...
    def mul(self, x: Number, y: Number) -> Scalar: ...

    def div(self, x: Number, y: Number) -> Scalar:
        """IEEE division; integers truncate toward zero.

        An integer divisor must not be 0, nor -1 with the smallest dividend: the caller guards.
        """
        ...

    def rem(self, x: Number, y: Number) -> Scalar:
        """x - y * trunc(x / y), exact, the sign of x; f32 and integers (guarded as `div`)."""
        ...

    def neg(self, x: Number) -> Scalar: ...

    def abs(self, x: Number) -> Scalar:
        """Return the magnitude; the smallest signed integer is its own; unsigned and bool: x."""
        ...

    def max(self, x: Number, y: Number) -> Scalar:
        """Return the larger by the dtype's signedness; NaN where either is NaN."""
        ...

    def min(self, x: Number, y: Number) -> Scalar:
        """Return the smaller by the dtype's signedness; NaN where either is NaN."""
        ...

    def fma(self, x: Number, y: Number, z: Number) -> Scalar:
        """x * y + z for floats, rounded once where the target can."""
        ...

    # ---- floats only; f32 and f64 are right to a few units in the last place, except ---
    # ---- where f32 alone is stated. dialects/migraphx/scalar_math.py builds the rest from these --
    def sqrt(self, x: Number) -> Scalar: ...
    def rsqrt(self, x: Number) -> Scalar: ...
    def exp(self, x: Number) -> Scalar: ...

    def log(self, x: Number) -> Scalar:
        """Natural logarithm; a subnormal x may count as 0."""
        ...

    def log2(self, x: Number) -> Scalar:
        """Return log2; f32 only."""
        ...

    def tanh(self, x: Number) -> Scalar:
        """f32 only."""
        ...

    def sigmoid(self, x: Number) -> Scalar:
        """1 / (1 + exp(-x))."""
        ...

    def erf(self, x: Number) -> Scalar:
        """f32 only; the sign of a zero may be lost."""
        ...

    def floor(self, x: Number) -> Scalar: ...
    def ceil(self, x: Number) -> Scalar: ...
    def trunc(self, x: Number) -> Scalar: ...

    def round_even(self, x: Number) -> Scalar:
        """Round to the nearest integer, halves to even."""
        ...

    def copysign(self, x: Number, y: Number) -> Scalar:
        """Return the magnitude of x with the sign bit of y."""
        ...

    def is_nan(self, x: Number) -> Scalar: ...
    def is_inf(self, x: Number) -> Scalar: ...

    # ---- choice, bits ----------------------------------------------------------------------------
    def cmp(self, predicate: Predicate, x: Number, y: Number) -> Scalar:
        """Return a bool; by the dtype's signedness; with a NaN only `ne` is true."""
        ...

    def select(self, condition: Scalar, x: Number, y: Number) -> Scalar:
        """x where the bool `condition` holds, else y."""
        ...

    def lookup(self, x: Scalar, table: Sequence[int], dtype: DType) -> Scalar:
        """Return table[x], indexed by the bits of an 8-bit integer, as an 8-bit integer."""
        ...

    def and_(self, x: Number, y: Number) -> Scalar: ...
    def or_(self, x: Number, y: Number) -> Scalar: ...
    def xor(self, x: Number, y: Number) -> Scalar: ...

    def not_(self, x: Number) -> Scalar:
        """Return every bit flipped: logical not of a bool."""
        ...

    def shl(self, x: Number, count: Number) -> Scalar:
        """Shift left; the caller guarantees 0 <= count < width."""
        ...

    def shr(self, x: Number, count: Number) -> Scalar:
        """Shift right, filling with the sign of a signed integer; 0 <= count < width."""
        ...

    def cast(self, x: Scalar, dtype: DType) -> Scalar:
        """Convert to another element type.

        Integer to integer wraps or extends by x's signedness; integer to float and float to
        float round to nearest even, overflowing to infinity (NaN in types without one); float to
        integer truncates toward zero and must be in range (the caller clamps); bool gives 0 and
        1; anything to bool is `x != 0`.
        """
        ...

    def bitcast(self, x: Scalar, dtype: DType) -> Scalar:
        """Return the same bits as another type of the same width (16- and 8-bit floats stay so)."""
        ...


__all__ = ["Number", "Predicate", "Scalar", "ScalarBuilder"]
