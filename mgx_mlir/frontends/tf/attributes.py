"""Node attributes as Python values, as the operator's function takes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.signatures import REQUIRED
from mgx_mlir.frontends.tf import dtypes
from mgx_mlir.frontends.tf.registry import TfOp
from mgx_mlir.frontends.tf.tensors import TensorReader, static_shape

MOST_STRINGS = 1 << 20


@dataclass(frozen=True)
class FunctionRef:
    """A function that an attribute names, with the attributes it is called with."""

    name: str
    attributes: Mapping[str, Any]


# attributes about placement, gradients and shapes that files state and nothing here depends on
_NEVER_MEANT = {
    "use_cudnn_on_gpu", "use_locking", "validate_shape", "parallel_iterations", "swap_memory",
    "output_shapes", "config", "config_proto", "executor_type", "container", "grad_a", "grad_b",
    "grad_x", "grad_y",
    "message", "back_prop", "allowed_devices", "debug_name",
}  # fmt: skip


def value_of(a: Any, name: str, reader: TensorReader, bound: Mapping[str, Any]) -> Any:
    """The attribute as bool, int, float, str, DType, dims, array, function, or a list of them.

    A type that is no element type of ours is its number; dims are a list, None for an unknown
    rank, -1 for an unknown extent.
    """
    kind = a.WhichOneof("value")
    what = f"attribute '{name}'"
    if kind == "placeholder":
        if a.placeholder not in bound:
            raise ModelError(f"{what} stands for '{a.placeholder}', which nobody gives")
        return value_of(bound[a.placeholder], name, reader, {})
    if kind == "list":
        return [
            _one(x, key.name, what, reader) for key, values in a.list.ListFields() for x in values
        ]
    if kind is None:
        raise ModelError(f"{what} has no value")
    return _one(getattr(a, kind), kind, what, reader)


def _one(x: Any, kind: str, what: str, reader: TensorReader) -> Any:
    if kind == "s":
        try:
            return x.decode()
        except UnicodeDecodeError:
            raise ModelError(f"{what} is not UTF-8 text") from None
    if kind == "type":
        return dtypes.known(x) or x
    if kind == "shape":
        return None if x.unknown_rank else [max(d.size, -1) for d in x.dim]
    if kind == "tensor":
        return _strings(x, what) if x.dtype == dtypes.STRING else reader.read(x, what)
    if kind == "func":
        return FunctionRef(x.name, dict(x.attr))
    return x


def _strings(tensor: Any, what: str) -> np.ndarray:
    """A tensor of text as an array of bytes objects."""
    dims = static_shape(tensor.tensor_shape, what)
    count, values = math.prod(dims), [bytes(s) for s in tensor.string_val]
    if len(values) != count and (len(values) != 1 or count > MOST_STRINGS):
        raise ModelError(
            f"{what} expected {count} strings for dims {list(dims)}, got {len(values)}"
        )
    out = np.empty(count, object)
    out[:] = values if len(values) == count else values * count
    return out.reshape(dims)


def keywords(
    given: Mapping[str, Any], op: TfOp, reader: TensorReader, bound: Mapping[str, Any]
) -> dict[str, Any]:
    """The keyword arguments of an operator's function. Errors: what is missing or not taken."""
    out: dict[str, Any] = {}
    for name, default in op.attributes.items():
        if name in given:
            out[name] = value_of(given[name], name, reader, bound)
            if default is not REQUIRED and default is not None:
                _check_kind(name, out[name], default)
        elif default is REQUIRED:
            raise ModelError(f"attribute '{name}' is missing")
    for name, a in given.items():
        if name in op.attributes or name.startswith("_") or name in _NEVER_MEANT:
            continue
        kind = a.WhichOneof("value")
        if kind == "type" or (kind == "list" and a.list.type) or name in ("N", "num_split"):
            continue
        if kind == "placeholder" or (kind == "list" and not a.list.ListFields()):
            continue
        raise NotSupported(f"attribute '{name}'")
    return {op.parameters[name]: value for name, value in out.items()}


def _check_kind(name: str, value: Any, default: Any) -> None:
    """ModelError where an attribute is of another kind than its default."""
    wanted = type(default)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return
    if wanted in (bool, int, float, str) and type(value) is not wanted:
        raise ModelError(
            f"attribute '{name}' expected {wanted.__name__}, got {type(value).__name__}"
        )
    if wanted in (list, tuple) and not isinstance(value, list):
        raise ModelError(f"attribute '{name}' expected a list, got {type(value).__name__}")
