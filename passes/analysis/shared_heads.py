"""Heads of an attention that share keys and values: grouped queries, as importers repeat them."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.views import Reshape, Transpose
from mgx_mlir.passes.analysis.attention_form import AttentionForm


@dataclass(frozen=True)
class Repeated:
    """A tensor whose rows several heads of another tensor share."""

    value: ir.Value
    # axis of the other tensor for each axis of `value`, None for an extent of 1
    axes: tuple[int | None, ...]
    axis: int  # axis of the heads in the other tensor
    times: int  # adjacent heads that share a row


def repeated(v: ir.Value, *, converted: bool = False) -> Repeated | None:
    """Return the source of repeated keys or values: [.., heads, times, ..] of [.., heads, 1, ..],
    reshaped to
    [.., heads * times, ..]; None for others.

    converted: a convert may be between.
    """
    order = list(range(TensorType.of(v).rank))
    while is_a(v.owner, (Transpose, Convert) if converted else Transpose):
        if is_a(v.owner, Convert):
            v = v.owner.operands[0]
            continue
        turned = dict(zip(v.owner.opview.permutation, order, strict=True))
        order = [turned[i] for i in range(len(order))]
        v = v.owner.operands[0]
    if not is_a(v.owner, Reshape) or not is_a(v.owner.operands[0].owner, Multibroadcast):
        return None
    whole = v.owner.operands[0]
    source, own = whole.owner.operands[0], TensorType.of(v).dims
    dims, small = TensorType.of(whole).dims, TensorType.of(source).dims
    axis = next((i for i, (a, b) in enumerate(zip(own, dims, strict=False)) if a != b), len(own))
    if axis + 1 >= len(dims) or len(small) != len(dims):
        return None
    times = dims[axis + 1]
    if own != (*dims[:axis], dims[axis] * times, *dims[axis + 2 :]):
        return None
    if small != (*dims[: axis + 1], 1, *dims[axis + 2 :]):
        return None
    axes = [*order[: axis + 1], None, *order[axis + 1 :]]
    return Repeated(source, tuple(axes), order[axis], times)


def shared_heads(form: AttentionForm, *, converted: bool = False) -> Repeated | None:
    """Return how heads share keys, and values likewise; None where they do not."""
    operands = (form.product.owner.operands[1], form.output.owner.operands[1])
    found = [repeated(v, converted=converted) for v in operands]
    keys, values = found
    if keys is None or values is None or (keys.axis, keys.times) != (values.axis, values.times):
        return None
    return keys if keys.axis < len(form.lead) else None


__all__ = ["Repeated", "repeated", "shared_heads"]
