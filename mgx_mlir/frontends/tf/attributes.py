"""Node attributes as Python values, as the operator's function takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.signatures import REQUIRED
from mgx_mlir.frontends.tf import dtypes, schema
from mgx_mlir.frontends.tf.registry import TfOp
from mgx_mlir.frontends.tf.tensors import TensorReader, static_shape

MOST_STRINGS = 1 << 20


@dataclass(frozen=True)
class FunctionRef:
    """A function named by an attribute, with the attributes of its call."""

    name: str
    attributes: Mapping[str, Any]


# attributes about placement, gradients and shapes, which are ignored
NEVER_MEANT = {
    "use_cudnn_on_gpu", "use_locking", "validate_shape", "parallel_iterations", "swap_memory",
    "validate_indices", "output_shapes", "config", "config_proto", "executor_type", "container",
    "grad_a", "grad_b", "grad_x", "grad_y",
    "message", "back_prop", "allowed_devices", "debug_name",
}  # fmt: skip


def value_of(a: schema.Attr, name: str, reader: TensorReader, bound: Mapping[str, Any]) -> Any:
    """Return the attribute as bool, int, float, str, DType, dims, array, function, or a list of
    them.

    A type without an element type of ours is returned as its number. Dims are a list, None for an
    unknown rank, -1 for an unknown extent.
    """
    kind = a.WhichOneof("value")
    what = f"attribute '{name}'"
    if kind == "placeholder":
        if a.placeholder not in bound:
            raise ModelError(f"{what} refers to '{a.placeholder}', which is not set")
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
        if x.dtype in dtypes.COMPLEX:
            return _complex(x, what, reader)
        return _strings(x, what) if x.dtype == dtypes.STRING else reader.read(x, what)
    if kind == "func":
        return FunctionRef(x.name, dict(x.attr))
    return x


def _complex(tensor: schema.Tensor, what: str, reader: TensorReader) -> np.ndarray:
    """Return complex numbers from pairs of floats; the last one repeats for missing ones."""
    half, values = dtypes.COMPLEX[tensor.dtype], tensor.scomplex_val or tensor.dcomplex_val
    pairs = schema.Tensor(dtype=half, tensor_content=tensor.tensor_content)
    pairs.tensor_shape.CopyFrom(tensor.tensor_shape)
    pairs.tensor_shape.dim.add(size=2)
    count = math.prod(static_shape(tensor.tensor_shape, what))
    if values and len(values) < 2 * count <= MOST_STRINGS:
        values = [*values, *[v for _ in range(count - len(values) // 2) for v in values[-2:]]]
    if len(values) not in (0, 2 * count):
        raise ModelError(f"{what} expected {count} complex numbers, got {len(values) / 2:g}")
    (pairs.float_val if half == 1 else pairs.double_val).extend(values)
    found = reader.read(pairs, what)
    return found.view(np.complex64 if half == 1 else np.complex128)[..., 0]


def _strings(tensor: schema.Tensor, what: str) -> np.ndarray:
    """Return a tensor of text as an array of bytes objects."""
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
    """Return the keyword arguments of an operator's function. Errors: missing or unknown
    attributes.
    """
    out: dict[str, Any] = {}
    for name, default in op.attributes.items():
        if name in given:
            out[name] = value_of(given[name], name, reader, bound)
            _check_kind(name, out[name], op.kinds[name])
        elif default is REQUIRED:
            raise ModelError(f"attribute '{name}' is missing")
    for name, a in given.items():
        if name in op.attributes or name.startswith("_") or name in NEVER_MEANT:
            continue
        kind = a.WhichOneof("value")
        if kind == "type" or (kind == "list" and a.list.type) or name in ("N", "num_split"):
            continue
        if kind == "placeholder" or (kind == "list" and not a.list.ListFields()):
            continue
        raise NotSupported(f"attribute '{name}'")
    return op.arguments(out)


def _is_number(x: object) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


# annotations of operator functions: the accepted values, and their name in messages
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (lambda x: isinstance(x, bool), "true or false"),
    "int": (lambda x: type(x) is int, "an integer"),
    "float": (_is_number, "a number"),
    "str": (lambda x: isinstance(x, str), "text"),
    "np.ndarray": (lambda x: isinstance(x, np.ndarray), "a tensor"),
    "DType": (lambda x: isinstance(x, DType), "an element type"),
    "FunctionRef": (lambda x: isinstance(x, FunctionRef), "a function"),
}


def _check_kind(name: str, value: object, annotation: str) -> None:
    """Raise ModelError if an attribute does not match the annotation of the operator's function."""
    words = []
    for kind in annotation.split(" | "):
        inner = kind.removeprefix("Sequence[").removesuffix("]")
        if kind == "object" or (kind == "None" and value is None):
            return
        if kind == "None":
            continue
        fits, word = _KINDS[inner]
        if inner == kind and fits(value):
            return
        if inner != kind and isinstance(value, list) and all(fits(x) for x in value):
            return
        words.append(word if inner == kind else f"a list, each {word}")
    if "DType" in annotation and type(value) is int:
        raise NotSupported(f"attribute '{name}' is element type {dtypes.name_of(value)}")
    raise ModelError(f"attribute '{name}' expected {' or '.join(words)}, got {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, np.ndarray):
        return "a tensor"
    if isinstance(value, FunctionRef):
        return f"function '{value.name}'"
    text = value.short if isinstance(value, DType) else repr(value)
    return text if len(text) < 60 else f"{text[:60]}..."
