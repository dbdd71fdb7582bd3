"""Builds one operator in a function of its own, to infer, verify, print and evaluate it."""

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
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.programs.interpreter import Interpreter

CONTEXT = new_context()


def type_of(a: np.ndarray) -> TensorType:
    return TensorType(dtypes.from_numpy(a.dtype), a.shape)


def flat(operands: Sequence[Any]) -> list[Any]:
    """The operands of all groups, absent ones left out."""
    out: list[Any] = []
    for group in operands:
        if isinstance(group, list):
            out += group
        elif group is not None:
            out.append(group)
    return out


class Built:
    """`cls` on operand types in the shape of the groups `operands` (arrays or TensorTypes)."""

    def __init__(self, cls: type[Op], operands: Sequence[Any], attributes: dict[str, Any]) -> None:
        self.cls = cls
        self.arrays = flat(operands)
        types = [t if isinstance(t, TensorType) else type_of(t) for t in self.arrays]
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
                if isinstance(g, list)
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
        run = Interpreter(self.module, WeightStore(), compute=compute)
        with CONTEXT, np.errstate(all="ignore"):
            return run.evaluate(self.op, self.arrays)


def evaluate(name: str, *operands: Any, compute: str = "f32", **attributes: Any) -> Any:
    """Results of `migraphx.<name>` on arrays: one array, or a list of several."""
    found = Built(OPS[name], operands, attributes).evaluate(compute)
    return found[0] if len(found) == 1 else found


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
