"""Fields of an op as its class declares them: operands, results and regions, and their segments."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ext, ir


class OpField:
    """One operand or result field: its name and whether it is single, optional or variadic."""

    def __init__(self, name: str, arity: Literal["single", "optional", "variadic"]) -> None:
        self.name, self.arity = name, arity


def read_annotation(text: str) -> tuple[str, Literal["single", "optional", "variadic"]] | None:
    """Return the kind of field that an annotation of a class states, and its arity."""
    for kind in ("Operand", "Result", "Region"):
        if kind in text:
            if "Sequence" in text:
                return kind, "variadic"
            return kind, "optional" if ("Optional" in text or "None" in text) else "single"
    return None


EXT_FIELDS: dict[tuple[str, str], Any] = {
    ("Operand", "single"): ext.Operand[ir.RankedTensorType],
    ("Operand", "optional"): ext.Operand[ir.RankedTensorType] | None,
    ("Operand", "variadic"): Sequence[ext.Operand[ir.RankedTensorType]],
    ("Result", "single"): ext.Result[ir.RankedTensorType],
    ("Result", "variadic"): Sequence[ext.Result[ir.RankedTensorType]],
    ("Region", "single"): ext.Region,
}

# IRDL has one type per declared field, for all values of a variadic one. So a variadic field is
# declared as this many variadic fields, and segment sizes give each value its own field.
# core/operand_segments.py adds the sizes when reading text and hides them when printing it.
MAX_VARIADIC = 64


def spread(types: Sequence[ir.Type]) -> list[int]:
    """Return segment sizes of one variadic field: a segment per value, or per run of equal
    types.
    """
    if len(types) <= MAX_VARIADIC:
        runs = [1] * len(types)
    else:
        runs = [len(list(same)) for _, same in itertools.groupby(types)]
        if len(runs) > MAX_VARIADIC:
            raise ShapeError(
                f"expected at most {MAX_VARIADIC} values of different types, got {len(runs)}"
            )
    return runs + [0] * (MAX_VARIADIC - len(runs))


def segment_sizes(fields: Sequence[OpField], types: Sequence[Sequence[ir.Type]]) -> list[int]:
    """Return segment sizes of operand or result fields that hold values of `types`."""
    sizes: list[int] = []
    for field, held in zip(fields, types, strict=True):
        sizes += spread(held) if field.arity == "variadic" else [len(held)]
    return sizes


def is_segmented(fields: Sequence[OpField]) -> bool:
    """Return whether IRDL needs segment sizes: it can infer the size of one variadic field, not
    of two.
    """
    flexible = [f.arity for f in fields if f.arity != "single"]
    return len(flexible) > 1 or "variadic" in flexible
