"""Reading of models in every form that users pass: files, bytes, programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.compiler.sources import MODEL_SUFFIXES, HasProgram, ModelSource, fixed
from mgx_mlir.core import interrupts, operand_segments
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import CompileError, FileError, UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.dialects.migraphx.buffers import Unknown
from mgx_mlir.frontends.dims import with_model_dims
from mgx_mlir.frontends.mlir_files import read_mlir
from mgx_mlir.frontends.mxr.files import read_file
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.frontends.other_files import refuse_other
from mgx_mlir.programs.program_ir import ProgramIR


def program_of(model: ModelSource, onnx_options: Mapping[str, Any]) -> ProgramIR:
    """Return a new program for a model in any form; never the user's object."""
    if isinstance(model, ProgramIR):
        return model.clone()
    if isinstance(model, HasProgram):
        return model.program_ir.clone()
    return read_model(model, onnx_options)


def apart(model: ModelSource) -> ModelSource:
    """Return the model for another thread: a program is copied into a new context."""
    if isinstance(model, ProgramIR):
        return in_own_context(model)
    if isinstance(model, HasProgram):
        return in_own_context(model.program_ir)
    return model


def in_own_context(program: ProgramIR) -> ProgramIR:
    """Copy a program into a new MLIR context, for another thread. The weights are shared."""
    with program.ctx:
        text = operand_segments.asm(program.module.operation, enable_debug_info=True)
    ctx = new_context()
    module = operand_segments.parse_module(text, ctx)
    return ProgramIR(ctx, module, program.store, program.source)


@interrupts.held
def read_model(model: Any, onnx_options: Mapping[str, Any] | None = None) -> ProgramIR:
    """Read a model file (by its suffix), a SavedModel, or a model object."""
    model = fixed(model, onnx_options or {})
    if isinstance(model, ProgramIR):
        return model
    options = with_model_dims(onnx_options or {})
    if isinstance(model, bytes):
        return _onnx(model, options)
    if not isinstance(model, str | os.PathLike):
        raise UsageError(
            "expected a path, an open file, the bytes of an ONNX model, a program, or a model of "
            f"onnx or torch.export, got {type(model).__name__}",
        )
    path = Path(os.fspath(model))
    kind = MODEL_SUFFIXES.get(path.suffix.lower())
    if kind is None or not os.path.exists(path):
        refuse_other(model, by_name=True)
    if kind == "tf" or (kind is None and os.path.isdir(path)):
        return _tf(path, options)
    if kind == "mlir":
        return read_mlir(path)
    if kind in ("mxr", "json"):
        return read_file(path, "json" if kind == "json" else "msgpack").program
    if kind is None and path.suffix.lower() != ".ort":  # the importer's error says more
        known = ", ".join(MODEL_SUFFIXES)
        raise FileError(f"expected a name that ends in {known}", location=os.fspath(model))
    return _onnx(path, options)


def _onnx(source: Path | bytes, options: dict[str, Any]) -> ProgramIR:
    # start-up: only the frontend that the file needs
    from mgx_mlir.frontends.onnx.importer import parse_onnx, parse_onnx_buffer

    try:
        chosen = OnnxOptions(**options)
    except TypeError as e:
        raise UsageError(f"compile() {str(e).removeprefix('OnnxOptions.__init__() ')}") from None
    if isinstance(source, bytes):
        return parse_onnx_buffer(source, chosen)
    return parse_onnx(source, chosen)


def _tf(path: Path, options: dict[str, Any]) -> ProgramIR:
    # start-up: only the frontend that the file needs
    from mgx_mlir.frontends.tf.options import TfOptions
    from mgx_mlir.frontends.tf.program import parse_tf

    try:
        chosen = TfOptions(**options)
    except TypeError as e:
        raise UsageError(f"compile() {str(e).removeprefix('TfOptions.__init__() ')}") from None
    return parse_tf(path, chosen)


def refuse_unknown(program: ProgramIR) -> None:
    """Raise CompileError for operators without an importer; other targets do so when they lower."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if is_a(op, Unknown):
            name = ir.StringAttr(op.attributes["op"]).value
            found.append(
                f"{op.location}: 'migraphx.unknown' op cannot be compiled: operator "
                f"'{name}' has no importer (it was read with skip_unknown_operators)"
            )
        return ir.WalkResult.ADVANCE

    program.module.operation.walk(visit)
    if found:
        raise CompileError(f"{len(found)} operations cannot be compiled for ref", notes=found)
