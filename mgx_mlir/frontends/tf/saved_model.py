"""Opens a SavedModel's folder: the graph, a signature, and the variables of its checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError, ModelError, UsageError
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.bundle import Bundle
from mgx_mlir.frontends.tf.checkpoint_keys import (
    INIT,
    VARIABLES,
    Stored,
    stored_tables,
    stored_variables,
)
from mgx_mlir.frontends.tf.graph import Body
from mgx_mlir.frontends.tf.importer import LoadedModel, Output
from mgx_mlir.frontends.tf.inputs import graph_outputs, input_of
from mgx_mlir.frontends.tf.load import SAVED_MODEL, check_graph, load_message, load_text
from mgx_mlir.frontends.tf.options import TfOptions

DEFAULT = "serving_default"


@contextmanager
def load_saved_model(folder: str, name: str, options: TfOptions) -> Iterator[LoadedModel]:
    """Return the SavedModel in `folder`, with the signature that the options select."""
    saved = schema.SavedModel()
    path = Path(folder) / "saved_model.pb"
    text = path.with_suffix(".pbtxt")
    if path.exists():
        reader = load_message(str(path), SAVED_MODEL, saved)
    elif text.exists():
        reader = load_text(str(text), saved)
    else:
        raise FileError("the folder holds no saved_model.pb", location=name)
    bundle: Bundle | None = None
    try:
        meta = _meta_graph(saved, options, name)
        check_graph(meta.graph_def, name)
        model = LoadedModel(name, meta.graph_def, reader)
        body = model.body = _body(meta.graph_def, name)
        _choose_signature(model, meta, body, options)
        model.tables = stored_tables(meta, body, reader)
        prefix = Path(folder) / "variables" / "variables"
        has_variables = any(n.op in VARIABLES for n in meta.graph_def.node)
        if prefix.with_suffix(".index").exists():
            bundle = Bundle(prefix)
            stored = stored_variables(meta, body, reader, bundle)
            model.variables = {n: _reader(bundle, n, v) for n, v in stored.items()}
        elif has_variables:
            raise FileError("the folder holds no variables/variables.index", location=name)
        yield model
    finally:
        reader.close()
        if bundle is not None:
            bundle.close()


def _body(graph: schema.Graph, name: str) -> Body:
    functions = {f.signature.name: f for f in graph.library.function}

    def outputs_of(op: str) -> Sequence[str]:
        found = functions.get(op)
        return [a.name for a in found.signature.output_arg] if found is not None else ()

    try:
        return Body(graph.node, None, outputs_of)
    except ModelError as e:
        raise ModelError(e.message, location=name) from None


def _reader(bundle: Bundle, node: str, stored: Stored) -> Callable[[], np.ndarray]:
    kept: list[np.ndarray] = []

    def read() -> np.ndarray:
        if not kept:
            kept.append(stored.read(bundle, f"variable '{node}'"))
        return kept[0]

    return read


def _meta_graph(saved: schema.SavedModel, options: TfOptions, name: str) -> schema.MetaGraph:
    wanted = set(options.tags)
    known = []
    for meta in saved.meta_graphs:
        tags = set(meta.meta_info_def.tags)
        known.append(", ".join(sorted(tags)) or "none")
        if tags == wanted:
            return meta
    if not known:
        raise ModelError("the SavedModel holds no graph", location=name)
    raise UsageError(
        f"the SavedModel has no graph of tags {', '.join(sorted(wanted))}",
        location=name,
        notes=[f"the tags of its graphs: {'; '.join(known)}"],
    )


def _choose_signature(
    model: LoadedModel, meta: schema.MetaGraph, body: Body, options: TfOptions
) -> None:
    """Fill in the model's inputs and outputs."""
    found = {k: v for k, v in meta.signature_def.items() if k != INIT and v.outputs}
    known = ", ".join(sorted(found)) or "none"
    key = options.signature or (
        DEFAULT if DEFAULT in found or len(found) != 1 else next(iter(found))
    )
    if key not in found:
        raise UsageError(f"the SavedModel has no signature '{key}'", location=model.name,
                         notes=[f"its signatures: {known}"])  # fmt: skip
    signature = found[key]
    for name, info in sorted(signature.inputs.items(), key=lambda i: _natural(i[0])):
        ref = body.ref(info.name)
        model.inputs.append(input_of(name, ref, info.dtype, info.tensor_shape, options, model.name))
    outputs = {
        name: Output(name, body.ref(info.name))
        for name, info in sorted(signature.outputs.items(), key=lambda i: _natural(i[0]))
    }
    if not options.output_names:
        model.outputs = list(outputs.values())
        return
    for text in options.output_names:
        if text in outputs:
            model.outputs.append(outputs[text])
        else:
            model.outputs += graph_outputs(body, [text], model.name)


def _natural(name: str) -> list[Any]:
    """Return a sort key that puts output_10 after output_9."""
    letters = re.sub(r"[0-9]+", " ", name)
    numbers = (d.lstrip("0") for d in re.findall(r"[0-9]+", name))
    return [letters, [(len(d), d) for d in numbers]]  # longer numbers are larger
