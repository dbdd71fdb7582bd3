"""Convolutions of 8-bit integers as vector loops: exact sums, borders, instructions, dynamic
dims."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mgx_mlir.core import dtypes
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import COMPILES, Programs, compiles_for, kernels_of

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

STEPS = ("fuse_pointwise_reduce{weighted=true}", "fuse_layout")
# a processor with an instruction for words, and one with none
ARCHS = ("haswell", "a64fx")
Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """A convolution of [2, *size, inputs * groups] to `outputs`; `ends`: of the ends of the types
    alone. planar: the image comes as [N, C, H, W]."""

    size: Pair
    inputs: int
    outputs: int
    kernel: Pair = (3, 3)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    border: int = 0
    groups: int = 1
    signed: bool = False
    ends: bool = False
    open: bool = False
    planar: bool = False
    after: str = "nothing"

    @property
    def fits(self) -> bool:
        """Return whether there is a window."""
        low, high = self.padding[:2], self.padding[2:]
        counts = [
            (n + a + b - (k - 1) * d - 1) // s + 1
            for n, a, b, k, d, s in zip(
                self.size, low, high, self.kernel, self.dilation, self.stride, strict=True
            )
        ]
        return min(counts) >= 1


def pairs(low: int, high: int) -> st.SearchStrategy[Pair]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


windows = st.builds(
    Window,
    pairs(1, 19),
    st.integers(1, 21),
    st.integers(1, 80),
    pairs(1, 3),
    pairs(1, 2),
    pairs(1, 2),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.integers(0, 127),
    signed=st.booleans(),
    ends=st.booleans(),
    open=st.booleans(),
    after=st.sampled_from(("nothing", "quantised")),
).filter(lambda w: w.fits)
KNOWN = [
    Window((9, 9), 64, 64, padding=(1, 1, 1, 1), border=128, ends=True, after="quantised"),
    Window((9, 9), 64, 49, padding=(1, 1, 1, 1), border=-128, signed=True, ends=True),
    Window((7, 7), 48, 96, (1, 1), signed=True, border=3, after="quantised"),
    Window((8, 8), 6, 16, (1, 1), (2, 2), open=True),
    Window((2, 2), 20, 40, padding=(1, 1, 1, 1), border=5, after="quantised"),
    Window((7, 11), 5, 33, (3, 2), (2, 1), (1, 2), (1, 0, 2, 1), 255, open=True),
    Window((12, 37), 3, 32, (7, 7), (2, 2), (1, 1), (3, 3, 3, 3), 114, planar=True),
    Window((6, 21), 5, 16, (3, 3), padding=(1, 1, 1, 1), border=-7, signed=True, planar=True),
    Window((5, 6), 1, 20, (5, 5), padding=(2, 2, 2, 2), border=9),
    Window((9, 20), 1, 40, padding=(1, 1, 1, 1), border=131, groups=40, ends=True),
    Window((9, 20), 1, 40, (5, 5), (2, 2), (1, 1), (2, 2, 2, 2), -128, 40, True, True, True),
    Window((8, 9), 4, 64, padding=(1, 1, 1, 1), border=77, groups=8, after="quantised"),
    Window((8, 9), 20, 66, border=-3, groups=3, signed=True, open=True),
]


def _drawn(rng: np.random.Generator, dims: Sequence[int], dtype: Any, ends: bool) -> np.ndarray:
    info = np.iinfo(dtype)
    if ends:
        return rng.choice(np.array([info.min, info.max], dtype), dims)
    return rng.integers(info.min, info.max + 1, dims).astype(dtype)


def _sums(x: np.ndarray, w: np.ndarray, c: Window) -> np.ndarray:
    """The sums of [N, H, W, C] and weights [kh, kw, C / groups, O], tap by tap."""
    top, left, bottom, right = c.padding
    border = [(0, 0), (top, bottom), (left, right), (0, 0)]
    padded = np.pad(x.astype(np.int64), border, constant_values=c.border)
    reach = [(k - 1) * d for k, d in zip(c.kernel, c.dilation, strict=True)]
    n, high, wide, _ = padded.shape
    total = 0
    for i, j in itertools.product(*map(range, c.kernel)):
        y, z = i * c.dilation[0], j * c.dilation[1]
        part = padded[
            :, y : high - reach[0] + y : c.stride[0], z : wide - reach[1] + z : c.stride[1]
        ]
        part = part.reshape(*part.shape[:-1], c.groups, c.inputs)
        own = w[i, j].astype(np.int64).reshape(c.inputs, c.groups, -1)
        total = total + np.einsum("nhwgc,cgo->nhwgo", part, own)
    return np.asarray(total).reshape(n, *np.asarray(total).shape[1:3], c.outputs)


def _add(made: Programs, c: Window, rng: np.random.Generator) -> None:
    channels = c.inputs * c.groups
    x = _drawn(rng, (2, *c.size, channels), np.int8 if c.signed else np.uint8, c.ends)
    w = _drawn(rng, (*c.kernel, c.inputs, c.outputs), np.int8, c.ends)
    scale = rng.uniform(1e-4, 1e-3, c.outputs).astype(np.float32)
    want = sums = _sums(x, w, c)
    more = _drawn(rng, sums.shape, np.uint8, False)
    if c.after == "quantised" and not c.open:
        scaled = sums.astype(np.float32) * scale + more.astype(np.float32)
        want = np.clip(np.rint(scaled), 0, 255)
    elif c.open:
        want = sums.astype(np.float32)
    dims = [2, channels, *c.size] if c.planar else [2, *c.size, channels]
    texts = ["?"] * 3 + [str(channels)] if c.open else list(map(str, dims))
    kinds = [f"tensor<{'x'.join(texts)}x{'i8' if c.signed else 'ui8'}>"]
    arrays = [x.transpose(0, 3, 1, 2) if c.planar else x]
    if c.after == "quantised" and not c.open:
        arrays.append(more)
        kinds.append(f"tensor<{'x'.join(map(str, more.shape))}xui8>")

    def build(b: Any, x: Any, *others: Any) -> Any:
        if c.planar:
            x = b.transpose(x, permutation=[0, 2, 3, 1])
        total = b.op(
            "quant_convolution", x, b.literal(w), padding=c.padding, stride=c.stride,
            dilation=c.dilation, group=c.groups, pad_value=c.border, channels_last=True,
        )  # fmt: skip
        if c.open:
            return b.op("convert", total, target_type=dtypes.FLOAT)
        if not others:
            return b.add(total, b.multibroadcast(b.literal(np.zeros(1, np.int32)), sums.shape))
        value = b.op("convert", total, target_type=dtypes.FLOAT)
        value = b.mul(value, b.multibroadcast(b.literal(scale), sums.shape))
        value = b.add(value, b.op("convert", others[0], target_type=dtypes.FLOAT))
        return b.op("convert", b.op("nearbyint", value), target_type=dtypes.UINT8)

    made.add(build, arrays, want, types=kinds, name=c)


@pytest.mark.parametrize("arch", ARCHS)
def test_instructions(arch: str) -> None:
    """Every sum is exact, whatever the instruction."""
    made, rng = Programs(), np.random.default_rng(0)
    for c in KNOWN[::2]:
        _add(made, c, rng)
    made.agree(*STEPS, arch=arch)


@COMPILES
@given(st.lists(windows, min_size=6, max_size=6))
@example(KNOWN)
def test_sums(drawn: Sequence[Window]) -> None:
    """Every sum is exact, with tails and borders; what follows is that of f32."""
    made, rng = Programs(), np.random.default_rng(len(drawn))
    for c in drawn:
        _add(made, c, rng)
    made.agree(*STEPS, threads=(1, 2), arch="host")


def test_compiles_elsewhere() -> None:
    """The loops compile for a processor that this host is not."""
    made = Programs()
    for c in (KNOWN[1], KNOWN[6], KNOWN[8]):
        _add(made, c, np.random.default_rng(0))
    lowered = made.lowered(*STEPS, arch="a64fx")
    assert kernels_of(lowered) == 3
    assert compiles_for(lowered, "a64fx")
