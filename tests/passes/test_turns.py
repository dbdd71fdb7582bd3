"""Cost of the passes: unchanged programs are not visited twice."""

from __future__ import annotations

import pytest
from evaluate import CONTEXT

from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.core.type_cache import MEMO, remembering
from mgx_mlir.rewrite.passes import run_pipeline

NOTHING = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.tanh"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
TWICE = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = "migraphx.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
"""  # noqa: E501


def passes_run(text: str) -> list[str]:
    """The passes that optimize_module runs, in order, without the prefix."""
    module = parse_module(text, CONTEXT)
    how = run_pipeline(module.operation, ["optimize_module"], store=WeightStore())
    return [t.name.removeprefix("mgx-") for t in how.timings if t.depth]


def test_each_pass_runs_once_where_nothing_changes() -> None:
    found = passes_run(NOTHING)
    assert len(found) == len(set(found))
    assert {"simplify-reshapes", "simplify-algebra", "propagate-constant"} < set(found)


def test_a_pass_runs_again_only_after_others_changed_something() -> None:
    found = passes_run(TWICE)
    assert found.count("simplify-reshapes") == 1  # iterates until nothing changes
    assert found.count("simplify-algebra") == 1


def test_readings_are_remembered_and_forgotten() -> None:
    with CONTEXT:
        kind = ir.Type.parse("tensor<2x3xf32>")
    with remembering():
        first = TensorType.of(kind)
        with remembering():
            assert TensorType.of(kind) is first
        assert TensorType.of(kind) is first
    assert MEMO.get() is None
    assert TensorType.of(kind) == first
    with pytest.raises(ZeroDivisionError), remembering():
        raise ZeroDivisionError
    assert MEMO.get() is None
