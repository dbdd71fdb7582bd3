"""Branches and loops on the cpu target against the interpreter, lowered alone and as compiled."""
# ruff: noqa: E501 (programs)

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mgx_mlir.core.context import new_context
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import run_pipeline
from tests.lowering import harness

harness.load_dialect()

F, I = np.float32, np.int64  # noqa: E741


def ramp(*dims: int) -> np.ndarray:
    return (np.arange(np.prod(dims, dtype=int), dtype=F).reshape(dims) % 7 - 3) / 2


def check(text: str, *runs: Sequence[np.ndarray]) -> None:
    """Every run of a program, by its lowering alone and after the cpu pipeline."""
    from mgx_mlir.runtime.iree_runtime import LoadedModule
    from mgx_mlir.targets.child import IreeCompiler

    for steps in ((), pipeline("cpu")):
        program = ProgramIR(ctx := new_context(), parse_module(text, ctx), WeightStore(), "control")
        interpreter = Interpreter(program.module, program.store)
        want = [interpreter.run({f"x{i}": a for i, a in enumerate(xs)}) for xs in runs]
        run_pipeline(program.module, steps, store=program.store)
        lowered = harness.lower(program)
        vmfb = IreeCompiler(use_worker=False).compile(
            lowered.bytecode, harness.compile_flags(), timeout=300
        )
        module = LoadedModule(
            vmfb,
            lowered.params,
            inputs=lowered.inputs,
            outputs=lowered.outputs,
            device="local-sync",
        )
        for _ in range(2):
            for xs, expected in zip(runs, want, strict=True):
                got = module.run(xs)
                for i, (a, b) in enumerate(zip(got, expected, strict=True)):
                    assert a.dtype == b.dtype
                    note = harness.difference(a, b)
                    shapes = [x.shape for x in xs]
                    assert not note, f"result {i} of {shapes} after {len(steps)} passes: {note}"


# ---- branches ------------------------------------------------------------------------------------

YES, NO = np.array(True), np.array(False)


def test_branches_of_run_time_dims() -> None:
    """A captured value and one from inside, of other extents; read again behind the branch."""
    check(
        """
func.func @main(%c: tensor<i1>, %x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %r = "migraphx.if"(%c) ({
    "migraphx.yield"(%x) : (tensor<?xf32>) -> ()
  }, {
    %0 = "migraphx.concat"(%y, %x) {axis = 0 : i64} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %1 = "migraphx.neg"(%0) : (tensor<?xf32>) -> tensor<?xf32>
    "migraphx.yield"(%1) : (tensor<?xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32>
  %s = "migraphx.add"(%r, %r) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %t = "migraphx.concat"(%s, %r, %x) {axis = 0 : i64} : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %s, %t : tensor<?xf32>, tensor<?xf32>
}""",
        *(
            (c, ramp(a), ramp(b))
            for n in (3, 200_000)
            for c, a, b in ((YES, n, n + 1), (NO, n, n + 1), (NO, 0, n), (YES, 0, n))
        ),
    )


def test_nested_branches_of_several_types() -> None:
    check(
        """
func.func @main(%c: tensor<1xi1>, %d: tensor<i1>, %x: tensor<2x3xf32>, %k: tensor<2xi64>, %m: tensor<2xi1>)
    -> (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi1>) {
  %u = "migraphx.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0, %1, %2 = "migraphx.if"(%c, %x, %k) ({
  ^bb0(%a: tensor<2x3xf32>, %i: tensor<2xi64>):
    %3, %4 = "migraphx.if"(%d) ({
      %5 = "migraphx.mul"(%a, %u) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      "migraphx.yield"(%5, %i) : (tensor<2x3xf32>, tensor<2xi64>) -> ()
    }, {
      %6 = "migraphx.mul"(%i, %i) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
      "migraphx.yield"(%u, %6) : (tensor<2x3xf32>, tensor<2xi64>) -> ()
    }) : (tensor<i1>) -> (tensor<2x3xf32>, tensor<2xi64>)
    "migraphx.yield"(%3, %4, %m) : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xi1>) -> ()
  }, {
  ^bb0(%a: tensor<2x3xf32>, %i: tensor<2xi64>):
    %7 = "migraphx.slice"(%u) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %8 = "migraphx.literal"() {value = dense<[7, 8]> : tensor<2xi64>} : () -> tensor<2xi64>
    %9 = "migraphx.not"(%m) : (tensor<2xi1>) -> tensor<2xi1>
    "migraphx.yield"(%7, %8, %9) : (tensor<1x3xf32>, tensor<2xi64>, tensor<2xi1>) -> ()
  }) : (tensor<1xi1>, tensor<2x3xf32>, tensor<2xi64>) -> (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi1>)
  return %0, %1, %2 : tensor<?x3xf32>, tensor<2xi64>, tensor<2xi1>
}""",
        *(
            (np.array([c]), np.array(d), ramp(2, 3), np.array([3, -4]), np.array([True, False]))
            for c in (True, False)
            for d in (True, False)
        ),
    )


def test_extents_out_of_a_branch() -> None:
    """Scalars of the host that differ by branch are dims of what follows, several results."""
    check(
        """
func.func @main(%c: tensor<i1>, %x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<1xi64>) {
  %d = "migraphx.dimensions_of"(%x) {end = 1 : i64, start = 0 : i64} : (tensor<?xf32>) -> tensor<1xi64>
  %two = "migraphx.literal"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %n = "migraphx.if"(%c) ({
    "migraphx.yield"(%d) : (tensor<1xi64>) -> ()
  }, {
    %0 = "migraphx.mul"(%d, %two) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
    "migraphx.yield"(%0) : (tensor<1xi64>) -> ()
  }) : (tensor<i1>) -> tensor<1xi64>
  %one = "migraphx.literal"() {value = dense<1.5> : tensor<1xf32>} : () -> tensor<1xf32>
  %f = "migraphx.broadcast_with_dims"(%one, %n) : (tensor<1xf32>, tensor<1xi64>) -> tensor<?xf32>
  %e = "migraphx.exp"(%f) : (tensor<?xf32>) -> tensor<?xf32>
  %g = "migraphx.concat"(%e, %x) {axis = 0 : i64} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %e, %g, %n : tensor<?xf32>, tensor<?xf32>, tensor<1xi64>
}""",
        *((c, ramp(n)) for n in (4, 150_000) for c in (YES, NO)),
        (NO, ramp(0)),
    )


# ---- loops ---------------------------------------------------------------------------------------


def test_counted_loop_with_captures() -> None:
    """A run-time number of iterations; the iteration number and an integer are host scalars."""
    check(
        """
func.func @main(%n: tensor<i64>, %x: tensor<2x3xf32>, %w: tensor<3x3xf32>)
    -> (tensor<2x3xf32>, tensor<i64>, tensor<?x2x3xf32>, tensor<?xi64>) {
  %true = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %zero = "migraphx.literal"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %u = "migraphx.transpose"(%w) {permutation = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %r:4 = "migraphx.loop"(%n, %true, %x, %zero) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2x3xf32>, %k: tensor<i64>):
    %0 = "migraphx.dot"(%v, %u) : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %1 = "migraphx.add"(%0, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = "migraphx.tanh"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = "migraphx.mul"(%i, %i) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %4 = "migraphx.add"(%k, %3) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "migraphx.yield"(%c, %2, %4, %0, %4) : (tensor<i1>, tensor<2x3xf32>, tensor<i64>, tensor<2x3xf32>, tensor<i64>) -> ()
  }) {max_iterations = 10 : i64, scan_output_directions = array<i64: 0, 1>, padded = false}
    : (tensor<i64>, tensor<i1>, tensor<2x3xf32>, tensor<i64>) -> (tensor<2x3xf32>, tensor<i64>, tensor<?x2x3xf32>, tensor<?xi64>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<2x3xf32>, tensor<i64>, tensor<?x2x3xf32>, tensor<?xi64>
}""",
        *((np.array(n), ramp(2, 3), ramp(3, 3)) for n in (0, 1, 4, 23, -2)),
    )


# until the sum of what grows by one element in each iteration passes the limit
GROWING = """
func.func @main(%n: tensor<i64>, %start: tensor<i1>, %x: tensor<?xf32>, %limit: tensor<1xf32>)
    -> (tensor<?xf32>, tensor<?x1xf32>, tensor<i64>) {
  %zero = "migraphx.literal"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "migraphx.literal"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %r:3 = "migraphx.loop"(%n, %start, %x, %zero) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<?xf32>, %k: tensor<i64>):
    %0 = "migraphx.concat"(%v, %limit) {axis = 0 : i64} : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
    %1 = "migraphx.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<1xf32>
    %2 = "migraphx.less"(%1, %limit10) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %3 = "migraphx.convert"(%2) {target_type = i1} : (tensor<1xf32>) -> tensor<1xi1>
    %4 = "migraphx.squeeze"(%3) {axes = array<i64: 0>} : (tensor<1xi1>) -> tensor<i1>
    %5 = "migraphx.add"(%k, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "migraphx.yield"(%4, %0, %5, %1) : (tensor<i1>, tensor<?xf32>, tensor<i64>, tensor<1xf32>) -> ()
  }) {max_iterations = 10 : i64, scan_output_directions = array<i64: DIRECTION>, padded = false}
    : (tensor<i64>, tensor<i1>, tensor<?xf32>, tensor<i64>) -> (tensor<?xf32>, tensor<i64>, tensor<?x1xf32>)
  return %r#0, %r#2, %r#1 : tensor<?xf32>, tensor<?x1xf32>, tensor<i64>
}"""


@pytest.mark.parametrize("direction", [0, 1])
def test_carried_dims_change_and_the_loop_ends_early(direction: int) -> None:
    text = GROWING.replace("DIRECTION", str(direction)).replace(
        "%r:3 =",
        '%ten = "migraphx.literal"() {value = dense<40.0> : tensor<1xf32>} : () -> tensor<1xf32>\n'
        '  %limit10 = "migraphx.mul"(%limit, %ten) : (tensor<1xf32>, tensor<1xf32>)'
        " -> tensor<1xf32>\n  %r:3 =",
    )
    one, most = np.ones(1, F), np.array(2**63 - 1)
    check(
        text,
        (most, YES, np.ones(2, F), one),
        (most, YES, np.ones(0, F), one),
        (np.array(3), YES, np.ones(5, F), one),
        (most, NO, np.ones(5, F), one),
        (np.array(0), YES, np.ones(5, F), one),
        (np.array(100), YES, np.ones(70_000, F), -one),
    )


@pytest.mark.parametrize("early", [False, True])
def test_scan_elements_of_run_time_dims(early: bool) -> None:
    """Rows whose extents only the body knows, forward and backward, of floats and bools."""
    going = "%q" if early else "%c"
    check(
        """
func.func @main(%n: tensor<1xi32>, %x: tensor<?x2xf32>, %b: tensor<?xi1>)
    -> (tensor<?x2xf32>, tensor<?x?x2xf32>, tensor<?x?xi1>) {
  %true = "migraphx.literal"() {value = dense<true> : tensor<1xi1>} : () -> tensor<1xi1>
  %five = "migraphx.literal"() {value = dense<18> : tensor<1xi64>} : () -> tensor<1xi64>
  %r:4 = "migraphx.loop"(%n, %true, %x, %b) ({
  ^bb0(%i: tensor<1xi64>, %c: tensor<1xi1>, %v: tensor<?x2xf32>, %f: tensor<?xi1>):
    %0 = "migraphx.mul"(%v, %x) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %1 = "migraphx.not"(%f) : (tensor<?xi1>) -> tensor<?xi1>
    %p = "migraphx.less"(%i, %five) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
    %q = "migraphx.convert"(%p) {target_type = i1} : (tensor<1xi64>) -> tensor<1xi1>
    "migraphx.yield"(GOING, %0, %1, %v, %1) : (tensor<1xi1>, tensor<?x2xf32>, tensor<?xi1>, tensor<?x2xf32>, tensor<?xi1>) -> ()
  }) {max_iterations = 10 : i64, scan_output_directions = array<i64: 0, 1>, padded = false}
    : (tensor<1xi32>, tensor<1xi1>, tensor<?x2xf32>, tensor<?xi1>) -> (tensor<?x2xf32>, tensor<?xi1>, tensor<?x?x2xf32>, tensor<?x?xi1>)
  return %r#0, %r#2, %r#3 : tensor<?x2xf32>, tensor<?x?x2xf32>, tensor<?x?xi1>
}""".replace("GOING", going),
        *(
            (np.array([n], np.int32), ramp(d, 2), ramp(d) > 0)
            for n, d in ((0, 3), (1, 2), (7, 3), (40, 2), (33, 1000), (5, 0))
        ),
    )


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("direction", [0, 1])
def test_padded_scan_outputs(early: bool, direction: int) -> None:
    """MIGraphX's form: zeros behind the iterations that ran, at most max_iterations of them."""
    check(
        """
func.func @main(%n: tensor<i64>, %x: tensor<3xf64>, %d: tensor<?xi32>)
    -> (tensor<3xf64>, tensor<6x3xf64>, tensor<6x?xi32>) {
  %true = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %three = "migraphx.literal"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %r:3 = "migraphx.loop"(%n, %true, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<3xf64>):
    %0 = "migraphx.add"(%v, %x) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %1 = "migraphx.less"(%i, %three) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %2 = "migraphx.convert"(%1) {target_type = i1} : (tensor<i64>) -> tensor<i1>
    "migraphx.yield"(GOING, %0, %0, %d) : (tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<?xi32>) -> ()
  }) {max_iterations = 6 : i64, scan_output_directions = array<i64: DIRECTION, DIRECTION>, padded = true}
    : (tensor<i64>, tensor<i1>, tensor<3xf64>) -> (tensor<3xf64>, tensor<6x3xf64>, tensor<6x?xi32>)
  return %r#0, %r#1, %r#2 : tensor<3xf64>, tensor<6x3xf64>, tensor<6x?xi32>
}""".replace("GOING", "%2" if early else "%c").replace("DIRECTION", str(direction)),
        *(
            (np.array(n), ramp(3).astype(np.float64), np.arange(d, dtype=np.int32))
            for n, d in ((1, 2), (3, 2), (6, 3), (100, 1))
        ),
    )


def test_loops_in_loops_and_branches_in_loops() -> None:
    check(
        """
func.func @main(%n: tensor<i64>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<?x?x4xf32>) {
  %true = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %one = "migraphx.literal"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %two = "migraphx.literal"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %r:2 = "migraphx.loop"(%n, %true, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<4xf32>):
    %m = "migraphx.add"(%n, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %s:2 = "migraphx.loop"(%m, %true, %v) ({
    ^bb0(%j: tensor<i64>, %e: tensor<i1>, %w: tensor<4xf32>):
      %0 = "migraphx.add"(%i, %j) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %1 = "migraphx.fmod"(%0, %two) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %2 = "migraphx.convert"(%1) {target_type = i1} : (tensor<i64>) -> tensor<i1>
      %3 = "migraphx.if"(%2) ({
        %4 = "migraphx.add"(%w, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "migraphx.yield"(%4) : (tensor<4xf32>) -> ()
      }, {
        %5 = "migraphx.sin"(%w) : (tensor<4xf32>) -> tensor<4xf32>
        "migraphx.yield"(%5) : (tensor<4xf32>) -> ()
      }) : (tensor<i1>) -> tensor<4xf32>
      "migraphx.yield"(%e, %3, %3) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> ()
    }) {max_iterations = 10 : i64, scan_output_directions = array<i64>, padded = false}
      : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32>)
    "migraphx.yield"(%c, %s#0, %s#1) : (tensor<i1>, tensor<4xf32>, tensor<?x4xf32>) -> ()
  }) {max_iterations = 10 : i64, scan_output_directions = array<i64>, padded = false}
    : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> (tensor<4xf32>, tensor<?x?x4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<?x?x4xf32>
}""",
        *((np.array(n), ramp(4)) for n in (0, 1, 5)),
    )


def test_a_carried_input_is_not_written_over() -> None:
    """The first state is an argument, and is read again behind the loop."""
    check(
        """
func.func @main(%x: tensor<5x2xf32>, %row: tensor<1x2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %true = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %n = "migraphx.literal"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
  %r = "migraphx.loop"(%n, %true, %x) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<5x2xf32>):
    %0 = "migraphx.slice"(%v) {axes = array<i64: 0>, starts = array<i64: 1>, ends = array<i64: 5>} : (tensor<5x2xf32>) -> tensor<4x2xf32>
    %1 = "migraphx.concat"(%0, %row) {axis = 0 : i64} : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<5x2xf32>
    "migraphx.yield"(%c, %1) : (tensor<i1>, tensor<5x2xf32>) -> ()
  }) {max_iterations = 10 : i64, scan_output_directions = array<i64>, padded = false}
    : (tensor<i64>, tensor<i1>, tensor<5x2xf32>) -> tensor<5x2xf32>
  %s = "migraphx.sub"(%r, %x) : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  return %r, %s : tensor<5x2xf32>, tensor<5x2xf32>
}""",
        (ramp(5, 2), ramp(1, 2)),
    )


def test_swapped_values_are_not_mixed_up() -> None:
    check(
        """
func.func @main(%n: tensor<i64>, %x: tensor<3xf32>, %y: tensor<3xf32>, %p: tensor<i64>, %q: tensor<i64>)
    -> (tensor<3xf32>, tensor<3xf32>, tensor<i64>, tensor<i64>) {
  %true = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %seven = "migraphx.literal"() {value = dense<7> : tensor<i64>} : () -> tensor<i64>
  %r:4 = "migraphx.loop"(%n, %true, %x, %y, %p, %seven) ({
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %a: tensor<3xf32>, %b: tensor<3xf32>, %k: tensor<i64>, %l: tensor<i64>):
    "migraphx.yield"(%c, %b, %a, %l, %k) : (tensor<i1>, tensor<3xf32>, tensor<3xf32>, tensor<i64>, tensor<i64>) -> ()
  }) {max_iterations = 10 : i64, scan_output_directions = array<i64>, padded = false}
    : (tensor<i64>, tensor<i1>, tensor<3xf32>, tensor<3xf32>, tensor<i64>, tensor<i64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<i64>, tensor<i64>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<3xf32>, tensor<3xf32>, tensor<i64>, tensor<i64>
}""",
        *((np.array(n), ramp(3), -ramp(3), np.array(5), np.array(6)) for n in (0, 1, 2)),
    )
