"""A process whose model is in the cache: it compiles and runs without loading a compiler."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

# Roots of modules: bindings of MLIR, IREE's compiler, readers of models, what lowers programs.
HEAVY = (
    "torch_mlir", "iree.compiler", "onnx", "google", "rich", "importlib.metadata", "email",
    "mgx_mlir.passes", "mgx_mlir.dialects", "mgx_mlir.frontends", "mgx_mlir.printers",
    "mgx_mlir.compiler.compilation", "mgx_mlir.compiler.models", "mgx_mlir.core.op",
    "mgx_mlir.rewrite.passes", "mgx_mlir.targets.apart", "mgx_mlir.targets.child",
    "mgx_mlir.runtime.workers",
)  # fmt: skip
PROGRAM = """
import sys
import numpy
import mgx_mlir
given = numpy.load(sys.argv[2])
model = open(sys.argv[1], "rb").read() if sys.argv[4] == "bytes" else sys.argv[1]
options = {"default_dim_value": 2} if sys.argv[4] == "options" else {}
found = mgx_mlir.compile(model, "cpu", **options)
numpy.save(sys.argv[3], found.run({"x": given})[0])
print(found.stats.cached)
print(*sys.modules)
"""


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, np.ndarray]:
    w = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(w, "w")])
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path, w


@pytest.mark.parametrize("kind", ["path", "bytes", "options"])
def test_a_cached_model_needs_no_compiler(
    kind: str, model: tuple[Path, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, w = model
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))
    given = np.random.default_rng(1).random((2 if kind == "options" else 1, 16), np.float32)
    np.save(tmp_path / "x.npy", given)
    rows = []
    for name in ("cold", "warm"):
        time.sleep(0.1)  # a file that is new has no digest that is kept
        out = tmp_path / f"{name}.npy"
        command = [sys.executable, "-c", PROGRAM, str(path), str(tmp_path / "x.npy"), str(out)]
        done = subprocess.run(
            [*command, kind], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(np.load(out), given @ w, rtol=1e-5, atol=1e-5)
        rows.append(done.stdout.split())
    (cold, *_), (warm, *modules) = rows
    assert (cold, warm) == ("False", "True")
    loaded = [m for m in modules if any(m == h or m.startswith(f"{h}.") for h in HEAVY)]
    assert not loaded, loaded[:20]
    assert "iree.runtime" in modules


DRIVER = """
import sys
from mgx_mlir.tools.driver.main import main
status = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
raise SystemExit(status)
"""
# options of a command line are those of the readers, which load no bindings
LIGHT = (
    *(h for h in HEAVY if h != "mgx_mlir.frontends"),
    "mgx_mlir.frontends.importer", "mgx_mlir.frontends.mxr", "mgx_mlir.programs.build",
)  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A lookup: which rows it reads is a question to the program."""
    w = np.random.default_rng(0).standard_normal((7, 8)).astype(np.float32)
    node = helper.make_node("Gather", ["w", "i"], ["y"])
    i = helper.make_tensor_value_info("i", TensorProto.INT64, [5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 8])
    graph = helper.make_graph([node], "g", [i], [y], [numpy_helper.from_array(w, "w")])
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "table.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


@pytest.mark.parametrize("command", ["compile", "run", "time"])
def test_the_driver_prints_a_cached_model_without_a_compiler(
    command: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))
    rows = []
    for _ in range(2):
        time.sleep(0.1)  # a file that is new has no digest that is kept
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, command, str(table), "--cpu"],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        rows.append((done.stdout.partition("Total time")[0], done.stderr.splitlines()))
    (cold, before), (warm, after) = rows
    assert "gather" in cold
    assert warm == cold
    outputs = [[line for line in e if line.startswith(("Output", "i: "))] for e in (before, after)]
    assert outputs[0] == outputs[1]
    assert (command == "compile") == (not outputs[0])
    assert any("loaded from the cache" in line for line in after)
    modules = after[-1].split()
    loaded = [m for m in modules if any(m == h or m.startswith(f"{h}.") for h in LIGHT)]
    assert not loaded, loaded[:20]


@pytest.mark.parametrize("asked", [["compile"], ["compile", "--mlir"], ["run"], ["perf"]])
def test_a_program_that_another_form_left_is_printed(
    asked: list[str], table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))
    driver = [sys.executable, "-m", "mgx_mlir.tools.driver"]
    file = tmp_path / "table.mxr"
    time.sleep(0.1)  # a file that is new has no digest that is kept
    for line in (["compile", str(table), "--cpu", "-o", str(file)], [*asked, str(table), "--cpu"]):
        done = subprocess.run(
            [*driver, *line], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
    assert "loaded from the cache" in done.stderr
    assert "gather" in done.stdout
