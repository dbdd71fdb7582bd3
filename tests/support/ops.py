"""One operator in a function of its own: inferred, verified, printed, evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.op import OPS, Op
from mgx_mlir.core.shapes import DYN, TensorType, compatible
from mgx_mlir.programs.interpreter import Interpreter

CONTEXT = new_context()


def type_of(a: np.ndarray, *, dynamic: bool = False) -> TensorType:
    return TensorType(dtypes.from_numpy(a.dtype), (DYN,) * a.ndim if dynamic else a.shape)


def flat(operands: Sequence[Any]) -> list[Any]:
    """The operands of all groups, absent ones left out."""
    out: list[Any] = []
    for group in operands:
        if isinstance(group, list | tuple):
            out += group
        elif group is not None:
            out.append(group)
    return out


class Built:
    """`cls` on operand types in the shape of the groups `operands` (arrays or TensorTypes).

    dynamic: all dims of the arrays are.
    """

    def __init__(
        self,
        cls: type[Op],
        operands: Sequence[Any],
        attributes: dict[str, Any],
        *,
        dynamic: bool = False,
    ) -> None:
        self.cls = cls
        self.arrays = flat(operands)
        types = [
            t if isinstance(t, TensorType) else type_of(t, dynamic=dynamic) for t in self.arrays
        ]
        with CONTEXT, ir.Location.unknown():
            self.module = ir.Module.create()
            with ir.InsertionPoint(self.module.body):
                f = func.FuncOp("main", ir.FunctionType.get([t.mlir() for t in types], []))
            block = f.add_entry_block()
            values = iter(block.arguments)
            groups = [
                None
                if g is None
                else [next(values) for _ in g]
                if isinstance(g, list | tuple)
                else next(values)
                for g in operands
            ]
            with ir.InsertionPoint(block):
                self.op = cls(*groups, **attributes).operation
                func.ReturnOp([])

    @property
    def types(self) -> list[TensorType]:
        return [TensorType.of(r) for r in self.op.results]

    def evaluate(self, compute: str = "f32") -> list[np.ndarray]:
        """Evaluate the reference; its results have the inferred types."""
        run = Interpreter(self.module, WeightStore(), compute=compute)
        with CONTEXT, np.errstate(all="ignore"):
            assert self.module.operation.verify()
            found = run.evaluate(self.op, self.arrays)
        for array, t in zip(found, self.types, strict=True):
            assert array.dtype == t.dtype.np
            assert array.ndim == t.rank
            fits = all(compatible(a, b) for a, b in zip(array.shape, t.dims, strict=True))
            assert fits, f"inferred {t}, computed {array.shape}"
        return found


def evaluate(
    name: str, *operands: Any, compute: str = "f32", dynamic: bool = False, **attributes: Any
) -> Any:
    """Results of `migraphx.<name>` on arrays: one array, or a tuple of several."""
    found = Built(OPS[name], operands, attributes, dynamic=dynamic).evaluate(compute)
    return found[0] if len(found) == 1 else tuple(found)


def infer(name: str, *operands: Any, **attributes: Any) -> str:
    """Result types of `migraphx.<name>` on types written as in MLIR."""
    groups = [
        None if g is None else [parse(t) for t in g] if isinstance(g, list) else parse(g)
        for g in operands
    ]
    return ", ".join(str(t) for t in Built(OPS[name], groups, attributes).types)


def parse(text: str) -> TensorType:
    with CONTEXT:
        return TensorType.of(ir.Type.parse(f"tensor<{text}>"))
