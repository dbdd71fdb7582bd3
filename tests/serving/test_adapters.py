"""Bundles for Triton, and the runtime for MLServer.

The servers themselves are asked in slow tests: Triton where MGX_TRITON names the unpacked wheel of
nvidia-pytriton (with pytriton/ and nvidia_pytriton.libs/ in it), MLServer where it is installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import UsageError
from mgx_mlir.integrations.triton import TritonPythonModel
from mgx_mlir.integrations.triton_repository import config_text, write_repository
from tests.driver.conftest import Driver
from tests.driver.conftest import driver as driver
from tests.serving.conftest import expected, model_bytes, texts_bytes
from tests.serving.service import endless_bytes
from tests.support.models import parsed_bytes

RUNTIME = "mgx_mlir.integrations.mlserver_runtime.MgxRuntime"
TABLE = np.random.default_rng(9).standard_normal((5, 4)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)


def rows_of_a_table() -> bytes:
    """y = TABLE[i]: an index can be wrong, and Triton does not see it."""
    return parsed_bytes("(int64[n] i) => (float[n,4] y) { y = Gather (t, i) }", {"t": TABLE})


@pytest.fixture(scope="module")
def program() -> Any:
    return mgx_mlir.compile(model_bytes(), "cpu", threads=1)


def test_a_configuration(program: Any) -> None:
    text = config_text("rows", program, 8)
    assert 'name: "rows"\nbackend: "python"\nmax_batch_size: 8\n' in text
    assert 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]' in text
    assert "dynamic_batching" in text
    assert "dims: [ -1, 16 ]" in config_text("rows", program, 0)
    fixed = mgx_mlir.compile(model_bytes(1, 4), "cpu", threads=1)
    with pytest.raises(UsageError, match="first dim"):
        config_text("rows", fixed, 8)
    flat = mgx_mlir.compile(rows_of_a_table(), "cpu", threads=1)
    with pytest.raises(UsageError, match="a dim after the batch dim"):
        config_text("table", flat, 8)
    with pytest.raises(UsageError, match="expected a name"):
        write_repository("folder", "../up", program)


def test_the_command(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "rows.onnx"
    path.write_bytes(model_bytes())
    ran = driver("bundle", path, "--cpu", "--triton", tmp_path / "repo", "--max-batch-size", "4")
    assert ran.status == 0, ran.err
    at = tmp_path / "repo" / "rows"
    assert sorted(str(p.relative_to(at)) for p in at.rglob("*") if p.is_file()) == [
        "1/model.mxr", "1/model.py", "config.pbtxt",
    ]  # fmt: skip
    [y] = mgx_mlir.load(at / "1" / "model.mxr").run(X)
    assert np.allclose(y, expected(X, 1), atol=1e-5)
    assert driver("bundle", path, "--cpu", "--triton", "a", "-o", "b").status == 2
    assert driver("bundle", path, "--cpu", "-o", "b", "--name", "c").status == 2


# ---- the adapter, with a stand-in for the module that Triton's processes have ------------------


class Tensor:
    def __init__(self, name: str, array: Any) -> None:
        self._name, self._array = name, np.asarray(array)

    @staticmethod
    def from_dlpack(name: str, array: Any) -> Tensor:
        return Tensor(name, np.from_dlpack(array))

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> np.ndarray:
        return self._array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class TritonError:
    INVALID_ARG, INTERNAL = "invalid", "internal"

    def __init__(self, text: str, code: str) -> None:
        self.text, self.code = text, code


class Request:
    def __init__(self, *inputs: Tensor) -> None:
        self._inputs = inputs

    def inputs(self) -> tuple[Tensor, ...]:
        return self._inputs

    def requested_output_names(self) -> list[str]:
        return ["y", "c"]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> None:
    made = types.ModuleType("triton_python_backend_utils")
    made.__dict__.update(
        Tensor=Tensor, TritonError=TritonError, InferenceResponse=types.SimpleNamespace
    )
    monkeypatch.setitem(sys.modules, made.__name__, made)


def model(
    folder: Path, data: bytes, batch: int, parameters: dict[str, Any] | None = None
) -> TritonPythonModel:
    write_repository(folder, "m", mgx_mlir.compile(data, "cpu", threads=1), batch)
    found = TritonPythonModel()
    found.initialize({
        "model_config": json.dumps({"max_batch_size": batch, "parameters": parameters or {}}),
        "model_repository": str(folder / "m"), "model_version": "1", "model_name": "m",
    })  # fmt: skip
    return found


def test_requests_of_triton(backend: None, tmp_path: Path) -> None:
    made = model(tmp_path, rows_of_a_table(), 0)
    indices = [[0], [4, 1], [7], [2, 2, 2], [-1]]
    found = made.execute([Request(Tensor("i", np.array(i))) for i in indices])
    for i, answer in zip(indices, found, strict=True):
        if i == [7]:
            assert answer.error.code == "invalid"
            assert "expected indices in [-5, 5), got 7" in answer.error.text
            continue
        [y] = answer.output_tensors
        assert np.array_equal(y.as_numpy(), TABLE[i])
    made.finalize()


def test_a_run_without_end_of_triton(backend: None, tmp_path: Path) -> None:
    limit = {"max_run_seconds": {"string_value": "0.3"}}
    found = model(tmp_path, endless_bytes(), 0, limit)
    asked = Request(Tensor("x", np.ones((1, 1), np.float32)),
                    Tensor("dims", np.array([1 << 26, 1 << 26], np.int64)))  # fmt: skip
    [answer] = found.execute([asked])
    assert "longer than 0.3 s" in answer.error.text
    found.finalize()
    with pytest.raises(UsageError, match="expected a number, got 'soon'"):
        model(tmp_path, endless_bytes(), 0, {"max_run_seconds": {"string_value": "soon"}})


def test_strings_of_triton(backend: None, tmp_path: Path) -> None:
    made = model(tmp_path, texts_bytes(), 0)
    a, b = np.array(["é".encode(), b"b"], object), np.array(["é".encode()], object)
    [answer] = made.execute([Request(Tensor("a", a), Tensor("b", b))])
    assert answer.output_tensors[0].as_numpy().tolist() == [True, False]


# ---- the servers -------------------------------------------------------------------------------


def wait_for(client: Any, process: subprocess.Popen[Any]) -> None:
    for _ in range(240):
        assert process.poll() is None, "the server ended"
        try:
            if client.is_server_ready():
                return
        except Exception:
            time.sleep(0.5)
    raise AssertionError("the server is not ready")


def ask(client: Any, name: str, x: np.ndarray, kind: str, binary: bool) -> np.ndarray:
    import tritonclient.http as triton

    tensor = triton.InferInput("x" if kind == "FP32" else "i", list(x.shape), kind)
    tensor.set_data_from_numpy(x, binary_data=binary)
    wanted = [triton.InferRequestedOutput("y", binary_data=binary)]
    return client.infer(name, [tensor], outputs=wanted).as_numpy("y")


@pytest.fixture
def triton_server(tmp_path: Path) -> Iterator[Any]:
    wheel = Path(os.environ.get("MGX_TRITON", ""))
    triton = pytest.importorskip("tritonclient.http")
    if not (wheel / "pytriton/tritonserver/bin/tritonserver").exists():
        pytest.skip("MGX_TRITON names no unpacked nvidia-pytriton")
    own = wheel / "pytriton/tritonserver"
    shutil.copytree(own / "backends", tmp_path / "backends")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = own / "python_backend_stubs" / version / "triton_python_backend_stub"
    for path in (shutil.copy(stub, tmp_path / "backends/python"), own / "bin/tritonserver"):
        Path(path).chmod(0o755)
    for name, data, batch in (("rows", model_bytes(), 8), ("table", rows_of_a_table(), 0)):
        write_repository(tmp_path / "repo", name, mgx_mlir.compile(data, "cpu"), batch)
    libraries = [str(wheel / "nvidia_pytriton.libs"), f"{sys.base_prefix}/lib"]
    process = subprocess.Popen(
        [own / "bin/tritonserver", f"--model-repository={tmp_path / 'repo'}",
         f"--backend-directory={tmp_path / 'backends'}", "--http-address=127.0.0.1",
         "--http-port=18461", "--allow-grpc=false", "--allow-metrics=false"],
        # the backend takes the Python that is first on PATH, and no PYTHONPATH
        env={**os.environ, "LD_LIBRARY_PATH": ":".join(libraries),
             "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    client = triton.InferenceServerClient("127.0.0.1:18461")
    try:
        wait_for(client, process)
        yield client
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
def test_triton(triton_server: Any) -> None:
    assert triton_server.get_model_metadata("rows")["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [-1, 16]}
    ]
    for binary in (True, False):
        y = ask(triton_server, "rows", X, "FP32", binary)
        assert np.allclose(y, expected(X, 1), atol=1e-5)
    assert np.array_equal(ask(triton_server, "table", np.array([3]), "INT64", True), TABLE[[3]])
    with pytest.raises(Exception, match=r"400.*expected indices in \[-5, 5\), got 9"):
        ask(triton_server, "table", np.array([9]), "INT64", True)


@pytest.mark.slow
def test_mlserver(tmp_path: Path) -> None:
    pytest.importorskip("mlserver")
    triton = pytest.importorskip("tritonclient.http")
    for name, data in (("rows", model_bytes()), ("table", rows_of_a_table())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.onnx").write_bytes(data)
        settings = {"name": name, "implementation": RUNTIME,
                    "parameters": {"uri": "./model.onnx", "extra": {"target": "cpu"}}}  # fmt: skip
        (tmp_path / name / "model-settings.json").write_text(json.dumps(settings))
    ports = {"http_port": 18471, "grpc_port": 18472, "metrics_port": 18473}
    server = {**ports, "host": "127.0.0.1", "parallel_workers": 0}
    (tmp_path / "settings.json").write_text(json.dumps(server))
    process = subprocess.Popen(
        [Path(sys.executable).parent / "mlserver", "start", "."], cwd=tmp_path,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    client = triton.InferenceServerClient("127.0.0.1:18471")
    try:
        wait_for(client, process)
        meta = client.get_model_metadata("rows")
        assert (meta["platform"], meta["inputs"][0]["shape"]) == ("mgx_mlir", [-1, 16])
        y = ask(client, "rows", X, "FP32", False)
        assert np.allclose(y, expected(X, 1), atol=1e-5)
        with pytest.raises(Exception, match=r"400.*expected indices in \[-5, 5\), got 9"):
            ask(client, "table", np.array([9]), "INT64", False)
    finally:
        process.terminate()
        process.wait(60)
