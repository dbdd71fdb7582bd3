"""Products of 8-bit integers as vector loops: exact sums, what follows, instructions and tails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mgx_mlir
from mgx_mlir.core import dtypes
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import COMPILES, ELSEWHERE, Programs, compiles_for, kernels_of
from tests.support.models import parsed

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

STEP = "fuse_pointwise_reduce{weighted=true}"
# the one at hand; one with an instruction for pairs, and one for none, whose code runs here too
ARCHS = ("host", "haswell", "a64fx")


@dataclass(frozen=True)
class Product:
    """rows x depth x columns; `ends`: the operands are the ends of their types alone; `near`: most
    weights are small, so that products of two can be summed in 16 bits."""

    rows: tuple[int, ...]
    depth: int
    columns: int
    signed: bool = False
    ends: bool = False
    open: bool = False
    after: str = "nothing"
    near: bool = False


products = st.builds(
    Product,
    st.lists(st.integers(1, 19), min_size=1, max_size=2).map(tuple),
    st.integers(1, 40),
    st.integers(1, 130),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(("nothing", "dequantised", "quantised")),
    st.booleans(),
)
# the ends of both types over a long depth, tails of every kind, one row
KNOWN = [
    Product((9,), 1023, 48, ends=True),
    Product((9,), 1024, 49, signed=True, ends=True),
    Product((1,), 64, 200, signed=True, after="quantised"),
    Product((13,), 515, 70, near=True),
    Product((7,), 131, 33, signed=True, near=True),
    Product((2, 3), 5, 17, open=True, after="dequantised"),
    Product((33,), 31, 96, signed=True, open=True, after="quantised"),
]


def _drawn(rng: np.random.Generator, dims: Sequence[int], dtype: Any, ends: bool) -> np.ndarray:
    info = np.iinfo(dtype)
    if ends:
        return rng.choice(np.array([info.min, info.max], dtype), dims)
    return rng.integers(info.min, info.max + 1, dims).astype(dtype)


def _add(made: Programs, p: Product, rng: np.random.Generator) -> None:
    x = _drawn(rng, (*p.rows, p.depth), np.int8 if p.signed else np.uint8, p.ends)
    w = _drawn(rng, (p.depth, p.columns), np.int8, p.ends)
    if p.near and not p.ends:
        w = np.clip(np.rint(rng.standard_normal(w.shape) * 40), -128, 127).astype(np.int8)
        x[..., :] = rng.choice(np.array([np.iinfo(x.dtype).min, np.iinfo(x.dtype).max]), x.shape)
    scale = rng.uniform(1e-4, 1e-3, p.columns).astype(np.float32)
    bias = rng.integers(-(1 << 20), 1 << 20, p.columns).astype(np.int32)
    sums = np.matmul(x.astype(np.int64), w.astype(np.int64)) + bias
    want = sums.astype(np.float32) * scale
    is_dynamic = p.open and len(p.rows) == 1
    if is_dynamic:
        want = (sums - bias).astype(np.float32)
    elif p.after == "nothing":
        want = sums
    elif p.after == "quantised":
        want = np.clip(np.rint(want) + 7, 0, 255)
    dims = (*p.rows, p.columns)
    kind = f"tensor<{'x'.join('?' if is_dynamic else str(d) for d in p.rows)}x{p.depth}x"
    kind += "i8>" if p.signed else "ui8>"

    def build(b: Any, x: Any) -> Any:
        def along(v: np.ndarray) -> Any:
            return b.multibroadcast(b.literal(v), dims)

        matrix = b.literal(w)
        if len(p.rows) > 1:
            matrix = b.multibroadcast(matrix, (*p.rows[:-1], p.depth, p.columns))
        total = b.op("quant_dot", x, matrix)
        if is_dynamic:
            return b.op("convert", total, target_type=dtypes.FLOAT)
        total = b.add(total, along(bias))
        if p.after == "nothing":
            return total
        value = b.mul(b.op("convert", total, target_type=dtypes.FLOAT), along(scale))
        if p.after == "dequantised":
            return value
        moved = b.add(b.op("nearbyint", value), 7.0)
        return b.op("convert", moved, target_type=dtypes.UINT8)

    made.add(build, [x], want, types=[kind], name=p)


@pytest.mark.parametrize("arch", ARCHS)
@COMPILES
@given(st.lists(products, min_size=6, max_size=8))
@example(KNOWN)
def test_products(arch: str, drawn: Sequence[Product]) -> None:
    """Every sum is exact, whatever the instruction; what follows is that of f32."""
    made, rng = Programs(), np.random.default_rng(len(drawn))
    for p in drawn:
        _add(made, p, rng)
    made.agree(STEP, threads=(1, 2) if arch == "host" else (1,), arch=arch)


@dataclass(frozen=True)
class Computed:
    """lead.. x (rows x depth by depth x columns), both operands computed; open: all but depth."""

    lead: tuple[int, ...]
    rows: int
    depth: int
    columns: int
    signed: bool = False
    ends: bool = False
    open: tuple[int, ...] = ()  # dims of (lead.., row, depth, column) that the run chooses


# tails of every kind, parts of a long depth, one row, heads of attention with dynamic lengths
PAIRS = [
    Computed((2,), 17, 67, 51),
    Computed((), 9, 2001, 49, ends=True),
    Computed((2, 3), 33, 64, 40, signed=True),
    Computed((), 70, 1030, 100, signed=True, ends=True),
    Computed((3,), 1, 5, 130),
    Computed((2, 2), 21, 45, 64, open=(0, 2, 3)),
    Computed((1, 3), 13, 32, 29, signed=True, open=(0, 2, 4)),
    Computed((2,), 5, 1500, 33, open=(1, 2)),
]


def _add_pair(made: Programs, p: Computed, rng: np.random.Generator) -> None:
    x = _drawn(rng, (*p.lead, p.rows, p.depth), np.int8 if p.signed else np.uint8, p.ends)
    y = _drawn(rng, (*p.lead, p.depth, p.columns), np.int8, p.ends)
    sums = np.matmul(x.astype(np.int64), y.astype(np.int64))
    n = len(p.lead)

    def kind(dims: Sequence[int], places: Sequence[int], dtype: str) -> str:
        shown = ["?" if i in p.open else str(d) for i, d in zip(places, dims, strict=True)]
        return f"tensor<{'x'.join([*shown, dtype])}>"

    types = [
        kind(x.shape, range(n + 2), "i8" if p.signed else "ui8"),
        kind(y.shape, [*range(n), n + 1, n + 2], "i8"),
    ]

    def build(b: Any, x: Any, y: Any) -> Any:
        total = b.op("convert", b.op("quant_dot", x, y), target_type=dtypes.FLOAT)
        return b.op("neg", total)

    made.add(build, [x, y], -sums.astype(np.float32), types=types, name=p)


def test_computed_operands() -> None:
    """Products of two run-time operands are exact, and have what follows them in their kernel."""
    if not (isa := isa_of("host")) or not isa.byte_dot:
        pytest.skip("the host has no instruction for four bytes")
    made, rng = Programs(), np.random.default_rng(0)
    for p in PAIRS:
        _add_pair(made, p, rng)
    made.agree("fuse_pointwise_reduce{weighted=true computed=true}", threads=(1, 2))


@pytest.mark.parametrize("cpu", ["neoverse-v1", "icelake-server", "alderlake"])
def test_computed_operands_compile_elsewhere(cpu: str) -> None:
    """Also where the instruction takes the other sign, or half of the lanes."""
    made = Programs()
    _add_pair(made, PAIRS[0], np.random.default_rng(0))
    lowered = made.lowered("fuse_pointwise_reduce{weighted=true computed=true}", arch=cpu)
    assert kernels_of(lowered) == 1
    assert compiles_for(lowered, cpu)


@pytest.mark.parametrize("cpu", ELSEWHERE)
def test_compiles_elsewhere(cpu: str) -> None:
    """The loops compile for processors that this host may not be."""
    made = Programs()
    _add(made, Product((9,), 30, 70, signed=True), np.random.default_rng(0))
    lowered = made.lowered(STEP, arch=cpu)
    assert kernels_of(lowered) == 1
    assert compiles_for(lowered, cpu)


@pytest.mark.parametrize("zeros", [False, True])
def test_dynamic_batches_share_one_weight(zeros: bool) -> None:
    """A weight of rank 2 is not repeated over a batch that only the run knows."""
    rng = np.random.default_rng(0)
    w = rng.integers(-128, 128, (33, 40)).astype(np.int8)
    p = np.uint8(131)
    q = rng.integers(-9, 9, 40).astype(np.int8) if zeros else np.int8(0)
    text = "(uint8[b,t,c,33] x) => (int32[b,t,c,40] y) { y = MatMulInteger (x, w, p, q) }"
    program = mgx_mlir.compile(parsed(text, {"w": w, "p": p, "q": q}), "cpu", cache=False)
    assert program.stats.unnamed_dynamic_dims is None
    assert zeros or len(program.kernels) == 1  # otherwise the sums of rows are another kernel
    for lead in ((2, 3, 4), (1, 1, 1), (5, 1, 7), (1, 0, 3)):
        x = rng.integers(0, 256, (*lead, 33)).astype(np.uint8)
        want = (x.astype(np.int64) - p) @ (w.astype(np.int64) - q)
        np.testing.assert_array_equal(program.run({"x": x})[0], want)
