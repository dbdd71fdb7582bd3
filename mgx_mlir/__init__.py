"""AMD MIGraphX on MLIR: read a model, optimise it, compile it for CPUs and AMD GPUs, run it.

`compile(path_or_program, target=...)` is the short way. The other names are those of MIGraphX's
Python module, so that `import mgx_mlir as migraphx` works. Names are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mgx_mlir.core import collector, errors, guarded_imports, interrupts

guarded_imports.guard()

__version__ = "0.1.0"

_EXPORTS = {
    "mgx_mlir.compiler.bundle": ("load_bundle",),
    "mgx_mlir.compiler.compile": ("CompiledProgram", "compile"),
    "mgx_mlir.compiler.models": ("read_model",),
    "mgx_mlir.compiler.options": ("CompileOptions",),
    "mgx_mlir.compiler.parallel": ("ParallelProgram", "data_parallel"),
    "mgx_mlir.api.shape": ("shape", "dynamic_dimension"),
    "mgx_mlir.api.argument": ("argument",),
    "mgx_mlir.api.op": ("op",),
    "mgx_mlir.api.macros": ("macro",),
    "mgx_mlir.api.module": ("instruction_ref", "module"),
    "mgx_mlir.api.program": ("program",),
    "mgx_mlir.api.target": ("get_target", "target"),
    "mgx_mlir.api.parse": ("get_onnx_operators", "parse_onnx", "parse_onnx_buffer", "parse_tf"),
    "mgx_mlir.api.files": ("load", "load_buffer", "save", "save_buffer"),
    "mgx_mlir.api.data": (
        "argument_from_pointer",
        "create_argument",
        "fill_argument",
        "generate_argument",
        "load_weights",
    ),
    "mgx_mlir.api.device": ("allocate_gpu", "context", "from_gpu", "gpu_sync", "to_gpu"),
    "mgx_mlir.api.quantize": (
        "autocast_fp8",
        "quantize_bf16",
        "quantize_fp16",
        "quantize_fp8",
        "quantize_int4_weights",
        "quantize_int8",
    ),
    "mgx_mlir.core.errors": ("MgxError",),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

_MODULES = ("torch",)  # names that need an optional package
_missing: dict[str, str] = {}  # reasons why one of them cannot be imported

__all__ = [
    "CompileOptions",
    "CompiledProgram",
    "MgxError",
    "ParallelProgram",
    "__version__",
    "allocate_gpu",
    "argument",
    "argument_from_pointer",
    "autocast_fp8",
    "compile",
    "context",
    "create_argument",
    "data_parallel",
    "dynamic_dimension",
    "fill_argument",
    "from_gpu",
    "generate_argument",
    "get_onnx_operators",
    "get_target",
    "gpu_sync",
    "instruction_ref",
    "load",
    "load_buffer",
    "load_bundle",
    "load_weights",
    "macro",
    "module",
    "op",
    "parse_onnx",
    "parse_onnx_buffer",
    "parse_tf",
    "program",
    "quantize_bf16",
    "quantize_fp8",
    "quantize_fp16",
    "quantize_int4_weights",
    "quantize_int8",
    "read_model",
    "save",
    "save_buffer",
    "shape",
    "target",
    "to_gpu",
]

if TYPE_CHECKING:
    from mgx_mlir.api.argument import argument
    from mgx_mlir.api.data import (
        argument_from_pointer,
        create_argument,
        fill_argument,
        generate_argument,
        load_weights,
    )
    from mgx_mlir.api.device import allocate_gpu, context, from_gpu, gpu_sync, to_gpu
    from mgx_mlir.api.files import load, load_buffer, save, save_buffer
    from mgx_mlir.api.macros import macro
    from mgx_mlir.api.module import instruction_ref, module
    from mgx_mlir.api.op import op
    from mgx_mlir.api.parse import get_onnx_operators, parse_onnx, parse_onnx_buffer, parse_tf
    from mgx_mlir.api.program import program
    from mgx_mlir.api.quantize import (
        autocast_fp8,
        quantize_bf16,
        quantize_fp8,
        quantize_fp16,
        quantize_int4_weights,
        quantize_int8,
    )
    from mgx_mlir.api.shape import dynamic_dimension, shape
    from mgx_mlir.api.target import get_target, target
    from mgx_mlir.compiler.bundle import load_bundle
    from mgx_mlir.compiler.compile import CompiledProgram, compile
    from mgx_mlir.compiler.models import read_model
    from mgx_mlir.compiler.options import CompileOptions
    from mgx_mlir.compiler.parallel import ParallelProgram, data_parallel
    from mgx_mlir.core.errors import MgxError


@interrupts.held
def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _optional(name)
    where = _MODULE_OF.get(name)
    if where is None:
        raise AttributeError(f"module 'mgx_mlir' has no attribute '{name}'")
    with collector.resting():
        found = getattr(importlib.import_module(where), name)
    globals()[name] = found
    return found


def _optional(name: str) -> Any:
    """Import a module that needs an optional package. Errors: AttributeError, which says why.

    pickle asks each loaded module for names such as `torch`, and takes no other error for a no:
    torch's own compilers would fail where MLIR's bindings are not installed.
    """
    if name not in _missing:
        try:
            return importlib.import_module(f"mgx_mlir.{name}")
        except errors.MgxError as e:
            _missing[name] = str(e)
            raise AttributeError(str(e)) from e
    raise AttributeError(_missing[name])


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
