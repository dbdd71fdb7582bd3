"""Emulation as users meet it: the driver, clear errors, damaged code, checks on request."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mgx_mlir
from mgx_mlir.core.errors import TargetError, UsageError
from mgx_mlir.targets import emulator

pytestmark = pytest.mark.emulator
DRIVER = [sys.executable, "-m", "mgx_mlir.tools.driver"]
GEMM = ["--gpu", "--arch", "gfx942", "--emulate", "--test"]

RUN = """
import sys
import numpy as np
import mgx_mlir
from mgx_mlir.core.errors import MgxError
from tests.emulator.models import CASES

case = CASES[sys.argv[1]]("f16", 3)
model = case.model.SerializeToString()
program = mgx_mlir.compile(model, target="gpu", arch=sys.argv[2], emulate=True)
code = bytearray(program.executable.vmfb)
if len(sys.argv) > 3:
    at = code.find(b"\\x7fELF")
    place = code.find(bytes.fromhex(sys.argv[3]), at)
    assert place > 0
    code[place : place + 4] = bytes.fromhex(sys.argv[4])
    object.__setattr__(program.executable, "vmfb", bytes(code))
try:
    (got,) = program.run(case.inputs)
    print(float(np.linalg.norm(got.astype(float) - case.wanted[0])
                / np.linalg.norm(case.wanted[0])))
except MgxError as e:
    print(e)
    sys.exit(2)
"""


def run(command: list[str], library: Path | str, **environment: str) -> subprocess.CompletedProcess:
    # other tests of this process may have made the emulator its HIP
    inherited = {k: v for k, v in os.environ.items() if k != "IREE_HIP_DYLIB_PATH"}
    settings = {**inherited, "MGX_EMULATOR_PATH": str(library), **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=settings)


@pytest.mark.parametrize("command", ["verify", "run"])
def test_driver(command: str, library: Path) -> None:
    done = run([*DRIVER, command, *GEMM], library)
    assert done.returncode == 0, done.stderr
    assert "Target: gpu, gfx942, emulated" in done.stderr
    assert ("@1 = gpu::dot(a,b)" in done.stdout) == (command == "run")
    if command == "verify":
        assert "verification passed: gpu and ref agree in 1 output" in done.stdout


def test_driver_says_what_is_missing(tmp_path: Path) -> None:
    done = run([*DRIVER, "verify", *GEMM], tmp_path)
    assert done.returncode == 2
    assert "error: the emulator is not built\nnote: looked for libamdhip64.so in" in done.stderr
    done = run([*DRIVER, "run", "--gpu", "--arch", "gfx942", "--test"], tmp_path)
    assert done.returncode == 2
    assert "note: with --emulate it runs on the CPU, without a device" in done.stderr
    done = run([*DRIVER, "run", "--cpu", "--emulate", "--test"], tmp_path)
    assert done.returncode == 2
    assert "option '--emulate' is for --gpu, the target is cpu" in done.stderr


def test_another_architecture_is_refused(library: Path) -> None:
    with pytest.raises(TargetError, match="gfx908 is not emulated"):
        mgx_mlir.compile(b"", target="gpu", arch="gfx908", emulate=True)
    with pytest.raises(UsageError, match="emulate is for gpu"):
        mgx_mlir.compile(b"", target="cpu", emulate=True)


# s_endpgm of GFX9
END = "000081bf"


def test_an_unknown_instruction_is_an_error(library: Path) -> None:
    """One instruction overwritten by bits that are none: named when the module is loaded."""
    done = run([sys.executable, "-c", RUN, "gemm", "gfx942", END, "ffffffff"], library)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "the module has instructions that the emulator does not know" in done.stdout
    assert "words ffffffff" in done.stdout
    assert " in main_dispatch_0" in done.stdout


def test_a_missing_wait_is_found(library: Path) -> None:
    """s_waitcnt vmcnt(0) becomes s_nop: the numbers stay right, the check says what is wrong."""
    wait, nop = "700f8cbf", "000080bf"
    command = [sys.executable, "-c", RUN, "gemm", "gfx942", wait, nop]
    done = run(command, library, MGX_EMULATE_CHECK="waits")
    assert done.returncode == 2, done.stdout
    assert "missing wait: a register is used while a load into it may be under way" in done.stdout
    assert float(run(command, library).stdout) < 2e-3


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("name", ["gemm", "softmax", "attention"])
def test_checks_find_nothing_in_what_we_compile(name: str, arch: str, library: Path) -> None:
    command = [sys.executable, "-c", RUN, name, arch]
    done = run(command, library, MGX_EMULATE_CHECK="all")
    assert done.returncode == 0, done.stdout
    assert float(done.stdout) < 2e-3


def test_compile_runs_nothing(tmp_path: Path) -> None:
    done = run([*DRIVER, "compile", *GEMM], tmp_path)
    assert done.returncode == 2
    assert "option '--emulate' is for commands that run the program" in done.stderr


def test_the_same_tests_on_a_gpu(library: Path, tmp_path: Path) -> None:
    """MGX_TEST_HIP=device, with the emulator in the place of the machine's HIP."""
    shutil.copy(library / "libamdhip64.so", tmp_path)
    tests = ["tests/emulator/test_device_api.py", "tests/emulator/test_native.py"]
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *tests,
               "-k", "results_stay or native_tests or not_there"]  # fmt: skip
    place = {"IREE_HIP_DYLIB_PATH": str(tmp_path), "MGX_EMULATE_ARCH": "gfx1101"}
    done = run(command, tmp_path / "none", MGX_TEST_HIP="device", **place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED tests/emulator/test_device_api.py::test_results_stay" in done.stdout
    assert done.stdout.count("PASSED") == 1
    done = run(
        command,
        tmp_path / "none",
        MGX_TEST_HIP="device",
        IREE_HIP_DYLIB_PATH=str(tmp_path / "none"),
    )
    assert "MGX_TEST_HIP=device needs a GPU that HIP can use" in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["perf", "time"])
def test_times_are_said_to_be_emulated(command: str, library: Path) -> None:
    done = run([*DRIVER, command, *GEMM, "-n", "2"], library)
    assert done.returncode == 0, done.stderr
    assert "Emulated: the times are of this machine's CPU" in done.stderr


def test_one_file_for_several_architectures(library: Path, tmp_path: Path) -> None:
    """The code that runs is the emulated device's; a device without any is told what there is."""
    path = str(tmp_path / "m.mxr")
    made = run(
        [*DRIVER, "compile", "--gpu", "--arch", "gfx942,rx7900xtx", "--test", "-o", path], library
    )
    assert made.returncode == 0, made.stderr
    verify = [*DRIVER, "verify", "--gpu", "--emulate"]
    places: list[tuple[str, list[str], dict[str, str]]] = [
        ("gfx942", [], {"MGX_EMULATE_ARCH": "gfx942"}),
        ("gfx1100", ["--arch", "gfx1100"], {}),
    ]
    for arch, options, variables in places:
        done = run([*verify, *options, path], library, MGX_EMULATE_LOG="1", **variables)
        assert done.returncode == 0, done.stderr
        assert f"Target: gpu, {arch}, emulated" in done.stderr
        assert "Compiled: the file holds code for gpu, " in done.stderr
        # a workgroup: a wave of each, or without matrix instructions a tile in the LDS
        threads = "of 64" if arch == "gfx942" else "of 128"
        assert f"groups {threads}," in done.stderr
    done = run([*verify, path], library, MGX_EMULATE_ARCH="gfx1201")
    assert done.returncode == 2
    said = "the code is for gfx942, gfx1100, the emulated device is gfx1201\nnote: --strip-context"
    assert f"{path}: error: {said}" in done.stderr
    again = run([*verify, "--strip-context", path], library, MGX_EMULATE_ARCH="gfx1201")
    assert again.returncode == 0, again.stderr


def test_the_machine_s_device_decides(library: Path, tmp_path: Path) -> None:
    """The emulator in the place of the machine's HIP: its architecture is found out."""
    place = {"IREE_HIP_DYLIB_PATH": str(library), "MGX_EMULATE_ARCH": "gfx1101"}
    done = run([*DRIVER, "run", "--test"], tmp_path, **place)
    assert done.returncode == 0, done.stderr
    assert "Target: gpu, gfx1101, by default: a GPU is present" in done.stderr
    done = run([*DRIVER, "run", "--test", "--gpu", "--arch", "gfx942"], tmp_path, **place)
    assert done.returncode == 2
    assert "error: the code is for gfx942, device 0 is gfx1101" in done.stderr
    for broken in ({"MGX_EMULATE_DEVICES": "0"}, {"IREE_HIP_DYLIB_PATH": str(tmp_path)}):
        done = run([*DRIVER, "run", "--test", "--gpu"], tmp_path, **{**place, **broken})
        assert done.returncode == 2
        assert "error: no GPU is found, the program cannot run on gpu" in done.stderr
        assert "note: no AMD GPU can be used through the HIP library in " in done.stderr


DEVICES = """
import numpy as np
import mgx_mlir as migraphx

for device_id, arch in ((0, "gfx942"), (1, "gfx1100")):
    t = migraphx.get_target("gpu", emulate=True, device_id=device_id)
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[4, 8]))
    m.add_return([m.add_instruction(migraphx.op("relu"), [x])])
    p.compile(t, offload_copy=False)
    assert p.compiled.executable.arch == arch, p.compiled.executable.arch
    a = np.random.default_rng(1).standard_normal((4, 8), np.float32)
    there = t.copy_to(migraphx.argument(a))
    (found,) = p.run({"x": there})
    assert found.__dlpack_device__() == (10, device_id)
    assert np.array_equal(migraphx.from_gpu(found).array, np.maximum(a, 0))
    moved = migraphx.to_gpu(there, device_id=1 - device_id, emulate=True)
    assert np.array_equal(migraphx.from_gpu(moved).array, a)
    try:
        p.run({"x": moved})
    except migraphx.MgxError as e:
        print(str(e).replace(str(device_id), "own").replace(str(1 - device_id), "other"))
"""


def test_two_devices(library: Path) -> None:
    done = run([sys.executable, "-c", DEVICES], library, MGX_EMULATE_ARCH="gfx942,gfx1100")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("input 'x' expected memory of hip device own of ")
        assert ", got hip device other of " in line


SIDE_BY_SIDE = """
import os
import sys
import numpy as np
import mgx_mlir as migraphx

before = dict(os.environ)
a = np.arange(-3, 3, dtype=np.float32)


def program(**options):
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[6]))
    m.add_return([m.add_instruction(migraphx.op("relu"), [x])])
    p.compile(migraphx.get_target("gpu", arch="gfx942", **options))
    return p


def place(p):
    assert np.array_equal(p.run({"x": a})[0].array, np.maximum(a, 0))
    return p.compiled.load().device.library


emulated, real = program(emulate=True), program()
assert place(emulated) == sys.argv[1]
assert migraphx.to_gpu(a).device_tensor.device.library == sys.argv[1]
assert place(real) == sys.argv[2]
assert migraphx.to_gpu(a).device_tensor.device.library == sys.argv[2]
assert migraphx.to_gpu(a, emulate=True).device_tensor.device.library == sys.argv[1]
try:
    real.run({"x": migraphx.to_gpu(a, emulate=True)})
except migraphx.MgxError as e:
    assert f"of {sys.argv[2]}, got hip device 0 of {sys.argv[1]}" in str(e), e
assert place(emulated) == sys.argv[1] and place(real) == sys.argv[2]
assert dict(os.environ) == before
"""


def test_beside_a_gpu(library: Path, tmp_path: Path) -> None:
    """Emulated programs and others in one process; a copy of the library plays the machine's."""
    shutil.copy(library / "libamdhip64.so", tmp_path)
    command = [sys.executable, "-c", SIDE_BY_SIDE, str(library), str(tmp_path)]
    done = run(command, library, IREE_HIP_DYLIB_PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr


UNASKED = """
import ctypes, sys, mgx_mlir
from mgx_mlir.core.errors import TargetError
from tests.emulator.models import CASES
case = CASES["softmax"]("f16", 1)
model = case.model.SerializeToString()
options = {"target": "gpu", "arch": "gfx942"}
mgx_mlir.compile(model, **options, emulate=True).run(case.inputs)
try:
    ctypes.CDLL("libamdhip64.so")
except OSError:
    pass
else:
    sys.exit("this name means a library now")
try:
    mgx_mlir.compile(model, **options).run(case.inputs)
except TargetError as e:
    print("refused:", e)
"""


def test_nothing_is_emulated_unasked(library: Path) -> None:
    """Not even where the emulator is in the process already, by a HIP library's name."""
    try:
        ctypes.CDLL("libamdhip64.so")
    except OSError:
        pass
    else:
        pytest.skip("this machine has a HIP")
    done = run([sys.executable, "-c", UNASKED], library)
    assert done.stdout.startswith("refused: there is no AMD GPU"), done.stdout + done.stderr


def test_the_build_for_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("", *filter(None, emulator.BUILDS)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / emulator.LIBRARY).touch()
    monkeypatch.setenv(emulator.PATH_VARIABLE, str(tmp_path))
    wanted = {"": set(), **{name: {*needs} for name, needs in emulator.BUILDS.items()}}
    for name, features in wanted.items():
        monkeypatch.setattr(emulator, "processor_features", lambda found=features: frozenset(found))
        assert emulator.find_library() == tmp_path / name
    # one feature short of the best
    (missing, *rest) = emulator.BUILDS["x86-64-v4"]
    assert missing == "avx512f"
    features = {*rest, *emulator.BUILDS["x86-64-v3"]}
    monkeypatch.setattr(emulator, "processor_features", lambda: frozenset(features))
    assert emulator.find_library() == tmp_path / "x86-64-v3"
