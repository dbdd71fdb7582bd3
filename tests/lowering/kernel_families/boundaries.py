"""Cases at the boundaries of the CPU's kernels: lanes, tiles and strips, orders of dims, types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.lowering.kernel_families.cases import Case, Dim, Node

# the extents of four dims, of which a case takes the first ones
EXTENTS = (
    (17, 16, 15, 2), (1, 1, 1, 1), (8, 8, 8, 8), (2, 7, 9, 3), (3, 33, 65, 1), (1, 5, 259, 18),
    (300, 21, 2, 5), (2, 0, 3, 4),
)  # fmt: skip
# (type, order) by rule: two blocks of dims change places in squares that registers hold, for each
# size of an element; rows change places; other orders
TURNED: dict[str, tuple[tuple[str, tuple[int, ...]], ...]] = {
    "transpose": (
        ("float32", (1, 0)), ("float32", (0, 2, 3, 1)), ("float32", (0, 3, 1, 2)),
        ("int32", (0, 2, 1)), ("int32", (2, 0, 1)), ("float32", (0, 1, 3, 2)),
        ("uint8", (0, 2, 3, 1)), ("int8", (1, 0)), ("float16", (0, 2, 1)),
        ("uint16", (0, 3, 1, 2)), ("int64", (1, 0)), ("float64", (0, 2, 1)),
    ),
    "elementwise": (("float32", (0, 2, 1, 3)),),
    "linalg": (("float32", (2, 1, 0)), ("float32", (3, 2, 0, 1))),
}  # fmt: skip
# (type, dims, order) by rule: short last dims with those ahead of them, more dims than a grid has;
# squares of each element size and their tails
TURNED_DIMS: dict[str, tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]] = {
    "transpose_in_two_steps": (
        ("int32", (3, 5, 2, 2, 9), (4, 0, 2, 1, 3)), ("int32", (3, 9, 2, 10), (3, 2, 1, 0)),
        ("float32", (3, 4, 2, 2, 17), (4, 0, 2, 1, 3)), ("float32", (1, 8, 1, 8), (3, 2, 1, 0)),
        ("float32", (2, 3, 5, 4, 24), (0, 4, 2, 1, 3)),
        ("uint8", (4, 8, 4, 2, 21), (4, 0, 2, 1, 3)),
    ),
    "transpose": (
        ("float32", (19, 11), (1, 0)), ("uint8", (1, 37, 5, 7), (0, 2, 3, 1)),
        ("int8", (33, 18), (1, 0)), ("float16", (2, 9, 23), (0, 2, 1)),
        ("float32", (6, 3, 9), (2, 0, 1)), ("float32", (130, 70), (1, 0)),
        ("int32", (3, 17, 20), (0, 2, 1)), ("float32", (20, 3, 17), (2, 1, 0)),
        ("int32", (17, 3, 4, 33), (3, 1, 2, 0)), ("float32", (2, 64, 5, 13), (0, 2, 3, 1)),
    ),
    "linalg": (
        ("int64", (9, 10), (1, 0)), ("uint8", (3, 15), (1, 0)), ("int32", (7, 300), (1, 0)),
    ),
    "": (("float32", (1, 1, 1), (2, 1, 0)),),
}  # fmt: skip
# orders by rule: rows change places before a short last dim is turned: phases of pixels, as
# ConvTranspose has
PHASES = {
    "transpose_in_two_steps": ((4, 0, 2, 1, 3), (1, 4, 0, 3, 2)),
    "transpose": ((0, 1, 4, 2, 3),),
    "linalg": ((0, 2, 4, 3, 1), (4, 3, 2, 1, 0)),
}
PHASE_EXTENTS = ((5, 7, 20), (1, 1, 1), (3, 33, 17), (2, 0, 4))
# (type, channels, height, width, factors): nearest enlargement by whole factors
REPEATED = (
    ("float32", 2, 3, 16, 2, 2), ("float32", 1, 1, 1, 1, 2), ("float32", 3, 2, 33, 3, 4),
    ("float16", 2, 2, 65, 2, 3), ("int8", 1, 4, 63, 1, 2), ("int64", 2, 1, 17, 2, 4),
)  # fmt: skip
# rows of any length in strips, of which the last one is short
STRIPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("MaxPool", {"kernel_shape": [1, 3], "strides": [1, 2], "pads": [0, 1, 0, 1]}),
    ("MaxPool", {"kernel_shape": [2, 4], "strides": [1, 3], "dilations": [1, 3],
                 "pads": [1, 2, 0, 3]}),
    ("AveragePool", {"kernel_shape": [2, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]}),
    ("AveragePool", {"kernel_shape": [2, 5], "strides": [1, 4], "pads": [0, 4, 1, 3],
                     "count_include_pad": 1}),
    ("AveragePool", {"kernel_shape": [1, 4], "strides": [1, 2], "pads": [0, 3, 0, 2],
                     "count_include_pad": 1, "ceil_mode": 1}),
    ("LpPool", {"kernel_shape": [1, 2], "strides": [1, 1], "pads": [0, 1, 0, 1], "p": 2}),
)  # fmt: skip
LENGTHS = (129, 9, 13, 64, 127, 128, 257, 385, 640)
# dims of nonzero: one part, its end, several parts with a short last one, and all ranks
PLACES: tuple[tuple[int, ...], ...] = (
    (1,), (16384,), (16385,), (3, 5461), (40000,), (2, 3, 7), (70, 1, 470), (1, 2, 1, 3, 2),
)  # fmt: skip
PLACE_TYPES = (
    np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.bool_, np.int8, np.uint8, np.int16,
    np.uint16, np.int32, np.uint32, np.int64, np.uint64,
)  # fmt: skip
LANES = (17, 1, 2, 15, 16, 33)  # around the lanes of CPUs
# slices: type, dims behind the batch, axis, start, end; runs of one vector, of a part, of several
SLICED: tuple[tuple[str, tuple[Dim, ...], int, int, int], ...] = (
    ("float32", (3, 40), 2, 5, 40), ("float32", (3, 40), 2, -9, 1 << 40),
    ("float32", ("c", 16), 1, 1, 3),
    ("float16", (70,), 1, 1, 70), ("int8", (5, 3, 21), 2, 1, 2), ("int64", (2, 9), 2, 0, 8),
    ("float32", ("c", 4, 5), 1, -3, 1 << 40),
)  # fmt: skip
# tensors joined: type, axis, dims of each behind the batch
JOINED: tuple[tuple[str, int, tuple[tuple[Dim, ...], ...]], ...] = (
    ("float32", 2, ((3, 17), (3, 8), (3, 64))), ("float16", 1, ((9,), (33,))),
    ("int8", 1, ((2, 5), ("c", 5), (3, 5))), ("int64", 2, ((2, 8), (2, 15))),
)  # fmt: skip
# rows repeated: type, dims behind the batch, times of each
SPREAD: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
    ("float32", (1, 40), (3, 1)), ("float32", (2, 1, 17), (1, 2, 1)), ("int8", (1, 65), (5, 1)),
    ("float16", (1, 2, 1, 8), (2, 1, 3, 1)),
)  # fmt: skip


def transposes() -> Iterator[Case]:
    for rule, dtype, order in ((rule, *row) for rule, rows in TURNED.items() for row in rows):
        names = [f"d{axis}" for axis in range(len(order))]
        sizes = [dict(zip(names, dims, strict=False)) for dims in EXTENTS]
        yield _transpose(rule, dtype, names, order, sizes)
    for rule, rows in TURNED_DIMS.items():
        yield from (_transpose(rule, *row, [{}]) for row in rows)
    for rule, order in ((rule, order) for rule, orders in PHASES.items() for order in orders):
        sizes = [dict(zip("abc", dims, strict=True)) for dims in PHASE_EXTENTS]
        yield _transpose(rule, "float32", ["a", "b", 2, 3, "c"], order, sizes)


def _transpose(
    rule: str, dtype: str, dims: Sequence[int | str], order: Sequence[int],
    sizes: Sequence[dict[str, int]],
) -> Case:  # fmt: skip
    node: Node = ("Transpose", ["x"], ["y"], {"perm": list(order)})
    rules = (rule,) if rule else ()
    return Case("transpose", [node], {"x": (dtype, dims)}, sizes=sizes, limit=0.0, rules=rules)


def repeats() -> Iterator[Case]:
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
                  "nearest_mode": "floor"}  # fmt: skip
    for dtype, c, h, w, *factors in REPEATED:
        node: Node = ("Resize", ["x", "", "s"], ["y"], attributes)
        weights = {"s": np.float32([1, 1, *factors])}
        sizes = [{"n": n} for n in (2, 1, 3, 0)]
        for batch in (2, "n"):
            yield Case("repeat", [node], {"x": (dtype, (batch, c, h, w))}, weights, sizes,
                       in_onnxruntime=dtype not in ("float16", "int64"), limit=0.0,
                       rules=("repeat",))  # fmt: skip


def poolings() -> Iterator[Case]:
    sizes = [{"n": 2, "h": 3, "w": w} for w in LENGTHS]
    for kind, attributes in STRIPS:
        node: Node = (kind, ["x"], ["y"], attributes)
        yield Case("pooling", [node], {"x": ("float32", ("n", 2, "h", "w"))}, sizes=sizes,
                   special=False, limit=1e-6, rules=("pooling",))  # fmt: skip


def places() -> Iterator[Case]:
    for i, dims in enumerate(PLACES):
        for dtype in PLACE_TYPES[i % 3 :: 3]:
            node: Node = ("NonZero", ["x"], ["y"], {})
            given = {"x": (np.dtype(dtype).name, dims)}
            yield Case("places", [node], given, below=2, zeros=(0.0, 0.5, 1.0)[i % 3],
                       in_onnxruntime=False, rules=("nonzero",))  # fmt: skip


def slices() -> Iterator[Case]:
    for dtype, dims, axis, start, end in SLICED:
        node: Node = ("Slice", ["x", "start", "end", "axis"], ["y"], {})
        bounds = {"start": start, "end": end, "axis": axis}
        weights = {name: np.int64([n]) for name, n in bounds.items()}
        sizes = [{"n": n, "c": c} for n, c in ((2, 7), (1, 4), (3, 3), (0, 5), (40, 90))]
        yield Case("slice", [node], {"x": (dtype, ("n", *dims))}, weights, sizes, limit=0.0,
                   in_onnxruntime=dtype != "float16", rules=("slice",))  # fmt: skip


def joins() -> Iterator[Case]:
    for dtype, axis, parts in JOINED:
        names = [f"x{i}" for i in range(len(parts))]
        given = {x: (dtype, ("n", *dims)) for x, dims in zip(names, parts, strict=True)}
        sizes = [{"n": n, "c": c} for n, c in ((2, 7), (1, 4), (3, 0), (0, 5), (40, 90))]
        yield Case("join", [("Concat", names, ["y"], {"axis": axis})], given, sizes=sizes,
                   limit=0.0, rules=("join",))  # fmt: skip


def spreads() -> Iterator[Case]:
    sizes = [{"n": n} for n in (2, 1, 3, 0, 40)]
    for dtype, dims, times in SPREAD:
        weights = {"times": np.int64([1, *times])}
        yield Case("spread", [("Tile", ["x", "times"], ["y"], {})], {"x": (dtype, ("n", *dims))},
                   weights, sizes, limit=0.0, in_onnxruntime=dtype != "float16",
                   rules=("spread",))  # fmt: skip


def pointwise() -> Iterator[Case]:
    """Operands that are rows, columns and one number; heads that change places beside them."""
    nodes: list[Node] = [
        ("Add", ["x", "row"], ["a"], {}), ("Mul", ["a", "column"], ["b"], {}),
        ("Sub", ["b", "one"], ["y"], {}), ("Transpose", ["x"], ["z"], {"perm": [1, 0, 2]}),
    ]  # fmt: skip
    given = {"x": ("float32", tuple("abc")), "row": ("float32", ("c",)),
             "column": ("float32", ("b", 1)), "one": ("float32", ())}  # fmt: skip
    extents = [(2, 3, n) for n in LANES] + [(1, 1, 1), (7, 1, 40), (0, 2, 5), (40, 70, 64)]
    sizes = [dict(zip("abc", dims, strict=True)) for dims in extents]
    yield Case("pointwise", nodes, given, sizes=sizes, outputs=("y", "z"),
               rules=("elementwise", "elementwise"))  # fmt: skip


def boundaries() -> list[Case]:
    """Return the cases at boundaries of every family that has some."""
    drawers = (transposes, repeats, poolings, places, slices, joins, spreads, pointwise)
    return [case for draw in drawers for case in draw()]
