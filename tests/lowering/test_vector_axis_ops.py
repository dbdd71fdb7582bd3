"""argmax, argmin, running sums and topk as vector loops: types, tails, ties, NaN, dynamic dims."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import Programs

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TYPES: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32,
    "f64": np.float64, "i64": np.int64, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
EXTENTS = (1, 2, 3, 7, 8, 15, 16, 17, 33, 63, 64, 65, 100, 129)
STEP = "fuse_pointwise_reduce"


class AxisOps(Programs):
    """Ops of one random stream; each is a kernel, and its first result is compared, or both."""

    def __init__(self, seed: int, *, fixed: bool = True) -> None:
        super().__init__()
        self.random, self.fixed = random.Random(seed), fixed
        self.numbers = np.random.default_rng(seed)

    def draw(self, dtype: str, dims: Sequence[int], *, ties: bool) -> np.ndarray:
        """Numbers with many equal ones, or with NaN and infinities among them."""
        if dtype == "i32" or ties:
            least = 0 if dtype[0] == "u" else -4
            return self.numbers.integers(least, 5, dims).astype(TYPES[dtype])
        x = self.numbers.standard_normal(dims).astype(TYPES[dtype])
        odd = self.numbers.random(dims) < 0.05
        some = self.numbers.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0]), dims)
        return np.where(odd, some.astype(x.dtype), x)

    def dims(self, rank: int) -> list[int]:
        out, room = [], 20000
        for _ in range(rank):
            out.append(self.random.choice([d for d in EXTENTS if d <= room]))
            room //= out[-1]
        return out

    def extreme(self, dtype: str, dims: Sequence[int]) -> None:
        axis = self.random.randrange(len(dims))
        name, last = self.random.choice(["argmax", "argmin"]), self.random.random() < 0.5
        x = self.draw(dtype, dims, ties=self.random.random() < 0.5)
        if self.random.random() < 0.2 and dtype != "i32":
            x = np.full_like(x, self.random.choice([np.inf, -np.inf, np.nan]))
        wide = np.flip(x, axis) if last else x
        found = np.expand_dims(getattr(np, name)(wide.astype(np.float64), axis), axis)
        want = dims[axis] - 1 - found if last else found
        self.add(
            lambda b, x: b.op(name, x, axis=axis, select_last_index=last),
            [x], want.astype(np.float64), fixed=self.fixed,
            name=f"{name} {axis} of {dims} in {dtype}, last: {last}",
        )  # fmt: skip

    def scan(self, dtype: str, dims: Sequence[int]) -> None:
        axis = self.random.randrange(len(dims))
        exclusive, reverse = self.random.random() < 0.5, self.random.random() < 0.5
        x = self.draw(dtype, dims, ties=True)
        wide = np.flip(x, axis) if reverse else x
        want = np.cumsum(wide.astype(np.float64), axis)
        want = want - wide if exclusive else want
        want = np.flip(want, axis) if reverse else want
        self.add(
            lambda b, x: b.op(
                "prefix_scan_sum", x, axis=axis, exclusive=exclusive, reverse=reverse
            ),
            [x], want, fixed=self.fixed,
            name=f"scan {axis} of {dims} in {dtype}, exclusive {exclusive}, reverse {reverse}",
            tolerance={"f32": 1e-6, "f16": 2e-3, "bf16": 1e-2}.get(dtype, 0.0),
        )  # fmt: skip

    def best(self, dtype: str, dims: Sequence[int], k: int, *, ties: bool) -> None:
        """NaN is the largest; equals stand in the order of their places."""
        largest, rank = self.random.random() < 0.6, len(dims)
        x = self.draw(dtype, dims, ties=ties)
        key = x.astype(np.float64)
        key = np.where(np.isnan(key), np.inf, key)
        nan = np.isnan(x.astype(np.float64))
        sign = -1 if largest else 1
        order = np.lexsort((sign * key, sign * nan.astype(int)), axis=-1)[..., :k]
        values = np.take_along_axis(x, order, -1).astype(np.float64)
        for i, want in enumerate((values, order.astype(np.float64))):
            self.add(
                lambda b, x, i=i: b.op("topk", x, k=k, axis=rank - 1, largest=largest)[i],
                [x], want, fixed=self.fixed,
                name=f"topk {k} of {dims} in {dtype}, largest {largest}: {i}",
            )  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "threads", "fixed", "arch"),
    [(0, 1, True, "host"), (1, 2, True, "neoverse-v1"), (2, 1, False, "haswell")],
)
def test_extremes_and_sums(seed: int, threads: int, fixed: bool, arch: str) -> None:
    """The vectors of any processor run on every other one."""
    ops = AxisOps(seed, fixed=fixed)
    for dtype in ("f32", "f32", "f16", "bf16", "i32"):
        for rank in (1, 2, 3):
            ops.extreme(dtype, ops.dims(rank))
            ops.scan(dtype, ops.dims(rank))
    for dtype in ("f64", "i64", "u32", "u64"):
        ops.scan(dtype, ops.dims(3))
    ops.agree(STEP, threads=(threads,), arch=arch)


@pytest.mark.parametrize(("seed", "threads", "arch"), [(3, 1, "neoverse-v1"), (4, 2, "host")])
def test_topk(seed: int, threads: int, arch: str) -> None:
    ops = AxisOps(seed)
    for dims, k in (
        ((5,), 5), ((3, 16), 1), ((2, 40), 17), ((2, 3, 100), 50), ((1, 300), 300), ((4, 65), 16),
        ((2, 1), 1),
    ):  # fmt: skip
        for dtype, ties in (("f32", False), ("f32", True), ("f16", False)):
            ops.best(dtype, dims, k, ties=ties)
    ops.agree(STEP, threads=(threads,), arch=arch)
