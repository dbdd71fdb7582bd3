"""Result of the lowering for a target: MLIR bytecode, its parameters, and its signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mgx_mlir.core.shapes import DYN, TensorType

IN_PLACE = "main_in_place"  # function beside @main that updates KV caches in their own memory


def in_place_name(function: str) -> str:
    """Return the name of the function that does what @main or a variant does, in place."""
    return IN_PLACE + function.removeprefix("main")


def is_in_place(function: str) -> bool:
    """Return whether a function updates KV caches in their own memory."""
    return function.startswith(IN_PLACE)


@dataclass(frozen=True)
class IOSpec:
    """An input or output: `dtype` is a MIGraphX name such as "float_type"; -1 is a dynamic dim."""

    name: str
    dtype: str
    dims: tuple[int, ...]

    @classmethod
    def of(cls, name: str, t: TensorType) -> IOSpec:
        """Return the spec of a tensor type."""
        return cls(name, t.dtype.name, tuple(-1 if d == DYN else d for d in t.dims))

    @property
    def is_static(self) -> bool:
        """Return whether all dims are known."""
        return all(d >= 0 for d in self.dims)


@dataclass(frozen=True)
class KernelInfo:
    """A kernel of the program: its printed name, the ops it fuses, its source location."""

    name: str
    ops: tuple[str, ...] = ()
    location: str = ""


@dataclass
class KernelChoice:
    """The rule that lowers a kernel or an op, and the rules that refused before it."""

    name: str = ""  # name of the kernel or op, as in KernelInfo
    location: str = ""  # source location of the kernel or op, as in KernelInfo
    rule: str = "linalg"  # kernel rule that took it; `linalg` if none did
    # rules tried before, in order: (rule, reason of refusal)
    refusals: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    part: str = ""  # matmul inside of the kernel; empty for the whole kernel


@dataclass
class Lowered:
    """A program lowered to linalg on tensors, entry `@main`, ready for IREE.

    `bytecode` is an MLIR module (bytecode or text) whose weights are
    `ml_program.global private @w(#flow.parameter.named<"model"::"w">)`; `params` holds their
    values by key. Element types are signless in the module; `inputs` and `outputs` say the sign.
    The address of an input that is read in place is a multiple of `input_alignment`.
    """

    bytecode: bytes
    params: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    inputs: list[IOSpec] = field(default_factory=list[IOSpec])
    outputs: list[IOSpec] = field(default_factory=list[IOSpec])
    kernels: list[KernelInfo] = field(default_factory=list[KernelInfo])
    choices: list[KernelChoice] = field(default_factory=list[KernelChoice])
    input_alignment: int = 64
    left_out: bool = False  # kernels that are compiled separately are not in `bytecode`

    def signature(self) -> dict[str, Any]:
        """Return the inputs, outputs and kernels as plain JSON values."""
        return {
            "inputs": [asdict(s) for s in self.inputs],
            "outputs": [asdict(s) for s in self.outputs],
            "kernels": [asdict(k) for k in self.kernels],
        }


def io_specs(rows: Iterable[Mapping[str, Any]]) -> list[IOSpec]:
    """IOSpecs from the JSON form of `Lowered.signature`."""
    return [IOSpec(r["name"], r["dtype"], tuple(r["dims"])) for r in rows]


def kernel_infos(rows: Iterable[Mapping[str, Any]]) -> list[KernelInfo]:
    """KernelInfos from the JSON form of `Lowered.signature`."""
    return [KernelInfo(r["name"], tuple(r["ops"]), r["location"]) for r in rows]
