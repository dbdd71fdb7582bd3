"""A program without computation: the same inputs and outputs, so that a call is pure overhead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.programs.lowered import IOSpec, Lowered
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets.base import BackendOptions, CpuTarget


class DryRun:
    """Takes arrays like a program, and returns arrays of the same types without values.

    `outputs` are example outputs of the program. Errors: those of IREE and the runtime.
    """

    def __init__(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], threads: int
    ) -> None:
        made = CpuTarget(threads=threads).compile_lowered(
            Lowered(_text(inputs, outputs).encode()), BackendOptions()
        )
        self.launches = made.kernels
        self._loaded = LoadedModule(
            made.vmfb, threads=threads, inputs=_specs(inputs), outputs=_specs(outputs)
        )

    def execute(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Call the function once."""
        return self._loaded.run(arrays)


def _specs(arrays: Sequence[np.ndarray]) -> list[IOSpec]:
    """Return names, and the signedness that modules do not hold."""
    return [IOSpec(f"#{i}", dtypes.from_numpy(a.dtype).name, a.shape) for i, a in enumerate(arrays)]


def _text(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> str:
    arguments = ", ".join(f"%a{i}: {_type(a)}" for i, a in enumerate(inputs))
    kinds = [_type(a) for a in outputs]
    body = [f"  %e{i} = tensor.empty() : {kind}" for i, kind in enumerate(kinds)]
    given = ", ".join(f"%e{i}" for i in range(len(kinds)))
    body.append(f"  return {given} : {', '.join(kinds)}" if kinds else "  return")
    lines = "\n".join(body)
    return f"func.func @main({arguments}) -> ({', '.join(kinds)}) {{\n{lines}\n}}\n"


def _type(a: np.ndarray) -> str:
    kind = dtypes.from_numpy(a.dtype).mlir.removeprefix("u")
    return f"tensor<{''.join(f'{d}x' for d in a.shape)}{kind}>"
