"""Opens an ONNX model from a file or a buffer, without reading its weights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from mgx_mlir.core.errors import FileError, ModelError
from mgx_mlir.core.files import read_at, readable_name
from mgx_mlir.frontends.files import open_regular
from mgx_mlir.frontends.onnx.file_digest import LAYOUT
from mgx_mlir.frontends.onnx.tensors import TensorReader
from mgx_mlir.frontends.onnx.text_plan import TextPlan
from mgx_mlir.frontends.other_files import refuse_other
from mgx_mlir.frontends.wire import Source, strip

MAX_PROTO = 2**31 - 1  # protobuf's own limit on one message
KNOWN_DOMAINS = ("", "ai.onnx")


class LoadedModel:
    """A parsed model and the reader of its tensors; `close` when no tensor is needed any more."""

    def __init__(self, name: str, proto: onnx.ModelProto, reader: TensorReader) -> None:
        self.name, self.proto, self.reader = name, proto, reader
        self.text_plan: TextPlan | None = None  # string steps that were moved out of the graph
        self.opsets = {
            "" if o.domain in KNOWN_DOMAINS else o.domain: o.version for o in proto.opset_import
        }

    def close(self) -> None:
        """Close the model's files."""
        self.reader.close()

    def __enter__(self) -> LoadedModel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def load_file(
    path: str | os.PathLike[str], *, external_data_path: str | os.PathLike[str] | None = None
) -> LoadedModel:
    """Open the model at `path`.

    External data is searched in `external_data_path`, by default the model's folder. Raises
    FileError if the file cannot be read or is not an ONNX model, ModelError if its versions are
    missing or newer than supported.
    """
    name = os.fsdecode(path)
    refuse_other(name)
    fd = open_regular(name)
    try:
        if os.fstat(fd).st_size == 0:
            raise FileError("the file is empty", location=name)
        folder = Path(external_data_path) if external_data_path else Path(name).parent
        shown = readable_name(name)
        return _load(shown, Source.of_file(shown, fd), folder, fd)
    except BaseException:
        os.close(fd)
        raise


def load_bytes(
    data: bytes | bytearray | memoryview,
    *,
    name: str = "<buffer>",
    external_data_path: str | os.PathLike[str] | None = None,
) -> LoadedModel:
    """Open a serialized model held in memory; errors as load_file's.

    External data is an error unless `external_data_path` names its folder.
    """
    view = memoryview(data).cast("B")
    if not len(view):
        raise FileError("the buffer is empty", location=name)
    folder = Path(external_data_path) if external_data_path else None
    return _load(name, Source.of_bytes(name, view), folder, view)


def _load(name: str, source: Source, folder: Path | None, data: int | memoryview) -> LoadedModel:
    start = read_at(data, 8, 0) if isinstance(data, int) else bytes(data[:8])
    if start[4:] == b"ORTM":
        raise FileError(
            "the model is in ORT format, onnxruntime's own, which is not supported",
            location=name,
            notes=["give the .onnx file that it was converted from"],
        )
    stripped = strip(source, LAYOUT)
    if len(stripped.data) > MAX_PROTO:
        raise FileError("the model without its weights is over 2 GiB", location=name)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(stripped.data)
    except (DecodeError, RuntimeError, ValueError):
        raise FileError("not an ONNX model: protobuf cannot parse it", location=name) from None
    stripped.data = b""
    check_text(proto, name)
    check_model(proto, name)
    return LoadedModel(name, proto, TensorReader(name, data, stripped, folder))


def check_model(proto: onnx.ModelProto, name: str) -> None:
    """Raise ModelError if the model lacks a graph or versions, or has versions newer than ours."""
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ModelError("not an ONNX model: it has no graph", location=name)
    if not proto.ir_version:
        raise ModelError("not an ONNX model: ir_version is missing", location=name)
    if proto.ir_version > onnx.IR_VERSION:
        raise ModelError(
            f"ir_version {proto.ir_version} is newer than supported, expected at most "
            f"{onnx.IR_VERSION}",
            location=name,
            notes=[f"the installed onnx package is {onnx.__version__}; a newer one may know it"],
        )
    versions: dict[str, int] = {}
    for entry in proto.opset_import:
        domain = "" if entry.domain in KNOWN_DOMAINS else entry.domain
        if versions.setdefault(domain, entry.version) != entry.version:
            raise ModelError(f"opset of domain '{entry.domain}' is imported twice", location=name)
    if not versions:
        raise ModelError("opset_import is missing", location=name)
    newest = onnx.defs.onnx_opset_version()
    if (given := versions.get("", 1)) > newest or given < 1:
        raise ModelError(
            f"opset {given} is not supported, expected 1 to {newest}",
            location=name,
            notes=[f"the installed onnx package is {onnx.__version__}"],
        )


def check_text(proto: onnx.ModelProto, name: str) -> None:
    """Raise FileError if a name is not UTF-8: protobuf returns such a name as bytes."""
    for text in _texts(proto):
        if isinstance(text, bytes):
            raise FileError(f"not an ONNX model: the name {text[:40]!r} is not text", location=name)


def _texts(proto: onnx.ModelProto) -> Iterator[str | bytes]:
    for entry in proto.opset_import:
        yield entry.domain
    yield from _graph_texts(proto.graph)
    for function in proto.functions:
        yield from (function.name, function.domain, function.overload)
        yield from (*function.input, *function.output, *function.attribute)
        for entry in function.opset_import:
            yield entry.domain
        for attribute in function.attribute_proto:
            yield from _attribute_texts(attribute)
        for node in function.node:
            yield from _node_texts(node)


def _graph_texts(graph: onnx.GraphProto) -> Iterator[str | bytes]:
    yield graph.name
    for info in (*graph.input, *graph.output, *graph.value_info):
        yield info.name
        for dim in info.type.tensor_type.shape.dim:
            yield dim.dim_param
    for tensor in graph.initializer:
        yield from _tensor_texts(tensor)
    for sparse in graph.sparse_initializer:
        yield from _tensor_texts(sparse.values)
        yield from _tensor_texts(sparse.indices)
    for node in graph.node:
        yield from _node_texts(node)


def _tensor_texts(tensor: onnx.TensorProto) -> Iterator[str | bytes]:
    yield tensor.name
    for entry in tensor.external_data:
        yield from (entry.key, entry.value)


def _node_texts(node: onnx.NodeProto) -> Iterator[str | bytes]:
    yield from (node.name, node.op_type, node.domain, node.overload)
    yield from (*node.input, *node.output)
    for attribute in node.attribute:
        yield from _attribute_texts(attribute)


def _attribute_texts(attribute: onnx.AttributeProto) -> Iterator[str | bytes]:
    yield from (attribute.name, attribute.ref_attr_name)
    if attribute.HasField("t"):
        yield from _tensor_texts(attribute.t)
    for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
        yield from _graph_texts(graph)
