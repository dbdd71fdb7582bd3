"""Compile of a frozen graph, and the errors of graphs that cannot be compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._guards import tracing

from mgx_mlir.api.program import program
from mgx_mlir.api.quantize import quantize_bf16, quantize_fp16
from mgx_mlir.compiler.compile import CompiledProgram, compile
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends.objects import (
    first_line,
    onnx_of_exported,
    program_of_export,
    quiet,
    require_exporter,
    written_by,
)
from mgx_mlir.integrations.torch.counters import counters
from mgx_mlir.integrations.torch.graphs import Frozen
from mgx_mlir.integrations.torch.options import TorchOptions
from mgx_mlir.programs.program_ir import ProgramIR, result_types


@contextmanager
def alone() -> Iterator[None]:
    """Trace without the state of Dynamo's own trace."""
    with interrupts.at_once(), tracing(None), quiet(), torch.no_grad():
        yield


def exported(frozen: Frozen) -> torch.export.ExportedProgram:
    """Export a graph. Raises UnsupportedModel, UsageError."""
    require_exporter()
    try:
        with alone():
            made = torch.export.export(
                frozen.module,
                frozen.examples,
                dynamic_shapes=frozen.dynamic_shapes if frozen.examples else None,
                strict=False,
            )
    except Exception as e:  # torch raises exceptions of many kinds
        raise UnsupportedModel(f"torch.export cannot export the graph: {first_line(e)}") from e
    _refuse_other_types(made, frozen)
    return made


def _refuse_other_types(made: torch.export.ExportedProgram, frozen: Frozen) -> None:
    """Raise UnsupportedModel if the export has results of other types than Dynamo's trace."""
    values = {n.name: n.meta.get("val") for n in made.graph.nodes}
    names = made.graph_signature.user_outputs
    problems = [
        f"result {i} is {value.dtype} in torch.export, {known.dtype} in Dynamo"
        for i, (name, known) in enumerate(zip(names, frozen.results, strict=False))
        if isinstance(value := values.get(name), torch.Tensor)
        and isinstance(known, torch.Tensor)
        and value.dtype != known.dtype
    ]
    if problems:
        raise UnsupportedModel("; ".join(problems))


def build(frozen: Frozen, options: TorchOptions, target: str) -> CompiledProgram | None:
    """Compile a graph; return None if it computes nothing, and writes to nothing.

    Raises the errors of `read` and of `mgx_mlir.compile`.
    """
    found = read(frozen)
    return None if found is None else compiled(found, options, target)


def read(frozen: Frozen) -> ProgramIR | None:
    """Read a graph; return None if it computes nothing, and writes to nothing.

    Raises Writes, UnsupportedModel, UsageError.
    """
    made = exported(frozen)
    refuse_writes(_written(made), frozen, made.graph_signature)
    with alone():
        onnx = onnx_of_exported(made)
        signature = onnx.exported_program.graph_signature
        held = {**signature.inputs_to_buffers, **signature.inputs_to_parameters}
        inputs = {weight: name for name, weight in held.items()}
        refuse_writes([inputs.get(n, n) for n in written_by(onnx)], frozen, signature)
        if not frozen.results and not frozen.written:
            return None
        found = program_of_export(onnx)
    with found.ctx:
        results = len(result_types(found.main()))
    expected = len(frozen.results) + len(frozen.written)
    if results != expected:
        raise UnsupportedModel(f"torch.onnx gives {results} results, the graph has {expected}")
    return found


class Writes(Exception):
    """Raised with the indices of the arguments that the graph writes to."""

    def __init__(self, places: set[int]) -> None:
        super().__init__()
        self.places = places


def refuse_writes(names: Iterable[str], frozen: Frozen, signature: Any) -> None:
    """Raise Writes if inputs of an exported graph are written to."""
    places = dict(zip(signature.user_inputs, frozen.inputs, strict=True))
    held = {**signature.inputs_to_buffers, **signature.inputs_to_parameters}
    at = {n: int(w.rpartition("_")[2]) for n, w in held.items() if w.startswith("weight_")}
    found = {places.get(n, at.get(n, -1)) for n in names}
    if found:
        raise Writes(found - {-1})


def _written(made: torch.export.ExportedProgram) -> Iterator[str]:
    """List the inputs that an exported graph writes to, directly or through views."""
    for node in made.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is None or not schema.is_mutable:
            continue
        for argument, value in zip(schema.arguments, node.args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                root = _root(value)
                if root is not None and root.op == "placeholder":
                    yield root.name


def _root(value: Any) -> Any:
    """Return the node whose memory a node's value is a view of."""
    while isinstance(value, torch.fx.Node) and value.op == "call_function":
        schema = getattr(value.target, "_schema", None)
        if schema is None or not any(r.alias_info for r in schema.returns) or not value.args:
            return value
        value = value.args[0]
    return value if isinstance(value, torch.fx.Node) else None


def compiled(found: ProgramIR, options: TorchOptions, target: str, **more: Any) -> CompiledProgram:
    """Compile a program that was read, with the options of the backend."""
    source: Any = found
    if options.fp16 or options.bf16:
        source = program.of(found)
        (quantize_fp16 if options.fp16 else quantize_bf16)(source)
    counters.programs += 1
    return compile(source, target, **options.compile_options(), **more)
