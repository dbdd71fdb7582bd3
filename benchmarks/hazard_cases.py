"""The hazards of docs/iree-hazards.md by their numbers: how each is tried, or why it is not.

`benchmarks/hazards/NN.mlir` is the reduced input of hazard NN. What crashes IREE's compiler, or
keeps it from ending, has none; the kernels that the product compiles would show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# ---- how a hazard is tried -----------------------------------------------------------------------


@dataclass(frozen=True)
class Wrong:
    """A program that IREE compiles to wrong numbers."""

    # arrays that @main is called with; ints that @f is called with, for target "vm"
    arguments: Callable[[], Sequence[Any]]
    want: Callable[..., Sequence[Any]]  # right results, then the arguments if IREE changes them
    target: str = "cpu"  # "cpu", "vm" for code of the host alone, or an AMD architecture
    keeps_arguments: bool = False  # the arguments after the call are compared as well


@dataclass(frozen=True)
class Fails:
    """A program whose call has to fail with a message."""

    arguments: Callable[[], Sequence[Any]]
    message: str
    without: str  # flag of the product that mends it, left out here


@dataclass(frozen=True)
class Refused:
    """A program that IREE does not compile."""

    message: str  # part of IREE's error while the hazard is there
    target: str = "cpu"  # same meaning as in Wrong


@dataclass(frozen=True)
class NotTried:
    """A hazard without a reduced input."""

    why: str


Way = Wrong | Fails | Refused | NotTried

CRASHES = NotTried("IREE crashes; the product's own kernels would")
ENDLESS = NotTried("IREE does not end; the product's own kernels would not")
SPEED = NotTried("a matter of speed; benchmarks/single_ops.py measures operators")
HIDDEN = NotTried("no small input shows it; tests of loops pass without our form too")
UNREDUCED = NotTried("no small input shows it; the tests that pin it run whole models")


def drawn(*shapes: tuple[int, ...], kind: type = np.float32) -> Callable[[], list[np.ndarray]]:
    """Standard normal numbers of these shapes, the same in each call."""

    def draw() -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(s).astype(kind) for s in shapes]

    return draw


# ---- right results -------------------------------------------------------------------------------

FOUR = np.array([-1.25, 0.5, 2.75, 4.0], np.float32)


def longest(x: np.ndarray) -> list[np.ndarray]:
    """Maxima of the windows of 3x3 at row 0, columns 0, 3 and 6."""
    columns = [x[:, :, :3, i : i + 3].max((2, 3)) for i in (0, 3, 6)]
    return [np.stack(columns, -1)[:, :, None]]


def host_code(c: int, x: int, y: int, z: int) -> list[int]:
    """Results of @f of hazard 20."""
    return [2 * x, x + y, 4 * z] if c == 0 else [2 * y, x + y, 2 * z]


def convolved(x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    """3x3 windows behind a border of fives, in 64 bits."""
    border = ((0, 0), (1, 1), (1, 1), (0, 0))
    wide = np.pad(x.astype(np.int64), border, constant_values=5)
    rows, columns = x.shape[1:3]
    parts = [
        wide[:, i : i + rows, j : j + columns] @ w[i, j].astype(np.int64)
        for i in range(3)
        for j in range(3)
    ]
    return [sum(parts[1:], parts[0])]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """Attention with scores divided by 8, in f64."""
    a, b, c = (x.astype(np.float64) for x in (q, k, v))
    powers = np.exp(a @ b.transpose(0, 2, 1) / 8)
    return [powers / powers.sum(-1, keepdims=True) @ c]


def bytes_of_images() -> list[np.ndarray]:
    """An image and filters of hazard 37."""
    rng = np.random.default_rng(0)
    return [rng.integers(-9, 9, s).astype(np.int8) for s in ((1, 9, 9, 16), (3, 3, 16, 32))]


ZEROS = np.zeros(4, np.float32)

CASES: dict[int, Way] = {
    1: Wrong(drawn((8, 8)), lambda x: [np.pad(np.maximum(x, 0), 1)]),
    2: Refused("large vector sizes"),
    3: SPEED,
    4: SPEED,
    5: SPEED,
    6: CRASHES,
    7: UNREDUCED,
    8: SPEED,
    9: Wrong(lambda: [FOUR], lambda x: [np.floor(x), 0 * x, 0 * x]),
    10: Wrong(drawn((1, 2, 7, 9)), longest),
    11: Wrong(drawn((9,)), lambda x: [np.exp(x)[::2], np.exp(x)]),
    12: Refused("failed to run translation"),
    13: UNREDUCED,
    14: SPEED,
    15: HIDDEN,
    16: HIDDEN,
    17: Refused("padding_value"),
    18: Wrong(
        lambda: [np.array([np.nan, -1, 2, np.nan], np.float32)],
        lambda x: [np.maximum(x, 0)],
        "gfx942",
    ),
    19: Wrong(
        lambda: [np.array([1.00390625, 0.1, 3.9999998, 1.01171875], np.float32)],
        lambda x: [np.array([1, 0.10009765625, 4, 1.015625], np.float32)],
    ),
    20: Wrong(lambda: [0, 10**12 + 1, 20**9 + 2, 7], host_code, "vm"),
    21: ENDLESS,
    22: Wrong(lambda: [np.zeros(5, np.float32)], lambda x: [np.array(2.0 * x.size)]),
    23: CRASHES,
    24: Fails(
        lambda: [np.ones(3, np.float32)], "four elements", "--iree-opt-strip-assertions=false"
    ),
    25: UNREDUCED,
    26: CRASHES,
    27: Refused("unrealized_conversion_cast"),
    28: Wrong(lambda: [np.array([1, 2])], lambda x: [x[:, None]]),
    29: Wrong(
        lambda: [ZEROS.copy(), np.array([[1], [3]], np.int32), np.array([7, 8], np.float32)],
        lambda x, at, u: [np.array([0, 7, 0, 8]), ZEROS, ZEROS, at, u],
        keeps_arguments=True,
    ),
    30: Wrong(
        lambda: [np.abs(x) + 1 for x in drawn((2, 9, 9), (2, 9, 16))()],
        lambda x, v: [x / x.sum(-1, keepdims=True) @ v],
    ),
    31: HIDDEN,
    32: UNREDUCED,
    33: UNREDUCED,
    34: NotTried("two workgroups race for one line; a test runs eight calls"),
    35: ENDLESS,
    36: Refused("failed to resolve workgroup count hint"),
    37: Wrong(bytes_of_images, convolved, "gfx942"),
    38: SPEED,
    39: Wrong(drawn((4, 8, 64), (4, 128, 64), (4, 128, 64), kind=np.float16), attention, "gfx942"),
    40: CRASHES,
    41: UNREDUCED,
    42: Wrong(
        lambda: [np.array([70, 80, 90], np.uint64) + np.uint64(2**63)],
        lambda x: [x.min()],
        "gfx942",
    ),
    43: Refused("failed to bufferize op", "gfx942"),
    44: CRASHES,
    45: ENDLESS,
    46: CRASHES,
    47: Refused("restricted to lane or thread distributed contexts", "gfx942"),
    48: UNREDUCED,
    49: Refused("exceeded stack allocation limit"),
    50: CRASHES,
    51: Refused("mismatch of result layout", "gfx942"),
    52: Refused("failed to distribute", "gfx942"),
}
