"""Taps, findings and extracted instructions, with the interpreter in the place of a target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.compiler.models import read_model
from mgx_mlir.debug.examine import Examined, examine
from mgx_mlir.debug.extract import alone, save_inputs, save_program, upto
from mgx_mlir.debug.intermediates import SteppedRun, computed_positions, with_intermediates
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.programs.signature import Signature
from tests.support.models import bytes_of

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
RNG = np.random.default_rng(3)
Build = Callable[[ProgramIR], Any]


def value(name: str, kind: int = F32, dims: list | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [2, 3] if dims is None else dims)


def program(
    nodes: list, inputs: list, outputs: list, held: dict[str, np.ndarray] | None = None
) -> ProgramIR:
    return read_model(bytes_of(nodes, inputs, outputs, held or {}))


def chain() -> ProgramIR:
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"]),
        helper.make_node("Transpose", ["a"], ["t"]),
        helper.make_node("Relu", ["t"], ["r"]),
        helper.make_node("MatMul", ["a", "r"], ["m"]),
        helper.make_node("Exp", ["m"], ["y"]),
    ]
    w = RNG.standard_normal((2, 3)).astype(np.float32)
    return program(nodes, [value("x")], [value("y", dims=[2, 2])], {"w": w})


def branches() -> ProgramIR:
    """An `if` whose branches read a value from outside of them."""
    then = helper.make_graph([helper.make_node("Add", ["a", "x"], ["p"])], "t", [], [value("p")])
    other = helper.make_graph([helper.make_node("Mul", ["a", "x"], ["q"])], "e", [], [value("q")])
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("If", ["c"], ["i"], then_branch=then, else_branch=other),
        helper.make_node("Abs", ["i"], ["y"]),
    ]
    return program(nodes, [value("x"), value("c", BOOL, [])], [value("y")])


def several() -> ProgramIR:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1),
        helper.make_node("Neg", ["v"], ["y"]),
    ]
    outputs = [value("y", dims=[2, 2]), value("i", I64, [2, 2])]
    return program(nodes, [value("x")], outputs, {"k": np.array([2])})


def listed() -> ProgramIR:
    """A program one of whose results is a list."""
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"], axis=1),
        helper.make_node("Abs", ["x"], ["y"]),
    ]
    s = helper.make_tensor_sequence_value_info("s", F32, None)
    return program(nodes, [value("x")], [s, value("y")])


def arrays_of(p: ProgramIR) -> list[np.ndarray]:
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    return [np.array(True) if q.name == "c" else x for q in Signature.of(p.main()).inputs]


def as_it_is(p: ProgramIR) -> Any:
    return compile_program(p, "ref")


def names(found: Examined, verdict: str) -> list[str]:
    return [f.name for f in found.findings if f.verdict == verdict]


PROGRAMS = [chain, branches, several, listed]


@pytest.mark.parametrize("make", PROGRAMS)
def test_intermediates_are_the_values_of_the_program(make: Callable[[], ProgramIR]) -> None:
    p = make()
    arrays = arrays_of(p)
    seen: list[tuple[str, list[np.ndarray]]] = []
    ref = compile_program(p, "ref")
    plain = ref.execute(arrays, trace=lambda op, found: seen.append((op.name, found)))  # type: ignore[call-arg]
    run = SteppedRun(p, arrays, as_it_is)
    taken = [run.values(at) for at in run.positions]
    assert run.runs == 1
    assert all(np.array_equal(a, b) for a, b in zip(run.outputs, plain, strict=True))
    with p.ctx:
        ops = [view.operation.name for view in entry_block(p.main()).operations]
    known = [found for name, found in seen if name in {ops[at] for at in run.positions}]
    assert len(known) == len(taken)
    for a, b in zip(taken, known, strict=True):
        assert all(np.array_equal(u, v) for u, v in zip(a, b, strict=True))


@pytest.mark.parametrize("make", PROGRAMS)
def test_all_is_right(make: Callable[[], ProgramIR]) -> None:
    p = make()
    found = examine(SteppedRun(p, arrays_of(p), as_it_is))
    assert found.is_right
    assert len(found.findings) == len(computed_positions(p))


@pytest.mark.parametrize("budget", [1, 30, 1 << 20])
def test_parts_give_the_same(budget: int) -> None:
    p = chain()
    run = SteppedRun(p, arrays_of(p), as_it_is, budget=budget)
    assert examine(run).is_right
    assert run.runs == len(run.parts) == {1: 4, 30: 4, 1 << 20: 1}[budget]
    assert [at for part in run.parts for at in part] == computed_positions(p)


class Wrong:
    """A target that adds to what one operator gives, and computes on with that."""

    def __init__(self, at: str, by: float) -> None:
        self.at, self.by = at, by

    def __call__(self, p: ProgramIR) -> Any:
        from mgx_mlir.programs.interpreter import Interpreter

        ref = compile_program(p, "ref")
        whole = Interpreter.evaluate

        class Changed(Interpreter):
            def evaluate(inner, op: Any, inputs: Any, env: Any = None) -> Any:
                found = whole(inner, op, inputs, env)
                if op.name != f"migraphx.{self.at}":
                    return found
                return [(a + a.dtype.type(self.by)).astype(a.dtype) for a in found]

        q = ref.program
        ref._interpreter = Changed(q.module, q.store)  # type: ignore[attr-defined]
        return ref


def test_wrong_inherited_and_right() -> None:
    p = chain()
    found = examine(SteppedRun(p, arrays_of(p), Wrong("relu", 0.5)))
    assert names(found, "right") == ["add"]
    assert names(found, "wrong") == ["relu"]
    assert names(found, "inherited") == ["dot", "exp"]
    first = found.wrong[0]
    assert first.own[0].max_abs == pytest.approx(0.5)
    assert len(first.inputs) == 1
    assert first.inputs[0].shape == (3, 2)


def test_differences_that_grow() -> None:
    # 4e-4 is within the limits where the largest element is 80; exp(80) is off by 4e-4 of itself
    w = np.array([[80.0, 0, 0], [0, 1, 0]], np.float32)
    nodes = [helper.make_node("Add", ["x", "w"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    p = program(nodes, [value("x")], [value("y")], {"w": w})
    found = examine(SteppedRun(p, [np.zeros((2, 3), np.float32)], Wrong("add", 4e-4)))
    assert names(found, "right") == ["add"]
    assert names(found, "grown") == ["exp"]


def test_two_faults_are_both_found() -> None:
    p = chain()
    twice = Wrong("relu", 0.5)

    def build(q: ProgramIR) -> Any:
        made = twice(q)
        inner = type(made._interpreter).evaluate

        def evaluate(self: Any, op: Any, inputs: Any, env: Any = None) -> Any:
            found = inner(self, op, inputs, env)
            return [a * 2 for a in found] if op.name == "migraphx.exp" else found

        type(made._interpreter).evaluate = evaluate
        return made

    found = examine(SteppedRun(p, arrays_of(p), build))
    assert names(found, "wrong") == ["relu", "exp"]
    assert names(found, "inherited") == ["dot"]


def test_other_dims_are_wrong_and_do_not_stop_the_rest() -> None:
    p = chain()

    class Short:
        def __init__(self, made: Any) -> None:
            self.made = made

        def execute(self, arrays: Any) -> Any:
            found = list(self.made.execute(arrays))
            found[2] = found[2][:1]  # the relu: after the result and the add
            return found

    found = examine(SteppedRun(p, arrays_of(p), lambda q: Short(as_it_is(q))))
    assert names(found, "wrong") == ["relu"]
    assert names(found, "right") == ["add", "dot", "exp"]
    assert found.wrong[0].own[0].shapes is not None


@pytest.mark.parametrize("make", PROGRAMS)
def test_every_instruction_alone(make: Callable[[], ProgramIR], tmp_path: Path) -> None:
    p = make()
    arrays = arrays_of(p)
    run = SteppedRun(p, arrays, as_it_is)

    def keep(position: int) -> list[np.ndarray]:
        found = SteppedRun.values(run, position)
        return [a + 1 if a.dtype == np.float32 else a for a in found]

    run.values = keep  # type: ignore[method-assign]
    found = examine(run, keep=100)
    assert found.wrong
    for f in found.wrong:
        small, given = alone(p, f.position, f.inputs)
        assert small.module.operation.verify()
        save_program(small, tmp_path / "s.mxr")
        save_inputs(given, tmp_path / "s.npz")
        again = read_model(tmp_path / "s.mxr")
        with np.load(tmp_path / "s.npz") as held:
            named = {k: held[k] for k in held.files}
        (got, *_) = compile_program(again, "ref").run(named)
        (wanted, *_) = compile_program(small, "ref").run(given)
        assert np.array_equal(got, wanted)
        assert f.name in small.text()
        whole = upto(p, f.position)
        assert whole.module.operation.verify()


def test_names_of_intermediates_are_new() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["tap0_0"])]
    p = program(nodes, [value("x")], [value("tap0_0")])
    found = with_intermediates(p, computed_positions(p))
    signature = Signature.of(found.main())
    assert len(set(signature.output_names)) == 2


def test_inputs_of_all_types_are_read_back(tmp_path: Path) -> None:
    """ml_dtypes registers float8_e5m2 as a float, whose name numpy's reader does not know."""
    kinds = (np.float32, bool, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn)
    given = {np.dtype(k).name: np.array([0, 1, 2]).astype(k) for k in kinds}
    save_inputs({**given, "text": np.array(["a", "bc"], object)}, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as held:
        found = {k: held[k] for k in held.files}
    assert found.pop("text").tolist() == ["a", "bc"]
    for name, array in given.items():
        assert found[name].tobytes() == array.tobytes()
