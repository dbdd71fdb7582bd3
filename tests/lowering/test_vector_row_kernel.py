"""Reductions with pointwise ops as vector loops: axes, types, tails, dynamic dims, NaN."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import Programs, execute, text_of
from tests.support.compare import agrees
from tests.support.models import bytes_of, node
from tests.support.oracle import run_node

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TYPES: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32,
    "i8": np.int8, "u8": np.uint8,
}  # fmt: skip
TOLERANCE = {"f32": 3e-6, "f16": 2e-3, "bf16": 1e-2, "i32": 0.0, "i8": 0.0, "u8": 0.0}
FUSE = "fuse_pointwise_reduce"
EXTENTS = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 127, 130)
Axes = tuple[int, ...]


class Rows(Programs):
    """Kernels of one random stream."""

    def __init__(self, seed: int, *, fixed: bool = True) -> None:
        super().__init__()
        self.random, self.numbers, self.fixed = (
            random.Random(seed),
            np.random.default_rng(seed),
            fixed,
        )

    def draw(self, dtype: str, *dims: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
        if dtype == "i32":
            return self.numbers.integers(-9, 9, dims).astype(np.int32)
        if dtype in ("i8", "u8"):
            return self.numbers.integers(0, 256, dims).astype(np.uint8).view(TYPES[dtype])
        return self.numbers.uniform(low, high, dims).astype(TYPES[dtype])

    def shape(self, rank: int, room: int = 20000) -> tuple[int, ...]:
        dims: list[int] = []
        for _ in range(rank):
            d = self.random.choice([x for x in EXTENTS if x <= room])
            dims.append(d)
            room //= d
        self.random.shuffle(dims)
        return tuple(dims)

    def axes(self, rank: int) -> Axes:
        return tuple(sorted(self.random.sample(range(rank), self.random.randint(1, rank))))

    def case(
        self,
        name: str,
        build: Callable[..., Any],
        want: Callable[..., np.ndarray],
        arrays: Sequence[np.ndarray],
        dtype: str = "f32",
    ) -> None:
        """Add a kernel; `want` is given its arguments as f64."""
        with np.errstate(all="ignore"):
            found = want(*(a.astype(np.float64) for a in arrays))
        name = f"{name} of {' '.join('x'.join(map(str, a.shape)) for a in arrays)} in {dtype}"
        self.add(build, arrays, found, fixed=self.fixed, name=name, tolerance=TOLERANCE[dtype])

    def check(self, threads: int = 1, *, terms: int = 1, arch: str = "host") -> None:
        """Compile, run and compare; terms: thousands that an f32 total sums one by one."""
        lowered = self.lowered(FUSE, arch=arch)
        assert '"reduction"' not in text_of(lowered), "a reduction is left to the compiler"
        self.compare(lowered, (threads,), terms)

    # ---- kinds -------------------------------------------------------------------------------

    def reduction(self, dtype: str, dims: tuple[int, ...], axes: Axes) -> None:
        names = ["reduce_max", "reduce_min"]
        names += ["reduce_sum", "reduce_prod"] * (dtype not in ("i8", "u8"))  # integers wrap
        names += ["reduce_mean"] * (dtype not in ("i32", "i8", "u8"))
        name = self.random.choice(names)
        how = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max,
               "reduce_min": np.min, "reduce_prod": np.prod}[name]  # fmt: skip
        x = self.draw(dtype, *dims)
        if name == "reduce_prod":
            few = max(97, x.size // 10)
            x = np.where(np.arange(x.size).reshape(dims) % few < 3, x, 1).astype(x.dtype)
            if dtype == "i32":
                x = np.sign(x).astype(np.int32)
        self.case(
            f"{name} {axes}",
            lambda b, x: b.op(name, x, axes=list(axes)),
            lambda x: how(x, axis=axes, keepdims=True),
            [x],
            dtype,
        )

    def softmax(self, dtype: str, dims: tuple[int, ...], axis: int) -> None:
        scale = self.random.choice([1.0, 30.0])
        kind = self.random.choice(["softmax", "logsoftmax"])
        x = self.draw(dtype, *dims, low=-scale, high=scale)
        self.case(
            f"{kind} {axis}",
            lambda b, x: b.op(kind, x, axis=axis),
            lambda x: softmax(x, axis, logarithm=kind == "logsoftmax"),
            [x],
            dtype,
        )

    def parted_softmax(self, dims: tuple[int, ...], axis: int) -> None:
        """A softmax of single ops, with a mask added before it and a factor after it."""

        def build(b: Any, x: Any, y: Any) -> Any:
            x = b.add(x, y)
            e = b.exp(b.sub(x, b.op("reduce_max", x, axes=[axis])))
            return b.mul(b.div(e, b.op("reduce_sum", e, axes=[axis])), 0.5)

        y = tuple(d if self.random.random() < 0.5 or not self.fixed else 1 for d in dims)
        arrays = [self.draw("f32", *dims), self.draw("f32", *y)]
        self.case(f"parts {axis}", build, lambda x, y: softmax(x + y, axis) * 0.5, arrays)

    def norm(self, dtype: str, dims: tuple[int, ...], axes: Axes, *, add: bool) -> None:
        """Subtract the mean, divide by the deviation, scale and shift by other operands."""
        inner = tuple(d if i in axes else 1 for i, d in enumerate(dims))
        outer = tuple(1 if i in axes else d for i, d in enumerate(dims))
        gamma, beta = self.random.choice([(inner, inner), (outer, outer), (inner, outer)])

        def build(b: Any, x: Any, g: Any, s: Any, *more: Any) -> Any:
            x = b.add(x, more[0]) if more else x
            d = b.sub(x, b.op("reduce_mean", x, axes=list(axes)))
            v = b.op("reduce_mean", b.mul(d, d), axes=list(axes))
            return b.add(b.mul(b.mul(d, b.rsqrt(b.add(v, 1e-3))), g), s)

        def want(x: np.ndarray, g: np.ndarray, s: np.ndarray, *more: np.ndarray) -> np.ndarray:
            x = x + more[0] if more else x
            d = x - x.mean(axes, keepdims=True)
            return d / np.sqrt((d * d).mean(axes, keepdims=True) + 1e-3) * g + s

        arrays = [self.draw(dtype, *a) for a in (dims, gamma, beta, *[dims] * add)]
        if dtype != "f32":  # the divisor is rounded
            arrays[0] = (arrays[0] * 4).astype(arrays[0].dtype)
        self.case(f"norm {axes}", build, want, arrays, dtype)

    def groups_of_lanes(
        self, dtype: str, dims: tuple[int, ...], axes: Axes, gamma: np.ndarray
    ) -> None:
        """A norm between the extremes that a first pass found, scaled for each channel."""

        def build(b: Any, x: Any, g: Any) -> Any:
            d = b.sub(x, b.op("reduce_min", x, axes=list(axes)))
            v = b.op("reduce_mean", b.mul(d, d), axes=list(axes))
            return b.mul(b.mul(d, b.rsqrt(b.add(v, 1e-3))), g)

        def want(x: np.ndarray, g: np.ndarray) -> np.ndarray:
            d = x - x.min(axes, keepdims=True)
            return d / np.sqrt((d * d).mean(axes, keepdims=True) + 1e-3) * g

        arrays = [self.draw(dtype, *dims), gamma.astype(TYPES[dtype])]
        self.case(f"groups {axes}", build, want, arrays, dtype)

    def rms(self, dims: tuple[int, ...]) -> None:
        def build(b: Any, x: Any, g: Any) -> Any:
            m = b.op("reduce_mean", b.mul(x, x), axes=[-1])
            return b.mul(b.div(x, b.sqrt(b.add(m, 1e-6))), g)

        self.case(
            "rms",
            build,
            lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g,
            [self.draw("f32", *dims), self.draw("f32", *[1] * (len(dims) - 1), dims[-1])],
        )


def softmax(x: np.ndarray, axis: int, *, logarithm: bool = False) -> np.ndarray:
    d = x - x.max(axis, keepdims=True)
    e = np.exp(d)
    total = e.sum(axis, keepdims=True)
    return d - np.log(total) if logarithm else e / total


@pytest.mark.parametrize(("seed", "threads", "arch"), [(0, 1, "host"), (1, 2, "haswell")])
def test_fixed(seed: int, threads: int, arch: str) -> None:
    """The vectors of any processor run on every other one."""
    rows = Rows(seed)
    r = rows.random
    for dtype in ("f32", "f32", "f32", "f16", "bf16", "i32", "i8", "u8"):
        for rank in (1, 2, 3, 4):
            rows.reduction(dtype, rows.shape(rank), rows.axes(rank))
    for dtype in ("f32", "f32", "f16", "bf16"):
        for rank in (1, 2, 3):
            rows.softmax(dtype, rows.shape(rank), r.randrange(rank))
            rows.norm(dtype, rows.shape(rank), rows.axes(rank), add=r.random() < 0.5)
    for rank in (2, 3, 4):
        rows.parted_softmax(rows.shape(rank), r.randrange(rank))
        rows.rms(rows.shape(rank))
    rows.check(threads, arch=arch)


@pytest.mark.parametrize(("seed", "threads"), [(2, 2), (3, 1)])
def test_dynamic(seed: int, threads: int) -> None:
    """All dims are dynamic: nothing is known of a row but its axes."""
    rows = Rows(seed, fixed=False)
    r = rows.random
    for dtype in ("f32", "f16", "i32"):
        for rank in (1, 2, 3):
            rows.reduction(dtype, rows.shape(rank), rows.axes(rank))
    for dtype in ("f32", "f32", "bf16"):
        for rank in (1, 2, 3):
            rows.softmax(dtype, rows.shape(rank), r.randrange(rank))
    rows.parted_softmax(rows.shape(3), 2)
    rows.parted_softmax(rows.shape(3), 1)
    rows.check(threads)


def _bytes_case(rows: Rows, dims: Axes, kind: str, signed: bool) -> None:
    """Dequantise, a softmax or a norm, quantise: also the rows' sums of what is quantised."""
    dtype = "i8" if signed else "u8"
    low, high = (-128, 127) if signed else (0, 255)
    scale, zero, step = 0.03, 17, 1 / 255 if kind == "softmax" else 1 / 40

    def build(b: Any, x: Any) -> Any:
        x = b.mul(b.sub(b.op("convert", x, target_type=dtypes.FLOAT), zero), scale)
        if kind == "softmax":
            y = b.op("softmax", x, axis=-1)
        else:
            d = b.sub(x, b.op("reduce_mean", x, axes=[-1]))
            y = b.mul(d, b.rsqrt(b.add(b.op("reduce_mean", b.mul(d, d), axes=[-1]), 1e-3)))
        y = b.op("nearbyint", b.div(y, step))
        return b.op(
            "convert",
            b.clip(b.add(y, low), low, high),
            target_type=dtypes.INT8 if signed else dtypes.UINT8,
        )

    def want(x: np.ndarray) -> np.ndarray:
        x = (x - zero) * scale
        y = softmax(x, -1)
        if kind != "softmax":
            d = x - x.mean(-1, keepdims=True)
            y = d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-3)
        return np.clip(np.rint(y / step) + low, low, high)

    rows.case(kind, build, want, [rows.draw(dtype, *dims)], dtype)


@pytest.mark.parametrize(("fixed", "arch"), [(True, "haswell"), (False, "host")])
def test_bytes(fixed: bool, arch: str) -> None:
    """Rows that are read and stored in 8 bits, with their own scales."""
    rows = Rows(8, fixed=fixed)
    for i, kind in enumerate(("softmax", "norm")):
        for dims in ((3, 5, 64), (4, 1, 37), (2, 130), (6, 7)):
            _bytes_case(rows, dims, kind, signed=bool(i))
            _bytes_case(rows, dims, kind, signed=not i)
    lowered = rows.lowered(FUSE, arch=arch)
    assert '"reduction"' not in text_of(lowered), "a reduction is left to the compiler"
    found = execute(lowered, rows.inputs, 1)
    for got, want, (name, _) in zip(found, rows.want, rows.limits, strict=True):
        assert got.dtype == TYPES[name.split()[-1]]
        off = np.abs(got.astype(np.float64) - want)
        assert off.max() <= 1, name  # nearly half way between two steps
        assert (off > 0).mean() < 0.01, name


def test_long_rows() -> None:
    """More than a workgroup's share, and more than the stack holds."""
    rows = Rows(4)
    for dims, axis in [((2, 70001), 1), ((3, 20000), 0), ((9000, 20), 0), ((1, 40, 2100), 1)]:
        rows.softmax("f32", dims, axis)
        rows.softmax("f16", dims, axis)
        rows.reduction("f32", dims, (axis,))
    rows.norm("f32", (2, 3, 9000), (2,), add=True)
    rows.norm("f32", (2, 3, 50, 60), (0, 2, 3), add=False)
    rows.check(terms=4)


@pytest.mark.parametrize(("seed", "threads", "arch"), [(6, 1, "host"), (7, 2, "haswell")])
def test_groups_of_lanes(seed: int, threads: int, arch: str) -> None:
    """Totals over places and the channels of each group: {N, places, groups, channels of one}."""
    rows = Rows(seed)
    for groups, each in [(32, 2), (32, 10), (3, 5), (2, 128), (5, 1), (4, 17), (2, 200), (16, 64)]:
        places, n = rows.random.choice([2, 9, 50]), rows.random.randint(1, 3)
        dims, axes = (n, places, groups, each), (1, 3)
        gamma = rows.draw("f32", 1, 1, groups, each)
        for dtype in ("f32", rows.random.choice(["f16", "bf16"])):
            rows.groups_of_lanes(dtype, dims, axes, gamma)
    rows.groups_of_lanes("f32", (2, 3, 4, 6, 3), (1, 2, 4), rows.draw("f32", 1, 1, 1, 6, 3))
    rows.check(threads, arch=arch)


def test_nan_and_infinity() -> None:
    """A NaN wins in extremes and spreads over its row only, as in onnxruntime's softmax."""
    rows = Rows(5)
    for dims, axis in [((6, 37), 1), ((37, 6), 0), ((6, 64), 1), ((5, 200), 1)]:
        x = rows.draw("f32", *dims)
        lines = np.moveaxis(x, axis, -1)
        lines[0, 3], lines[1, 4], lines[2, 5], lines[3, :] = np.nan, np.inf, -np.inf, -np.inf
        lines[4, :2] = [np.nan, np.inf]
        for name, how in (("reduce_max", np.max), ("reduce_min", np.min), ("reduce_sum", np.sum)):
            rows.case(
                f"{name} {axis}",
                lambda b, x, name=name, axis=axis: b.op(name, x, axes=[axis]),
                lambda x, how=how, axis=axis: how(x, axis=axis, keepdims=True),
                [x],
            )
        for kind in ("softmax", "logsoftmax"):
            rows.case(
                f"{kind} {axis}",
                lambda b, x, kind=kind, axis=axis: b.op(kind, x, axis=axis),
                lambda x, kind=kind, axis=axis: _by_onnxruntime(kind, x, axis),
                [x],
            )
    rows.check()


def _by_onnxruntime(kind: str, x: np.ndarray, axis: int) -> np.ndarray:
    name = {"softmax": "Softmax", "logsoftmax": "LogSoftmax"}[kind]
    return run_node(name, x.astype(np.float32), axis=axis).astype(np.float64)


@pytest.mark.parametrize("dims", [("n", 8, 3), (4, 5, 40), ("n", 3, 100)])
def test_a_costly_value_that_three_passes_read(dims: tuple[int | str, ...]) -> None:
    """The value is stored in the first pass, also where rows are several loops."""
    inner = [int(d) for d in dims[1:]]
    weight = np.linspace(0.5, 2, int(np.prod(inner)), dtype=np.float32).reshape(inner)
    nodes = [node("Tanh", "x", "t"), node("LayerNormalization", "t scale bias", "y", axis=-2)]
    data = bytes_of(nodes, {"x": list(dims)}, {key: list(dims) for key in "ty"},
                    {"scale": weight, "bias": weight}, opset=18)  # fmt: skip
    x = np.random.default_rng(0).standard_normal((4, *inner)).astype(np.float32)
    assert not agrees(data, [{"x": x}], atol=3e-6).executable.fallbacks


def test_group_norms_between_convolutions_are_one_kernel_each() -> None:
    """With their activation, and without a copy of an image; all dims dynamic."""
    draw = np.random.default_rng(1).standard_normal
    weights: dict[str, np.ndarray] = {"w0": draw((24, 3, 3, 3))}
    nodes = [node("Conv", "x w0", "c0", pads=[1] * 4)]
    for i, groups in enumerate((8, 1, 24)):
        weights |= {f"s{i}": draw(24), f"b{i}": draw(24), f"w{i + 1}": draw((24, 24, 3, 3)) / 9}
        nodes += [
            node("GroupNormalization", f"c{i} s{i} b{i}", f"n{i}", num_groups=groups),
            node("Sigmoid", f"n{i}", f"g{i}"),
            node("Mul", f"n{i} g{i}", f"a{i}"),
            node("Conv", f"a{i} w{i + 1}", f"c{i + 1}", pads=[1] * 4),
        ]
    ends = {"x": ["n", 3, "h", "w"]}, {"c3": ["n", 24, "h", "w"]}
    data = bytes_of(nodes, *ends, weights, opset=21, ir_version=10)
    sizes = ((1, 1, 1), (2, 7, 5), (1, 20, 33))
    calls = [{"x": (draw((n, 3, h, w)) * 3 + 5).astype(np.float32)} for n, h, w in sizes]
    names = [k.name for k in agrees(data, calls, rtol=0, scaled=True).kernels]
    assert sum("reduce_mean" in name and "sigmoid" in name for name in names) == 3
    assert len(names) == 3 + 4 + 1, names  # the last result is copied into the order asked for
