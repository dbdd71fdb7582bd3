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
    **options: Any,
) -> mgx_mlir.CompiledProgram:
    """Compile once, run every call, and return the program.

    Types and dims are those of onnxruntime, values within rtol of them and atol.
    """
    oracle = ort_session(data)
    program = mgx_mlir.compile(data, target, cache=False, **options)
    for call in calls:
        dims = {name: a.shape for name, a in call.items()}
        wants = oracle.run(None, dict(call))
        for name, got, want in zip(program.output_names, program.run(call), wants, strict=True):
            a = np.asarray(got)
            assert (a.dtype, a.shape) == (want.dtype, want.shape), f"{name} of {dims}"
            np.testing.assert_allclose(a, want, rtol, atol, err_msg=f"{name} of {dims}")
    return program
