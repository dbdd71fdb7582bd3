"""A running `mgx-driver serve`, and what its clients say: good ones, slow ones, endless runs."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.serving.conftest import model_bytes
from tests.support.models import parsed_bytes

ROOT = Path(__file__).resolve().parents[2]
JSON = {"content-type": "application/json"}


def endless_bytes() -> bytes:
    """The sum of sin(x) over two dims that an input states: 2^33 elements take about a second."""
    return parsed_bytes(
        """(float[1,1] x, int64[2] dims) => (float y)
        { e = Expand (x, dims) s = Sin (e) y = ReduceSum <keepdims = 0> (s) }""",
        opset=18,
    )


def write_all(folder: Path) -> Path:
    """rows: joined up to 8 rows; alone: not joined; endless."""
    for name, data in (("rows", model_bytes(2)), ("alone", model_bytes(3)),
                       ("endless", endless_bytes())):  # fmt: skip
        (folder / name / "1").mkdir(parents=True, exist_ok=True)
        (folder / name / "1" / "model.onnx").write_bytes(data)
    (folder / "rows" / "config.json").write_text(json.dumps({"max_batch_size": 8}))
    return folder


def tensor(name: str, datatype: str, a: np.ndarray) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(a.shape), "data": a.ravel().tolist()}


def rows_body(x: np.ndarray) -> bytes:
    return json.dumps({"inputs": [tensor("x", "FP32", x)]}).encode()


def endless_body(elements: int = 1 << 52) -> bytes:
    dims = np.array([1 << 16, elements >> 16], np.int64)
    one = np.ones((1, 1), np.float32)
    rows = [tensor("x", "FP32", one), tensor("dims", "INT64", dims)]
    return json.dumps({"inputs": rows}).encode()


class Service:
    """The command, and requests to it."""

    def __init__(self, folder: Path, log: Path, *options: str, files: int = 0) -> None:
        """Start it; files: how many descriptors a process may have, 0 does not say."""
        self.log = log
        few = ["prlimit", f"--nofile={files}"] if files else []
        env = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
        self.process = subprocess.Popen(
            [*few, sys.executable, "-m", "mgx_mlir.tools.driver", "serve", folder, "--cpu",
             "--threads", "1", "--port", "0", *options],
            cwd=ROOT, env=env, stdout=log.open("w"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        end = time.monotonic() + 300
        while (found := re.search(r"Serving: .*:(\d+)/v2", log.read_text())) is None:
            assert self.process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        self.port = int(found[1])

    def ask(
        self, path: str, body: bytes | None = None, *, timeout: float = 120.0, **headers: str
    ) -> tuple[int, bytes]:
        """Send one request on a connection of its own; status and body."""
        own = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(own):
            heads = {**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}}
            own.request("GET" if body is None else "POST", path, body, heads)
            found = own.getresponse()
            return found.status, found.read()

    def talk(self, data: bytes, *, half_close: bool = False, timeout: float = 20.0) -> bytes:
        """Send raw bytes, and return what comes until the connection closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as own:
            with contextlib.suppress(ConnectionError):
                own.sendall(data)
                if half_close:
                    own.shutdown(socket.SHUT_WR)
            found = b""
            with contextlib.suppress(ConnectionError):
                while more := own.recv(1 << 16):
                    found += more
            return found

    def metric(self, name: str) -> float:
        """Return a number of /metrics, by its name with labels."""
        text = self.ask("/metrics")[1].decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def processes(self) -> list[int]:
        """Return the command's process and all below it."""
        return list(_tree(self.process.pid))

    def resident(self) -> int:
        """Return the bytes that all processes hold, of their own."""
        return sum(_own_bytes(p) for p in self.processes())

    def end(self) -> int:
        """Stop the service; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))


def _own_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        found = re.search(r"^RssAnon:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
        return int(found[1]) << 10 if found else 0
    return 0
