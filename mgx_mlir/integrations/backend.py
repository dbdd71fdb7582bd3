"""The ONNX Backend API (`onnx.backend.base`) over `mgx_mlir.compile`.

Other tools, the onnx package's own test suite among them, drive an engine through this interface:

    from mgx_mlir.integrations.backend import Backend
    outputs = Backend.prepare(model, "CPU").run([x])
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TypeProto, helper
from onnx.backend import base

import mgx_mlir
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core.errors import MgxError, RunError, TargetError, UnsupportedModel, UsageError
from mgx_mlir.frontends.onnx.inputs import graph_inputs
from mgx_mlir.targets.devices import gpu_devices

TARGETS = {"CPU": "cpu", "GPU": "gpu"}
PROTOBUF_LIMIT = 2**31 - 1  # a larger message cannot be serialised, only written with its weights


class BackendRep(base.BackendRep):
    """A compiled model that takes its inputs by position or by name."""

    def __init__(self, program: CompiledProgram) -> None:
        self.program = program

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run on inputs by position or by name; return the outputs as a named tuple."""
        if kwargs:
            raise UsageError(f"run has no option '{next(iter(kwargs))}'")
        by_name = self._by_name(inputs, list(self.program.input_names))
        outputs = self.program.run(by_name)
        return base.namedtupledict("Outputs", list(self.program.output_names))(*outputs)

    def specialise(self, inputs: Any) -> None:
        """Compile ahead of time what a run on these inputs needs."""

    @staticmethod
    def _by_name(inputs: Any, names: Sequence[str]) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            return dict(inputs)
        values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        if len(values) != len(names):
            raise RunError(
                f"expected {len(names)} inputs, got {len(values)}",
                notes=[f"the inputs are: {', '.join(names) or 'none'}"],
            )
        return {
            name: value if value is None or isinstance(value, list | tuple) else np.asarray(value)
            for name, value in zip(names, values, strict=True)
        }


class StructuredRep(BackendRep):
    """A model with sequences or optionals, compiled for the structure of each run's inputs.

    A model states neither the length of a sequence nor whether an optional has content. Programs
    are cached by the structure of the inputs. Where an inner structure depends on the values of
    integer or bool inputs of one element, these values are part of the key.
    """

    def __init__(self, model: ModelProto, target: str, options: Mapping[str, Any]) -> None:
        self.model, self.target, self.options = model, target, dict(options)
        self.names = [i.name for i in graph_inputs(model.graph)]
        self._compiled: dict[Any, Any] = {}

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run on inputs by position or by name; return the outputs as a named tuple."""
        if kwargs:
            raise UsageError(f"run has no option '{next(iter(kwargs))}'")
        given = self._by_name(inputs, self.names)
        program = self.program_for(given)
        outputs = program.run({name: given[name] for name in program.input_names if name in given})
        return base.namedtupledict("Outputs", list(program.output_names))(*outputs)

    def specialise(self, inputs: Any) -> None:
        """Compile for inputs of this structure ahead of a run."""
        self.program_for(self._by_name(inputs, self.names))

    def program_for(self, given: Mapping[str, Any]) -> CompiledProgram:
        """Return the program for inputs of this structure; the first call for it compiles."""
        key: Any = tuple((name, _structure(value)) for name, value in given.items())
        options = _of_structure(given)
        if key not in self._compiled:
            try:
                self._compiled[key] = self._compile(options)
            except UnsupportedModel:
                if not _values(given):
                    raise
                self._compiled[key] = None
        found = self._compiled[key]
        if found is not None:
            return found
        values = _values(given)
        key = (key, *(value.item() for value in values.values()))
        if key not in self._compiled:
            self._compiled[key] = self._compile({**options, "input_values": values})
        return self._compiled[key]

    def _compile(self, more: Mapping[str, Any]) -> CompiledProgram:
        data = self.model.SerializeToString()
        return mgx_mlir.compile(data, target=self.target, **{**self.options, **more})


def _values(given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the inputs whose values a structure may depend on: counts, indices, conditions."""
    return {
        name: value
        for name, value in given.items()
        if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iub"
    }


def _structure(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(np.shape(v) for v in value)
    return value is None


def _of_structure(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compile options that state the structure of the inputs."""
    lengths: dict[str, int | None] = {}
    dims: dict[str, Sequence[int]] = {}
    for name, value in given.items():
        if value is None:
            lengths[name] = None
        elif isinstance(value, list | tuple):
            lengths[name] = len(value)
            dims |= {f"{name}[{i}]": np.shape(v) for i, v in enumerate(value)}
    return {"input_lengths": lengths, "map_input_dims": dims}


def takes_structures(model: ModelProto) -> bool:
    """Return whether an input of the model is a sequence or an optional."""
    kinds = {i.type.WhichOneof("value") for i in graph_inputs(model.graph)}
    return bool(kinds & {"sequence_type", "optional_type"})


def has_structures(model: ModelProto) -> bool:
    """Return whether an output or a node of the graph yields a sequence or an optional."""
    kinds = {o.type.WhichOneof("value") for o in model.graph.output}
    names = {node.op_type for node in model.graph.node} - {"ReverseSequence"}
    return bool(kinds & {"sequence_type", "optional_type"}) or any(
        "Sequence" in name or "Optional" in name for name in names
    )


class Backend(base.Backend):
    """Compiles for the CPU ("CPU") or a GPU ("GPU")."""

    device = "CPU"

    @classmethod
    def set_device(cls, device: str) -> None:
        """Set the device of calls that name none."""
        target_of(device)
        cls.device = device

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device can be used: "CPU" always, "GPU" if one is present.

        "CPU:0" means "CPU".
        """
        try:
            target = target_of(device)
        except TargetError:
            return False
        return target == "cpu" or gpu_present()

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "", **kwargs: Any) -> bool:
        """Return whether every node of the model can be imported.

        A model that takes sequences or optionals counts as compatible: their structure is known
        only at run time.
        """
        if not cls.supports_device(device or cls.device):
            return False
        if takes_structures(model):
            return True
        try:
            mgx_mlir.parse_onnx_buffer(model.SerializeToString())
        except MgxError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "", **kwargs: Any) -> BackendRep:
        """Compile a model. Options are those of `mgx_mlir.compile`.

        The test suite also passes the tolerances of a case (`rtol`, `atol`). They are accepted and
        ignored, because the suite does the comparison itself.
        """
        options = {key: value for key, value in kwargs.items() if key not in ("rtol", "atol")}
        target = target_of(device or cls.device)
        if takes_structures(model):
            return StructuredRep(model, target, options)
        if model.ByteSize() <= PROTOBUF_LIMIT:
            data = model.SerializeToString()
            try:
                return BackendRep(mgx_mlir.compile(data, target=target, **options))
            except UnsupportedModel:
                if not has_structures(model):
                    raise
                # structures may depend on values of inputs
                return StructuredRep(model, target, options)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            onnx.save(model, path, save_as_external_data=True, location="weights")
            return BackendRep(mgx_mlir.compile(path, target=target, **options))

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Any, device: str = "", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Compile and run once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "",
        outputs_info: Sequence[tuple[Any, Sequence[int]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Compile and run one node on arrays.

        `outputs_info` has the dtype and shape of each output; without it they are inferred. The
        default `opset_version` is the newest. An absent optional input (named "") takes no array.
        """
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = model_of_node(node, inputs, outputs_info, opset)
        return cls.prepare(model, device, **kwargs).run(inputs)


def target_of(device: str) -> str:
    """Convert a device to a target: "GPU:0" -> "gpu". Errors: TargetError for another device."""
    kind, _, number = device.partition(":")
    if kind not in TARGETS or number not in ("", "0"):
        raise TargetError(
            f"unknown device '{device}'", notes=[f"the devices are: {', '.join(TARGETS)}"]
        )
    return TARGETS[kind]


def gpu_present() -> bool:
    """Return whether the gpu target has a device to run on."""
    return bool(gpu_devices())


def model_of_node(
    node: NodeProto,
    inputs: Any,
    outputs_info: Sequence[tuple[Any, Sequence[int]]] | None,
    opset: int,
) -> ModelProto:
    """Make a model of one node, whose inputs have the types and shapes of the arrays."""
    names = [name for name in node.input if name]
    arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
    if len(arrays) != len(names):
        raise RunError(f"'{node.op_type}' node expected {len(names)} inputs, got {len(arrays)}")
    values = []
    for name, array in zip(names, map(np.asarray, arrays), strict=True):
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        values.append(helper.make_tensor_value_info(name, element, array.shape))
    kept = [name for name in node.output if name]
    if outputs_info is None:
        outputs = [helper.make_value_info(name, TypeProto()) for name in kept]
    else:
        outputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), tuple(dims)
            )
            for name, (dtype, dims) in zip(kept, outputs_info, strict=True)
        ]
    graph = helper.make_graph([node], node.op_type, values, outputs)
    domains = {"": opset} | {d: 1 for d in domains_of(node) if d not in ("", "ai.onnx")}
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=imports)


def domains_of(node: NodeProto) -> set[str]:
    """Return the operator domains that a node and the graphs inside it use."""
    found = {node.domain}
    for attribute in node.attribute:
        graphs = list(attribute.graphs)
        if attribute.type == AttributeProto.GRAPH:
            graphs.append(attribute.g)
        for graph in graphs:
            for inner in graph.node:
                found |= domains_of(inner)
    return found


set_device = Backend.set_device
supports_device = Backend.supports_device
is_compatible = Backend.is_compatible
prepare = Backend.prepare
run = run_model = Backend.run_model
run_node = Backend.run_node
