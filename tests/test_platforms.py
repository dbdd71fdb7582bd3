"""Imports, a compile, a run and a load where the system lacks calls of Linux, as Windows does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# hides what Windows lacks; the modules of the standard library that need it are imported before
HIDE = """
import mmap, os, select, signal, socket, subprocess, sys, tempfile
import importlib.metadata, multiprocessing.util, platform
sys.modules["resource"] = None
GONE = {
    os: "pread preadv O_CLOEXEC O_NONBLOCK O_NOFOLLOW getuid killpg fork register_at_fork"
        " sched_getaffinity sysconf pidfd_open nice",
    mmap: "MAP_PRIVATE MAP_ANONYMOUS MADV_HUGEPAGE MADV_NOHUGEPAGE",
    signal: "setitimer SIGALRM",
    select: "poll epoll",
    socket: "send_fds recv_fds",
}
for module, names in GONE.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
WORK = """
import numpy as np, onnx
from onnx import TensorProto, helper
w = helper.make_tensor("w", TensorProto.FLOAT, [8, 3], np.arange(24.0) / 10)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])], [w])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "m.onnx")

import mgx_mlir
from mgx_mlir.targets import child
child.shared_compiler().use_worker = False  # as on Windows: workers are polled through pipes
x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
want = np.maximum(x @ (np.arange(24, dtype=np.float32).reshape(8, 3) / 10), 0)
for target in ("ref", "cpu"):
    found = mgx_mlir.compile("m.onnx", target=target).run(x=x)
    np.testing.assert_allclose(found[0], want, rtol=1e-5, atol=1e-6)
mgx_mlir.save(mgx_mlir.compile("m.onnx", target="cpu"), "m.mxr")
np.testing.assert_allclose(mgx_mlir.load("m.mxr").run(x=x)[0], want, rtol=1e-5, atol=1e-6)
"""
LIMITS = """
import mgx_mlir
from mgx_mlir.core.errors import MgxError
from mgx_mlir.tools.driver.deadline import within
for use in (lambda: within(1.0).__enter__(), lambda: Workers("a:b", {})):
    from mgx_mlir.runtime.workers import Workers
    try:
        use()
    except MgxError as e:
        assert "this system does not have" in e.message, e.message
    else:
        raise AssertionError("no error")
"""
IMPORTS = """
import importlib, pathlib
import mgx_mlir
# not for such a system, or of packages that a user may not have
KEPT = {"fork_server", "backend_report", "serve", "v2", "ray", "openai", "torch", "text", "triton"}
KEPT |= {"mlserver_runtime", "triton_repository", "worker_host"}
# the compile worker loads these with the files beside them, and without the package
KEPT |= {"worker_copies", "worker_nvidia"}
root = pathlib.Path(mgx_mlir.__file__).parent
files = [f.relative_to(root.parent) for f in root.rglob("*.py") if f.name != "__init__.py"]
names = [".".join(f.with_suffix("").parts) for f in files]
assert len(names) > 400
for name in names:
    if not KEPT & {*name.split(".")}:
        importlib.import_module(name)
"""


@pytest.mark.parametrize("work", [IMPORTS, WORK, LIMITS], ids=["imports", "compile", "limits"])
def test_calls_of_linux_are_not_needed(work: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIDE + work], cwd=tmp_path, capture_output=True, text=True,
        timeout=300, check=False, env={**os.environ, "MGX_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
