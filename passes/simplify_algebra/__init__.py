"""simplify_algebra: arithmetic identities, constants into weights, broadcasts outwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.passes.simplify_algebra.broadcasts import (
    find_conv_broadcast_input,
    find_dot_broadcast,
)
from mgx_mlir.passes.simplify_algebra.concats import (
    find_concat_op,
    find_concat_same_input,
    find_split_concat,
)
from mgx_mlir.passes.simplify_algebra.horizontal import (
    find_add_convs,
    find_concat_conv,
    find_conv_dot_horiz_fusion,
)
from mgx_mlir.passes.simplify_algebra.linear import (
    find_conv_add,
    find_dot_add,
    find_dot_mul,
    find_dot_slice,
    find_inner_broadcast,
    find_mul_add,
    find_mul_conv,
    find_mul_dot,
    find_mul_slice_conv,
)
from mgx_mlir.passes.simplify_algebra.splits import (
    find_split_reshape,
    find_split_transpose,
    find_splits,
)
from mgx_mlir.passes.simplify_algebra.units import (
    eliminate_zero_point,
    find_add_lit_broadcast,
    find_div_const,
    find_double_add_lit_broadcast,
    find_idempotent,
    find_log_div,
    find_log_exp,
    find_met_require,
    find_neg_unit_ops,
    find_pow2,
    find_pow_const,
    find_recip,
    find_rsqrt,
    find_sub_const,
    find_unit_ops,
    find_where_const,
    find_zero_ops,
)
from mgx_mlir.rewrite.passes import PatternPass, option


@dataclass(frozen=True)
class SimplifyAlgebra(PatternPass):
    """Fewer and cheaper arithmetic ops for the same values.

    Sums and products with constants are reordered, so that floats may differ in the last bits.
    """

    name: ClassVar[str] = "simplify_algebra"
    fast_math: bool = option(
        False, "0 * x is 0 and log(exp(x)) is x, whatever x is; x / c multiplies by 1 / c"
    )
    all_forms: bool = option(False, "also rewrites that are only faster on other targets")
    max_columns: int = option(16384, "most columns of a merged dot")
    patterns = (
        find_unit_ops,
        find_where_const,
        find_met_require,
        find_neg_unit_ops,
        find_zero_ops,
        find_idempotent,
        eliminate_zero_point,
        find_conv_broadcast_input,
        find_inner_broadcast,
        find_dot_broadcast,
        find_double_add_lit_broadcast,
        find_add_lit_broadcast,
        find_add_convs,
        find_conv_dot_horiz_fusion,
        find_mul_conv,
        find_mul_slice_conv,
        find_mul_dot,
        find_dot_slice,
        find_dot_mul,
        find_mul_add,
        find_dot_add,
        find_conv_add,
        find_sub_const,
        find_div_const,
        find_recip,
        find_rsqrt,
        find_pow2,
        find_pow_const,
        find_log_exp,
        find_log_div,
        find_concat_conv,
        find_concat_same_input,
        find_split_concat,
        find_concat_op,
        find_splits,
        find_split_reshape,
        find_split_transpose,
    )
