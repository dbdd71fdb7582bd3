"""Programs for NVIDIA GPUs as CUDA graphs, without a GPU: a library that stands in for CUDA's.

IREE's own driver runs over it, in a process of its own, and kernels run from their PTX: what a
graph leaves out or reorders is seen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mgx_mlir
from tests.runtime import cuda_library
from tests.support.models import parsed

FIXED = """(float[4,64] x) => (float[4,64] y, float[4,64] z)
    { a = MatMul (x, w) b = Softmax (a) y = Mul (b, x) z = MatMul (y, w) }"""
OPEN = "(float[rows,4] x) => (float[rows,4] y) { a = Softmax (x) y = Mul (a, x) }"
LOOP = """(int64 n, float[4] x) => (float[4] y) { y = Loop <
    body = b (int64 i, bool g, float[4] a) => (bool go, float[4] b)
        { b = Add (a, a) go = Identity (g) }
    > (n, , x) }"""
HEAD = """
import ctypes, json, sys
import numpy as np
import mgx_mlir
from mgx_mlir.core.errors import MgxError
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.graphs import GraphModule
cuda = ctypes.CDLL("libcuda.so.1")
cuda.standInCalls.restype = cuda.standInHeld.restype = ctypes.c_uint64
NAMES = ("cuLaunchKernel", "cuGraphLaunch", "cuMemcpyAsync", "cuEventRecord", "cuStreamSynchronize")
def calls(run):
    cuda.standInClear()
    run()
    return {n: cuda.standInCalls(n.encode()) for n in NAMES}
rng = np.random.default_rng(0)
def drawn(*dims):
    return rng.standard_normal(dims, dtype=np.float32)
def say(**found):
    print(json.dumps(found), flush=True)
def same(a, b):
    return all(x.tobytes() == y.tobytes() and x.shape == y.shape for x, y in zip(a, b, strict=True))
fixed, open_, loop = (f"{sys.argv[1]}/{n}.mxr" for n in ("fixed", "open", "loop"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three programs."""
    made = tmp_path_factory.mktemp("cuda")
    weights = "<float[64,64] w = {" + ", ".join(str(i % 7) for i in range(4096)) + "}>"
    texts = {"fixed": FIXED.replace("=> (", "=> (", 1), "open": OPEN, "loop": LOOP}
    texts["fixed"] = FIXED.replace("\n    {", f"\n    {weights} {{")
    for name, text in texts.items():
        with mgx_mlir.compile(parsed(text), "gpu", arch="sm_89") as program:
            mgx_mlir.save(program, made / f"{name}.mxr")
    return made


def ran(folder: Path, text: str) -> list[dict[str, Any]]:
    """Run lines of Python over the stand-in; what they say."""
    return cuda_library.ran(cuda_library.built(), HEAD + text, str(folder))


def test_a_call_is_one_launch(folder: Path) -> None:
    [kind, first, host, device, plain, equal, held] = ran(
        folder,
        """
p, q = mgx_mlir.load(fixed), mgx_mlir.load(fixed, graph=False)
name = p.input_names[0]
say(kind=type(p.load()).__name__, other=type(q.load()).__name__)
say(**calls(lambda: p.run({name: drawn(4, 64)})))
say(**calls(lambda: p.run({name: drawn(4, 64)})))
there = DeviceTensor.of(p.load().device, drawn(4, 64))
say(**calls(lambda: p.load().run_on_device([there])))
q.run({name: drawn(4, 64)})
say(**calls(lambda: q.run({name: drawn(4, 64)})))
each = [drawn(4, 64) for _ in range(3)]
say(equal=[same(p.run({name: x}), q.run({name: x})) for x in each])
before = cuda.standInHeld()
p.close()
q.close()
say(freed=before - cuda.standInHeld(), twice=cuda.standInCalls(b"refused frees"))
""",
    )
    assert kind == {"kind": "GraphModule", "other": "LoadedModule"}
    kernels = plain["cuLaunchKernel"]
    assert kernels > 1
    assert (first["cuLaunchKernel"], first["cuGraphLaunch"]) == (kernels, 1)
    # an input, two results, one wait, no event
    assert host == device == {
        "cuLaunchKernel": 0, "cuGraphLaunch": 1, "cuMemcpyAsync": 3, "cuEventRecord": 0,
        "cuStreamSynchronize": 1,
    }  # fmt: skip
    assert plain["cuEventRecord"] > 0
    assert equal == {"equal": [True] * 3}
    # IREE frees what its cache lets go of twice, and the recorder lets the first through
    assert held["freed"] > 0
    assert held["twice"] == 0


def test_sizes_that_come_again_are_graphs(folder: Path) -> None:
    found = ran(
        folder,
        """
p, q = mgx_mlir.load(open_), mgx_mlir.load(open_, graph=False)
def run(rows):
    x = drawn(rows, 4)
    found = []
    made = calls(lambda: found.append(p.run({"x": x})))
    equal = same(found[0], q.run({"x": x}))
    say(made=[made["cuLaunchKernel"] > 0, made["cuGraphLaunch"]], equal=equal)
for rows in (3, 3, 3, 5, 3, 5, 5):
    run(rows)
""",
    )
    assert [f["made"] for f in found] == [
        [True, 0], [True, 1], [False, 1], [True, 0], [False, 1], [True, 1], [False, 1],
    ]  # fmt: skip
    assert all(f["equal"] for f in found)


def test_values_on_the_host_are_no_graph(folder: Path) -> None:
    found = ran(
        folder,
        """
p, q = mgx_mlir.load(loop), mgx_mlir.load(loop, graph=False)
given = {"n": np.int64(3), "x": drawn(4)}
for _ in range(3):
    found = []
    made = calls(lambda: found.append(p.run(given)))
    say(graphs=made["cuGraphLaunch"], equal=same(found[0], q.run(given)))
try:
    mgx_mlir.load(loop, graph=True).run(given)
except MgxError as e:
    say(error=str(e))
""",
    )
    assert found[:3] == [{"graphs": 0, "equal": True}] * 3
    assert found[3]["error"].startswith("the program cannot be one CUDA graph: it reads values")


def test_another_library_came_first(folder: Path) -> None:
    """IREE has CUDA's library already: calls are launches, or the error of graph=True."""
    [found] = ran(
        folder,
        """
ctypes.CDLL("libcuda.so")
p = mgx_mlir.load(fixed)
name = p.input_names[0]
p.run({name: drawn(4, 64)})
try:
    mgx_mlir.load(fixed, graph=True).load()
except MgxError as e:
    say(kind=type(p.load()).__name__, error=str(e))
""",
    )
    assert found["kind"] == "LoadedModule"
    assert found["error"].startswith("calls cannot be recorded: IREE has a CUDA library")


def test_threads_and_streams(folder: Path) -> None:
    """Calls of two programs from four threads; a call on another stream waits for the last one."""
    [wrong, streams] = ran(
        folder,
        """
import threading
p, q = mgx_mlir.load(fixed), mgx_mlir.load(fixed, graph=False)
name, wrong = p.input_names[0], []
each = [drawn(4, 64) for _ in range(4)]
wanted = [q.run({name: x}) for x in each]
def work(program, x, want):
    for _ in range(20):
        if not same(program.run({name: x}), want):
            wrong.append(1)
threads = [threading.Thread(target=work, args=(r, x, w))
           for r in (p, mgx_mlir.load(fixed)) for x, w in zip(each, wanted)]
[t.start() for t in threads]
[t.join() for t in threads]
say(wrong=len(wrong))
module = p.load()
there = DeviceTensor.of(module.device, each[0])
call = module.recorded([there])
results = module.run_on_device([there])
def launch(stream):
    with call.lock:
        call.launch([there.address()], [r.address() for r in results], stream, wait=False)
def waits(stream):
    cuda.standInClear()
    launch(stream)
    return cuda.standInCalls(b"cuStreamWaitEvent"), cuda.standInCalls(b"cuStreamSynchronize")
say(waits=[waits(0), waits(0), waits(0x999), waits(0x999), waits(0)])
""",
    )
    assert wrong == {"wrong": 0}
    assert streams == {"waits": [[0, 0], [0, 0], [1, 0], [0, 0], [1, 0]]}


@pytest.mark.slow
def test_tensors_of_torch(folder: Path) -> None:
    """Tensors of the host go the way of a device's: the stand-in's memory is the host's."""
    found = ran(
        folder,
        """
import torch
from mgx_mlir.integrations.torch.calls import runner
p, q = mgx_mlir.load(fixed), mgx_mlir.load(fixed, graph=False)
run, want = runner(p), runner(q)
def equal(x):
    return all(torch.equal(a, b) for a, b in zip(run([x]), want([x]), strict=True))
each = [torch.from_numpy(drawn(4, 64)) for _ in range(3)]
say(equal=[equal(x) for x in each])
made = calls(lambda: run([each[0]]))
say(launches=made["cuGraphLaunch"], kernels=made["cuLaunchKernel"])
say(equal=[equal(torch.from_numpy(drawn(64, 4)).t()), equal(each[0][:, ::1].contiguous()),
           equal(torch.randn(4, 64, dtype=torch.complex64).conj().imag)])
first = run([each[0]])
kept = [t.clone() for t in first]
run([each[1]])
say(equal=[torch.equal(a, b) for a, b in zip(first, kept)])
try:
    run([each[0].double()])
except MgxError as e:
    say(error=str(e))
p.close()
try:
    run([each[0]])
except MgxError as e:
    say(error=str(e))
r = runner(mgx_mlir.load(open_))
w = runner(mgx_mlir.load(open_, graph=False))
for rows in (3, 3, 5, 3):
    x = torch.from_numpy(drawn(rows, 4))
    found = []
    made = calls(lambda: found.append(r([x])[0]))
    say(graph=made["cuGraphLaunch"], equal=torch.equal(found[0], w([x])[0]))
""",
    )
    assert found[:2] == [{"equal": [True] * 3}, {"launches": 1, "kernels": 0}]
    assert found[2] == {"equal": [True] * 3}
    assert found[3] == {"equal": [True] * 2}  # each call's results are its own
    assert "expected float_type, got double_type" in found[4]["error"]
    assert found[5] == {"error": "the program is closed"}
    assert found[6:] == [
        {"graph": 0, "equal": True}, {"graph": 1, "equal": True}, {"graph": 0, "equal": True},
        {"graph": 1, "equal": True},
    ]  # fmt: skip
