"""Products with weights of 4 and 8 bits as vector loops: against f64, tails, what follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mgx_mlir.core import dtypes
from mgx_mlir.hardware.machine import has_tile_registers, processor_features
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import COMPILES, Programs, check, compiles_for, execute, kernels_of

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

STEPS = ("pack_weights", "fuse_pointwise_reduce")
# types of codes: signed and unsigned 4 bits and bytes, two f8 types
KINDS = ("i4", "u4", "i8", "u8", "f8e4m3", "f8e5m2")


@dataclass(frozen=True)
class Product:
    """rows x (units of 8) x columns; `block`: units that share a scale, 0 for all."""

    rows: tuple[int, ...]
    units: int
    columns: int
    block: int = 4
    kind: str = "u4"
    zeros: str = "none"
    half: bool = False
    open: bool = False
    after: bool = False


products = st.builds(
    Product,
    st.lists(st.integers(1, 9), min_size=1, max_size=2).map(tuple),
    st.integers(31, 50),
    st.integers(17, 100),
    st.sampled_from((0, 1, 2, 4, 8)),
    st.sampled_from(KINDS),
    st.sampled_from(("none", "whole", "parts", "minima")),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
# one row, the rows that are widened in registers and one more, more depth than scratch holds, a
# workgroup's last row alone, a last block that is shorter
KNOWN = [
    Product((1,), 32, 48),
    Product((1,), 37, 50, kind="i4", zeros="whole", half=True),
    Product((3,), 32, 130, zeros="parts", after=True),
    Product((4,), 40, 20, kind="i8", block=0),
    Product((2, 5), 80, 49, block=16, open=True),
    Product((1, 1), 33, 100, zeros="whole", open=True, after=True),
    Product((1,), 32, 48, kind="f8e4m3"),
    Product((9,), 32, 33, kind="f8e5m2", zeros="whole"),
    Product((2,), 37, 50, zeros="minima", half=True),
    Product((6,), 40, 60, block=16, zeros="minima", half=True),
]


def _codes(rng: np.random.Generator, p: Product, depth: int) -> np.ndarray:
    dims = (depth, p.columns)
    low = {"i4": -8, "u4": 0, "i8": -128, "u8": 0}.get(p.kind)
    if low is None:
        kind = dtypes.FP8E4M3FN if p.kind == "f8e4m3" else dtypes.FP8E5M2
        return rng.normal(0, 2, dims).astype(np.float32).astype(kind.np)
    high = low + (16 if p.kind[1] == "4" else 256)
    return rng.integers(low, high, dims).astype(np.int8 if p.kind[0] == "i" else np.uint8)


def _add(
    made: Programs,
    p: Product,
    rng: np.random.Generator,
    spoil: Callable[[np.ndarray], None] = lambda x: None,
    tolerance: float = 2e-6,
) -> None:
    """Add a product to the programs; `spoil` changes its input."""
    depth = 8 * p.units
    size = 8 * p.block or depth
    count = -(-depth // size)
    codes = _codes(rng, p, depth)
    scales = rng.choice(np.array([0.5, 0.25, 1.5], np.float32), (count, p.columns))
    scales *= 1 if p.half else np.float32(1.0001)
    zeros = np.zeros((count, p.columns), np.float32)
    if p.zeros != "none":
        zeros = rng.integers(0, 8, zeros.shape).astype(np.float32)
        zeros += np.float32(0.3 if p.zeros == "parts" else 0)
    if p.zeros == "minima":
        zeros = -rng.normal(0, 4, zeros.shape).astype(np.float16).astype(np.float32) / scales
    x = rng.normal(0, 1, (*p.rows, depth)).astype(np.float32)
    spoil(x)
    bias = rng.normal(0, 1, (1, p.columns)).astype(np.float32)

    def spread(v: np.ndarray) -> np.ndarray:
        return np.repeat(v, size, 0)[:depth]

    def build(b: Any, x: Any) -> Any:
        if p.kind[1] == "4":
            pairs = codes.reshape(depth // 2, 2, p.columns).view(np.uint8) & 15
            packed = (pairs[:, 0] | pairs[:, 1] << 4).view(codes.dtype)
            w = b.unpack_int4(b.literal(packed), axis=0)
        else:
            w = b.literal(codes)
        w = b.op("convert", w, target_type=dtypes.FLOAT)
        if p.zeros != "none":
            w = b.sub(w, b.literal(spread(zeros)))
        w = b.mul(b.literal(spread(scales)), w)
        if len(p.rows) > 1:
            w = b.multibroadcast(w, [*p.rows[:-1], depth, p.columns])
        y = b.op("dot", x, w)
        if p.after:
            one = b.literal(bias) if len(p.rows) == 1 else b.literal(bias[None])
            y = b.op("relu", b.add(y, b.multibroadcast(one, [*p.rows, p.columns])))
        return y

    weights = (codes.astype(np.float64) - spread(zeros)) * spread(scales)
    with np.errstate(invalid="ignore"):
        want = x.astype(np.float64) @ weights
    want = np.maximum(want + bias, 0) if p.after else want
    made.add(build, [x], want, name=p, tolerance=tolerance)


@pytest.mark.parametrize("arch", ["host", "haswell", "neoverse-v1"])
@COMPILES
@given(st.lists(products, min_size=4, max_size=4))
@example(KNOWN)
def test_products(arch: str, drawn: Sequence[Product]) -> None:
    """Every one is a kernel, and reads no weights but its codes."""
    made, rng = Programs(), np.random.default_rng(len(drawn))
    for p in drawn:
        _add(made, p, rng)
    lowered = made.lowered(*STEPS, arch=arch)
    assert kernels_of(lowered) == len(drawn)
    wide = sum(w.size for w in lowered.params.values() if w.dtype == np.float32)
    assert 3 * wide < sum(8 * p.units * p.columns for p in drawn)
    if arch == "host":
        made.compare(lowered, threads=(1, 2))


# one row to the most that are taken apart, blocks that share a scale of the row and that have
# several, an end of fewer codes, zero points, a dynamic number of rows
TAKEN_APART = [
    Product((1,), 65, 515),
    Product((3,), 64, 512, block=16, zeros="whole", after=True),
    Product((2,), 67, 520, block=0, kind="i4", half=True),
    Product((1,), 69, 512, block=5, zeros="whole"),
    Product((1, 1), 64, 530, block=1, kind="i4", zeros="whole", open=True, after=True),
    Product((3,), 66, 512, zeros="parts", half=True),
    Product((1,), 64, 530, kind="i8", half=True, after=True),
    Product((2,), 67, 520, block=0, kind="u8", zeros="whole"),
    Product((1, 3), 65, 515, block=5, kind="i8"),
    Product((1,), 67, 520, zeros="minima", half=True),
    Product((2,), 65, 515, zeros="minima", half=True),
    Product((3,), 66, 530, block=16, zeros="minima", half=True, after=True),
    Product((1, 1), 64, 530, block=1, zeros="minima", half=True, open=True),
]


def _infinite(x: np.ndarray) -> None:
    x[0, 40] = -np.inf


def _none(x: np.ndarray) -> None:
    x[0, 40], x[1, 500] = np.nan, np.inf


def _outliers(x: np.ndarray) -> None:
    x[..., 7:80:32] *= np.float32(1e4)
    x[..., 128:192] = 0


def _small(x: np.ndarray) -> None:
    x *= np.float32(1e-25)
    x[..., 64:96] *= np.float32(1e-15)


SPOILED: tuple[Callable[[np.ndarray], None], ...] = (
    _infinite, _outliers, _none, _small, _outliers, _outliers, _outliers, _small, _small,
    _infinite, _none, _outliers, _small,
)  # fmt: skip


@pytest.mark.parametrize("arch", ["host", "haswell", "neoverse-v1"])
def test_rows_taken_apart(arch: str) -> None:
    """Digits of 8 bits times codes: as exact as f32, beside outliers, NaN and infinities, too."""
    made, rng = Programs(), np.random.default_rng(5)
    for p, spoil in zip(TAKEN_APART, SPOILED, strict=True):
        # sums of codes of 8 bits have up to 28 bits, and become f32
        _add(made, p, rng, spoil, 4e-7 if p.kind[1] == "4" else 1e-6)
    lowered = made.lowered(*STEPS, arch=arch)
    isa = isa_of(arch)
    assert isa is not None
    # bytes by bytes would saturate where two products are added; other bytes have zero points
    by_bytes = [p for p in TAKEN_APART if p.kind == "i8"]
    apart = len(by_bytes) if isa.byte_dot else 0
    if isa.byte_dot or isa.byte_pairs:
        apart += sum(p.kind[1] == "4" for p in TAKEN_APART)
    assert kernels_of(lowered) == len(TAKEN_APART) + apart
    if arch == "host" or (arch == "haswell" and "avx2" in processor_features()):
        made.compare(lowered)


@pytest.mark.parametrize("cpu", ["neoverse-v1", "skylake-avx512", "znver5"])
def test_rows_taken_apart_elsewhere(cpu: str) -> None:
    """The loops compile for processors that this host may not be."""
    made = Programs()
    for p in (TAKEN_APART[1], TAKEN_APART[6]):
        _add(made, p, np.random.default_rng(0))
    lowered = made.lowered(*STEPS, arch=cpu)
    assert kernels_of(lowered) == (3 if cpu == "skylake-avx512" else 4)
    assert compiles_for(lowered, cpu)


has_two_digits = not has_tile_registers() and bool((isa := isa_of("host")) and isa.byte_dot)


def _many_rows() -> float:
    """Return the tolerance of many rows by 4 bits, whose numbers may have 16 bits."""
    isa = isa_of("host")
    assert isa is not None
    if has_tile_registers():
        return 8e-6  # parts of the number
    return 8e-5 if isa.byte_dot else 4e-7  # parts of the largest of 32


def test_rows_in_digits_are_the_same_alone() -> None:
    """A dynamic number of rows, to beyond what digits are for: a row does not feel the others."""
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 256, (32, 4112), dtype=np.uint8)
    scales = rng.normal(0, 1, (2, 4112)).astype(np.float32)
    zeros = rng.uniform(4, 12, (2, 4112)).astype(np.float32)
    flat = np.stack([codes & 15, codes >> 4], 1).reshape(64, 4112).astype(np.float64)
    weights = (flat - np.repeat(zeros, 32, 0)) * np.repeat(scales, 32, 0)

    def build(b: Any, x: Any) -> Any:
        return b.op("blocked_dot", x, *map(b.literal, (codes, scales, zeros)), block_size=32)

    made, x = Programs(), rng.normal(0, 1, (11, 64)).astype(np.float32)
    made.add(build, [x[:3]], x[:3] @ weights, types=["tensor<?x64xf32>"], tolerance=4e-7)
    lowered = made.lowered(*STEPS)
    made.compare(lowered)
    few = 3 if has_two_digits else 8  # rows whose numbers have 24 bits
    check(execute(lowered, [x[:few]])[0], x[:few] @ weights, 4e-7, "few rows")
    check(execute(lowered, [x])[0], x @ weights, _many_rows(), "11 rows")
    whole = [execute(lowered, [x[:n]])[0] for n in (few, 11)]
    for first, last in ((0, 1), (2, 4), (0, 3), (1, 6), (0, 8), (3, 10)):
        rows = last - first
        found = execute(lowered, [x[first:last]])[0]
        if rows <= few and last <= few:
            assert np.array_equal(found, whole[0][first:last])
        elif rows > few and has_two_digits:
            assert np.array_equal(found, whole[1][first:last])


# rows and columns that fill no register; a depth in parts, and with a short chunk; bytes; one block
# for the whole depth; rows in several dims
SPLIT = [
    Product((40,), 65, 515),
    Product((3, 11), 64, 530, zeros="parts", after=True),
    Product((65,), 71, 513, block=5, kind="i8", half=True, zeros="whole"),
    Product((24,), 64, 520, block=0, kind="f8e4m3", after=True),
    Product((24,), 64, 520, zeros="minima", half=True),
]


@pytest.mark.parametrize("half", [False, True])
def test_minima_of_16_bits_stay_so(half: bool) -> None:
    """Zero points -m / s that f32 rounds become m again; beside scales in f32 they stay."""
    made = Programs()
    _add(made, Product((1,), 65, 515, zeros="minima", half=half), np.random.default_rng(3))
    found = made.lowered(*STEPS).params.values()
    wide = sum(a.size for a in found if a.dtype == np.float32)
    assert (wide == 0) == half
    halves = sum(a.size for a in found if a.dtype == np.float16)
    assert (halves > 0) == half


@pytest.mark.skipif(not has_tile_registers(), reason="no tile registers of bf16 here")
def test_many_rows_in_tile_registers() -> None:
    """Numbers as sums of two bf16, of 16 bits: sums are off by 8e-6 of the largest."""
    made, rng = Programs(), np.random.default_rng(6)
    for p in SPLIT:
        _add(made, p, rng, tolerance=8e-6)
    lowered = made.lowered(*STEPS)
    assert kernels_of(lowered) == 2 * len(SPLIT)
    made.compare(lowered, threads=(1, 2))


@pytest.mark.skipif(not has_tile_registers(), reason="no tile registers of bf16 here")
def test_a_dynamic_number_of_rows_in_tile_registers() -> None:
    """Rows in digits, and many, of one program; more than a workgroup's.

    A sum of 576 products of up to 8 and more is off by 3e-3 at most: 2e-6 of their magnitudes' sum.
    """
    rng = np.random.default_rng(9)
    codes = rng.integers(0, 256, (288, 520), dtype=np.uint8)
    scales = rng.normal(0, 1, (18, 520)).astype(np.float32)
    flat = np.stack([codes & 15, codes >> 4], 1).reshape(576, 520).astype(np.float64)
    weights = (flat - 8) * np.repeat(scales, 32, 0)

    def build(b: Any, x: Any) -> Any:
        return b.op("blocked_dot", x, *map(b.literal, (codes, scales)), block_size=32)

    made, x = Programs(), rng.normal(0, 1, (530, 576)).astype(np.float32)
    made.add(build, [x], x @ weights, types=["tensor<?x576xf32>"], tolerance=8e-6)
    lowered = made.lowered(*STEPS)
    made.compare(lowered)
    for rows in (0, 1, 8, 9, 31, 33, 512):
        (got,) = execute(lowered, [x[:rows]])
        np.testing.assert_allclose(got, x[:rows] @ weights, rtol=0, atol=6e-3)


# tiles of rows and what is left of them, blocks of several groups and of parts of one, a short end,
# columns that fill no register, rows in several dims
MANY = [
    Product((20,), 65, 515),
    Product((3, 11), 64, 530, zeros="parts", after=True),
    Product((47,), 67, 520, block=0, kind="i4", half=True),
    Product((65,), 71, 513, block=5, half=True, zeros="whole"),
    Product((24,), 66, 512, block=16, zeros="whole"),
    Product((21,), 64, 530, block=1, kind="i4", after=True),
    Product((22,), 65, 515, kind="i8", half=True),
    Product((3, 9), 64, 530, block=5, kind="i8", after=True),
    Product((23,), 66, 515, zeros="minima", half=True),
    Product((3, 7), 64, 530, block=16, zeros="minima", half=True, after=True),
]


def _groups(x: np.ndarray) -> None:
    """Make groups of a row whose sizes are far apart, one of zeros, one too small to divide by."""
    x *= np.float32(10) ** (np.arange(x.shape[-1]) // 32 % 7 - 3)
    x[..., 128:160] = 0
    x[..., 160:192] *= np.float32(1e-35)


@pytest.mark.skipif(not has_two_digits, reason="no instruction for four bytes, or tile registers")
@pytest.mark.parametrize("spoil", [lambda x: None, _groups, _none, _infinite])
def test_many_rows_as_two_digits(spoil: Callable[[np.ndarray], None]) -> None:
    """Numbers are off by half of 1/32639 of the largest of 32; NaN and infinities stay."""
    made, rng = Programs(), np.random.default_rng(6)
    for p in MANY:
        own = spoil if len(p.rows) == 1 else lambda x: None
        _add(made, p, rng, own, tolerance=_many_rows())
    lowered = made.lowered(*STEPS)
    assert kernels_of(lowered) == 2 * len(MANY)
    made.compare(lowered, threads=(1, 2))


@pytest.mark.skipif(not has_two_digits, reason="no instruction for four bytes, or tile registers")
@pytest.mark.parametrize(("bits", "top"), [(16, 32639), (8, 127)])
def test_a_dynamic_number_of_rows_as_digits(bits: int, top: int) -> None:
    """Few rows and many, of one program; more than a workgroup's.

    A number is off by half of largest / top at most, so a sum by less than the sum of |weights|
    times that.
    """
    rng = np.random.default_rng(9)
    codes = rng.integers(0, 256, (288, 520), dtype=np.uint8)
    scales = rng.normal(0, 1, (18, 520)).astype(np.float32)
    flat = np.stack([codes & 15, codes >> 4], 1).reshape(576, 520).astype(np.float64)
    weights = (flat - 8) * np.repeat(scales, 32, 0)

    def build(b: Any, x: Any) -> Any:
        return b.op("blocked_dot", x, *map(b.literal, (codes, scales)), block_size=32)

    made, x = Programs(), rng.normal(0, 1, (530, 576)).astype(np.float32)
    made.add(build, [x], x @ weights, types=["tensor<?x576xf32>"], tolerance=0.7 / top)
    lowered = made.lowered(*STEPS, row_bits=bits)
    made.compare(lowered)
    again = Programs()
    again.add(build, [x], x @ weights, types=["tensor<?x576xf32>"])
    exact = again.lowered(*STEPS, fast_math=False)
    for rows in (0, 1, 8, 9, 31, 33, 512):
        want = x[:rows].astype(np.float64) @ weights
        most = np.abs(x[:rows]).reshape(rows, 18, 32).max(-1)
        within = np.repeat(most, 32, -1) @ np.abs(weights) / (2 * top) + 1e-5 * np.abs(want)
        (got,) = execute(lowered, [x[:rows]])
        assert (np.abs(got - want) <= within).all()
        (got,) = execute(exact, [x[:rows]])
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max(initial=0))


def test_rows_that_the_run_knows() -> None:
    """None, one, and more than a workgroup has, of one program each."""
    for rows in (0, 1, 5, 700):
        rng = np.random.default_rng(rows)
        x = rng.normal(0, 1, (rows, 64)).astype(np.float32)
        codes = rng.integers(0, 256, (32, 80), dtype=np.uint8)
        scales = rng.normal(0, 1, (2, 80)).astype(np.float32)

        def build(b: Any, x: Any, codes: Any = codes, scales: Any = scales) -> Any:
            w = [b.literal(v) for v in (codes, scales)]
            return b.op("blocked_dot", x, *w, block_size=32)

        flat = np.stack([codes & 15, codes >> 4], 1).reshape(64, 80).astype(np.float64) - 8
        made, want = Programs(), x @ (flat * np.repeat(scales, 32, 0))
        made.add(build, [x], want, types=["tensor<?x64xf32>"], name=rows, tolerance=2e-6)
        made.agree("fuse_pointwise_reduce")


def test_plain_loops() -> None:
    """Without vectors of ours, as for processors that they do not know."""
    made, rng = Programs(), np.random.default_rng(3)
    for p in (Product((3,), 16, 40, zeros="whole"), Product((2, 2), 16, 33, kind="i8")):
        _add(made, p, rng)
    made.agree("pack_weights", kernels=0, vector_kernels=False)


@pytest.mark.parametrize("kind", [dtypes.BF16, dtypes.HALF], ids=["bf16", "f16"])
def test_inputs_of_16_bits(kind: dtypes.DType) -> None:
    """Widened where they are read: by one row, by a panel in scratch, and by digits."""
    made, rng = Programs(), np.random.default_rng(0)
    for rows, depth, columns in ((1, 64, 48), (9, 64, 50), (2, 512, 520)):
        codes = rng.integers(0, 256, (depth // 2, columns)).astype(np.uint8)
        scales = rng.choice([0.5, 0.25], (depth // 32, columns)).astype(np.float16)
        x = rng.standard_normal((rows, depth)).astype(kind.np)
        halves = np.stack([codes & 15, codes >> 4], 1).reshape(depth, columns) - 8.0

        def build(b: Any, x: Any, codes: np.ndarray = codes, scales: np.ndarray = scales) -> Any:
            weights = b.literal(codes), b.literal(scales)
            return b.op("blocked_dot", x, *weights, block_size=32, bits=4)

        made.add(build, [x], x.astype(np.float64) @ (halves * np.repeat(scales, 32, 0)))
    lowered = made.lowered("fuse_pointwise_reduce")
    assert kernels_of(lowered) >= len(made.want)  # digits may be a launch of their own
    for found, want in zip(execute(lowered, made.inputs), made.want, strict=True):
        assert found.dtype == kind.np
        check(found, want, 2.0**-8, str(kind))  # half a unit of bf16, rounded once
