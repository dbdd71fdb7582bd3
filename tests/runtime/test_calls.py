"""Calls of a program like an earlier one: quick ways give what the checked way gives."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import mgx_mlir
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.runtime import prepared_calls
from mgx_mlir.runtime.buffers import address


def model_of(body: str, inputs: str, output: str) -> bytes:
    text = f'<ir_version: 9, opset_import: ["": 18]> g ({inputs}) => ({output}) {{ {body} }}'
    return onnx.parser.parse_model(text).SerializeToString()


def compiled(body: str, inputs: str, output: str, **options: Any) -> Any:
    return mgx_mlir.compile(model_of(body, inputs, output), "cpu", **options)


def added(n: object, **options: Any) -> Any:
    return compiled("z = Add(x, y)", f"float[{n}] x, float[{n}] y", f"float[{n}] z", **options)


def at(offset: int, count: int) -> np.ndarray:
    """Numbers that stand `offset` bytes behind a multiple of 64."""
    raw = aligned_empty((4 * count + offset,), np.dtype(np.uint8))
    out = raw[offset:].view(np.float32)
    out[...] = np.arange(count)
    return out


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [16, 40_003])
def test_addresses_of_inputs(count: int, threads: int) -> None:
    """Kernels assume no more than 16 bytes, and what stands elsewhere is copied."""
    program = added(count, threads=threads)
    for one in (0, 4, 16, 32, 48):
        for other in (0, 8, 16):
            x, y = at(one, count), at(other, count)
            (z,) = program.run({"x": x, "y": y})
            assert np.array_equal(z, x + y)


def test_a_large_array_on_16_bytes_is_used_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    program = added(1 << 16, threads=1)
    module = program.load()
    copies: list[int] = []
    real = module._view

    def seen(port: Any, a: np.ndarray, imported: list[np.ndarray]) -> Any:
        before = len(imported)
        view = real(port, a, imported)
        copies.append(len(imported) == before)
        return view

    monkeypatch.setattr(module, "_view", seen)
    x = at(16, 1 << 16)
    assert address(x) % 64 == 16
    program.run({"x": x, "y": at(4, 1 << 16)})
    assert copies == [False, True]


def test_wrong_inputs_after_right_ones() -> None:
    """Inputs of other names, types and shapes are checked again."""
    program = added(4, threads=1)
    x = np.ones(4, np.float32)
    for _ in range(3):
        assert np.array_equal(program.run({"x": x, "y": x})[0], x + x)
    for given, said in (
        ({"x": x}, "missing inputs: y"),
        ({"x": x, "y": x, "z": x}, "unknown inputs: z"),
        ({"x": x, "z": x}, "missing inputs: y"),
        ({"x": x, "y": x.astype(np.float64)}, "expected float32, got float64"),
        ({"x": x, "y": x[:3]}, r"expected float_type \{4\}, got \{3\}"),
        ({"x": x, "y": x.reshape(2, 2)}, r"got \{2, 2\}"),
    ):
        with pytest.raises(RunError, match=said):
            program.run(given)
    assert np.array_equal(program.run({"x": x.astype(">f4"), "y": [1, 2, 3, 4]})[0], [2, 3, 4, 5])
    assert np.array_equal(program.run({"y": np.arange(8, dtype=np.float32)[::2], "x": x})[0],
                          [1, 3, 5, 7])  # fmt: skip


def test_sizes_that_change() -> None:
    """Wrong inputs are reported at each size, after any other one."""
    program = added("n", threads=1)
    for n in (3, 3, 5, 3):
        x = np.arange(n, dtype=np.float32)
        assert np.array_equal(program.run({"x": x, "y": x})[0], x + x)
        with pytest.raises(RunError, match=f"input 'y' dim 0 is {n + 1}, but 'n' is {n} in 'x'"):
            program.run({"x": x, "y": np.ones(n + 1, np.float32)})


def test_small_inputs_of_repeated_sizes_are_written_to_arguments_of_earlier_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the third call of a size on, whichever come between; large ones are used in place."""
    program = compiled(
        "z = Identity(x) r = Add(x, x)", "float[n] x", "float[n] z, float[n] r", threads=1
    )
    module = program.load()
    checked: list[int] = []
    real = module._view

    def seen(port: Any, a: np.ndarray, imported: list[np.ndarray]) -> Any:
        checked.append(a.size)
        return real(port, a, imported)

    monkeypatch.setattr(module, "_view", seen)
    held = []
    for i, n in enumerate((3, 3, 3, 5, 5, 3, 5, 5, 0, 0, 0, 1 << 14, 1 << 14, 1 << 14)):
        x = np.full(n, i, np.float32)
        held.append((i, n, program.run({"x": x})))
        x[...] = -1
    assert checked == [3, 3, 5, 5, 0, 0, 1 << 14, 1 << 14]
    for i, n, (z, r) in held:
        assert np.array_equal(z, np.full(n, i))
        assert np.array_equal(r, np.full(n, 2 * i))


def test_arguments_are_kept_for_some_sizes_alone() -> None:
    program = added("n", threads=1)
    for n in range(1, 40):
        x = np.arange(n, dtype=np.float32)
        for _ in range(3):
            assert np.array_equal(program.run({"x": x, "y": x})[0], x + x)
    assert 0 < len(program.load().prepared._free) <= prepared_calls._MOST_SHAPES


@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_indices_are_checked_at_each_call(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices outside of the axis are errors; negative ones count from the end."""
    program = compiled("z = Gather(x, i)", f"float[n] x, {kind}[2] i", "float[2] z")
    x = np.arange(5, dtype=np.float32)
    program.run({"x": x, "i": np.array([0, 1], kind)})
    monkeypatch.setattr(type(program), "check_inputs", None)  # nothing else is checked again
    for i in ([4, 0], [-5, 4], [-1, -2], [3, 3]):
        assert np.array_equal(program.run({"x": x, "i": np.array(i, kind)})[0], x[i])
    for i, wrong in (([0, 5], 5), ([-6, 1], -6), ([4, 2**31 - 1], 2**31 - 1)):
        with pytest.raises(RunError, match=rf"expected indices in \[-5, 5\), got {wrong}$"):
            program.run({"x": x, "i": np.array(i, kind)})


@pytest.mark.parametrize("count", [16, 1 << 13])
def test_results_are_the_callers(count: int) -> None:
    """A later call changes no earlier result, also where the result is an input."""
    program = compiled(
        "z = Identity(x) r = Add(x, x)", f"float[{count}] x", f"float[{count}] z, float[{count}] r"
    )
    held = []
    for i in range(5):
        x = np.full(count, i, np.float32)
        held.append(program.run({"x": x}))
        x[...] = -1
    for i, (z, r) in enumerate(held):
        assert np.array_equal(z, np.full(count, i))
        assert np.array_equal(r, np.full(count, 2 * i))
        z[...] = 0
    assert all(np.array_equal(r, np.full(count, 2 * i)) for i, (_, r) in enumerate(held))


def in_threads(work: Callable[[int], None]) -> None:
    """`work` of 0 to 5, all at once."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_sizes_of_several_threads() -> None:
    program = added("n", threads=1)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for i in range(60):
            x, y = rng.standard_normal((2, 1 + (i // 4 + seed) % 20)).astype(np.float32)
            if not np.array_equal(program.run({"x": x, "y": y})[0], x + y):
                wrong.append(seed)

    in_threads(work)
    assert not wrong


@pytest.mark.parametrize("api", [False, True])
@pytest.mark.parametrize("count", [16, 1 << 15])
def test_calls_of_several_threads(count: int, api: bool) -> None:
    program: Any = added(count)
    if api:
        text = f"""<ir_version: 9, opset_import: ["": 18]>
            g (float[{count}] x, float[{count}] y) => (float[{count}] z) {{ z = Add(x, y) }}"""
        program = mgx_mlir.parse_onnx_buffer(onnx.parser.parse_model(text).SerializeToString())
        program.compile(mgx_mlir.get_target("cpu"))
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x, y = rng.standard_normal((2, count)).astype(np.float32)
            (z,) = program.run({"x": x, "y": y})
            if not np.array_equal(np.asarray(z), x + y):
                wrong.append(seed)

    in_threads(work)
    assert not wrong


def test_a_small_program_runs_on_one_thread() -> None:
    """More threads cost more than they save; who asks for them gets them."""
    assert added(16).thread_count == 1
    assert added(16, threads=2).thread_count == 2
    with_all = added("n").thread_count
    assert added(1 << 20).thread_count == with_all


def test_inputs_in_order() -> None:
    """A list of arrays is the inputs; a list of numbers, or of lists, is the first of them."""
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    program = mgx_mlir.compile(
        model_of("z = Sub(x, y)", "float[4] x, float[4] y", "float[4] z"), "ref"
    )
    for given in ([[x, y]], [(x, y)], [x, y], [x.tolist(), y]):
        np.testing.assert_array_equal(program.run(*given)[0], x - y)
    with pytest.raises(UsageError, match="expected 2 inputs, got 3"):
        program.run([x, y, x])
    with pytest.raises(RunError, match="y"):
        program.run([x])
    one = mgx_mlir.compile(model_of("z = Neg(x)", "float[1,4] x", "float[1,4] z"), "ref")
    np.testing.assert_array_equal(one.run([x[None]])[0], -x[None])
    np.testing.assert_array_equal(one.run([x.tolist()])[0], -x[None])


def laid_out(kind: str, values: np.ndarray) -> np.ndarray:
    """The same numbers as a view, backwards, read-only, on a byte that is not a multiple of 16, or
    of the other byte order."""
    n = values.shape[-1]
    if kind == "strided":
        wide = np.zeros((*values.shape[:-1], 2 * n), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    if kind == "backwards":
        return values[..., ::-1].copy()[..., ::-1]
    if kind == "turned":
        return values.T.copy().T
    if kind == "read-only":
        kept = np.frombuffer(values.tobytes(), values.dtype).reshape(values.shape)
        assert not kept.flags.writeable
        return kept
    if kind == "askew":
        raw = aligned_empty((values.nbytes + 4,), np.dtype(np.uint8))[4:]
        raw[:] = values.reshape(-1).view(np.uint8)
        return raw.view(values.dtype).reshape(values.shape)
    return values.astype(values.dtype.newbyteorder())


LAYOUTS = ("strided", "backwards", "turned", "read-only", "askew", "swapped")


@pytest.mark.parametrize("width", [5, 1 << 13], ids=["small", "large"])
def test_layouts_of_inputs_in_repeated_calls(width: int) -> None:
    """Each layout after each other one, at shapes whose calls are prepared; inputs stay as is."""
    program = compiled(
        "z = Sub(x, y) w = Identity(x)", "float[a,b] x, float[a,b] y", "float[a,b] z, float[a,b] w"
    )
    rng = np.random.default_rng(0)
    held = []
    for turn in range(3):
        for kind in LAYOUTS:
            x, y = rng.standard_normal((2, 4, width)).astype(np.float32)
            one, other = laid_out(kind, x), laid_out(LAYOUTS[turn], y)
            z, w = program.run({"x": one, "y": other})
            held.append((z, x - y, w, x))
            np.testing.assert_array_equal(one, x)
            np.testing.assert_array_equal(other, y)
            if one.flags.writeable:
                one[...] = 0
    for z, difference, w, x in held:
        np.testing.assert_array_equal(z, difference)
        np.testing.assert_array_equal(w, x)


def test_read_only_memory_is_used_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    program = added(1 << 15, threads=1)
    x = at(16, 1 << 15)
    x.flags.writeable = False
    module = program.load()
    copied: list[int] = []
    real = module._view

    def seen(port: Any, a: np.ndarray, imported: list[np.ndarray]) -> Any:
        before = len(imported)
        view = real(port, a, imported)
        copied.append(len(imported) == before)
        return view

    monkeypatch.setattr(module, "_view", seen)
    for _ in range(4):
        assert np.array_equal(program.run({"x": x, "y": x})[0], 2 * np.arange(1 << 15))
    assert copied
    assert not any(copied)
    assert not x.flags.writeable


@pytest.mark.parametrize("count", [16, 1 << 12, 1 << 17])
def test_results_outlive_their_program(count: int) -> None:
    """A result is whole after its program was closed and others ran."""
    held = []
    for i in range(4):
        with added(count, threads=1) as program:
            x = np.full(count, i, np.float32)
            held += [program.run({"x": x, "y": x})[0] for _ in range(4)]
        del program
    other = added(count, threads=1)
    for _ in range(8):
        other.run({"x": x, "y": x})
    assert [float(z.max()) for z in held] == [2.0 * (i // 4) for i in range(16)]
    part = held[5][1:]
    held.clear()
    other.run({"x": x, "y": x})
    assert part.shape == (count - 1,)
    assert np.all(part == 2)


def called_until_closed(
    program: Any, given: dict[str, np.ndarray], begun: threading.Event, wrong: list[str]
) -> None:
    try:
        for _ in range(200):
            if not np.all(program.run(given)[0] == 2):
                wrong.append("other numbers")
            begun.set()
    except (UsageError, RunError) as e:
        if "closed" not in str(e):
            wrong.append(str(e))


@pytest.mark.parametrize("count", [16, 1 << 15])
def test_a_program_that_is_closed_during_calls(count: int) -> None:
    """A call ends with its result or the error that says so."""
    for _ in range(5):
        program = added(count, threads=1)
        x = np.ones(count, np.float32)
        program.run({"x": x, "y": x})
        begun, wrong = threading.Event(), list[str]()
        given = (program, {"x": x, "y": x}, begun, wrong)
        threads = [threading.Thread(target=called_until_closed, args=given) for _ in range(2)]
        for t in threads:
            t.start()
        begun.wait(20)
        program.close()
        for t in threads:
            t.join()
        assert not wrong


def test_calls_leave_memory_as_it_was() -> None:
    """20,000 calls of several sizes and layouts, of which some fail."""
    small = added("n", threads=1)
    large = compiled("z = Add(x, x) w = Identity(x)", "float[n] x", "float[n] z, float[n] w")
    xs = [at(16 * (n % 3), n) for n in (3, 16, 1000, 3, 4096)]
    big = [at(0, 1 << 15), at(4, 1 << 15), at(16, 1 << 15)]
    big[2].flags.writeable = False

    def calls(times: int) -> None:
        for i in range(times):
            x = xs[i // 2 % len(xs)]
            small.run({"x": x, "y": x})
            if i % 50 == 0:
                large.run({"x": big[i // 50 % 3]})
                with pytest.raises(RunError):
                    small.run({"x": x, "y": x[1:]})

    calls(2000)
    before = resident()
    calls(18_000)
    assert resident() - before < 3 << 20


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.parametrize("threads", [1, 2])
def test_arguments_of_arrays_that_lie_where_earlier_ones_did(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views are made at the first two calls with an address; a new array there is read, not the
    old one."""
    count = 1 << 15
    program = compiled(
        "z = Sub(x, y) w = Identity(x)", "float[a] x, float[a] y", "float[a] z, float[a] w",
        threads=threads,
    )  # fmt: skip
    module = program.load()
    made: list[object] = []
    real = module._list_of
    monkeypatch.setattr(module, "_list_of", lambda *args: made.append(args) or real(*args))
    memory = [at(0, 2 * count), at(16, 2 * count)]
    held = []
    for turn in range(12):
        x, y = (m[:count] if turn < 8 else m[count:] for m in memory)
        x[...], y[...] = turn, np.arange(count)
        z, w = program.run({"x": x, "y": y})
        held.append((z, w))
    for turn, (z, w) in enumerate(held):
        np.testing.assert_array_equal(w, np.full(count, turn, np.float32))
        np.testing.assert_array_equal(z, w - np.arange(count, dtype=np.float32))
    assert len(made) == 4
    # one of them where it was, of another length or stride
    for x in (memory[0][count : 2 * count - 64], memory[0][::2]):
        z, w = program.run({"x": x, "y": memory[1][: len(x)]})
        np.testing.assert_array_equal(w, x)
        np.testing.assert_array_equal(z, x - memory[1][: len(x)])
