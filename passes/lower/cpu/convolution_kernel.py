"""Which convolution kernels become vector loops, and their lowering."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Kernel, Pointwise, is_a, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.passes.lower import views
from mgx_mlir.passes.lower.context import KernelPlan, LoweringContext
from mgx_mlir.passes.lower.cpu import convolution as loops
from mgx_mlir.passes.lower.cpu.epilogue import Epilogue
from mgx_mlir.passes.lower.cpu.isa import AVX512, Isa, isa_of
from mgx_mlir.passes.lower.expr import Leaf
from mgx_mlir.passes.lower.ops.convolution import padded_input

TO_LAST = (0, 2, 3, 1)  # N, C, H, W -> N, H, W, C


def takes(op: Convolution) -> bool:
    """Return whether a convolution among the ops of a program will be a vector kernel."""
    return constant_weights(op.weights) is not None and refusal(op) is None


def refusal(op: Convolution, *, planar: bool = False) -> str | None:
    """Return why no vector kernel computes a convolution, None if one does.

    Of the processor nothing is asked: what fits the widest vectors fits all. planar: the input is
    given as it was before its transpose to channels-last order.
    """
    x, w, out = (TensorType.of(v) for v in (op.input, op.weights, op.out))
    if not op.channels_last or x.rank != 4:
        return "it is no channels-last image"
    if not (x.is_static and w.is_static and out.is_static):
        return "it has run-time dims"
    if x.dtype is not dtypes.FLOAT:
        return f"it computes {x.dtype}"
    if op.group != 1:
        return "it has groups"
    if op.padding_mode != "default_":
        return f"its padding mode is {op.padding_mode}"
    if out.elements == 0 or any(p < 0 for p in op.padding):
        return "it has no elements, or negative padding"
    if out.dims[-1] % 16:
        return f"its {out.dims[-1]} output channels are no multiple of 16"
    if loops.plan(shape_of(op, planar=planar), AVX512) is None:
        return "its rows do not fit the loops"
    return None


def shape_of(op: Convolution, *, planar: bool = False) -> loops.ConvShape:
    """Return the numbers of a static channels-last convolution."""
    x, w, out = (TensorType.of(v).dims for v in (op.input, op.weights, op.out))

    def two(values: Sequence[int]) -> tuple[int, int]:
        first, second = list(values)[:2]
        return first, second

    return loops.ConvShape(
        x[0], two(x[1:3]), x[3], w[3], two(w[:2]), two(op.stride), two(op.dilation),
        two(op.padding), two(out[1:3]), planar,
    )  # fmt: skip


def constant_weights(v: ir.Value) -> ir.Value | None:
    """Return the literal that a convolution's weights are, seen from inside its kernel, or None."""
    owner = v.owner
    if isinstance(owner, ir.Block):
        operation = owner.owner.operation
        if not is_a(operation, Kernel):
            return None
        v = operation.operands[ir.BlockArgument(v).arg_number]
    return v if literals.is_literal(v) else None


def lower(e: LoweringContext, _: ir.Operation, body: ir.Block) -> list[ir.Value] | None:
    """Lower a kernel around one convolution as vector loops; None: it is lowered in another way."""
    anchor, isa = _anchor(body), isa_of(e.options.arch)
    return None if isa is None or anchor is None else _loops(e, anchor, body, isa)


def plan(e: LoweringContext, body: ir.Block) -> KernelPlan:
    """Pad the input of a convolution without loops ahead of its region.

    A pad inside costs half as much again.
    """
    anchor = _anchor(body)
    if isa_of(e.options.arch) is None or anchor is None or not takes(anchor):
        return KernelPlan()
    turned = _transposed_input(anchor)
    if turned is not None:
        e.operation(turned)  # outside of a kernel, so that it is made here
    elif not isinstance(anchor.input.owner, ir.Block):
        return KernelPlan()
    kernel = e.extents(e.tensor(anchor.weights))[:2]
    x = padded_input(e, anchor, e.tensor(anchor.input), kernel, dtypes.FLOAT)
    return KernelPlan(padded_inputs={anchor.out: x})


def _anchor(body: ir.Block) -> Convolution | None:
    return next((o for o in body.operations if isinstance(o, Convolution)), None)


def _loops(
    e: LoweringContext, conv: Convolution, body: ir.Block, isa: Isa
) -> list[ir.Value] | None:
    members = [o.operation for o in body.operations]
    anchor = conv.operation
    turned = _transposed_input(conv)
    source = conv.input if turned is None else turned.operands[0]
    weights = constant_weights(conv.weights)
    if weights is None or not isinstance(source.owner, ir.Block):
        return None
    if refusal(conv, planar=turned is not None) is not None:
        return None
    skipped = [o for o in (anchor, turned) if o is not None]
    if any(o not in skipped and not _is_epilogue(o) for o in members):
        return None
    total = Leaf(TensorType.of(conv.out), conv.out)
    e.bind(conv.out, total)
    with e.kernel():  # pointwise ops wait to be asked for
        for o in members:
            if o not in skipped and not is_a(o, (Literal, Yield)):
                e.operation(o)
        results = [e.expr(v) for v in members[-1].operands]
    epilogue = Epilogue(results, total)
    shape = shape_of(conv, planar=turned is not None)
    cut = loops.plan(shape, isa)
    if epilogue.refusal or cut is None:
        return None
    if shape.inputs > cut.block and results[0].type.dtype is not dtypes.FLOAT:
        return None  # the sums of a channel block are kept in the first result
    return loops.convolution(
        shape, cut, isa, _flat(e, e.tensor(source)), _packed(e, weights, shape, cut, isa),
        epilogue.inputs, [x.type.dtype for x in results], epilogue.emit,
    )  # fmt: skip


def _transposed_input(conv: Convolution) -> ir.Operation | None:
    """Return the op that brings the input in channels-last order, if only that is read."""
    owner = conv.input.owner
    if not is_a(owner, Transpose):
        return None
    only = sum(1 for _ in conv.input.uses) == 1
    return owner if only and tuple(owner.opview.permutation) == TO_LAST else None


def _is_epilogue(o: ir.Operation) -> bool:
    if is_a(o, (Literal, Yield, BroadcastOp)):
        return True
    cls = op_class(o)
    return cls is not None and issubclass(cls, Pointwise) and not cls.raw


def _flat(e: LoweringContext, value: ir.Value) -> ir.Value:
    """Return a tensor as a vector of its elements, ahead of the kernel."""
    count = int(np.prod(ir.RankedTensorType(value.type).shape))
    return views.reshape_tensor(e, value, TensorType(dtypes.FLOAT, (count,)), [count])


def _packed(
    e: LoweringContext, weights: ir.Value, shape: loops.ConvShape, cut: loops.ConvPlan, isa: Isa
) -> ir.Value:
    """Return the weights as a parameter, in the order in which the kernel reads them."""
    array = literals.array_of(weights)
    layout = ("convolution", shape.planar, cut.block, cut.width)
    return e.parameter(e.repacked(array, layout, lambda: loops.pack(array, shape, cut)))
