"""The passes: one file each, named as in MIGraphX. Importing this declares them, and no more."""

from mgx_mlir.core.passes import PASSES

PASS_NAMES = (
    "auto_contiguous",
    "dead_code_elimination",
    "eliminate_common_subexpression",
    "eliminate_contiguous",
    "eliminate_convert",
    "eliminate_identity",
    "eliminate_pad",
    "fuse_pointwise",
    "insert_pad",
    "layout_convolution",
    "lower_to_linalg",
    "normalize_ops",
    "optimize_module",
    "propagate_constant",
    "rewrite_pooling",
    "rewrite_reduce",
    "rewrite_dot",
    "simplify_algebra",
    "simplify_reshapes",
)

PASSES.declare(__name__, PASS_NAMES)
