"""Kinds of ops: is_a and names_of by the classes that the dialect's ops derive from."""

import pytest

import mgx_mlir.dialects  # noqa: F401  (defines the ops)
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import (
    OPS,
    BroadcastOp,
    HostOp,
    Kernel,
    Op,
    Pointwise,
    ReduceOp,
    ViewOp,
    is_a,
    is_terminator,
    mnemonic,
    names_of,
    op_class,
)
from mgx_mlir.core.operand_segments import parse_module

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = "migraphx.pointwise"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %2 = "migraphx.relu"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    "migraphx.yield"(%2) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "migraphx.multibroadcast"(%0) {out_lens = array<i64: 2, 4>}
    : (tensor<4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
"""
KINDS = (Kernel, Pointwise, BroadcastOp, ViewOp, ReduceOp, HostOp)


@pytest.fixture
def module():
    return parse_module(TEXT, new_context())


def entry(module):
    return module.body.operations[0].regions[0].blocks[0]


def kinds_of(op):
    return {k for k in KINDS if is_a(op, k)}


def test_ops_and_their_views_are_of_the_kinds_of_their_class(module):
    kernel, wide, end = entry(module).operations
    relu, yielded = kernel.regions[0].blocks[0].operations
    for view, kinds in (
        (kernel, {Kernel}),
        (relu, {Pointwise}),
        (wide, {BroadcastOp, ViewOp}),
        (yielded, {HostOp}),
        (end, set()),
    ):
        assert kinds_of(view) == kinds_of(view.operation) == kinds
        assert is_a(view, (Kernel, Op)) == bool(kinds)
    assert [is_terminator(o) for o in (kernel, end, yielded)] == [False, True, True]
    assert [mnemonic(o) for o in (kernel, relu, end)] == ["pointwise", "relu", "func.return"]
    assert op_class(wide) is OPS["multibroadcast"]


def test_a_block_is_of_no_kind(module):
    owner = entry(module).arguments[0].owner
    assert isinstance(owner, ir.Block)
    assert not is_a(owner, Op)
    assert op_class(owner) is None


def test_a_base_stands_for_the_ops_below_it():
    assert names_of(OPS["add"]) == ["migraphx.add"]
    assert sorted(names_of(BroadcastOp)) == [
        f"migraphx.{n}" for n in ("broadcast", "multibroadcast", "scalar")
    ]
    assert set(names_of(BroadcastOp)) < set(names_of(ViewOp))
    assert sorted(names_of(Op)) == sorted(f"migraphx.{n}" for n in OPS)


def test_every_op_with_a_body_that_is_one_dispatch_is_a_kernel():
    control = {"if", "loop", "run_on_target"}  # the host runs the bodies of these ops
    assert {n for n, cls in OPS.items() if cls.REGIONS} - control == {
        name.removeprefix("migraphx.") for name in names_of(Kernel)
    }
