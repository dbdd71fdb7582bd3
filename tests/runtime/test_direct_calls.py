"""Calls like earlier ones are one function: it gives and raises what the checked way does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

import mgx_mlir
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.runtime.direct_call import DirectCalls
from tests.runtime.test_calls import added, compiled
from tests.support.models import model_of


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether each call that was tried was made by the function."""
    found: list[bool] = []
    real: Any = DirectCalls.__init__

    def watched(self: DirectCalls, *args: Any) -> None:
        real(self, *args)
        call = self.call

        def seen(given: dict[str, Any]) -> list[np.ndarray] | None:
            results = call(given)
            found.append(results is not None)
            return results

        self.call = seen

    monkeypatch.setattr(DirectCalls, "__init__", watched)
    return found


def drawn(dtype: Any, *dims: int) -> np.ndarray:
    return np.random.default_rng(3).integers(-9, 9, dims).astype(dtype)


BOTH = "z = Add(x, y) w = Identity(x) v = Sub(x, y)"
SIGNATURES = {
    "small": ("z = Add(x, y)", "{t}[7] x, {t}[7] y", "{t}[7] z"),
    "large": ("z = Add(x, y)", "{t}[40960] x, {t}[40960] y", "{t}[40960] z"),
    "open": ("z = Add(x, y)", "{t}[n] x, {t}[n] y", "{t}[n] z"),
    "one of two large": ("z = Add(x, y)", "{t}[300,256] x, {t}[256] y", "{t}[300,256] z"),
    "three results": (BOTH, "{t}[8192] x, {t}[8192] y", "{t}[8192] z, {t}[8192] w, {t}[8192] v"),
    "three small": (BOTH, "{t}[7] x, {t}[7] y", "{t}[7] z, {t}[7] w, {t}[7] v"),
    "three open": (BOTH, "{t}[n] x, {t}[n] y", "{t}[n] z, {t}[n] w, {t}[n] v"),
    "an input": ("z = Identity(x)", "{t}[40960] x, {t}[1] y", "{t}[40960] z"),
    "scalars": ("z = Add(x, y)", "{t} x, {t} y", "{t} z"),
}
KINDS = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "float") for name in SIGNATURES), *((n, k) for n in ("large", "three open")
     for k in ("float16", "bfloat16"))],
)  # fmt: skip
def test_results(name: str, kind: str, made: list[bool]) -> None:
    """Each call has results of its own, which are those of the ops on what it was given."""
    body, inputs, outputs = (part.format(t=kind) for part in SIGNATURES[name])
    program = compiled(body, inputs, outputs, threads=1)
    dtype = np.dtype(KINDS[kind])
    dims = [[50_000 if d == -1 else d for d in p.dims] for p in program.signature.inputs]
    held: list[tuple[list[np.ndarray], np.ndarray, np.ndarray]] = []
    x, y = (drawn(dtype, *d) for d in dims)
    for i in range(7):
        if i == 5:
            x = x.copy()  # another address
        x[...] = x + dtype.type(i)
        held.append((program.run({"y": y, "x": x}), x.copy(), y))
    assert any(made)
    for found, a, b in held:
        wanted = {"z": a + b if "Add" in body else a, "w": a, "v": a - b}
        for key, got in zip(program.output_names, found, strict=True):
            assert got.dtype == dtype
            assert got.flags.writeable
            np.testing.assert_array_equal(got.astype(np.float64), wanted[key].astype(np.float64))
            got[...] = 0  # neither an input nor another call's result


def test_sizes_that_only_the_run_knows(made: list[bool]) -> None:
    """Results of other sizes and of none follow each other at one shape of the input."""
    program = compiled("z = NonZero(x)", "float[2000] x", "int64[1,n] z", threads=1)
    for count in (0, 0, 3, 2000, 1, 0, 1999):
        x = np.zeros(2000, np.float32)
        x[:count] = 1
        (z,) = program.run({"x": x})
        np.testing.assert_array_equal(z, np.arange(count)[None])
    assert made[-4:] == [True] * 4


def test_what_is_no_such_call(made: list[bool]) -> None:
    """Other types, shapes, names and layouts go the checked way, whatever came before."""
    program = added("n", threads=1)
    x = np.ones(1 << 15, np.float32)
    for _ in range(5):
        program.run({"x": x, "y": x})
    assert made[-1]
    for given, said in (
        ({"x": x, "y": x.astype(np.float64)}, "expected float32, got float64"),
        ({"x": x}, "missing inputs: y"),
        ({"x": x, "z": x}, "missing inputs: y"),
        ({"x": x, "y": x.reshape(2, -1)}, r"got \{2, 16384\}"),
    ):
        with pytest.raises(RunError, match=said):
            program.run(given)
        assert not made[-1]
    wide = np.ones(1 << 16, np.float32)
    wide[::2] = 5
    for one in (wide[::2], x[::-1], np.broadcast_to(np.float32(2), x.shape)):
        for _ in range(4):
            np.testing.assert_array_equal(program.run({"x": one, "y": x})[0], one + x)
        np.testing.assert_array_equal(program.run({"x": x, "y": one})[0], one + x)


def test_forms_of_a_call(made: list[bool]) -> None:
    """In order, as a list, by keyword: all of them are such calls."""
    program = compiled("z = Sub(x, y)", "float[4] x, float[4] y", "float[4] z", threads=1)
    x, y = drawn(np.float32, 4), np.ones(4, np.float32)
    forms: list[Callable[[], list[np.ndarray]]] = [
        lambda: program.run({"x": x, "y": y}),
        lambda: program.run(x, y),
        lambda: program.run([x, y]),
        lambda: program.run(y=y, x=x),
        lambda: program.run({"y": y}, x=x),
        lambda: program(x, y),
    ]
    for _ in range(4):
        for form in forms:
            np.testing.assert_array_equal(form()[0], x - y)
    assert made[-12:] == [True] * 12


def test_a_run_that_fails(made: list[bool]) -> None:
    """Sizes that do not fit are told as in the first call, and the next call is right."""
    program = compiled("z = Reshape(x, s)", "float[n] x, int64[2] s", "float[a,b] z", threads=1)
    x, s = drawn(np.float32, 6), np.array([2, 3])
    with pytest.raises(RunError) as first:
        program.run({"x": x, "s": np.array([4, 2])})
    for _ in range(5):
        np.testing.assert_array_equal(program.run({"x": x, "s": s})[0], x.reshape(2, 3))
    with pytest.raises(RunError) as later:
        program.run({"x": x, "s": np.array([4, 2])})
    assert str(later.value) == str(first.value)
    for _ in range(3):
        np.testing.assert_array_equal(program.run({"x": x, "s": s})[0], x.reshape(2, 3))
    assert made[-1]


def test_names_of_inputs_are_only_names(made: list[bool]) -> None:
    names = ["a'b", "}{ x\n", "given", "raise SystemExit"]
    nodes = [helper.make_node("Sum", names, ["out"])]
    model = model_of(nodes, {n: [3] for n in names}, {"out": [3]}, opset=18)
    onnx.checker.check_model(model)
    program = mgx_mlir.compile(model, "cpu", threads=1)
    given = {n: np.full(3, 10**i, np.float32) for i, n in enumerate(names)}
    for _ in range(4):
        np.testing.assert_array_equal(program.run(given)[0], np.full(3, 1111))
    assert made[-1]


def test_a_closed_program() -> None:
    program = added(8, threads=1)
    x = np.ones(8, np.float32)
    for _ in range(4):
        program.run({"x": x, "y": x})
    program.close()
    with pytest.raises(UsageError, match="closed"):
        program.run({"x": x, "y": x})


def test_several_threads(made: list[bool]) -> None:
    """Whoever finds the arguments taken has some of its own."""
    program = added(20_000, threads=2)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((2, 20_000)).astype(np.float32)
        for _ in range(100):
            if not np.array_equal(program.run({"x": x, "y": y})[0], x + y):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert any(made)
