"""The instructions of AMD kernels, counted by class in IREE's assembly text.

The counts are static: a loop's body counts once. Mnemonics are those of LLVM's assembler for gfx9,
gfx11 and gfx12.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mgx_mlir.targets.kernel_walk import functions

_MATRIX = ("v_mfma", "v_wmma", "v_smfmac", "v_swmmac")
_GLOBAL = ("buffer_", "global_", "flat_")
_WIDE = re.compile(r"(?:x[234]|b(?:64|96|128))(?:_|$)")
# LDS instructions that move less than a register at a time
_NARROW_LDS = re.compile(r"_[ui](?:8|16)(?:_|$)")
_LDS_READ = re.compile(r"^ds_(?:read|load)")


@dataclass
class Mix:
    """Instructions of one kernel. `wide` are loads and stores of 8 bytes and more a lane,
    `lds_wide` reads of the LDS of 4 and more. `kinds` are the matrix instructions by mnemonic.
    """

    matrix: int = 0
    vector: int = 0
    scalar: int = 0
    lds: int = 0
    lds_reads: int = 0
    lds_wide: int = 0
    memory: int = 0
    wide: int = 0
    scratch: int = 0
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def instructions(self) -> int:
        """The number of all instructions."""
        return self.matrix + self.vector + self.scalar + self.lds + self.memory + self.scratch

    @property
    def matrix_share(self) -> float | None:
        """Share of vector arithmetic; None without any."""
        total = self.matrix + self.vector
        return self.matrix / total if total else None

    @property
    def wide_share(self) -> float | None:
        """Share of memory accesses."""
        return self.wide / self.memory if self.memory else None

    @property
    def lds_wide_share(self) -> float | None:
        """Share of LDS reads."""
        return self.lds_wide / self.lds_reads if self.lds_reads else None

    def count(self, mnemonic: str, times: int = 1) -> None:
        """Count an instruction under its kind."""
        if mnemonic.startswith(_MATRIX):
            self.matrix += times
            self.kinds[mnemonic] = self.kinds.get(mnemonic, 0) + times
        elif mnemonic.startswith("scratch_"):
            self.scratch += times
        elif mnemonic.startswith("ds_"):
            self.lds += times
            if _LDS_READ.match(mnemonic):
                self.lds_reads += times
                self.lds_wide += 0 if _NARROW_LDS.search(mnemonic) else times
        elif mnemonic.startswith(_GLOBAL):
            self.memory += times
            self.wide += times if _WIDE.search(mnemonic) else 0
        elif mnemonic.startswith("v_"):
            self.vector += times
        else:
            self.scalar += times


def mixes(lines: Iterable[str]) -> dict[str, Mix]:
    """Count the instructions of each function of an assembly file, by function name."""
    found: dict[str, Mix] = {}
    for name, code in functions(lines).items():
        mix = found[name] = Mix()
        for i in code.instructions:
            mix.count(i.name)
    return found


__all__ = ["Mix", "mixes"]
