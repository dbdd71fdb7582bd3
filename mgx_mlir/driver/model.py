"""The model that a command line names, read as its options say."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.program_ir import ProgramIR
from mgx_mlir.driver import dims
from mgx_mlir.driver.arguments import Arguments
from mgx_mlir.frontends.onnx.options import OnnxOptions

ONNX_ONLY = (
    "--batch", "--dyn-input-dim", "--default-dyn-dim", "--dim-param", "--skip-unknown-operators",
    "--debug-symbols",
)  # fmt: skip


class Model:
    """The model of a command line: a file and how to read it, or the built-in program.

    Errors: UsageError for options that do not go together or with the file.
    """

    def __init__(self, args: Arguments, file: str | None = None) -> None:
        self.args = args
        self.path = file if file is not None else args.file
        self.is_test = file is None and "--test" in args
        if self.is_test and self.path is not None:
            raise UsageError(f"expected a file or --test, got '{self.path}' and --test")
        if not self.is_test and self.path is None:
            raise UsageError("expected an input file, or --test", notes=_swallowed(args))
        self.is_onnx = not self.is_test and self.kind() == "onnx"
        self.input_dims = dims.static_dims("--input-dim", args.get("--input-dim", []))
        for flag in ONNX_ONLY:
            if flag in args and not self.is_onnx:
                raise UsageError(f"option '{flag}' is for ONNX models, got {self.name}")
        self.options = self._onnx_options() if self.is_onnx else {}

    @property
    def name(self) -> str:
        return "the built-in program" if self.path is None else self.path

    @property
    def batch(self) -> int:
        return self.args.get("--batch", 1)

    def kind(self) -> str:
        """The type of the file, by --onnx or its name. FileError for an unknown one."""
        from mgx_mlir.api.compile import MODEL_SUFFIXES

        assert self.path is not None
        if "--onnx" in self.args:
            return "onnx"
        suffix = Path(self.path).suffix.lower()
        if suffix in MODEL_SUFFIXES:
            return MODEL_SUFFIXES[suffix]
        if not os.path.exists(self.path):
            raise FileError("no such file", location=self.path)
        if os.path.isdir(self.path):
            raise FileError("expected a model file, got a directory", location=self.path)
        known = ", ".join(MODEL_SUFFIXES)
        raise FileError(
            f"unknown model type '{suffix}', expected a name that ends in {known}, or --onnx",
            location=self.path,
        )

    def _onnx_options(self) -> dict[str, Any]:
        args = self.args
        default = args.get("--default-dyn-dim")
        dynamic = dims.dynamic_dims("--dyn-input-dim", args.get("--dyn-input-dim", []))
        # where an input is dynamic, its --input-dim is the size to run at
        fixed = {k: v for k, v in self.input_dims.items() if k not in dynamic}
        found: dict[str, Any] = {}
        if default is not None:
            found["default_dyn_dim_value"] = _as_range(dims.one_dim("--default-dyn-dim", default))
        else:
            found["default_dim_value"] = self.batch
        if fixed:
            found["map_input_dims"] = fixed
        if dynamic:
            found["map_dyn_input_dims"] = dynamic
        if "--dim-param" in args:
            found["dim_params"] = dims.symbol_dims("--dim-param", args.get("--dim-param"))
        if "--skip-unknown-operators" in args:
            found["skip_unknown_operators"] = True
        if "--debug-symbols" in args:
            found["use_debug_symbols"] = True
        return found

    def source(self) -> str | ProgramIR:
        """What compile() takes: the path, or the program where a path does not say enough."""
        from mgx_mlir.api.compile import MODEL_SUFFIXES

        if self.path is None:
            return self.program
        by_name = MODEL_SUFFIXES.get(Path(self.path).suffix.lower()) == self.kind()
        return self.path if by_name else self.program

    @cached_property
    def program(self) -> ProgramIR:
        """The program as it was read. MgxError for what cannot be."""
        if self.path is None:
            return built_in()
        if not self.is_onnx:
            from mgx_mlir.api.compile import read_mlir

            return read_mlir(self.path)
        from mgx_mlir.frontends.onnx.importer import parse_onnx

        return parse_onnx(self.path, OnnxOptions(**self.options))


def _as_range(dim: Any) -> Any:
    from mgx_mlir.frontends.onnx.options import DynamicDim

    return DynamicDim(dim, dim) if isinstance(dim, int) else dim


def _swallowed(args: Arguments) -> list[str]:
    """A note where a greedy option took what looks like the file."""
    for flag, value in args.values.items():
        for token in value if isinstance(value, list) else ():
            if isinstance(token, str) and Path(token).suffix and os.path.isfile(token):
                return [f"'{token}' was taken by {flag}; give the file ahead of it"]
    return []


def built_in() -> ProgramIR:
    """The program of --test: dot of a{4,5} and b{5,3}, without a return."""
    import mgx_mlir.dialects  # noqa: F401  (defines the operators)
    from mgx_mlir.core import dtypes
    from mgx_mlir.core.layout import Shape
    from mgx_mlir.core.module_builder import ProgramBuilder

    builder = ProgramBuilder()
    a = builder.main.add_parameter("a", Shape.standard(dtypes.from_numpy(np.float32), (4, 5)))
    b = builder.main.add_parameter("b", Shape.standard(dtypes.from_numpy(np.float32), (5, 3)))
    builder.main.add_instruction("dot", {}, [a, b])
    builder.main.close()
    return builder.program("test")
