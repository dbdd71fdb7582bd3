"""Checks of run-time sizes in a branch, on a GPU: what fits is right, what does not is an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import mgx_mlir
from mgx_mlir.core.errors import RunError
from tests.sizes.test_branches import checks, choice, named
from tests.targets.test_branch_moves import branches_of_convolutions


def test_a_branch_checks_its_sizes(library: Path, gpu_arch: str) -> None:
    compiled = mgx_mlir.compile(choice(), "gpu", arch=gpu_arch, emulate=True, cache=False)
    checks(named(compiled), 5, 3)


def test_kernels_beside_assertions(library: Path, gpu_arch: str) -> None:
    model = branches_of_convolutions(8).SerializeToString()
    compiled = mgx_mlir.compile(model, "gpu", arch=gpu_arch, emulate=True, cache=False)
    session = ort.InferenceSession(model)
    x = np.random.default_rng(0).standard_normal((2, 2, 9)).astype(np.float32)
    for k in (np.array(True), np.array(False)):
        (got,), (want,) = compiled.run(k=k, x=x), session.run(None, {"k": k, "x": x})
        np.testing.assert_allclose(got, want, atol=2e-5)
    with pytest.raises(RunError, match="If_0/Conv_0"):
        compiled.run(k=np.array(True), x=x[:, :, :0])
