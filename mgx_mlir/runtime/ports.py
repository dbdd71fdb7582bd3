"""Inputs and outputs of a compiled module: their types, and the check of an array."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError, RunError
from mgx_mlir.runtime.device_memory import element_type

_TENSOR = re.compile(r"tensor<((?:[0-9?]+x)*)([A-Za-z][A-Za-z0-9]*)>")


class Spec(Protocol):
    """An input or output: `dtype` is a MIGraphX name, -1 in `dims` is dynamic."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def dims(self) -> tuple[int, ...]: ...


class Port:
    """One input or output as the module declares it, with the signedness of its spec."""

    def __init__(self, role: str, index: int, dims: str, wire: str, spec: Spec | None) -> None:
        self.label = f"{role} '{spec.name}'" if spec else f"{role} {index}"
        self.dims = tuple(-1 if d == "?" else int(d) for d in dims.split("x")[:-1])
        try:
            self.element_type = element_type(wire)
        except KeyError:
            raise FileError(f"{self.label} has the unknown element type {wire}") from None
        self.dtype = dtypes.from_name(spec.dtype if spec else wire)
        self.np = self.dtype.np
        self.itemsize = self.np.itemsize
        # types that the mapping can be read as directly; 8- and 16-bit floats are read as integers
        plain = dtypes.is_numpys(self.np) and not self.dtype.is_bool
        self.raw = self.np if plain else np.dtype(f"u{self.itemsize}")
        self.as_is = self.raw == self.np
        self.static = None if -1 in self.dims else self.dims
        self.size = math.prod(self.dims) * self.itemsize if self.static is not None else -1
        signless = self.dtype.mlir.removeprefix("u")
        if signless != wire or (
            spec and tuple(spec.dims) != self.dims and not self.compatible(spec)
        ):
            raise FileError(
                f"{self.label} is {wire}{list(self.dims)} in the module, but the program says "
                f"{self.dtype}{list(spec.dims) if spec else ''}"
            )

    def compatible(self, spec: Spec) -> bool:
        """Return whether the spec's dims can be the module's: a dynamic one fits any."""
        return len(spec.dims) == len(self.dims) and all(
            a == b or -1 in (a, b) for a, b in zip(spec.dims, self.dims, strict=True)
        )

    def check(self, a: np.ndarray) -> None:
        """Raise RunError for an array that does not fit."""
        if a.shape == self.static and a.dtype == self.np:
            return
        if a.dtype != self.np:
            try:
                got = dtypes.from_numpy(a.dtype).name
            except Exception:
                got = str(a.dtype)
            raise RunError(f"{self.label}: expected {self.dtype.name}, got {got}")
        if len(a.shape) != len(self.dims) or any(
            d >= 0 and d != n for d, n in zip(self.dims, a.shape, strict=True)
        ):
            want = ", ".join("?" if d < 0 else str(d) for d in self.dims)
            got = ", ".join(map(str, a.shape))
            raise RunError(f"{self.label}: expected dimensions {{{want}}}, got {{{got}}}")


def ports_of(
    function: Any, inputs: Sequence[Spec] | None, outputs: Sequence[Spec] | None, where: str | None
) -> tuple[list[Port], list[Port]]:
    """Return the inputs and outputs that a function of a module declares. Errors: FileError."""
    text = function.reflection.get("iree.abi.declaration", "")
    left, arrow, right = text.partition(" -> ")
    if not text:
        raise FileError("the module does not declare its signature", location=where)
    ports: list[list[Port]] = []
    for role, part, specs in (("input", left, inputs), ("output", right, outputs)):
        found = _TENSOR.findall(part) if arrow or role == "input" else []
        if specs is not None and len(specs) != len(found):
            raise FileError(
                f"the module has {len(found)} {role}s, the program {len(specs)}", location=where
            )
        ports.append(
            [
                Port(role, i, dims, wire, specs[i] if specs else None)
                for i, (dims, wire) in enumerate(found)
            ]
        )
    return ports[0], ports[1]
