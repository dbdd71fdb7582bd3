"""Kernels apart from their host module: the same program, found kernels, and what goes wrong."""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir import compile as compile_program
from mgx_mlir.compiler.compilation import Compilation
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.targets import apart, background, cache, child, kernel_stream, worker
from mgx_mlir.targets.base import get_target
from mgx_mlir.targets.cache import default_cache
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.targets.diagnostics import CompileFailed, Failure
from mgx_mlir.targets.kernel_libraries import Libraries
from mgx_mlir.targets.worker_pool import Pool, Together
from mgx_mlir.tools.driver.timing import kernel_times
from zoo.made import Graph

LAYERS = 3


@pytest.fixture(autouse=True)
def any_size(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Take small modules apart too, with a cache of the test's own."""
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(apart, "SMALL", 0)
    monkeypatch.setattr(apart, "SMALL_OF_GPUS", 0)
    caplog.set_level(logging.INFO, logger="mgx_mlir.targets")


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of kernels of each library that is compiled."""
    seen: list[int] = []
    request = Libraries.request

    def noted(self: Libraries, group: Any) -> Any:
        seen.append(len(group))
        return request(self, group)

    monkeypatch.setattr(Libraries, "request", noted)
    return seen


def net(batch: int | str = 2, *, layers: int = LAYERS, width: int = 12, head: int = 7) -> bytes:
    """Return a model of equal convolutions, a pooling and a head."""
    g = Graph(3)
    x = g.input("x", [batch, width, 10, 10])
    for _ in range(layers):
        x = g.op("Conv", x, g.weight(width, width, 3, 3), g.vector(width), pads=[1, 1, 1, 1])
        x = g.op("Relu", x)
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    g.output(g.op("Softmax", g.op("MatMul", x, g.weight(width, head))), "y", [batch, head])
    return g.model().SerializeToString()


def compiled(model: bytes, **options: Any) -> IreeProgram:
    made = compile_program(model, "cpu", **options)
    assert isinstance(made, IreeProgram)
    return made


def inputs(batch: int = 2, width: int = 12) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {"x": rng.standard_normal((batch, width, 10, 10)).astype(np.float32)}


@pytest.mark.parametrize("batch", [2, "batch"])
def test_a_program_is_the_same_apart_and_together(
    batch: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compiled(net(batch), cache=False)
    monkeypatch.setattr(apart, "compile_apart", lambda *a, **k: None)
    whole = compiled(net(batch), cache=False)
    assert (made.executable.via, whole.executable.via == "workers") == ("workers", False)
    assert made.executable.dispatches == whole.executable.dispatches
    for n in (2, 3) if batch == "batch" else (2,):
        np.testing.assert_array_equal(made.run(inputs(n))[0], whole.run(inputs(n))[0])


def test_kernels_apart_have_times() -> None:
    """The runtime's counters call them by their names in the library."""
    made = compiled(net(), cache=False)
    assert made.executable.via == "workers"
    measured = kernel_times(made, list(inputs().values()), 2, 1)
    timed = [line for line in measured.lines if line.ms is not None]
    # listed lines are "@7 cpu::copy"; IREE's names have a number, and a part of a split copy
    plain = re.compile(r".*::|^.*dispatch_\d+_|_part\dof\d$")
    names = {plain.sub("", name) for name in made.executable.kernels}
    assert {plain.sub("", line.label) for line in timed} == names
    assert len(names) > 3
    assert all(line.ms for line in timed)


def test_equal_kernels_are_compiled_once(libraries: list[int]) -> None:
    made = compiled(net(), cache=False)
    names = set(made.executable.kernels)
    assert sum(libraries) <= len(names)
    assert len(made.executable.kernels) > LAYERS


def test_kernels_of_another_model_are_found(libraries: list[int]) -> None:
    compiled(net())
    first = sum(libraries)
    libraries.clear()
    deeper = compiled(net(layers=LAYERS + 2))
    assert deeper.executable.via == "workers"
    assert not deeper.executable.cached
    assert (first > 0, libraries) == (True, [])
    fresh = compiled(net(layers=LAYERS + 2), cache=False)
    np.testing.assert_array_equal(deeper.run(inputs())[0], fresh.run(inputs())[0])


def one_op(*ops: str, length: int | str = 7) -> bytes:
    g = Graph(0)
    x, y = g.input("x", [length]), g.input("y", [length])
    for i, op in enumerate(ops):
        g.output(g.op(op, x, y), f"z{i}", [length])
    return g.model().SerializeToString()


def test_libraries_of_kernels_with_one_interface_are_told_apart(libraries: list[int]) -> None:
    """IREE joins executables that differ in names alone."""
    compiled(one_op("Add"))
    compiled(one_op("Sub"))
    libraries.clear()
    both = compiled(one_op("Add", "Sub"))
    assert (both.executable.via, libraries) == ("workers", [])
    x, y = np.arange(7, dtype=np.float32), np.full(7, 2, np.float32)
    added, subtracted = both.run({"x": x, "y": y})
    np.testing.assert_array_equal(added, x + y)
    np.testing.assert_array_equal(subtracted, x - y)


def test_another_head_compiles_its_own_kernels_alone(libraries: list[int]) -> None:
    compiled(net())
    first = sum(libraries)
    libraries.clear()
    compiled(net(head=9))
    assert 0 < sum(libraries) < first


@pytest.mark.parametrize("kind", ["kernel", "library"])
def test_a_damaged_entry_is_compiled_again(kind: Any, libraries: list[int]) -> None:
    compiled(net())
    store = default_cache()
    assert store is not None
    found = [e for e in store.entries() if e.kind == kind]
    assert {e.kind for e in store.entries()} >= {"kernel", "library"}
    for entry in found:
        path = store.path(kind, entry.key)
        data = bytearray(path.read_bytes())
        data[len(data) // 2 if kind == "library" else 60] ^= 0xFF  # in its code, in its header
        path.chmod(0o600)
        path.write_bytes(bytes(data))
    libraries.clear()
    again = compiled(net(layers=LAYERS + 1))
    assert sum(libraries) > 0
    assert np.isfinite(again.run(inputs())[0]).all()


def test_a_full_disk_costs_the_entries_alone(
    libraries: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Kernels may be there whose library is not: they are compiled again."""
    write = cache.write_container

    def full(path: Path, *args: Any, **named: Any) -> None:
        if path.parts[-3] == "library":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, *args, **named)

    monkeypatch.setattr(cache, "write_container", full)
    first = compiled(one_op("Add"))
    assert first.executable.via == "workers"
    assert "No space left" in caplog.text
    store = default_cache()
    assert store is not None
    assert {e.kind for e in store.entries()} >= {"kernel"}
    monkeypatch.setattr(cache, "write_container", write)
    libraries.clear()
    both = compiled(one_op("Add", "Sub"))
    assert sum(libraries) == 2
    x, y = (np.arange(7, dtype=np.float32) for _ in range(2))
    np.testing.assert_array_equal(both.run({"x": x, "y": y})[0], x + y)


def test_compilers_at_once_share_kernels(libraries: list[int]) -> None:
    """Whoever is first writes an entry; others read it, or write the same."""
    ops = [("Add", "Sub"), ("Sub", "Mul"), ("Mul", "Add")]
    with ThreadPoolExecutor(len(ops)) as pool:
        made = list(pool.map(lambda names: compiled(one_op(*names)), ops))
    x, y = np.arange(7, dtype=np.float32), np.full(7, 3, np.float32)
    wanted = {"Add": x + y, "Sub": x - y, "Mul": x * y}
    for names, program in zip(ops, made, strict=True):
        for name, found in zip(names, program.run({"x": x, "y": y}), strict=True):
            np.testing.assert_array_equal(found, wanted[name])
    libraries.clear()
    compiled(one_op("Add", "Sub", "Mul"))
    assert libraries == []


COMPILE = """
import sys
import numpy
from mgx_mlir.compiler.compile import compile
from mgx_mlir.targets import apart

apart.SMALL = 0
made = compile(open(sys.argv[1], "rb").read(), "cpu")
found = made.run({"x": numpy.load(sys.argv[2])})
print(made.executable.via, *found[0].ravel().tolist())
"""


def test_processes_at_once_and_a_killed_one_share_kernels(tmp_path: Path) -> None:
    """Processes that begin together, one of which is killed, leave a cache that is whole."""
    np.save(tmp_path / "x.npy", inputs()["x"])
    begun: list[subprocess.Popen[str]] = []
    for layers in (2, 3, 4, 5):
        model = tmp_path / f"{layers}.onnx"
        model.write_bytes(net(layers=layers))
        command = [sys.executable, "-c", COMPILE, str(model), str(tmp_path / "x.npy")]
        begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    store = default_cache()
    assert store is not None
    while not any(e.kind == "library" for e in store.entries()):
        assert any(p.poll() is None for p in begun)
        time.sleep(0.01)
    begun[-1].kill()
    for process, layers in zip(begun, (2, 3, 4), strict=False):
        via, *values = process.communicate(timeout=300)[0].split()
        assert (process.returncode, via) == (0, "workers")
        wanted = compiled(net(layers=layers), cache=False).run(inputs())[0]
        np.testing.assert_allclose(np.array(values, np.float32), wanted.ravel(), rtol=1e-5)
    begun[-1].communicate()
    made = compiled(net(layers=5))
    assert np.isfinite(made.run(inputs())[0]).all()
    background.settle()  # this process writes its entries behind the compile
    store.evict()  # the killed process may have left the files of its locks
    left = [p for p in (store.root / "locks").glob("*") if p.is_file()]
    assert not left, left


def test_a_killed_worker_leaves_a_compile_as_one_module(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin = Pool.begin

    def killed(self: Any, worker: Any, header: Any, payload: bytes = b"") -> None:
        begin(self, worker, header, payload)
        if header["kind"] == "library":
            os.kill(worker.process.pid, signal.SIGKILL)

    monkeypatch.setattr(Pool, "begin", killed)
    made = compiled(net(), cache=False)
    assert made.executable.via != "workers"
    assert "compiled as one: a worker has ended" in caplog.text
    assert np.isfinite(made.run(inputs())[0]).all()


def test_a_refused_library_leaves_a_compile_as_one_module(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Libraries, "_text", lambda self, group: b"module { func.func }")
    assert compiled(net(), cache=False).executable.via != "workers"
    assert "compiled as one: compile" in caplog.text


@pytest.fixture
def compiler() -> Iterator[IreeCompiler]:
    made = IreeCompiler()
    yield made
    made.close()


def test_a_time_limit_ends_all_workers(compiler: IreeCompiler) -> None:
    lowered: list[bytes] = []
    flags: list[tuple[str, ...]] = []

    def kept(made: Any, source: bytes, given: Any, **_: Any) -> None:
        lowered.append(source)
        flags.append(tuple(given))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apart, "compile_apart", kept)
        compiled(net(), cache=False)
    with pytest.raises(CompileFailed) as caught:
        apart.compile_apart(compiler, lowered[0], flags[0], timeout=0.001)
    assert caught.value.kind == "timeout"
    assert not compiler._apart


def test_a_system_without_processes_is_said_by_the_compile_as_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: str) -> None:
        raise BlockingIOError("no process")

    monkeypatch.setattr(child, "Worker", refused)
    monkeypatch.setattr(child, "_shared", IreeCompiler())
    monkeypatch.setattr(apart, "_SMALL_PROGRAM", 0)
    assert compiled(net(), cache=False).executable.via == "binary"
    assert "started ahead of its work: no process" in caplog.text
    assert "compiled as one: no worker starts: no process" in caplog.text


def test_small_modules_are_compiled_as_one_by_a_worker_that_starts_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "SMALL", 10**9)
    own = IreeCompiler()
    monkeypatch.setattr(child, "_shared", own)
    read, started = Compilation.read, list[int]()

    def noted(self: Any, model: Any) -> Any:
        started.append(len(own._apart))
        return read(self, model)

    monkeypatch.setattr(Compilation, "read", noted)
    try:
        made = compiled(net(), cache=False)
        assert (made.executable.via, started) == ("worker", [1])
        assert compiled(net(), cache=False).executable.vmfb == made.executable.vmfb
        assert np.isfinite(made.run(inputs())[0]).all()
    finally:
        own.close()


def test_a_small_module_that_a_worker_refuses_is_compiled_by_another_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(apart, "SMALL", 10**9)
    ask = Pool.ask
    monkeypatch.setattr(Pool, "ask", lambda s, w, h, p=b"": ask(s, w, h, b"module { func.func }"))
    assert np.isfinite(compiled(net(), cache=False).run(inputs())[0]).all()
    assert "compiled by another process: input" in caplog.text


@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize(
    ("small", "op", "is_asked"),
    [(0, "Mod", True), (10**9, "Mod", False), (10**9, "Add", True)],
    ids=["library", "small module that calls the C library", "small module"],
)
def test_kernels_are_linked_with_what_they_call(
    small: int, op: str, is_asked: bool, is_refused: bool,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    """The remainder of f32 calls the C library. A refused object is compiled in IREE's way."""
    asked = tmp_path / "asked"
    linker = tmp_path / "linker"
    status = "exit 1" if is_refused else "true"
    linker.write_text(
        f'#!/bin/sh\ncase "$*" in *defsym*) touch {asked}; {status};; esac\nexec "$LLD" "$@"\n'
    )
    linker.chmod(0o755)
    monkeypatch.setenv("LLD", str(child.compiler_binary().with_name("iree-lld")))
    monkeypatch.setenv("IREE_LLVM_EMBEDDED_LINKER_PATH", str(linker))
    monkeypatch.setattr(child, "_shared", IreeCompiler())
    monkeypatch.setattr(apart, "SMALL", small)
    g = Graph(4)
    x, y = g.input("x", [40]), g.input("y", [40])
    g.output(g.op(op, x, y, **({"fmod": 1} if op == "Mod" else {})), "z", [40])
    made = compiled(g.model().SerializeToString(), cache=False)
    assert made.executable.via == ("worker" if small else "workers")
    assert asked.exists() == is_asked
    rng = np.random.default_rng(6)
    x, y = (rng.uniform(1, 9, 40).astype(np.float32) for _ in range(2))
    wanted = np.fmod(x, y) if op == "Mod" else x + y
    np.testing.assert_array_equal(made.run({"x": x, "y": y})[0], wanted)
    child.shared_compiler().close()


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[kernel_stream.Stream]:
    """Return the streams of compiles that give each kernel as a batch of its own."""
    seen: list[kernel_stream.Stream] = []
    monkeypatch.setattr(apart, "_SMALL_PROGRAM", 0)
    monkeypatch.setattr(kernel_stream, "BATCH_BYTES", 1)
    run = apart._Compile.run

    def noted(self: Any) -> Any:
        seen.append(self.begun)
        return run(self)

    monkeypatch.setattr(apart._Compile, "run", noted)
    return seen


def test_kernels_compile_while_the_program_is_lowered(
    streams: list[kernel_stream.Stream], libraries: list[int]
) -> None:
    made = compiled(net(), cache=False)
    assert made.executable.via == "workers"
    assert len(streams[0].groups) == len(libraries) > 1, "libraries behind the lowering"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_stream, "BATCH_BYTES", 10**9)
        plain = compiled(net(), cache=False)
    for a, b in zip(made.run(inputs()), plain.run(inputs()), strict=True):
        np.testing.assert_array_equal(a, b)


def test_streams_of_equal_programs_make_equal_modules(
    streams: list[kernel_stream.Stream],
) -> None:
    first, second = (compiled(net(), cache=False) for _ in range(2))
    assert len(streams) == 2
    assert bytes(first.executable.vmfb) == bytes(second.executable.vmfb)


def test_a_stream_finds_kernels_in_the_cache(
    streams: list[kernel_stream.Stream], libraries: list[int]
) -> None:
    compiled(net())
    libraries.clear()
    compiled(net(layers=LAYERS + 1))
    assert libraries == []
    assert not streams[1].groups
    assert streams[1].found


def test_replies_out_of_order_plan_libraries_in_order() -> None:
    class Noted:
        def __init__(self) -> None:
            self.headers: list[Any] = []

        def submit(self, header: Any, payload: bytes, reader: Any) -> None:
            self.headers.append(header["kind"])

    pool: Any = Noted()
    begun = kernel_stream.Stream(pool, Libraries((), "", None))
    reply = {"resources": "", "kernels": [["0", "b", "", 1]]}
    begun._sent, begun._names = 2, [["n"], ["m", "o"]]
    begun._plan(1, {**reply, "kernels": [["0", "a", "", 1], ["1", "b", "", 1]]}, b"xy")
    assert begun.groups == []
    begun._plan(0, reply, b"z")
    assert [[k.key for k in g] for g in begun.groups] == [["b"], ["a"]]
    assert begun.named == {"n": "b", "m": "a", "o": "b"}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of kernels that are built, with a stream for programs of any size."""
    names: list[str] = []
    monkeypatch.setattr(apart, "_SMALL_PROGRAM", 0)
    add = kernel_stream.Stream.add

    def noted(self: kernel_stream.Stream, name: str, module: bytes) -> None:
        names.append(name)
        add(self, name, module)

    monkeypatch.setattr(kernel_stream.Stream, "add", noted)
    return names


def test_found_kernels_are_not_built(built: list[str], libraries: list[int]) -> None:
    compiled(net())
    assert len(built) > 1
    built.clear()
    libraries.clear()
    deeper = compiled(net(layers=LAYERS + 2))
    assert (deeper.executable.via, built, libraries) == ("workers", [], [])
    fresh = compiled(net(layers=LAYERS + 2), cache=False)
    np.testing.assert_array_equal(deeper.run(inputs())[0], fresh.run(inputs())[0])
    assert deeper.executable.dispatches == fresh.executable.dispatches


def test_found_kernels_leave_the_key_of_a_module(built: list[str]) -> None:
    """Kernels have the same names, whether they were built or cached."""
    first = compiled(net())
    compiled(net(layers=LAYERS + 1))
    again = compiled(net(), default_dim_value=2)  # no dim of the program is dynamic
    assert (again.stats.cached, again.executable.cached) == (False, True)
    assert again.executable.key == first.executable.key
    np.testing.assert_array_equal(again.run(inputs())[0], first.run(inputs())[0])


def test_a_name_of_a_kernel_is_of_one_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that share names build the same text for each."""
    monkeypatch.setattr(apart, "_SMALL_PROGRAM", 0)
    monkeypatch.setattr(kernel_stream.Stream, "known", lambda self, name: False)
    keys: dict[str, set[str]] = {}
    named: list[str] = []
    keep = Libraries.keep_names

    def noted(self: Libraries, names: Any, libraries: Any) -> None:
        named.extend(names)
        for name, key in names.items():
            keys.setdefault(name, set()).add(key)
        keep(self, names, libraries)

    monkeypatch.setattr(Libraries, "keep_names", noted)
    for options in ({}, {"layers": 2}, {"head": 9}, {"width": 20}, {"batch": 3}):
        compiled(net(**options))
    assert len(named) > len(keys)
    assert all(len(found) == 1 for found in keys.values())


def test_kernels_whose_library_is_gone_are_built_again(built: list[str]) -> None:
    compiled(net())
    store = default_cache()
    assert store is not None
    for entry in list(store.entries()):
        if entry.kind == "library":
            store.remove("library", entry.key)
    built.clear()
    again = compiled(net(layers=LAYERS + 1))
    assert built
    assert again.executable.via == "workers"
    assert np.isfinite(again.run(inputs())[0]).all()


def test_found_kernels_are_built_where_they_do_not_compile_apart(
    built: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiled(net())
    built.clear()
    begin = Pool.begin

    def killed(self: Any, worker: Any, header: Any, payload: bytes = b"") -> None:
        begin(self, worker, header, payload)
        os.kill(worker.process.pid, signal.SIGKILL)

    monkeypatch.setattr(Pool, "begin", killed)
    made = compiled(net(layers=LAYERS + 1))
    assert built == []
    assert made.executable.via != "workers"
    assert "compiled as one: a worker has ended" in caplog.text
    fresh = compiled(net(layers=LAYERS + 1), cache=False)
    np.testing.assert_array_equal(made.run(inputs())[0], fresh.run(inputs())[0])


def test_a_small_module_keeps_its_kernels(
    built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "SMALL", 10**9)
    made = compiled(net(), cache=False)
    assert built
    assert made.executable.via != "workers"
    assert np.isfinite(made.run(inputs())[0]).all()


def test_a_stream_that_fails_leaves_a_compile_as_one_module(
    streams: list[kernel_stream.Stream],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(self: Pool, *_: Any) -> None:
        raise Together("no request is taken")

    monkeypatch.setattr(Pool, "submit", refused)
    made = compiled(net(), cache=False)
    assert made.executable.via != "workers"
    assert "compiled as one: no request is taken" in caplog.text


def test_an_interrupt_of_the_lowering_ends_the_stream(
    streams: list[kernel_stream.Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[kernel_stream.Stream] = []
    close = kernel_stream.Stream.close

    def noted(self: kernel_stream.Stream) -> None:
        closed.append(self)
        close(self)

    def interrupted(self: kernel_stream.Stream, name: str, module: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel_stream.Stream, "close", noted)
    monkeypatch.setattr(kernel_stream.Stream, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled(net(), cache=False)
    assert closed
    assert np.isfinite(self_checked()).all()


def self_checked() -> np.ndarray:
    """Return the result of a compile behind what a test broke off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_stream.Stream, "add", lambda self, name, module: None)
        return np.asarray(compiled(net(), cache=False).run(inputs())[0])


def on_gpu(model: bytes, arch: str = "gfx942", **options: Any) -> IreeProgram:
    made = compile_program(model, "gpu", arch=arch, **options)
    assert isinstance(made, IreeProgram)
    return made


def test_kernels_of_a_gpu_are_found_again(libraries: list[int]) -> None:
    """A cached kernel is of one architecture, and keeps IREE's name for profilers."""
    first = on_gpu(net(layers=1))
    assert first.executable.via == "workers"
    names = first.executable.symbols
    assert {n for n, s in names.items() if "_conv_2d_" in s} == {"main_dispatch_1"}
    libraries.clear()
    deeper = on_gpu(net(layers=2))
    assert (deeper.executable.via, sum(libraries)) == ("workers", 1)  # the second convolution
    other = on_gpu(net(layers=1), "gfx1100")
    assert (other.executable.via, sum(libraries)) == ("workers", 1 + len(names))


def test_kernels_of_a_gpu_s_dynamic_dims_are_compiled_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Code generation counts their workgroups by the sizes of a run."""
    asked: list[str] = []
    monkeypatch.setattr(apart, "compile_apart", lambda *a, **k: asked.append("apart"))

    def refused(*_: Any, **__: Any) -> None:
        asked.append("as one")
        raise CompileFailed(Failure("timeout", "no time"))

    monkeypatch.setattr(IreeCompiler, "run", refused)
    for batch, ways in (("batch", ["as one"]), (2, ["apart", "as one"])):
        with pytest.raises(CompileFailed):
            on_gpu(one_op("Add", length=batch), timeout=60)
        assert asked == ways
        asked.clear()


def test_equal_programs_of_a_gpu_are_equal_bytes() -> None:
    made = [on_gpu(net(layers=1), cache=False).executable.vmfb for _ in range(2)]
    assert bytes(made[0]) == bytes(made[1])


def test_what_workers_do_is_in_the_key_of_a_module_and_of_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers change modules between IREE's phases: for CUDA, empty launches."""
    folder = Path(worker.__file__).parent
    for path in folder.glob("worker*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    same = child.worker_digest(folder)
    assert child.worker_digest(tmp_path) == same
    (tmp_path / "worker_empty.py").write_text("# another way")
    assert child.worker_digest(tmp_path) != same
    lowered: list[Any] = []
    target = get_target("gpu", architecture="sm_90")
    monkeypatch.setattr(
        type(target), "compile_lowered", lambda self, x, *a, **k: lowered.append(x) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        on_gpu(one_op("Add"), "sm_90", cache=False)
    keys = [target.lowered_key(lowered[0])]
    libraries = Libraries(("--flag",), "", None)
    keys.append(libraries._key("kernel"))
    child.code_version.cache_clear()
    monkeypatch.setattr(child, "worker_digest", lambda folder: "another")
    assert target.lowered_key(lowered[0]) != keys[0]
    assert libraries._key("kernel") != keys[1]
    child.code_version.cache_clear()
