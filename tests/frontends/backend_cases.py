"""The onnx package's backend cases, run through the importer and the reference interpreter."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import MgxError, UnsupportedModel
from mgx_mlir.core.ir import ir
from mgx_mlir.frontends import importer
from mgx_mlir.frontends.onnx.importer import import_model
from mgx_mlir.frontends.onnx.load import load_bytes
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature


@dataclass
class Case:
    """A model with data sets of inputs and expected outputs."""

    name: str
    model: onnx.ModelProto
    rtol: float
    atol: float
    data: list[tuple[list[Any], list[Any]]] = field(default_factory=list)
    folder: str = ""


# Two steps of the type, as onnx's own runner allows bf16: the expected values are numpy's, which
# rounds after every addition of a product, ours once.
_TWO_STEPS = {"bfloat16": 2**-6, "float16": 2**-9}


@functools.cache
def node_cases() -> tuple[Case, ...]:
    """The generated node cases (seconds)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    return tuple(Case(c.name, c.model, c.rtol, max(c.atol, 1e-7), c.data_sets) for c in found)


def stored_cases(kind: str) -> Iterator[Case]:
    """The cases shipped as files: pytorch-converted, pytorch-operator, simple."""
    root = Path(onnx.__file__).parent / "backend" / "test" / "data" / kind
    for folder in sorted(root.iterdir()):
        model = onnx.load(folder / "model.onnx")
        case = Case(folder.name, model, 1e-3, 1e-7, folder=str(folder))
        for data in sorted(folder.glob("test_data_set_*")):
            case.data.append(
                (
                    _tensors(data, "input", model.graph.input),
                    _tensors(data, "output", model.graph.output),
                )
            )
        yield case


def _tensors(folder: Path, kind: str, infos: Any) -> list[Any]:
    out = []
    for i in range(len(list(folder.glob(f"{kind}_*.pb")))):
        proto = onnx.TensorProto()
        proto.ParseFromString((folder / f"{kind}_{i}.pb").read_bytes())
        out.append(numpy_helper.to_array(proto))
    return out


def with_dynamic_dims(model: onnx.ModelProto, inputs: int | None = None) -> onnx.ModelProto:
    """A model whose first `inputs` (None: all) have dims of names of their own; ranks stay."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    constants = {t.name for t in found.graph.initializer}
    given = [v for v in found.graph.input if v.name not in constants]
    for v in given[:inputs]:
        for i, dim in enumerate(v.type.tensor_type.shape.dim):
            dim.Clear()
            dim.dim_param = f"{v.name}_{i}"
    for v in found.graph.output:
        if v.type.HasField("tensor_type"):
            v.type.tensor_type.ClearField("shape")
    del found.graph.value_info[:]
    return found


# types of fewer than eight bits, and scales, as programs hold them
_HELD = {
    "uint4": "uint8", "int4": "int8", "uint2": "uint8", "int2": "int8",
    "float4_e2m1fn": "float8_e4m3fn", "float8_e8m0fnu": "float32",
}  # fmt: skip


def array(value: Any) -> Any:
    """A data set's entry as an array, as programs hold it; None where it is no tensor."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if not isinstance(value, np.ndarray | np.generic):
        return None
    found = np.asarray(value)
    held = _HELD.get(found.dtype.name)
    if held is None:
        return found
    wide = found.astype(np.float32)
    return wide.astype(getattr(ml_dtypes, held, None) or np.dtype(held))


@functools.cache
def shared_context() -> ir.Context:
    """Return the context of all cases: to make one takes as long as to import some."""
    return new_context()


def run(case: Case) -> tuple[str, str]:
    """("passed" | "wrong" | "unsupported" | "failed", why)."""
    try:
        with load_bytes(
            case.model.SerializeToString(), external_data_path=case.folder or None
        ) as model, patch.object(importer, "new_context", shared_context):  # fmt: skip
            program = import_model(model)
    except UnsupportedModel as e:
        return "unsupported", str(e)
    except MgxError as e:
        return "failed", str(e)
    names = [i.name for i in case.model.graph.input]
    initial = {t.name for t in case.model.graph.initializer}
    names = [n for n in names if n not in initial]
    for inputs, outputs in case.data:
        arrays = [array(v) for v in inputs]
        if any(a is None for a in arrays):
            return "unsupported", "an input is no tensor"
        if any(array(v) is None for v in outputs):
            return "unsupported", "an output is no tensor"
        try:
            got = _called(program, dict(zip(names, arrays, strict=False)))
        except MgxError as e:
            return "failed", f"run: {e}"
        why = compare(got, [array(v) for v in outputs], case)
        if why:
            return "wrong", why
    return "passed", ""


def _called(program: ProgramIR, given: dict[str, Any]) -> list[np.ndarray]:
    """Interpret a program; strings are numbers in it, as CompiledProgram.run has it."""
    signature = Signature.of(program.main())
    interpreter = Interpreter(program.module, program.store)
    if not signature.takes_texts:
        return interpreter.run(given)
    numbers, call = signature.numbered(given)
    return signature.stated(interpreter.run(numbers), call)


def compare(got: list[np.ndarray], want: list[Any], case: Case) -> str:
    """Why the outputs are not the expected ones, or nothing."""
    if len(got) != len(want):
        return f"{len(got)} outputs, expected {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if w is None:
            return f"output {i} is no tensor"
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"output {i}: {g.dtype}{g.shape}, expected {w.dtype}{w.shape}"
        if w.dtype == object:
            if not np.array_equal(g, w):
                return f"output {i}: other strings than expected"
            continue
        a, b = (v.astype(np.float64) if v.dtype != bool else v for v in (g, w))
        rtol = max(case.rtol, _TWO_STEPS.get(g.dtype.name, 0))
        close = np.isclose(a, b, rtol=rtol, atol=case.atol, equal_nan=True)
        if not close.all():
            at = tuple(int(k[0]) for k in np.nonzero(~close)) if g.ndim else ()
            return (
                f"output {i}: {int((~close).sum())} of {close.size} differ, first at {at}: "
                f"{a[at]} expected {b[at]}"
            )
    return ""
