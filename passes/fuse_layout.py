"""fuse_layout: kernels read and write transposed layouts, instead of transposed copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast
from mgx_mlir.dialects.migraphx.fused import Group, PointwiseKernel
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.passes.analysis.kernel_ops import Known, copy_body, copy_ops, make_kernel
from mgx_mlir.passes.fusion.plan import CHEAP
from mgx_mlir.passes.lowering import select
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import (
    Pattern,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

TO_LAST = [0, 2, 3, 1]  # N, C, H, W -> N, H, W, C
TO_FIRST = [0, 3, 1, 2]
# with more, channels-last is read faster, as the channels of a pixel are contiguous
MAX_CHANNELS = 8


@pattern(Group)
def find_planar_convolution(op: Group, rw: Rewriter) -> Replacement:
    """group of convolution(group of transpose(x)) -> group of convolution(transpose(x))

    For the few channels of a model's input, which a vector kernel copies row by row in any case.
    """
    kernel = op.operation
    if rw.options.gathered:
        return no_match("it is for vector kernels")
    if op.tag not in ("convolution", "quant_convolution"):
        return no_match("it is not the kernel of a convolution")
    body = kernel.regions[0].blocks[0]
    conv = _convolution(body)
    argument = conv.input
    if not isinstance(argument.owner, ir.Block) or not has_one_use(argument):
        return no_match("the convolution does not read an operand of the kernel by itself")
    place = ir.BlockArgument(argument).arg_number
    copied = kernel.operands[place]
    inner = _transpose(copied)
    if inner is None or not has_one_use(copied):
        return no_match("the input is not a transposed copy with this kernel as its only reader")
    channels = TensorType.of(argument).dims[-1]
    if not 0 < channels <= MAX_CHANNELS:
        return no_match("{} channels are not few", channels)
    reason = select.refusal("cpu", "convolution", conv, planar=True)
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
    return list(make_kernel("group", inputs, types, build, tag=op.tag).results)


@pattern(Group)
def find_convolution_of_planes(op: Group, rw: Rewriter) -> Replacement:
    """group of transpose(group of convolution(group of transpose(x))) -> one group of all three

    For depthwise convolutions and those of 1x1: no neighbour wants the image channels-last.
    """
    outer = op.operation
    if rw.options.gathered:
        return no_match("it is for vector kernels")
    if op.tag != "transpose" or len(outer.operands) != 1:
        return no_match("it is no transposed copy")
    result = outer.operands[0]
    made = defined_by(result, Group)
    if made is None or made.tag != "convolution" or not has_one_use(result):
        return no_match("it does not copy a convolution with it as the only reader")
    kernel, last = made.operation, outer.regions[0].blocks[0].operations[0].operation
    body = kernel.regions[0].blocks[0]
    conv = _convolution(body)
    if len(kernel.results) != 1 or not _permutes(last, TO_FIRST):
        return no_match("it has several results, or is not transposed to planes")
    argument = conv.input
    if not isinstance(argument.owner, ir.Block) or not has_one_use(argument):
        return no_match("the convolution does not read an operand of the kernel by itself")
    place = ir.BlockArgument(argument).arg_number
    copied = kernel.operands[place]
    if _transpose(copied) is None or not has_one_use(copied):
        return no_match("the input is not a transposed copy with this kernel as its only reader")
    weights = conv.weights
    others = [a for a in body.arguments if a not in (argument, weights)]
    if any(d != 1 for a in others for d in TensorType.of(a).dims[:-1]):
        return no_match("another operand is a channels-last image")
    if any(o.axis != TO_LAST.index(1) for o in body.operations if isinstance(o, Broadcast)):
        return no_match("another operand differs between pixels")
    reason = select.refusal("cpu", "planes", conv)
    if reason is not None:
        return no_match("the kernel does not read planes: {}", reason)
    rw.merge_location(copied.owner)
    rw.merge_location(kernel)
    inputs = list(kernel.operands)
    inputs[place] = copied.owner.operands[0]

    def build(arguments: list[ir.Value]) -> list[ir.Value]:
        own = list(arguments)
        (own[place],) = copy_body(copied.owner, [arguments[place]])
        return copy_body(outer, copy_body(kernel, own))

    types = [r.type for r in outer.results]
    return list(make_kernel("group", inputs, types, build, tag=made.tag).results)


@pattern(Group)
def find_gathered_convolution(op: Group, rw: Rewriter) -> Replacement:
    """group of convolution(pointwise or transpose(x)) -> group of convolution(x), read through it

    For 16-bit images of few channels. Their windows do not fill matrix instructions, so the kernel
    gathers single elements, in any layout.
    """
    kernel = op.operation
    if not rw.options.gathered:
        return no_match("the target gathers no windows")
    if op.tag != "convolution":
        return no_match("it is not the kernel of a convolution")
    body = kernel.regions[0].blocks[0]
    conv = _convolution(body)
    weights = conv.weights
    constant = isinstance(weights.owner, ir.Block) and defined_by(
        kernel.operands[ir.BlockArgument(weights).arg_number], Literal
    )
    if not constant or not has_one_use(weights) or not isinstance(conv, Convolution):
        return no_match("the convolution has no constant weights of its own")
    reason = select.refusal("gpu", "gathered_convolution", conv)
    if reason is not None:
        return no_match("the convolution does not gather its windows: {}", reason)
    argument = _read_through(conv.input)
    if argument is None or not has_one_use(argument):
        return no_match("the convolution does not read an operand of the kernel by itself")
    place = ir.BlockArgument(argument).arg_number
    made = defined_by(kernel.operands[place], Group, PointwiseKernel)
    if made is None or not has_one_use(kernel.operands[place]):
        return no_match("the input is not made by a kernel with this one as its only reader")
    first = made.operation
    costly = [o for o in list(first.regions[0].blocks[0].operations)[:-1] if not _is_cheap(o)]
    if costly or len(first.results) != 1:
        return no_match("that kernel computes more than a convert, or several results")
    rw.merge_location(first)
    inputs = [*kernel.operands]
    inputs[place : place + 1] = first.operands
    members = [o.operation for o in body.operations]

    def build(arguments: list[ir.Value]) -> list[ir.Value]:
        count = len(first.operands)
        own = [*arguments[:place], *arguments[place + count :]]
        (image,) = copy_body(first, arguments[place : place + count])
        own.insert(place, image)
        known: Known = dict(zip(body.arguments, own, strict=True))
        copy_ops(members[:-1], known)
        return [known[v] for v in members[-1].operands]

    types = [r.type for r in kernel.results]
    return list(make_kernel("group", inputs, types, build, tag="convolution").results)


@pattern(Group)
def find_transposed_result(op: Group, rw: Rewriter) -> Replacement:
    """group of transpose(group of matmul(x)) -> group of transpose(matmul(x))

    A lane has adjacent pixels of one channel, so storing a planar result is not slower.
    """
    kernel = op.operation
    if not rw.options.gathered:
        return no_match("it is for vector kernels")
    if op.tag != "transpose" or len(kernel.operands) != 1:
        return no_match("it is no transposed copy")
    copied = kernel.operands[0]
    made = defined_by(copied, Group)
    if made is None or made.tag not in ("convolution", "dot") or not has_one_use(copied):
        return no_match("it does not copy a matmul or convolution with it as the only reader")
    first = made.operation
    result = TensorType.of(copied)
    if len(first.results) != 1 or not result.is_static or result.rank == 3:
        # windows of one axis are tiled only if the region has no other op
        return no_match("the kernel has other results, dynamic sizes, or one axis")
    rw.merge_location(first)

    def build(arguments: list[ir.Value]) -> list[ir.Value]:
        return copy_body(kernel, copy_body(first, arguments))

    types = [r.type for r in kernel.results]
    return list(make_kernel("group", list(first.operands), types, build, tag=made.tag).results)


def _convolution(body: ir.Block) -> Convolution | QuantConvolution:
    kinds = (Convolution, QuantConvolution)
    return next(o for o in body.operations if isinstance(o, kinds))


def _read_through(v: ir.Value) -> ir.Value | None:
    """Return the kernel's only operand that a value depends on, through pointwise ops and
    transposes.
    """
    while not isinstance(v.owner, ir.Block):
        if len(v.owner.operands) != 1:
            return None
        v = v.owner.operands[0]
    return v


def _is_cheap(op: ir.OpView) -> bool:
    """Return whether an op is cheap enough to be recomputed for each window of an element."""
    return is_a(op, (Transpose, Literal, BroadcastOp, *CHEAP))


def _transpose(v: ir.Value) -> ir.Operation | None:
    """Return the transpose of a kernel that only converts its operand to channels-last order."""
    group = defined_by(v, Group)
    if group is None or group.tag != "transpose":
        return None
    first, *rest = [o.operation for o in group.operation.regions[0].blocks[0].operations]
    return first if len(rest) == 1 and _permutes(first, TO_LAST) else None


def _permutes(op: ir.Operation, permutation: list[int]) -> bool:
    """Return whether an op is a transpose by a permutation."""
    return is_a(op, Transpose) and list(op.opview.permutation) == permutation


@dataclass(frozen=True)
class FuseLayout(PatternPass):
    """Take transposes and converts into the kernels of matmuls and convolutions beside them."""

    name: ClassVar[str] = "fuse_layout"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_convolution_of_planes,
        find_planar_convolution,
        find_gathered_convolution,
        find_transposed_result,
    )
    gathered: bool = option(False, "for kernels that gather windows; else for vector kernels")
