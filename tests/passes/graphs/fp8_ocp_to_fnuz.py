"""Random programs for the pattern of fp8_ocp_to_fnuz."""

import ml_dtypes
import numpy as np
from pattern_graphs import case

from mgx_mlir.core import dtypes


def side(g, dims):
    """A dequantised f8 value, its specials among the constants."""
    kind = g.pick("fp8e4m3fn", "fp8e4m3fn", "fp8e4m3fn", "fp8e4m3fn", "fp8e5m2", "i8")
    x = g.argument(dims, kind)
    if kind == "fp8e4m3fn" and g.coin(0.3):
        codes = g.numbers.integers(0, 256, dims).astype(np.uint8)
        codes[codes & 0x7F == 0x7F] &= 0xFE if g.coin(0.8) else 0xFF
        x = g.b.literal(codes.view(ml_dtypes.float8_e4m3fn))
    elif kind == "fp8e4m3fn" and g.coin(0.4):  # rounded to f8, beyond its range too
        wide = g.b.mul(g.argument(dims), g.pick(1e-2, 1.0, 600.0))
        by = g.b.multibroadcast(g.constant((), low=0.1, high=2), dims)
        x = g.b.op("quantizelinear", wide, by, out_type=dtypes.FP8E4M3FN)
    scale = g.constant((), g.pick("f32", "f16"), low=0.1, high=2)
    operands = [x, g.b.multibroadcast(scale, dims)]
    if g.coin(0.3):
        zero = g.constant((), kind, value=g.pick(0, 1))
        operands.append(g.b.multibroadcast(zero, dims))
    value = g.b.op("dequantizelinear", *operands)
    if g.b.dtype(value) is not dtypes.FLOAT:
        value = g.b.op("convert", value, target_type=dtypes.FLOAT)
    return value


# the same products, halved and doubled again: only zeros of another sign
@case("match_fp8ocp_convert_to_fp8fnuz", rtol=1e-30, fires=0.4)
def dots(g):
    m, k, n = g.dims(3)
    w = side(g, (n, k))
    return g.b.op("dot", side(g, (m, k)), g.b.op("transpose", w, permutation=[1, 0]))


@case("match_fp8ocp_convert_to_fp8fnuz", rtol=1e-30, fires=0.4)
def convolutions(g):
    x, w = side(g, (1, 2, *g.dims(2, low=2))), side(g, (g.pick(1, 3), 2, 2, 2))
    return g.b.op("convolution", x, w, padding=[g.pick(0, 1)] * 2)
