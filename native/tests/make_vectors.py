"""Writes vectors.tar.xz: instructions with inputs and the results that the ISA's documents say.

usage: python native/tests/make_vectors.py --llvm-mc PATH      (LLVM 22 or newer, and numpy)

The results are computed here in numpy, independently of the emulator; LLVM only assembles. The
file is kept, so that the tests need neither. A line is `case ARCH ASSEMBLY`, followed by `words`,
`in` (a register's lanes, repeated over the wave; s registers have one value) and `out` (wanted
lanes, and by how many units of the last place they may differ).
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
BEFORE = "gfx1030"
sys.path.insert(0, str(HERE))


@dataclass
class Case:
    """Assembly lines, register inputs and outputs as arrays of u32 (one value for s registers)."""

    arch: str
    text: str
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    ulp: int = 0
    wave32: bool = field(init=False)

    def __post_init__(self) -> None:
        self.wave32 = self.arch.startswith("gfx1")


def encode(tool: str, arch: str, text: str) -> list[int]:
    command = [tool, "--triple=amdgcn", f"-mcpu={arch}", "--show-encoding"]
    if arch.startswith(("gfx11", "gfx12")):
        command.append("-mattr=+real-true16")
    lines = text.replace(" ; ", "\n")
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    if done.stderr:
        raise ValueError(f"{arch}: {text}\n{done.stderr}")
    words = []
    for found in re.findall(r"encoding: \[(.*)\]", done.stdout):
        code = bytes(int(b, 16) for b in found.split(","))
        words += [int.from_bytes(code[i : i + 4], "little") for i in range(0, len(code), 4)]
    return words


def row(values: np.ndarray) -> str:
    return " ".join(f"{int(v):x}" for v in np.atleast_1d(values).astype(np.uint32))


def pack(text: str, path: Path) -> None:
    """Write a text as the only file of an archive, the same bytes for the same text."""
    data = text.encode()
    info = tarfile.TarInfo("vectors.txt")
    info.size = len(data)
    with tarfile.open(path, "w:xz") as archive:
        archive.addfile(info, io.BytesIO(data))


def with_before(cases: Iterator[Case]) -> Iterator[Case]:
    """The cases, and those of gfx1100 for gfx10.3, whose instructions do the same."""
    for c in cases:
        yield c
        if c.arch == "gfx1100":
            yield replace(c, arch=BEFORE)


def write(cases: Iterator[Case], tool: str, path: Path) -> int:
    count = 0
    problems: list[str] = []
    lines = ["# written by make_vectors.py; do not edit"]
    for c in cases:
        try:
            words = encode(tool, c.arch, c.text)
        except ValueError as e:
            if c.arch != BEFORE:  # the older chip lacks some, or names them otherwise
                problems.append(str(e))
            continue
        lines.append(f"case {c.arch} {c.text}")
        lines.append("words " + " ".join(f"{w:x}" for w in words))
        lines += [f"in {name} {row(v)}" for name, v in c.inputs.items()]
        lines += [f"out {name} {c.ulp} {row(v)}" for name, v in c.outputs.items()]
        count += 1
    if problems:
        raise SystemExit("\n".join(problems))
    pack("\n".join(lines) + "\n", path)
    return count


def main() -> None:
    from vector_cases import every_case

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--llvm-mc", default="llvm-mc")
    tool = parser.parse_args().llvm_mc
    print(write(with_before(every_case()), tool, HERE / "vectors.tar.xz"), "cases")


if __name__ == "__main__":
    main()
