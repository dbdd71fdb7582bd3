"""Per-dispatch times: every dispatch is there, and the sums fit the wall clock."""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.core.errors import RunError
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.runtime.profile import profile
from tests.runtime.conftest import Compile
from tests.targets.modules import add, matmul_softmax


def test_every_dispatch_is_timed(build: Compile) -> None:
    made = build(matmul_softmax(256))
    rng = np.random.default_rng(0)
    a, w = (rng.standard_normal((256, 256)).astype(np.float32) for _ in range(2))
    found = profile(made.vmfb, {"w": w}, [a], calls=20)
    names = {d.name for d in found.dispatches}
    assert set(made.dispatches["main"]) <= names
    launches = {d.name: d.launches for d in found.dispatches}
    assert all(launches[n] == 1 for n in made.dispatches["main"])
    assert list(found.dispatches) == sorted(found.dispatches, key=lambda d: -d.seconds)
    # on one thread the dispatches are inside the call, and most of it
    assert 0.2 * found.wall < found.total < 1.1 * found.wall
    module = LoadedModule(made.vmfb, {"w": w}, threads=1)
    best = 1e9
    for _ in range(20):
        start = time.perf_counter()
        module.run([a])
        best = min(best, time.perf_counter() - start)
    assert best / 5 < found.wall < best * 50  # the same order: other load may be on the machine


def test_threads_and_types(build: Compile) -> None:
    text = add(4096).replace("f32", "bf16")
    made = build(text)
    x = np.ones(4096, ml_dtypes.bfloat16)
    assert profile(made.vmfb, {}, [x], threads=2, calls=5).threads == 2


def test_wrong_inputs_are_a_clean_error(build: Compile) -> None:
    with pytest.raises(RunError, match="the profile failed"):
        profile(build(add(32)).vmfb, {}, [np.zeros(7, np.float32)], calls=2)
