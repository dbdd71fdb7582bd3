"""truncate_float: f32 and f64 computations in a 16-bit type; the pass behind quantize_fp16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import PipelineError
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.analysis.retype import ALL, Retyping, ops_field, ops_option, type_option
from mgx_mlir.passes.analysis.wide_values import wide_values
from mgx_mlir.rewrite.passes import Pass, option

# scales are often too small for f16, and take little memory
_KEPT = frozenset(("quantizelinear", "dequantizelinear"))


@dataclass(frozen=True)
class TruncateFloat(Pass):
    """Compute the listed ops in a narrower float type.

    Their f32 and f64 operands are converted to it, and their results back. Arguments and results
    of the program keep their types; conversions to the type and back meet between two ops and are
    dropped by eliminate_convert. An op that does not accept the type stays. So do quantizelinear
    and dequantizelinear unless they are listed, as f16 often cannot represent their scales. Finite
    values that are too large become the largest finite one. With wide-sums what
    `passes/analysis/wide_values.py` finds stays, unless ops are listed.
    """

    name: ClassVar[str] = "truncate_float"
    ops: tuple[str, ...] = ops_field()
    float_type: str = option("half", "the type to compute in: half, bf16 or an f8 type")
    wide_sums: bool = option(False, "sums that norms read, norms, angles and moved elements stay")

    def __post_init__(self) -> None:
        ops_option(self.ops)
        target = type_option(self.float_type)
        if not target.is_float or target.size >= 4:
            raise PipelineError(f"float-type expected a float of 8 or 16 bits, got {target}")

    def run(self, module: ir.Operation) -> bool:
        wide = frozenset((dtypes.FLOAT, dtypes.DOUBLE))
        target, ops = type_option(self.float_type), ops_option(self.ops)
        skip = _KEPT if ALL in ops else frozenset[str]()
        kept = wide_values(module) if self.wide_sums and ALL in ops else ()
        return Retyping(wide, target, ops, skip, kept=kept).run(module)
