"""Mixed work for a while, and what it leaves behind: memory, open files, threads.

`python -m tests.runtime.soak SECONDS [SEED]` prints twenty JSON rows, and ends with status 1 where
something grew. An hour: `python -m tests.runtime.soak 3600`.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx.parser

import mgx_mlir
from mgx_mlir.core.errors import MgxError

WARM = 0.3  # share of the time in which pools of the allocators and caches fill
MEGABYTES = 12.0  # slack of the least of the last rows above the most of the first warm ones

MODELS = {
    "dense": """<ir_version: 9, opset_import: ["": 18]>
        g (float[n, 64] x) => (float[n, 64] y) <float[64, 64] w = {}>
        { a = MatMul(x, w) b = Softmax <axis = -1> (a) y = Add(b, x) }""",
    "image": """<ir_version: 9, opset_import: ["": 18]>
        g (float[1, 3, h, w] x) => (float[1, 3, p, q] y)
        { a = Relu(x) y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a) }""",
    "loop": """<ir_version: 9, opset_import: ["": 18]>
        g (float[k] x, int64 trips) => (float[k] y) <bool go = {1}>
        { y = Loop (trips, go, x)
          <body = b (int64 i, bool c, float[k] s) => (bool d, float[k] t)
          { d = Identity(c) t = Add(s, s) }> }""",
}


def model_bytes(name: str) -> bytes:
    zeros = ", ".join(["0.01"] * 64 * 64)
    return onnx.parser.parse_model(
        MODELS[name].replace("w = {}", f"w = {{{zeros}}}")
    ).SerializeToString()


def inputs(name: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Inputs of sizes that change, views among them."""
    n = int(rng.integers(1, 300))
    if name == "dense":
        wide = rng.standard_normal((64, n)).astype(np.float32)
        return {"x": wide.T}
    if name == "image":
        whole = rng.standard_normal((1, 40 + n, 50, 3)).astype(np.float32)
        return {"x": whole.transpose(0, 3, 1, 2)[:, :, ::2]}
    return {"x": np.ones(n, np.float32), "trips": np.array(int(rng.integers(0, 5)))}


class Work:
    """Tasks of the soak test, each a function without arguments."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.files: dict[str, Path] = {}
        for name in MODELS:
            self.files[name] = folder / f"{name}.onnx"
            self.files[name].write_bytes(model_bytes(name))
        self.programs = {name: mgx_mlir.compile(self.files[name], target="cpu") for name in MODELS}
        self.kinds: list[tuple[int, Callable[[str], None]]] = [
            (60, self.run), (10, self.compile), (1, self.compile_anew), (8, self.save),
            (8, self.parse), (5, self.wrong), (4, self.in_threads),
        ]  # fmt: skip

    def step(self) -> None:
        weights, kinds = zip(*self.kinds, strict=True)
        self.random.choices(kinds, weights)[0](self.random.choice(list(MODELS)))

    def run(self, name: str) -> None:
        self.programs[name].run(inputs(name, self.rng))

    def compile(self, name: str) -> None:
        mgx_mlir.compile(self.files[name], target="cpu").run(inputs(name, self.rng))

    def compile_anew(self, name: str) -> None:
        mgx_mlir.compile(self.files[name], target="cpu", cache=False)

    def save(self, name: str) -> None:
        program = mgx_mlir.parse_onnx(str(self.files[name]))
        program.compile(mgx_mlir.get_target("ref"))
        path = self.folder / "saved.mxr"
        mgx_mlir.save(program, str(path))
        mgx_mlir.load(str(path))

    def parse(self, name: str) -> None:
        mgx_mlir.parse_onnx_buffer(self.files[name].read_bytes())

    def wrong(self, name: str) -> None:
        for call in (
            lambda: self.programs[name].run({"x": np.zeros((2, 2, 2, 2, 2), np.float32)}),
            lambda: mgx_mlir.parse_onnx_buffer(self.files[name].read_bytes()[:-9]),
        ):
            try:
                call()
            except MgxError:
                continue

    def in_threads(self, name: str) -> None:
        given = [inputs(name, self.rng) for _ in range(3)]
        threads = [threading.Thread(target=self.programs[name].run, args=(x,)) for x in given]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def held() -> dict[str, float]:
    """Megabytes in memory, open files and threads of this process."""
    gc.collect()
    status = dict(
        line.split(":", 1)
        for line in Path("/proc/self/status").read_text().splitlines()
        if ":" in line
    )
    return {
        "megabytes": int(status["VmRSS"].split()[0]) / 1024,
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": int(status["Threads"]),
    }


def main(seconds: float, seed: int = 1) -> int:
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Work(Path(folder), seed)
        start, steps = time.monotonic(), 0
        while (now := time.monotonic() - start) < seconds:
            if now >= len(rows) * seconds / 20:
                rows.append({"seconds": round(now, 1), "steps": steps, **held()})
                print(json.dumps(rows[-1]), flush=True)
            work.step()
            steps += 1
    warm = [r for r in rows if r["seconds"] >= WARM * seconds]
    first, last = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    grown = [
        f"{key}: {max(r[key] for r in first):g} became {min(r[key] for r in last):g}"
        for key, room in (("megabytes", MEGABYTES), ("files", 0), ("threads", 0))
        if min(r[key] for r in last) > max(r[key] for r in first) + room
    ]
    print(json.dumps({"steps": steps, "grown": grown}))
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), *map(int, sys.argv[2:3])))
