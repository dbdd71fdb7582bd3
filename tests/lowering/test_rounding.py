"""Rounding to narrower types: at explicit conversions, and at operands of ops with steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR
from tests.lowering.programs import program_of

NARROW = (
    dtypes.HALF, dtypes.BF16, dtypes.FP8E4M3FN, dtypes.FP8E5M2, dtypes.FP8E4M3FNUZ,
    dtypes.FP8E5M2FNUZ,
)  # fmt: skip
X = np.random.default_rng(0).uniform(0.5, 4, (4, 32)).astype(np.float32)
# both sides of the middle between two bf16, the middles themselves, and what a carry goes through
X[0, :8] = [1.00390625, 1.0039062, 1.0039064, 1.01171875, 0.1, 3.9999998, 1.9960938, 2.0078125]


def through(b: Builder, x: ir.Value, dtype: dtypes.DType) -> ir.Value:
    return b.convert(b.convert(x, target_type=dtype), target_type=dtypes.FLOAT)


def rounded(dtype: dtypes.DType, x: np.ndarray) -> np.ndarray:
    return x.astype(dtype.np).astype(np.float32)


def explicit(dims: str, types: Sequence[dtypes.DType]) -> ProgramIR:
    def build(b: Builder, x: ir.Value) -> list[ir.Value]:
        found = []
        for t in types:
            r = through(b, x, t)
            found += [r, b.reduce_sum(r, axes=[1]), b.softmax(b.mul(b.sub(x, r), 64), axis=1)]
        return found

    return program_of(build, f"tensor<{dims}xf32>")


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp((x - x.max(1, keepdims=True)).astype(np.float64))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("dims", "types", "options"),
    [
        ("4x32", NARROW, {}),
        ("4x32", NARROW[1:2], {"fast_math": False, "kernel_boundaries": False}),
        ("?x32", NARROW[:2], {}),
    ],
    ids=["static", "no_boundaries", "dynamic"],
)
def test_a_conversion_there_and_back_rounds(
    dims: str, types: Sequence[dtypes.DType], options: dict[str, Any]
) -> None:
    program = explicit(dims, types)
    found = compile_program(program, "cpu", threads=1, cache=False, **options).run(X)
    for i, t in enumerate(types):
        got, total, soft = found[3 * i : 3 * i + 3]
        want = rounded(t, X)
        np.testing.assert_array_equal(got, want, err_msg=t.short)
        np.testing.assert_allclose(total[:, 0], want.sum(1, dtype=np.float64), rtol=1e-6)
        np.testing.assert_allclose(soft, softmax((X - want) * 64), rtol=2e-5, err_msg=t.short)


def test_steps_see_what_is_rounded() -> None:
    """Ops that jump, of products that the type rounds; 16 is exact."""

    def build(b: Builder, x: ir.Value) -> list[ir.Value]:
        product = b.mul(b.mul(x, x), 16)
        largest = b.reduce_max(product, axes=[1])
        return [
            b.floor(product), b.ceil(product), b.nearbyint(product),
            b.convert(product, target_type=dtypes.INT32), b.mod(product, 5),
            b.equal(product, b.multibroadcast(largest, X.shape)),
            b.convert(product, target_type=dtypes.FLOAT),
        ]  # fmt: skip

    def both(b: Builder, x: ir.Value, y: ir.Value) -> list[ir.Value]:
        return [*build(b, x), *build(b, y)]

    program = program_of(both, "tensor<4x32xf16>", "tensor<4x32xbf16>")
    arrays = [X.astype(t.np) for t in NARROW[:2]]
    got = compile_program(program, "cpu", threads=1, cache=False).run(*arrays)
    wanted = []
    for t, x in zip(NARROW, arrays, strict=False):
        p = rounded(t, x.astype(np.float32) ** 2 * 16)
        wanted += [
            np.floor(p), np.ceil(p), np.rint(p), p.astype(np.int32), rounded(t, np.mod(p, 5)),
            p == p.max(1, keepdims=True), p,
        ]  # fmt: skip
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64))


def test_what_rounds_to_bf16_at_the_ends() -> None:
    """Ties, the largest number, infinities and NaN; all of it as ml_dtypes rounds."""
    x = np.array([3.3895314e38, 3.3961775e38, np.inf, -np.inf, np.nan, -0.0, 1e-30], np.float32)

    def build(b: Builder, x: ir.Value) -> list[ir.Value]:
        return [through(b, b.neg(x), dtypes.BF16)]

    got = compile_program(program_of(build, "tensor<7xf32>"), "cpu", threads=1, cache=False).run(x)
    top = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    want = rounded(dtypes.BF16, -x)
    want[1] = -top  # `convert` stops at the largest number
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(np.signbit(got[0]), np.signbit(want))


def test_bf16_of_special_values() -> None:
    """An instruction of the processor, or the bits of the f32: NaN, infinities, overflow, zeros."""
    largest = np.finfo(np.float32).max
    special = [np.nan, -np.nan, np.inf, -np.inf, largest, -largest, 3.3895e38, 0.0, -0.0, 1.2e-38]
    x = np.zeros(75, np.float32)  # whole registers, and a rest
    x[: len(special)], x[-len(special) :] = special, special
    x[20:40] = np.random.default_rng(0).standard_normal(20) * 1e30
    program = program_of(
        lambda b, x: [b.convert(x, target_type=dtypes.BF16)], f"tensor<{len(x)}xf32>"
    )
    found = np.asarray(compile_program(program, "cpu").run([x])[0])
    most = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)  # MIGraphX's convert saturates, too
    want = np.where(np.isinf(x), x, np.clip(x, -most, most)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found.astype(np.float32), want.astype(np.float32))
    assert np.array_equal(np.signbit(found[x == 0]), np.signbit(want[x == 0]))


@pytest.mark.parametrize("dtype", [dtypes.HALF, dtypes.BF16], ids=lambda t: t.name)
def test_a_matmul_whose_epilogue_rounds_f64_to_16_bits(dtype: dtypes.DType) -> None:
    w = np.random.default_rng(1).standard_normal((32, 32)).astype(np.float32) / 8

    def build(b: Builder, x: ir.Value, w: ir.Value) -> list[ir.Value]:
        wide = b.convert(b.dot(x, w), target_type=dtypes.DOUBLE)
        return [b.convert(b.exp(wide), target_type=dtype)]

    compiled = compile_program(program_of(build, "tensor<4x32xf32>", "tensor<32x32xf32>"), "cpu")
    (got,) = compiled.run(dict(zip(compiled.input_names, (X, w), strict=True)))
    want = np.exp(X.astype(np.float64) @ w)
    step = float(ml_dtypes.finfo(dtype.np).eps)
    assert np.all(np.abs(np.asarray(got).astype(np.float64) - want) <= step * np.abs(want))
