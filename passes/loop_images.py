"""loop_images: the layers of a net whose activations outgrow the caches, image by image.

A layer of many images writes its result to memory, and the next layer reads it from there. One
image's results stay in the caches. Weights are read again for each image, so layers of many weights
stay outside of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import ClassVar

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Pointwise, attributes_of, is_a, mnemonic, op_class
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.movement import Concat, Pad, Slice
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.views import Squeeze, Transpose, Unsqueeze
from mgx_mlir.passes.analysis.channels_last import to_first, to_last
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.control_flow import values_read
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import entry_block, functions
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.rewrite.pattern import Rule, rule

IMAGES = rule("loop_over_images", "layers(x) -> loop{layers(x[i])}, all results stacked")

# Bytes that are moved to and from memory are what a plan saves. Weights are read in order, ahead of
# their use: on a Zen 5 core a byte of them took half the time of a byte of activations.
WEIGHTS = 0.5
# A result of the loop is copied, for which its new lines are read too, and read behind the loop.
# U-Net's first layers save 51 MB and have results of 16: one image took 4 % longer in a loop.
STACKED = 4
LAUNCH = 64 << 10  # bytes that are moved in the time of a launch
LEAST = 2 << 20  # bytes of an image that pay for a loop: twice the second cache of a core
# bytes of an image that an op may move: layers of ResNet-50 that moved up to 6.4 MB gained on a Zen
# CPU with 32 MB of third cache, layers of U-Net that moved 16.8 MB did not
CACHED = 12 << 20
IMAGE_RANK = 3  # least rank of images, with their number and channels
LAYOUT_RANKS = (3, 4)  # ranks of tensors that get the channels-last order


@dataclass(frozen=True)
class _Plan:
    """The ops that a loop computes, in order, and the values that others read."""

    source: ir.Value
    ops: Sequence[ir.Operation]
    results: Sequence[ir.Value]


@dataclass(frozen=True)
class LoopImages(Pass):
    """Convolutions and what stands between them, from the input on, become a loop over images.

    The input has at least two images, or a dynamic number; its other dims are static. It is the
    program's only one. The loop ends where it saves most: an op counts the bytes of its operands
    and results per image, less half the bytes of its weights. With many threads the images of a
    batch are what they share, so the targets that have these leave the pass out.
    """

    name: ClassVar[str] = "loop_images"
    rules: ClassVar[tuple[Rule, ...]] = (IMAGES,)
    least: int = option(LEAST, "bytes per image that a loop has to save")
    launch: int = option(LAUNCH, "bytes that are moved in the time of a launch")

    def run(self, module: ir.Operation) -> bool:
        found = list(functions(module))
        if not IMAGES.enabled or len(found) != 1:
            return False
        plan = _plan(entry_block(found[0]), self.least, self.launch)
        if plan is None:
            return False
        _build(plan)
        return True


def _plan(block: ir.Block, least: int, launch: int) -> _Plan | None:
    """Return the loop that saves most, None where none saves enough."""
    if len(block.arguments) != 1:
        return None
    source = block.arguments[0]
    t = TensorType.of(source)
    if t.rank < IMAGE_RANK or t.dims[0] in (0, 1) or DYN in t.dims[1:]:
        return None
    region = list(_by_image(block, source))
    places = {op: i for i, op in enumerate(region)}
    live: dict[ir.Value, int] = {}  # bytes of values that ops behind the current one read
    readers: dict[ir.Value, list[int]] = {
        r: [places.get(u.owner.operation, len(region)) for u in r.uses]
        for op in region
        for r in op.results
    }
    saved, best, most = 0.0, least, 0
    kept: list[ir.Value] = []
    for i, op in enumerate(region):
        saved += _saved(op, launch)
        live |= {r: _bytes(r) for r in op.results}
        live = {v: n for v, n in live.items() if max(readers[v], default=i) > i}
        left = saved - STACKED * sum(live.values())
        if left >= best:  # the last of equal ends, behind the pointwise ops of a layer's kernel
            best, most, kept = left, i + 1, list(live)
    if not most:
        if region:
            IMAGES.refused(region[0], "a loop over images saves less than {} bytes", least)
        return None
    return _Plan(source, region[:most], kept)


def _by_image(block: ir.Block, source: ir.Value) -> Iterator[ir.Operation]:
    """Yield the ops on images in order, up to the first op that is not computed image by image."""
    images = {source}
    for view in block.operations:
        op = view.operation
        if not any(v in images for v in values_read(op)):
            continue
        reason = _refusal(op, images)
        if reason is not None:
            IMAGES.refused(op, reason)
            return
        images.update(op.results)
        yield op


def _refusal(op: ir.Operation, images: set[ir.Value]) -> str | None:
    """Return why an op is not computed image by image, None where it is."""
    cls, view = op_class(op), op.opview
    if cls is None or len(op.results) != 1 or len(op.regions):
        return "it is no op of one result"
    out = TensorType.of(op.results[0])
    first = TensorType.of(next(v for v in op.operands if v in images)).dims[0]
    if not out.rank or out.dims[0] != first or DYN in out.dims[1:]:
        return "its first dim is not that of the images, or others are dynamic"
    others = [v for v in op.operands if v not in images]
    if is_a(op, Convolution):
        fits = others == [view.weights] and is_constant(view.weights)
        return None if fits else "its weights are computed"
    if is_a(op, (Broadcast, Multibroadcast)):
        if op.operands[0] in images:
            aligned = is_a(op, Multibroadcast) and TensorType.of(op.operands[0]).rank == out.rank
            return None if aligned else "it moves the dim of the images"
        return None if _is_alike(op) else "it differs between images"
    if issubclass(cls, Pointwise):
        return None if all(map(_repeated, others)) else "an operand differs between images"
    if others:
        return "another operand is not per image"
    return _refusal_of_axes(op, out.rank)


def _refusal_of_axes(op: ir.Operation, rank: int) -> str | None:
    """Return why an op of images alone mixes them, None where it does not."""
    view, attributes = op.opview, attributes_of(op)
    if is_a(op, Pooling):
        return None
    if is_a(op, Concat):
        return None if view.axis % rank else "it concatenates images"
    if is_a(op, Transpose):
        return "it moves the dim of the images" if view.permutation[0] else None
    if is_a(op, Pad):
        pads = attributes["pads"]
        return "it adds images" if pads[0] or pads[len(pads) // 2] else None
    if is_a(op, (NumberReduction, Slice, Squeeze, Unsqueeze)):
        own = max(rank, TensorType.of(op.operands[0]).rank)
        axes = [a % own for a in attributes["axes"] or (0,)]
        return None if all(axes) else "one of its axes is that of the images"
    return "it may mix images"


def _is_alike(op: ir.Operation) -> bool:
    """Return whether a broadcast repeats its operand along the first dim of the result."""
    own, rank = TensorType.of(op.operands[0]), TensorType.of(op.results[0]).rank
    if is_a(op, Broadcast):
        return op.opview.axis > 0
    return own.rank < rank or own.dims[0] == 1


def _repeated(v: ir.Value) -> bool:
    """Return whether a value is a broadcast that is the same for all images."""
    return is_a(v.owner, (Broadcast, Multibroadcast)) and _is_alike(v.owner)


def _bytes(v: ir.Value) -> int:
    """Return the bytes of one image of a value."""
    t = TensorType.of(v)
    return prod(t.dims[1:]) * t.dtype.size


def _saved(op: ir.Operation, launch: int) -> float:
    """Return the bytes per image that an op in the loop saves.

    Pointwise ops are computed where their operand is; of several operands all but one are read.
    What a single image moves beyond CACHED, it moves to and from memory in a loop, too.
    """
    if is_a(op, (Broadcast, Multibroadcast)):
        return 0
    weights = 0.0
    if is_a(op, Convolution):
        t = TensorType.of(op.operands[1])
        moved, weights = [op.operands[0], *op.results], WEIGHTS * t.elements * t.dtype.size
    elif is_a(op, (Pooling, NumberReduction, Concat)):
        moved = [*op.operands, *op.results]
    else:
        read = {v for v in op.operands if not is_a(v.owner, (Broadcast, Multibroadcast))}
        moved, launch = list(op.results) * max(0, len(read) - 1), 0
    total = sum(map(_bytes, moved))
    return (total if total <= CACHED else 0) - weights - launch


def _build(plan: _Plan) -> None:
    """Build the loop at the last of its ops, in place of these."""
    last, b = plan.ops[-1], Builder()
    first = TensorType.of(plan.source).dims[0]
    with ir.InsertionPoint(last), last.location:
        if first == DYN:
            count = b.op("squeeze", b.op("dimensions_of", plan.source, start=0, end=1), axes=[0])
        else:
            count = b.literal(np.int64(first))
        going = b.literal(np.bool_(True))
        made = OPS["loop"](
            count,
            going,
            [],
            results=[_stacked(v) for v in plan.results],
            max_iterations=1 if first == DYN else first,
            padded=first != DYN,
            scan_output_directions=[0] * len(plan.results),
        ).operation
        kinds = [TensorType.of(count).with_dims(()).mlir(), TensorType.of(going).mlir()]
        body = made.regions[0].blocks.append(*kinds, arg_locs=None)
    with ir.InsertionPoint(body), last.location:
        number, condition = body.arguments
        inside = {plan.source: b.op("scan_slice", plan.source, number, axis=0, direction=0)}
        for op in plan.ops:
            with op.location:
                inside[op.results[0]] = _of_one(b, op, inside)
        images = [_turned(b, inside[v], to_last) for v in plan.results]
        OPS["yield"]([condition, *(b.op("squeeze", v, axes=[0]) for v in images)])
    IMAGES.applied(plan.ops[0])
    with ir.InsertionPoint(last), last.location:
        for v, new in zip(plan.results, made.results, strict=True):
            v.replace_all_uses_with(_turned(b, new, to_first))
    for op in reversed(plan.ops):
        op.erase()


def _turned(b: Builder, x: ir.Value, order: Callable[[int], list[int]]) -> ir.Value:
    """Build a value in the order of dims that convolutions have, or back.

    The loop's results have that order, as no pass moves transposes across its border.
    """
    rank = TensorType.of(x).rank
    return b.op("transpose", x, permutation=order(rank)) if rank in LAYOUT_RANKS else x


def _stacked(v: ir.Value) -> TensorType:
    """Return the type of a value's images as the loop returns them."""
    t = TensorType.of(v)
    return t.with_dims(t.dims[i] for i in to_last(t.rank)) if t.rank in LAYOUT_RANKS else t


def _of_one(b: Builder, op: ir.Operation, inside: dict[ir.Value, ir.Value]) -> ir.Value:
    """Build an op of one image; `inside` has the values of the body."""
    if is_a(op, (Broadcast, Multibroadcast)):
        return _broadcast(b, op, inside.get(op.operands[0], op.operands[0]))
    operands = [
        inside[v] if v in inside
        else _broadcast(b, v.owner, v.owner.operands[0]) if _repeated(v)
        else v
        for v in op.operands
    ]  # fmt: skip
    found = attributes_of(op)
    if is_a(op, Concat):
        return b.op(mnemonic(op), operands, **found)
    return b.op(mnemonic(op), *operands, **found)


def _broadcast(b: Builder, op: ir.Operation, x: ir.Value) -> ir.Value:
    """Build a broadcast of `x` to the dims of one image."""
    dims = [1, *TensorType.of(op.results[0]).dims[1:]]
    if is_a(op, Broadcast):
        return b.op("broadcast", x, axis=op.opview.axis, out_lens=dims)
    return b.op("multibroadcast", [x], out_lens=dims)
