"""One dot or convolution in smaller types, by the rewriting of whole programs, to compare both
forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, attributes_of, mnemonic
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.quantize_int4 import coded, group_of, quantised
from mgx_mlir.programs.build import Builder
from mgx_mlir.quantization.calibrate import Calibration
from mgx_mlir.quantization.eight_bits import Quantiser, Scheme
from mgx_mlir.quantization.four_bits import FourBits, rounded_weights
from mgx_mlir.quantization.ranges import Range
from mgx_mlir.quantization.sensitivity import Narrow
from mgx_mlir.quantization.sites import LeftOut, Place, Site, literal_of


def in_8_bits(scheme: Scheme, ranges: Mapping[Place, Range], seen: Calibration | None) -> Narrow:
    """Return a function that quantises a single op."""
    return lambda site: Quantiser(scheme, ranges, seen).apply(site)


def in_floats(dtype: DType) -> Narrow:
    """Return a function that computes an op in a smaller float type."""

    def narrow(site: Site) -> ir.Value:
        b, op = Builder(), site.op
        wide = TensorType.of(op.results[0]).dtype
        with op.location, ir.InsertionPoint(op):
            operands = [b.op("convert", v, target_type=dtype) for v in op.operands]
            made = OPS[mnemonic(op)](*operands, **attributes_of(op)).operation.results[0]
            return b.op("convert", made, target_type=wide)

    return narrow


def in_int4(group_size: int, found: FourBits | None = None) -> Narrow:
    """Return a function that converts an op's weights to 4 bits, by given codes or by rounding."""
    known = FourBits() if found is None else found

    def narrow(site: Site) -> ir.Value:
        b, op = Builder(), site.op
        found = rounded_weights(site)
        if found is None:
            return op.results[0]
        weights = found.literal
        with op.location, ir.InsertionPoint(op):
            if site.name in known.codes:
                made = coded(b, weights, *known.codes[site.name])
            else:
                group = group_of(weights, group_size) if site.kind == "dot" else 0
                made = quantised(b, weights, group)
            op.operands[1] = found.of(made)
        return op.results[0]

    return narrow


def left_out_of_int4(found: Sequence[Site]) -> list[LeftOut]:
    """List the dots whose weights the pass does not round, with the reasons."""
    out: list[LeftOut] = []
    for site in found:
        weights = site.op.operands[1]
        if rounded_weights(site) is not None:
            continue
        if literal_of(weights) is None:
            why = "its second operand is computed"
        elif site.weights is not None and site.weights.shape[-1] % 2:
            why = "the last extent of its weights is odd, and two share a byte"
        else:
            why = "its weights are not f32, f16 or bf16"
        out.append(LeftOut(site.name, site.kind, why))
    return out
