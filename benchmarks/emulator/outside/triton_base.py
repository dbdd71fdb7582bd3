"""Helpers of the runs of Triton's kernels: a launch, and drawn values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

ARCHS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
RNG = np.random.default_rng(19)
F32, F16, I32 = np.float32, np.float16, np.int32
BF16 = ml_dtypes.bfloat16
NAMES = {
    "float32": "fp32",
    "float64": "fp64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int32": "i32",
    "int8": "i8",
    "uint8": "u8",
    "int64": "i64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}


@dataclass
class Run:
    """A launch: arguments in order (arrays go to the device), and what arrays hold afterwards."""

    kernel: str
    arguments: dict[str, Any]
    constants: dict[str, Any]
    grid: tuple[int, ...]
    want: dict[str, np.ndarray]
    tol: float = 0.0
    warps: int = 4
    archs: tuple[str, ...] = ARCHS
    check: Callable[[dict[str, np.ndarray]], None] | None = None
    label: str = field(default="")

    def __str__(self) -> str:
        return f"{self.kernel} {self.label} {self.warps} warps"


def floats(*dims: int) -> np.ndarray:
    return RNG.standard_normal(dims).astype(F32)
