"""Bases of the pointwise operators: one element type, equal dims, one scalar expression."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DTYPES, DType
from mgx_mlir.core.op import InferView, Operand, Pointwise, Result, check
from mgx_mlir.core.scalar import Scalar, ScalarBuilder
from mgx_mlir.core.shapes import TensorType, merge_dims, show_dims
from mgx_mlir.dialects.migraphx.samples import Example, example, generator

FLOAT = frozenset(d for d in DTYPES if d.is_float)
NUMBER = frozenset(d for d in DTYPES if not d.is_bool)
LOGICAL = frozenset(d for d in DTYPES if not d.is_float)
INTEGER = frozenset(d for d in DTYPES if d.is_integer)
ANY = frozenset(DTYPES)
_NAMES = {
    FLOAT: "a float type",
    NUMBER: "a float or integer type",
    LOGICAL: "a bool or integer type",
    INTEGER: "an integer type",
    frozenset({dtypes.BOOL}): "i1",
}


def check_dtype(t: TensorType, allowed: frozenset[DType], what: str = "") -> None:
    """Check that `t` has one of the element types `allowed`."""
    check(
        t.dtype in allowed,
        lambda: (
            f"{what + ' ' if what else ''}expected "
            f"{_NAMES.get(allowed) or ' or '.join(sorted(d.mlir for d in allowed))}, "
            f"got {t.dtype.mlir}"
        ),
    )


def common_dims(types: Iterable[TensorType]) -> tuple[int, ...]:
    """Return the common dims of `types`; a dynamic extent takes a static one's value."""
    first, *rest = types
    dims = first.dims
    for t in rest:
        merged = merge_dims(dims, t.dims)
        check(
            merged is not None,
            lambda t=t: (
                f"expected operands of equal dims, got {show_dims(first.dims)} "
                f"and {show_dims(t.dims)}"
            ),
        )
        assert merged is not None
        dims = merged
    return dims


def same_type(types: Iterable[TensorType], allowed: frozenset[DType]) -> TensorType:
    """Return the type of operands that agree in element type and dims."""
    found = list(types)
    for t in found[1:]:
        check(
            t.dtype is found[0].dtype,
            lambda t=t: (
                f"expected operands of one type, got {found[0].dtype.mlir} and {t.dtype.mlir}"
            ),
        )
    check_dtype(found[0], allowed)
    return found[0].with_dims(common_dims(found))


def logical(b: ScalarBuilder, x: Scalar) -> Scalar:
    """x as a bool."""
    return x if x.dtype.is_bool else b.cmp("ne", x, 0)


def sample(
    dims: tuple[int, ...], dtype: DType, low: float, high: float, *, seed: int = 0
) -> np.ndarray:
    """Deterministic values between `low` and `high` as far as `dtype` holds them."""
    rng = generator(seed, dims)
    if dtype.is_bool:
        return rng.integers(0, 2, dims).astype(np.bool_)
    if dtype.is_integer:
        floor = 0 if dtype.is_unsigned else int(np.ceil(low))
        return rng.integers(floor, max(int(high), floor) + 1, dims).astype(dtype.np)
    return rng.uniform(low, high, dims).astype(dtype.np)


SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)


def special(dtype: DType) -> np.ndarray:
    """Return every special value of a float type, and the extreme integers."""
    if dtype.is_float:
        return np.array(SPECIAL, np.float32).astype(dtype.np)
    return np.array([dtype.lowest(), dtype.highest(), 0, 1], dtype.np)


EXAMPLE_DTYPES = (
    dtypes.FLOAT, dtypes.HALF, dtypes.BF16, dtypes.DOUBLE, dtypes.INT32, dtypes.INT64,
    dtypes.INT8, dtypes.UINT8, dtypes.UINT32, dtypes.BOOL,
)  # fmt: skip


class Unary(Pointwise):
    """Base of the pointwise operators of one operand whose result has its type."""

    TYPES = FLOAT
    DOMAIN = (-3.0, 3.0)  # interval of drawn examples
    input: Operand
    out: Result

    @classmethod
    # the base's method is static; both are called on the class
    def infer(cls, o: InferView) -> TensorType:  # pyright: ignore[reportIncompatibleMethodOverride]
        check_dtype(o.input, cls.TYPES)
        return o.input

    @staticmethod
    def scalar(b: ScalarBuilder, *xs: Any, **attributes: Any) -> Scalar:
        """Return the operator on one element."""
        raise NotImplementedError

    @classmethod
    def examples(cls) -> list[Example]:
        found: list[Example] = []
        for dtype in EXAMPLE_DTYPES:
            if dtype in cls.TYPES:
                found.append(example(sample((2, 3), dtype, *cls.DOMAIN)))
                found.append(example(special(dtype)))
        rank_0 = dtypes.FLOAT if dtypes.FLOAT in cls.TYPES else dtypes.BOOL
        return [*found, example(sample((), rank_0, *cls.DOMAIN))]


class Binary(Pointwise):
    """Base of the pointwise operators of two operands of one type, which the result has."""

    TYPES = NUMBER
    DOMAIN = (-3.0, 3.0)
    commutative = False
    a: Operand
    b: Operand
    out: Result

    @classmethod
    # the base's method is static; both are called on the class
    def infer(cls, o: InferView) -> TensorType:  # pyright: ignore[reportIncompatibleMethodOverride]
        return same_type((o.a, o.b), cls.TYPES)

    @staticmethod
    def scalar(b: ScalarBuilder, *xs: Any, **attributes: Any) -> Scalar:
        """Return the operator on one element of each."""
        raise NotImplementedError

    @classmethod
    def examples(cls) -> list[Example]:
        found: list[Example] = []
        for dtype in EXAMPLE_DTYPES:
            if dtype in cls.TYPES:
                x = sample((2, 3), dtype, *cls.DOMAIN)
                found.append(example(x, sample((2, 3), dtype, *cls.DOMAIN, seed=1)))
                ends = special(dtype)
                n = len(ends)
                found.append(example(np.repeat(ends, n), np.tile(ends, n)))
        return found
