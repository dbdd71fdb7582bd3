"""Dot weights in 4 bits, with codes chosen by the inputs of samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.repeated import Repeated, repeated
from mgx_mlir.passes.quantize_int4 import Grid, coded, fits, group_of
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.quantization.calibrate import Progress, watch
from mgx_mlir.quantization.gptq import SecondMoments, compensated
from mgx_mlir.quantization.samples import Sample
from mgx_mlir.quantization.sites import Place, Site, sites

_ROOM = 2 << 30  # bytes of sums held at once; for more, the samples run again
Codes = tuple[Grid, np.ndarray]


@dataclass(frozen=True)
class FourBits:
    """Scales and codes of 4-bit weights, by dot."""

    codes: Mapping[str, Codes] = field(default_factory=dict[str, Codes])


def with_compensated_weights(
    base: ProgramIR,
    data: object,
    group_size: int,
    *,
    target: str = "cpu",
    progress: Progress | None = None,
    most: int | None = None,
) -> tuple[ProgramIR, FourBits]:
    """Copy a prepared program with the constant weights of its dots in 4 bits, two per byte.

    Their codes minimise the error of the dots on the samples (`gptq`). Weights of several matrices
    stay, and weights with a single scale. A literal that several dots share gets codes for all of
    them. Errors: those of reading and running samples.
    """
    copy = base.clone()
    shared = _by_literal(sites(base), group_size)
    parts = list(_parts(shared))
    again = list(data) if len(parts) > 1 and isinstance(data, Iterator) else data
    codes: dict[str, Codes] = {}
    for part in parts:
        moments = _moments(base, part, again, target, progress, most)
        for same in part:
            codes |= dict.fromkeys((s.name for s in same), _codes(same, moments, group_size))
    found = sites(copy)
    with copy.ctx, copy.store.active():
        _rewrite(found, codes)
    return copy, FourBits(codes)


def _by_literal(found: Sequence[Site], group_size: int) -> list[list[Site]]:
    """List the dots that get codes; dots with the same literal are together."""
    shared: dict[ir.Value, list[Site]] = {}
    for site in found:
        weights = rounded_weights(site) if site.kind == "dot" else None
        if weights is None:
            continue
        v = weights.literal
        if TensorType.of(v).rank == 2 and group_of(v, group_size):
            shared.setdefault(v, []).append(site)
    return list(shared.values())


def rounded_weights(site: Site) -> Repeated | None:
    """Return the literal with a dot's weights, if it is rounded to 4 bits."""
    weights = site.op.operands[1]
    found = repeated(weights) if site.kind == "dot" else Repeated(weights)
    return found if found is not None and fits(found.literal) else None


def _parts(shared: Iterable[list[Site]]) -> Iterator[list[list[Site]]]:
    """Split the dots by the memory of their inputs' sums."""
    part: list[list[Site]] = []
    sizes: dict[Place, int] = {}
    for same in shared:
        new = {s.values[0]: 4 * _inputs(s) ** 2 for s in same}
        if part and sum((sizes | new).values()) > _ROOM:
            yield part
            part, sizes = [], {}
        part.append(same)
        sizes |= new
    if part:
        yield part


def _inputs(site: Site) -> int:
    return TensorType.of(site.op.operands[1]).dims[-2]


def _moments(
    base: ProgramIR,
    part: Sequence[Sequence[Site]],
    data: object,
    target: str,
    progress: Progress | None,
    most: int | None,
) -> dict[Place, SecondMoments]:
    found = {s.values[0]: SecondMoments() for same in part for s in same}

    def see(_: Sample, values: Sequence[np.ndarray], __: Sequence[np.ndarray]) -> None:
        for sums, array in zip(found.values(), values, strict=True):
            sums.add(array)

    watch(base, list(found), data, see, target=target, progress=progress, most=most)
    return found


def _codes(same: Sequence[Site], moments: dict[Place, SecondMoments], group_size: int) -> Codes:
    every = SecondMoments(np.sum([moments[s.values[0]].sums for s in same], axis=0))
    weights = same[0].weights
    assert weights is not None
    weights_of = rounded_weights(same[0])
    assert weights_of is not None
    group = group_of(weights_of.literal, group_size)
    return compensated(weights, every, group, weights.dtype)


def _rewrite(found: Sequence[Site], codes: dict[str, Codes]) -> None:
    b = Builder()
    made: dict[ir.Value, ir.Value] = {}
    for site in found:
        if site.name not in codes:
            continue
        weights = rounded_weights(site)
        assert weights is not None
        v = weights.literal
        if v not in made:
            literal = v.owner.operation
            with literal.location, ir.InsertionPoint.after(literal):
                made[v] = coded(b, v, *codes[site.name])
        with site.op.location, ir.InsertionPoint(site.op):
            site.op.operands[1] = weights.of(made[v])
