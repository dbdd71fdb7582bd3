"""The onnx package's backend test suite as plain files, one pickle per case.

    python -m mgx_mlir.integrations.backend_report.cases DIR

The suite's loader imports onnx.reference, which computes some expected outputs. Workers that run
our engine may not import it, so a separate process collects the cases here.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import pickle
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
FORMS = ("numeric tensors", "sequences", "strings")
RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike")
)  # fmt: skip
STRING = 8  # ONNX's number of the element type string


@dataclass(frozen=True)
class Case:
    """A case of the onnx package: a serialised model, its data and its tolerances."""

    name: str
    kind: str  # group of the case (KINDS)
    model: bytes
    data_sets: list[tuple[list[Any], list[Any]]]  # inputs and expected outputs of each set
    rtol: float
    atol: float
    form: str = FORMS[0]  # type of the inputs and outputs (FORMS)
    random: bool = False  # output is random: expected values are those of one generator


def collect(folder: Path) -> int:
    """Write every case of the installed onnx package under `folder`; return their number."""
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import load_model_tests  # onnx takes long to load

    count = 0
    for kind in KINDS:
        with contextlib.redirect_stdout(io.StringIO()):  # some generators print
            tests = load_model_tests(kind=kind)
        for test in tests:
            write(folder / f"{kind}.{test.name}.pkl", as_case(test, kind))
            count += 1
    return count


def write(path: Path, case: Case) -> None:
    """Write a case to a file atomically."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(pickle.dumps(vars(case)))
    os.replace(temporary, path)


def read(path: Path) -> Case:
    """Read a case that `collect` wrote."""
    return Case(**pickle.loads(path.read_bytes()))


def as_case(test: Any, kind: str) -> Case:
    """Convert a loader's TestCase, reading its files."""
    import onnx  # onnx takes long to load

    if test.model_dir is None and test.model is not None:  # made in memory
        model = test.model
        data_sets = [
            ([plain(item) for item in inputs], [plain(item) for item in outputs])
            for inputs, outputs in test.data_sets
        ]
    elif test.url is not None:  # a light model: inputs are made, outputs lie beside the model
        path = Path(str(onnx.__file__)).parent.parent / test.url
        model = onnx.load(path)
        data_sets = [light_data(model, path)]
    else:
        folder = Path(str(test.model_dir))
        model = onnx.load(folder / "model.onnx")
        data_sets = [
            (
                read_all(data, "input", [value.type for value in model.graph.input]),
                read_all(data, "output", [value.type for value in model.graph.output]),
            )
            for data in sorted(folder.glob("test_data_set*"))
        ]
    return Case(
        test.name,
        kind,
        model.SerializeToString(),
        data_sets,
        test.rtol,
        test.atol,
        form_of(model),
        draws(model.graph.node, {(f.domain, f.name): f for f in model.functions}),
    )


def form_of(model: Any) -> str:
    """Return the model's input and output form, one of FORMS; strings take precedence over
    sequences.
    """
    found = set()
    for value in (*model.graph.input, *model.graph.output):
        kind, stated = value.type, value.type.WhichOneof("value")
        while stated in ("sequence_type", "optional_type"):
            found.add(FORMS[1])
            kind = getattr(kind, stated).elem_type
            stated = kind.WhichOneof("value")
        if stated == "tensor_type" and kind.tensor_type.elem_type == STRING:
            found.add(FORMS[2])
    return next((f for f in (FORMS[2], FORMS[1]) if f in found), FORMS[0])


def draws(nodes: Any, functions: dict[tuple[str, str], Any]) -> bool:
    """Return whether one of these nodes draws random numbers, in subgraphs and functions too."""
    for node in nodes:
        if node.op_type in RANDOM:
            return True
        inner = [a.g.node for a in node.attribute if a.HasField("g")]
        function = functions.get((node.domain, node.op_type))
        if function is not None:
            inner.append(function.node)
        if any(draws(body, functions) for body in inner):
            return True
    return False


def plain(item: Any) -> Any:
    """Convert an item of a data set to arrays; the suite's type hints hide that some are
    TensorProtos.
    """
    import onnx  # onnx takes long to load

    if isinstance(item, onnx.TensorProto):
        return onnx.numpy_helper.to_array(item)
    return item


def light_data(model: Any, path: Path) -> tuple[list[Any], list[Any]]:
    """Return the inputs that the suite's runner makes for a light model, and the stored outputs."""
    from onnx.backend.test.runner import Runner  # onnx takes long to load

    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [
        Runner.generate_dummy_data(value, name=path.name)
        for value in model.graph.input
        if value.name not in weights
    ]
    outputs = [
        read_one(Path(f"{path.with_suffix('')}_output_{number}.pb"), value.type)
        for number, value in enumerate(model.graph.output)
    ]
    return inputs, outputs


def read_all(folder: Path, kind: str, types: list[Any]) -> list[Any]:
    """Read all stored inputs or outputs of a data set; `kind` is "input" or "output"."""
    count = len(glob.glob(str(folder / f"{kind}_*.pb")))
    return [read_one(folder / f"{kind}_{i}.pb", types[i]) for i in range(count)]


def read_one(path: Path, kind: Any) -> Any:
    """Read one stored value: a tensor, sequence or optional, as its declared type says."""
    import onnx  # onnx takes long to load

    content = path.read_bytes()
    if kind.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind.HasField("optional_type"):
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(content))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    print(collect(target))
