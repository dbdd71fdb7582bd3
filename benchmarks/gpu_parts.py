"""Parts of a run on a GPU, each in a process of its own: results are lines of JSON as they come.

`python -m benchmarks.gpu_parts PART FOLDER` with what benchmarks/gpu_suite.py compiled. No
compiler, bindings or ONNX are needed, and torch by the parts `torch` and `models` alone.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mgx_mlir
from benchmarks import gpu_stored
from mgx_mlir.core.errors import MgxError
from mgx_mlir.runtime import gpu_calls
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.gpu_streams import Event, Stream

AT_ONCE = 8  # processes that check programs side by side
LOST = 3  # exit status of a process that a program failed in: the next has a new one
Row = dict[str, Any]


def say(**row: Any) -> None:
    """Print a result."""
    print(json.dumps(row), flush=True)


# ---- programs -------------------------------------------------------------------------------


def check(files: list[Path]) -> int:
    """Run programs one after another; end at the first that fails as a call."""
    for file in files:
        case, row = gpu_stored.read(file), {"case": f"{file.parent.name}/{file.stem}"}
        start = time.perf_counter()
        try:
            with mgx_mlir.load(file) as made:
                wrong = []
                for inputs, wanted in case.runs:
                    wrong.append(gpu_stored.judge(case, made.run(inputs), wanted))
        except MgxError as e:
            say(**row, error=str(e)[:400])
            return LOST
        bad = next((w for w in wrong if w), "")
        say(**row, wrong=bad, s=round(time.perf_counter() - start, 3))
    return 0


def checked(folder: Path, part: str, seconds: float, known: set[str]) -> Iterator[Row]:
    """Run the programs of a part in processes side by side, without known cases."""
    todo = [f for f in gpu_stored.files(folder, part) if f"{part}/{f.stem}" not in known]
    found, lock = list[Row](), threading.Lock()
    end = time.monotonic() + seconds

    def work() -> None:
        while True:
            with lock:
                mine = [todo.pop() for _ in range(min(12, len(todo)))]
            while mine:
                left = end - time.monotonic()
                if left <= 0:
                    return
                command = [sys.executable, "-m", "benchmarks.gpu_parts", "check", str(folder)]
                command += [str(f) for f in mine]
                try:
                    done = subprocess.run(command, capture_output=True, text=True, timeout=left)
                    text, said = done.stdout, done.stderr
                except subprocess.TimeoutExpired as e:
                    text = (e.stdout or b"").decode()
                    said = "no answer in time"
                rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
                if len(rows) < len(mine) and not (rows and "error" in rows[-1]):
                    last = (said.strip().splitlines() or ["it ended"])[-1][:300]
                    at = mine[len(rows)]
                    rows.append({"case": f"{part}/{at.stem}", "error": f"the process: {last}"})
                with lock:
                    found.extend(rows)
                mine = mine[len(rows) :]
            with lock:
                if not todo:
                    return

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for t in threads:
        t.start()
    seen = 0
    while any(t.is_alive() for t in threads) or seen < len(found):
        time.sleep(0.1)
        while seen < len(found):
            yield found[seen]
            seen += 1


# ---- memory, threads, errors ------------------------------------------------------------------


def memory(folder: Path) -> None:
    """Device memory, threads, streams, several programs: each check is a line."""
    file = next(gpu_stored.files(folder, "programs"))
    files = [f for f in gpu_stored.files(folder, "programs") if "gemm-f16-0" in f.stem] or [file]
    case = gpu_stored.read(files[0])
    made = mgx_mlir.load(files[0])
    inputs, wanted = case.runs[0]
    loaded: Any = made.load()
    device = loaded.device
    given = [DeviceTensor.of(device, inputs[n]) for n in made.input_names]

    def right(found: list[Any]) -> str:
        return gpu_stored.judge(case, found, wanted)

    def stays() -> str:
        results = loaded.run_on_device(given)
        return right([r.to_host() for r in results])

    def caller() -> str:
        from mgx_mlir.runtime.device_memory import at_address

        t = given[0]
        view = at_address(device, t.address(), t.dtype, t.dims)
        return right([r.to_host() for r in loaded.run_on_device([view, *given[1:]])])

    def room() -> str:
        size = gpu_calls.allocation_bytes_from(device, given[0].address())
        return "" if size >= given[0].nbytes else f"{size} bytes of {given[0].nbytes}"

    def no_room() -> str:
        from mgx_mlir.core import dtypes

        held, text = [], "no error"
        try:
            for _ in range(64):
                held.append(DeviceTensor.empty(device, dtypes.FLOAT, (1 << 33,)))
        except MgxError as e:
            text = "" if "cannot allocate" in str(e) else str(e)
        del held
        gc.collect()
        return text or stays()

    def threads() -> str:
        wrong: list[str] = []

        def work() -> None:
            try:
                wrong.extend(w for _ in range(20) if (w := right(made.run(inputs))))
            except MgxError as e:
                wrong.append(str(e))

        each = [threading.Thread(target=work) for _ in range(8)]
        for t in each:
            t.start()
        for t in each:
            t.join()
        return wrong[0] if wrong else ""

    def several() -> str:
        others = list(gpu_stored.files(folder, "programs"))[:12]
        programs = [(gpu_stored.read(f), mgx_mlir.load(f)) for f in others]
        for _ in range(3):
            for c, p in programs:
                for i, w in c.runs:
                    bad = gpu_stored.judge(c, p.run(i), w)
                    if bad:
                        return f"{c.name}: {bad}"
        return ""

    def streams() -> str:
        stream, begin, end = Stream(device), Event(device), Event(device)
        begin.record(stream)
        end.record(stream)
        end.synchronize()
        stream.wait(end)
        stream.synchronize()
        elapsed = end.elapsed_ms(begin)
        return "" if 0 <= elapsed < 100 else f"{elapsed} ms"

    def refused() -> str:
        try:
            loaded.run_on_device([given[0], DeviceTensor.of(device, np.zeros((3, 3), np.float32))])
        except MgxError:
            return stays()
        return "wrong dims were taken"

    def kept() -> str:
        """Memory after many calls is that after few."""
        import ctypes

        def free() -> int:
            gc.collect()
            gpu_calls.device_synchronize(device)
            here, all_ = ctypes.c_size_t(), ctypes.c_size_t()
            gpu_calls.call(device, "memory_info", ctypes.byref(here), ctypes.byref(all_))
            return here.value

        loaded.run_on_device(given)
        before = free()
        for _ in range(300):
            loaded.run_on_device(given)
        lost = before - free()
        return "" if lost < 64 << 20 else f"{lost >> 20} MiB are gone after 300 calls"

    def graph() -> str:
        graphed = mgx_mlir.load(files[0], graph=True)
        found = [right(graphed.run(inputs)) for _ in range(3)]
        module = graphed.load()
        there = [DeviceTensor.of(module.device, inputs[n]) for n in made.input_names]
        found.append(right([r.to_host() for r in module.run_on_device(there)]))
        return next((w for w in found if w), "")

    def others() -> str:
        """Rows of one batch on all GPUs, and each GPU for itself."""
        from mgx_mlir.compiler.parallel import ParallelProgram
        from mgx_mlir.targets.devices import gpu_devices

        file, count = folder / "models" / "call-linear.mxr", len(gpu_devices())
        if count < 2 or not file.is_file():
            say(check="rows on several GPUs", skipped=f"{count} GPU")
            return ""
        case = gpu_stored.read(file)
        each = [mgx_mlir.load(file, device_id=i) for i in range(count)]
        (inputs, [want]), name = case.runs[0], each[0].input_names[0]
        found = ParallelProgram(each).run({name: np.concatenate([inputs[name]] * count)})[0]
        bad = [gpu_stored.judge(case, [part], [want]) for part in np.split(found, count)]
        return next((w for w in bad if w), "")

    checks: dict[str, Callable[[], str]] = {
        "host arrays": lambda: right(made.run(inputs)), "results stay on the device": stays,
        "the caller's memory": caller, "size of an allocation": room, "threads": threads,
        "several programs": several, "streams and events": streams,
        "wrong dims are refused": refused, "memory is released": kept, "graph": graph,
        "out of memory": no_room, "rows on several GPUs": others,
    }  # fmt: skip
    for name, run in checks.items():
        try:
            say(check=name, wrong=run())
        except Exception as e:  # one check's own fault must not hide the rest
            say(check=name, wrong=f"{type(e).__name__}: {e}"[:500])


def with_torch(folder: Path) -> None:
    """Tensors of torch on the device, without a copy and on its stream; DLPack both ways."""
    import torch
    from torch.utils.dlpack import from_dlpack

    from mgx_mlir.integrations.torch import calls
    from mgx_mlir.integrations.torch.memory import device_tensors_of

    files = {f.stem: f for f in gpu_stored.files(folder, "programs")}
    file = files.get("gemm-f16-0") or next(iter(files.values()))
    case = gpu_stored.read(file)
    made = mgx_mlir.load(file)
    inputs, wanted = case.runs[0]
    tensors = [torch.from_numpy(inputs[n]).cuda() for n in made.input_names]
    run = calls.runner(made)

    def right(found: list[Any]) -> str:
        return gpu_stored.judge(case, [t.cpu().numpy() for t in found], wanted)

    def plain() -> str:
        found = run(tensors)
        return right(found) if all(t.is_cuda for t in found) else "the results left the device"

    def no_copy() -> str:
        module = mgx_mlir.load(file, graph=False).load()  # a graph copies to its own memory
        held = device_tensors_of(module.device, tensors)
        if held[0].address() != tensors[0].data_ptr():
            return "the input was copied"
        result = module.run_on_device(held)[0]
        back = from_dlpack(result.dlpack())
        return "" if back.data_ptr() == result.address() else "the result was copied"

    def stream() -> str:
        """Inputs that the caller's stream still computes, and results that it reads at once."""
        side = torch.cuda.Stream()
        large = torch.randn(8192, 8192, device="cuda")
        for _ in range(10):
            with torch.cuda.stream(side):
                late = [torch.empty_like(t).fill_(float("nan")) for t in tensors]
                y = large
                for _ in range(4):
                    y = y @ large
                for t, source in zip(late, tensors, strict=True):
                    t.copy_(source)
                found = [t.clone() for t in run(late)]
            side.synchronize()
            wrong = right(found)
            if wrong:
                return wrong
        return ""

    def freed() -> str:
        """Results outlive the program; memory that torch reuses is not written to."""
        found = run(tensors)
        copies = [t.clone() for t in found]
        for _ in range(50):
            run(tensors)
            torch.full((1 << 20,), 7.0, device="cuda")
        torch.cuda.synchronize()
        same = all(torch.equal(a, b) for a, b in zip(found, copies, strict=True))
        return "" if same else "a result changed"

    def views() -> str:
        wide = torch.zeros(*tensors[0].shape[:-1], tensors[0].shape[-1] + 8, device="cuda",
                           dtype=tensors[0].dtype)  # fmt: skip
        wide[..., 8:] = tensors[0]
        return right(run([wide[..., 8:], *tensors[1:]]))

    def second() -> str:
        if torch.cuda.device_count() < 2:
            say(check="torch: another GPU", skipped=f"{torch.cuda.device_count()} GPU")
            return ""
        other = calls.runner(mgx_mlir.load(file, device_id=1))
        there = [t.to("cuda:1") for t in tensors]
        results = [other(there) for _ in range(3)]
        if any(t.get_device() != 1 for t in results[-1]):
            return "the results are elsewhere"
        return next((w for r in [*results, run(tensors)] if (w := right(r))), "")

    for name, one in {"tensors": plain, "no copy": no_copy, "the caller's stream": stream,
                      "results stay": freed, "views": views,
                      "another GPU": second}.items():  # fmt: skip
        try:
            say(check=f"torch: {name}", wrong=one())
        except Exception as e:  # one check's own fault must not hide the rest
            say(check=f"torch: {name}", wrong=f"{type(e).__name__}: {e}"[:500])


def sizes(calls: int = 1000, most: int = 4000) -> None:
    """Calls of drawn sizes, whose memory must not grow, and TopK of a detector's boxes."""
    import onnx.parser

    if importlib.util.find_spec("iree.compiler") is None:
        say(compiler="not installed")
        return

    def compiled(text: str) -> Any:
        head = '<ir_version: 9, opset_import: ["": 18]> g '
        model = onnx.parser.parse_model(head + text).SerializeToString()
        return mgx_mlir.compile(model, "gpu", cache=False)

    rng = np.random.default_rng(0)
    drawn = compiled("""(float[n,64] x, float[64,64] w) => (float[n,64] y) {
        a = MatMul (x, w) b = Softmax (a) c = MatMul (b, w) d = Softmax (c) y = MatMul (d, w) }""")
    w, used = rng.standard_normal((64, 64), np.float32), []
    for n in rng.integers(1, most, calls, endpoint=True):
        drawn.run(x=rng.standard_normal((n, 64), np.float32), w=w)
        found = drawn.memory()
        used.append(found.total - found.free)
    # blocks may take an eighth of the device before they are released, and a call comes on top
    grown = max(used) - used[0]
    allowed = drawn.memory().total // 8 + (64 << 20)
    drawn.close()
    say(check="drawn sizes", calls=calls, grown_mib=grown >> 20,
        wrong="" if grown < allowed else f"{grown >> 20} MiB more after {calls} sizes")  # fmt: skip
    boxes, wanted = 25_200, 300
    best = compiled(f"""(float[1,{boxes}] x) => (float[1,{wanted}] v, int64[1,{wanted}] i)
        <int64[1] k = {{{wanted}}}> {{ v, i = TopK (x, k) }}""")
    x = rng.standard_normal((1, boxes), np.float32)
    at = best.run(x=x)[1]
    right = np.array_equal(at[0], np.argsort(-x[0], kind="stable")[:wanted])
    module = best.load()
    given = [DeviceTensor.of(module.device, x)]
    say(check="TopK 300 of 25200", wrong="" if right else "other indices",
        us=us(seconds_of(lambda: module.run_on_device(given))))  # fmt: skip


def with_compiler(folder: Path) -> None:
    """Check torch.compile, MIGraphX's and onnxruntime's API, devices: all need the compiler."""
    import torch

    if importlib.util.find_spec("torch_mlir") is None:
        say(compiler="not installed")
        return

    def compiled() -> str:
        from benchmarks.gpu_networks import Bert

        torch.manual_seed(0)
        net = Bert(1).eval().half().cuda()
        fast = torch.compile(net, backend="mgx")
        with torch.inference_mode():
            for b, n in ((1, 64), (3, 40), (2, 77)):
                ids = torch.randint(0, 30000, (b, n), device="cuda")
                seen = torch.ones(b, n, dtype=torch.long, device="cuda")
                got, want = fast(ids, seen), net(ids, seen)
                error = ((got - want).norm() / want.norm()).item()
                if not got.is_cuda or not error < 5e-3:
                    return f"{b} x {n}: error {error}, on {got.device}"
            small = torch.compile(torch.nn.Linear(64, 64).cuda(), backend="mgx")
            x = torch.randn(4, 64, device="cuda")
            small(x)
            made = seconds_of(lambda: small(x))
            say(torch_compile_call_us=us(made))
        return ""

    def strided() -> str:
        """Tensors with gaps, and results that are dropped while two streams read them."""
        fast = torch.compile(lambda x: x * 2 + 1, backend="mgx")
        x = torch.arange(12.0, device="cuda").reshape(3, 4)
        streams, wrong, end = [torch.cuda.Stream() for _ in range(2)], 0, time.monotonic() + 20
        for i in range(10_000):
            with torch.cuda.stream(streams[i % 2]):
                given = (x + i).t()
                y = fast(given)
                z = y * 3
                del y
            if i % 100 == 0:
                torch.cuda.synchronize()
                wrong += not torch.equal(z, (given * 2 + 1) * 3)
                if time.monotonic() > end:
                    break
        return f"{wrong} wrong of {i // 100 + 1}" if wrong else ""

    def program(offload: bool) -> tuple[Any, Any]:
        p = mgx_mlir.program()
        m = p.get_main_module()
        s = mgx_mlir.shape(type="float_type", lens=[64, 64])
        x, y = m.add_parameter("x", s), m.add_parameter("y", s)
        m.add_return([m.add_instruction(mgx_mlir.op("dot"), [x, y])])
        target = mgx_mlir.get_target("gpu")
        p.compile(target, offload_copy=offload)
        return p, target

    def tensors() -> str:
        p, target = program(False)
        x, y = (torch.randn(64, 64, device="cuda") for _ in range(2))
        want = x.double() @ y.double()
        out = torch.full((64, 64), float("nan"), device="cuda")
        (found,) = p.run({"x": x, "y": y})
        shared = torch.from_dlpack(found)
        p.run({"x": x, "y": y, "main:#output_0": out})
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            late = p.run_async({"x": x, "y": y}, stream.cuda_stream, "CUstream_st")
        copied = mgx_mlir.from_gpu(p.run({n: mgx_mlir.to_gpu(mgx_mlir.argument(t.cpu().numpy()))
                                          for n, t in (("x", x), ("y", y))})[0])  # fmt: skip
        context = target.get_context()
        context.finish()
        own, event = context.create_stream(), context.create_event()
        event.record(own)
        context.finish_on(own)
        every = [shared, out, torch.from_dlpack(late[0]), torch.from_numpy(np.array(copied)).cuda()]
        errors = [float((t.double() - want).norm() / want.norm()) for t in every]
        return "" if max(errors) < 1e-5 else f"errors {errors}"

    def by_onnxruntime() -> str:
        import onnx.parser

        import mgx_mlir.onnxruntime as ort

        head = '<ir_version: 8, opset_import: ["" : 17]>'
        text = f"{head} g (float[4,8] x) => (float[4,8] y) {{ y = Relu(x) }}"
        session = ort.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
        x = np.random.default_rng(0).standard_normal((4, 8), np.float32)
        (y,) = session.run(None, {"x": x})
        names = session.get_providers()
        return "" if np.array_equal(y, np.maximum(x, 0)) else f"wrong by {names}"

    def parallel() -> str:
        from mgx_mlir.targets.devices import gpu_devices

        count = len(gpu_devices())
        if count < 2:
            say(check="data_parallel", skipped=f"{count} GPU")
            return ""
        p, _ = program(True)
        made = mgx_mlir.data_parallel(p, list(range(count)), whole=["y"])
        x = np.random.default_rng(0).standard_normal((64 * count, 64)).astype(np.float32)
        y = np.eye(64, dtype=np.float32)
        return "" if np.allclose(made.run({"x": x, "y": y})[0], x, atol=1e-5) else "wrong"

    checks = {"torch.compile": compiled, "MIGraphX's API on tensors": tensors,
              "onnxruntime's API": by_onnxruntime, "data_parallel": parallel,
              "tensors with gaps, results dropped": strided}  # fmt: skip
    for name, one in checks.items():
        try:
            say(check=name, wrong=one())
        except Exception as e:  # one check's own fault must not hide the rest
            say(check=name, wrong=f"{type(e).__name__}: {e}"[:600])


def faults(folder: Path) -> None:
    """The error of a process once a kernel faulted: a later program fails with a clear error."""
    file = next(gpu_stored.files(folder, "programs"))
    case = gpu_stored.read(file)
    made = mgx_mlir.load(file, graph=False)  # a graph would copy from the address
    inputs = case.runs[0][0]
    made.run(inputs)
    device = made.load().device
    bad = [gpu_calls_address(device, port) for port in made.load().inputs]
    for what, run in (
        ("a kernel reads where nothing is", lambda: made.load().run_on_device(bad)),
        ("the same program again", lambda: made.run(inputs)),
        ("a program that is loaded later", lambda: mgx_mlir.load(file).run(inputs)),
    ):
        try:
            run()
            gpu_calls.device_synchronize(device)
            say(fault=what, said="")
        except Exception as e:  # the text of each is what is looked at
            say(fault=what, said=f"{type(e).__name__}: {e}"[:600])


def gpu_calls_address(device: Device, port: Any) -> DeviceTensor:
    """Return a tensor at an address of nothing."""
    from mgx_mlir.runtime.device_memory import at_address

    return at_address(device, 0x7000_0000_0000, port.dtype, port.dims)


# ---- times ------------------------------------------------------------------------------------


def seconds_of(run: Callable[[], object], at_least: float = 0.25, most: int = 400) -> list[float]:
    """Return times of single calls, the first three left out."""
    for _ in range(3):
        run()
    found: list[float] = []
    start = time.perf_counter()
    while len(found) < 7 or (time.perf_counter() - start < at_least and len(found) < most):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return found


def us(times: list[float]) -> float:
    """Return the median in microseconds."""
    return round(statistics.median(times) * 1e6, 2)


def launches(folder: Path) -> None:
    """The cost of a call and of a launch on the host and the device, by streams and by a graph."""
    for graph in (False, True):
        found: dict[int, tuple[float, int]] = {}
        for count in (1, 33):
            file = folder / "models" / f"chain-{count}.mxr"
            case = gpu_stored.read(file)
            made = mgx_mlir.load(file, graph=graph)
            loaded = made.load()
            (inputs, wanted) = case.runs[0]
            given = [DeviceTensor.of(loaded.device, inputs[n]) for n in made.input_names]
            wrong = gpu_stored.judge(
                case, [r.to_host() for r in loaded.run_on_device(given)], wanted
            )
            taken = us(seconds_of(lambda loaded=loaded, g=given: loaded.run_on_device(g)))
            found[count] = taken, len(made.executable.launches("main"))
            say(launch=count, graph=graph, us=taken, kernels=found[count][1], wrong=wrong,
                host_us=us(seconds_of(lambda m=made, i=inputs: m.run(i))))  # fmt: skip
        more = [b - a for a, b in zip(found[1], found[33], strict=True)]
        say(graph=graph, each_us=round(more[0] / more[1], 2))


def main(argv: list[str]) -> int:
    part, folder, *rest = argv
    if part == "check":
        return check([Path(f) for f in rest])
    place = Path(folder)
    if part in ("edges", "programs", "families"):
        for row in checked(
            place, part, float(rest[0]) if rest else 120.0, gpu_stored.cases(*rest[1:])
        ):
            say(**row)
        return 0
    if part == "models":
        from benchmarks.gpu_times import models  # torch, where it is needed

        models(place, *rest)
        return 0
    if part == "calls":
        from benchmarks.gpu_calls import cost  # torch, where it is needed

        cost(place)
        return 0
    {
        "memory": memory,
        "sizes": lambda _: sizes(),
        "torch": with_torch,
        "compiler": with_compiler,
        "faults": faults,
        "launches": launches,
    }[part](place)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main(sys.argv[1:]))
