"""Options of onnxruntime's MIGraphX provider, and the effect of each on a session.

Names and meanings are those of onnxruntime's documentation of MIGraphXExecutionProvider.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mgx_mlir.api.files import load, save
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.integrations.onnxruntime.errors import InvalidArgument
from mgx_mlir.integrations.onnxruntime.models import Model, of_signature
from mgx_mlir.integrations.onnxruntime.options import HONOURED, MEANS_NOTHING, Meaning

_TABLE = "migraphx_int8_calibration_table_name"
_NATIVE = "migraphx_int8_use_native_calibration_table"
# onnxruntime's variable with the folder of calibration tables
_TABLE_FOLDER = "ORT_MIGRAPHX_CACHE_PATH"
_TYPES = ("fp16", "bf16", "int8", "fp8")  # in the order in which they are applied

MEANINGS = {
    "device_id": Meaning(HONOURED, "the number of the GPU"),
    "arch": Meaning(HONOURED, "ours: the architecture to compile for"),
    "emulate": Meaning(HONOURED, "ours: run on the emulator"),
    "migraphx_fp16_enable": Meaning(HONOURED, "floats of 32 bits are computed in f16"),
    "migraphx_bf16_enable": Meaning(HONOURED, "floats of 32 bits are computed in bf16"),
    "migraphx_int8_enable": Meaning(
        HONOURED, "dots and convolutions with constant weights in int8; without a table each run "
        "measures the ranges of its activations"
    ),
    "migraphx_fp8_enable": Meaning(HONOURED, "the same in 8-bit floats"),
    _TABLE: Meaning(
        HONOURED, "ranges of activations: JSON of onnxruntime's quantization, or a .cache; a name "
        "without a folder is also looked for in $ORT_MIGRAPHX_CACHE_PATH"
    ),
    _NATIVE: Meaning(HONOURED, "the table's suffix states its form: .cache is the native one"),
    "migraphx_exhaustive_tune": Meaning(
        HONOURED, "measure candidates of each kernel and keep the fastest"
    ),
    "migraphx_save_compiled_model": Meaning(HONOURED, "write the compiled program"),
    "migraphx_save_model_path": Meaning(HONOURED, "its file, .mxr"),
    "migraphx_load_compiled_model": Meaning(
        HONOURED, "read the compiled program if its file exists; else compile"
    ),
    "migraphx_load_model_path": Meaning(HONOURED, "its file, .mxr"),
    "migraphx_model_cache_dir": Meaning(HONOURED, "the folder of the compile cache"),
    "migraphx_mem_limit": Meaning(MEANS_NOTHING, ""),
    "migraphx_arena_extend_strategy": Meaning(MEANS_NOTHING, ""),
}  # fmt: skip


def is_on(value: str | None) -> bool:
    """Return whether an option's text means true."""
    return value is not None and value.strip().lower() in ("1", "true", "on")


@dataclass(frozen=True)
class GpuOptions:
    """Checked options of a GPU's provider."""

    compile: Mapping[str, Any] = field(default_factory=dict)  # options of `mgx_mlir.compile`
    types: tuple[str, ...] = ()  # smaller types, in the order in which they are applied
    table: str = ""  # path of a calibration table
    cache_folder: str = ""
    save_path: str = ""
    load_path: str = ""

    @staticmethod
    def of(given: Mapping[str, str]) -> GpuOptions:
        """Parse the texts of a session's options. Errors: InvalidArgument, which lists all
        problems.
        """
        how: dict[str, Any] = {}
        problems: list[str] = []
        if "device_id" in given:
            if given["device_id"].isdecimal():
                how["device_id"] = int(given["device_id"])
            else:
                problems.append(f"'device_id' expected a number, got '{given['device_id']}'")
        if "arch" in given:
            how["arch"] = given["arch"]
        for key, name in (("emulate", "emulate"), ("migraphx_exhaustive_tune", "exhaustive_tune")):
            if is_on(given.get(key)):
                how[name] = True
        types = tuple(t for t in _TYPES if is_on(given.get(f"migraphx_{t}_enable")))
        for a, b in (("fp16", "bf16"), ("int8", "fp8")):
            if a in types and b in types:
                problems.append(
                    f"'migraphx_{a}_enable' and 'migraphx_{b}_enable' exclude each other"
                )
        paths = {}
        for verb in ("save", "load"):
            on = is_on(given.get(f"migraphx_{verb}_compiled_model"))
            paths[verb] = given.get(f"migraphx_{verb}_model_path", "") if on else ""
            if on and not paths[verb]:
                problems.append(
                    f"'migraphx_{verb}_compiled_model' needs 'migraphx_{verb}_model_path'"
                )
        table = given.get(_TABLE, "")
        if table and not {"int8", "fp8"} & {*types}:
            problems.append(f"'{_TABLE}' needs 'migraphx_int8_enable' or 'migraphx_fp8_enable'")
        table = _found(table) if table else ""
        if problems:
            raise InvalidArgument("; ".join(problems))
        cache = given.get("migraphx_model_cache_dir", "")
        return GpuOptions(how, types, table, cache, paths["save"], paths["load"])

    def loaded(self, model: Model, target: str = "gpu") -> CompiledProgram | None:
        """Return the compiled program of the file to load; None if the model must be compiled.

        Errors: InvalidArgument for a program of another target, of other inputs or outputs;
        FileError.
        """
        if not self.load_path:
            return None
        if not os.path.exists(self.load_path):
            if self.load_path != self.save_path:
                warnings.warn(
                    f"'{self.load_path}' does not exist: compiling the model", stacklevel=5
                )
            return None
        found = load(self.load_path, emulate=bool(self.compile.get("emulate")))
        program = found if isinstance(found, CompiledProgram) else found.compiled
        if not isinstance(program, CompiledProgram):
            raise InvalidArgument("the program is not compiled", location=self.load_path)
        if program.target != target:
            raise InvalidArgument(
                f"expected code for {target}, got code for {program.target}",
                location=self.load_path,
            )
        stored = of_signature(program.signature, self.load_path)
        for what, have, want in (
            ("inputs", stored.inputs, model.inputs), ("outputs", stored.outputs, model.outputs)
        ):  # fmt: skip
            if [(a.name, a.type) for a in have] != [(a.name, a.type) for a in want]:
                raise InvalidArgument(
                    f"the {what} of the compiled program differ from the model's",
                    location=self.load_path,
                    notes=["remove the file, or set 'migraphx_load_compiled_model' to 0"],
                )
        return program

    def keep(self, program: CompiledProgram | None) -> None:
        """Write the compiled program if an option asks for it. Errors: FileError."""
        if not self.save_path:
            return
        if program is None:
            warnings.warn(
                f"'{self.save_path}' is not written: the program depends on the input values",
                stacklevel=5,
            )
            return
        save(program, self.save_path)


def _found(table: str) -> str:
    folder = os.environ.get(_TABLE_FOLDER, "")
    if folder and not os.path.exists(table):
        return os.path.join(folder, table)
    return table
