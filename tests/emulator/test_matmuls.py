"""Products as `gpu/gemm_shape.py` chooses them, on emulated GPUs, against numpy in float64."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.compiler.dump_files import kept_assembly
from mgx_mlir.compiler.tuning.cost_models import by_time
from mgx_mlir.debug.gpu_kernels import gpu_kernels
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import (
    GemmConfig,
    GemmShape,
    default,
    padded_depth,
)
from mgx_mlir.passes.lowering.gpu.matmul.tiles import MmaSchedule
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets.kernel_bounds import Launch, compile_with_bounds
from mgx_mlir.targets.report import gpu_report
from tests.emulator.oracle import LIMITS, error
from tests.lowering.programs import Programs
from tests.support.models import bytes_of

pytestmark = pytest.mark.emulator
OTHERS = ("gfx90a", "gfx950", "gfx1201")
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8}
NAMES = {"f16": "half_type", "bf16": "bf16_type", "f32": "float_type", "i8": "int8_type"}
# rows, depth, columns: whole tiles; cut ones, with a depth of no matrix instruction's; deep ones
# in parts, of whole and of cut tiles
WHOLE, CUT, PARTS, CUT_PARTS = (64, 128, 96), (33, 127, 65), (48, 4096, 32), (33, 1024, 65)
CASES = [("f16", d) for d in (WHOLE, CUT, PARTS, CUT_PARTS)]
CASES += [(t, d) for t in ("bf16", "i8") for d in (WHOLE, CUT, CUT_PARTS)]
CASES += [("f32", WHOLE), ("f32", CUT)]
CASES += [("f16", (77, 80, 50))]  # one turn over the depth, filled up; rows of more than one tile


def products() -> Programs:
    """A dot with bias and activation for each case, an 8-bit one alone."""
    rng = np.random.default_rng(7)
    net = Programs()
    for name, (m, k, n) in CASES:
        kind = TYPES[name]
        if name == "i8":
            x, w = (rng.integers(-128, 128, d).astype(kind) for d in ((m, k), (k, n)))
            want = x.astype(np.int64) @ w.astype(np.int64)
            net.add(lambda b, v, w=w: b.op("quant_dot", v, b.literal(w), []), [x], want)
            continue
        x, w, bias = (rng.standard_normal(d).astype(kind) for d in ((m, k), (k, n), (n,)))
        w = (w.astype(np.float64) / k**0.5).astype(kind)
        want = np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias.astype(np.float64), 0)
        net.add(
            lambda b, v, w=w, c=bias: b.relu(b.add(b.dot(v, b.literal(w)), b.literal(c))), [x], want
        )
    return net


def run(
    net: Programs, lowered: Lowered, arch: str, library: Path
) -> tuple[list[Launch], list[np.ndarray]]:
    """The launches, none of which spills, and the results."""
    vmfb, launches = compile_with_bounds(lowered.bytecode, arch)
    found = launches["main"]
    assert [x.kernel.name for x in found if x.kernel.spills or x.kernel.scratch] == []
    module = LoadedModule(
        vmfb, lowered.params, inputs=lowered.inputs, outputs=lowered.outputs, device="hip",
        library=str(library),
    )  # fmt: skip
    return found, module.run(net.inputs)


# batch, rows, depth, columns of dots whose operands are both computed
COMPUTED = [((), 64, 64, 96), ((), 33, 127, 65), ((3,), 64, 64, 96), ((2,), 17, 197, 64)]


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_computed_operands(arch: str, dtype: str, library: Path) -> None:
    rng, net = np.random.default_rng(5), Programs()
    kind = TYPES[dtype]
    for batch, m, k, n in COMPUTED:
        x, y = (rng.standard_normal(d).astype(kind) for d in ((*batch, m, k), (*batch, k, n)))
        y = (y.astype(np.float64) / k**0.5).astype(kind)
        want = np.maximum(x.astype(np.float64) @ y.astype(np.float64), 0)
        net.add(lambda b, v, w: b.relu(b.dot(v, w)), [x, y], want)
    lowered = net.lowered("fuse_pointwise_reduce", target="gpu", arch=arch)
    launches, got = run(net, lowered, arch, library)
    assert len(launches) == len(COMPUTED)
    for a, want in zip(got, net.want, strict=True):
        assert error(a, want) <= LIMITS[dtype]


def choose(arch: str, product: GemmShape) -> GemmConfig:
    """The default; deep ones in four parts."""
    found = default(arch, product)
    return GemmConfig(found.tile, 4) if product.dims[2] >= 1024 else found


def kernels_of(arch: str) -> tuple[Programs, Lowered]:
    net = products()
    lowered = net.lowered(
        "mgx-fuse-pointwise-reduce{quantized=true}", target="gpu", arch=arch,
        gemm_configs=lambda product, _: choose(arch, product),
    )  # fmt: skip
    return net, lowered


@pytest.mark.parametrize(
    "arch",
    ["gfx942", "gfx1100", *(pytest.param(a, marks=pytest.mark.slow) for a in OTHERS)],
)
def test_products(arch: str, library: Path) -> None:
    net, lowered = kernels_of(arch)
    found, got = run(net, lowered, arch, library)
    # parts are added up by a launch more, rows filled up by one before
    more = sum(k >= 1024 for _, (_, k, _) in CASES)
    more += sum(
        padded_depth(arch, GemmShape("dot", NAMES[t], (m, n, k))) > k for t, (m, k, n) in CASES
    )
    assert len(found) == len(CASES) + more
    # f32 has matrix instructions on CDNA alone
    plain = sum(x.time is None or not x.time.busy["matrix"] for x in found)
    assert plain == more + (2 if arch.startswith("gfx1") else 0)
    for (dtype, dims), a, want in zip(CASES, got, net.want, strict=True):
        assert error(a, want) <= LIMITS[dtype], (dtype, dims)


COUNTED = """
import sys
from pathlib import Path
import mgx_mlir
from tests.emulator.test_matmuls import counted
counted(Path(sys.argv[1]))
"""


def counted(library: Path) -> None:
    """Run products of whole tiles; print the instructions that their code says each one runs."""
    rng = np.random.default_rng(0)
    net = Programs()
    for n in (32, 64, 160):
        x, w = (rng.standard_normal(d).astype(np.float16) for d in ((64, 1024), (1024, n)))
        net.add(lambda b, v, w=w: b.relu(b.dot(v, b.literal(w))), [x], x @ w)
    lowered = net.lowered("fuse_pointwise_reduce", target="gpu", arch="gfx942")
    vmfb, launches = compile_with_bounds(lowered.bytecode, "gfx942")
    LoadedModule(vmfb, lowered.params, device="hip", library=str(library)).run(net.inputs)
    print(json.dumps({x.kernel.name: x.time.instructions for x in launches["main"] if x.time}))


def test_instructions_are_as_many_as_run(library: Path, tmp_path: Path) -> None:
    """Instruction counts that are predicted from the code equal those that waves ran."""
    path = tmp_path / "stats.json"
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, str(library)], capture_output=True, text=True,
        env={**os.environ, "MGX_EMULATE_STATS": str(path)}, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    ran = {
        r["kernel"]: r["instructions"] / r["waves"]
        for r in json.loads(path.read_text())["launches"]
    }
    assert len(said) == 3
    assert ran == said


def test_the_clock_as_a_judge(library: Path) -> None:
    """Functions of one module, called in turns on a device: here the emulator's, whose times say
    nothing but that each was run."""
    rng, net = np.random.default_rng(3), Programs()
    x, w = (rng.standard_normal(d).astype(np.float16) for d in ((16, 64), (64, 32)))
    net.add(lambda b, v: b.relu(b.dot(v, b.literal(w))), [x], x @ w)
    net.finish()
    run_pipeline(net.module, ["fuse_pointwise_reduce"], store=net.store)
    program = ProgramIR(net.ctx, net.module, net.store, "programs")
    with net.store.active():
        lowered = lower_to_linalg(
            program, LowerOptions("gpu", arch="gfx942"), {"choice1": program.clone()}
        )
    names = ["main", "choice1"]
    found = by_time("gfx942", library=str(library))(lowered, names)
    assert list(found) == names
    assert all(us is not None and us > 0 for us in found.values())
    # a clock that advances one second per call
    ticks = iter(range(1, 1 << 20))
    found = by_time("gfx942", library=str(library), clock=lambda: next(ticks))(lowered, names)
    assert found == {"main": 1e6, "choice1": 1e6}


# a first operand of ui8, a zero point of it, zero points of columns, a computed second operand
INTEGERS = [(False, None, False, False), (True, 131, False, False), (True, 128, True, False),
            (False, 5, False, True)]  # fmt: skip


@pytest.mark.parametrize(
    ("arch", "tile"),
    [
        ("gfx942", MmaSchedule((1, 8, 8), (1, 2, 4), 2)),  # eight waves
        ("gfx950", MmaSchedule((1, 8, 8), (1, 2, 2), 2)),  # waves of 16 results
        ("gfx950", MmaSchedule((1, 8, 16), (1, 2, 4), 2)),  # eight of them, of whole tiles alone
    ],
)
def test_tiles_of_large_products(arch: str, tile: MmaSchedule, library: Path) -> None:
    """Schedules that prefetch from the LDS, with a residual, whole and partial tiles."""
    rng, net = np.random.default_rng(17), Programs()
    for kind in (np.float16, ml_dtypes.bfloat16):
        columns = 16 * tile.tiles[2]
        cut = [] if columns > 128 else [(130, 512, 136)]
        for m, k, n in ((128, 512, columns), *cut):
            w = (rng.standard_normal((k, n)) / k**0.5).astype(kind)
            x, r = (rng.standard_normal(d).astype(kind) for d in ((m, k), (m, n)))
            want = x.astype(np.float64) @ w.astype(np.float64) + r.astype(np.float64)
            net.add(lambda b, v, c, w=w: b.add(b.dot(v, b.literal(w)), c), [x, r], want)
    lowered = net.lowered(
        "fuse_pointwise_reduce", target="gpu", arch=arch, gemm_configs=lambda *_: GemmConfig(tile)
    )
    found, got = run(net, lowered, arch, library)
    assert len(found) == len(got) == len(net.want)
    for result, want in zip(got, net.want, strict=True):
        # rounded twice
        limit = 2e-3 if result.dtype == np.float16 else 1e-2
        assert np.abs(result.astype(np.float64) - want).max() <= limit * np.abs(want).max()


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_short_loops(arch: str, library: Path) -> None:
    """Eight waves, one to six turns, rows and columns that are cut: with a bias, which the sums
    begin with, and a residual or an activation."""
    rng, net = np.random.default_rng(23), Programs()
    sizes = ((np.float16, 197, 768, 192), (np.float16, 70, 256, 104), (np.float16, 100, 512, 128),
             (ml_dtypes.bfloat16, 130, 384, 256), (ml_dtypes.bfloat16, 61, 64, 72))  # fmt: skip
    for kind, m, k, n in sizes:
        w = (rng.standard_normal((k, n)) / k**0.5).astype(kind)
        x, r, c = (rng.standard_normal(d).astype(kind) for d in ((m, k), (m, n), (n,)))
        sums = x.astype(np.float64) @ w.astype(np.float64) + c.astype(np.float64)

        def biased(b, v, w=w, c=c):
            return b.add(b.dot(v, b.literal(w)), b.literal(c))

        net.add(lambda b, v, f=biased: b.relu(f(b, v)), [x], np.maximum(sums, 0))
        residual = sums + r.astype(np.float64)
        net.add(lambda b, v, q, f=biased: b.add(q, f(b, v)), [x, r], residual)
        # a product with two readers keeps its zeros
        net.add(lambda b, v, w=w, c=c: b.mul(y := b.dot(v, b.literal(w)), b.add(y, b.literal(c))),
                [x], (sums - c.astype(np.float64)) * sums)  # fmt: skip
    lowered = net.lowered("fuse_pointwise_reduce", target="gpu", arch=arch)
    found, got = run(net, lowered, arch, library)
    assert len(found) == len(got)
    for result, want in zip(got, net.want, strict=True):
        limit = 2e-3 if result.dtype == np.float16 else 1e-2
        assert np.abs(result.astype(np.float64) - want).max() <= limit * np.abs(want).max()


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_tiles_of_three_and_six(arch: str, library: Path) -> None:
    """Six waves and eight, of two turns and more, rows that are cut: with a bias and a residual."""
    rng, net, tiles = np.random.default_rng(29), Programs(), []
    sizes = ((np.float16, 100, 384, 96, (3, 6), (3, 2)), (np.float16, 192, 384, 96, (6, 6), (3, 2)),
             (ml_dtypes.bfloat16, 75, 520, 96, (4, 6), (4, 2)))  # fmt: skip
    for kind, m, k, n, size, waves in sizes:
        w = (rng.standard_normal((k, n)) / k**0.5).astype(kind)
        x, r, c = (rng.standard_normal(d).astype(kind) for d in ((m, k), (m, n), (n,)))

        def biased(b, v, q, w=w, c=c):
            return b.add(q, b.add(b.dot(v, b.literal(w)), b.literal(c)))

        want = x.astype(np.float64) @ w.astype(np.float64) + c.astype(np.float64)
        net.add(biased, [x, r], want + r.astype(np.float64))
        tiles.append(((m, n, k), MmaSchedule((1, *size), (1, *waves), 4)))
    chosen = dict(tiles)
    lowered = net.lowered("fuse_pointwise_reduce", target="gpu", arch=arch,
                          gemm_configs=lambda p, _: GemmConfig(chosen[p.dims]))  # fmt: skip
    found, got = run(net, lowered, arch, library)
    assert len(found) == len(got)
    for result, want in zip(got, net.want, strict=True):
        limit = 2e-3 if result.dtype == np.float16 else 1e-2
        assert np.abs(result.astype(np.float64) - want).max() <= limit * np.abs(want).max()


def matmul_integer(rng: np.random.Generator, unsigned: bool, zero: int | None, columns: bool,
                   computed: bool) -> tuple[bytes, dict[str, np.ndarray], np.ndarray]:  # fmt: skip
    """ONNX MatMulInteger with its inputs and what it gives."""
    m, k, n = CUT
    kind = np.uint8 if unsigned else np.int8
    low, high = np.iinfo(kind).min, np.iinfo(kind).max + 1
    a = rng.integers(low, high, (m, k)).astype(kind)
    b = rng.integers(-128, 128, (k, n)).astype(np.int8)
    p = np.array(0 if zero is None else zero, kind)
    q = rng.integers(-9, 9, n).astype(np.int8) if columns else np.array(0, np.int8)
    points = {} if zero is None and not columns else {"p": p, "q": q}
    inputs, weights = ({"a": a, "b": b}, points) if computed else ({"a": a}, {"b": b, **points})
    multiply = helper.make_node("MatMulInteger", ["a", "b", *points], ["y"])
    model = bytes_of([multiply], inputs, {"y": (TensorProto.INT32, [m, n])}, weights)
    return model, inputs, (a.astype(np.int64) - p) @ (b.astype(np.int64) - q)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_integers(arch: str, library: Path) -> None:
    rng = np.random.default_rng(11)
    for options in INTEGERS:
        model, inputs, want = matmul_integer(rng, *options)
        with kept_assembly() as assembly:
            made = mgx_mlir.compile(model, target="gpu", arch=arch, emulate=True, cache=False)
        assert np.array_equal(made.run(inputs)[0], want), options
        report = gpu_report(made.executable.vmfb, made.executable.dispatches)
        assert [k.name for k in report.kernels if k.spills or k.scratch] == []
        (product,) = (r for r in gpu_kernels(report, assembly, {}, arch).rows
                      if "matmul" in r.kernel.name)  # fmt: skip
        assert product.mix.matrix > 0


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_wide_integers(arch: str, library: Path) -> None:
    rng, net = np.random.default_rng(13), Programs()
    for m, k, n in (WHOLE, CUT):
        x, w = (rng.integers(-(2**31), 2**31, d).astype(np.int32) for d in ((m, k), (k, n)))
        want = (x.astype(np.int64) @ w.astype(np.int64)).astype(np.int32)
        net.add(lambda b, v, w: b.dot(v, w), [x, w], want)
    lowered = net.lowered("fuse_pointwise_reduce", target="gpu", arch=arch)
    _, got = run(net, lowered, arch, library)
    for a, want in zip(got, net.want, strict=True):
        assert np.array_equal(a, want)


@pytest.mark.emulator
@pytest.mark.parametrize("rows", [6, pytest.param(13, marks=pytest.mark.slow)])
def test_few_rows_of_a_batch_stay_in_their_matrix(rows: int, library: Path) -> None:
    """Behind an epilogue threads past the last row of a matrix wrote into the next one."""
    net = f"""(float[{rows},40] x) => (float[3,{rows},40] y)
    {{ a = MatMul(x, w)  s = Sigmoid(a)  y = Mul(a, s) }}"""
    environment = {**os.environ, "MGX_EMULATE_CHECK": "races"}
    environment["MGX_EMULATOR_PATH"] = str(library)
    subprocess.run([sys.executable, "-c", BATCH, net, str(rows)], env=environment, check=True)


BATCH = """
import sys
import numpy as np
import mgx_mlir
from tests.support.models import parsed

rng = np.random.default_rng(0)
w = rng.standard_normal((3, 40, 40)).astype(np.float32)
model = parsed(sys.argv[1], {"w": w}, opset=18).SerializeToString()
program = mgx_mlir.compile(model, "gpu", arch="gfx1030", emulate=True, cache=False)
x = rng.standard_normal((int(sys.argv[2]), 40)).astype(np.float32)
a = np.matmul(x.astype(np.float64), w)
np.testing.assert_allclose(program.run(x=x)[0], a / (1 + np.exp(-a)), rtol=1e-4, atol=1e-4)
"""
