"""A pass that cannot work on named dynamic dims costs speed, not the compile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.compiler import stages
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.pipelines import FEWER_NAMES
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.targets.diagnostics import CompileFailed, Failure
from tests.support import compiles
from tests.support.models import model_of, node, parsed, parsed_bytes

TEXT = "g (float[N,4] x) => (float[N,4] y) { a = Relu (x) y = Softmax (a) }"


def _model() -> bytes:
    return parsed_bytes(TEXT, opset=18)


def _named(module: ir.Module) -> bool:
    types = [TensorType.of(r) for f in module.body for op in f.body.blocks[0].operations
             for r in op.results]  # fmt: skip
    return any(is_named(d) for t in types for d in t.dims)


def test_all_passes_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []

    def fails_on_names(module: ir.Module, steps: tuple[str, ...], **options: Any) -> Any:
        seen.append(tuple(steps))
        naming = [i for i, s in enumerate(steps) if s in ("name_dynamic_dims", FEWER_NAMES)]
        if not naming:
            return run_pipeline(module, steps, **options)
        until = naming[0] + 1
        run_pipeline(module, steps[:until], **options)
        assert _named(module)
        raise OverflowError("a name is no number")

    monkeypatch.setattr(stages, "run_pipeline", fails_on_names)
    program = mgx_mlir.compile(_model(), target="cpu", cache=False)
    assert ["name_dynamic_dims" in steps for steps in seen[:3]] == [True, False, False]
    assert [FEWER_NAMES in steps for steps in seen[:3]] == [False, True, False]
    assert program.stats.unnamed_dynamic_dims == "OverflowError: a name is no number"
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    e = np.exp(np.maximum(x, 0).astype(np.float64))
    np.testing.assert_allclose(program.run({"x": x})[0], e / e.sum(1, keepdims=True), rtol=1e-6)


def test_names_are_used() -> None:
    program = mgx_mlir.compile(_model(), target="cpu", cache=False)
    assert program.stats.unnamed_dynamic_dims is None


def test_lookups_side_by_side_keep_names() -> None:
    """Gathers of rows that only names count are not made one with repeated numbers."""
    tables = np.random.default_rng(1).standard_normal((4, 6, 3)).astype(np.float32)
    nodes = [node("Gather", f"t{i} i{i}", f"g{i}", axis=0) for i in range(4)]
    inputs = {f"i{i}": (np.int64, ["N"]) for i in range(4)}
    outputs: dict[str, Any] = {f"g{i}": ["N", 3] for i in range(4)}
    model = model_of(nodes, inputs, outputs, {f"t{i}": t for i, t in enumerate(tables)}, opset=18)
    program = mgx_mlir.compile(model, target="cpu", cache=False)
    assert program.stats.unnamed_dynamic_dims is None
    at = {f"i{i}": np.array([i, 5, 0]) for i in range(4)}
    for got, table, where in zip(program.run(at), tables, at.values(), strict=True):
        np.testing.assert_array_equal(got, table[where])


def test_a_broadcast_to_a_named_and_a_fixed_dim() -> None:
    """A value with the dynamic dim does not have the static one, too."""
    model = parsed(
        """(float[N,3] x, int64[M,1] i) => (float[N,3] y) {
        s = Shape <start = 0, end = 1> (i) t = Constant <value_ints = [3]> ()
        d = Concat <axis = 0> (s, t) one = Constant <value = float[1,1] {1}> ()
        o = Expand (one, d) y = ScatterND (x, i, o) }""",
        opset=18,
    )
    program = mgx_mlir.compile(model, target="cpu", cache=False)
    assert program.stats.unnamed_dynamic_dims is None
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    (got,) = program.run({"x": x, "i": np.array([[2], [0]])})
    x[[2, 0]] = 1
    np.testing.assert_array_equal(got, x)


def test_names_are_given_up_before_other_flags_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused kernel is compiled once with names and once without: each set costs a compile."""
    tried: list[str] = []
    run = IreeCompiler.run

    def refuses_the_first(self: IreeCompiler, source: bytes, flags: Any, **more: Any) -> Any:
        level = next(f for f in flags if f.startswith("--iree-opt-level"))
        tried.append(level)
        if len(tried) == 1:
            raise CompileFailed(Failure("compile", "no such tiling", cause="kernel"))
        return run(self, source, flags, **more)

    compiles.answered_by(monkeypatch, refuses_the_first)
    program = mgx_mlir.compile(_model(), target="cpu", cache=False)
    assert tried == ["--iree-opt-level=O2"] * 2
    assert program.executable.flag_set == "best"
    assert program.executable.fallbacks == ("names-of-dynamic-dims: no such tiling",)


def test_a_broadcast_to_a_number_out_of_a_table() -> None:
    """The table is among the program's weights, where one that asks for its numbers finds it."""
    model = parsed(
        """(float[N,1] x, float[M,1] z, int64[1] k) => (float[A,B] y) {
        s = Shape <start = 0, end = 1> (z) w = Gather <axis = 0> (table, k)
        d = Concat <axis = 0> (s, w) y = Expand (x, d) }""",
        {"table": np.arange(3, 43)},
        opset=18,
    )
    program = mgx_mlir.compile(model, target="cpu", cache=False)
    x = np.arange(3, dtype=np.float32)[:, None]
    for m in (3, 1):
        given = {"x": x, "z": np.zeros((m, 1), np.float32), "k": np.array([2])}
        np.testing.assert_array_equal(program.run(given)[0], np.broadcast_to(x, (3, 5)))
