"""parse_tf: read a TensorFlow model of any format as a program."""

from __future__ import annotations

import os
from pathlib import Path

from mgx_mlir import dialects
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.other_files import refuse_other
from mgx_mlir.frontends.tf import ops, schema
from mgx_mlir.frontends.tf.graph import PLACEHOLDERS
from mgx_mlir.frontends.tf.importer import Importer, LoadedModel
from mgx_mlir.frontends.tf.inputs import graph_outputs, placeholder
from mgx_mlir.frontends.tf.load import GRAPH, check_graph, load_buffer, load_graph
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.tensors import TensorReader
from mgx_mlir.programs.program_ir import ProgramIR

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
        # not imported at start-up: only the file's frontend is loaded
        from mgx_mlir.frontends.tf.keras import exported

        with exported(name) as folder:
            return _saved(folder, name, options)
    if os.path.isdir(name):
        refuse_other(name)
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
    # not imported at start-up: only the file's frontend is loaded
    from mgx_mlir.frontends.tf.saved_model import load_saved_model

    with load_saved_model(folder, name, options) as model:
        return import_model(model, options)


def _of_graph(
    name: str, graph: schema.Graph, reader: TensorReader, options: TfOptions
) -> ProgramIR:
    model = LoadedModel(name, graph, reader)
    try:
        body = model.body = Importer(model, options).body_of(graph.node)
    except ModelError as e:
        raise ModelError(e.message, location=name) from None
    model.outputs = graph_outputs(body, options.output_names, name)
    needed = body.reached([o.ref[0] for o in model.outputs], controls=False)
    for node in graph.node:  # an input without readers need not be passed
        if node.op in PLACEHOLDERS and node.name in needed:
            model.inputs.append(placeholder(node, node.name, options, name))
    return import_model(model, options)


def import_model(model: LoadedModel, options: TfOptions) -> ProgramIR:
    """Build the program of a loaded model."""
    names = [i.name for i in model.inputs]
    options.check_inputs(names, names, model.name)
    return Importer(model, options).program()


__all__ = ["import_model", "parse_tf", "parse_tf_buffer"]
