"""Shape operators whose axes, bounds or pads come at run time; shared by the frontends."""

from __future__ import annotations

from mgx_mlir.frontends.runtime_axes import (
    axis_hits,
    element,
    flags,
    gather_or,
    inserted_dims,
    kept_dims,
    length,
    pad_at_run_time,
    strided_slice,
)

__all__ = [
    "axis_hits",
    "element",
    "flags",
    "gather_or",
    "inserted_dims",
    "kept_dims",
    "length",
    "pad_at_run_time",
    "strided_slice",
]
