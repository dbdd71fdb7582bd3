"""onnxruntime's calibration tables: ranges of a model's tensors, read and written.

Such a table has the tensors' names in the ONNX file, which a program does not keep. An operand is
identified by its producing node, behind views, which must be the node of that tensor.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic, read_bytes
from mgx_mlir.frontends.onnx.graph import label
from mgx_mlir.frontends.onnx.load import load_file
from mgx_mlir.quantization.ranges import Range
from mgx_mlir.quantization.scales import KnownRanges, makers
from mgx_mlir.quantization.sites import Place, Site

# nodes whose result has the elements of their first input
_VIEWS = ("Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Dropout")
_ARRAY = "numpy.array"
_TEXT = ".cache"


@dataclass
class CalibrationTable:
    """The range of each tensor by its name in the model."""

    ranges: dict[str, Range] = field(default_factory=dict)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> CalibrationTable:
        """Read a table: JSON of onnxruntime's, or a `.cache` of names and largest magnitudes.

        Errors: FileError, also for ranges that are no numbers.
        """
        name = os.fspath(path)
        data = bytes(read_bytes(name))
        try:
            text = data.decode()
            if name.endswith(_TEXT):
                return CalibrationTable(dict(_lines(text, name)))
            value: Any = json.loads(text)
        except (ValueError, RecursionError) as e:
            raise FileError(
                f"not a calibration table: {str(e).lower()}", location=name,
                notes=["calibration.json and calibration.cache are supported, .flatbuffers is not"],
            ) from None  # fmt: skip
        if isinstance(value, dict) and value.get("CLS") == "TensorsData":
            value = value.get("data")
        if not isinstance(value, dict):
            raise FileError("not a calibration table: expected an object", location=name)
        found = {str(k): _range(v, str(k), name) for k, v in value.items() if k != "CLS"}
        return CalibrationTable({k: r for k, r in found.items() if r is not None})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table, as text where the name ends in .cache. Errors: FileError."""
        name = os.fspath(path)
        if name.endswith(_TEXT):
            pairs = ((k, max(abs(low), abs(high))) for k, (low, high) in self.ranges.items())
            text = "".join(f"{k} {v}\n" for k, v in sorted(pairs))
        else:
            method = {"CLS": "CalibrationMethod", "value": "CalibrationMethod.MinMax"}
            data = {k: _entry(r) for k, r in self.ranges.items()}
            table = {"CLS": "TensorsData", "data": data, "calibration_method": method}
            text = json.dumps(table, indent=1, allow_nan=False)
        try:
            with atomic(name) as f:
                f.write(text.encode())
        except OSError as e:
            raise FileError(f"cannot write '{name}': {e.strerror}") from None

    @staticmethod
    def of(known: KnownRanges, model: str | os.PathLike[str]) -> CalibrationTable:
        """Convert the ranges of a calibration to an ONNX file's tensors."""
        tensors, found = ModelTensors.of(model), CalibrationTable()
        for site, each in known.ranges.items():
            makers_of_site = known.makers.get(site, [])
            names = tensors.names(site, makers_of_site)
            for name, own in zip(names, each, strict=False):
                if name is not None and own is not None:
                    found.ranges[name] = own
        return found

    def for_model(self, model: str | os.PathLike[str]) -> KnownRanges:
        """Return the ranges for an ONNX file's dots and convolutions. Errors: those of reading the
        file.
        """
        return _TableRanges(table=self, tensors=ModelTensors.of(model))


@dataclass(frozen=True)
class ModelTensors:
    """Tensors that each node of an ONNX file reads and computes, with their producers.

    By node: for each computed input the tensor and those that it is a view of, each with its
    producing node, "" for the model's inputs.
    """

    inputs: Mapping[str, Sequence[Sequence[tuple[str, str]]]]

    @staticmethod
    def of(path: str | os.PathLike[str]) -> ModelTensors:
        """Read the graph of an ONNX file. Errors: FileError, ModelError."""
        with load_file(path) as model:
            graph = model.proto.graph
            constant = {t.name for t in graph.initializer}
            constant |= {t.values.name for t in graph.sparse_initializer}
            constant |= {o for n in graph.node if n.op_type == "Constant" for o in n.output}
            nodes = {label(n, i): n for i, n in enumerate(graph.node)}
            made = {o: name for name, n in nodes.items() for o in n.output if o}

            def chain(tensor: str) -> Iterator[tuple[str, str]]:
                seen: set[str] = set()
                while tensor and tensor not in seen:
                    seen.add(tensor)
                    maker = made.get(tensor, "")
                    yield tensor, maker
                    node: onnx.NodeProto | None = nodes.get(maker)
                    if node is None or node.op_type not in _VIEWS:
                        return
                    tensor = node.input[0]

            return ModelTensors(
                {
                    name: [list(chain(x)) for x in n.input if x and x not in constant]
                    for name, n in nodes.items()
                }
            )

    def names(self, site: str, makers: Sequence[str]) -> list[str | None]:
        """Return the tensor of each computed operand, None if it is uncertain.

        makers: source nodes of the operands, from `scales.makers`.
        """
        read = self.inputs.get(site, self.inputs.get(site.rpartition("#")[0], ()))
        found: list[str | None] = []
        for i, maker in enumerate(makers):
            chain = read[i] if i < len(read) else ()
            found.append(next((tensor for tensor, own in chain if own == maker), None))
        return found


@dataclass
class _TableRanges(KnownRanges):
    """Ranges of a table's tensors, resolved once the ops are known."""

    table: CalibrationTable = field(default_factory=CalibrationTable)
    tensors: ModelTensors = field(default_factory=lambda: ModelTensors({}))

    def by_place(self, sites: Sequence[Site]) -> dict[Place, Range]:
        for site in sites:
            own = makers(site)
            names = self.tensors.names(site.name, own)
            self.makers[site.name] = own
            self.ranges[site.name] = [self.table.ranges.get(n) if n else None for n in names]
        return super().by_place(sites)


def _lines(text: str, path: str) -> Iterator[tuple[str, Range]]:
    for i, line in enumerate(text.splitlines(), 1):
        name, _, number = line.strip().rpartition(" ")
        if not line.strip():
            continue
        try:
            most = float(number)
        except ValueError:
            most = math.nan
        if not name or not math.isfinite(most):
            raise FileError(f"line {i} expected a name and a number", location=path)
        yield name, (-abs(most), abs(most))


def _range(value: Any, key: str, path: str) -> Range | None:
    """Return a tensor's range; None for other kinds of entry."""
    if isinstance(value, dict):
        if "lowest" not in value or "highest" not in value:
            return None
        value = [value["lowest"], value["highest"]]
    if not isinstance(value, list) or len(value) < 2:
        raise FileError(f"'{key}' expected a range", location=path)
    low, high = _numbers(value[0], key, path), _numbers(value[1], key, path)
    if min(low) > max(high):
        raise FileError(f"'{key}' has a range from {min(low)} to {max(high)}", location=path)
    return min(low), max(high)


def _numbers(value: Any, key: str, path: str) -> list[float]:
    """Return the numbers of an array: one for each channel, or none."""
    if isinstance(value, dict) and value.get("CLS") == _ARRAY:
        value = value.get("data")
    each: list[Any] = value if isinstance(value, list) else [value]
    if not each or not all(
        isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in each
    ):
        raise FileError(f"'{key}' expected numbers", location=path)
    return [float(n) for n in each]


def _entry(own: Range) -> dict[str, Any]:
    low, high = ({"data": n, "dtype": "float32", "CLS": _ARRAY} for n in own)
    return {"lowest": low, "highest": high, "CLS": "TensorData"}
