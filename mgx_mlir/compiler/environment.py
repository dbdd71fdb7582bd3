"""MIGraphX's environment variables that change what is compiled: pipelines, rewrites, flags."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mgx_mlir.rewrite.names import pass_name, pipeline_name
from mgx_mlir.rewrite.switches import flag, integer

# variables, and the rewrites that they switch off
_FUSIONS = {
    "MIGRAPHX_DISABLE_POINTWISE_FUSION": (
        "find_pointwise_modules", "pointwise_broadcast_pointwise", "find_post_ops",
    ),
    "MIGRAPHX_DISABLE_REDUCE_FUSION": (
        "find_pointwise_reduce", "find_reduce_pointwise", "find_reduce_reduce",
    ),
    "MIGRAPHX_DISABLE_MULTI_OUTPUT_FUSION": ("multi_output",),
}  # fmt: skip
# variables that switch a pass off when they are 0; the pass is on by default
_PASSES = {
    "MIGRAPHX_ENABLE_NHWC": "layout_convolution",
    "MIGRAPHX_ENABLE_REWRITE_DOT": "rewrite_dot",
}
_DECODING = "MIGRAPHX_FLASH_DECODING_"
_DECODING_OPTIONS = {
    "min-chunk": f"{_DECODING}MIN_CHUNK_SIZE",
    "max-splits": f"{_DECODING}MAX_SPLITS",
    "threshold": f"{_DECODING}THRESHOLD",
}
CHANGE = (
    *_FUSIONS, *_PASSES, "MIGRAPHX_SPLIT_REDUCE_SIZE", "MIGRAPHX_REWRITE_LRN",
    f"{_DECODING}ENABLED", f"{_DECODING}NUM_SPLITS", *_DECODING_OPTIONS.values(),
    "MIGRAPHX_GPU_OPTIMIZE", "MIGRAPHX_GPU_DEBUG",
)  # fmt: skip
# variables that print during a compile: a cached program would print nothing
WATCH = (
    "MIGRAPHX_TRACE_ONNX_PARSER", "MIGRAPHX_TRACE_PROPAGATE_CONSTANT", "MIGRAPHX_TRACE_MLIR",
    "MIGRAPHX_MLIR_DUMP", "MIGRAPHX_MLIR_DUMP_TO_MXR", "MIGRAPHX_GPU_DUMP_ASM",
    "MIGRAPHX_GPU_DUMP_SRC", "MIGRAPHX_DEBUG_SAVE_TEMP_DIR",
)  # fmt: skip


def watched() -> bool:
    """Return whether the environment asks to see what a compile does."""
    return any(os.environ.get(name, "0") not in ("", "0") for name in WATCH)


def code_variables() -> dict[str, str]:
    """Return the variables set that change compiled code; they are part of the cache's key."""
    return {name: os.environ[name] for name in CHANGE if os.environ.get(name)}


def left_out_rewrites() -> tuple[str, ...]:
    """Return the rewrites that the environment switches off."""
    return tuple(r for name, rewrites in _FUSIONS.items() if flag(name) for r in rewrites)


def adjusted(steps: Sequence[str], target: str) -> tuple[str, ...]:
    """Apply the environment's changes to a target's pipeline."""
    gone = {p for name, p in _PASSES.items() if os.environ.get(name) and not flag(name)}
    size = integer("MIGRAPHX_SPLIT_REDUCE_SIZE", 0)
    if size < 0:
        gone.add("split_reduce")
    out = [s for s in steps if pass_name(s.partition("{")[0]) not in gone]
    if size > 0:
        out = [f"mgx-split-reduce{{split-size={size}}}" if s == "split_reduce" else s for s in out]
    if flag("MIGRAPHX_REWRITE_LRN"):
        out = [_with(s, "rewrite_pooling", "rewrite-lrn=true") for s in out]
    if flag(f"{_DECODING}ENABLED") and target == "gpu":
        options = [f"splits={integer(f'{_DECODING}NUM_SPLITS', 0) or -1}"]
        for option, name in _DECODING_OPTIONS.items():
            if os.environ.get(name):
                options.append(f"{option}={integer(name, 0)}")
        out = [_with(s, "fuse_attention", " ".join(options)) for s in out]
    return tuple(out)


def _with(step: str, name: str, option: str) -> str:
    """Add an option to a step, if the step is the pass of this name."""
    head, _, options = step.partition("{")
    if pass_name(head) != name:
        return step
    inside = " ".join([option, *options.rstrip("}").split()])
    return f"{pipeline_name(name)}{{{inside}}}"


def backend_flags(target: str) -> tuple[str, ...]:
    """Return the iree-compile flags that the environment asks for."""
    found: list[str] = []
    if flag("MIGRAPHX_GPU_DEBUG") and target == "gpu":
        found.append("--iree-hal-executable-debug-level=3")
    if integer("MIGRAPHX_GPU_COMPILE_PARALLEL", 0) == 1:
        found.append("--mlir-disable-threading")
    return tuple(found)


def level(target: str, default: str) -> str:
    """Return the backend's optimisation level: MIGRAPHX_GPU_OPTIMIZE on a GPU."""
    text = os.environ.get("MIGRAPHX_GPU_OPTIMIZE", "")
    return text.removeprefix("-") if text and target == "gpu" else default
