"""A kernel that the backend refuses gets a plainer form; the rest of its program stays as it is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from mgx_mlir.compiler.compilation import Compilation
from mgx_mlir.compiler.compile import compile
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.plainer import CrashSearch
from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering import lower
from mgx_mlir.programs.lowered import KernelInfo, Lowered
from mgx_mlir.targets.base import CpuTarget
from mgx_mlir.targets.child import CompileOutput, IreeCompiler
from mgx_mlir.targets.diagnostics import CompileFailed, Failure
from tests.support import compiles
from tests.support.oracle import ort_session

MODEL = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[n,24] x) => (float[n,24] y, float[n,24] z)
  <float[24,24] w = {%s}>
{
  a = MatMul(x, w)
  y = Softmax(a)
  z = LogSoftmax(x)
}
"""
NODES = ("MatMul_0", "Softmax_1", "LogSoftmax_2")


def _model(rows: str = "n") -> onnx.ModelProto:
    rng = np.random.default_rng(3)
    text = MODEL.replace("[n,", f"[{rows},")
    return parse_model(text % ", ".join(map(str, rng.standard_normal(576).round(3))))


class Refusing:
    """The first `times` compiles are refused at a place; notes which nodes are vector loops."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: str | None, times: int) -> None:
        self.place, self.left = place, times
        self.loops: list[set[str]] = []
        run, lowered = IreeCompiler.run, lower.lower_to_linalg

        def refusing(compiler: IreeCompiler, *args: Any, **options: Any) -> CompileOutput:
            if not self.left:
                return run(compiler, *args, **options)
            self.left -= 1
            raise CompileFailed(Failure("compile", "refused", self.place, (), "kernel"))

        def starting(*args: object) -> Lowered:
            found = lowered(*args)  # type: ignore[arg-type]  # as it was called
            taken = [c for c in found.choices if c.rule != "linalg"]
            names = (re.search(r'"(\w+)"', c.location) for c in taken)
            self.loops.append({name[1] for name in names if name is not None})
            return found

        compiles.answered_by(monkeypatch, refusing)
        monkeypatch.setattr("mgx_mlir.compiler.compilation.lower_to_linalg", starting)


@pytest.mark.parametrize(
    ("times", "lost"), [(1, ["vector loops"]), (2, ["vector loops", "boundary"])]
)
def test_the_others_stay_vector_loops(
    monkeypatch: pytest.MonkeyPatch, times: int, lost: list[str]
) -> None:
    refusing = Refusing(monkeypatch, "<buffer>:1:0", times)
    program = compile(_model().SerializeToString(), target="cpu", threads=1, cache=False)
    first, *again = refusing.loops
    assert first == set(NODES)
    assert again == [first - {"Softmax_1"}] * times
    assert isinstance(program, IreeProgram)
    assert program.executable is not None
    assert program.executable.flag_set == "best"
    assert [f.partition(" of ")[0] for f in program.executable.fallbacks] == [
        f"kernel: {what}" for what in lost
    ]
    assert all("cpu::softmax (<buffer>:1:0)" in f for f in program.executable.fallbacks)
    x = np.random.default_rng(4).standard_normal((5, 24)).astype(np.float32)
    wanted = ort_session(_model()).run(None, {"x": x})
    for want, got in zip(wanted, program.run({"x": x}), strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-5, atol=1e-5)


def test_a_kernel_refused_in_every_form_ends_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Refusing(monkeypatch, "<buffer>:1:0", 100)
    with pytest.raises(CompileError, match="refused"):
        compile(_model().SerializeToString(), target="cpu", threads=1, cache=False)
    assert [len(found) for found in refusing.loops[:3]] == [3, 2, 2]


def test_a_failure_of_no_known_kernel_takes_the_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Refusing(monkeypatch, None, 1)
    program = compile(_model("5").SerializeToString(), target="cpu", threads=1, cache=False)
    assert len(refusing.loops) == 1
    assert isinstance(program, IreeProgram)
    assert program.executable is not None
    assert program.executable.flag_set == "no-data-tiling"


class Crashing:
    """Compiles crash as long as one of these nodes is a vector loop; counts compiles."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nodes: set[str]) -> None:
        self.compiles = 0
        compile_lowered = CpuTarget.compile_lowered

        def crashing(target: CpuTarget, lowered: Lowered, options: Any) -> Any:
            self.compiles += 1
            loops = {c.location for c in lowered.choices if c.rule != "linalg"}
            if any(f'"{node}"' in place for node in nodes for place in loops):
                raise CompileFailed(Failure("crash", "crashed with SIGSEGV", None, (), "kernel"))
            return compile_lowered(target, lowered, options)

        monkeypatch.setattr(CpuTarget, "compile_lowered", crashing)


@pytest.mark.parametrize(
    ("nodes", "compiles"), [({"Softmax_1"}, 5), ({"LogSoftmax_2"}, 5), ({"MatMul_0"}, 3)]
)
def test_a_crash_costs_the_kernel_alone_that_it_comes_from(
    monkeypatch: pytest.MonkeyPatch, nodes: set[str], compiles: int
) -> None:
    crashing = Crashing(monkeypatch, nodes)
    program = compile(_model().SerializeToString(), target="cpu", threads=1, cache=False)
    assert isinstance(program, IreeProgram)
    assert program.executable is not None
    (lost,) = program.executable.fallbacks
    assert lost.startswith("kernel: vector loops of cpu::")
    assert [n for n in NODES if n in lost] == list(nodes)
    assert crashing.compiles <= compiles
    x = np.random.default_rng(4).standard_normal((5, 24)).astype(np.float32)
    wanted = ort_session(_model()).run(None, {"x": x})
    for want, got in zip(wanted, program.run({"x": x}), strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize("level", [1, 2])
def test_the_search_of_a_crash_ends_at_its_kernels(count: int, level: int) -> None:
    kernels = [KernelInfo(f"k{i}", (), f'loc("n{i}")') for i in range(count)]
    for guilty in ({count // 2}, {0, count - 1}):
        places = {f"loc(n{i})" for i in guilty}
        search, trials = CrashSearch("cpu", kernels), 0
        while (levels := search.trial()) is not None:
            trials += 1
            search.note(compiled=all(levels.get(p, 0) >= level for p in places))
        assert places <= set(search.lost)
        assert len(guilty) > 1 or set(search.lost) == places
        assert trials <= 12
        assert search.reason("why").startswith(("vector loops", "boundary")[level - 1])


def test_on_gpus_a_refused_tile_is_left_to_the_compiler_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two products: that whose tile is refused has none the second time, the other keeps its."""
    rng = np.random.default_rng(5)
    text = MODEL.replace("[n,", "[64,").replace("Softmax(a)", "MatMul(a, w)")
    model = parse_model(text % ", ".join(map(str, rng.standard_normal(576).round(3))))
    Refusing(monkeypatch, "<buffer>:1:0", 2)  # refused with both flag sets
    tiles: list[int] = []
    lower = Compilation.lower

    def noting(c: Compilation, *args: Any, **options: Any) -> Lowered:
        lowered = lower(c, *args, **options)
        with ir.Context() as ctx:
            ctx.allow_unregistered_dialects = True
            tiles.append(str(ir.Module.parse(lowered.bytecode)).count("compilation_info ="))
        return lowered

    monkeypatch.setattr(Compilation, "lower", noting)
    program = compile(model.SerializeToString(), target="gpu", arch="gfx942", cache=False)
    assert isinstance(program, IreeProgram)
    assert program.executable is not None
    (lost,) = program.executable.fallbacks
    assert lost == "kernel: tile of gpu::dot (<buffer>:1:0): refused"
    assert tiles == [2, 1]
