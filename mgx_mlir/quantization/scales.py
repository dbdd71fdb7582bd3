"""Ranges of activations by op, from a calibration or a JSON file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic, read_bytes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import ViewOp, is_a
from mgx_mlir.quantization.calibrate import Calibration
from mgx_mlir.quantization.ranges import Range
from mgx_mlir.quantization.sites import Place, Site, op_name

_FORMAT = "mgx_mlir ranges"
_VERSION = 1


@dataclass
class KnownRanges:
    """Ranges of the computed operands of dots and convolutions, by op name."""

    # op name -> range of each computed operand; None: unknown
    ranges: dict[str, list[Range | None]] = field(default_factory=dict)
    # op name -> source nodes of these operands, where a calibration found the ranges; not saved
    makers: dict[str, list[str]] = field(default_factory=dict)

    @staticmethod
    def of(sites: Sequence[Site], seen: Calibration, method: str, percentile: float) -> KnownRanges:
        """Choose ranges by a calibration's statistics."""
        chosen = {p: o.range(method, percentile) for p, o in seen.observers.items()}
        return KnownRanges(
            {s.name: [chosen.get(p) for p in s.values] for s in sites},
            {s.name: makers(s) for s in sites},
        )

    def by_place(self, sites: Sequence[Site]) -> dict[Place, Range]:
        """Return the known ranges of these ops' operands."""
        found: dict[Place, Range] = {}
        for site in sites:
            for place, known in zip(site.values, self.ranges.get(site.name, []), strict=False):
                if known is not None:
                    found[place] = known
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranges as JSON. Errors: FileError."""
        name = os.fspath(path)
        value: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, "ranges": self.ranges}
        try:
            with atomic(name) as f:
                f.write(json.dumps(value, indent=1, allow_nan=False).encode())
        except OSError as e:
            raise FileError(f"cannot write '{name}': {e.strerror}") from None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> KnownRanges:
        """Read what `save` wrote. Errors: FileError, also for ranges that are no numbers."""
        name = os.fspath(path)
        try:
            value: Any = json.loads(bytes(read_bytes(name)))
        except (ValueError, RecursionError) as e:
            raise FileError(f"not a file of ranges: {str(e).lower()}", location=name) from None
        if not isinstance(value, dict) or value.get("format") != _FORMAT:
            raise FileError("not a file of ranges", location=name,
                            notes=["mgx-driver quantize --save-ranges writes one"])  # fmt: skip
        if value.get("version") != _VERSION:
            raise FileError(f"expected version {_VERSION}, got {value.get('version')}",
                            location=name)  # fmt: skip
        found: dict[str, list[Range | None]] = {}
        given = value.get("ranges")
        if not isinstance(given, dict):
            raise FileError("'ranges' expected an object", location=name)
        for key, each in given.items():
            if not isinstance(each, list):
                raise FileError(f"'{key}' expected a list of ranges", location=name)
            found[str(key)] = [_range(r, str(key), name) for r in each]
        return KnownRanges(found)


def is_ranges(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins like one of `KnownRanges.save`. Errors: FileError."""
    return _FORMAT.encode() in bytes(read_bytes(os.fspath(path))[:200])


def makers(site: Site) -> list[str]:
    """Return the source node of each computed operand, behind views; "" for an argument of the
    program.
    """
    found: list[str] = []
    for value in site.op.operands[: len(site.values)]:
        while not isinstance(value.owner, ir.Block) and is_a(value.owner, ViewOp):
            value = value.owner.operation.operands[0]
        found.append("" if isinstance(value.owner, ir.Block) else op_name(value.owner.operation))
    return found


def _range(value: object, key: str, path: str) -> Range | None:
    if value is None:
        return None
    numbers = list(value) if isinstance(value, list) else []
    if len(numbers) != 2 or not all(
        isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in numbers
    ):
        raise FileError(f"'{key}' expected pairs of numbers", location=path)
    low, high = float(numbers[0]), float(numbers[1])
    if low > high:
        raise FileError(f"'{key}' has a range from {low} to {high}", location=path)
    return low, high
