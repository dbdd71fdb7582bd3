"""A program keeps the numbers it was made from, whatever becomes of the buffers they were in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mgx_mlir as mgx
from mgx_mlir.core.literals import WeightStore, own
from tests.process.threads import DIM, model, weights


def test_literals_of_one_buffer_that_is_used_again() -> None:
    p = mgx.program()
    m = p.get_main_module()
    buffer = np.arange(64, dtype=np.float32)
    first = m.add_literal(buffer)
    buffer += 100
    second = m.add_literal(buffer)
    buffer[:] = -1
    m.add_return([m.add_instruction(mgx.op("sub"), [second, first])])
    np.testing.assert_array_equal(np.asarray(p.run({})[0]), 100)


@pytest.mark.parametrize("how", ["view", "frozen", "fortran", "argument"])
def test_a_literal_is_a_copy(how: str) -> None:
    data = np.arange(6 * 7, dtype=np.float32).reshape(6, 7)
    handed = {"view": data[:], "frozen": data[:], "fortran": np.asfortranarray(data),
              "argument": mgx.argument(data)}[how]  # fmt: skip
    if how == "frozen":
        handed.flags.writeable = False  # a holder of `data` can still write
    p = mgx.program()
    m = p.get_main_module()
    m.add_return([m.add_instruction(mgx.op("neg"), [m.add_literal(handed)])])
    wanted = -data.copy()
    data[:] = 0
    if isinstance(handed, np.ndarray) and how != "frozen":
        handed[:] = 0
    np.testing.assert_array_equal(np.asarray(p.run({})[0]), wanted)


def test_what_nobody_writes_to_is_not_copied() -> None:
    store = WeightStore()
    array = own(np.arange(100, dtype=np.float32)[10:])
    assert np.shares_memory(store.get(store.add(array)), array)
    assert np.shares_memory(store.get(store.add(array.reshape(9, 10))), array)
    raw = np.frombuffer(bytes(400), np.float32)
    assert np.shares_memory(store.get(store.add(raw)), raw)
    with pytest.raises(ValueError, match="read-only"):
        store.get(store.add(np.ones(50)))[0] = 2


def checked(p: mgx.program) -> None:
    x = np.ones((4, DIM), np.float32)
    b = np.maximum(x @ weights(3), 0)
    found = np.asarray(p.run({"x": x})[0])
    np.testing.assert_allclose(found, b + b.mean(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", [bytearray, lambda b: memoryview(bytearray(b))])
def test_a_file_in_a_buffer_that_is_overwritten(kind: type[bytearray], compiled: bool) -> None:
    p = mgx.parse_onnx_buffer(model(3))
    if compiled:
        p.compile("cpu")
    buffer = kind(mgx.save_buffer(p))
    found = mgx.load_buffer(buffer)
    buffer[:] = bytes(len(buffer))
    checked(found)


def test_onnx_in_a_buffer_that_is_overwritten() -> None:
    buffer = bytearray(model(3))
    p = mgx.parse_onnx_buffer(buffer)
    buffer[:] = bytes(len(buffer))
    checked(p)


def test_a_file_that_is_overwritten_after_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "m.mxr"
    p = mgx.parse_onnx_buffer(model(3))
    p.compile("cpu")
    mgx.save(p, path)
    found = mgx.load(path)
    with open(path, "r+b") as f:  # in place: a mapping would see it
        f.write(bytes(path.stat().st_size))
    checked(found)
