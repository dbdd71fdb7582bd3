"""normalize_ops: one spelling for each op: axes from the front, bounds in range, full padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import mnemonic, op_class
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.rewrite.passes import Pass

# op -> (attribute, whose rank it counts in: an operand's number, or "result")
_AXES: dict[str, tuple[str, int | str]] = {
    **dict.fromkeys(
        (
            "flatten", "gather", "softmax", "logsoftmax", "argmax", "argmin", "topk",
            "prefix_scan_sum", "concat", "scatter_none", "scatter_add", "scatter_mul",
            "scatter_min", "scatter_max", "scan_slice", "unique", "pack_int4", "unpack_int4",
            "pack_fp4", "unpack_fp4", "quantizelinear", "dequantizelinear",
        ),
        ("axis", 0),
    ),
    "onehot": ("axis", "result"),
    **dict.fromkeys(
        (
            "squeeze", "slice", "step", "reverse", "reduce_sum", "reduce_mean", "reduce_max",
            "reduce_min", "reduce_prod", "reduce_all", "reduce_any",
        ),
        ("axes", 0),
    ),
    "unsqueeze": ("axes", "result"),
}  # fmt: skip
_PADDED = frozenset(
    ("convolution", "quant_convolution", "convolution_backwards", "pooling", "im2col")
)


@dataclass(frozen=True)
class NormalizeOps(Pass):
    """Count axes from the front, clamp slice bounds, write padding as begins and ends."""

    name: ClassVar[str] = "normalize_ops"

    def run(self, module: ir.Operation) -> bool:
        changed = False

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal changed
            name = mnemonic(op)
            if (name in _AXES or name in _PADDED) and op_class(op) is not None:
                changed |= normalize(name, op.opview)
            return ir.WalkResult.ADVANCE

        module.walk(visit)
        return changed


def normalize(name: str, op: Any) -> bool:
    """Write an op's attributes in their one form; whether any was written otherwise."""
    before = dict(op.attributes.items())
    if name in _AXES:
        attribute, of = _AXES[name]
        definition = type(op).ATTRS.get(attribute)
        value = getattr(op, attribute) if definition is not None else None
        if value is not None:
            rank = TensorType.of(op.results[0] if of == "result" else op.operands[of]).rank
            if attribute == "axis":
                # an axis may be one past the last (flatten): it stays
                op.axis = value + rank if value < 0 else value
            else:
                op.axes = [a + rank if a < 0 else a for a in value]
    if name == "slice":
        _normalize_slice(op)
    if name in _PADDED:
        _normalize_padding(op)
    return dict(op.attributes.items()) != before


def _normalize_slice(op: Any) -> None:
    """Bounds in [0, extent] where the extent is known; ends not before starts."""
    axes, starts, ends = op.axes, op.starts, op.ends
    dims = TensorType.of(op.operands[0]).dims
    if axes is None or starts is None or ends is None or not len(axes) == len(starts) == len(ends):
        return  # some come as operands
    extents = [dims[a] for a in axes]
    if DYN in extents:
        return
    bounds = [slice(s, e).indices(n) for s, e, n in zip(starts, ends, extents, strict=True)]
    op.starts = [b[0] for b in bounds]
    op.ends = [max(b[0], b[1]) for b in bounds]


def _normalize_padding(op: Any) -> None:
    padding: Sequence[int] | None = op.padding
    spatial = TensorType.of(op.operands[0]).rank - 2
    if padding is not None and len(padding) == spatial and spatial > 0:
        op.padding = [*padding, *padding]
