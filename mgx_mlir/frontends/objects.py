"""Models that are objects of other libraries: exported torch programs, ONNX models in memory.

Only libraries that the object's creator has already imported are used.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import FileError, MgxError, UnsupportedModel, UsageError
from mgx_mlir.core.extras import install_line
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import Shared, aligned_empty
from mgx_mlir.core.names import safe_text
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends.torch_checks import stated_bounds, with_assertions, with_index_checks
from mgx_mlir.frontends.torch_conditions import size_rules
from mgx_mlir.frontends.torch_operators import translations
from mgx_mlir.frontends.torch_registry import readings_kept
from mgx_mlir.frontends.torch_routes import refuse_dropped, routed
from mgx_mlir.frontends.torch_scan import OPSET
from mgx_mlir.frontends.torch_training import refuse_draws, refuse_training
from mgx_mlir.programs.program_ir import SIZES, ProgramIR, argument_names, result_types
from mgx_mlir.programs.size_rules import as_text

# torch 2.13's message for an operator that torch.onnx does not know
_MISSING = re.compile(r"No ONNX function found for <OpOverload\(op='([\w.]+)', overload='(\w+)'")
_KEPT = 1024  # bytes; smaller weights stay in the message


def is_object(model: object) -> bool:
    """Return whether a model is an object that `program_of_object` reads."""
    return _reader(model) is not None


def program_of_object(model: object, options: Mapping[str, Any]) -> ProgramIR:
    """Read a torch ExportedProgram or ONNXProgram, an onnx ModelProto or an onnx_ir Model.

    Weights of torch are used without a copy. `options` are the fields of OnnxOptions. Raises
    UnsupportedModel, ModelError, UsageError.
    """
    read = _reader(model)
    if read is None:
        raise UsageError(f"expected a model, got {type(model).__name__}")
    return read(model, options)


def bytes_of_file(model: Any) -> bytes:
    """Return the content of an open binary file. UsageError for a text file, FileError."""
    name = str(getattr(model, "name", "<file>"))
    try:
        data = model.read()
    except (OSError, ValueError) as e:
        raise FileError(f"cannot be read: {e}", location=name) from None
    if not isinstance(data, bytes):
        raise UsageError(
            f"expected a file that is open for bytes, got {type(data).__name__} from it",
            notes=["open(path, 'rb')"],
        )
    return data


def is_module(model: object) -> bool:
    """Return whether a model is a torch module."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _reader(model: object) -> Callable[[Any, Mapping[str, Any]], ProgramIR] | None:
    kinds = {
        ("torch.export", "ExportedProgram"): _of_exported,
        ("torch.onnx", "ONNXProgram"): _of_onnx_program,
        ("onnx", "ModelProto"): _of_proto,
        ("onnx_ir", "Model"): _of_ir,
    }
    for (place, name), read in kinds.items():
        kind = getattr(sys.modules.get(place), name, None)
        if isinstance(kind, type) and isinstance(model, kind):
            return read
    return None


def _of_proto(model: Any, options: Mapping[str, Any]) -> ProgramIR:
    return _read(model, {}, options)


def _of_onnx_program(model: Any, options: Mapping[str, Any]) -> ProgramIR:
    return _of_ir(model.model, options)


def _of_exported(model: Any, options: Mapping[str, Any]) -> ProgramIR:
    return program_of_export(stateless_onnx(model), options)


def program_of_export(made: Any, options: Mapping[str, Any] | None = None) -> ProgramIR:
    """Read the result of `onnx_of_exported`.

    Raises UnsupportedModel if a result's type or shape differs from the trace's.
    """
    read = _of_ir(made.model, options or {})
    (output,) = (n for n in made.exported_program.graph.nodes if n.op == "output")
    values = [n.meta.get("val") for n in output.args[0] if hasattr(n, "op")]
    with read.ctx:
        types = result_types(read.main())
    pairs = zip(values, types, strict=True) if len(values) == len(types) else ()
    wrong = [
        f"result {i} is {kind}, torch gives {_traced(value)}"
        for i, (value, kind) in enumerate(pairs)
        if hasattr(value, "dtype") and not _alike(value, kind)
    ]
    if wrong:
        raise UnsupportedModel("; ".join(wrong))
    rules = size_rules(made.exported_program, argument_names(read.main()))
    if rules:
        with read.ctx:
            read.main().attributes[SIZES] = ir.StringAttr.get(as_text(rules))
    return read


def _alike(value: Any, kind: TensorType) -> bool:
    """Return whether a tensor of the trace matches a type, as far as dims are known."""
    if value.is_complex() or value.ndim != kind.rank:
        return False
    if (value.element_size(), value.is_floating_point()) != (
        kind.dtype.np.itemsize, kind.dtype.is_float,
    ):  # fmt: skip
        return False
    dims = zip(value.shape, kind.dims, strict=True)
    return all(a == b for a, b in dims if isinstance(a, int) and b >= 0)


def _traced(value: Any) -> str:
    name = str(value.dtype).removeprefix("torch.")
    return f"{name} {{{', '.join(map(str, value.shape))}}}"


def onnx_of_exported(model: Any) -> Any:
    """Return the ONNXProgram of a torch ExportedProgram. Raises UnsupportedModel, UsageError."""
    torch: Any = importlib.import_module("torch")  # already imported: the object is torch's
    require_exporter()
    refuse_training(model)
    refuse_draws(model)
    _refuse_kinds(model)
    _refuse_graphs(model)
    with interrupts.at_once(), quiet(), readings_kept(), torch.no_grad():
        try:
            bounds = stated_bounds(model)
            model = with_assertions(routed(with_index_checks(model)), bounds)
        except MgxError:
            raise
        except Exception as e:  # torch raises exceptions of many kinds
            raise UnsupportedModel(f"torch cannot trace the program: {first_line(e)}") from e
    constants = _without_constants(model.graph)
    with interrupts.at_once(), quiet(), readings_kept(), constants, torch.no_grad():
        try:
            made = torch.onnx.export(
                model, dynamo=True, verbose=False, opset_version=OPSET,
                custom_translation_table=translations(),
                optimize=False,  # onnxscript folds normalizations of bf16 into f32 weights
            )  # fmt: skip
            refuse_dropped(made.exported_program)
            return made
        except MgxError:
            raise
        except Exception as e:  # the exporter and its callees raise exceptions of many kinds
            raise UnsupportedModel(f"torch.onnx cannot export the program: {first_line(e)}") from e


def stateless_onnx(model: Any) -> Any:
    """Return the ONNXProgram of an ExportedProgram without writes; UnsupportedModel otherwise.

    torch.onnx drops a program's writes to its buffers and arguments.
    """
    made = onnx_of_exported(model)
    written = written_by(made)
    if written:
        raise UnsupportedModel(
            f"the module writes to {', '.join(sorted(written))}: a program has no state",
            notes=["return the new value, or use torch.compile(module, backend='mgx')"],
        )
    return made


def written_by(made: Any) -> list[str]:
    """Return the buffers, parameters and arguments that an ONNXProgram's source writes to."""
    # the graph is functional: it returns written values
    specs = made.exported_program.graph_signature.output_specs
    return [s.target for s in specs if s.kind.name.endswith("_MUTATION")]


def _refuse_kinds(model: Any) -> None:
    """Raise UnsupportedModel for arguments and results of types that programs lack.

    In ONNX complex numbers are pairs of reals; torch takes tensor subclasses apart.
    """
    dispatch: Any = importlib.import_module("torch.utils._python_dispatch")
    signature = model.graph_signature
    values = {n.name: n.meta.get("val") for n in model.graph.nodes}
    for side, do, names in (
        ("an argument", "take", signature.user_inputs),
        ("a result", "return", signature.user_outputs),
    ):
        for value in map(values.get, names):
            if getattr(getattr(value, "dtype", None), "is_complex", False):
                raise UnsupportedModel(
                    f"{side} of the torch program is complex: {do} its real and imaginary part, "
                    "torch.view_as_real(x)"
                )
            if dispatch.is_traceable_wrapper_subclass(value):
                raise UnsupportedModel(
                    f"{side} of the torch program is a {type(value).__name__}: {do} the tensors "
                    "that it holds"
                )


def _refuse_graphs(model: Any) -> None:
    """Raise UnsupportedModel for a program without tensors, and for one that takes gradients."""
    if not any(hasattr(n.meta.get("val"), "dtype") for n in model.graph.nodes):
        raise UnsupportedModel("the torch program has no tensors, so there is nothing to compute")
    # torch.export treats the tensors of a gradient as constants, and traces derivatives forward
    unwrapped = [n for n in model.graph.nodes if _name(n) == "_unwrap_for_grad"]
    if not all(_name(a) == "_unpack_dual" for n in unwrapped for a in n.args[0].args[:1] or [None]):
        raise UnsupportedModel(
            "the torch program takes a gradient (torch.func.grad): compute it outside of the "
            "compiled "
            "program, or write it as a formula"
        )


def _name(node: Any) -> str:
    return getattr(getattr(node, "target", None), "__name__", "")


@contextmanager
def _without_constants(graph: Any) -> Iterator[None]:
    """Remove numbers and strings from a graph's results; the exporter would treat them as
    tensors.
    """
    (output,) = (n for n in graph.nodes if n.op == "output")
    before = output.args
    results = before[0] if isinstance(before[0], tuple | list) else (before[0],)
    output.args = (tuple(x if hasattr(x, "op") else None for x in results),)
    try:
        yield
    finally:
        output.args = before


def require_exporter() -> None:
    """Raise UsageError if torch.onnx lacks an installed dependency."""
    try:
        importlib.import_module("onnxscript")
    except ImportError:
        raise UsageError("torch programs need onnxscript", notes=[install_line("torch")]) from None


def first_line(e: BaseException) -> str:
    """Return the first cause of an error, on one line."""
    while e.__cause__ is not None:
        e = e.__cause__
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    missing = _MISSING.search(lines[0]) if lines else None
    if missing is not None:
        return f"it has no translation of {missing[1]}.{missing[2]}"
    return safe_text(f"{type(e).__name__}: {lines[0][:300]}" if lines else type(e).__name__)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the exporters' log messages; failures still raise."""
    logs = [logging.getLogger(n) for n in ("torch.onnx", "torch.fx.experimental.symbolic_shapes")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


def _of_ir(model: Any, options: Mapping[str, Any]) -> ProgramIR:
    """Read an onnx_ir Model; large weights do not pass through a protobuf message."""
    ir: Any = importlib.import_module("onnx_ir")  # already imported: the object is onnx_ir's
    arrays: dict[str, np.ndarray] = {}
    before: dict[str, Any] = {}
    values = model.graph.initializers
    try:
        for name, value in values.items():
            tensor: Any = value.const_value
            if tensor is None or tensor.nbytes < _KEPT:
                continue
            held = _bytes_of(tensor)
            if held is None:
                continue
            arrays[name], before[name] = held, tensor
            value.const_value = ir.ExternalTensor(
                "held", 0, held.nbytes, tensor.dtype, shape=tensor.shape, name=name
            )
        proto = ir.to_proto(model)
    finally:
        for name, tensor in before.items():
            values[name].const_value = tensor
    return _read(proto, arrays, options)


def _bytes_of(tensor: Any) -> np.ndarray | None:
    """Return an onnx_ir tensor's bytes, without a copy for torch's; None for packed ones."""
    if tensor.dtype.bitwidth < 8:
        return None
    torch: Any = sys.modules.get("torch")
    raw: Any = getattr(tensor, "raw", None)
    if torch is not None and isinstance(raw, torch.Tensor):
        held = raw.detach().cpu().contiguous()
        if held.nbytes == tensor.nbytes:
            return np.asarray(Shared(held, held.data_ptr(), held.nbytes))
    array = np.asarray(tensor.numpy())
    if array.nbytes != tensor.nbytes:
        return None
    mine = aligned_empty(array.shape, array.dtype)  # the caller may write to its own array
    mine[...] = array
    return mine.reshape(-1).view(np.uint8)


def _read(proto: Any, arrays: Mapping[str, np.ndarray], options: Mapping[str, Any]) -> ProgramIR:
    # not imported at start-up: only the model's frontend is loaded
    from mgx_mlir.frontends.dims import with_model_dims
    from mgx_mlir.frontends.onnx.held import load_held
    from mgx_mlir.frontends.onnx.importer import import_model
    from mgx_mlir.frontends.onnx.options import OnnxOptions

    try:
        chosen = OnnxOptions(**with_model_dims(options))
    except TypeError as e:
        raise UsageError(f"compile() {str(e).removeprefix('OnnxOptions.__init__() ')}") from None
    with load_held(proto, arrays) as model:
        return import_model(model, chosen)
