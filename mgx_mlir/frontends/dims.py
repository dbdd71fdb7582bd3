"""Dims of a model's inputs in any of the forms that users state them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mgx_mlir.frontends.onnx.options import DynamicDim
from mgx_mlir.programs.dims import dim_of
from mgx_mlir.programs.signature import DimRange


def model_dim(d: Any) -> Any:
    """A dim as the ONNX reader takes it."""
    if isinstance(d, DynamicDim):
        return d
    found = dim_of(d)
    if isinstance(found, DimRange):
        return DynamicDim(found.min, found.max, tuple(found.optimals), found.symbol)
    return found


def with_model_dims(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of OnnxOptions or TfOptions, their dims in any of the forms that parsing takes."""
    found = dict(options)
    if (one := found.get("default_dyn_dim_value")) is not None:
        d = model_dim(one)
        found["default_dyn_dim_value"] = DynamicDim(d, d) if isinstance(d, int) else d
    if params := found.get("dim_params"):
        found["dim_params"] = {k: model_dim(v) for k, v in params.items()}
    if inputs := found.get("map_dyn_input_dims"):
        found["map_dyn_input_dims"] = {k: [model_dim(d) for d in v] for k, v in inputs.items()}
    return found
