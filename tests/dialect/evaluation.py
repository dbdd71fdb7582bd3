"""One operator on arrays by its scalar form, its inferred types as text, errors in ulps."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.op import OPS, Op
from tests.dialect.numpy_scalars import NumpyScalars, Value, computed
from tests.support.ops import Built, parse


def infer(name: str, *types: Any, **attributes: Any) -> list[str]:
    """The result types for operand types given as MLIR text."""
    given = [t and parse(t.removeprefix("tensor<").removesuffix(">")) for t in types]
    return [str(t) for t in Built(OPS[name], given, attributes).types]


def scalar(name: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    """The op by its scalar form, narrowed to its result type; defaults filled in."""
    cls: type[Op] = OPS[name]
    kinds = [dtypes.from_numpy(x.dtype) for x in operands]
    filled = {k: attributes.get(k, d.default) for k, d in cls.ATTRS.items()}
    result = Built(cls, operands, attributes).types[0].dtype
    b = NumpyScalars(kinds[0], result)
    values = [
        Value(x, k) if cls.raw else Value(x.astype(computed(k).np), computed(k))
        for x, k in zip(operands, kinds, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = cls.scalar(b, *values, **filled)  # type: ignore[attr-defined]
        assert found.dtype in (result, b.result_dtype), f"{found.dtype}, not {result}"
        array = np.broadcast_to(found.array, np.broadcast_shapes(*(x.shape for x in operands)))
        return array.astype(result.np)


def ulps(found: np.ndarray, want: np.ndarray) -> float:
    """The largest error in units of the last place of `found`'s type; inf on a NaN/inf/sign slip.

    `want` is wider; where it rounds to an infinity, found must be that.
    """
    kind = found.dtype
    with np.errstate(all="ignore"):
        rounded = want.astype(kind)
    special = ~np.isfinite(rounded)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    if not same[special].all() or not np.isfinite(found[~special]).all():
        return np.inf
    zero = (rounded == 0) & (found == 0)
    if (np.signbit(found) != np.signbit(rounded))[zero].any():
        return np.inf
    wide = want[~special].astype(np.longdouble)
    step = np.spacing(np.maximum(np.abs(rounded[~special]), np.finfo(kind).tiny))
    error = np.abs(found[~special].astype(np.longdouble) - wide) / step
    return float(error.max()) if error.size else 0.0
