"""Weights that the runtime supplies: globals of the lowered module, and their loads."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir, ml_program
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.scalar import signless


class Weights:
    """The weights of a module. arrays: by their names, as the runtime gets them."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}  # names by the id of the array
        self._given: list[np.ndarray] = []  # keeps these arrays alive
        self._here: dict[str, ir.Value] = {}  # weights loaded in the current function
        self._loads: dict[str, list[ir.Value]] = {}  # loads in any function

    def enter(self, head: ir.Operation) -> None:
        """Begin a function, which loads its weights before this op."""
        self._here, self._head = {}, head

    def loaded(self, e: LoweringContext, array: np.ndarray) -> ir.Value:
        """Return a weight in the current function; one object has one name."""
        dtype = dtypes.from_numpy(array.dtype)
        name = self._names.get(id(array))
        if name is not None and name in self._here:
            return self._here[name]
        element = ir.IntegerType.get_signless(8) if dtype.is_bool else signless(dtype)
        kind = ir.RankedTensorType.get(array.shape, element)
        if name is None:
            name = f"w{len(self._given)}"
            self.arrays[name] = array.view(np.int8) if dtype.is_bool else array
            self._names[id(array)] = name
            self._given.append(array)
            with ir.InsertionPoint.at_block_begin(self._module.body):
                ml_program.GlobalOp(
                    name,
                    ir.TypeAttr.get(kind),
                    value=ir.Attribute.parse(f'#flow.parameter.named<"model"::"{name}"> : {kind}'),
                    sym_visibility=ir.StringAttr.get("private"),
                )
        with ir.InsertionPoint(self._head), ir.Location.unknown():
            made = ml_program.GlobalLoadConstOp(kind, ir.FlatSymbolRefAttr.get(name)).result
            if dtype.is_bool:
                made = e.cast_tensor(made, dtypes.INT8, dtypes.BOOL)
        self._here[name] = made
        self._loads.setdefault(name, []).append(made)
        return made

    def forget(self) -> None:
        """Let go of all arrays."""
        self.arrays, self._given, self._names = {}, [], {}

    def drop_unread(self) -> None:
        """Remove unused weights, of which kernels use another layout."""
        for op in list(self._module.body.operations):
            name = ir.StringAttr(op.attributes["sym_name"]).value
            kept: list[ir.Value] = []
            for loaded in self._loads.get(name, []):
                plain = loaded.owner.name == "ml_program.global_load_const"
                if any(True for _ in loaded.uses) or not plain:
                    kept.append(loaded)
                else:
                    loaded.owner.erase()
            if name in self._loads and not kept:
                op.operation.erase()
                del self.arrays[name]
        for name, array in self.arrays.items():
            self.arrays[name] = literals.aligned(array)
