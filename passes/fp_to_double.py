"""fp_to_double: a program that computes in f64, as a reference for others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.analysis.retype import Retyping
from mgx_mlir.rewrite.passes import Pass


@dataclass(frozen=True)
class FpToDouble(Pass):
    """Compute every op on f16, bf16 and f32 in f64, and pass results on in f64.

    Arguments, results and regions' own values keep their types. Conversions between floats go to
    f64 too, so a model's intermediate rounding is removed. The reference target does the same with
    `ref_double`, without changing the program.
    """

    name: ClassVar[str] = "fp_to_double"

    def run(self, module: ir.Operation) -> bool:
        narrow = frozenset((dtypes.HALF, dtypes.BF16, dtypes.FLOAT))
        return Retyping(narrow, dtypes.DOUBLE, carry=True).run(module)
