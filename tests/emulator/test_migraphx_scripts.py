"""MIGraphX's zero-copy scripts on device memory: tests/api/test_migraphx_scripts.py, emulated."""

from __future__ import annotations

import pytest

import mgx_mlir
from tests.api.test_migraphx_scripts import (
    Machine,
    Memory,
    Migraphx,
    test_flux,  # noqa: F401
    test_rnnt,  # noqa: F401
    test_stable_diffusion,  # noqa: F401
    test_torch_migraphx,  # noqa: F401
)


@pytest.fixture(scope="module")
def machine(gpu_arch: str) -> Machine:
    gpu = mgx_mlir.get_target("gpu", arch=gpu_arch, emulate=True)
    return Migraphx(lambda: gpu, emulate=True), Memory(True)
