"""CUDA without a GPU: the table of functions, against a library that notes what it is asked."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgx_mlir.core.errors import RunError, TargetError, UsageError
from mgx_mlir.runtime import device as devices_of_runtime
from mgx_mlir.runtime import gpu_api, gpu_calls, gpu_streams
from mgx_mlir.runtime.device import Device, open_device
from mgx_mlir.runtime.gpu_api import APIS, CUDA, HIP
from mgx_mlir.targets import devices, emulator_build

# a device of capability 9.0 with one allocation of 4096 bytes at 0x7000; streams and events are
# numbers; contexts are as CUDA has them: a stack for each thread
FAKE = r"""
#include <stdio.h>
#include <string.h>
typedef void* P;
static char said[1 << 16];
static _Thread_local P stack[8];
static _Thread_local int depth;
static int made;
#define NOTE(...) (snprintf(said + strlen(said), 200, __VA_ARGS__), 0)
const char* fake_said(void) { return said; }
void fake_clear(void) { said[0] = 0; }
int fake_depth(void) { return depth; }
int cuInit(unsigned flags) { return NOTE("init %u;", flags); }
int cuDriverGetVersion(int* v) { return *v = 13000, 0; }
int cuDeviceGet(int* d, int i) { return *d = i + 40, i > 1 ? 101 : 0; }
int cuDeviceGetAttribute(int* v, int which, int d) {
  return *v = which == 75 ? 9 : which == 76 ? 0 : -1, d == 40 ? 0 : 101;
}
int cuDevicePrimaryCtxRetain(P* c, int d) { return *c = (P)(long)(d * 16), NOTE("retain %d;", d); }
int cuCtxGetCurrent(P* c) { return *c = depth ? stack[depth - 1] : 0, 0; }
int cuCtxSetCurrent(P c) { return depth = depth ? depth : 1, stack[depth - 1] = c, 0; }
int cuCtxPushCurrent_v2(P c) { return stack[depth++] = c, NOTE("push;"); }
int cuCtxPopCurrent_v2(P* c) { return *c = stack[--depth], NOTE("pop;"); }
int cuCtxSynchronize(void) {
  return NOTE("synchronize in %ld;", depth ? (long)stack[depth - 1] : 0);
}
int cuGetErrorString(int s, const char** t) { return *t = s == 1 ? "invalid argument" : "?", 0; }
int cuMemGetAddressRange_v2(P* base, size_t* n, P at) {
  if ((long)at < 0x7000 || (long)at >= 0x8000) return 1;
  return *base = (P)0x7000, *n = 4096, 0;
}
int cuMemcpyDtoD_v2(P to, P from, size_t n) { return n ? NOTE("copy %p %p %zu;", to, from, n) : 1; }
int cuStreamCreate(P* s, unsigned flags) { return *s = (P)(long)++made, NOTE("stream %u;", flags); }
int cuStreamCreateWithPriority(P* s, unsigned f, int p) {
  return *s = (P)(long)++made, NOTE("stream %u at %d;", f, p);
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, 0; }
int cuStreamGetPriority(P s, int* p) { return *p = -3, 0; }
int cuStreamSynchronize(P s) { return NOTE("wait for %ld;", (long)s); }
int cuStreamWaitEvent(P s, P e, unsigned flags) {
  return NOTE("%ld waits for %ld, %u;", (long)s, (long)e, flags);
}
int cuStreamDestroy_v2(P s) { return NOTE("gone %ld;", (long)s); }
int cuEventCreate(P* e, unsigned flags) { return *e = (P)(long)++made, NOTE("event %u;", flags); }
int cuEventRecord(P e, P s) { return NOTE("record %ld in %ld;", (long)e, (long)s); }
int cuEventSynchronize(P e) { return 0; }
int cuEventElapsedTime(float* ms, P a, P b) { return *ms = 1.5f, 0; }
int cuEventDestroy_v2(P e) { return 0; }
"""


class Fake:
    """The library, as a device has it."""

    def __init__(self, folder: Path) -> None:
        self.library = gpu_api.loaded(CUDA, str(folder))
        self.library.fake_said.restype = ctypes.c_char_p
        self.device = Device("cuda", 1, None, 0, str(folder))

    def said(self) -> list[str]:
        """The requests since the last time."""
        found = self.library.fake_said().decode().rstrip(";").split(";")
        self.library.fake_clear()
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cuda")
    source = made / "fake.c"
    source.write_text(FAKE)
    compiler = emulator_build.compiler()[0]
    try:
        command = [compiler, "-x", "c", str(source), "-shared", "-fPIC", "-w"]
        subprocess.run([*command, "-o", str(made / "libcuda.so.1")], check=True)
    except OSError:
        pytest.skip("no C compiler")
    return made


@pytest.fixture
def fake(folder: Path) -> Iterator[Fake]:
    made = Fake(folder)
    gpu_calls.context_of.cache_clear()
    gpu_calls.device_arch.cache_clear()
    made.library.fake_clear()
    yield made
    gpu_calls.context_of.cache_clear()


def in_a_thread(run: object) -> None:
    """Call in a thread that has no context yet; its error is ours."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            run()  # type: ignore[operator]
        except BaseException as e:
            errors.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def test_both_libraries_have_each_function() -> None:
    assert set(HIP.functions) - set(CUDA.functions) == {"clear_error"}
    assert set(CUDA.functions) <= set(HIP.functions)
    assert {(a.kind, a.dlpack) for a in APIS.values()} == {("hip", 10), ("cuda", 2)}
    assert all(row[0].startswith("hip") for row in HIP.functions.values())
    assert all(row[0].startswith("cu") for row in CUDA.functions.values())


def test_version_and_architecture(fake: Fake) -> None:
    assert gpu_api.version(CUDA, fake.library) == (13, 0, 0)
    gpu_api.check_version(CUDA, fake.device.library)
    assert gpu_calls.device_arch(fake.device) == "sm_90"
    assert gpu_calls.device_arch(Device("cuda", 1, None, 1, fake.device.library)) == ""
    assert gpu_calls.library_file(fake.device).name == "libcuda.so.1"


def test_a_thread_without_a_context_gets_the_device_s(fake: Fake) -> None:
    def work() -> None:
        gpu_calls.device_synchronize(fake.device)
        assert fake.library.fake_depth() == 1  # kept: what the thread frees last needs it
        gpu_calls.device_synchronize(fake.device)

    in_a_thread(work)
    assert fake.said() == ["init 0", "retain 40", "synchronize in 640", "synchronize in 640"]


def test_another_context_comes_back(fake: Fake) -> None:
    def work() -> None:
        fake.library.cuCtxSetCurrent(ctypes.c_void_p(0x99))
        gpu_calls.device_synchronize(fake.device)
        found = ctypes.c_void_p()
        fake.library.cuCtxGetCurrent(ctypes.byref(found))
        assert found.value == 0x99

    in_a_thread(work)
    assert fake.said()[2:] == ["push", "synchronize in 640", "pop"]


def test_memory(fake: Fake) -> None:
    assert gpu_calls.allocation_bytes_from(fake.device, 0x7100) == 4096 - 0x100
    assert gpu_calls.allocation_bytes_from(fake.device, 0x9000) == 0
    gpu_calls.copy(fake.device, 0x7000, 0x7800, 16)
    assert fake.said()[-1] == "copy 0x7000 0x7800 16"
    with pytest.raises(RunError, match="cuMemcpyDtoD_v2 failed with status 1: invalid argument"):
        gpu_calls.copy(fake.device, 0x7000, 0x7800, 0)


def test_streams_and_events(fake: Fake) -> None:
    assert gpu_streams.priorities(fake.device) == (0, -5)
    stream = gpu_streams.Stream(fake.device, -3)
    assert stream.priority == -3
    with pytest.raises(UsageError, match="expected a priority from -5, the first, to 0, got 1"):
        gpu_streams.Stream(fake.device, 1)
    begin, end = gpu_streams.Event(fake.device), gpu_streams.Event(fake.device)
    with pytest.raises(UsageError, match="the event was not recorded"):
        stream.wait(begin)
    begin.record(stream)
    end.record()
    stream.wait(end)
    stream.synchronize()
    assert end.elapsed_ms(begin) == 1.5
    at, first, last = stream.address, begin.handle.value, end.handle.value
    del stream
    assert fake.said()[2:] == [
        "stream 1 at -3", "event 0", "event 0", f"record {first} in {at}", f"record {last} in 0",
        f"{at} waits for {last}, 0", f"wait for {at}", f"gone {at}",
    ]  # fmt: skip


def test_a_function_that_a_library_lacks(fake: Fake) -> None:
    with pytest.raises(RunError, match="this CUDA has no cuGraphLaunch"):
        gpu_calls.call(fake.device, "graph_launch")


def test_no_library(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="the CUDA library cannot be loaded") as e:
        gpu_api.loaded(CUDA, str(tmp_path))
    assert "libcuda.so.1" in e.value.notes[0]


@pytest.mark.skipif(bool(devices.gpu_devices()), reason="there is a GPU here")
def test_no_device() -> None:
    with pytest.raises(TargetError, match="there is no NVIDIA GPU that CUDA can use") as e:
        open_device("cuda")
    assert any("NVIDIA's driver" in note for note in e.value.notes)


def test_a_kernel_that_failed_takes_the_process_s_device() -> None:
    said = RuntimeError("cuda_driver.c:1: ABORTED; CUDA error 'CUDA_ERROR_ILLEGAL_ADDRESS' (700)")
    e = devices_of_runtime._no_gpu(CUDA, "", said)
    assert e.message.startswith("a kernel failed in this process")
    assert e.notes[-1] == "start a new process"


def test_devices_are_asked_for_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IREE_HIP_DYLIB_PATH", raising=False)
    monkeypatch.setattr(devices, "NVIDIA_NODES", (sys.executable,))
    monkeypatch.setattr(devices, "_PROBE", "import sys; sys.exit('CUDA says no')")
    devices._probed_cuda.cache_clear()
    assert devices.gpu_devices() == ()
    assert devices.why_no_device().endswith("CUDA says no")
    monkeypatch.setattr(devices, "_PROBE", 'print(\'[["NVIDIA H200", "sm_90"]]\')')
    devices._probed_cuda.cache_clear()
    assert devices.gpu_devices() == (devices.GpuDevice(0, "NVIDIA H200", "sm_90", "cuda"),)
    assert devices.gpu_kind() == "cuda"
    devices._probed_cuda.cache_clear()
