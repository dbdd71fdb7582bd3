"""Drawn gathers, scatters, sorts, images of other sizes, pools and chains of elements."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from benchmarks.emulator.drawn.graph import Drawn, kind
from zoo.made import INT64

I32 = TensorProto.INT32


def _indices(g: Drawn, name: str, below: int, *dims: int | str) -> str:
    """Indices of [-below, below)."""
    return g.filled(name, lambda r, s: r.integers(-below, below, s), *dims, kind=INT64)


def _distinct(g: Drawn, name: str, below: int, count: int) -> str:
    """`count` of [0, below), each once."""
    return g.filled(name, lambda r, s: r.permutation(below)[:count].reshape(s), count, 1,
                    kind=INT64)  # fmt: skip


@kind
def scatters(g: Drawn) -> None:
    """Elements and slices, written or combined; of those written no two meet."""
    rows, columns = g.odd(), g.pick(1, 7, 64, 65, 100)
    x = g.filled("x", lambda r, s: r.integers(-9, 10, s).astype(np.float32), rows, columns)
    n = g.extent("n", 1, 5, 33, 70)
    updates = g.filled("u", lambda r, s: r.integers(-9, 10, s).astype(np.float32), n, columns)
    tuples = _indices(g, "j", rows, n, 1)
    g.result(g.op("ScatterND", x, tuples, updates, reduction=g.pick("add", "max", "min")), 2)
    m = g.number(1, rows)
    own = g.filled("v", lambda r, s: r.standard_normal(s).astype(np.float32), m, columns)
    g.result(g.op("ScatterND", x, _distinct(g, "d", rows, m), own), 2)
    axis = g.number(0, 1)
    dims = [g.number(1, rows), g.number(1, columns)]
    at = _indices(g, "i", (rows, columns)[axis], *dims)
    part = g.filled("w", lambda r, s: r.integers(-9, 10, s).astype(np.float32), *dims)
    how = g.pick("add", "max", "min")
    g.result(g.op("ScatterElements", x, at, part, axis=axis, reduction=how), 2)


@kind
def gathers(g: Drawn) -> None:
    """Rows, elements and tuples."""
    g.narrow("f32", "f16")
    rows, columns = g.odd(), g.pick(1, 8, 33, 64)
    x = g.floats("x", rows, columns)
    n = g.extent("n", 1, 4, 30)
    axis = g.number(0, 1)
    g.result(g.op("Gather", x, _indices(g, "i", (rows, columns)[axis], n), axis=axis), 2)
    own = [g.number(1, rows), g.number(1, columns)]
    axis = g.number(0, 1)
    at = _indices(g, "e", (rows, columns)[axis], *own)
    g.result(g.op("GatherElements", x, at, axis=axis), 2)
    pairs = _indices(g, "p", min(rows, columns), n, 2)
    g.result(g.op("GatherND", x, pairs), 1)
    table = g.weight(50, g.pick(16, 33, 100))
    y = g.op("Gather", table, g.integers("ids", 50, g.extent("b", 1, 2), n))
    g.result(g.op("ReduceSum", y, g.ints(1), keepdims=0), 2)


@kind
def sorts(g: Drawn) -> None:
    """TopK of rows or columns, running sums, and what is not 0."""
    rows, columns = g.extent("r", 1, 2, 5), g.extent("c", 5, 64, 130, 600)
    x = g.filled("x", lambda r, s: r.integers(-20, 20, s).astype(np.float32), rows, columns)
    k = g.ints(g.number(1, 5))
    values, places = g.op("TopK", x, k, axis=1, largest=g.number(0, 1), outputs=2)
    g.result(values, 2)
    g.result(places, 2, INT64)
    whole = g.op("Shape", x, start=1, end=2)
    values, places = g.op("TopK", x, whole, axis=1, outputs=2)
    g.result(places, 2, INT64)
    g.result(g.op("CumSum", x, g.const(g.number(0, 1), np.int64), exclusive=g.number(0, 1),
                  reverse=g.number(0, 1)), 2)  # fmt: skip
    g.result(g.op("NonZero", x), 2, INT64)
    g.result(g.op("Compress", x, g.op("Greater", g.op("ReduceMax", x, g.ints(0), keepdims=0),
                                      g.const(3.0)), axis=1), 2)  # fmt: skip


@kind
def boxes(g: Drawn) -> None:
    """Suppression of boxes, and what is gathered of those that are left."""
    g.fixed()
    n, classes = g.pick(6, 30, 65), g.pick(1, 3)

    def corners(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        low = rng.uniform(0, 8, (*shape[:-1], 2))
        return np.concatenate([low, low + rng.uniform(0.5, 4, low.shape)], -1).astype(np.float32)

    found = g.filled("boxes", corners, 1, n, 4)
    scores = g.filled("scores", lambda r, s: r.random(s).astype(np.float32), 1, classes, n)
    kept = g.op("NonMaxSuppression", found, scores, g.const([g.number(1, 8)], np.int64),
                g.const(0.4), g.const(0.3))  # fmt: skip
    g.result(kept, 2, INT64)
    at = g.op("Gather", kept, g.ints(2), axis=1)
    g.result(g.op("GatherND", g.op("Squeeze", found, g.ints(0)), at), 2)
    image = g.floats("image", 1, g.pick(3, 8), 9, 11)
    zeros = g.const(np.zeros(5), np.int64)
    rois = g.op("Slice", g.op("Squeeze", found, g.ints(0)), g.ints(0), g.ints(5), g.ints(0))
    g.result(g.op("RoiAlign", image, rois, zeros, output_height=3, output_width=2,
                  sampling_ratio=2, mode="avg"), 4)  # fmt: skip


@kind
def resizes(g: Drawn) -> None:
    """Images at other sizes, and sampled by a grid."""
    channels, h, w = g.pick(1, 3, 16), g.odd(17), g.odd(17)
    x = g.floats("x", g.extent("n", 1, 2), channels, h, w)
    for _ in range(2):
        mode = g.pick("nearest", "linear", "cubic")
        more: dict[str, object] = {"mode": mode}
        more["coordinate_transformation_mode"] = g.pick(
            "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"
        )
        if mode == "nearest":
            more["nearest_mode"] = g.pick("floor", "round_prefer_floor")
        by = [1.0, 1.0, g.pick(0.5, 1.5, 2.0, 3.0), g.pick(0.5, 2.0, 2.5)]
        g.result(g.op("Resize", x, "", g.const(by), **more), 4)
    grid = g.filled("grid", lambda r, s: r.uniform(-1.2, 1.2, s).astype(np.float32),
                    g.size("n"), g.odd(9), g.odd(9), 2)  # fmt: skip
    more = {"mode": g.pick("linear", "nearest", "cubic"), "align_corners": g.number(0, 1)}
    g.result(g.op("GridSample", x, grid, padding_mode=g.pick("zeros", "border"), **more), 4)
    g.limit = 3e-5  # places are computed in f32


@kind
def pools(g: Drawn) -> None:
    """Windows of largest elements and means, and whole images."""
    g.narrow("f32", "f16")
    channels = g.pick(1, 5, 16)
    dims: list[int | str] = [g.extent("n", 1, 2), channels, max(7, g.odd(21)), max(7, g.odd(21))]
    if g.coin(0.4):
        dims[2] = g.extent("h", 7, 8, 13)
    x = g.floats("x", *dims)
    for how in ("MaxPool", "AveragePool", "LpPool"):
        window = [g.number(1, 4) for _ in range(2)]
        more: dict[str, object] = {"kernel_shape": window}
        more["strides"] = [g.number(1, 3) for _ in range(2)]
        more["pads"] = [g.number(0, k // 2) for k in window * 2]
        if how == "AveragePool":
            more["count_include_pad"] = g.number(0, 1)
        if how == "LpPool":
            more["p"] = 2
        elif isinstance(dims[2], int):
            more["ceil_mode"] = g.number(0, 1)
        g.result(g.op(how, x, **more), 4)
    g.result(g.op(g.pick("GlobalAveragePool", "GlobalMaxPool"), x), 4)


@kind
def elements(g: Drawn) -> None:
    """A chain of pointwise operators with broadcasts, in floats and integers."""
    g.narrow("f32", "f16", "bf16")
    a, b = g.extent("a", 1, 5, 33, 64), g.extent("b", 1, 3, 17, 100)
    x, y = g.floats("x", a, b), g.floats("y", 1, b)
    z = g.op("Add", x, y)
    for _ in range(g.number(3, 6)):
        z = g.op(
            g.pick("Tanh", "Sigmoid", "Softplus", "Elu", "HardSigmoid", "Erf", "Neg", "Abs"), z
        )
        if g.coin(0.4):
            z = g.op(g.pick("Mul", "Add", "Sub", "Max", "Min"), z, g.pick(x, y))
    g.result(g.op("Where", g.op("Greater", x, y), z, y), 2)
    i, j = g.integers("i", 99, a, b), g.integers("j", 9, 1, b)
    k = g.op(g.pick("Mod", "Div"), i, g.op("Add", j, g.const(1, np.int64)))
    g.result(g.op("Mul", k, g.op("Sub", i, j)), 2, INT64)


@kind
def moves(g: Drawn) -> None:
    """Transposes, slices, pads, concatenations, tiles and blocks of space."""
    g.narrow("f32", "f16")
    n = g.extent("n", 1, 2, 5)
    x = g.floats("x", n, g.pick(4, 8), 6, g.pick(5, 8, 33))
    y = g.op("Transpose", x, perm=[int(i) for i in g.chance.permutation(4)])
    g.result(g.op("Relu", y), 4)
    mode = g.pick("constant", "reflect", "edge")
    y = g.op("Pad", x, g.ints(0, 0, 1, 2, 0, 0, 2, 1), mode=mode)
    y = g.op("Slice", y, g.ints(1, 5), g.ints(6, -100), g.ints(2, 3), g.ints(2, -1))
    g.result(g.op("Concat", y, y, axis=g.pick(1, 2, 3)), 4)
    g.result(g.op("Tile", x, g.ints(1, 2, 1, g.pick(1, 3))), 4)
    g.result(g.op("DepthToSpace", x, blocksize=2, mode=g.pick("DCR", "CRD")), 4)
    parts = g.op("Split", x, outputs=2, axis=2, num_outputs=2)
    g.result(g.op("Sub", *parts), 4)


@kind
def einsums(g: Drawn) -> None:
    """Sums of products by letters, and a spectrum."""
    g.fixed()
    d = {c: g.pick(1, 3, 8, 17) for c in "ijkl"}
    equation = g.pick("ij,jk->ik", "ijk,kl->ijl", "ij,kj->ki", "ijk,ijl->kl", "ij,ij->i", "ii->i")
    terms = equation.split("->")[0].split(",")
    given = [g.floats(f"t{n}", *(d[c] for c in term)) for n, term in enumerate(terms)]
    g.result(g.op("Einsum", *given, equation=equation), len(equation.split("->")[1]))
    wave = g.floats("wave", 2, g.pick(8, 12, 31), 1)
    g.result(g.op("DFT", wave, "", g.const(1, np.int64), onesided=g.number(0, 1)), 3)


@kind
def experts(g: Drawn) -> None:
    """Rows by the best experts of each: TopK, one-hot weights, and a matmul for each expert."""
    g.narrow("f32", "f16")
    count, width, inner = g.pick(2, 4), g.pick(16, 24), g.pick(16, 40)
    n = g.extent("n", 1, 6, 17)
    x = g.floats("x", n, width)
    p = g.op("Softmax", g.linear(x, width, count), axis=-1)
    top, at = g.op("TopK", p, g.ints(2), axis=-1, outputs=2)
    weights = g.op("ScatterElements", g.op("Sub", p, p), at, top, axis=1)
    up = g.op("MatMul", x, g.weight(count, width, inner, fan_in=2 * width))
    y = g.op("MatMul", g.silu(up), g.weight(count, inner, width, fan_in=inner))
    by = g.op("Unsqueeze", g.op("Transpose", weights, perm=[1, 0]), g.ints(2))
    g.result(g.op("ReduceSum", g.op("Mul", y, by), g.ints(0), keepdims=0), 2)
