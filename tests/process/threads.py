"""A program that does one thing in many threads at once, from a cold start, and checks numbers.

    python threads.py WHAT THREADS ROUNDS

A test runs it as a child, so that a segmentation fault is a failed test.
"""

from __future__ import annotations

import faulthandler
import io
import random
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import mgx_mlir as mgx
from tests.support.models import parsed_bytes

DIM = 8


def weights(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((DIM, DIM)).astype(np.float32)


def model(seed: int) -> bytes:
    """relu(x @ w) + mean, as the bytes of an ONNX file."""
    return parsed_bytes(
        f"""(float[4,{DIM}] x) => (float[4,{DIM}] y)
        {{ a = MatMul (x, w) b = Relu (a) m = ReduceMean <axes = [1]> (b) y = Add (b, m) }}""",
        {"w": weights(seed)}, opset=13, ir_version=8,
    )  # fmt: skip


def checked(run: Callable[..., Any], seed: int, shift: float = 0.0) -> None:
    """Run on an input of one's own and compare with numpy in f64."""
    x = (np.arange(4 * DIM, dtype=np.float32).reshape(4, DIM) + np.float32(shift)) / DIM
    found = np.asarray(run({"x": x})[0])
    b = np.maximum(x.astype(np.float64) @ weights(seed).astype(np.float64), 0)
    np.testing.assert_allclose(found, b + b.mean(axis=1, keepdims=True), rtol=1e-4, atol=1e-4)


class Work:
    """Tasks of a thread; `k` numbers the thread, shared objects are made at the start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shared: Any = None
        self.compiled: Any = None
        self.lock = threading.Lock()

    def share(self) -> Any:
        """One program for all threads, read by whoever comes first."""
        with self.lock:
            if self.shared is None:
                self.shared = mgx.parse_onnx_buffer(model(0))
            return self.shared

    def parse(self, k: int, i: int) -> None:
        checked(mgx.parse_onnx_buffer(model(k)).run, k)

    def ref(self, k: int, i: int) -> None:
        checked(mgx.compile(model(k), "ref").run, k)

    def cpu(self, k: int, i: int) -> None:
        checked(mgx.compile(model(k), "cpu", cache=False).run, k)

    def cached(self, k: int, i: int) -> None:
        checked(mgx.compile(model(k % 2), "cpu").run, k % 2)

    def same_program(self, k: int, i: int) -> None:
        target = "ref" if k % 2 else "cpu"
        checked(mgx.compile(self.share(), target, cache=k % 4 == 0).run, 0)

    def show(self, k: int, i: int) -> None:
        p = self.share()
        text, stream = repr(p), io.StringIO()
        p.print(stream)
        assert "dot" in text
        assert "dot" in stream.getvalue()
        assert len(list(p.get_main_module())) > 3
        checked(p.run, 0)

    def save(self, k: int, i: int) -> None:
        path = self.folder / f"{k}.mxr"
        mgx.save(self.share(), path)
        checked(mgx.load(path).run, 0)
        one = self.folder / "one.mxr"  # written by all, read whole by all
        mgx.save(self.share(), one)
        checked(mgx.load(one).run, 0)

    def save_compiled(self, k: int, i: int) -> None:
        p = mgx.parse_onnx_buffer(model(k))
        p.compile("cpu")
        path = self.folder / f"c{k}.mxr"
        mgx.save(p, path)
        found = mgx.load(path)
        assert found.is_compiled()
        checked(found.run, k)

    def run(self, k: int, i: int) -> None:
        with self.lock:
            if self.compiled is None:
                self.compiled = mgx.compile(model(0), "cpu")
        for shift in range(20):
            checked(self.compiled.run, 0, shift + k)

    def verify(self, k: int, i: int) -> None:
        from mgx_mlir.debug.compare import compare
        from mgx_mlir.debug.tolerances import Tolerances

        x = np.full((4, DIM), k, np.float32)
        both = [mgx.compile(model(k), t, cache=False).run(x=x)[0] for t in ("cpu", "ref")]
        assert compare("y", both[0], both[1], Tolerances()).passed

    def mlir(self, k: int, i: int) -> None:
        path = self.folder / f"{k}.mlir"
        path.write_text(
            "func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
            '  %0 = "migraphx.relu"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>\n'
            "  return %0 : tensor<4x8xf32>\n}\n"
        )
        program = mgx.read_model(path)
        assert "migraphx.relu" in program.text()
        path.write_text(path.read_text().replace("tensor<4x8xf32>)", "tensor<4x9xf32>)"))
        try:
            mgx.read_model(path)
        except mgx.MgxError:
            return
        raise AssertionError("a wrong type was read")

    def wrong(self, k: int, i: int) -> None:
        """An error is raised in its own thread, with its own message."""
        bad = onnx.ModelProto.FromString(model(k))
        bad.graph.node[1].op_type = f"Nothing{k}"
        try:
            mgx.parse_onnx_buffer(bad.SerializeToString())
        except mgx.MgxError as e:
            if f"Nothing{k}" in str(e):
                return
            raise
        raise AssertionError("an unknown operator was read")

    def mixed(self, k: int, i: int) -> None:
        name = random.Random(1000 * k + i).choice([n for n in KINDS if n != "mixed"])
        getattr(self, name)(k, i)


KINDS = [n for n in vars(Work) if not n.startswith("_") and n != "share"]


def main(what: str, threads: int, rounds: int) -> int:
    """Do it in all threads at once; 1 where one of them failed."""
    faulthandler.enable()
    errors: list[str] = []
    barrier = threading.Barrier(threads)
    with tempfile.TemporaryDirectory() as folder:
        work = Work(Path(folder))

        def body(k: int) -> None:
            barrier.wait()
            for i in range(rounds):
                try:
                    getattr(work, what)(k, i)
                except BaseException as e:  # whatever it is, the test shall show it
                    errors.append(f"thread {k}: {type(e).__name__}: {e}")
                    return

        started = [threading.Thread(target=body, args=(k,)) for k in range(threads)]
        for t in started:
            t.start()
        for t in started:
            t.join()
    for line in errors:
        print(line[:2000])
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
