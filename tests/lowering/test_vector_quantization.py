"""Quantising and dequantising as vector loops: ends, ties, NaN, axes, tails and dynamic extents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mgx_mlir.core import dtypes
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import COMPILES, Programs

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

STEPS = ("rewrite_quantization", "eliminate_convert", "fuse_pointwise_reduce")


@dataclass(frozen=True)
class Site:
    """dims; the axis that scale and zero point vary along, None for one number; what is built."""

    dims: tuple[int, ...]
    axis: int | None = None
    signed: bool = False
    kind: str = "quantise"


sites = st.builds(
    lambda dims, axis, signed, kind: Site(dims, axis and axis % len(dims), signed, kind),
    st.lists(st.integers(1, 70), min_size=1, max_size=3).map(tuple),
    st.one_of(st.none(), st.integers(0, 2)),
    st.booleans(),
    st.sampled_from(("quantise", "dequantise", "again", "turned", "table")),
)
KNOWN = [
    Site((200, 331)),
    Site((2, 5, 7, 9), 1, signed=True, kind="again"),
    Site((3, 64), 1, kind="dequantise"),
    Site((1, 1, 1), signed=True),
    Site((4, 3, 129), 0),
    Site((5, 70, 3), 1, kind="turned"),
    Site((3, 211), kind="table"),
]


def _numbers(rng: np.random.Generator, dims: Sequence[int]) -> np.ndarray:
    """Ties, both ends and beyond, and what is no number."""
    x = (rng.integers(-700, 700, dims) / 2).astype(np.float32)
    special = [np.nan, np.inf, -np.inf, 1e30, -1e30, -0.0, 127.5, 128.5, 1e-40]
    x.flat[rng.integers(0, x.size, min(x.size, 9))] = special[: min(x.size, 9)]
    return x


def _quantised(x: np.ndarray, s: np.ndarray, z: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        y = np.rint(x / s) + z.astype(np.float32)
        info = np.iinfo(z.dtype)
        return np.where(np.isnan(y), 0, np.clip(y, info.min, info.max)).astype(z.dtype)


def _dequantised(q: np.ndarray, s: np.ndarray, z: np.ndarray) -> np.ndarray:
    return (q.astype(np.float32) - z.astype(np.float32)) * s


def _add(made: Programs, site: Site, rng: np.random.Generator) -> None:
    kind = np.int8 if site.signed else np.uint8
    info = np.iinfo(kind)
    own = [1] * len(site.dims)
    if site.axis is not None:
        own[site.axis] = site.dims[site.axis]
    scale = rng.choice(np.array([0.5, 1, 2, 0.7], np.float32), own)
    zero = rng.integers(info.min, info.max + 1, own).astype(kind)
    x = _numbers(rng, site.dims)
    q = rng.integers(info.min, info.max + 1, site.dims).astype(kind)
    turn = [len(site.dims) - 1, *range(len(site.dims) - 1)] if site.kind == "turned" else []
    to = dtypes.INT8 if site.signed else dtypes.UINT8

    table = rng.permutation(256) + info.min
    if site.kind == "table":
        want = table[q.view(np.uint8)].astype(kind)
        made.add(lambda b, x: b.op("byte_table", x, table=table, out_type=to), [q], want, name=site)
        return

    def build(b: Any, x: Any) -> Any:
        s, z = (b.multibroadcast(b.literal(v), site.dims) for v in (scale, zero))
        if site.kind == "turned":
            x = b.transpose(x, permutation=turn)
        if site.kind in ("quantise", "turned"):
            return b.op("quantizelinear", x, s, z, out_type=to)
        value = b.op("dequantizelinear", x, s, z)
        if site.kind == "dequantise":
            return value
        return b.op("quantizelinear", b.op("relu", value), s, z, out_type=to)

    if site.kind in ("quantise", "turned"):
        given = np.ascontiguousarray(x.transpose(np.argsort(turn))) if turn else x
        made.add(build, [given], _quantised(x, scale, zero), name=site)
        return
    value = _dequantised(q, scale, zero)
    if site.kind == "again":
        value = _quantised(np.maximum(value, 0), scale, zero)
    made.add(build, [q], value, name=site)


@pytest.mark.parametrize("arch", ["host", "haswell", "neoverse-v1"])
@COMPILES
@given(st.lists(sites, min_size=7, max_size=7))
@example(KNOWN)
def test_sites(arch: str, drawn: Sequence[Site]) -> None:
    """Every one is a kernel, its numbers those of f32 rounded to even and cut at the ends."""
    made, rng = Programs(), np.random.default_rng(len(drawn))
    for site in drawn:
        _add(made, site, rng)
    made.agree(*STEPS, threads=(1, 2) if arch == "host" else (1,), arch=arch)


@pytest.mark.parametrize("arch", ["host", "haswell"])
@pytest.mark.parametrize("signed", [True, False])
def test_every_byte_is_looked_up(arch: str, signed: bool) -> None:
    """All values, at each place of a register and past the last whole one."""
    made, rng = Programs(), np.random.default_rng(7)
    kind, to = (np.int8, dtypes.INT8) if signed else (np.uint8, dtypes.UINT8)
    for count in (256 * 3, 31, 5, 97):
        q = np.arange(count).astype(np.uint8).reshape(1, -1)
        table = rng.permutation(256) + np.iinfo(kind).min

        def build(b: Any, x: Any, table: np.ndarray = table) -> Any:
            return b.op("byte_table", x, table=table, out_type=to)

        made.add(build, [q.view(kind)], table[q].astype(kind))
    lowered = made.lowered(*STEPS, arch=arch)
    isa = isa_of(arch)
    assert isa is not None
    if isa.looks_up:
        assert (isa.byte_table or isa.byte_row).encode() in lowered.bytecode
    made.compare(lowered)


def test_dynamic_extents() -> None:
    """Dims that only the run knows, none of them and many."""
    made, rng = Programs(), np.random.default_rng(0)
    for dims in ((3, 70), (1, 5), (40, 900)):
        x = _numbers(rng, dims)

        def build(b: Any, x: Any) -> Any:
            return b.op("convert", b.op("nearbyint", x), target_type=dtypes.INT8)

        made.add(
            build, [x], _quantised(x, np.ones(1, np.float32), np.zeros(1, np.int8)), fixed=False
        )
    made.agree(*STEPS)
