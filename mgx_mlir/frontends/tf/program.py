"""parse_tf: a TensorFlow model, whatever its form, as a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mgx_mlir import dialects
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import ModelError, UsageError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.onnx.options import DynamicDim
from mgx_mlir.frontends.program import (
    DEBUG_SYMBOLS,
    argument_attribute,
    check_valid,
    drop_unused,
    type_of,
)
from mgx_mlir.frontends.tf import ops, schema
from mgx_mlir.frontends.tf.graph import PLACEHOLDERS
from mgx_mlir.frontends.tf.importer import Importer, LoadedModel
from mgx_mlir.frontends.tf.inputs import graph_outputs, placeholder
from mgx_mlir.frontends.tf.load import GRAPH, check_graph, load_buffer, load_graph
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import NAME, ProgramIR

KERAS = (".keras", ".h5", ".hdf5")


def parse_tf(path: str | os.PathLike[str], options: TfOptions | None = None) -> ProgramIR:
    """Read the TensorFlow model at `path` into a program.

    A frozen GraphDef (.pb, .pbtxt), a SavedModel's folder, or a Keras model (.keras, .h5) where
    TensorFlow is installed. Raises FileError, ModelError or UnsupportedModel; all problems of the
    model at once.
    """
    name, options = os.fspath(path), options or TfOptions()
    dialects.load()
    ops.load()
    if Path(name).suffix.lower() in KERAS:
        from mgx_mlir.frontends.tf.keras import exported

        with exported(name) as folder:
            return _saved(folder, name, options)
    if os.path.isdir(name):
        return _saved(name, name, options)
    graph, reader = load_graph(name)
    try:
        return _of_graph(name, graph, reader, options)
    finally:
        reader.close()


def parse_tf_buffer(
    data: bytes | memoryview, options: TfOptions | None = None, name: str = "<buffer>"
) -> ProgramIR:
    """Read a serialized GraphDef from memory; as parse_tf."""
    dialects.load()
    ops.load()
    graph = schema.Graph()
    reader = load_buffer(data, name, GRAPH, graph)
    check_graph(graph, name)
    return _of_graph(name, graph, reader, options or TfOptions())


def _saved(folder: str, name: str, options: TfOptions) -> ProgramIR:
    from mgx_mlir.frontends.tf.saved_model import load_saved_model

    with load_saved_model(folder, name, options) as model:
        return import_model(model, options)


def _of_graph(name: str, graph: Any, reader: Any, options: TfOptions) -> ProgramIR:
    model = LoadedModel(name, graph, reader)
    try:
        body = model.body = Importer(model, options).body_of(graph.node)
    except ModelError as e:
        raise ModelError(e.message, location=name) from None
    model.outputs = graph_outputs(body, options.output_names, name)
    needed = body.reached([o.ref[0] for o in model.outputs], controls=False)
    for node in graph.node:  # what nobody reads need not be given
        if node.op in PLACEHOLDERS and node.name in needed:
            model.inputs.append(placeholder(node, node.name, options, name))
    return import_model(model, options)


def import_model(model: LoadedModel, options: TfOptions) -> ProgramIR:
    """Build the program of a loaded model."""
    names = [i.name for i in model.inputs]
    for name in (*options.map_input_dims, *options.map_dyn_input_dims):
        if name not in names:
            raise UsageError(
                f"dims are given for '{name}', which is no input of the model",
                location=model.name,
                notes=[f"its inputs: {', '.join(names) or 'none'}"],
            )
    ctx = new_context()
    with ctx, ir.Location.unknown(), (store := WeightStore()).active(), limits.reading():
        module = _module(model, options)
    return ProgramIR(ctx, module, store, model.name)


def _first(dims: Sequence[Any], wanted: bool) -> list[Any]:
    """Dims of a channels-last tensor of rank 4 in channels-first order, where that is wanted."""
    return [dims[0], dims[3], dims[1], dims[2]] if wanted and len(dims) == 4 else list(dims)


def _module(model: LoadedModel, options: TfOptions) -> ir.Module:
    importer = Importer(model, options)
    swap = options.migraphx_layout and options.is_nhwc
    module = ir.Module.create()
    if options.use_debug_symbols:
        module.operation.attributes[DEBUG_SYMBOLS] = ir.UnitAttr.get()
    given = [i.name in options.map_input_dims for i in model.inputs]  # taken as they are
    dims = [
        list(i.dims) if g else _first(i.dims, swap)
        for i, g in zip(model.inputs, given, strict=True)
    ]
    types = [type_of(i.dtype, d) for i, d in zip(model.inputs, dims, strict=True)]
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("main", ([t.mlir() for t in types], []))
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        arguments: list[Any] = []
        for d, value in zip(dims, block.arguments, strict=True):
            symbols = [x.symbol if isinstance(x, DynamicDim) else None for x in d]
            importer.builder.probe.argument(value, symbols)
            arguments.append(_swapped(importer.builder, value, swap, [0, 2, 3, 1]))
        outputs = importer.outputs(arguments)
        importer.stop_on_problems(module)
        outputs = [_swapped(importer.builder, v, swap, [0, 3, 1, 2]) for v in outputs]
        func.ReturnOp(outputs)
    kind = ir.FunctionType.get([t.mlir() for t in types], [v.type for v in outputs])
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [argument_attribute(i.name, d) for i, d in zip(model.inputs, dims, strict=True)]
    )
    names = [ir.DictAttr.get({NAME: ir.StringAttr.get(o.name)}) for o in model.outputs]
    function.attributes["res_attrs"] = ir.ArrayAttr.get(names)
    drop_unused(block)
    check_valid(module, model.name)
    return module


def _swapped(b: Builder, v: ir.Value, wanted: bool, order: list[int]) -> ir.Value:
    if not wanted or TensorType.of(v).rank != 4:
        return v
    return b.transpose(v, permutation=order)


__all__ = ["import_model", "parse_tf", "parse_tf_buffer"]
