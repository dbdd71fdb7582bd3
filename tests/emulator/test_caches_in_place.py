"""Caches in a GPU's memory that are updated where they are, on emulated GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.errors import MgxError
from tests.runtime.test_caches_in_place import (
    BATCH,
    CACHES,
    ROWS,
    compare,
    empty_caches,
    is_cache,
    model,
    step,
)  # fmt: skip
from tests.support.oracle import ort_session

pytestmark = pytest.mark.emulator
ORDER = [f"{kind}{i}" for i in range(len(CACHES)) for kind in ("y", "nk", "nv")]


def compiled(rows: int | str, arch: str) -> migraphx.program:
    dim = migraphx.shape.dynamic_dimension(1, 64)
    made = migraphx.parse_onnx_buffer(model(rows), default_dyn_dim_value=dim)
    made.compile(migraphx.get_target("gpu"), offload_copy=False, arch=arch, emulate=True)
    return made


def to_gpu(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: migraphx.to_gpu(a, emulate=True) for name, a in arrays.items()}


def buffers(caches: dict[str, Any], *names: str) -> dict[str, Any]:
    """The caches of these results as their memory; all of them by default."""
    chosen = names or tuple(n for n in ORDER if is_cache(n))
    return {f"main:#output_{ORDER.index(n)}": caches[n.replace("n", "p", 1)] for n in chosen}


def on_host(found: list[Any]) -> dict[str, np.ndarray]:
    return {n: np.asarray(migraphx.from_gpu(a)) for n, a in zip(ORDER, found, strict=True)}


@pytest.mark.parametrize(("arch", "rows"), [("gfx942", "rows"), ("gfx1201", ROWS)])
def test_steps_write_their_rows_alone(arch: str, rows: int | str, library: Path) -> None:
    """Three steps: onnxruntime's results; results are the memory of the caches."""
    program, peer = compiled(rows, arch), ort_session(model("rows"))
    rng, lengths = np.random.default_rng(1), np.array([3, 5])
    theirs = {
        name: (rng.standard_normal(a.shape) * 40 + 60).astype(a.dtype)
        for name, a in empty_caches().items()
    }
    caches = to_gpu(theirs)
    for _ in range(3):
        new = step(rng, lengths)
        want = dict(zip(ORDER, peer.run(None, {**new, **theirs}), strict=True))
        before = {n: np.asarray(migraphx.from_gpu(a)) for n, a in caches.items()}
        plain = on_host(program.run({**to_gpu(new), **caches}))
        for name, a in caches.items():  # without buffers
            assert np.array_equal(before[name], np.asarray(migraphx.from_gpu(a)))
        found = program.run({**to_gpu(new), **caches, **buffers(caches)})
        for name, arg in zip(ORDER, found, strict=True):
            if is_cache(name):
                assert arg.data_ptr() == caches[name.replace("n", "p", 1)].data_ptr()
        for name, got in on_host(found).items():
            compare(name, got, want[name], lengths)
            compare(name, plain[name], want[name], lengths)
        for name, cache in caches.items():
            array = np.asarray(migraphx.from_gpu(cache))
            for entry, row in enumerate(lengths):
                others = np.arange(ROWS) != row
                assert np.array_equal(array[entry][:, others], before[name][entry][:, others])
                theirs[name][entry][:, row] = array[entry][:, row]
        lengths += 1


def test_memory_that_is_not_all_theirs(library: Path) -> None:
    """One cache of six, and keys and values in one memory: results are copied, as without caches
    in place.
    """
    program = compiled("rows", "gfx942")
    new = to_gpu(step(np.random.default_rng(2), np.array([4, 4])))
    caches = to_gpu(empty_caches())
    want = on_host(program.run({**new, **caches}))
    found = on_host(program.run({**new, **caches, **buffers(caches, "nk0")}))
    for name, got in found.items():
        np.testing.assert_allclose(got, want[name], rtol=1e-5, atol=1e-6)
    assert not np.asarray(migraphx.from_gpu(caches["pk1"])).any()
    caches = to_gpu(empty_caches())
    caches["pv0"] = caches["pk0"]
    given = buffers(caches, *(n for n in ORDER if is_cache(n) and n != "nv0"))
    found = on_host(program.run({**new, **caches, **given}))
    for name, got in found.items():
        np.testing.assert_allclose(got, want[name], rtol=1e-5, atol=1e-6)


def test_a_cache_that_is_too_small_is_refused(library: Path) -> None:
    program, caches = compiled("rows", "gfx942"), to_gpu(empty_caches())
    new = to_gpu(step(np.random.default_rng(4), np.array([ROWS, ROWS])))
    with pytest.raises(MgxError, match="in whose memory the new rows fit"):
        program.run({**new, **caches, **buffers(caches)})
    found = on_host(program.run({**new, **caches}))
    assert found["nk0"].shape == (BATCH, 2, ROWS + 1, 16)
