"""The pipelines of each target: tuples of pass names that read top to bottom."""

from __future__ import annotations

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

CPU = (*REQUIRED, *OPTIMIZE)
GPU = (*REQUIRED, *OPTIMIZE)

PIPELINES: dict[str, tuple[str, ...]] = {"ref": REF, "cpu": CPU, "gpu": GPU}
