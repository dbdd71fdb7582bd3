"""Clocks of schedules on AMD GPUs, as the lowering reads them; no GPU is needed.

    python benchmarks/gpu_tiles.py [--arch gfx942 ...] [--judge estimate|code] [--rows 64 128]

Writes `passes/lowering/gpu/configs/<arch>.json`. Of attention: for rows of a length the clocks of a
wave for each number of waves, keys of a tile and lines of a wave. Of matmuls: the clocks of what a
wave does, which were fitted once, and the tiles without matrix instructions. Judges of attention:

* `estimate`: a formula, fitted to what `targets/kernel_time.py` finds in code compiled for gfx942.
* `code`: `kernel_time` of each schedule, compiled for two numbers of keys; minutes for each length.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Mapping
from operator import mul
from pathlib import Path
from unittest import mock

import onnx
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.compiler import compilation
from mgx_mlir.hardware.chips import CHIPS, Chip
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import AttentionTile
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE
from mgx_mlir.passes.lowering.gpu.schedules import LIKE
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.targets.kernel_bounds import compile_with_bounds

ARCHS = sorted(arch for arch, chip in CHIPS.items() if not chip.is_nvidia and arch not in LIKE)
CONFIGS = Path(__file__).resolve().parent.parent / "passes" / "lowering" / "gpu" / "configs"
ROWS = (16, 32, 48, 64, 96, 128, 192, 256)  # elements of rows of keys and of values
JUDGES = {
    "estimate": "a formula fitted to bounds of code compiled for gfx942",
    "code": "bounds of compiled code (targets/kernel_time.py)",
}
# the formula: clocks that a wave waits in an iteration, and before the first and after the last
STEP, ENDS = 450, 1400
# more for each iteration behind the first, from so many elements of a lane on their way: LLVM loads
# late then, and waits for each part. Not on gfx950
LATE, MANY = 1000, 64
# vector instructions of a lane in an iteration: at the least, and for each element of its scores,
# of its share of the tiles of keys and values, and of its sums
VECTOR = (22.0, 7.5, 1.5, 0.5)


# clocks of matmuls; the fields are explained in passes/lowering/gpu/schedules.py
MATMUL = {"least": 480, "meet": 180, "ends": 1000, "near": 1.1, "step": 36, "piece": 200}
LATE_TWO = 1000  # on CDNA, for partial tiles with two k-iterations
MATMUL_JUDGE = "fitted to bounds of code compiled for gfx942 in f16, most within a fifth"
GEMM = {
    "least": 480, "meet": 300, "ends": 100, "near": 1.02, "read": 5, "alone": 45, "mask": 10,
    "mask_depth": 20, "few": 30, "few_vectors": 2, "kept": [0, 30, 60], "first": 50,
    "alone_ends": 300, "one": 250, "cut": 180, "cut_piece": 170, "heavy": 480, "two": 1000,
    "two_of_one": 320,
}  # fmt: skip
GEMM_JUDGE = (
    "fitted to bounds of 408 kernels compiled for gfx942 and gfx950 in f16 and bf16, "
    "those near the best of their GEMM within 3 %"
)
COSTS = {"sum": 1500, "unaligned": 3, "unaligned_partial": 8}
COSTS_JUDGE = (
    "bounds of compiled code: rows that are not aligned take 2 to 4 times, partial 5 to 15"
)
# on chips of deep matrix instructions a wave waits more than it multiplies; with fewer results of
# its own it waits less
NEAR_OF_DEEP = 1.05
# rows and columns of a workgroup and of a thread, depth; ahead of each the workgroups per unit from
# which on it is best, and the most rows
THREADS = {
    "gemm": [
        [2, [64, 64, 4, 8, 16]], [1, [64, 64, 4, 4, 16]], [1, [32, 32, 2, 4, 16]],
        [0, [16, 32, 2, 2, 32]],
    ],
    "few": [[4, [4, 32, 1, 1, 32]], [15, [8, 32, 1, 2, 32]]],
    "windows": [[64, 64, 4, 4, 16], [16, 32, 2, 2, 32]],
}  # fmt: skip
THREADS_JUDGE = "best of some in bounds of code compiled for gfx1100"
LANES = {"waves": 4, "loads": 8, "word_loads": 2, "word_waves": 4, "word_wave_columns": 1,
         "word_columns": 2}  # fmt: skip
LANES_JUDGE = "best of some in bounds of code compiled for gfx942"
FITTED = "2026-11-28"  # at the latest: the fits are older than this script


def schedules(chip: Chip, rows: int) -> list[AttentionTile]:
    """The schedules that are judged. Two lines of a wave are slower on RDNA; eight waves with one
    line each wait longer for the tile that they share."""
    if chip.lanes == 32:
        return [AttentionTile(w, n, rows) for w in (1, 2, 3, 4) for n in (64, 32, 16)]
    keys = (128, 64, 32, 16)
    tiles = [AttentionTile(w, n, rows, m) for w in (1, 2, 3, 4) for n in keys for m in (1, 2)]
    return tiles + [AttentionTile(8, n, rows, 2) for n in keys]


def estimate(arch: str, tile: AttentionTile, width: int) -> tuple[float, float, float]:
    """Clocks by the formula: of an iteration, of the ends, and those that a unit is busy."""
    chip = CHIPS[arch]
    share = tile.share(chip, width)
    matrix = 2 * tile.lines * SIDE * tile.keys * (width + tile.depth) / (chip.matrix / chip.simds)
    vector = (4 if chip.lanes == 64 else 1) * sum(map(mul, VECTOR, share))
    late = LATE if chip.lanes == 64 and chip.depth == SIDE and share[2] >= MANY else 0
    return matrix + vector + STEP + late, ENDS - late, max(matrix, vector)


class Taken(Exception):
    """The module that the compiler was to get."""


def by_code(arch: str, tile: AttentionTile, width: int) -> tuple[float, float, float] | None:
    """Clocks of compiled code, None where it spills or its loop's trips are not known."""
    found = []
    for steps in (4, 8):
        keys = steps * tile.keys
        lowered = _lowered(arch, tile, _attention(2, tile.rows, keys, width))
        _, launches = compile_with_bounds(lowered.bytecode, arch)
        (launch,) = launches["main"]
        if launch.time is None or not launch.time.exact or launch.kernel.spills:
            return None
        found.append(launch.time)
    short, long = found
    iteration = (long.alone - short.alone) / 4
    busy = max((long.busy[u] - short.busy[u]) / 4 for u in ("matrix", "vector"))
    return iteration, short.alone - 4 * iteration, busy


def _lowered(arch: str, tile: AttentionTile, model: bytes) -> Lowered:
    found: list[Lowered] = []

    def stop(*args: object, **more: object) -> None:
        found.append(lower_to_linalg(*args, **more))  # type: ignore[arg-type]  # as it was called
        raise Taken

    with (
        mock.patch.object(attention_tiles, "choose", return_value=tile),
        mock.patch.object(attention_tiles, "blocks", return_value=None),
        mock.patch.object(compilation, "lower_to_linalg", stop),
    ):
        try:
            mgx_mlir.compile(model, target="gpu", arch=arch, cache=False)
        except Taken:
            return found[0]
    raise SystemExit("the lowering was not called")


def _attention(heads: int, queries: int, keys: int, width: int) -> bytes:
    dims = {"q": [queries, width], "k": [width, keys], "v": [keys, width], "y": [queries, width]}
    port = {
        n: helper.make_tensor_value_info(n, TensorProto.FLOAT16, [heads, *d])
        for n, d in dims.items()
    }
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "attention", [port[n] for n in "qkv"], [port["y"]])
    opsets = [helper.make_opsetid("", 17)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model.SerializeToString()


def table(arch: str, judge: str, rows: list[int]) -> dict[str, dict[str, list[float]]]:
    """Clocks by the length of rows and the schedule."""
    clocks = estimate if judge == "estimate" else by_code
    out: dict[str, dict[str, list[float]]] = {}
    for n in rows:
        found = {t: clocks(arch, t, n) for t in schedules(CHIPS[arch], n)}
        out[str(n)] = {
            f"{t.waves}x{t.keys}x{t.lines}": [round(x, 1) for x in c]
            for t, c in found.items()
            if c is not None
        }
    return out


def matmuls(chip: Chip) -> dict[str, dict[str, object]]:
    """Clocks and tiles of matmuls as a file has them. Nothing here fits them anew."""
    cdna = {"late": LATE_TWO} if chip.lanes == 64 else {}
    deep = {"near": NEAR_OF_DEEP} if chip.depth > SIDE else {}
    out: dict[str, dict[str, object]] = {
        "matmul": {"judge": MATMUL_JUDGE, "made": FITTED, "clocks": MATMUL | cdna | deep},
        "gemm_costs": {"judge": COSTS_JUDGE, "made": FITTED, "costs": COSTS},
        "threads": {"judge": THREADS_JUDGE, "made": FITTED, "tiles": THREADS},
        "lanes": {"judge": LANES_JUDGE, "made": FITTED, "tiles": LANES},
    }
    if chip.lanes == 64:
        out["gemm"] = {"judge": GEMM_JUDGE, "made": FITTED, "clocks": GEMM}
    return out


def written(
    arch: str, judge: str, made: str, found: Mapping[str, Mapping[str, list[float]]]
) -> str:
    """The file's text, a line for each schedule."""
    rows: list[str] = []
    for n, clocks in found.items():
        each = ",\n".join(f'   "{k}": {json.dumps(v)}' for k, v in clocks.items())
        rows.append(f'  "{n}": {{\n{each}\n  }}')
    head, all_rows = json.dumps({"judge": judge, "made": made})[1:-1], ",\n".join(rows)
    other = ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in matmuls(CHIPS[arch]).items())
    return f'{{{other},\n"attention": {{{head},\n "clocks": {{\n{all_rows}\n }}\n}}}}\n'


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--arch", nargs="+", default=ARCHS, choices=ARCHS)
    parser.add_argument("--judge", default="estimate", choices=sorted(JUDGES))
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    options = parser.parse_args(argv)
    for arch in options.arch:
        found = table(arch, options.judge, options.rows)
        made = datetime.datetime.now(datetime.UTC).date().isoformat()
        (CONFIGS / f"{arch}.json").write_text(written(arch, JUDGES[options.judge], made, found))
        print(f"{arch}: {sum(map(len, found.values()))} schedules by {options.judge}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
