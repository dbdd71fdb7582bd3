"""A compiled model against onnxruntime: one program, several calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import mgx_mlir
from tests.support.oracle import ort_session

Arrays = Mapping[str, np.ndarray]


def agrees(
    data: bytes,
    calls: Iterable[Arrays],
    target: str = "cpu",
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    scaled: bool = False,
    **options: Any,
) -> mgx_mlir.CompiledProgram:
    """Compile once, run every call, and return the program.

    Types and dims are those of onnxruntime, values within rtol of them and atol; scaled: atol is
    in parts of the largest value.
    """
    program = mgx_mlir.compile(data, target, cache=False, **options)
    compare(program, ort_session(data), calls, rtol=rtol, atol=atol, scaled=scaled)
    return program


def compare(
    program: Any,
    oracle: Any,
    calls: Iterable[Arrays],
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    scaled: bool = False,
) -> None:
    """Run every call of a compiled program and of an onnxruntime session; limits as in `agrees`."""
    names = [output.name for output in oracle.get_outputs()]
    for call in calls:
        dims = {name: a.shape for name, a in call.items()}
        wants = oracle.run(None, dict(call))
        for name, got, want in zip(names, program.run(dict(call)), wants, strict=True):
            a = np.asarray(got)
            assert (a.dtype, a.shape) == (want.dtype, want.shape), f"{name} of {dims}"
            limit = atol * float(np.abs(want).max(initial=0)) if scaled else atol
            np.testing.assert_allclose(a, want, rtol, limit, err_msg=f"{name} of {dims}")
