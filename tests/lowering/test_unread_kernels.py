"""Dispatches that nothing reads are erased; code that others launch stays."""

from __future__ import annotations

import pytest

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.iree.outline import drop_unread_kernels, outline_kernels

KERNEL = """({
^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
  "test.code"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> ()
  "flow.return"() : () -> ()
}, {
  %n = arith.constant 1 : index
  "flow.return"(%n, %n, %n) : (index, index, index) -> ()
})"""
LAUNCH = (
    '"flow.dispatch.workgroups"(%x) {} {{launched_for = "", "mgx.launched_for" = "", {}'
    "operandSegmentSizes = array<i32: 0, 1, 0, 0>}} : (tensor<4xf32>) -> tensor<4xf32>"
)
CODE = '"mgx.code" = 0 : i64, '


def module_of(*lines: str) -> ir.Module:
    body = "\n".join(lines)
    return ir.Module.parse(
        f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n}}", ir.Context.current
    )


@pytest.mark.parametrize("read", ["%0", "%1"])
def test_shared_code_moves_to_a_launch_that_is_read(read: str) -> None:
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = module_of(
            "%0 = " + LAUNCH.format(f"({KERNEL[1:-1]})", CODE),
            "%1 = " + LAUNCH.format("({}, {})", CODE),
            '%2 = "tensor.collapse_shape"(%0) {reassociation = [[0]]} '
            ": (tensor<4xf32>) -> tensor<4xf32>",
            f"return {read} : tensor<4xf32>",
        )
        drop_unread_kernels(module)
        outline_kernels(module)
        text = str(module)
    assert text.count("test.code") == 1
    assert text.count('flow.dispatch"') == 1
    assert ("collapse_shape" in text) == (read == "%0")


def test_a_chain_that_nothing_reads_goes() -> None:
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        second = LAUNCH.format(KERNEL, "").replace("(%x)", "(%0)")
        module = module_of(
            "%0 = " + LAUNCH.format(KERNEL, ""), f"%1 = {second}", "return %x : tensor<4xf32>"
        )
        drop_unread_kernels(module)
        assert "test.code" not in str(module)
