"""Inputs of an ONNX graph: their types by file and options, and their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import MgxError, UnsupportedModel, UsageError
from mgx_mlir.core.subbyte_types import BY_ONNX
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.dims import Dim, DynamicDim
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.frontends.onnx.structures import TENSOR, Form
from mgx_mlir.frontends.onnx.tensors import tensor_dtype
from mgx_mlir.frontends.onnx.text_plan import DimSource
from mgx_mlir.frontends.problems import Problems
from mgx_mlir.frontends.program import Parameter


@dataclass
class Input:
    """An input of the graph: its parameters, or the constant that an option sets."""

    name: str
    form: Form = TENSOR  # tensor, sequence of a length, or absent optional
    parameters: list[Parameter] = field(default_factory=list)
    value: np.ndarray | None = None  # constant that an option sets, instead of parameters
    failed: bool = False  # errors of the input were recorded; nodes that read it are skipped


def graph_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that have no initializer."""
    initial = {t.name for t in graph.initializer}
    initial |= {s.values.name for s in graph.sparse_initializer}
    return [i for i in graph.input if i.name not in initial]


def read_inputs(
    graph: onnx.GraphProto,
    options: OnnxOptions,
    problems: Problems,
    made_ahead: Mapping[str, Sequence[DimSource]] | None = None,
) -> list[Input]:
    """Return the graph's inputs; errors go to `problems`.

    `made_ahead` are inputs that steps before the program compute, with the source of their dims.
    Raises UsageError for an option that does not fit its input.
    """
    found = []
    for info in graph_inputs(graph):
        made = Input(info.name)
        found.append(made)
        try:
            if info.name in (made_ahead or {}):
                _read_made(info, made, found, (made_ahead or {})[info.name])
                continue
            _read(info, made, options)
        except UsageError as e:
            raise UsageError(e.message, location=problems.source, notes=e.notes) from None
        except MgxError as e:
            made.failed = True
            problems.error(e, "")
    return found


def check_names(
    graph: onnx.GraphProto, options: OnnxOptions, inputs: list[Input], name: str
) -> None:
    """Raise UsageError for an option about an input or a symbol that the graph lacks."""
    names = [i.name for i in inputs]
    parameters = [p.name for i in inputs for p in i.parameters]
    options.check_inputs([*parameters, *names], parameters, name)
    for given in (*options.input_lengths, *options.input_values):
        if given not in names:
            raise UsageError(
                f"an option is given for '{given}', which is no input of the model",
                location=name,
                notes=[f"its inputs: {', '.join(names) or 'none'}"],
            )
    tensors = [_tensor_type(i.type) for i in graph_inputs(graph)]
    symbols = {d.dim_param for t in tensors if t is not None for d in t.shape.dim}
    for given in options.dim_params:
        if given not in symbols:
            known = ", ".join(sorted(s for s in symbols if s)) or "none"
            raise UsageError(
                f"a size is given for '{given}', which is no symbol of the model's inputs",
                location=name,
                notes=[f"its symbols: {known}"],
            )


def _read(info: onnx.ValueInfoProto, made: Input, options: OnnxOptions) -> None:
    name, what = info.name, f"input '{info.name}'"
    kind, optional = info.type, False
    if kind.WhichOneof("value") == "optional_type":
        kind, optional = kind.optional_type.elem_type, True
    stated = kind.WhichOneof("value")
    length = options.input_lengths.get(name, TENSOR)
    if length is None:
        if not optional:
            raise UsageError(f"{what} is no optional, it cannot be absent")
        made.form = None
        return
    if stated == "sequence_type":
        if length == TENSOR:
            raise UnsupportedModel(
                f"{what} is a sequence, and the model does not state its number of elements",
                notes=[f"give it as an option: input_lengths={{'{name}': 2}}"],
            )
        if length < 0:
            raise UsageError(f"{what} has {length} elements by option")
        made.form = length
        element = kind.sequence_type.elem_type
        made.parameters = [_element(f"{name}[{i}]", element, options) for i in range(length)]
        return
    if length != TENSOR:
        raise UsageError(f"{what} is no sequence, it has no number of elements")
    parameter = _parameter(name, kind, options)
    if name in options.input_values:
        made.value = _value(parameter, options.input_values[name])
    else:
        made.parameters = [parameter]


def _read_made(
    info: onnx.ValueInfoProto, made: Input, found: Sequence[Input], sources: Sequence[DimSource]
) -> None:
    """Read an input that steps compute: its dims are dynamic, or those of other inputs."""
    given = {p.name: p for i in found for p in i.parameters}
    dims: list[Dim] = []
    for d in sources:
        if isinstance(d, tuple):
            held = given.get(d[0])
            dims.append(held.dims[d[1]] if held is not None else DynamicDim(0))
        else:
            dims.append(DynamicDim(0) if d is None else d)
    number = info.type.tensor_type.elem_type
    text = number == onnx.TensorProto.STRING
    dtype = INT64 if text else tensor_dtype(number, f"input '{info.name}'")
    made.parameters = [Parameter(info.name, dtype, dims, number)]


def _element(name: str, kind: onnx.TypeProto, options: OnnxOptions) -> Parameter:
    """Return an element of a sequence; a symbol in the type may have another size in each
    element.
    """
    p = _parameter(name, kind, options)
    if p.number == onnx.TensorProto.STRING:
        raise UnsupportedModel(f"input '{name}' is a sequence of strings")
    dims = [replace(d, symbol=None) if isinstance(d, DynamicDim) else d for d in p.dims]
    return replace(p, dims=dims)


def _parameter(name: str, kind: onnx.TypeProto, options: OnnxOptions) -> Parameter:
    """Return the element type and dims of a tensor, by file and options."""
    what = f"input '{name}'"
    stated = kind.WhichOneof("value")
    if stated != "tensor_type":
        got = (stated or "no type").removesuffix("_type")
        raise UnsupportedModel(f"{what} expected a tensor, got {got}")
    t = kind.tensor_type
    text = t.elem_type == onnx.TensorProto.STRING
    dtype = INT64 if text else tensor_dtype(t.elem_type, what)
    rank = len(t.shape.dim) if t.HasField("shape") else None
    dims = options.given_dims(name, rank)
    if dims is None:
        dims = [_dim(d, options) for d in t.shape.dim]
    limits.rank(len(dims), what)
    limits.size((d for d in dims if isinstance(d, int)), what)
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise UsageError(f"{what} has a negative dim by option")
    return Parameter(name, dtype, dims, t.elem_type)


def _value(p: Parameter, given: object) -> np.ndarray:
    """Return the constant that an option sets for an input."""
    if p.number == onnx.TensorProto.STRING:
        raise UnsupportedModel(f"input '{p.name}' is given a value, and is of strings")
    if p.number in BY_ONNX:
        raise UnsupportedModel(f"input '{p.name}' is given a value of {BY_ONNX[p.number].name}")
    try:
        typed = given if hasattr(given, "dtype") else np.asarray(given, p.dtype.np)
        value = np.asarray(typed)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"input '{p.name}' is given a value that is no {p.dtype.name}") from None
    if value.dtype != p.dtype.np:
        raise UsageError(
            f"input '{p.name}' expected {p.dtype.np.name}, its given value is {value.dtype.name}"
        )
    fits = value.ndim == len(p.dims) and all(
        isinstance(d, DynamicDim) or d == n for d, n in zip(p.dims, value.shape, strict=True)
    )
    if not fits:
        raise UsageError(f"input '{p.name}' is given a value of dims {list(value.shape)}")
    return value


def _dim(d: onnx.TensorShapeProto.Dimension, options: OnnxOptions) -> Dim:
    if d.WhichOneof("value") == "dim_value" and d.dim_value >= 0:
        return d.dim_value
    return options.dynamic_dim(d.dim_param)


def _tensor_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor | None:
    """Return the type of a tensor, of a sequence's elements, or of an optional's content."""
    while (stated := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        kind = getattr(kind, stated).elem_type
    return kind.tensor_type if stated == "tensor_type" else None


__all__ = ["Input", "check_names", "graph_inputs", "read_inputs"]
