"""parse_tf: a TensorFlow model, whatever its form, as a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mgx_mlir import dialects
from mgx_mlir.core.build import Builder
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import MgxError, ModelError, UsageError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.program_ir import NAME, ProgramIR
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends.onnx.options import Dim, DynamicDim
from mgx_mlir.frontends.program import DEBUG_SYMBOLS, argument_attribute, drop_unused, type_of
from mgx_mlir.frontends.tf import ops, schema
from mgx_mlir.frontends.tf.dtypes import tensor_dtype
from mgx_mlir.frontends.tf.graph import Body
from mgx_mlir.frontends.tf.importer import Importer, Input, LoadedModel, Output
from mgx_mlir.frontends.tf.load import GRAPH, check_graph, load_buffer, load_graph
from mgx_mlir.frontends.tf.options import TfOptions

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
    model.outputs = graph_outputs(body, options, name)
    needed = body.reached([o.ref[0] for o in model.outputs])
    everything = not options.output_names
    for node in graph.node:
        if node.op == "Placeholder" and (everything or node.name in needed):
            model.inputs.append(placeholder(node, node.name, options, name))
    return import_model(model, options)


def graph_outputs(body: Body, options: TfOptions, name: str) -> list[Output]:
    """The nodes that the options name, else those that no other node reads."""
    if not options.output_names:
        found = [Output(n, (n, 0)) for n in body.sinks()]
        if not found:
            raise ModelError("the graph has no outputs: every node is read by another, or is an "
                             "input", location=name)  # fmt: skip
        return found
    out = []
    for text in options.output_names:
        try:
            ref = body.ref(text)
        except ModelError as e:
            raise UsageError(e.message, location=name) from None
        if ref[0] not in body.nodes:
            sinks = ", ".join(body.sinks()[:8])
            raise UsageError(f"output '{text}' is no node of the graph", location=name,
                             notes=[f"nodes that no other reads: {sinks or 'none'}"])  # fmt: skip
        out.append(Output(text, ref))
    return out


def placeholder(node: Any, name: str, options: TfOptions, where: str) -> Input:
    """The input that a Placeholder node is, named `name`."""
    shape = node.attr["shape"].shape if "shape" in node.attr else None
    kind = node.attr["dtype"].type if "dtype" in node.attr else 0
    return input_of(name, (node.name, 0), kind, shape, options, where)


def input_of(
    name: str, ref: tuple[str, int], kind: int, shape: Any, options: TfOptions, where: str
) -> Input:
    what = f"input '{name}'"
    try:
        dtype = tensor_dtype(kind, what)
        return Input(name, ref, dtype, tuple(_dims(what, name, shape, options)))
    except MgxError as e:
        raise type(e)(e.message, location=where, notes=e.notes) from None


def _dims(what: str, name: str, shape: Any, options: TfOptions) -> list[Dim]:
    rank = None if shape is None or shape.unknown_rank else len(shape.dim)
    given: Sequence[Dim] | None = options.map_input_dims.get(name)
    if given is None:
        given = options.map_dyn_input_dims.get(name)
    if given is not None:
        if rank is not None and len(given) != rank:
            raise UsageError(f"{what} has {rank} dims, the option gives {len(given)}")
        return [d.fixed if isinstance(d, DynamicDim) and d.fixed is not None else d for d in given]
    if rank is None:
        raise ModelError(f"{what} has no rank", notes=["give its dims by option"])
    dims: list[Dim] = []
    for d in shape.dim:
        if d.size < 0 or (d.size == 0 and options.batch_size is not None and len(dims) == 0):
            dims.append(options.open_dim())
        else:
            dims.append(d.size)
    return dims


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
    with ctx, ir.Location.unknown(), (store := WeightStore()).active():
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
    if not module.operation.verify():
        raise ModelError("the imported program does not verify", location=model.name)
    return module


def _swapped(b: Builder, v: ir.Value, wanted: bool, order: list[int]) -> ir.Value:
    if not wanted or TensorType.of(v).rank != 4:
        return v
    return b.transpose(v, permutation=order)


__all__ = ["graph_outputs", "import_model", "input_of", "parse_tf", "parse_tf_buffer"]
