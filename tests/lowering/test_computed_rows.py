"""Rows that a matmul of packed weights computes where it splits them into digits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mgx_mlir.hardware.machine import has_tile_registers
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.programs.lowered import Lowered
from tests.lowering.programs import Programs, execute, text_of

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

KERNELS = ("name_dynamic_dims", "fuse_pointwise_reduce", "forget_dynamic_dims")
STEPS = (*KERNELS[:2], "fuse_rows", KERNELS[2])
DEPTH, COLUMNS, BLOCK = 288, 260, 32
Build = Callable[[Any, Any], Any]
isa = isa_of("host")
has_digits = isa is not None and bool(isa.byte_dot) and not has_tile_registers()
needs_digits = pytest.mark.skipif(not has_digits, reason="no instruction for four bytes here")


def _launches(lowered: Lowered) -> int:
    """Return the number of kernels that are launched: IREE drops slices that none reads."""
    return len(re.findall(r'"flow.dispatch"\(.*@kernel_dispatch_(?!\d+_slice)', text_of(lowered)))


def _weights(rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Operands of blocked_dot after its input, and the matrix that they are."""
    codes = rng.integers(0, 256, (DEPTH // 2, COLUMNS), dtype=np.uint8)
    scales = rng.normal(0, 1, (DEPTH // BLOCK, COLUMNS)).astype(np.float32)
    flat = np.stack([codes & 15, codes >> 4], 1).reshape(DEPTH, COLUMNS).astype(np.float64)
    return [codes, scales], (flat - 8) * np.repeat(scales, BLOCK, 0)


def _multiplied(b: Any, x: Any, weights: list[np.ndarray]) -> Any:
    return b.op("blocked_dot", x, *map(b.literal, weights), block_size=BLOCK)


def _norm(b: Any, x: Any, scale: np.ndarray) -> Any:
    """RMSNorm, whose input is added to what follows, as in a decoder."""
    dims = b.dims(x)
    mean = b.op("reduce_mean", b.mul(x, x), axes=[len(dims) - 1])
    inverse = b.op("rsqrt", b.add(mean, _like(b, b.literal(np.float32(1e-5)), mean)))
    return b.mul(_like(b, b.literal(scale), x), b.mul(x, _like(b, inverse, x)))


def _like(b: Any, v: Any, other: Any) -> Any:
    return b.op("multibroadcast", [v, other], out_lens=[])


def _gate(b: Any, x: Any) -> Any:
    """silu(first half) * second half."""
    axis = len(b.dims(x)) - 1
    gate, up = (
        b.op("slice", x, axes=[axis], starts=[i * DEPTH], ends=[(i + 1) * DEPTH]) for i in (0, 1)
    )
    return b.mul(b.mul(gate, b.op("sigmoid", gate)), up)


def _rms(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def _silu(x: np.ndarray) -> np.ndarray:
    gate, up = np.split(x.astype(np.float64), 2, -1)
    return gate / (1 + np.exp(-gate)) * up


def _programs(kind: str, rows: tuple[int, ...], types: list[str]) -> tuple[Programs, np.ndarray]:
    rng = np.random.default_rng(3)
    weights, matrix = _weights(rng)
    scale = rng.uniform(0.5, 1.5, DEPTH).astype(np.float32)
    x = rng.normal(0, 1, (*rows, DEPTH * (2 if kind == "gate" else 1))).astype(np.float32)

    def build(b: Any, x: Any) -> Any:
        made = _gate(b, x) if kind == "gate" else _norm(b, x, scale)
        return _multiplied(b, made, weights)

    made = Programs()
    wanted = (_silu(x) if kind == "gate" else _rms(x, scale)) @ matrix
    made.add(build, [x], wanted, types=types, name=kind, tolerance=5e-5)
    return made, x


@needs_digits
@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("kind", ["norm", "gate"])
def test_a_dynamic_number_of_rows(kind: str, bits: int) -> None:
    """The numbers are those of two kernels, bit for bit, for few rows and many."""
    width = DEPTH * (2 if kind == "gate" else 1)
    types = [f"tensor<?x?x{width}xf32>"]
    made, x = _programs(kind, (2, 65), types)
    lowered = made.lowered(*STEPS, row_bits=bits)
    assert _launches(lowered) == 2, "a dispatch of rows and digits, and the matmul's"
    apart, _ = _programs(kind, (2, 65), types)
    other = apart.lowered(*KERNELS, row_bits=bits)
    for dims in ((1, 1), (2, 1), (1, 3), (2, 4), (1, 9), (1, 21), (2, 65), (0, 1)):
        own = np.ascontiguousarray(x.reshape(-1, width)[: dims[0] * dims[1]].reshape(*dims, width))
        (got,), (want,) = (execute(program, [own], 2) for program in (lowered, other))
        np.testing.assert_array_equal(got, want)
    if bits == 16:
        made.compare(lowered, threads=(1, 2))


@pytest.mark.parametrize("kind", ["norm", "gate"])
@pytest.mark.parametrize("rows", [(1,), (3,), (1, 1), (24,), (4, 7)])
def test_a_known_number_of_rows(kind: str, rows: tuple[int, ...]) -> None:
    made, _ = _programs(kind, rows, [])
    made.compare(made.lowered(*STEPS))


@pytest.mark.parametrize("kind", ["norm", "gate"])
def test_rows_of_their_own(kind: str) -> None:
    """Rows that some loops read as floats are computed by a kernel of their own."""
    types = [f"tensor<?x{DEPTH * (2 if kind == 'gate' else 1)}xf32>"]
    made, _ = _programs(kind, (33,), types)
    lowered = made.lowered(*STEPS, fast_math=False)
    assert _launches(lowered) == 3, "rows, digits of few, the matmul"
    made.compare(lowered, threads=(1, 2))


@pytest.mark.parametrize("arch", ["haswell", "neoverse-v1", "sapphirerapids"])
def test_lowered_elsewhere(arch: str) -> None:
    made, _ = _programs("norm", (33,), [f"tensor<?x{DEPTH}xf32>"])
    assert _launches(made.lowered(*STEPS, arch=arch)) >= 2


@needs_digits
def test_halves_in_another_order() -> None:
    """Kernels that differ in the columns that they read alone do not share code."""
    rng = np.random.default_rng(5)
    weights, matrix = _weights(rng)
    x = rng.normal(0, 1, (24, 2 * DEPTH)).astype(np.float32)

    def build(order: int) -> Build:
        def one(b: Any, x: Any) -> Any:
            halves = [
                b.op("slice", x, axes=[1], starts=[i * DEPTH], ends=[(i + 1) * DEPTH])
                for i in (order, 1 - order)
            ]
            return _multiplied(b, b.mul(halves[0], b.op("sigmoid", halves[1])), weights)

        return one

    made = Programs()
    low, high = np.split(x.astype(np.float64), 2, -1)
    for order, (a, c) in enumerate(((low, high), (high, low))):
        made.add(build(order), [x], (a / (1 + np.exp(-c))) @ matrix, name=order, tolerance=5e-5)
    made.compare(made.lowered(*STEPS))


def test_a_norm_of_columns() -> None:
    """A kernel of rows reads a slice of columns in place."""
    rng = np.random.default_rng(7)
    x = rng.normal(0, 1, (9, 80)).astype(np.float32)
    scale = np.ones(37, np.float32)

    def build(b: Any, x: Any) -> Any:
        return _norm(b, b.op("slice", x, axes=[1], starts=[40], ends=[77]), scale)

    for types in ([], ["tensor<?x80xf32>"]):
        made = Programs()
        made.add(build, [x], _rms(x[:, 40:77], scale), types=types, tolerance=1e-6)
        lowered = made.lowered(*KERNELS)
        assert _launches(lowered) == 1
        made.compare(lowered)
