"""Bounds of Triton's kernels for AMD GPUs, compiled without one: what ours are held against.

    pip install triton
    python benchmarks/triton_bounds.py dot:2048,4096,4096 row:4096,4096 decode:32,2048,128
                                       attention:32,2048,128,causal
                                       [--arch gfx942] [--type f16] [--most 40] [--best 1]

`dot` of rows, columns, depth, and what follows it (bias, gelu, residual); `row` of columns, depth
(one row); `attention` of heads, queries (and as many keys), depth; `decode` of heads of one query,
keys, depth: by parts of the keys, which a second launch joins. For each the best of up to `--most`
configurations by `kernel_time`, those whose loops have known trips. Causal attention is compiled
with the blocks that a workgroup has on average: Triton's skips those above the diagonal.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite
from typing import Any

from mgx_mlir.hardware.chips import CHIPS, LAUNCH_US, Chip
from mgx_mlir.targets.kernel_time import KernelTime, kernel_time
from mgx_mlir.targets.kernel_walk import functions
from mgx_mlir.targets.report import KernelReport

TYPES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32"}
BYTES = {"f16": 2, "bf16": 2, "f32": 4}
MOST = 40
FOLLOWS = ("bias", "gelu", "residual")  # ops that may follow a matmul in its kernel


@dataclass(frozen=True)
class Tried:
    """One configuration: its constants, how it is compiled, its workgroups."""

    constants: dict[str, Any]
    options: dict[str, int]
    workgroups: int
    elements: int  # elements that it reads and writes


def dots(chip: Chip, m: int, n: int, k: int, follows: Sequence[str] = ()) -> Iterator[Tried]:
    """Configurations of a product, those first that a rough estimate puts first."""
    found: list[tuple[float, Tried]] = []
    sizes = (16, 32, 64, 128, 256)
    for rows, columns, depth, warps, side in product(
        sizes, sizes, (32, 64, 128, 256), (1, 2, 4, 8), (16, 32)
    ):
        pieces = rows * columns // (warps * side * side)
        held = (rows + columns) * depth
        if rows > max(16, _up(m)) or columns > max(16, _up(n)) or depth > _up(k) or pieces < 1:
            continue
        if rows * columns // warps > 8192 or held * 2 > chip.lds or held // (warps * 64) > 256:
            continue
        count = -(-m // rows) * -(-n // columns)
        each = -(-count // chip.units)
        matrix = each * rows * columns * k / (chip.matrix / 2) * max(1, 4 / warps / each)
        clocks = max(matrix, each * (rows + columns) * k / 8) + 450 * k / depth
        found.append((
            clocks, Tried({"k": k, "M": rows, "N": columns, "K": depth, "EVEN": k % depth == 0,
                           **{w.upper(): w in follows for w in FOLLOWS}},
                          {"num_warps": warps, "matrix_instr_nonkdim": side}, count,
                          m * k + n * k + m * n * (2 if "residual" in follows else 1)),
        ))  # fmt: skip
    yield from (t for _, t in sorted(found, key=lambda f: f[0]))


def rows(chip: Chip, n: int, k: int) -> Iterator[Tried]:
    """Configurations of one row by weights."""
    for columns, depth, warps in product((1, 2, 4, 8), (256, 512, 1024, 2048), (1, 2, 4)):
        if k % depth == 0 and n % columns == 0 and columns * depth // (warps * chip.lanes) <= 128:
            constants = {"k": k, "N": columns, "K": depth}
            yield Tried(constants, {"num_warps": warps}, n // columns, n * k + n + k)


def attentions(heads: int, length: int, depth: int, *, causal: bool) -> Iterator[Tried]:
    """Configurations of an attention over as many keys as queries."""
    for m, n, warps, stages in product((64, 128, 256), (32, 64, 128), (4, 8), (1, 2)):
        if not 16 <= m // warps <= 32 or length % m or length % n:
            continue
        # blocks ahead of the diagonal: from none to all of them
        turns = (length - m) // n // 2 if causal else length // n
        constants = {"QUERIES": length, "KEYS": length, "TURNS": turns, "D": depth, "M": m, "N": n,
                     "CAUSAL": causal}  # fmt: skip
        options = {"num_warps": warps, "num_stages": stages, "matrix_instr_nonkdim": 16}
        yield Tried(constants, options, heads * length // m, 4 * heads * length * depth)


def decodes(chip: Chip, heads: int, keys: int, depth: int) -> Iterator[Tried]:
    """Configurations of one query of each head, by parts of the keys."""
    for parts, n, warps in product((8, 16, 32), (16, 32, 64), (1, 2, 4)):
        if keys % (parts * n) == 0 and n * depth // (warps * chip.lanes) <= 64:
            constants = {"KEYS": keys, "PARTS": parts, "D": depth, "N": n}
            yield Tried(constants, {"num_warps": warps}, heads * parts, 2 * heads * keys * depth)


def joins(heads: int, parts: int, depth: int) -> Tried:
    """Return how the parts of `decodes` are joined."""
    moved = heads * (2 * parts + 1) * depth
    return Tried({"PARTS": parts, "D": depth}, {"num_warps": 1}, heads, moved)


def bound(kernel: Any, tried: Tried, arch: str, kind: str) -> tuple[KernelTime, KernelReport]:
    """Compile a configuration; return its bound."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    chip = CHIPS[arch]
    numbers = {"m": "i32", "n": "i32", "scale": "fp32", "part": "*fp32", "tops": "*fp32",
               "sums": "*fp32"}  # fmt: skip
    signature = {
        name: "constexpr" if name in tried.constants else numbers.get(name, f"*{TYPES[kind]}")
        for name in kernel.arg_names
    }
    aligned = {
        (i,): [["tt.divisibility", 16], ["tt.pointer_range", 32]]
        for i, t in enumerate(signature.values())
        if t.startswith("*")
    }
    options = {"num_stages": 2, **tried.options}
    if arch in ("gfx90a", "gfx942"):
        options["kpack"] = 1
    source = ASTSource(fn=kernel, signature=signature, constexprs=tried.constants, attrs=aligned)
    made = compile(source, target=GPUTarget("hip", arch, chip.lanes), options=options)
    text = made.asm["amdgcn"]

    def number(key: str) -> int:
        found = re.search(rf"\.{key}:\s+(\d+)", text)
        return int(found[1]) if found else 0

    code = next(iter(functions(text.splitlines()).values()))
    vgprs = number("vgpr_count")
    report = KernelReport(
        name=kernel.__name__, arch=arch, vgprs=vgprs, agprs=number("agpr_count"),
        sgprs=number("sgpr_count"), vgpr_spills=number("vgpr_spill_count"), sgpr_spills=0,
        lds=made.metadata.shared, scratch=number("private_segment_fixed_size"),
        workgroup=(tried.options["num_warps"] * chip.lanes, 1, 1), wavefront=chip.lanes,
        given=-(-vgprs // chip.granule) * chip.granule,
    )  # fmt: skip
    return kernel_time(report, code, chip, tried.workgroups, tried.elements * BYTES[kind]), report


def ranked(
    spec: str, arch: str, kind: str, most: int = MOST
) -> list[tuple[KernelTime, Tried, KernelReport]]:
    """Return the configurations of a spec with their bounds, best first."""
    from benchmarks import triton_kernels as kernels

    chip, (what, _, rest) = CHIPS[arch], spec.partition(":")
    words = rest.split(",")
    sizes = [int(w) for w in words if w.isdigit()]
    if what == "dot":
        kernel, tries = kernels.product, dots(chip, *sizes, follows=words)
    elif what == "row":
        kernel, tries = kernels.row, rows(chip, *sizes)
    elif what == "decode":
        kernel, tries = kernels.decode, decodes(chip, *sizes)
    else:
        kernel, tries = kernels.attention, attentions(*sizes, causal="causal" in words)
    found: list[tuple[KernelTime, Tried, KernelReport]] = []
    for tried in list(tries)[:most]:
        try:
            time, report = bound(kernel, tried, arch, kind)
        except Exception as error:  # skip a configuration that fails
            print(f"{spec} {tried.constants}: {str(error)[:100]}", file=sys.stderr)
            continue
        if what == "decode":
            heads, _, depth = sizes
            second = joins(heads, tried.constants["PARTS"], depth)
            more = bound(kernels.joined, second, arch, kind)[0].us
            time = replace(time, us=time.us + LAUNCH_US + more)
        if time.exact and isfinite(time.us):
            found.append((time, tried, report))
    return sorted(found, key=lambda f: f[0].us)


def _up(n: int) -> int:
    return 1 << (n - 1).bit_length()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--arch", default="gfx942", choices=sorted(CHIPS))
    parser.add_argument("--type", default="f16", choices=sorted(TYPES))
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--best", type=int, default=1)
    options = parser.parse_args(argv)
    warnings.filterwarnings("ignore")
    for spec in options.specs:
        found = ranked(spec, options.arch, options.type, options.most)
        for time, tried, report in found[: options.best]:
            print(
                f"{spec:<28}{options.arch:<8}{options.type:<6}{time.us:>9.2f}  {time.bound_by:<8}"
                f"{tried.workgroups:>6} groups, {time.resident} resident, {report.vgprs} registers,"
                f" {report.lds} B, {tried.constants} {tried.options}", flush=True
            )  # fmt: skip
        if not found:
            print(f"{spec:<28}{options.arch:<8}{options.type:<6} none of known trips", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
