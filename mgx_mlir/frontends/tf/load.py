"""Opens a GraphDef or SavedModel file without reading its weights."""

from __future__ import annotations

import os
from collections import Counter

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from mgx_mlir.core.errors import FileError, ModelError
from mgx_mlir.frontends.files import open_regular
from mgx_mlir.frontends.other_files import refuse_other
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.tensors import TensorReader
from mgx_mlir.frontends.wire import Source, Stripped, WireSchema, strip

MAX_PROTO = 2**31 - 1  # protobuf's own limit on one message
MAX_TEXT = 64 << 20
_FLOAT, _DOUBLE = 1, 2
_INSIDE = {
    "saved": {2: "meta"},
    "meta": {2: "graph"},
    "graph": {1: "node", 2: "library"},
    "library": {1: "function"},
    "function": {3: "node"},
    "node": {5: "entry"},
    "entry": {2: "attr"},
    "attr": {8: "tensor", 1: "list"},
    "list": {8: "tensor"},
}


def _layout(what: str, root: str) -> WireSchema:
    # tensor_content holds the mark of a payload that was cut out
    return WireSchema(what, root, _INSIDE, dtype=1, raw=4, typed={5: _FLOAT, 6: _DOUBLE}, mark=4)


GRAPH = _layout("TensorFlow graph", "graph")
SAVED_MODEL = _layout("SavedModel", "saved")


def is_saved_model(folder: str) -> bool:
    """Return whether a folder holds a SavedModel."""
    return any(os.path.exists(os.path.join(folder, f"saved_model.{e}")) for e in ("pb", "pbtxt"))


def load_message(path: str, layout: WireSchema, message: Message) -> TensorReader:
    """Parse the file at `path` into `message`; return the reader of its tensors, which keeps it
    open.

    Raises FileError if the file cannot be read or is no such message.
    """
    fd = open_regular(path, f"a {layout.what} file")
    try:
        if os.fstat(fd).st_size == 0:
            raise FileError("the file is empty", location=path)
        stripped = strip(Source.of_file(path, fd), layout)
        parse(stripped.data, message, path, layout.what)
        stripped.data = b""
        return TensorReader(path, fd, stripped)
    except BaseException:
        os.close(fd)
        raise


def load_buffer(
    data: bytes | memoryview, name: str, layout: WireSchema, message: Message
) -> TensorReader:
    """Load a message, as load_message does, from bytes in memory."""
    view = memoryview(data).cast("B")
    if not len(view):
        raise FileError("the buffer is empty", location=name)
    stripped = strip(Source.of_bytes(name, view), layout)
    parse(stripped.data, message, name, layout.what)
    stripped.data = b""
    return TensorReader(name, view, stripped)


def load_text(path: str, message: Message) -> TensorReader:
    """Parse a file in protobuf's text form (.pbtxt)."""
    with open(open_regular(path, "a text file"), "rb") as f:
        data = f.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise FileError(f"the text is over {MAX_TEXT >> 20} MiB", location=path)
    try:
        text_format.Parse(data.decode(), message, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as e:
        raise FileError(f"not a graph in protobuf's text form: {e}", location=path) from None
    return TensorReader(path, memoryview(b""), Stripped(b"", "-"))


def parse(data: bytes, message: Message, name: str, what: str) -> None:
    """Parse a message; FileError if protobuf cannot."""
    if len(data) > MAX_PROTO:
        raise FileError("the model without its weights is over 2 GiB", location=name)
    try:
        message.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError):
        raise FileError(f"not a {what}: protobuf cannot parse it", location=name) from None


def load_graph(path: str) -> tuple[schema.Graph, TensorReader]:
    """Return the GraphDef at `path`; .pbtxt is its text form. ModelError if it has no nodes."""
    refuse_other(path)
    graph = schema.Graph()
    if path.lower().endswith(".pbtxt"):
        reader = load_text(path, graph)
    else:
        reader = load_message(path, GRAPH, graph)
    try:
        check_graph(graph, path)
    except BaseException:
        reader.close()
        raise
    return graph, reader


def check_graph(graph: schema.Graph, name: str) -> None:
    """Raise ModelError if a message has no nodes, or two functions of one name."""
    if not graph.node:
        raise ModelError("not a TensorFlow graph: it has no nodes", location=name)
    if not any(node.op for node in graph.node):
        raise ModelError("not a TensorFlow graph: its nodes have no operators", location=name)
    functions = Counter(f.signature.name for f in graph.library.function)
    twice = next((f for f, count in functions.items() if count > 1), None)
    if twice is not None:
        raise ModelError(f"function '{twice}' is given twice", location=name)
