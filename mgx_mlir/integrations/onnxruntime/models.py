"""Model facts besides its code: inputs, outputs, metadata, replaced values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.external_data_helper import uses_external_data

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError
from mgx_mlir.frontends.onnx.inputs import graph_inputs
from mgx_mlir.frontends.other_files import missing_notes, refuse_other
from mgx_mlir.integrations.onnxruntime.errors import InvalidArgument, NoSuchFile
from mgx_mlir.integrations.onnxruntime.options import SessionOptions
from mgx_mlir.integrations.onnxruntime.types import NodeArg, element_name, element_number, node_arg
from mgx_mlir.programs.signature import Port, Signature

_FOLDER = "session.model_external_initializers_file_folder_path"
# bytes; of larger models the shapes come from the program, without ONNX's shape inference
_INFERRED = 1 << 28


@dataclass(frozen=True)
class ModelMetadata:
    """Metadata of a model's file."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """A model to compile, with the facts of its file."""

    source: str | bytes  # path, or bytes of an ONNX file
    options: Mapping[str, Any]  # options of `mgx_mlir.compile` for reading the model
    inputs: tuple[NodeArg, ...]  # inputs that a run must supply
    outputs: tuple[NodeArg, ...]
    overridable: tuple[NodeArg, ...]  # initializers that a run may replace by inputs
    metadata: ModelMetadata
    # sequences or optionals among inputs or outputs: code may depend on a run's inputs
    structured: bool = False
    rankless: tuple[str, ...] = ()  # inputs without a stated rank

    def with_inputs(self, names: Sequence[str]) -> Model:
        """Return the model with these overridable initializers as inputs."""
        proto = _read(self.source)
        kept = [t for t in proto.graph.initializer if t.name not in names]
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
        added = tuple(a for a in self.overridable if a.name in names)
        source = proto.SerializeToString()
        return replace(self, source=source, options=self._rooted(), inputs=self.inputs + added)

    def with_ranks(self, ranks: Mapping[str, int]) -> Model:
        """Return the model with inputs of these ranks, all their dims dynamic."""
        proto = _read(self.source)
        for info in proto.graph.input:
            if info.name in ranks:
                dims = info.type.tensor_type.shape.dim
                for _ in range(ranks[info.name]):
                    dims.add()
                info.type.tensor_type.shape.SetInParent()
        return replace(self, source=proto.SerializeToString(), options=self._rooted(), rankless=())

    def proto(self) -> onnx.ModelProto:
        """Return the model's file, without external data."""
        return _read(self.source)

    def _rooted(self) -> dict[str, Any]:
        """Return the options, with the folder of external data."""
        if isinstance(self.source, bytes) or "external_data_path" in self.options:
            return dict(self.options)
        return {**self.options, "external_data_path": os.path.dirname(self.source) or "."}

    def with_shapes(self, signature: Signature | None) -> Model:
        """Return the model with the program's element types of outputs, and with shapes that the
        file leaves dynamic.

        signature: None where there is no program, as an input's rank is known only at run time.
        """
        by_name = {} if signature is None else {p.name: p for p in signature.outputs}
        outputs = tuple(_computed(a, by_name.get(a.name)) for a in self.outputs)
        self = replace(self, outputs=outputs)
        if not any(self._is_open(a) for a in outputs):
            return self
        inferred: dict[str, NodeArg] = {}
        size = os.path.getsize(self.source) if isinstance(self.source, str) else len(self.source)
        if size <= _INFERRED:
            try:
                made = onnx.shape_inference.infer_shapes(_read(self.source), data_prop=True)
                inferred = {o.name: node_arg(o) for o in made.graph.output}
            except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
                pass  # the program knows ranks and fixed dims
        outputs = [_closed(a, inferred.get(a.name), by_name.get(a.name)) for a in self.outputs]
        return replace(self, outputs=tuple(outputs))

    @staticmethod
    def _is_open(a: NodeArg) -> bool:
        return a.type.startswith("tensor") and (not a.shape or None in a.shape)


def _computed(a: NodeArg, port: Port | None) -> NodeArg:
    """Return an output with the type of its values, which the file may state otherwise."""
    if port is None or port.element or port.text or (port.shown is not None and port.shown.texts):
        return a
    if not a.type.startswith("tensor("):
        return a
    kind = element_name(element_number(dtypes.from_name(port.dtype).np))
    return NodeArg(a.name, f"tensor({kind})", a.shape)


def _closed(a: NodeArg, inferred: NodeArg | None, port: Port | None) -> NodeArg:
    """Return an output with the dims known from shape inference or the program."""
    if not Model._is_open(a) or (port is None and inferred is None):
        return a
    given = port.dims if port is not None else inferred.shape if inferred is not None else ()
    rank = len(given)
    stated = a.shape or [None] * rank
    guessed = inferred.shape if inferred is not None and len(inferred.shape) == rank else []
    if len(stated) != rank:
        return a
    dims: list[int | str | None] = []
    for i, own in enumerate(stated):
        if own is None and port is not None and port.dims[i] >= 0:
            own = port.dims[i]
        if own is None and guessed and not str(guessed[i]).startswith("unk__"):
            own = guessed[i]
        dims.append(own)
    return NodeArg(a.name, a.type, dims)


def read(source: str | bytes, options: SessionOptions) -> Model:
    """Read a model, and apply the session's options to it.

    Errors: NoSuchFile; FileError for a file that is no ONNX model; InvalidArgument for options that
    name nothing in the model.
    """
    proto = _read(source)
    how: dict[str, Any] = {}
    folder = options._entries.get(_FOLDER)
    if folder:
        how["external_data_path"] = folder
    changed = _set_values(proto, options) | _set_denoted(proto, options)
    sizes = {n: s for n, s in options._by_name.items() if n in _symbols(proto.graph.input)}
    if sizes:
        how["dim_params"] = sizes
    if changed:
        if isinstance(source, str):
            how.setdefault("external_data_path", os.path.dirname(source) or ".")
        source = proto.SerializeToString()
    own = graph_inputs(proto.graph)
    required = {i.name for i in own}
    return Model(
        source,
        how,
        tuple(_sized(node_arg(i), sizes) for i in own),
        tuple(_sized(node_arg(o), sizes) for o in proto.graph.output),
        tuple(node_arg(i) for i in proto.graph.input if i.name not in required),
        _metadata(proto),
        any(v.type.WhichOneof("value") in ("sequence_type", "optional_type") for v in own),
        tuple(i.name for i in own if _is_rankless(i.type)),
    )


def of_signature(signature: Signature, source: str) -> Model:
    """Return the model facts of a compiled program that has no model file."""

    def arg(p: Port) -> NodeArg:
        name = p.dtype.removesuffix("_type")
        kind = {"half": "float16", "bf16": "bfloat16"}.get(name, name)
        symbols = [r.symbol for r in p.ranges] or [None] * len(p.dims)
        dims = [d if d >= 0 else s for d, s in zip(p.dims, symbols, strict=True)]
        return NodeArg(p.name, f"tensor({'string' if p.text else p.element or kind})", dims)

    groups = {g.name for g in (*signature.input_groups, *signature.output_groups)}
    if groups - {p.name for p in (*signature.inputs, *signature.outputs)}:
        raise InvalidArgument("a compiled program of sequences has no session", location=source)
    ins, outs = map(arg, signature.given_inputs), map(arg, signature.outputs)
    return Model(source, {}, tuple(ins), tuple(outs), (), ModelMetadata())


def _read(source: str | bytes) -> onnx.ModelProto:
    """Return the file's message without external data."""
    try:
        if isinstance(source, bytes):
            proto = onnx.load_model_from_string(source)
        else:
            if os.path.exists(source):
                refuse_other(source)
            proto = onnx.load_model(source, load_external_data=False)
    except FileNotFoundError:
        notes = missing_notes(str(source))
        raise NoSuchFile("no such file", location=str(source), notes=notes) from None
    except FileError:
        raise
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"the file cannot be read: {why}", location=str(source)) from None
    except Exception as e:  # exception classes of protobuf differ by version
        where = None if isinstance(source, bytes) else str(source)
        raise FileError("expected an ONNX model, which is a protobuf", location=where) from e
    if not proto.HasField("graph"):
        raise InvalidArgument("the model has no graph")
    return proto


def _set_values(proto: onnx.ModelProto, options: SessionOptions) -> bool:
    """Replace initializers by the values of the options; return whether any was replaced."""
    found = {t.name: t for t in proto.graph.initializer}
    for name, value in options._initializers.items():
        tensor = found.get(name)
        if tensor is None:
            raise InvalidArgument(f"the model has no initializer '{name}'")
        made = numpy_helper.from_array(np.ascontiguousarray(value), name)
        if made.data_type != tensor.data_type:
            kinds = onnx.TensorProto.DataType.Name
            raise InvalidArgument(
                f"initializer '{name}' expected {kinds(tensor.data_type)}, "
                f"got {kinds(made.data_type)}"
            )
        if list(made.dims) != list(tensor.dims) and not uses_external_data(tensor):
            raise InvalidArgument(
                f"initializer '{name}' expected {list(tensor.dims)}, got {list(made.dims)}"
            )
        tensor.CopyFrom(made)
    return bool(options._initializers)


def _set_denoted(proto: onnx.ModelProto, options: SessionOptions) -> bool:
    """Set dims by their denotation; return whether any was set."""
    changed = False
    for info in proto.graph.input:
        for d in info.type.tensor_type.shape.dim:
            size = options._by_denotation.get(d.denotation) if d.denotation else None
            if size is not None and d.WhichOneof("value") != "dim_value":
                d.dim_value = size
                changed = True
    return changed


def _is_rankless(kind: onnx.TypeProto) -> bool:
    return kind.WhichOneof("value") == "tensor_type" and not kind.tensor_type.HasField("shape")


def _symbols(infos: Sequence[onnx.ValueInfoProto]) -> set[str]:
    return {d for i in infos for d in node_arg(i).shape if isinstance(d, str)}


def _sized(a: NodeArg, sizes: Mapping[str, int]) -> NodeArg:
    dims = [sizes.get(d, d) if isinstance(d, str) else d for d in a.shape]
    return NodeArg(a.name, a.type, dims)


def _metadata(proto: onnx.ModelProto) -> ModelMetadata:
    return ModelMetadata(
        proto.producer_name, proto.graph.name, proto.domain, proto.doc_string,
        proto.graph.doc_string, proto.model_version,
        {p.key: p.value for p in proto.metadata_props},
    )  # fmt: skip
