"""HIP graphs: node by node and captured in the stand-in, and programs that run as one graph."""

from __future__ import annotations

import ctypes
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mgx_mlir as migraphx
from benchmarks.emulator.outside.code_objects import wrap
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.runtime import gpu_streams, graphs
from mgx_mlir.runtime.device import open_device
from mgx_mlir.targets import emulator
from mgx_mlir.tools.driver.main import main
from tests.support.models import parsed

INVALID, NO_FUNCTION, NO_CONFIGURATION, UNJOINED, UPDATE_FAILED = 1, 98, 9, 904, 910
TOPOLOGY, KIND = 2, 3  # hipGraphExecUpdateResult
# s_load s[6:7]; wait; v1 = 0; v2 = 1; global_atomic_add v1, v2, s[6:7]: adds 1 for each lane
ADD_ONE = struct.pack(
    "<8I", 0xC0060180, 0, 0xBF8CC07F, 0x7E020280, 0x7E040281, 0xDD088000, 0x00060201, 0xBF810000
)  # fmt: skip


class Hip:
    """The stand-in's functions; each says its status, and `new` makes what a function gives."""

    def __init__(self, library: Path) -> None:
        self.lib = ctypes.CDLL(str(library / emulator.LIBRARY))
        self.lib.mgxCalls.restype = ctypes.c_uint64
        assert self.lib.hipInit(0) == 0

    def new(self, name: str, *args: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        assert getattr(self.lib, name)(ctypes.byref(made), *args) == 0, name
        return made

    def status(self, name: str, *args: Any) -> int:
        return getattr(self.lib, name)(*args)

    def memory(self, *values: int) -> ctypes.c_void_p:
        made = self.new("hipMalloc", ctypes.c_size_t(4 * len(values)))
        data = (ctypes.c_int32 * len(values))(*values)
        assert self.lib.hipMemcpy(made, data, ctypes.c_size_t(4 * len(values)), 1) == 0
        return made

    def read(self, p: ctypes.c_void_p, count: int = 1) -> list[int]:
        data = (ctypes.c_int32 * count)()
        assert self.lib.hipMemcpy(data, p, ctypes.c_size_t(4 * count), 2) == 0
        return list(data)

    def calls(self, name: str = "") -> int:
        return self.lib.mgxCalls(name.encode())


class Fill(ctypes.Structure):
    """hipMemsetParams."""

    _fields_ = (
        ("to", ctypes.c_void_p), ("element", ctypes.c_uint32), ("height", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint32), ("width", ctypes.c_size_t),
    )  # fmt: skip


class Kernel(ctypes.Structure):
    """hipKernelNodeParams."""

    _fields_ = (
        ("threads", ctypes.c_uint32 * 3), ("extra", ctypes.c_void_p), ("function", ctypes.c_void_p),
        ("groups", ctypes.c_uint32 * 3), ("arguments", ctypes.c_void_p), ("lds", ctypes.c_uint32),
    )  # fmt: skip


@pytest.fixture
def hip(native: Path) -> Hip:
    return Hip(native)


@pytest.fixture
def adds(hip: Hip) -> ctypes.c_void_p:
    """A kernel whose lanes add 1 to what its argument points to."""
    module = hip.new("hipModuleLoadData", wrap(ADD_ONE, "gfx942", rsrc1=0xF0 << 12))
    return hip.new("hipModuleGetFunction", module, b"test")


def fill(to: ctypes.c_void_p, value: int, width: int = 1, **other: int) -> Any:
    return ctypes.byref(Fill(to, other.get("element", 4), 1, 0, value, width))


def kernel(function: Any, place: ctypes.c_void_p, lanes: int = 1, kept: Any = None) -> Kernel:
    """Parameters with the arguments as a segment; `kept` holds what they point to."""
    segment, size = (ctypes.c_uint64 * 1)(place.value), ctypes.c_size_t(8)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(segment), 2, ctypes.addressof(size), 3)
    kept = [] if kept is None else kept
    kept += [segment, size, extra]
    return Kernel((lanes, 1, 1), ctypes.addressof(extra), function.value, (1, 1, 1), None, 0)


def nodes(*given: ctypes.c_void_p) -> Any:
    return (ctypes.c_void_p * max(len(given), 1))(*[g.value for g in given])


def one(count: int = 1) -> ctypes.c_size_t:
    return ctypes.c_size_t(count)


# ---- node by node --------------------------------------------------------------------------------


def chain(hip: Hip, adds: Any, x: Any, y: Any, value: int, linked: bool = True) -> tuple[Any, ...]:
    """x = value; x += 4 lanes; y = x: added last first, so that only dependencies order it."""
    graph = hip.new("hipGraphCreate", 0)
    kept: list[Any] = []
    copied = hip.new("hipGraphAddMemcpyNode1D", graph, None, one(0), y, x, one(4), 3)
    params = kernel(adds, x, 4, kept)
    added = hip.new("hipGraphAddKernelNode", graph, None, one(0), ctypes.byref(params))
    kept[0][0] = 1  # parameters are those of when it was added
    filled = hip.new("hipGraphAddMemsetNode", graph, None, one(0), fill(x, value))
    if linked:
        first, second = nodes(filled, added), nodes(added, copied)
        assert hip.status("hipGraphAddDependencies", graph, first, second, one(2)) == 0
    return graph, filled, added, copied


def launched(hip: Hip, graph: Any) -> Any:
    made = hip.new("hipGraphInstantiate", graph, None, None, one(0))
    assert hip.status("hipGraphLaunch", made, None) == 0
    return made


def test_dependencies_order_a_graph(hip: Hip, adds: Any) -> None:
    x, y = hip.memory(0), hip.memory(0)
    graph, *_ = chain(hip, adds, x, y, 10)
    made = launched(hip, graph)
    assert (hip.read(x), hip.read(y)) == ([14], [14])
    assert hip.status("hipGraphDestroy", graph) == 0  # the instantiated graph stays
    for _ in range(2):
        assert hip.status("hipGraphLaunch", made, None) == 0
    assert hip.read(y) == [14]
    assert hip.status("hipGraphExecDestroy", made) == 0
    assert hip.status("hipGraphLaunch", made, None) == INVALID


def test_edges_of_a_graph(hip: Hip, adds: Any) -> None:
    x, y = hip.memory(0), hip.memory(0)
    graph, filled, added, copied = chain(hip, adds, x, y, 1)
    count, room = ctypes.c_size_t(3), nodes(x, x, x)
    assert hip.status("hipGraphGetNodes", graph, room, ctypes.byref(count)) == 0
    assert list(room) == [copied.value, added.value, filled.value]
    assert hip.status("hipGraphGetRootNodes", graph, None, ctypes.byref(count)) == 0
    assert count.value == 1
    count.value = 3
    assert hip.status("hipGraphNodeGetDependencies", copied, room, ctypes.byref(count)) == 0
    assert (count.value, list(room)) == (1, [added.value, None, None])
    kind = ctypes.c_int()
    assert hip.status("hipGraphNodeGetType", filled, ctypes.byref(kind)) == 0
    assert kind.value == 2
    # a cycle is found when it is instantiated
    assert hip.status("hipGraphAddDependencies", graph, nodes(copied), nodes(filled), one()) == 0
    made = ctypes.c_void_p()
    assert hip.status("hipGraphInstantiate", ctypes.byref(made), graph, None, None, one(0)) == 1
    assert hip.status("hipGraphRemoveDependencies", graph, nodes(copied), nodes(filled), one()) == 0
    clone = hip.new("hipGraphClone", graph)
    assert hip.status("hipGraphDestroyNode", added) == 0
    launched(hip, clone)
    assert hip.read(y) == [5]
    launched(hip, graph)  # nothing orders the fill and the copy now, and nothing adds
    assert hip.read(x) == [1]


def test_new_parameters(hip: Hip, adds: Any) -> None:
    x, y = hip.memory(0), hip.memory(0)
    graph, filled, added, _ = chain(hip, adds, x, y, 10)
    made = launched(hip, graph)
    # changes the graph, not its earlier instances
    assert hip.status("hipGraphMemsetNodeSetParams", filled, fill(x, 20)) == 0
    assert hip.status("hipGraphLaunch", made, None) == 0
    assert hip.read(y) == [14]
    error, result = ctypes.c_void_p(), ctypes.c_int()
    update = ctypes.byref(error), ctypes.byref(result)
    assert hip.status("hipGraphExecUpdate", made, graph, *update) == 0
    assert hip.status("hipGraphLaunch", made, None) == 0
    assert hip.read(y) == [24]
    kept: list[Any] = []
    more = kernel(adds, x, 64, kept)
    assert hip.status("hipGraphExecKernelNodeSetParams", made, added, ctypes.byref(more)) == 0
    assert hip.status("hipGraphLaunch", made, None) == 0
    assert hip.read(y) == [84]
    assert hip.status("hipGraphExecKernelNodeSetParams", made, filled, ctypes.byref(more)) == 1
    other, *_ = chain(hip, adds, x, y, 30, linked=False)
    assert hip.status("hipGraphExecUpdate", made, other, *update) == UPDATE_FAILED
    assert result.value == TOPOLOGY
    changed = hip.new("hipGraphCreate", 0)
    a = hip.new("hipGraphAddEmptyNode", changed, None, one(0))
    single = hip.new("hipGraphCreate", 0)
    hip.new("hipGraphAddMemsetNode", single, None, one(0), fill(x, 1))
    made = launched(hip, single)
    assert hip.status("hipGraphExecUpdate", made, changed, *update) == UPDATE_FAILED
    assert (result.value, error.value) == (KIND, a.value)


def test_what_graphs_refuse(hip: Hip, adds: Any) -> None:
    x, made = hip.memory(0), ctypes.byref(ctypes.c_void_p())
    graph, other = hip.new("hipGraphCreate", 0), hip.new("hipGraphCreate", 0)
    node = hip.new("hipGraphAddEmptyNode", graph, None, one(0))
    assert hip.status("hipGraphCreate", made, 1) == INVALID
    assert hip.status("hipGraphAddEmptyNode", made, other, nodes(node), one()) == INVALID
    assert hip.status("hipGraphAddEmptyNode", made, graph, None, one()) == INVALID
    assert hip.status("hipGraphAddEmptyNode", made, graph, nodes(node, node), one(2)) == INVALID
    assert hip.status("hipGraphAddEmptyNode", made, x, None, one(0)) == INVALID
    add = "hipGraphAddMemsetNode", made, graph, None, one(0)
    assert hip.status(*add, fill(x, 1, element=3)) == INVALID
    assert hip.status(*add, None) == INVALID
    launch = "hipGraphAddKernelNode", made, graph, None, one(0)
    kept: list[Any] = []
    assert hip.status(*launch, ctypes.byref(kernel(adds, x, 0, kept))) == NO_CONFIGURATION
    assert hip.status(*launch, ctypes.byref(kernel(adds, x, 2048, kept))) == NO_CONFIGURATION
    nothing = kernel(ctypes.c_void_p(), x, 1, kept)
    assert hip.status(*launch, ctypes.byref(nothing)) == NO_FUNCTION
    both = kernel(adds, x, 1, kept)
    both.arguments = both.extra
    assert hip.status(*launch, ctypes.byref(both)) == INVALID
    hip.new("hipGraphAddMemsetNode", graph, None, one(0), fill(x, 1, 1000))  # beyond its memory
    executable = hip.new("hipGraphInstantiate", graph, None, None, one(0))
    assert hip.status("hipGraphLaunch", executable, None) == INVALID
    assert hip.status("hipGraphDestroy", graph) == 0
    assert hip.status("hipGraphDestroy", graph) == INVALID


def test_rows_hosts_events_and_children(hip: Hip) -> None:
    x, y = hip.memory(*range(12)), hip.memory(*[0] * 12)
    box = (ctypes.c_uint64 * 23)(4, 1, 0, 0, 2, 0, x.value or 0, 0, 16, 3,
                                 0, 0, 0, 0, 2, 0, y.value or 0, 0, 16, 3, 8, 2, 1)  # fmt: skip
    graph = hip.new("hipGraphCreate", 0)
    hip.new("hipDrvGraphAddMemcpyNode", graph, None, one(0), box, None)
    said: list[str] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: said.append("host"))
    parent = hip.new("hipGraphCreate", 0)
    child = hip.new("hipGraphAddChildGraphNode", parent, None, one(0), graph)
    host = (ctypes.c_void_p * 2)(ctypes.cast(function, ctypes.c_void_p), None)
    told = hip.new("hipGraphAddHostNode", parent, nodes(child), one(), host)
    event = hip.new("hipEventCreate")
    hip.new("hipGraphAddEventRecordNode", parent, nodes(told), one(), event)
    launched(hip, parent)
    assert hip.read(y, 12) == [5, 6, 0, 0, 9, 10, 0, 0, 0, 0, 0, 0]
    assert said == ["host"]


# ---- captured ------------------------------------------------------------------------------------


def test_a_capture_forks_and_joins(hip: Hip) -> None:
    x, y = hip.memory(0), hip.memory(0)
    first, second = hip.new("hipStreamCreate"), hip.new("hipStreamCreate")
    fork, join = hip.new("hipEventCreate"), hip.new("hipEventCreate")

    def capture(joined: bool) -> tuple[int, ctypes.c_void_p]:
        assert hip.status("hipStreamBeginCapture", first, 0) == 0
        assert hip.status("hipMemsetD32Async", x, 7, one(), first) == 0
        assert hip.status("hipEventRecord", fork, first) == 0
        assert hip.status("hipStreamWaitEvent", second, fork, 0) == 0
        assert hip.status("hipMemcpyAsync", y, x, one(4), 3, second) == 0
        assert hip.status("hipEventRecord", join, second) == 0
        if joined:
            assert hip.status("hipStreamWaitEvent", first, join, 0) == 0
            assert hip.status("hipMemsetD32Async", x, 9, one(), first) == 0
        graph = ctypes.c_void_p()
        return hip.status("hipStreamEndCapture", first, ctypes.byref(graph)), graph

    status, graph = capture(joined=True)
    assert status == 0
    assert hip.read(x) == [0]  # captured, not run
    launched(hip, graph)
    assert (hip.read(x), hip.read(y)) == ([9], [7])
    assert capture(joined=False)[0] == UNJOINED
    assert hip.status("hipMemsetD32Async", x, 1, one(), second) == 0  # no longer captured
    assert hip.read(x) == [1]


def test_streams_keep_their_priority(library: Path) -> None:
    device = open_device("hip", library=str(library))
    least, greatest = gpu_streams.priorities(device)
    assert greatest < 0 < least
    context = migraphx.get_target("gpu", emulate=True).get_context()
    assert context.stream_priorities() == (least, greatest)
    assert context.create_stream(greatest).priority == greatest
    assert context.create_stream().priority == 0
    with pytest.raises(UsageError, match=f"expected a priority from {greatest}, .* got 9"):
        context.create_stream(9)


# ---- programs ------------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
X = RNG.standard_normal((32, 64)).astype(np.float32)
WEIGHTS = [RNG.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(3)]


def layers() -> Any:
    """Three products, a softmax behind each."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[32, 64]))
    for w in WEIGHTS:
        x = m.add_instruction(migraphx.op("dot"), [x, m.add_literal(w)])
        x = m.add_instruction(migraphx.op("softmax", axis=1), [x])
    m.add_return([x])
    return p


def expected(x: np.ndarray) -> np.ndarray:
    y = x.astype(np.float64)
    for w in WEIGHTS:
        e = np.exp(y @ w.astype(np.float64))
        y = e / e.sum(1, keepdims=True)
    return y


def close(found: Any, x: np.ndarray) -> None:
    np.testing.assert_allclose(np.asarray(found), expected(x), rtol=2e-5, atol=1e-7)


def compiled(hip_graph: bool = True, offload_copy: bool = True, **options: Any) -> Any:
    p, own = layers(), {"graph": hip_graph, **options}
    p.compile(
        migraphx.get_target("gpu", arch="gfx942", emulate=True, **own), offload_copy=offload_copy
    )
    return p


@pytest.mark.emulator
def test_a_program_is_one_launch(library: Path) -> None:
    hip, counts = Hip(library), {}
    for hip_graph in (False, True):
        p = compiled(hip_graph)
        close(p.run({"x": X})[0], X)
        before = [hip.calls(n) for n in ("", "hipModuleLaunchKernel", "hipGraphLaunch")]
        close(p.run({"x": X * 3})[0], X * 3)
        after = [hip.calls(n) for n in ("", "hipModuleLaunchKernel", "hipGraphLaunch")]
        counts[hip_graph] = [b - a for a, b in zip(before, after, strict=True)]
    launches = len(p.compiled.executable.launches("main"))
    assert launches > 1
    assert counts[False][1:] == [launches, 0]
    assert counts[True][1:] == [0, 1]
    # the device, a copy in, the launch, a copy out, the wait
    assert counts[True][0] == 5 < 12 < counts[False][0]


def test_threads_and_other_programs(library: Path) -> None:
    """Two graphs and a program without one, each from two threads."""
    programs = [compiled(), compiled(stream_priority=-1), compiled(False)]
    wrong: list[Exception] = []

    def work(p: Any, factor: float) -> None:
        try:
            for n in range(4):
                x = X * np.float32(factor + n)
                close(p.run({"x": x})[0], x)
        except Exception as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(p, f)) for p in programs for f in (0.5, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    programs[0].compiled.close()
    close(programs[1].run({"x": X})[0], X)


def test_buffers_of_the_caller(library: Path) -> None:
    p = compiled(offload_copy=False)
    shapes = p.get_parameter_shapes()
    target = migraphx.get_target("gpu", emulate=True)
    kept = []
    for n in (1, 2, 3):
        x = X * np.float32(n)
        given = target.copy_to(migraphx.argument(x))
        out = target.allocate(shapes["main:#output_0"])
        at = {"x": given, "main:#output_0": out}
        params = {
            k: migraphx.argument_from_pointer(a.get_shape(), a.data_ptr()) for k, a in at.items()
        }
        p.run(params)
        kept.append((out, x, p.run({"x": given})[0]))
    for out, x, own in kept:  # each call's results are its own
        close(migraphx.from_gpu(out).array, x)
        close(migraphx.from_gpu(own).array, x)


def test_what_cannot_be_one_graph(library: Path) -> None:
    loop = parsed("""(int64 n, float[4] x) => (float[4] y) { y = Loop <
        body = b (int64 i, bool g, float[4] a) => (bool go, float[4] b)
            { b = Add (a, a) go = Identity (g) }
        > (n, , x) }""")
    given = {"n": np.int64(5), "x": np.ones(4, np.float32)}
    made = migraphx.compile(loop, "gpu", arch="gfx942", emulate=True, hip_graph=True)
    with pytest.raises(UsageError, match="cannot be one HIP graph: it reads values on the host"):
        made.run(given)
    plain = migraphx.compile(loop, "gpu", arch="gfx942", emulate=True)
    np.testing.assert_array_equal(plain.run(given)[0], np.full(4, 32, np.float32))
    with pytest.raises(UsageError, match="only gpu programs are graphs of a GPU, the target is"):
        migraphx.compile(loop, "cpu", hip_graph=True)
    with pytest.raises(UsageError, match="stream_priority is for graph=True"):
        migraphx.compile(loop, "gpu", arch="gfx942", emulate=True, stream_priority=-1)


def test_each_size_is_a_graph(library: Path) -> None:
    """A program with dynamic dims: sixteen recordings, the earliest goes."""
    relu = parsed("(float[rows,4] x) => (float[rows,4] y) { y = Relu (x) }")
    made = migraphx.compile(relu, "gpu", arch="gfx942", emulate=True, graph=True)
    hip = Hip(library)

    def launches(rows: int) -> list[int]:
        before = [hip.calls(c) for c in ("hipModuleLaunchKernel", "hipGraphLaunch")]
        x = RNG.standard_normal((rows, 4)).astype(np.float32)
        np.testing.assert_array_equal(made.run({"x": x})[0], np.maximum(x, 0))
        after = [hip.calls(c) for c in ("hipModuleLaunchKernel", "hipGraphLaunch")]
        return [b - a for a, b in zip(before, after, strict=True)]

    for rows in (3, 5):
        assert launches(rows) == [1, 1]  # recorded, then launched
    assert launches(3) == launches(5) == [0, 1]
    for rows in range(6, 21):
        launches(rows)
    assert launches(5) == [0, 1]
    assert launches(3) == [1, 1]  # recorded again: the graph was dropped
    made.close()


@pytest.mark.emulator
def test_saved_code_is_one_launch(
    library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """From a file, from bytes, of compile() and of a program, and by the driver."""
    hip, path = Hip(library), tmp_path / "layers.mxr"

    def graphs_of(p: Any, n: int) -> list[int]:
        before = [hip.calls(c) for c in ("hipModuleLaunchKernel", "hipGraphLaunch")]
        close(p.run({"x": X * n})[0], X * n)
        after = [hip.calls(c) for c in ("hipModuleLaunchKernel", "hipGraphLaunch")]
        return [b - a for a, b in zip(before, after, strict=True)]

    p = compiled(False)
    migraphx.save(p, path)
    bare = migraphx.save_buffer(p.compiled)
    for made in (
        migraphx.load(path, emulate=True, hip_graph=True),
        migraphx.load_buffer(bare, emulate=True, hip_graph=True, stream_priority=-1),
    ):
        graphs_of(made, 1)  # recorded here
        assert [graphs_of(made, n) for n in (2, 3)] == [[0, 1], [0, 1]]
    assert graphs_of(migraphx.load(path, emulate=True), 1)[1] == 0

    assert main(["run", str(path), "--gpu", "--emulate", "--hip-graph"]) == 0
    said = capfd.readouterr().err
    assert "the file holds code for gpu, gfx942" in said
    assert "one graph a call" in said


@pytest.mark.emulator
def test_saved_code_that_cannot_be_a_graph(library: Path, tmp_path: Path) -> None:
    p = layers()
    migraphx.save(p, tmp_path / "plain.mxr")
    with pytest.raises(UsageError, match="graph is for compiled code, and none is loaded"):
        migraphx.load(tmp_path / "plain.mxr", hip_graph=True)
    p.compile(migraphx.get_target("cpu"))
    with pytest.raises(UsageError, match="only gpu programs are graphs of a GPU, the target is"):
        migraphx.load_buffer(migraphx.save_buffer(p), hip_graph=True)
    with pytest.raises(UsageError, match="graph is for compiled code, and none is loaded"):
        migraphx.load_buffer(migraphx.save_buffer(p, source=True), compiled=False, hip_graph=True)
    made = compiled(False)
    with pytest.raises(UsageError, match="stream_priority is for graph=True"):
        migraphx.load_buffer(migraphx.save_buffer(made), emulate=True, stream_priority=-1)


# ---- markers -------------------------------------------------------------------------------------


def test_each_launch_has_a_marker(library: Path) -> None:
    said: list[str] = []
    push = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(lambda n: said.append(n.decode()) or 0)
    pop = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: said.append("end") or 0)
    p = compiled(False)
    p.compiled.can_mark = True
    close(p.run({"x": X})[0], X)
    assert not said
    with graphs.mark(p.compiled.load(), push, pop):
        close(p.run({"x": X})[0], X)
    names = p.compiled.executable.launches("main")
    assert said[1::2] == ["end"] * len(names)
    assert said[::2] == names
    close(p.run({"x": X})[0], X)
    assert len(said) == 2 * len(names)


def test_roctx_marks_the_launches_of_a_gpu(
    library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from mgx_mlir.tools.driver.commands import roctx
    from mgx_mlir.tools.driver.main import main

    said: list[str] = []
    push = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(lambda n: said.append(n.decode()) or 0)
    pop = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: said.append("end") or 0)

    class Markers:
        functions = push, pop

        def start(self, name: str) -> int:
            said.append(f"start {name}")
            return 7

        def stop(self, number: int) -> None:
            said.append(f"stop {number}")

    monkeypatch.setattr(roctx, "Markers", Markers)
    migraphx.save(layers(), str(tmp_path / "m.mxr"))
    assert main(["roctx", "--gpu", "--arch", "gfx942", "--emulate", str(tmp_path / "m.mxr")]) == 0
    assert (said[0], said[-1]) == ("start 0", "stop 7")
    assert said[2:-1:2] == ["end"] * (len(said) // 2 - 1)
    assert len(said) > 4
    assert all(n.startswith("main_dispatch_") for n in said[1:-1:2])


def test_a_call_that_fails_leaves_no_recording(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mgx_mlir.runtime.iree_runtime import LoadedModule

    p, run = compiled(), LoadedModule.run_on_device

    def failing(self: LoadedModule, args: Any) -> Any:
        run(self, args)
        raise RunError("no")

    with monkeypatch.context() as patched:
        patched.setattr(LoadedModule, "run_on_device", failing)
        with pytest.raises(RunError, match="no"):
            p.run({"x": X})
    q = compiled()  # on another driver: the one whose call failed may be lost
    for n in (1, 2):
        close(q.run({"x": X * np.float32(n)})[0], X * np.float32(n))
