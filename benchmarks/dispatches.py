"""Counts the launches of a compiled program: IREE's kernels, next to the printed ones.

    python benchmarks/dispatches.py MODEL.onnx ... --target cpu [--arch gfx942] [--layers 12]

Launches that only pack operands for a dot are listed separately; copies and fills are no
dispatches. With --layers, it counts the kernels that every layer has: those whose number is a
multiple of it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgx_mlir

PACKING = "_encoding_"


def row(path: str, options: dict[str, Any], layers: int) -> list[str]:
    """model, printed kernels, launches, packing launches, fallbacks, kernels of one layer"""
    program = mgx_mlir.compile(path, **options)
    launched = [
        name
        for function, names in program.executable.dispatches.items()
        if function != "initializer"
        for name in names
    ]
    packing = sum(PACKING in n for n in launched)
    kernels = [k.name for k in program.kernels]
    each = sum(n // layers for n in Counter(kernels).values()) if layers else 0
    return [
        Path(path).stem, str(len(kernels)), str(len(launched) - packing), str(packing),
        str(len(program.executable.fallbacks)), str(each) if layers else "-",
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--target", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--layers", type=int, default=0, help="of every model named")
    arguments = parser.parse_args()
    options: dict[str, Any] = {"target": arguments.target}
    options |= {"arch": arguments.arch} if arguments.target == "gpu" else {"threads": 1}
    print("| model | printed kernels | launches | packing | fallbacks | a layer |")
    print("|---|---:|---:|---:|---:|---:|")
    for path in arguments.models:
        print("|", " | ".join(row(path, options, arguments.layers)), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
