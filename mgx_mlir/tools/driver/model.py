"""The model that a command line names, read as its options say."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.compiler.sources import MODEL_SUFFIXES
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError, ModelError, ShapeError, UsageError
from mgx_mlir.frontends.dims import Dim, DynamicDim
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.frontends.other_files import refuse_other
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.tools.driver import dims, precision
from mgx_mlir.tools.driver.arguments import Arguments

if TYPE_CHECKING:
    from mgx_mlir.api.program import program as Program
    from mgx_mlir.compiler.compiled import CompiledProgram
    from mgx_mlir.rewrite.passes import Pass

# saved programs: their suffix and flag, and the format they are written in
SAVED = {"mxr": "msgpack", "json": "json"}
# options that are for some kinds of models: the kinds, and what messages call them
_IMPORTED = ("onnx", "tf")
_ONLY = {
    **dict.fromkeys(
        (
            "--dyn-input-dim",
            "--default-dyn-dim",
            "--dynamic-dims",
            "--skip-unknown-operators",
            "--debug-symbols",
        ),
        (_IMPORTED, "ONNX and TensorFlow models"),
    ),
    "--dim-param": (("onnx",), "ONNX models"),
    **dict.fromkeys(
        ("--nhwc", "--nchw", "--migraphx-layout", "--output-names"),
        (("tf",), "TensorFlow models"),
    ),
    **dict.fromkeys(("--strip-context", "--trust-code"), (tuple(SAVED), "saved programs")),
}
_OPTIMIZE = tuple(
    name
    for simplify in (
        "eliminate_identity", "simplify_algebra", "simplify_reshapes", "propagate_constant",
        "eliminate_pad",
    )
    for name in (simplify, "dead_code_elimination")
)  # fmt: skip
_ALIASES = {"eliminate_dead_code": "dead_code_elimination"}
_RUNS = (
    "run",
    "perf",
    "time",
    "verify",
    "roctx",
    "report",
    "quantize",
)  # commands that make inputs
_RATES = ("perf", "report")  # commands that print a rate
_FLAGS = {"--onnx": "onnx", "--tf": "tf", "--migraphx": "mxr", "--migraphx-json": "json"}


class Model:
    """The model of a command line: a file and how to read it, or the built-in program.

    Errors: UsageError for options that do not go together or with the file.
    """

    def __init__(self, args: Arguments, file: str | None = None, *, plain: bool = False) -> None:
        """Read the options of a model.

        `file`: in place of the command line's. `plain`: without --optimize, --apply-pass, --fp16
        and --bf16.
        """
        self.args = args
        self._code: dict[bool, CompiledProgram | None] = {}  # programs by their emulation flag
        self.passes = () if plain else load_passes(args)
        self.precisions = (
            () if plain else tuple(t for f, t in precision.PRECISIONS.items() if f in args)
        )
        self.path = file if file is not None else args.file
        self.is_test = file is None and "--test" in args
        self._check_file()
        kind = "" if self.is_test else self.kind()
        self.is_onnx, self.is_tf, self.is_saved = kind == "onnx", kind == "tf", kind in SAVED
        self.input_dims = dims.static_dims("--input-dim", args.get("--input-dim", []))
        self._check_options(kind)
        self.options: dict[str, Any] = {}  # options of the importer
        if self.is_onnx:
            self.options = self._onnx_options()
        elif self.is_tf:
            self.options = self._tf_options()

    def _check_file(self) -> None:
        """Raise UsageError unless there is one of a file and --test."""
        if self.is_test and self.path is not None:
            raise UsageError(f"expected a file or --test, got '{self.path}' and --test")
        if not self.is_test and self.path is None:
            raise UsageError("expected an input file, or --test", notes=_swallowed(self.args))

    def _check_options(self, kind: str) -> None:
        """Raise UsageError for an option that has no effect on a model of this kind."""
        for flag, (kinds, models) in _ONLY.items():
            if flag in self.args and kind not in kinds:
                raise UsageError(f"option '{flag}' is for {models}, got {self.name}")
        precision.check(self.args)
        if "--trim-size" in self.args and "--trim" not in self.args:
            raise UsageError(
                "option '--trim-size' needs --trim: it counts the instructions kept before it"
            )
        if kind in _IMPORTED or self.args.command in _RUNS:
            return
        for flag in ("--batch", "--input-dim"):
            if flag in self.args:
                raise UsageError(
                    f"option '{flag}' has no effect: {self.name} states its dims, and "
                    f"{self.args.command} makes no inputs"
                )

    @property
    def name(self) -> str:
        """The name that messages use."""
        return "the built-in program" if self.path is None else self.path

    @property
    def sets_batch(self) -> bool:
        """Return whether --batch states dims as the file is read."""
        return self.is_onnx or self.is_tf

    @property
    def is_rated(self) -> bool:
        """Return whether the command counts the batch in a rate."""
        return self.args.command in _RATES

    @property
    def batch(self) -> int:
        """The value of --batch."""
        return self.args.get("--batch", 1)

    def kind(self) -> str:
        """Return the type of the file, by a flag or its name. FileError for an unknown one."""
        assert self.path is not None
        flag = self.args.only_one(*_FLAGS)
        if flag is not None:
            return _FLAGS[flag]
        kinds = {**MODEL_SUFFIXES, **{f".{kind}": kind for kind in SAVED}, ".py": "py"}
        suffix = Path(self.path).suffix.lower()
        if suffix in kinds:
            return kinds[suffix]
        refuse_other(self.path, by_name=not _is_saved(self.path))
        if os.path.isdir(self.path):
            return "tf"
        return "mxr"  # the same default as in MIGraphX

    def _onnx_options(self) -> dict[str, Any]:
        args = self.args
        found = self._common_options()
        if "default_dyn_dim_value" not in found:
            if "--batch" in args and args.command not in _RATES:
                self._check_batch()
            found["default_dim_value"] = self.batch
        elif "--batch" in args and args.command not in _RUNS:
            raise UsageError(
                f"option '--batch' has no effect: {_opens(args)} leaves the dimensions "
                f"dynamic, and {args.command} makes no inputs"
            )
        if "--dim-param" in args:
            found["dim_params"] = dims.symbol_dims("--dim-param", args.get("--dim-param"))
        if "map_input_dims" in found:
            self._keep_dynamic(found)
        return found

    def _keep_dynamic(self, options: dict[str, Any]) -> None:
        """Keep dims dynamic that other options give a range: --input-dim is the size to run at."""
        # start-up: only what the command asks for is loaded
        from mgx_mlir.frontends.onnx.load import load_file

        default = options.get("default_dyn_dim_value")
        symbols = options.get("dim_params", {})
        ranges = {s: d for s, d in symbols.items() if not isinstance(d, int) and d.fixed is None}
        if default is None and not ranges:
            return
        assert self.path is not None
        with load_file(self.path) as loaded:
            inputs = {i.name: i.type.tensor_type.shape.dim for i in loaded.proto.graph.input}
        fixed = options["map_input_dims"]
        for name, sizes in list(fixed.items()):
            stated = inputs.get(name, ())
            if len(stated) != len(sizes):
                continue  # the importer says what is wrong
            kept: list[Dim] = list(sizes)
            for i, d in enumerate(stated):
                given = ranges.get(d.dim_param)
                if given is None and default is not None and not d.HasField("dim_value"):
                    given = symbols.get(d.dim_param, default)
                if isinstance(given, DynamicDim) and given.fixed is None:
                    symbol = d.dim_param or None
                    kept[i] = replace(given, symbol=given.symbol or symbol)
            if any(isinstance(d, DynamicDim) for d in kept):
                options.setdefault("map_dyn_input_dims", {})[name] = kept
                del fixed[name]

    def _tf_options(self) -> dict[str, Any]:
        args = self.args
        layout = args.only_one("--nhwc", "--nchw")
        return {
            **self._common_options(),
            "is_nhwc": layout != "--nchw",
            "batch_size": self.batch,
            "output_names": args.get("--output-names", []),
            "migraphx_layout": "--migraphx-layout" in args,
        }

    def _common_options(self) -> dict[str, Any]:
        """Return the options that the readers of ONNX and TensorFlow models share."""
        args = self.args
        default = args.get("--default-dyn-dim")
        dynamic = dims.dynamic_dims("--dyn-input-dim", args.get("--dyn-input-dim", []))
        # the --input-dim of a dynamic input is the size to run at
        fixed = {k: v for k, v in self.input_dims.items() if k not in dynamic}
        found: dict[str, Any] = {}
        if default is not None:
            found["default_dyn_dim_value"] = _as_range(dims.one_dim("--default-dyn-dim", default))
        if "--dynamic-dims" in args:
            if default is not None:
                raise UsageError("expected one of --dynamic-dims and --default-dyn-dim")
            found["default_dyn_dim_value"] = DynamicDim(0, None)
        if "--sizes" in args:
            found.setdefault("default_dyn_dim_value", DynamicDim(0, None))
        if fixed:
            found["map_input_dims"] = fixed
        if dynamic:
            found["map_dyn_input_dims"] = dynamic
        if "--skip-unknown-operators" in args:
            found["skip_unknown_operators"] = True
        if "--debug-symbols" in args:
            found["use_debug_symbols"] = True
        return found

    def _check_batch(self) -> None:
        """Raise UsageError where --batch cannot change anything: every dimension is stated."""
        # start-up: only what the command asks for is loaded
        from mgx_mlir.frontends.onnx.load import load_file

        assert self.path is not None
        with load_file(self.path) as loaded:
            for value in loaded.proto.graph.input:
                dims_ = value.type.tensor_type.shape.dim
                if any(not d.HasField("dim_value") for d in dims_):
                    return
        raise UsageError("option '--batch' has no effect: the model has no dynamic dimension",
                         notes=["--input-dim @name d1 d2 ... replaces stated ones"])  # fmt: skip

    def source(self) -> str | ProgramIR:
        """Return the argument of compile(): the path, or the program where a path is not enough."""
        if self.path is None or self.is_saved or self.is_cut or self.passes or self.precisions:
            return self.program
        by_name = MODEL_SUFFIXES.get(Path(self.path).suffix.lower()) == self.kind()
        return self.path if by_name else self.program

    @cached_property
    def program(self) -> ProgramIR:
        """The loaded program, in the types of the options. Errors: MgxError."""
        return self._in_types(self.loaded.clone()) if self.precisions else self.loaded

    @cached_property
    def loaded(self) -> ProgramIR:
        """The program as read, changed by the passes of the options. Errors: MgxError."""
        return self._passed(self._cut(self._read()))

    @property
    def is_cut(self) -> bool:
        """Return whether a part of the file, or other literals than its own, make the model."""
        return "--trim" in self.args or "--replace-literals" in self.args

    def _cut(self, found: ProgramIR) -> ProgramIR:
        # start-up: only what the command asks for is loaded
        from mgx_mlir.tools.driver.trim import replace_literals, trim

        if "--trim" in self.args:
            trim(found, self.args.get("--trim"), self.args.get("--trim-size", 0))
        if "--replace-literals" in self.args:
            replace_literals(found)
        return found

    def changed(self, found: ProgramIR) -> ProgramIR:
        """Apply the passes and the types of the options to a program, in place."""
        return self._in_types(self._passed(found))

    def _passed(self, found: ProgramIR) -> ProgramIR:
        if self.passes:
            # start-up: only what the command asks for is loaded
            from mgx_mlir.rewrite.passes import run_pipeline

            run_pipeline(found.module, self.passes, store=found.store)
            found.prune_store()
        return found

    def _in_types(self, found: ProgramIR) -> ProgramIR:
        if not self.precisions:
            return found
        # start-up: only what the command asks for is loaded
        from mgx_mlir.api.program import program as api_program

        made = api_program.of(found)
        for kind in self.precisions:
            precision.in_precision(made, kind, self.args)
        return made.program_ir

    def _read(self) -> ProgramIR:
        if self.path is None:
            return built_in()
        if self.is_saved:
            # start-up: only what the command asks for is loaded
            from mgx_mlir.api.files import CodeAlone

            try:
                return self.saved(compiled=False).program_ir
            except CodeAlone:
                if self.is_stripped:
                    raise
                return self.saved(compiled=True).program_ir
        if self.is_tf:
            # start-up: only what the command asks for is loaded
            from mgx_mlir.frontends.tf.options import TfOptions
            from mgx_mlir.frontends.tf.program import parse_tf

            return parse_tf(self.path, TfOptions(**self.options))
        if self.kind() == "py":
            # start-up: only what the command asks for is loaded
            from mgx_mlir.tools.driver.scripts import run_script

            return run_script(self.path).program_ir
        if not self.is_onnx:
            # start-up: only what the command asks for is loaded
            from mgx_mlir.frontends.mlir_files import read_mlir

            return read_mlir(self.path)
        # start-up: only what the command asks for is loaded
        from mgx_mlir.frontends.onnx.importer import parse_onnx

        try:
            return parse_onnx(self.path, OnnxOptions(**self.options))
        except (ModelError, ShapeError) as e:
            if self._assumes_dims():
                e.notes += (
                    f"dims that the file leaves dynamic count as {self.batch}: --input-dim and "
                    "--dim-param state them, --dynamic-dims keeps them dynamic",
                )
            raise

    def _assumes_dims(self) -> bool:
        """Return whether an input of an ONNX file has dims that neither it nor an option states."""
        # start-up: only what the command asks for is loaded
        from mgx_mlir.frontends.onnx.load import load_file

        if "default_dim_value" not in self.options:
            return False
        assert self.path is not None
        told = [
            n for key in ("map_input_dims", "map_dyn_input_dims") for n in self.options.get(key, ())
        ]
        symbols = self.options.get("dim_params", {})
        with load_file(self.path) as loaded:
            return any(
                not d.HasField("dim_value") and d.dim_param not in symbols
                for i in loaded.proto.graph.input
                if i.name not in told
                for d in i.type.tensor_type.shape.dim
            )

    def code(self, emulate: bool) -> CompiledProgram | None:
        """Return the compiled program that a saved file holds, None where there is none to take.

        Errors: FileError with a note how to compile again.
        """
        if not self.is_saved or self.is_stripped:
            return None
        if emulate not in self._code:
            try:
                saved = self.saved(compiled=True, emulate=emulate)
            except FileError as e:
                notes = ["--trust-code runs it"] if "machine code" in e.message else []
                if self._reads_without_code():
                    notes.append("--strip-context leaves the code out and compiles again")
                where = e.location or self.path
                raise FileError(e.message, location=where, notes=notes or e.notes) from None
            self._code[emulate] = saved.compiled if saved.is_compiled() else None
        return self._code[emulate]

    def _reads_without_code(self) -> bool:
        try:
            self.saved(compiled=False)
        except FileError:
            return False  # there is no file, or no program in it
        return True

    def saved(self, *, compiled: bool, emulate: bool = False) -> Program:
        """Return the program of a saved file, with its code if `compiled` and the file has it."""
        # start-up: only what the command asks for is loaded
        from mgx_mlir.api.files import load_program

        assert self.path is not None
        if self.is_stripped:
            compiled = False
        # a command that only prints runs no code
        trust = True if "--trust-code" in self.args or self.args.command == "read" else None
        try:
            return load_program(
                self.path, SAVED[self.kind()], compiled=compiled, emulate=emulate, trust_code=trust
            )
        except FileError as e:
            known = Path(self.path).suffix.lower() in (".mxr", ".json")
            if known or self.args.only_one(*_FLAGS):
                raise
            note = f"files of unknown suffix are read as .mxr; {', '.join(_FLAGS)} state the format"
            location = e.location or self.path
            message = f"cannot be read as .mxr: {e.message}"
            raise FileError(message, location=location, notes=[*e.notes, note]) from None

    @property
    def is_stripped(self) -> bool:
        """Return whether --strip-context was given."""
        return "--strip-context" in self.args


def load_passes(args: Arguments) -> tuple[Pass, ...]:
    """Return the passes of --optimize and --apply-pass, in that order.

    Errors: PipelineError for unknown ones.
    """
    names: list[str] = list(_OPTIMIZE) if "--optimize" in args else []
    names += args.get("--apply-pass", [])
    if not names:
        return ()
    import mgx_mlir.passes  # noqa: F401  (declares the passes)
    from mgx_mlir.core.context import new_context
    from mgx_mlir.rewrite.passes import resolve

    context = new_context()
    wanted = [_ALIASES.get(name) or name for name in names]
    return tuple(p for name in wanted for p in resolve([name], context))


def _is_saved(path: str) -> bool:
    """Return whether a file starts as .mxr files do: a map of msgpack."""
    # start-up: the suffix decides for most files
    from mgx_mlir.frontends.files import open_regular

    try:
        with open(open_regular(path, "a model"), "rb") as f:  # a pipe would be waited for
            first = f.read(1)
    except (OSError, FileError):
        return True  # the reader reports the error
    return bool(first) and (0x80 <= first[0] <= 0x8F or first[0] in (0xDE, 0xDF))


def _opens(args: Arguments) -> str:
    flags = ("--dynamic-dims", "--sizes", "--default-dyn-dim")
    return next(f for f in flags if f in args)


def _as_range(dim: Dim) -> DynamicDim:
    return DynamicDim(dim, dim) if isinstance(dim, int) else dim


def _swallowed(args: Arguments) -> list[str]:
    """Return a note where a greedy option took what looks like the file."""
    for flag, value in args.values.items():
        for token in value if isinstance(value, list) else ():
            if isinstance(token, str) and Path(token).suffix and os.path.isfile(token):
                return [f"'{token}' was read as a value of {flag}: put the file before it"]
    return []


def built_in() -> ProgramIR:
    """Build the program of --test: dot of a{4,5} and b{5,3}, without a return."""
    import mgx_mlir.dialects  # noqa: F401  (defines the operators)
    from mgx_mlir.programs.layout import Shape
    from mgx_mlir.programs.module_builder import ProgramBuilder

    builder = ProgramBuilder()
    a = builder.main.add_parameter("a", Shape.standard(dtypes.from_numpy(np.float32), (4, 5)))
    b = builder.main.add_parameter("b", Shape.standard(dtypes.from_numpy(np.float32), (5, 3)))
    builder.main.add_instruction("dot", {}, [a, b])
    builder.main.close()
    return builder.program("test")
