"""Kernels for NVIDIA: tiles that a device timed, and what its PTX says; no GPU is needed."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from benchmarks import gpu_schedules
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.tuning import tuned
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import UsageError
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.lowering.gpu import schedules
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import DOT, GemmShape, alternatives, default
from mgx_mlir.passes.lowering.gpu.matmul.mma import INTRINSICS
from mgx_mlir.passes.lowering.gpu.matmul.tiles import Extents, MmaSchedule, bounds, choose
from mgx_mlir.targets.ptx import PtxKernel, ptx_executables

NVIDIA = sorted(arch for arch, chip in CHIPS.items() if chip.is_nvidia)
HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT


def kernels_of(
    nodes: list[onnx.NodeProto], ports: Mapping[str, tuple[int, list[int]]], arch: str = "sm_90",
    **held: np.ndarray,
) -> list[PtxKernel]:  # fmt: skip
    """The kernels of a graph from `x` and its like to `y`."""
    values = {n: helper.make_tensor_value_info(n, t, d) for n, (t, d) in ports.items()}
    y = values.pop("y")
    weights = [numpy_helper.from_array(v, n) for n, v in held.items()]
    graph = helper.make_graph(nodes, "g", list(values.values()), [y], weights)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    program = mgx_mlir.compile(model.SerializeToString(), target="gpu", arch=arch)
    assert isinstance(program, IreeProgram)
    assert program.executable.fallbacks == ()
    return [k for ks in ptx_executables(program.executable.vmfb) for k in ks]


@pytest.mark.parametrize("arch", NVIDIA)
def test_a_file_has_tiles_that_were_timed_and_what_timed_them(arch: str) -> None:
    whole = json.loads((gpu_schedules.CONFIGS / f"{arch}.json").read_text())
    for part, count in (("matmul", 17), ("gemm", 17), ("timed", 80)):
        judge = whole[part]["judge"]
        assert re.match(rf"clock of an NVIDIA H200, driver [\d.]+, f16, {count} GEMMs", judge)
        assert whole[part]["made"] >= "2026-11-29"
        assert (f"taken for {arch}" in judge) == (arch != "sm_90")
    chip, known = CHIPS[arch], schedules.timed(arch)
    assert known is not None
    assert {(1, *t) for t, _, _ in gpu_schedules.SCHEDULES} == {size for size, _, _ in known.tiles}
    mma = INTRINSICS[arch][dtypes.HALF]
    for size, waves, steps in known.tiles:
        tile = MmaSchedule(size, waves, steps)
        assert all(n % w == 0 for n, w in zip(size, waves, strict=True))
        assert tile.held(mma) <= chip.workgroup_lds
        assert prod(waves) <= 8
    assert set(known.best.values()) <= set(known.tiles)
    for (rows, columns, depth), best in known.best.items():
        of = Extents(1, rows, columns, depth, apart=True)
        assert choose(chip, mma, of) == MmaSchedule(*best)


def test_other_sizes_take_a_timed_tile_that_divides_the_depth() -> None:
    chip, mma = CHIPS["sm_90"], INTRINSICS["sm_90"][dtypes.HALF]
    known = schedules.timed("sm_90")
    assert known is not None
    for rows, columns, depth in ((300, 1000, 640), (17, 4096, 512), (5000, 640, 96)):
        found = bounds(chip, mma, Extents(1, rows, columns, depth, apart=True))
        assert found
        for t in found:
            assert (t.tiles, t.subgroups, t.k_tiles) in known.tiles
            assert depth % (t.k_tiles * mma.depth) == 0 or depth == 96
            assert t.tiles[1] * mma.rows < 2 * rows + mma.rows


def test_fp8_is_multiplied_by_instructions_of_its_own() -> None:
    assert dtypes.FP8E4M3FN in INTRINSICS["sm_89"]
    assert dtypes.FP8E4M3FN not in INTRINSICS["sm_86"]
    assert INTRINSICS["sm_90"] == INTRINSICS["sm_89"]  # whose PTX it runs


def test_rows_in_shared_memory_are_padded_by_16_bytes() -> None:
    """Rows of 16 bytes that `ldmatrix` reads of eight neighbours meet each bank once."""
    w = np.random.default_rng(0).standard_normal((768, 768)).astype(np.float16)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    [kernel] = kernels_of(nodes, {"x": (HALF, [128, 768]), "y": (HALF, [128, 768])}, w=w)
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in kernel.text
    mma = INTRINSICS["sm_90"][dtypes.HALF]
    tile = choose(CHIPS["sm_90"], mma, Extents(1, 128, 768, 768, apart=True))
    row = tile.k_tiles * mma.depth * mma.bytes + 16
    rows = tile.tiles[1] * mma.rows + tile.tiles[2] * mma.columns
    tiles = tile.stages(CHIPS["sm_90"], mma, 768)
    assert kernel.shared == tiles * rows * row
    assert {(row // 4 * g + t) % 32 for g in range(8) for t in range(4)} == set(range(32))
    assert kernel.local == 0


def test_f32_has_tiles_of_threads_and_4_bit_codes_are_read_as_words() -> None:
    """IREE's own kernels read f32 from the cache, and took 10 to 23 times as long on an H200."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((768, 768)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    [plain] = kernels_of(nodes, {"x": (FLOAT, [128, 768]), "y": (FLOAT, [128, 768])}, w=w)
    assert plain.shared > 0
    assert plain.local == 0
    q = rng.integers(0, 256, (512, 16, 16)).astype(np.uint8)
    scales = rng.standard_normal(512 * 16).astype(np.float16)
    nodes = [helper.make_node("MatMulNBits", ["x", "q", "s"], ["y"], domain="com.microsoft",
                              K=512, N=512, bits=4, block_size=32)]  # fmt: skip
    kernels = kernels_of(nodes, {"x": (HALF, [1, 512]), "y": (HALF, [1, 512])}, q=q, s=scales)
    assert any(re.search(r"ld\.global\.nc\.v[24]\.b32", k.text) for k in kernels)
    assert all(k.local == 0 for k in kernels)
    ports = {"x": (HALF, ["n", 512]), "y": (HALF, ["n", 512])}
    kernels = kernels_of(nodes, ports, q=q, s=scales)
    assert sum("mma.sync" in k.text for k in kernels) == 1


def test_square_roots_and_quotients_are_rounded() -> None:
    nodes = [helper.make_node("Sqrt", ["x"], ["r"]), helper.make_node("Div", ["r", "z"], ["y"])]
    port = (FLOAT, [64, 64])
    [kernel] = kernels_of(nodes, {"x": port, "z": port, "y": port})
    assert "sqrt.rn.f32" in kernel.text
    assert "div.rn.f32" in kernel.text
    assert ".approx" not in kernel.text  # there is no matrix of 16 bits beside them


@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_8_bit_floats_are_converted(kind: int) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["q"], to=kind),
             helper.make_node("Cast", ["q"], ["y"], to=FLOAT)]  # fmt: skip
    kernels = kernels_of(nodes, {"x": (FLOAT, [64]), "y": (FLOAT, [64])}, "sm_86")
    assert len(kernels) == 1


@pytest.mark.parametrize("arch", ["sm_90", "sm_120"])
def test_a_mask_of_the_lowest_number_stays_finite(arch: str) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "k"], ["s"]),
        helper.make_node("Add", ["s", "m"], ["t"]),
        helper.make_node("Softmax", ["t"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    ports = {n: (FLOAT, d) for n, d in (("x", [2, 16, 32]), ("k", [2, 32, 16]), ("m", [2, 16, 16]),
                                        ("v", [2, 16, 32]), ("y", [2, 16, 32]))}  # fmt: skip
    kernels = kernels_of(nodes, ports, arch)
    bound = f"0f{struct.unpack('<I', struct.pack('<f', -1e38))[0]:08X}"
    assert any(bound in k.text for k in kernels)


def test_the_judge_orders_schedules(tmp_path: Path) -> None:
    """Times that follow the bound are ranked as it ranks them; a wrong result is counted."""
    rows = []
    for m, n, k in ((128, 768, 768), (1024, 1024, 1024)):
        for i, (size, waves, steps) in enumerate(gpu_schedules.SCHEDULES[4:12]):
            tile = {"size": [1, *size], "waves": [1, *waves], "steps": steps}
            rows.append({"dims": [m, n, k], "tile": tile, "us": 10.0 + i, "error": 0})
        rows.append({"dims": [m, n, k], "tile": None, "us": 30.0, "error": 1})
    said = {
        "device": {"said": "card, 1.2, 3 MHz", "date": "2026-11-29", "torch": "2"},
        "peers": {"f16 128x768x768": 5.0, "f16 1024x1024x1024": 5.0},
        "times": rows,
    }
    path = tmp_path / "times.json"
    path.write_text(json.dumps(said))
    timed = gpu_schedules.read([path])
    assert timed.wrong == 2
    assert timed.own[128, 768, 768] == 30
    known = schedules.mma("sm_90")
    found = gpu_schedules.bounds_of("sm_90", known, timed)
    for dims, bound in found.items():
        timed.times[dims] = dict(zip(timed.times[dims], bound, strict=True))
    for rank, lost in gpu_schedules.judged(found, timed).values():
        assert rank == pytest.approx(1)
        assert lost == 1
    assert gpu_schedules.correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    text = gpu_schedules.page(timed, gpu_schedules.judged(found, timed), {(1,): (0.5, 2.0)})
    assert "| 128 x 768 x 768 | 5.0 | 30.0 |" in text
    assert "clock of an card, driver 1.2, f16, 2 GEMMs" in gpu_schedules.config(timed, {}, "sm_90")


def test_a_search_compares_timed_tiles_and_needs_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = GemmShape(DOT, dtypes.HALF.name, (128, 768, 768))
    found = alternatives("sm_90", shape, 12)
    assert len(found) == 12
    assert found[0] == default("sm_90", shape)
    known = schedules.timed("sm_90")
    assert known is not None
    for config in found:
        t = config.tile
        assert t is None or (t.tiles, t.subgroups, t.k_tiles) in known.tiles
    monkeypatch.setattr(tuned, "_is_timed", lambda _: False)
    node = helper.make_node("Relu", ["x"], ["y"])
    port = [helper.make_tensor_value_info(n, FLOAT, [4]) for n in "xy"]
    graph = helper.make_graph([node], "g", port[:1], port[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    with pytest.raises(UsageError, match="needs the device"):
        mgx_mlir.compile(model.SerializeToString(), "gpu", arch="sm_90", exhaustive_tune=True)
