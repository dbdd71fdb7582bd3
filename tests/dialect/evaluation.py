"""Running one operator on arrays: through its inference and reference, or its scalar form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mgx_mlir.dialects  # noqa: F401
from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.op import OPS, Op
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.programs.interpreter import Interpreter
from tests.dialect.numpy_scalars import NumpyScalars, Value, computed

_CONTEXT = new_context()


def type_of(x: np.ndarray, *, dynamic: bool = False) -> TensorType:
    dims = [DYN] * x.ndim if dynamic else x.shape
    return TensorType(dtypes.from_numpy(x.dtype), tuple(dims))


def flatten(operands: Sequence[Any]) -> list[np.ndarray]:
    out: list[np.ndarray] = []
    for o in operands:
        out += o if isinstance(o, list | tuple) else [] if o is None else [o]
    return out


def evaluate(
    name: str, *operands: Any, compute: str = "f32", dynamic: bool = False, **attributes: Any
) -> Any:
    """Build the op, verify it, check that the reference gives what `infer` says, return it."""
    arrays = flatten(operands)
    with _CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([type_of(a, dynamic=dynamic).mlir() for a in arrays], []))
            block = main.add_entry_block()
        values = iter(block.arguments)
        grouped = [
            [next(values) for _ in o]
            if isinstance(o, list | tuple)
            else None
            if o is None
            else next(values)
            for o in operands
        ]
        with ir.InsertionPoint(block):
            op = OPS[name](*grouped, **attributes).operation
            func.ReturnOp([])
        assert module.operation.verify()
        with np.errstate(all="ignore"):
            found = Interpreter(module, WeightStore(), compute=compute).evaluate(op, arrays)
        for array, result in zip(found, op.results, strict=True):
            t = TensorType.of(result)
            assert array.dtype == t.dtype.np
            assert len(t.dims) == array.ndim
            for want, have in zip(t.dims, array.shape, strict=True):
                assert want in (DYN, have), f"inferred {t}, computed {array.shape}"
    return found[0] if len(found) == 1 else tuple(found)


def infer(name: str, *types: Any, **attributes: Any) -> list[str]:
    """The result types for operand types given as MLIR text."""
    with _CONTEXT, ir.Location.unknown():
        parsed = [ir.Type.parse(t) if t else None for t in types]
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([t for t in parsed if t], []))
            block = main.add_entry_block()
        values = iter(block.arguments)
        with ir.InsertionPoint(block):
            op = OPS[name](*[next(values) if t else None for t in parsed], **attributes)
        return [str(r.type) for r in op.operation.results]


def scalar(name: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    """The op by its scalar form, narrowed to its result type; defaults filled in."""
    cls: type[Op] = OPS[name]
    kinds = [dtypes.from_numpy(x.dtype) for x in operands]
    filled = {k: attributes.get(k, d.default) for k, d in cls.ATTRS.items()}
    result = dtypes.from_name(
        infer(name, *(str(type_of(x)) for x in operands), **attributes)[0]
        .removesuffix(">")
        .removeprefix("tensor<")
        .split("x")[-1]
    )
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
