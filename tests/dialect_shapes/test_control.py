"""Control flow, cache and rotary ops: their regions by the interpreter, their values by loops."""

import numpy as np
import pytest

from mgx_mlir.core.errors import RunError
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.programs.interpreter import Interpreter
from tests.support.ops import CONTEXT, evaluate


def run(text, *arrays):
    module = parse_module(text, CONTEXT)
    inputs = {f"x{i}": np.asarray(a) for i, a in enumerate(arrays)}
    with CONTEXT:
        return Interpreter(module, WeightStore()).run(inputs)


LOOP = """
func.func @main(%n: tensor<i64>, %go: tensor<i1>, %x: tensor<2xf32>, %limit: tensor<i64>)
    -> (tensor<2xf32>, tensor<@ROWSx2xf32>, tensor<@ROWSxi64>) {
  %last, %a, %b = "migraphx.loop"(%n, %go, %x) ({
  ^bb0(%i: tensor<@ONEi64>, %c: tensor<i1>, %v: tensor<2xf32>):
    %sum = "migraphx.add"(%v, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %k = "migraphx.reshape"(%i) {dims = array<i64>} : (tensor<@ONEi64>) -> tensor<i64>
    %less = "migraphx.less"(%k, %limit) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %more = "migraphx.convert"(%less) {target_type = i1} : (tensor<i64>) -> tensor<i1>
    "migraphx.yield"(%more, %sum, %sum, %k)
        : (tensor<i1>, tensor<2xf32>, tensor<2xf32>, tensor<i64>) -> ()
  }) {max_iterations = 4 : i64, scan_output_directions = array<i64: 0, 1>, padded = @PADDED}
    : (tensor<i64>, tensor<i1>, tensor<2xf32>)
      -> (tensor<2xf32>, tensor<@ROWSx2xf32>, tensor<@ROWSxi64>)
  return %last, %a, %b : tensor<2xf32>, tensor<@ROWSx2xf32>, tensor<@ROWSxi64>
}
"""


def loop(text, n, go, limit, one, padded):
    text = text.replace("@ONE", one).replace("@PADDED", str(padded).lower())
    text = text.replace("@ROWS", "4" if padded else "?")
    x = np.array([1, 2], np.float32)
    return run(text, np.int64(n), np.bool_(go), x, np.int64(limit))


@pytest.mark.parametrize("one", ["", "1x"])
@pytest.mark.parametrize(
    ("n", "go", "limit", "ran"),
    [(3, True, 99, 3), (9, True, 1, 2), (0, True, 9, 0), (5, False, 9, 0)],
)
def test_loop(one, n, go, limit, ran):
    last, rows, numbers = loop(LOOP, n, go, limit, one, padded=False)
    np.testing.assert_array_equal(last, np.array([1, 2]) * (ran + 1))
    np.testing.assert_array_equal(rows, [[1 * k, 2 * k] for k in range(2, ran + 2)] or rows[:0])
    assert rows.shape == (ran, 2)
    np.testing.assert_array_equal(numbers, list(range(ran))[::-1])


@pytest.mark.parametrize(("n", "ran"), [(3, 3), (9, 4), (0, 0)])
def test_padded_loop_is_bounded(n, ran):
    last, rows, numbers = loop(LOOP, n, True, 99, "", padded=True)
    np.testing.assert_array_equal(last, np.array([1, 2]) * (ran + 1))
    assert rows.shape == (4, 2)
    assert not rows[ran:].any()
    np.testing.assert_array_equal(numbers[:ran], list(range(ran))[::-1])


IF = """
func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.if"(%c, %x) ({
  ^bb0(%a: tensor<2xf32>):
    "migraphx.yield"(%a) : (tensor<2xf32>) -> ()
  }, {
  ^bb0(%a: tensor<2xf32>):
    %1 = "migraphx.add"(%a, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.mark.parametrize(("cond", "factor"), [(True, 1), (False, 2)])
def test_if(cond, factor):
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(IF, np.bool_(cond), x)[0], x * factor)


SELECT = """
func.func private @two(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
func.func private @three(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "migraphx.neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "migraphx.select_module"(%x) {callees = [@two, @three]} : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""


def test_select_module():
    np.testing.assert_array_equal(run(SELECT, np.ones(2, np.float32))[0], [1, 1])
    np.testing.assert_array_equal(run(SELECT, np.ones(3, np.float32))[0], [-1, -1, -1])
    with pytest.raises(RunError, match=r"none of two, three takes dims \{4\}"):
        run(SELECT, np.ones(4, np.float32))


def test_run_on_target():
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "migraphx.run_on_target"(%x) ({
      ^bb0(%a: tensor<2xf32>):
        %1 = "migraphx.neg"(%a) : (tensor<2xf32>) -> tensor<2xf32>
        "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
      }) {target_id = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    np.testing.assert_array_equal(run(text, np.ones(2, np.float32))[0], [-1, -1])


@pytest.mark.parametrize("new", [1, 3, 5])
def test_concat_past_present(new):
    rng = np.random.default_rng(new)
    chunk = rng.standard_normal((3, 2, new, 4)).astype(np.float32)
    past = rng.standard_normal((3, 2, 8, 4)).astype(np.float32)
    totals = np.array([new, 6, 8])
    want = past.copy()
    for b in range(3):
        for h in range(2):
            for s in range(new):
                row = totals[b] - new + s
                want[b, h, row] = chunk[b, h, s]
    got = evaluate("concat_past_present", chunk, (totals - 1).astype(np.int32), past)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("size", [6, 8])
def test_rotary_embedding_turns_pairs(interleaved, size):
    """Pair j of position p is a complex number, multiplied by exp(i * angle[p, j])."""
    rng = np.random.default_rng(size)
    qkv = rng.standard_normal((2, 5, 3, size))
    angles = rng.standard_normal((9, 3))
    totals = np.array([4, 9])
    want = qkv.copy()
    pairs = [(2 * j, 2 * j + 1) if interleaved else (j, j + 3) for j in range(3)]
    for b, s, j in np.ndindex(2, 3, 3):
        a, c = pairs[j]
        turned = (qkv[b, :4, s, a] + 1j * qkv[b, :4, s, c]) * np.exp(
            1j * angles[totals[b] - 3 + s, j]
        )
        want[b, :4, s, a], want[b, :4, s, c] = turned.real, turned.imag
    got = evaluate(
        "gqa_rotary_embedding",
        qkv,
        (totals - 1).astype(np.int32),
        np.cos(angles),
        np.sin(angles),
        num_heads=3,
        kv_num_heads=1,
        interleaved=interleaved,
    )
    np.testing.assert_allclose(got, want, rtol=1e-12)
