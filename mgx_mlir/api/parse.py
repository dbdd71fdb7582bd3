"""Reading models: parse_onnx, parse_onnx_buffer, parse_tf, get_onnx_operators."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mgx_mlir.api.program import program
from mgx_mlir.api.shape import dynamic_dimension
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import UsageError
from mgx_mlir.frontends.dims import DynamicDim, model_dim
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.frontends.onnx.registry import operators

AnyDim: TypeAlias = int | dynamic_dimension | DynamicDim
_ONE = dynamic_dimension(1, 1)  # MIGraphX's default: a dim that the file leaves dynamic is 1


@interrupts.held
def parse_onnx(
    filename: str | os.PathLike[str],
    default_dim_value: int = 0,
    default_dyn_dim_value: AnyDim = _ONE,
    dim_params: Mapping[str, Any] | None = None,
    map_input_dims: Mapping[str, Sequence[int]] | None = None,
    map_dyn_input_dims: Mapping[str, Sequence[Any]] | None = None,
    skip_unknown_operators: bool = False,
    print_program_on_error: bool = False,
    max_loop_iterations: int = 10,
    limit_max_iterations: int = 65535,
    use_debug_symbols: bool = False,
    *,
    input_lengths: Mapping[str, int | None] | None = None,
    input_values: Mapping[str, Any] | None = None,
    external_weights_as_parameters: bool = False,
) -> program:
    """Read an ONNX file.

    A dim that the file leaves dynamic becomes `default_dim_value`, or `default_dyn_dim_value`
    (1 unless it is given); `dim_params` gives named ones, `map_input_dims` and
    `map_dyn_input_dims` those of whole inputs. `input_lengths` is the number of elements of an
    input that is a sequence, None for an optional one that is absent; `input_values` makes
    constants of inputs. With `external_weights_as_parameters` the floats that the model keeps in
    external data are parameters: `program.create_program_with_weights` gives them values. Raises
    FileError, ModelError, UnsupportedModel.
    """
    # start-up: only the frontend that the file needs
    from mgx_mlir.frontends.onnx.importer import parse_onnx as read

    options = _options(
        default_dim_value, default_dyn_dim_value, dim_params, map_input_dims, map_dyn_input_dims,
        skip_unknown_operators, print_program_on_error, use_debug_symbols,
        max_loop_iterations=max_loop_iterations, limit_max_iterations=limit_max_iterations,
        input_lengths=dict(input_lengths or {}), input_values=dict(input_values or {}),
        external_weights_as_parameters=external_weights_as_parameters,
    )  # fmt: skip
    return program.of(read(filename, options))


@interrupts.held
def parse_onnx_buffer(
    filename: bytes | bytearray | memoryview,
    default_dim_value: int = 0,
    default_dyn_dim_value: AnyDim = _ONE,
    map_input_dims: Mapping[str, Sequence[int]] | None = None,
    map_dyn_input_dims: Mapping[str, Sequence[Any]] | None = None,
    skip_unknown_operators: bool = False,
    print_program_on_error: bool = False,
    external_data_path: str = "",
    use_debug_symbols: bool = False,
    dim_params: Mapping[str, Any] | None = None,
    *,
    input_lengths: Mapping[str, int | None] | None = None,
    input_values: Mapping[str, Any] | None = None,
    external_weights_as_parameters: bool = False,
) -> program:
    """Read a serialized ONNX model from memory; as parse_onnx.

    `filename` is the model's bytes: the keyword is MIGraphX's.
    """
    # start-up: only the frontend that the file needs
    from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer as read

    options = _options(
        default_dim_value, default_dyn_dim_value, dim_params, map_input_dims, map_dyn_input_dims,
        skip_unknown_operators, print_program_on_error, use_debug_symbols,
        external_data_path=external_data_path,
        input_lengths=dict(input_lengths or {}), input_values=dict(input_values or {}),
        external_weights_as_parameters=external_weights_as_parameters,
    )  # fmt: skip
    return program.of(read(filename, options))


def _options(
    default_dim_value: int,
    default_dyn_dim_value: AnyDim,
    dim_params: Mapping[str, Any] | None,
    map_input_dims: Mapping[str, Sequence[int]] | None,
    map_dyn_input_dims: Mapping[str, Sequence[Any]] | None,
    skip_unknown_operators: bool,
    print_program_on_error: bool,
    use_debug_symbols: bool,
    **more: Any,
) -> OnnxOptions:
    default = None
    if default_dyn_dim_value != _ONE:
        if default_dim_value:
            raise UsageError("expected one of default_dim_value and default_dyn_dim_value")
        default = model_dim(default_dyn_dim_value)
        if isinstance(default, int):
            default_dim_value, default = default, None
    elif not default_dim_value:
        default_dim_value = 1
    return OnnxOptions(
        default_dim_value=default_dim_value,
        default_dyn_dim_value=default,
        dim_params={k: model_dim(v) for k, v in (dim_params or {}).items()},
        map_input_dims={k: [int(d) for d in v] for k, v in (map_input_dims or {}).items()},
        map_dyn_input_dims={
            k: [model_dim(d) for d in v] for k, v in (map_dyn_input_dims or {}).items()
        },
        skip_unknown_operators=skip_unknown_operators,
        print_program_on_error=print_program_on_error,
        use_debug_symbols=use_debug_symbols,
        **more,
    )


@interrupts.held
def parse_tf(
    filename: str | os.PathLike[str],
    is_nhwc: bool = True,
    batch_size: int = 1,
    map_input_dims: Mapping[str, Sequence[int]] | None = None,
    output_names: Sequence[str] | None = None,
    map_dyn_input_dims: Mapping[str, Sequence[Any]] | None = None,
    default_dyn_dim_value: AnyDim | None = None,
    skip_unknown_operators: bool = False,
    print_program_on_error: bool = False,
    use_debug_symbols: bool = False,
    migraphx_layout: bool = False,
    signature: str = "",
    tags: Sequence[str] = ("serve",),
) -> program:
    """Read a TensorFlow graph (.pb) or a SavedModel's folder; TensorFlow need not be installed.

    A dim that the file leaves dynamic becomes `batch_size`, or `default_dyn_dim_value`. Inputs have
    the layout that the model declares; `migraphx_layout` takes and gives images channels first,
    as MIGraphX does. `is_nhwc` is the layout of nodes that state none. `signature` and `tags`
    choose in a SavedModel. Keras files (.keras, .h5) are read where TensorFlow is installed.
    Raises FileError, ModelError, UnsupportedModel.
    """
    # start-up: only the frontend that the file needs
    from mgx_mlir.frontends.tf.options import TfOptions
    from mgx_mlir.frontends.tf.program import parse_tf as read

    default = None if default_dyn_dim_value is None else model_dim(default_dyn_dim_value)
    if isinstance(default, int):
        batch_size, default = default, None
    options = TfOptions(
        is_nhwc=is_nhwc,
        batch_size=batch_size,
        map_input_dims={k: [int(d) for d in v] for k, v in (map_input_dims or {}).items()},
        map_dyn_input_dims={
            k: [model_dim(d) for d in v] for k, v in (map_dyn_input_dims or {}).items()
        },
        default_dyn_dim_value=default,
        output_names=list(output_names or ()),
        signature=signature,
        tags=tuple(tags),
        migraphx_layout=migraphx_layout,
        skip_unknown_operators=skip_unknown_operators,
        print_program_on_error=print_program_on_error,
        use_debug_symbols=use_debug_symbols,
    )
    return program.of(read(filename, options))


@interrupts.held
def get_onnx_operators() -> list[str]:
    """Return the names of the supported ONNX operators, sorted."""
    from mgx_mlir.frontends.onnx import ops  # start-up: only the frontend that the file needs

    ops.load()
    return sorted({name for domain, name in operators()})
