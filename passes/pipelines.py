"""The pipelines of each target: tuples of pass names that read top to bottom."""

from __future__ import annotations

from mgx_mlir.core.errors import PipelineError

# What every target starts with: one spelling for each op, nothing that does nothing.
REQUIRED = (
    "normalize_ops",
    "eliminate_identity",
    "dead_code_elimination",
    "eliminate_contiguous",
    "simplify_reshapes",
    "eliminate_pad",
    "dead_code_elimination",
    "rewrite_pooling",
    "dead_code_elimination",
)

# What makes programs smaller whatever they run on.
OPTIMIZE = ("optimize_module",)

# `ref` interprets each op by its reference: no rewrite may stand between it and the model.
REF = ("normalize_ops", "dead_code_elimination")

# Each fused op becomes one dispatch: channels-last images, dots of rows, then kernels.
FUSE = (
    "layout_convolution",
    "rewrite_dot",
    "optimize_module",
    "mgx-insert-pad{dense=true}",
    "dead_code_elimination",
    "fuse_pointwise",
    "dead_code_elimination",
)

# A GPU has 16-bit dots; a CPU's compute in f32 whatever the type.
CPU = (*REQUIRED, *OPTIMIZE, "mgx-rewrite-reduce{wide-values=true}", *FUSE)
GPU = (*REQUIRED, *OPTIMIZE, "rewrite_reduce", *FUSE)

PIPELINES: dict[str, tuple[str, ...]] = {"ref": REF, "cpu": CPU, "gpu": GPU}


def pipeline(target: str, *, fast_math: bool = True, fuse: bool = True) -> tuple[str, ...]:
    """The pipeline of a target under the options of a compile.

    `fast_math` allows rewrites that change rounding; without `fuse` no kernels are formed, and
    the backend decides what runs together. Raises PipelineError for an unknown target.
    """
    steps = PIPELINES.get(target)
    if steps is None:
        raise PipelineError(f"no pipeline for target '{target}', known: {', '.join(PIPELINES)}")
    if not fuse:
        steps = tuple(s for s in steps if s != "fuse_pointwise")
    if fast_math:
        steps = tuple(
            "mgx-optimize-module{fast-math=true}" if s == "optimize_module" else s for s in steps
        )
    return steps
