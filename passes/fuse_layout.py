"""fuse_layout: kernels that read their input in the order it has, in place of a transposed copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.passes import PatternPass
from mgx_mlir.core.pattern import Pattern, defined_by, has_one_use, no_match, pattern
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.kernel_ops import Known, copy_ops, make_kernel

TO_LAST = [0, 2, 3, 1]  # N, C, H, W -> N, H, W, C
MAX_CHANNELS = 8  # more are read faster channels-last, where those of a pixel are neighbours


@pattern("group")
def find_planar_convolution(op: Any, rw: Any) -> Any:
    """group of convolution(group of transpose(x)) -> group of convolution(transpose(x))

    For the few channels of a model's input, which a vector kernel copies row by row anyhow.
    """
    from mgx_mlir.passes.lower.vector.conv_kernel import constant_weights, refusal

    kernel = op.operation
    if op.tag != "convolution":
        return no_match("it is no kernel of a convolution")
    body = kernel.regions[0].blocks[0]
    conv: Any = next(o for o in body.operations if o.operation.name == "migraphx.convolution")
    argument = conv.input
    if not isinstance(argument.owner, ir.Block) or not has_one_use(argument):
        return no_match("the convolution does not read an operand of the kernel by itself")
    place = ir.BlockArgument(argument).arg_number
    copied = kernel.operands[place]
    inner = _transpose(copied)
    if inner is None or not has_one_use(copied):
        return no_match("the input is no transposed copy that only this kernel reads")
    channels = TensorType.of(argument).dims[-1]
    if not 0 < channels <= MAX_CHANNELS:
        return no_match("{} channels are not few", channels)
    if constant_weights(conv.weights) is None:
        return no_match("the weights are no constant")
    reason = refusal(conv, planar=True)
    if reason is not None:
        return no_match("it is no vector kernel: {}", reason)
    rw.merge_location(copied.owner)
    inputs = list(kernel.operands)
    inputs[place] = copied.owner.operands[0]
    members = [o.operation for o in body.operations]

    def build(arguments: list[ir.Value]) -> list[ir.Value]:
        known: Known = dict(zip(body.arguments, arguments, strict=True))
        known[inner.operands[0]] = arguments[place]
        del known[argument]
        copy_ops([inner], known)
        known[argument] = known[inner.results[0]]
        copy_ops(members[:-1], known)
        return [known[v] for v in members[-1].operands]

    types = [r.type for r in kernel.results]
    return list(make_kernel("group", inputs, types, build, tag="convolution").results)


def _transpose(v: ir.Value) -> ir.Operation | None:
    """The op of a kernel that only brings its operand in channels-last order."""
    group = defined_by(v, "group")
    if group is None or group.tag != "transpose":
        return None
    first, *rest = [o.operation for o in group.operation.regions[0].blocks[0].operations]
    only = first.name == "migraphx.transpose" and [o.name for o in rest] == ["migraphx.yield"]
    return first if only and list(first.opview.permutation) == TO_LAST else None


@dataclass(frozen=True)
class FuseLayout(PatternPass):
    """Kernels of a target with vector loops read what was transposed for them as it is."""

    name: ClassVar[str] = "fuse_layout"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_planar_convolution,)
