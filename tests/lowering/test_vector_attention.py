"""Attention as vector loops against float64: extents, types, masks, layouts, NaN and infinity."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import Programs
from tests.support.draws import seeds

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
# share of the largest result; 16-bit results are rounded once
TOLERANCE = {"f32": 2e-6, "f16": 2e-3, "bf16": 1e-2}
FUSE = "mgx-fuse-attention{fast-math=true}"


def softmax(s: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


class Attentions(Programs):
    """Attentions of one random stream; each is its own kernel."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)

    def draw(self, dtype: str, *dims: int) -> np.ndarray:
        return self.numbers.standard_normal(dims).astype(TYPES[dtype])

    def attention(
        self,
        m: int,
        n: int,
        width: int,
        depth: int,
        *,
        dtype: str = "f32",
        lead: tuple[int, ...] = (1, 2),
        mask: str = "none",
        guard: bool = False,
        layout: str = "plain",
        merge: bool = False,
        scale: float | None = None,
        spoil: str = "",
        large: float = 1.0,
        epilogue: bool = False,
        wide: bool = False,
    ) -> None:
        r, rank = self.random, len(lead) + 2
        q, k, v = (self.draw(dtype, *lead, *d) for d in ((m, width), (n, width), (n, depth)))
        q = (q * large).astype(q.dtype)
        scale = float(np.array(width**-0.5 if scale is None else scale).astype(TYPES[dtype]))
        if spoil == "nan":
            q[..., m // 2, width // 2] = np.nan
        elif spoil == "inf":
            k[..., n // 2, 0] = np.inf
            q[..., 0] = np.abs(q[..., 0]) + q.dtype.type(1)
        s = np.einsum("...mk,...nk->...mn", q.astype(np.float64), k.astype(np.float64)) * scale
        extra, where = self.masked(mask, m, n, lead, dtype)
        with np.errstate(all="ignore"):
            if mask.startswith("where"):
                s = np.where(extra, s, where)
            elif extra is not None:
                s = s + extra.astype(np.float64)
            p = softmax(s)
            if guard:
                p = np.where(np.isnan(p), 0, p)
            want = np.einsum("...mn,...nd->...md", p, v.astype(np.float64))
        arrays = [self.stored(x, layout, i) for i, x in enumerate((q, k, v))]
        arrays += [] if extra is None else [extra]
        if epilogue:
            arrays.append(self.draw(dtype, *lead, m, depth))
            want = np.maximum(want + arrays[-1].astype(np.float64), 0)
        order = [*range(rank - 3), rank - 2, rank - 3, rank - 1] if rank > 2 else [0, 1]
        joined = [*lead[:-1], m, lead[-1] * depth] if lead else [m, depth]
        if merge:
            want = want.transpose(order).reshape(joined)
        on_q = r.random() < 0.5

        def build(b: Any, *args: Any) -> Any:
            qv, kv, vv = (
                self.loaded(b, x, layout, i, (*lead, *d))
                for i, (x, d) in enumerate(
                    zip(args, ((m, width), (n, width), (n, depth)), strict=False)
                )
            )

            def times(x: Any) -> Any:
                return b.mul(x, b.literal(np.array(scale).astype(TYPES[dtype])))

            qv = times(qv) if on_q else qv
            turned = b.op("transpose", kv, permutation=[*range(rank - 2), rank - 1, rank - 2])
            score = b.op("dot", qv, turned)
            score = score if on_q else times(score)
            if wide:
                score = b.op("convert", score, target_type="f32")
            dims = b.dims(score)
            if mask.startswith("where"):
                low = b.literal(np.array(where).astype(TYPES["f32" if wide else dtype]))
                score = b.op(
                    "where", b.multibroadcast(args[3], dims), score, b.multibroadcast(low, dims)
                )
            elif extra is not None:
                other = b.multibroadcast(args[3], dims)
                other = b.op("convert", other, target_type="f32") if wide else other
                score = b.op("add", score, other)
            p = b.op("softmax", score, axis=-1)
            if wide:
                p = b.op("convert", p, target_type=dtype)
            if guard:
                zero = b.multibroadcast(b.literal(np.zeros((), TYPES[dtype])), dims)
                p = b.op("where", b.op("isnan", p), zero, p)
            y = b.op("dot", p, vv)
            if epilogue:
                y = b.op("relu", b.op("add", y, args[-1]))
            if merge:
                y = b.op("reshape", b.op("transpose", y, permutation=order), dims=joined)
            return y

        name = (f"{lead} {m}x{n} width {width} depth {depth} {dtype} mask {mask} guard {guard}"
                f" {layout} merge {merge} spoil '{spoil}' large {large} wide {wide}")  # fmt: skip
        self.add(build, arrays, want, name=name, tolerance=TOLERANCE[dtype])

    def masked(
        self, mask: str, m: int, n: int, lead: tuple[int, ...], dtype: str
    ) -> tuple[np.ndarray | None, float]:
        """A mask's array, and what stands where a bool one is false."""
        kind, _, low = mask.partition(" ")
        if kind == "none":
            return None, 0.0
        number = {"": -1e4, "inf": -np.inf, "all": -np.inf}[low]
        form = kind.split("-")[1]
        dims = {
            "keys": (n,), "rows": (m, n), "heads": (*lead[-1:], m, n), "row": (m, 1),
            "full": (*lead, m, n), "batch": (*lead[:1], *[1] * max(len(lead) - 1, 0), 1, n),
        }[form]  # fmt: skip
        keep = self.numbers.random(dims) < 0.7
        if low == "inf":
            keep[..., 0] = True
        if low == "all" and form != "row":
            keep[..., 0, :] = False
        if kind.startswith("where"):
            return keep, number
        if kind.startswith("bias"):
            return self.draw(dtype, *dims), 0.0
        with np.errstate(all="ignore"):
            return np.where(keep, 0.0, number).astype(TYPES[dtype]), 0.0

    @staticmethod
    def stored(x: np.ndarray, layout: str, i: int) -> np.ndarray:
        """An operand as the layout has it in memory; `loaded` makes it whole again."""
        if layout == "heads" and x.ndim > 2:  # (rows, heads * width)
            rows = x.swapaxes(-2, -3)
            return rows.reshape(*rows.shape[:-2], -1)
        if layout == "turned" and i:
            return x.swapaxes(-1, -2)
        if layout == "slice":
            return np.concatenate([x, x[..., :8], x[..., :3]], -1)
        return x

    @staticmethod
    def loaded(b: Any, x: Any, layout: str, i: int, dims: tuple[int, ...]) -> Any:
        rank = len(dims)
        if layout == "heads" and rank > 2:
            x = b.op("reshape", x, dims=[*dims[:-3], dims[-2], dims[-3], dims[-1]])
            return b.op(
                "transpose", x, permutation=[*range(rank - 3), rank - 2, rank - 3, rank - 1]
            )
        if layout == "turned" and i:
            return b.op("transpose", x, permutation=[*range(rank - 2), rank - 1, rank - 2])
        if layout == "slice":
            return b.op("slice", x, axes=[-1], starts=[0], ends=[dims[-1]])
        return x


MASKS = (
    "none", "none", "add-keys", "add-rows inf", "add-heads inf", "add-full inf", "add-batch inf",
    "bias-rows", "bias-heads", "bias-row", "where-keys inf", "where-rows inf", "where-heads",
    "where-full inf",
)  # fmt: skip
QUERIES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 20, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 70)
KEYS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100)
WIDTHS = (4, 8, 16, 24, 64, 80, 128, 1, 5, 17)


@pytest.mark.parametrize("seed", seeds(2, 3))
def test_random(seed: int) -> None:
    """Every form of operands and masks, at random extents."""
    net = Attentions(seed)
    r = net.random
    for i in range(7):
        dtype = ("f32", "f32", "f16", "bf16")[(i + seed) % 4]
        net.attention(
            r.choice(QUERIES), r.choice(KEYS), r.choice(WIDTHS), r.choice(WIDTHS),
            dtype=dtype, lead=r.choice(((), (3,), (2, 3), (1, 2), (2, 1, 2))),
            mask=MASKS[(i * 2 + 5 * seed) % len(MASKS)],
            layout=r.choice(("plain", "heads", "turned", "slice")),
            merge=r.random() < 0.5, epilogue=r.random() < 0.2,
            wide=dtype != "f32" and r.random() < 0.5,
        )  # fmt: skip
    net.agree(FUSE, threads=(1 + seed % 2,))


def test_queries() -> None:
    """Blocks of queries that are full, short, and read again."""
    net = Attentions(7)
    for m in (1, 15, 16, 17, 31, 33, 48, 70):
        net.attention(m, 19, 8, 4, mask="bias-rows")
    net.agree(FUSE)


def test_many_keys() -> None:
    """Past the keys whose scores fit on the stack the sums are rescaled."""
    net = Attentions(8)
    net.attention(33, 600, 64, 64, mask="add-rows inf")
    net.attention(32, 512, 128, 128, mask="where-keys inf", merge=True)
    net.attention(9, 521, 16, 24, dtype="f16", mask="add-heads inf", layout="heads")
    net.attention(40, 300, 80, 128, dtype="bf16", large=20.0)
    net.attention(17, 450, 64, 64, mask="add-rows all", spoil="nan", large=5.0)
    net.attention(20, 599, 64, 32, mask="where-rows all", guard=True)
    net.agree(FUSE, threads=(2,))


def test_wide_heads() -> None:
    """One head of an image's attention: queries and sums alone are past the scratch memory."""
    net = Attentions(9)
    net.attention(33, 70, 512, 512, lead=(1,))
    net.attention(16, 40, 256, 320, lead=(2,), mask="add-keys")
    net.agree(FUSE)


def test_special_numbers() -> None:
    net = Attentions(10)
    net.attention(20, 33, 16, 16, spoil="nan")  # one row of NaN
    net.attention(20, 33, 16, 16, spoil="nan", guard=True)  # 0 in place of it
    net.attention(20, 33, 16, 16, spoil="inf")
    net.attention(20, 33, 16, 16, mask="add-rows all")  # a row without keys: NaN, as softmax
    net.attention(20, 33, 16, 16, mask="where-rows all", guard=True)
    net.attention(20, 33, 16, 16, dtype="f16", mask="where-rows all", guard=True, wide=True)
    net.attention(20, 33, 16, 16, large=3e3, scale=1.0)  # scores of 1e4
    net.attention(20, 33, 16, 16, large=1e-20)
    net.agree(FUSE)
