"""exp on vectors of f32 for arguments of at most 0 (softmax), sigmoid and tanh.

exp is 2^i * p(f) with a polynomial of degree 5 on [-0.5, 0.5] (relative error below 1e-7). AVX-512
multiplies by 2^i in one instruction, which takes care of infinity and 0: 11 instructions. Elsewhere
i is added to the exponent, 14 instructions, and below -87.3 the result is 0. NaN stays NaN.

tanh is x p(x^2) / q(x^2) (relative error below 4e-7, and never beyond 1).
"""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa, current_isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder

LOG2E = 1.4426950408889634
MAGIC = 12582912.0  # 1.5 * 2^23: added, it rounds to an integer that is then in the low bits
LOWEST = -87.3  # exp of less is subnormal
# coefficients of 2^f, highest power first: least error on Chebyshev nodes, and exp(0) is exactly 1
COEFFICIENTS = (
    1.32647296e-3,
    9.67151299e-3,
    5.55073358e-2,
    2.40222424e-1,
    6.93147004e-1,
    1.0,
)

OVERFLOW = 88.72283172607422  # the largest f32 with a finite exp in f32
ENOUGH, NOTHING = 89.0, -104.0  # exp of more is infinity in f32, exp of less is 0
_ROUNDING = 4  # rounding mode of the instruction: MXCSR's, the CPU's default
LOG2E_REST = 1.925963033500011e-08  # log2(e) minus its f32 rounding
TANH_END = 9.0  # tanh of more is 1
# least relative error on (0, 9], lowest power first
TANH_TOP = (0.999999941, 0.1291923, 2.92076351e-3, 9.2674369e-6, -1.2780491e-8, 1.82553795e-11)
TANH_BOTTOM = (1.0, 0.462525138, 2.37631754e-2, 2.28100436e-4)


def exp(k: WorkgroupBuilder, x: ir.Value, rest: float = 0.0) -> ir.Value:
    """e to the power of a vector whose elements are not above 88.7.

    rest: log2(e) minus its f32 rounding, which matters for large elements only.
    """
    lanes = ir.VectorType(x.type).shape[0]

    def c(number: float) -> ir.Value:
        return k.splat(number, lanes)

    scaled = _power(k, x, rest)
    if _scaling(lanes):
        return scaled
    # lanes that are not below, NaN among them: a mask in the form of the CPU's compare
    inside = arith.CmpFOp(10, x, c(LOWEST)).result  # uge
    return arith.SelectOp(inside, scaled, c(0.0)).result


def _scaling(lanes: int) -> Isa | None:
    """Return the instruction set if it multiplies vectors by powers of two."""
    isa = current_isa()
    return isa if isa is not None and isa.scale and lanes % isa.lanes == 0 else None


def _power(k: WorkgroupBuilder, x: ir.Value, rest: float = 0.0) -> ir.Value:
    """e to the power of a vector whose elements are not above 88.7, or above 89 by `_scaling`.

    By `_scaling` it is 0 for what is below `NOTHING`, else that of LOWEST for what is below that.
    """
    lanes = ir.VectorType(x.type).shape[0]
    isa = _scaling(lanes)
    lowest = LOWEST if isa is None else NOTHING

    def c(number: float) -> ir.Value:
        return k.splat(number, lanes)

    below = arith.CmpFOp(4, x, c(lowest)).result  # olt: false for NaN
    clamped = arith.SelectOp(below, c(lowest), x).result
    shifted = k.fma(clamped, c(LOG2E), c(MAGIC))
    whole = arith.SubFOp(shifted, c(MAGIC)).result
    fraction = k.fma(clamped, c(LOG2E), arith.NegFOp(whole).result)
    if rest:
        fraction = k.fma(clamped, c(rest), fraction)
    power = c(COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        power = k.fma(power, fraction, c(coefficient))
    if isa is not None:
        return k.by_registers(isa.lanes, lambda parts: _times_power(k, isa, *parts), power, whole)
    kind = k.vector_type(lanes, dtypes.INT32)
    exponent = arith.BitcastOp(kind, shifted).result
    bits = arith.BitcastOp(kind, power).result
    moved = arith.ShLIOp(exponent, k.splat(23, lanes, dtypes.INT32)).result
    return arith.BitcastOp(x.type, arith.AddIOp(bits, moved).result).result


def _times_power(k: WorkgroupBuilder, isa: Isa, x: ir.Value, n: ir.Value) -> ir.Value:
    """Return x * 2^n of a register, by the CPU's instruction."""
    i16, i32 = (ir.IntegerType.get_signless(bits) for bits in (16, 32))
    lanes, rounding = arith.ConstantOp(i16, -1).result, arith.ConstantOp(i32, _ROUNDING).result
    return k.intrinsic(isa.scale, x.type, x, n, x, lanes, rounding)


def exp_of_any(k: WorkgroupBuilder, x: ir.Value) -> ir.Value:
    """e to the power of any vector of f32: infinity above, and as exact for large arguments."""
    lanes = ir.VectorType(x.type).shape[0]
    if _scaling(lanes):
        far = k.splat(ENOUGH, lanes)
        above = arith.CmpFOp(2, x, far).result  # ogt: false for NaN
        return exp(k, arith.SelectOp(above, far, x).result, rest=LOG2E_REST)
    most = k.splat(OVERFLOW, lanes)
    above = arith.CmpFOp(2, x, most).result  # ogt: false for NaN
    found = exp(k, arith.SelectOp(above, most, x).result, rest=LOG2E_REST)
    return arith.SelectOp(above, k.splat(float("inf"), lanes), found).result


def bounded(k: WorkgroupBuilder, x: ir.Value, most: float) -> ir.Value:
    """Return a vector clamped to [-most, most]; NaN stays NaN."""
    lanes = ir.VectorType(x.type).shape[0]
    high, low = k.splat(most, lanes), k.splat(-most, lanes)
    x = arith.SelectOp(arith.CmpFOp(2, x, high).result, high, x).result  # ogt: false for NaN
    return arith.SelectOp(arith.CmpFOp(4, x, low).result, low, x).result


def sigmoid(k: WorkgroupBuilder, x: ir.Value) -> ir.Value:
    """1 / (1 + e^-x) of any vector of f32; 0 where e^-x is infinity."""
    lanes = ir.VectorType(x.type).shape[0]
    one = k.splat(1.0, lanes)
    total = arith.AddFOp(one, _power(k, arith.NegFOp(x).result)).result
    # any value: it is replaced
    far = arith.CmpFOp(4, x, k.splat(-OVERFLOW, lanes)).result  # olt: false for NaN
    return arith.SelectOp(far, k.splat(0.0, lanes), arith.DivFOp(one, total).result).result


def tanh(k: WorkgroupBuilder, x: ir.Value) -> ir.Value:
    """Return tanh of any vector of f32; exactly 1 and -1 beyond TANH_END, as 1 + tanh needs it."""
    lanes = ir.VectorType(x.type).shape[0]
    above = arith.CmpFOp(2, x, k.splat(TANH_END, lanes)).result  # ogt: false for NaN
    below = arith.CmpFOp(4, x, k.splat(-TANH_END, lanes)).result
    x = bounded(k, x, TANH_END)
    square = arith.MulFOp(x, x).result

    def polynomial(coefficients: tuple[float, ...]) -> ir.Value:
        total = k.splat(coefficients[-1], lanes)
        for c in coefficients[-2::-1]:
            total = k.fma(total, square, k.splat(c, lanes))
        return total

    top = arith.MulFOp(x, polynomial(TANH_TOP)).result
    found = bounded(k, arith.DivFOp(top, polynomial(TANH_BOTTOM)).result, 1.0)
    found = arith.SelectOp(above, k.splat(1.0, lanes), found).result
    return arith.SelectOp(below, k.splat(-1.0, lanes), found).result
