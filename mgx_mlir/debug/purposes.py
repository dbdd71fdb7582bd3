"""Purpose of an input, which decides how test values are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Purpose = Literal["any", "mask", "index", "size"]


@dataclass(frozen=True)
class Draw:
    """Purpose of an input. index: values below `bound`; mask: 1 then 0; size: 1; any: all."""

    purpose: Purpose = "any"
    bound: int = 0

    def __str__(self) -> str:
        return {
            "any": "MIGraphX's numbers",
            "mask": "1 up to a point of the last dimension, then 0: it acts as a mask",
            "index": f"0 to {self.bound - 1}: it indexes {self.bound} entries",
            "size": "1: it is the size of something",
        }[self.purpose]


__all__ = ["Draw", "Purpose"]
