"""Weights in large pages: placed as they are, one behind the other, and gone with the last."""

from __future__ import annotations

import gc
import mmap
import re
import weakref
from pathlib import Path

import numpy as np

import mgx_mlir as migraphx
from mgx_mlir.core.files import read_with_status
from mgx_mlir.core.huge_pages import PAGE, HugePages, huge_empty, release_pages


def test_arrays_are_copied_behind_each_other() -> None:
    pages, r = HugePages(), np.random.default_rng(0)
    arrays = [r.integers(0, 99, n).astype(np.int32) for n in (20_000, 16_391, 500_000, 9_000_000)]
    placed = [pages.placed(a) for a in arrays]
    for a, b in zip(arrays, placed, strict=True):
        np.testing.assert_array_equal(a, b)
        assert b.dtype == a.dtype
        assert b.ctypes.data % 64 == 0
    first, second, _, large = (b.ctypes.data for b in placed)
    assert second - first == arrays[0].nbytes  # a multiple of 64
    assert first % PAGE == large % PAGE == 0
    placed[0][:] = -1
    np.testing.assert_array_equal(placed[1], arrays[1])
    small = np.arange(9.0)
    copy = pages.placed(small)
    np.testing.assert_array_equal(copy, small)
    assert not np.shares_memory(copy, small)


def test_memory_goes_with_the_last_array() -> None:
    pages = HugePages()
    array = pages.placed(np.ones(100_000, np.float32))
    memory = array
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    gone = weakref.ref(memory)
    del pages, memory
    gc.collect()
    assert gone() is not None
    del array
    gc.collect()
    assert gone() is None


def _resident(path: Path) -> int:
    """KB of a file that are mapped here, and resident."""
    text = Path("/proc/self/smaps").read_text()
    return sum(
        int(n) for n in re.findall(rf"{re.escape(str(path))}\n.*\n.*\n.*\nRss:\s+(\d+)", text)
    )


def test_pages_of_a_mapped_file_are_given_back(tmp_path: Path) -> None:
    data = np.random.default_rng(1).integers(0, 99, 1 << 20, np.int32)
    path = tmp_path / "bytes"
    path.write_bytes(data.tobytes())
    with path.open("rb") as f:
        whole = np.frombuffer(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    part = whole[64:].view(np.int32).reshape(-1, 16)
    assert part.sum() == data[16:].sum()
    before = _resident(path)
    release_pages(part)
    after = _resident(path)
    np.testing.assert_array_equal(part.reshape(-1), data[16:])
    assert before >= 4 << 10
    assert after < 1 << 10
    release_pages(data)  # no file has it


def test_a_file_is_read_to_large_pages(tmp_path: Path) -> None:
    data = np.random.default_rng(1).integers(0, 256, 5 << 20, np.uint8)
    path = tmp_path / "bytes"
    path.write_bytes(data.tobytes())
    for huge_pages in (True, False):
        view, _ = read_with_status(path, mapped=True, huge_pages=huge_pages)
        np.testing.assert_array_equal(np.frombuffer(view, np.uint8), data)
    assert huge_empty(3 * PAGE).nbytes == 3 * PAGE


def test_a_loaded_program_computes_the_same(tmp_path: Path) -> None:
    w = np.random.default_rng(2).standard_normal((1024, 1100), np.float32)
    program = migraphx.program()
    main = program.get_main_module()
    x = main.add_parameter("x", migraphx.shape(type="float_type", lens=[1, 1024]))
    literal = main.add_literal(w)
    main.add_return([main.add_instruction(migraphx.op("dot"), [x, literal])])
    program.compile(migraphx.get_target("cpu"))
    path = tmp_path / "model.mxr"
    migraphx.save(program, path)
    feed = {"x": np.random.default_rng(3).standard_normal((1, 1024), np.float32)}
    found = [np.asarray(migraphx.load(path, huge_pages=h).run(feed)[0]) for h in (False, True)]
    np.testing.assert_array_equal(found[0], found[1])
    want = feed["x"].astype(np.float64) @ w
    assert np.abs(found[0] - want).max() <= 3e-6 * np.abs(want).max()  # sums of 1024 in f32
