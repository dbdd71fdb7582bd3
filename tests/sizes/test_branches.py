"""Checks in branches and loops: what they say, through variants, files and the cache, and that
they leave the numbers right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

import mgx_mlir
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering import assertions
from mgx_mlir.passes.lowering.module import ModuleLowering
from mgx_mlir.passes.name_dynamic_dims import Names
from mgx_mlir.runtime.iree_runtime import LoadedModule
from tests.support.oracle import ort_session
from tests.targets.test_branch_moves import branches_of_convolutions

CHOICE = """<ir_version: 8, opset_import: ["":18]>
g (bool k, float[n,4] a, float[m,4] b) => (float[x,4] y) {
  y = If(k) <then_branch = t () => (float[x,4] u) { u = Add(a,b) },
             else_branch = e () => (float[x,4] v) { v = Mul(a,a) }>
}"""


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as m:
        m.setenv("MGX_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def choice() -> bytes:
    model = parser.parse_model(CHOICE)
    model.graph.node[0].name = "choice"
    model.graph.node[0].attribute[0].g.node[0].name = "sum"
    return model.SerializeToString()


def rows(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)


def checks(run: Any, n: int, m: int) -> None:
    """Equal sizes are right in both branches; unequal ones are errors only where they are added."""
    a, b = rows(n), rows(m)
    yes, no = np.array(True), np.array(False)
    np.testing.assert_allclose(run([yes, a, a])[0], a + a)
    np.testing.assert_allclose(run([yes, a, b[:1]])[0], a + b[:1])
    np.testing.assert_allclose(run([no, a, b])[0], a * a)
    with pytest.raises(RunError) as error:
        run([yes, a, b])
    text = str(error.value)
    assert "choice/sum" in text
    assert "expected dim 0 of input 'a' = dim 0 of input 'b'" in text
    assert f"got {n} for dim 0 of input 'a', {m} for dim 0 of input 'b'" in text


def named(program: Any) -> Any:
    return lambda arrays: program.run(dict(zip("kab", arrays, strict=True)))


def test_a_branch_says_what_does_not_fit() -> None:
    compiled = mgx_mlir.compile(choice(), "cpu", threads=1, cache=False)
    checks(named(compiled), 5, 3)
    checks(named(compiled), 60000, 50)


def test_the_cache_and_files_keep_the_checks(tmp_path: Path) -> None:
    path = tmp_path / "choice.onnx"
    path.write_bytes(choice())
    mgx_mlir.compile(path, "cpu", threads=1)
    again = mgx_mlir.compile(path, "cpu", threads=1)
    assert again.stats.cached
    checks(named(again), 5, 3)

    dim = mgx_mlir.shape.dynamic_dimension
    dims = {name: [dim(1, 64), dim(4, 4)] for name in "ab"}
    program = mgx_mlir.parse_onnx(path, map_dyn_input_dims=dims)
    program.compile(mgx_mlir.get_target("cpu"))
    mgx_mlir.save(program, tmp_path / "choice.mxr")
    loaded = mgx_mlir.load(tmp_path / "choice.mxr", trust_code=True)
    checks(named(loaded.compiled), 5, 3)

    (tmp_path / "choice.vmfb").write_bytes(memoryview(again.executable.vmfb))
    module = LoadedModule(tmp_path / "choice.vmfb")
    with pytest.raises(RunError, match="choice/sum"):
        module.run([np.array(True), rows(5), rows(3)])


def test_each_variant_checks() -> None:
    dim = mgx_mlir.shape.dynamic_dimension
    dims = {"a": [dim(1, 64, (2, 8)), dim(4, 4)], "b": [dim(1, 64), dim(4, 4)]}
    made = mgx_mlir.compile(choice(), "cpu", threads=1, map_dyn_input_dims=dims, cache=False)
    assert {v.function for v in made.signature.variants} == {"main_2", "main_8"}
    for n in (2, 8, 5):
        a, b = rows(n), rows(3)
        np.testing.assert_allclose(made.run(k=np.array(True), a=a, b=a)[0], a + a)
        np.testing.assert_allclose(made.run(k=np.array(False), a=a, b=b)[0], a * a)
        with pytest.raises(RunError, match="choice/sum"):
            made.run(k=np.array(True), a=a, b=b)


def test_what_is_computed_ahead_of_an_assertion_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Assertions left where the operators are stand between kernels (docs/iree-hazards.md, 25)."""
    model = branches_of_convolutions(64).SerializeToString()
    session = ort_session(model)
    x = np.random.default_rng(0).standard_normal((2, 2, 33)).astype(np.float32)

    def here(self: Any, block: ir.Block, values: Sequence[ir.Value]) -> ir.InsertionPoint:
        return ir.InsertionPoint.current

    monkeypatch.setattr(assertions.InsertionPoints, "first", here)
    # with names in branches, what follows a convolution is one kernel with it
    monkeypatch.setattr(Names, "_blocks", lambda self, block: iter([block]))
    compiled = mgx_mlir.compile(model, "cpu", threads=1, cache=False)
    for k in (np.array(True), np.array(False)):
        (got,), (want,) = compiled.run(k=k, x=x), session.run(None, {"k": k, "x": x})
        np.testing.assert_allclose(got, want, atol=2e-5)
    monkeypatch.setattr(assertions, "wait", lambda e, block, **more: None)
    # the kernels that the compiler chooses show it; ours happen to run in order
    monkeypatch.setattr(ModuleLowering, "has_vector_kernels", lambda self, op: False)
    wrong = mgx_mlir.compile(model, "cpu", threads=1, cache=False)
    k, x = np.array(True), -2 * x  # other numbers than the ones that memory may still hold
    (got,), (want,) = wrong.run(k=k, x=x), session.run(None, {"k": k, "x": x})
    assert not np.allclose(got, want, atol=2e-5), "IREE is mended: assertions.wait is not needed"


NESTED = """<ir_version: 8, opset_import: ["":18]>
g (int64 t, bool k, float[n,64] a, float[m,128] b) => (float[n,64] y) {
  c = Constant<value = bool {1}>()
  y = Loop(t,c,a) <body = q (int64 i, bool g, float[n,64] s) => (bool h, float[n,64] z) {
    h = Identity(g) d = MatMul(s,w0) r = Softmax(d)
    o = If(k) <then_branch = tb () => (float[x,128] u) { u = Add(b,w3) },
               else_branch = eb () => (float[x,128] v) { v = Mul(b,b) }>
    l = MatMul(r,w1) p = Add(l,o) z = MatMul(p,w2) }>
}"""


def test_kernels_round_a_branch_that_asserts() -> None:
    """Ahead of the branch a kernel, behind it one that reads that, and a weight of outside."""
    model = parser.parse_model(NESTED)
    rng = np.random.default_rng(0)
    for name, dims in (("w0", (64, 128)), ("w1", (128, 128)), ("w2", (128, 64)), ("w3", (5, 128))):
        weight = (0.1 * rng.standard_normal(dims)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    data = model.SerializeToString()
    compiled, session = mgx_mlir.compile(data, "cpu", cache=False), ort_session(data)
    a = rng.standard_normal((5, 64)).astype(np.float32)
    b = rng.standard_normal((5, 128)).astype(np.float32)
    for k, last in ((True, 5), (False, 5), (True, 1)):
        given = {"t": np.array(2), "k": np.array(k), "a": a, "b": b[:last]}
        (got,), (want,) = compiled.run(given), session.run(None, given)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    for k in (True, False):
        with pytest.raises(RunError, match="Loop"):
            compiled.run(t=np.array(2), k=np.array(k), a=a, b=b[:3])


def test_checks_are_lowered_to_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache's second key is the lowered code: in it nothing may hang on addresses."""
    made: list[bytes] = []
    lower = ModuleLowering.run

    def kept(self: Any) -> Any:
        made.append(lower(self).bytecode)
        raise RunError("lowered")

    monkeypatch.setattr(ModuleLowering, "run", kept)
    for _ in range(8):
        with pytest.raises(RunError, match="lowered"):
            mgx_mlir.compile(choice(), "cpu", cache=False)
    assert len(set(made)) == 1


PARTS_OF_A_STATE = """<ir_version: 8, opset_import: ["":18]>
g (bool k, float[n,8] a, float[2,m,8] s) => (float[x,8] y) {
  y = If(k) <
    then_branch = t () => (float[x,8] u) {
      i = Constant<value = int64 {0}>() j = Constant<value = int64 {1}>()
      q = MatMul(s,w) h = Gather<axis = 0>(q,i) c = Gather<axis = 0>(q,j)
      d = MatMul(a,w) e = Add(d,h) f = Tanh(e) g = MatMul(f,w) u = Add(g,c) },
    else_branch = e () => (float[x,8] v) { v = Mul(a,a) }>
}"""


def test_views_of_what_is_waited_for_stand_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ahead of an assertion a state is computed, behind it its halves are read."""
    model = parser.parse_model(PARTS_OF_A_STATE)
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((8, 8)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    data = model.SerializeToString()

    def here(self: Any, block: ir.Block, values: Sequence[ir.Value]) -> ir.InsertionPoint:
        return ir.InsertionPoint.current

    monkeypatch.setattr(assertions.InsertionPoints, "first", here)
    compiled, session = mgx_mlir.compile(data, "cpu", cache=False), ort_session(data)
    for n in (1, 3):
        a, s = (rng.standard_normal(dims).astype(np.float32) for dims in ((n, 8), (2, n, 8)))
        for k in (True, False):
            given = {"k": np.array(k), "a": a, "s": s}
            (got,), (want,) = compiled.run(given), session.run(None, given)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


WEIGHT_BEHIND_A_BRANCH = """<ir_version: 8, opset_import: ["":18]>
g (bool k, float[n,64] a, float[m,64] b) => (float[x,64] y) {
  c = If(k) <then_branch = t () => (float[x,64] u) { u = Add(a,b) },
             else_branch = e () => (float[x,64] v) { v = MatMul(a,w) }>
  y = MatMul(c,w)
}"""


def test_a_branch_that_asserts_waits_for_no_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing computes a weight: waiting for it would copy it in each call."""
    model = parser.parse_model(WEIGHT_BEHIND_A_BRANCH)
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    settled: list[str] = []
    settle = assertions.buffer_views.settled

    def noted(e: Any, value: ir.Value) -> ir.Value:
        settled.append(value.owner.name)
        return settle(e, value)

    monkeypatch.setattr(assertions.buffer_views, "settled", noted)
    compiled = mgx_mlir.compile(model.SerializeToString(), "cpu", cache=False)
    assert "ml_program.global_load_const" not in settled
    a, b = (np.resize(rows(80), (5, 64)) / n for n in (3, 8))
    np.testing.assert_allclose(compiled.run(k=np.array(True), a=a, b=b)[0], (a + b) @ weight,
                               rtol=1e-4, atol=1e-4)  # fmt: skip
    np.testing.assert_allclose(compiled.run(k=np.array(False), a=a, b=b)[0], a @ weight @ weight,
                               rtol=1e-4, atol=1e-4)  # fmt: skip
