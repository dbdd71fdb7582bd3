"""Error of each dot or convolution in a smaller type, from one run that computes both forms of
all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.compiler.compile import compile
from mgx_mlir.core import dtypes, interrupts
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.programs.taps import with_results
from mgx_mlir.quantization.bodies import lifted, values_of
from mgx_mlir.quantization.samples import Sample
from mgx_mlir.quantization.sites import Site, at_places, sites

_MOST = 4  # number of samples
Narrow = Callable[[Site], ir.Value]  # function that returns the op's new value


@dataclass(frozen=True)
class Sensitivity:
    """Similarity of a dot or convolution in smaller types to its own result, on equal operands."""

    name: str
    kind: str  # kind of op: "dot" or "convolution"
    sqnr: float  # power of the result over that of the difference, in decibels
    cosine: float  # cosine of the angle between the two results


def sensitivities(
    base: ProgramIR,
    wanted: Sequence[Site],
    narrow: Narrow,
    given: Sequence[Sample],
    target: str,
) -> list[Sensitivity]:
    """Measure all dots and convolutions of a prepared program on the first samples, in order.

    narrow: converts a copy of an op to smaller types, in place.
    """
    names = {s.name for s in wanted}
    copy = base.clone()
    found = [s for s in sites(copy, computed_operands=True) if s.name in names]

    def choose(block: ir.Block) -> list[tuple[str, ir.Value]]:
        ops = [v.owner.operation for v in at_places(block, results)]
        rows = [_powers(op, site, narrow) for op, site in zip(ops, found, strict=True)]
        sums = lifted(block, [v for row in rows for v in row])
        return [(f"power_{i}", v) for i, v in enumerate(sums)]

    with copy.ctx:
        places = {v: i for i, v in enumerate(values_of(entry_block(copy.main())))}
        results = [places[s.op.results[0]] for s in found]
    if not found:
        return []
    compiled = compile(with_results(copy, choose), target)
    own = len(compiled.signature.outputs) - 3 * len(found)
    sums = np.zeros((len(found), 3))
    for sample in given[:_MOST]:
        interrupts.check()
        found_sums = compiled.execute(compiled.check_inputs(sample))
        numbers = np.array([float(np.asarray(a).sum()) for a in found_sums[own:]])
        sums += numbers.reshape(-1, 3)
    return [_measured(s, *map(float, row)) for s, row in zip(found, sums, strict=True)]


def _measured(site: Site, power: float, noise: float, product: float) -> Sensitivity:
    """Return the figures from sums of y y, (q - y)(q - y) and q y."""
    if not math.isfinite(noise):  # the smaller type overflows
        return Sensitivity(site.name, site.kind, -math.inf, 0.0)
    rounded = noise + 2 * product - power  # estimate of q q
    sqnr = math.inf if noise <= 0 else 10 * math.log10(max(power, 1e-30) / noise)
    scale = math.sqrt(max(power, 0.0) * max(rounded, 0.0))
    cosine = product / scale if scale else 1.0
    return Sensitivity(site.name, site.kind, sqnr, min(cosine, 1.0))


def _powers(op: ir.Operation, site: Site, narrow: Narrow) -> list[ir.Value]:
    """Build the op again in smaller types, and the sums that compare the two."""
    b = Builder()
    with op.location:
        with ir.InsertionPoint.after(op):
            twin = op.clone()
        narrowed = narrow(Site(site.name, site.kind, twin, site.values, site.weights))
        with ir.InsertionPoint.after(narrowed.owner):
            values = (op.results[0], narrowed)
            y, q = (b.op("convert", v, target_type=dtypes.DOUBLE) for v in values)
            axes = list(range(TensorType.of(y).rank))
            less = b.op("sub", q, y)
            pairs = ((y, y), (less, less), (q, y))
            return [
                b.op("reduce_sum", b.op("mul", first, second), axes=axes)
                for first, second in pairs
            ]  # fmt: skip
