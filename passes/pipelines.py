"""The pipelines of each target: tuples of pass names that read top to bottom."""

from __future__ import annotations

from dataclasses import fields

from mgx_mlir.core.errors import PipelineError
from mgx_mlir.rewrite.passes import PASSES, pass_name, pipeline_name

# What every target starts with: one spelling for each op, nothing that does nothing.
REQUIRED = (
    "simplify_dyn_ops",
    "normalize_ops",
    "eliminate_identity",
    "dead_code_elimination",
    "rewrite_rnn",
    "inline_module",
    "dead_code_elimination",
    "eliminate_contiguous",
    "mgx-rewrite-resize{affine-only=true}",
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

# Channels-last images, dots of rows. Before the last look at the whole: lookups that run as one.
LAYOUT = ("layout_convolution", "fuse_horizontal", "rewrite_dot", "optimize_module")
# On a GPU a 1x1 convolution is a dot of pixels: its tiles then are of pixels, not of lines of them.
GPU_LAYOUT = tuple(
    "mgx-rewrite-dot{convolutions=true strided=false}" if step == "rewrite_dot" else step
    for step in LAYOUT
)

# As in MIGraphX, for a GPU alone. A CPU computes in f32 whatever the type, tanh takes it less
# than an exponential and a division (by 3 % in f32, 18 % in f16), and a topk of one thread takes
# no less in groups.
GPU_GELU = ("rewrite_gelu",)
GPU_PRECISION = ("rewrite_topk", "rewrite_low_precision", "propagate_precision")

# Where the padding of convolutions goes. A CPU's own loops pad what they read; elsewhere a pad
# inside of a CPU's kernel costs half as much again as one ahead of it. A GPU's kernels pad inside.
PAD = "mgx-insert-pad{dense=true}"
CPU_PAD = "mgx-insert-pad{dense=true leave=vector}"
GPU_PAD = "mgx-insert-pad{dense=true leave=windows}"

# One kernel for an attention: a CPU's takes a block of queries at a time, and below eight the
# dots alone are faster; a GPU's knows a factor and a mask of the scores.
CPU_ATTENTION = "mgx-fuse-attention{min-queries=8}"
GPU_ATTENTION = "mgx-fuse-attention{flash=true}"

# A GPU's convolutions of few channels read their image in whatever form it is.
GPU_INPUTS = "mgx-fuse-layout{gathered=true}"

# Each fused op becomes one dispatch. Readers of one tensor may have been given equal pads.
FUSE = (
    "eliminate_common_subexpression",
    "dead_code_elimination",
    "fuse_concat",
    "fuse_pointwise_reduce",
    "dead_code_elimination",
)

# A GPU's compiler takes an 8-bit dot together with what follows it.
GPU_KERNELS = "mgx-fuse-pointwise-reduce{quantized=true}"
GPU_FUSE = tuple(GPU_KERNELS if s == "fuse_pointwise_reduce" else s for s in FUSE)

# 8-bit dots as they are: twice as fast as in f32, convolutions on a CPU 4 times slower. A CPU keeps
# the rounding of other values, which costs it nothing.
CPU_QDQ = "mgx-simplify-qdq{products=dot pairs=false widened=false}"
GPU_QDQ = "mgx-simplify-qdq{products=dot}"

# A GPU has 16-bit dots; a CPU's compute in f32 whatever the type.
CPU = (
    *REQUIRED,
    CPU_QDQ,
    *OPTIMIZE,
    "mgx-rewrite-reduce{wide-values=true}",
    *LAYOUT,
    "split_reduce",
    CPU_PAD,
    CPU_ATTENTION,
    *FUSE,
    "fuse_layout",
    "dead_code_elimination",
)
GPU = (
    *REQUIRED,
    GPU_QDQ,
    *GPU_GELU,
    *OPTIMIZE,
    "rewrite_reduce",
    *GPU_PRECISION,
    *GPU_LAYOUT,
    "split_reduce",
    GPU_PAD,
    GPU_ATTENTION,
    *GPU_FUSE,
    GPU_INPUTS,
    "dead_code_elimination",
)

PIPELINES: dict[str, tuple[str, ...]] = {"ref": REF, "cpu": CPU, "gpu": GPU}


def pipeline(
    target: str, *, fast_math: bool = True, fuse: bool = True, vector_kernels: bool = True
) -> tuple[str, ...]:
    """The pipeline of a target under the options of a compile.

    `fast_math` allows rewrites that change rounding; without `fuse` no kernels are formed, and
    the backend decides what runs together. `vector_kernels`: the processor has loops of our own.
    Raises PipelineError for an unknown target.
    """
    steps = PIPELINES.get(target)
    if steps is None:
        raise PipelineError(f"no pipeline for target '{target}', known: {', '.join(PIPELINES)}")
    loops = vector_kernels or target != "cpu"
    left = () if fuse else ("fuse_pointwise_reduce", GPU_KERNELS, GPU_ATTENTION, GPU_INPUTS)
    if not fuse or not loops:
        left = (*left, CPU_ATTENTION, "fuse_concat", "fuse_layout")
        steps = tuple(PAD if s == CPU_PAD else s for s in steps)
    steps = tuple(s for s in steps if s not in left)
    return tuple(map(_with_fast_math, steps)) if fast_math else steps


def _with_fast_math(step: str) -> str:
    """A step with its fast-math option on, if it has one."""
    name, _, options = step.partition("{")
    if not any(f.name == "fast_math" for f in fields(PASSES[pass_name(name)])):
        return step
    inside = " ".join(["fast-math=true", *options.rstrip("}").split()])
    return f"{pipeline_name(pass_name(name))}{{{inside}}}"
