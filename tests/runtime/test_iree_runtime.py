"""LoadedModule: every element type and rank in and out, parameters, errors, ownership, threads."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError, RunError, UsageError
from mgx_mlir.core.literals import aligned, aligned_empty, is_aligned
from mgx_mlir.programs.lowered import IOSpec
from mgx_mlir.runtime.buffers import address
from mgx_mlir.runtime.device import choose
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets.devices import gpu_devices
from tests.runtime.conftest import Compile

WIRE = {d: d.mlir.removeprefix("u") for d in dtypes.DTYPES}


def transposes() -> str:
    """For each element type: a static, a rank-0, an empty and a dynamic input, moved by a kernel.

    The static ones are transposed, the others selected against themselves, so that nothing is
    handed back untouched.
    """
    args, body, results, types = [], [], [], []
    for i, wire in enumerate(sorted(set(WIRE.values()))):
        for form, dims in (("s", "3x5x"), ("z", ""), ("e", "0x4x"), ("d", "?x2x")):
            args.append(f"%{form}{i}: tensor<{dims}{wire}>")
        body.append(f"""
  %es{i} = tensor.empty() : tensor<5x3x{wire}>
  %rs{i} = linalg.transpose ins(%s{i} : tensor<3x5x{wire}>) outs(%es{i} : tensor<5x3x{wire}>)
    permutation = [1, 0]
  %ez{i} = tensor.empty() : tensor<{wire}>
  %rz{i} = linalg.copy ins(%z{i} : tensor<{wire}>) outs(%ez{i} : tensor<{wire}>) -> tensor<{wire}>
  %ee{i} = tensor.empty() : tensor<4x0x{wire}>
  %re{i} = linalg.transpose ins(%e{i} : tensor<0x4x{wire}>) outs(%ee{i} : tensor<4x0x{wire}>)
    permutation = [1, 0]
  %n{i} = tensor.dim %d{i}, %c0 : tensor<?x2x{wire}>
  %ed{i} = tensor.empty(%n{i}) : tensor<2x?x{wire}>
  %rd{i} = linalg.transpose ins(%d{i} : tensor<?x2x{wire}>) outs(%ed{i} : tensor<2x?x{wire}>)
    permutation = [1, 0]""")
        results += [f"%rs{i}", f"%rz{i}", f"%re{i}", f"%rd{i}"]
        types += [f"tensor<{d}{wire}>" for d in ("5x3x", "", "4x0x", "2x?x")]
    return (
        f"func.func @main({', '.join(args)}) -> ({', '.join(types)}) {{\n"
        "  %c0 = arith.constant 0 : index" + "".join(body) + f"\n  return {', '.join(results)} : "
        f"{', '.join(types)}\n}}\n"
    )


def bits(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8)


def random_array(rng: np.random.Generator, d: dtypes.DType, shape: tuple[int, ...]) -> np.ndarray:
    """Every bit pattern may come, NaN and the like included; bool is 0 and 1."""
    if d.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    size = int(np.prod(shape)) * d.size
    return rng.integers(0, 256, size, dtype=np.uint8).view(d.np).reshape(shape)


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
def test_every_dtype_and_rank_round_trips(build: Compile, signed: bool) -> None:
    wires = sorted(set(WIRE.values()))
    by_wire = {WIRE[d]: d for d in dtypes.DTYPES if not (d.is_unsigned if signed else d.is_signed)}
    rng = np.random.default_rng(3)
    args, specs, wants = [], [], []
    for wire in wires:
        d = by_wire[wire]
        for shape, dims in (((3, 5), (3, 5)), ((), ()), ((0, 4), (0, 4)), ((7, 2), (-1, 2))):
            a = random_array(rng, d, shape)
            args.append(a)
            specs.append(IOSpec(f"x{len(specs)}", d.name, dims))
            wants.append((a.T, IOSpec("y", d.name, dims[::-1])))
    module = LoadedModule(
        build(transposes()).vmfb, inputs=specs, outputs=[s for _, s in wants], threads=1
    )
    got = module.run(args)
    assert len(got) == 4 * len(wires) == 4 * 13
    for (want, _), g in zip(wants, got, strict=True):
        assert g.dtype == want.dtype
        assert g.shape == want.shape
        np.testing.assert_array_equal(bits(g), bits(want))


def test_input_forms(build: Compile) -> None:
    """Not contiguous, of the other byte order, read only, a list: the same result."""
    text = """func.func @main(%a: tensor<40x600xf32>) -> tensor<40x600xf32> {
      %e = tensor.empty() : tensor<40x600xf32>
      %r = linalg.map { arith.addf } ins(%a, %a : tensor<40x600xf32>, tensor<40x600xf32>)
        outs(%e : tensor<40x600xf32>)
      return %r : tensor<40x600xf32> }"""
    module = LoadedModule(build(text).vmfb, threads=1)
    a = np.random.default_rng(0).standard_normal((40, 600)).astype(np.float32)
    frozen = a.copy()
    frozen.flags.writeable = False
    unaligned = aligned_empty((40 * 600 + 1,), np.dtype(np.float32))[1:].reshape(40, 600)
    unaligned[...] = a
    assert not is_aligned(unaligned)
    forms = [a, a.astype(">f4"), frozen, np.asfortranarray(a), aligned(a), unaligned]
    for x in forms:
        (y,) = module.run([x])
        np.testing.assert_array_equal(y, a + a)
    (y,) = module.run([np.repeat(a, 2, axis=1)[:, ::2]])
    np.testing.assert_array_equal(y, a + a)


PARAMS = """
ml_program.global private @w(#flow.parameter.named<"model"::"w"> : tensor<128x128xf32>)
  : tensor<128x128xf32>
ml_program.global private @m(#flow.parameter.named<"model"::"m"> : tensor<4xi1>) : tensor<4xi1>
ml_program.global private @h(#flow.parameter.named<"model"::"h"> : tensor<4xbf16>) : tensor<4xbf16>
func.func @main(%a: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<4xi1>, tensor<4xbf16>) {
  %w = ml_program.global_load_const @w : tensor<128x128xf32>
  %m = ml_program.global_load_const @m : tensor<4xi1>
  %h = ml_program.global_load_const @h : tensor<4xbf16>
  %e = tensor.empty() : tensor<128x128xf32>
  %r = linalg.map { arith.addf }
    ins(%a, %w : tensor<128x128xf32>, tensor<128x128xf32>)
    outs(%e : tensor<128x128xf32>)
  return %r, %m, %h : tensor<128x128xf32>, tensor<4xi1>, tensor<4xbf16>
}
"""


def parameters() -> dict[str, np.ndarray]:
    w = np.random.default_rng(1).standard_normal((128, 128)).astype(np.float32)
    return {
        "w": aligned(w),
        "m": aligned(np.array([True, False, True, True])),
        "h": aligned(np.array([1.5, -2, 0.1, np.inf], ml_dtypes.bfloat16)),
    }


def test_parameters_are_used_in_place(build: Compile) -> None:
    params = parameters()
    module = LoadedModule(build(PARAMS).vmfb, params, threads=1)
    assert module.copied_parameter_bytes == 0
    a = np.ones((128, 128), np.float32)
    y, m, h = module.run([a])
    np.testing.assert_array_equal(y, a + params["w"])
    assert m.dtype == bool
    np.testing.assert_array_equal(m, params["m"])
    np.testing.assert_array_equal(bits(h), bits(params["h"]))
    params["w"][...] = 7  # in place: the module sees it
    np.testing.assert_array_equal(module.run([a])[0], a + 7)


def test_unaligned_parameters_are_copied_once_and_said(build: Compile) -> None:
    params = parameters()
    w = aligned_empty((128 * 128 + 1,), np.dtype(np.float32))[1:].reshape(128, 128)
    w[...] = params["w"]
    module = LoadedModule(build(PARAMS).vmfb, {**params, "w": w}, threads=1)
    assert module.copied_parameter_bytes == w.nbytes
    a = np.zeros((128, 128), np.float32)
    np.testing.assert_array_equal(module.run([a])[0], params["w"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"w": None}, "parameter"),
        ({"w": np.zeros((128, 64), np.float32)}, "parameter"),
    ],
)
def test_wrong_parameters_are_an_error(
    build: Compile, change: dict[str, np.ndarray | None], said: str
) -> None:
    params = {k: v for k, v in {**parameters(), **change}.items() if v is not None}
    with pytest.raises(FileError, match=said):
        LoadedModule(build(PARAMS).vmfb, params, threads=1)


SCALE = """
func.func @main(%a: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %r = linalg.map { arith.addf }
    ins(%a, %a : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>)
  return %r, %a, %r : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
}
"""


@pytest.mark.parametrize("rows", [0, 1, 3, 5000])
def test_results_own_their_memory(build: Compile, rows: int) -> None:
    """A result is neither an input, nor another result, and outlives the module and its array."""
    module = LoadedModule(build(SCALE).vmfb, threads=1)
    a = aligned_empty((rows, 64), np.dtype(np.float32))
    a[...] = np.arange(rows * 64, dtype=np.float32).reshape(rows, 64)
    keep = a.copy()
    double, same, again = module.run([a])
    spans = [(address(x), address(x) + x.nbytes) for x in (a, double, same, again) if x.size]
    spans.sort()
    assert all(e <= b for (_, e), (b, _) in itertools.pairwise(spans))
    a[...] = -1
    double[...] = -2
    np.testing.assert_array_equal(same, keep)
    np.testing.assert_array_equal(again, keep + keep)


def test_views_of_a_dropped_result_stay_valid(build: Compile) -> None:
    module = LoadedModule(build(SCALE).vmfb, threads=1)
    views = []
    for i in range(12):
        (y, _, _) = module.run([np.full((2000, 64), i, np.float32)])
        views.append((2 * i, y[10:20].T.reshape(-1)[::3], y.reshape(-1)[5:]))
        del y
    del module
    gc.collect()
    churn = [np.full((2000, 64), 99, np.float32) for _ in range(8)]
    for want, v, w in views:
        assert (v == want).all()
        assert (w == want).all()
    del churn


def test_results_that_live_to_the_end_do_not_crash_the_interpreter(
    build: Compile, tmp_path: Path
) -> None:
    path = tmp_path / "m.vmfb"
    path.write_bytes(bytes(build(SCALE).vmfb))
    code = (
        "import numpy as np, sys\n"
        "from mgx_mlir.runtime.iree_runtime import LoadedModule\n"
        "for threads in (1, 2):\n"
        "    m = LoadedModule(sys.argv[1], threads=threads)\n"
        "    np.kept = getattr(np, 'kept', []) + [m, m.run([np.ones((2000, 64), np.float32)])]\n"
        "print(np.kept[1][0].sum(), np.kept[3][0].sum())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["256000.0", "256000.0"]


@pytest.mark.parametrize("threads", [1, 2])
def test_concurrent_calls(build: Compile, threads: int) -> None:
    module = LoadedModule(build(SCALE).vmfb, threads=threads)
    wrong: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(40):
            rows = int(rng.integers(0, 1500))
            a = aligned(rng.standard_normal((rows, 64)).astype(np.float32))
            y, same, z = module.run([a])
            if not ((y == a + a).all() and (same == a).all() and (z == y).all()):
                wrong.append(f"{seed}: {rows}")

    pool = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in pool:
        t.start()
    for t in pool:
        t.join(60)
    assert not any(t.is_alive() for t in pool)
    assert wrong == []


def test_wrong_arguments_are_refused_before_anything_runs(build: Compile) -> None:
    specs = [IOSpec("tokens", "float_type", (-1, 64))]
    module = LoadedModule(build(SCALE).vmfb, inputs=specs, threads=1)
    for args, said in (
        ([], "expected 1 inputs, got 0"),
        ([np.zeros((2, 64), np.float64)], "'tokens': expected float_type, got double_type"),
        ([np.zeros((2, 63), np.float32)], r"'tokens': expected dimensions \{\?, 64\}, got \{2, 63"),
        ([np.zeros((64,), np.float32)], r"got \{64\}"),
        ([np.array(["a"])], "expected float_type, got <U1"),
        ([np.zeros((2, 64), np.complex64)], "got complex64"),
    ):
        with pytest.raises(RunError, match=said):
            module.run(args)
    module.run([np.zeros((2, 64), np.float32)])


def test_a_signature_that_is_not_the_module_s_is_refused(build: Compile) -> None:
    vmfb = build(SCALE).vmfb
    for specs, said in (
        ([], "1 inputs, the program 0"),
        ([IOSpec("x", "half_type", (-1, 64))], "is f32"),
        ([IOSpec("x", "float_type", (-1, 32))], "is f32"),
    ):
        with pytest.raises(FileError, match=said):
            LoadedModule(vmfb, inputs=specs, threads=1)
    with pytest.raises(FileError, match="no function 'other'"):
        LoadedModule(vmfb, threads=1, entry="other")


def test_a_damaged_module_is_a_clean_error(build: Compile, tmp_path: Path) -> None:
    good = bytes(build(SCALE).vmfb)
    for bad in (b"", b"x" * 10, b"x" * 5000, good[:100], good[: len(good) // 2], good[8:]):
        with pytest.raises(FileError):
            LoadedModule(bad, threads=1)
        path = tmp_path / "bad.vmfb"
        path.write_bytes(bad)
        with pytest.raises(FileError):
            LoadedModule(path, threads=1)
    with pytest.raises(FileError, match="no such file"):
        LoadedModule(tmp_path / "none.vmfb", threads=1)


def test_choice_of_device() -> None:
    assert choose(None, 1) == ("local-sync", 1)
    assert choose(None, 3) == ("local-task", 3)
    assert choose("local-task", 1) == ("local-task", 1)
    assert choose(None, None)[1] >= 1
    for kind, threads in (("local-sync", 2), ("hip", 2), ("vulkan", None), ("cuda", 2), (None, 0)):
        with pytest.raises(UsageError):
            choose(kind, threads)


def test_the_pool_has_the_threads_asked_for() -> None:
    code = (
        "import os\n"
        "from mgx_mlir.runtime.device import open_device\n"
        "n = lambda: len(os.listdir('/proc/self/task'))\n"
        "import numpy, iree.runtime\n"
        "a = n(); open_device('local-sync'); b = n(); open_device(None, 3); c = n()\n"
        "print(b - a, c - b)\n"
    )
    if not Path("/proc/self/task").exists():
        pytest.skip("no /proc")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own, workers = map(int, out.stdout.split())
    assert own <= 1  # a local-sync device has no workers, but may wait in a thread of its own
    assert 3 <= workers <= 3 + own


@pytest.mark.skipif(bool(gpu_devices()), reason="there is a HIP device here")
def test_a_missing_hip_device_is_said_plainly(build: Compile, tmp_path: Path) -> None:
    """In a process of its own: other tests may have made the emulator this one's HIP."""
    (tmp_path / "m.vmfb").write_bytes(bytes(build(SCALE).vmfb))
    code = (
        "from mgx_mlir.core.errors import TargetError\n"
        "from mgx_mlir.runtime.device import open_device\n"
        "from mgx_mlir.runtime.iree_runtime import LoadedModule\n"
        f"path = {str(tmp_path / 'm.vmfb')!r}\n"
        "for call in (open_device, lambda d: LoadedModule(path, device=d)):\n"
        "    try:\n"
        "        call('hip')\n"
        "    except TargetError as e:\n"
        "        print(str(e).splitlines()[0])\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "IREE_HIP_DYLIB_PATH"}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.splitlines() == ["there is no AMD GPU that HIP can use on this machine"] * 2
