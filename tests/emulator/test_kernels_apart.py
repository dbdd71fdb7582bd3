"""Kernels that are compiled apart from the functions that launch them, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.targets import apart
from tests.support.models import parsed
from tests.targets.test_apart import inputs, net


def test_results_are_those_of_a_module_that_is_compiled_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several kernels in a library have blocks of different sizes, and other counts of them."""
    monkeypatch.setattr(apart, "SMALL_OF_GPUS", 0)
    found: list[np.ndarray] = []
    for via in ("workers", "binary"):
        made = mgx_mlir.compile(net(layers=2), "gpu", arch="gfx942", emulate=True, cache=False)
        assert isinstance(made, IreeProgram)
        assert (made.executable.via == "workers") == (via == "workers")
        found.append(made.run(inputs())[0])
        monkeypatch.setattr(apart, "compile_apart", lambda *a, **k: None)
    np.testing.assert_array_equal(found[0], found[1])
    [wanted] = mgx_mlir.compile(net(layers=2), "ref").run(inputs())
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_truths_between_kernels_are_bytes(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scatter's kernel reads from another which updates are the last of their elements."""
    monkeypatch.setattr(apart, "SMALL_OF_GPUS", 0)
    rng = np.random.default_rng(1)
    rows, updates = rng.random((8, 3, 64)).argsort(1), rng.random((8, 3, 64), np.float32)
    model = parsed(
        """(float[8,3,64] x) => (float[8,3,64] y) {
        y = ScatterElements <axis = 1> (x, rows, updates) }""",
        {"rows": rows, "updates": updates}, opset=20,
    )  # fmt: skip
    made = mgx_mlir.compile(model.SerializeToString(), "gpu", arch=arch, emulate=True, cache=False)
    assert isinstance(made, IreeProgram)
    assert made.executable.via == "workers"
    wanted = np.zeros((8, 3, 64), np.float32)
    np.put_along_axis(wanted, rows, updates, 1)
    np.testing.assert_array_equal(made.run(x=np.ones_like(wanted))[0], wanted)
