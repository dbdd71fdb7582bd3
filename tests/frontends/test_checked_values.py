"""Operators of the domain `mgx_mlir.torch`: checks that programs of PyTorch hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.core.errors import MgxError, RunError

DOMAIN = "mgx_mlir.torch"
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


def model(*nodes: Any, rows: int | str = 4, constants: tuple[Any, ...] = ()) -> onnx.ModelProto:
    """A model of indices `i` and a table `t`, whose result is `y`."""
    graph = helper.make_graph(
        list(nodes), "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"]),
         helper.make_tensor_value_info("t", TensorProto.FLOAT, [rows, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], list(constants),
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets)


def within(*inputs: str, **attributes: Any) -> Any:
    return helper.make_node(
        "Within", inputs, ["checked"], domain=DOMAIN, operator="aten.f", **attributes
    )


GATHER = helper.make_node("Gather", ["t", "checked"], ["y"])
HALF = [
    helper.make_node("Add", ["i", "i"], ["twice"]),
    helper.make_node("Sub", ["twice", "i"], ["j"]),
]


@pytest.mark.parametrize("rows", [4, "rows"])
@pytest.mark.parametrize("before", [[], HALF])
@pytest.mark.parametrize("wraps", [0, 1])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_indices_outside_of_a_dim_are_errors(
    rows: int | str, before: list[Any], wraps: int, target: str
) -> None:
    """Inputs, and what a run computes, of known and of dynamic dims."""
    check = within("j" if before else "i", "t", dim=0, wraps=wraps)
    program: Any = mgx_mlir.compile(model(*before, check, GATHER, rows=rows), target=target)
    right = np.array([0, 3, -4 if wraps else 1])
    [found] = program.run([right, TABLE])
    np.testing.assert_array_equal(found, TABLE[right])
    for wrong in (4, -5 if wraps else -1):
        with pytest.raises(RunError, match=r"aten\.f"):
            program.run([np.array([0, wrong]), TABLE])


def test_limits_may_be_a_number_or_open() -> None:
    five = helper.make_tensor("five", TensorProto.INT64, [], [3])
    for below, wrong, right in (("five", 3, 2), ("", -2, 9)):
        check = within("i", "", below, low=-1)
        last = helper.make_node("Cast", ["checked"], ["y"], to=TensorProto.FLOAT)
        program: Any = mgx_mlir.compile(model(check, last, constants=(five,)), target="ref")
        assert program.run([np.array([-1, right]), TABLE])[0].tolist() == [-1, right]
        with pytest.raises(RunError, match=r"aten\.f: input 'i' expected indices"):
            program.run([np.array([wrong]), TABLE])


@pytest.mark.parametrize(("wraps", "wrong"), [(0, -1), (0, 4), (1, -5), (1, 4)])
def test_a_constant_outside_is_refused(wraps: int, wrong: int) -> None:
    known = helper.make_tensor("known", TensorProto.INT64, [1], [wrong])
    check = within("known", "t", dim=0, wraps=wraps)
    with pytest.raises(MgxError, match=f"got {wrong}"):
        mgx_mlir.compile(model(check, GATHER, constants=(known,)), target="ref")


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_a_condition_that_does_not_hold_is_an_error(target: str) -> None:
    nodes = [
        helper.make_node("ReduceSum", ["i"], ["sum"], keepdims=0),
        helper.make_node("Require", ["t", "sum"], ["u"], domain=DOMAIN, expected="a sum"),
        helper.make_node("Identity", ["u"], ["y"]),
    ]
    program: Any = mgx_mlir.compile(model(*nodes), target=target)
    np.testing.assert_array_equal(program.run([np.array([1, 2]), TABLE])[0], TABLE)
    with pytest.raises(RunError, match="the model's assertion to hold: a sum"):
        program.run([np.array([2, -2]), TABLE])
