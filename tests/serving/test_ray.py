"""On Ray: data sets and a service. Slow: `pytest tests/serving -m slow` (docs/serving.md)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mgx_mlir
from tests.serving.conftest import expected, model_bytes, write_models
from tests.support.models import parsed_bytes

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray")

PORT, METRICS = 18431, 18432
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Ray of this machine; its workers have an empty cache, so that compiles can be counted."""
    cache = tmp_path_factory.mktemp("cache")
    env = {"MGX_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    ray.init(
        num_cpus=8, include_dashboard=False, log_to_driver=False, object_store_memory=400 << 20,
        runtime_env={"env_vars": env}, _metrics_export_port=METRICS,
    )  # fmt: skip
    yield
    ray.shutdown()


def compiles() -> int:
    from mgx_mlir.integrations.ray.artefacts import artefacts

    return ray.get(artefacts().compiles.remote())


def test_ten_thousand_images_on_two_actors(cluster: None) -> None:
    from mgx_mlir.integrations.ray import MgxPredictor

    rng = np.random.default_rng(2)
    model = parsed_bytes(
        """(float[n,3,16,16] image) => (float[n,8] y) {
        c = Conv <kernel_shape = [3,3], strides = [2,2]> (image, w) r = Relu (c)
        g = GlobalAveragePool (r) y = Flatten (g) }""",
        {"w": rng.standard_normal((8, 3, 3, 3))},
    )
    images = rng.standard_normal((10_000, 3, 16, 16)).astype(np.float32)
    [alone] = mgx_mlir.compile(model, "cpu", threads=1).run({"image": images})
    before = compiles()
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    made = ray.data.from_numpy([images[i : i + 1250] for i in range(0, 10_000, 1250)])
    result = made.map_batches(
        MgxPredictor,
        fn_constructor_args=[model, "cpu"],
        fn_constructor_kwargs={"threads": 1},
        compute=ray.data.ActorPoolStrategy(size=2),
        batch_size=192,  # 1250 rows are no whole number of batches
    )
    found = np.concatenate([b["y"] for b in result.iter_batches(batch_size=1000)])
    assert found.shape == alone.shape
    assert np.allclose(found, alone, rtol=1e-5, atol=1e-6)
    assert compiles() == before + 1


def test_columns_and_fixed_batches(cluster: None) -> None:
    from mgx_mlir.core.errors import MgxError
    from mgx_mlir.integrations.ray import MgxPredictor

    x = np.random.default_rng(4).standard_normal((11, 16)).astype(np.float32)
    table = [{"id": i, "features": x[i]} for i in range(11)]
    for rows in (4, "n"):
        result = ray.data.from_items(table).map_batches(
            MgxPredictor,
            fn_constructor_args=[model_bytes(1, rows), "cpu"],
            fn_constructor_kwargs={"columns": {"x": "features"}, "keep": ["id"]},
            compute=ray.data.ActorPoolStrategy(size=1),
            batch_size=5,
        )
        by_id = {int(r["id"]): r["y"] for r in result.take_all()}
        assert sorted(by_id) == list(range(11))
        want = expected(x, 1)
        assert all(np.allclose(by_id[i], want[i], atol=1e-5) for i in by_id)
    predictor = MgxPredictor(model_bytes(1, 4), "cpu")
    assert predictor({"x": x[:0]})["y"].shape == (0, 4)
    with pytest.raises(MgxError, match="the columns are a, b"):
        predictor({"a": x, "b": x})
    with pytest.raises(MgxError, match="no such file"):
        MgxPredictor("none.onnx")
    with pytest.raises(MgxError):  # the error of a compile elsewhere is an MgxError here
        MgxPredictor(b"no model")


def test_the_key_of_a_model_with_external_data(tmp_path: Path) -> None:
    import onnx

    from mgx_mlir.core.errors import FileError
    from mgx_mlir.integrations.ray import Artefact

    path = tmp_path / "m.onnx"
    keys: set[str] = set()
    for scale in (1, 2):
        made = onnx.load_model_from_string(model_bytes())
        weights = onnx.numpy_helper.to_array(made.graph.initializer[0]) * np.float32(scale)
        made.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
        (tmp_path / "weights").unlink(missing_ok=True)
        onnx.save(made, path, save_as_external_data=True, location="weights", size_threshold=0)
        keys.add(Artefact.of(path, "cpu", {}).key)
    assert len(keys) == 2
    keys.add(Artefact.of(path, "cpu", {"threads": 1}).key)
    assert len(keys) == 3
    (tmp_path / "weights").unlink()
    with pytest.raises(FileError, match="no such file"):
        _ = Artefact.of(path, "cpu", {}).key


# ---- the service -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from mgx_mlir.integrations.ray import ServeSettings, serve_models
    from mgx_mlir.integrations.v2.front import Policy
    from mgx_mlir.integrations.v2.messages import Limits

    folder = write_models(tmp_path_factory.mktemp("served"))
    policy = Policy(Limits(body=8 << 20), queue=200, read_timeout=2.0, run_timeout=30)
    settings = ServeSettings("cpu", {"threads": 1}, replicas=2, policy=policy, num_cpus=0.5)
    serve_models(folder, settings, port=PORT)
    yield f"127.0.0.1:{PORT}"
    ray.serve.shutdown()


def infer(x: np.ndarray, model: str = "rows", binary: bool = True) -> np.ndarray:
    import tritonclient.http as triton

    client = triton.InferenceServerClient(f"127.0.0.1:{PORT}")
    tensor = triton.InferInput("x", list(x.shape), "FP32")
    tensor.set_data_from_numpy(x, binary_data=binary)
    output = triton.InferRequestedOutput("y", binary_data=binary)
    return client.infer(model, [tensor], outputs=[output]).as_numpy("y")


def test_tritons_client(service: str) -> None:
    import tritonclient.http as triton

    client = triton.InferenceServerClient(service)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("rows", "1")
    assert client.get_model_metadata("rows")["versions"] == ["1", "2"]
    assert client.get_model_config("rows")["max_batch_size"] == 8
    assert len(client.get_model_repository_index()) == 4
    x = np.random.default_rng(6).standard_normal((3, 16)).astype(np.float32)
    for binary in (True, False):
        assert np.allclose(infer(x, binary=binary), expected(x, 2), atol=1e-5)
        assert np.allclose(infer(x, "alone", binary), expected(x, 3), atol=1e-5)
    words = [triton.InferInput(n, [k], "BYTES") for n, k in (("a", 2), ("b", 1))]
    words[0].set_data_from_numpy(np.array(["é", "b"], object))
    words[1].set_data_from_numpy(np.array(["é"], object))
    assert client.infer("words", words).as_numpy("c").tolist() == [True, False]
    zipped = triton.InferInput("x", [3, 16], "FP32")
    zipped.set_data_from_numpy(x)
    found = client.infer("rows", [zipped], request_compression_algorithm="gzip").as_numpy("y")
    assert np.allclose(found, expected(x, 2), atol=1e-5)
    with pytest.raises(triton.InferenceServerException, match="unknown model 'none'"):
        client.infer("none", [zipped])
    with pytest.raises(triton.InferenceServerException, match="expected float_type"):
        infer(x[:, :3])


def _post(path: str, body: bytes, **headers: str) -> tuple[int, str]:
    heads = {k.replace("_", "-"): v for k, v in headers.items()}
    heads.setdefault("content-type", "application/json")
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", body, heads)
    try:
        with urllib.request.urlopen(request, timeout=20) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def _resident() -> int:
    """Bytes that all processes of the cluster hold."""
    import psutil

    mine = psutil.Process()
    total = 0
    for p in psutil.process_iter(["name", "cmdline", "memory_info"]):
        line = " ".join(p.info["cmdline"] or [])
        if "ray::" in line and p.pid != mine.pid and p.info["memory_info"]:
            total += p.info["memory_info"].rss
    return total


def _attack() -> None:
    """Send one round of hostile requests, and check the answers."""
    path = "/v2/models/rows/infer"
    for body, status in ((b"{", 400), (b"[" * 50_000, 400), (b"{}", 400), (b" " * (9 << 20), 413)):
        for _ in range(3):
            got, text = _post(path, body)
            assert got == status
            assert "error" in json.loads(text)
    assert _post("/v2/models/none/infer", b"{}")[0] == 404
    for claim in ("1073741824", "99999999999"):  # a body of 1 GB that does not come
        with socket.create_connection(("127.0.0.1", PORT), 10) as s:
            s.sendall(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {claim}\r\n\r\n{{"
                      .encode())  # fmt: skip
            answer = s.recv(4096)
            assert b" 413 " in answer.splitlines()[0]
    with socket.create_connection(("127.0.0.1", PORT), 10) as s:  # a client that stops
        s.sendall(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{{".encode())
        s.settimeout(15)
        answer = s.recv(4096)
        assert b" 408 " in answer.splitlines()[0]


def test_hostile_requests(service: str) -> None:
    """The first rounds make the buffers of Ray's proxy and of both replicas: 140 MiB in all were
    seen. From then on memory is flat."""
    held: list[int] = []
    for _ in range(6):
        _attack()
        held.append(_resident())
    grown = (held[-1] - held[2]) >> 20
    assert grown < 32, f"{grown} MiB more after three rounds: {[h >> 20 for h in held]}"
    x = np.ones((1, 16), np.float32)
    assert np.allclose(infer(x), expected(x, 2), atol=1e-5)


def test_a_replica_that_is_killed(service: str) -> None:
    """2,000 requests of 8 clients that try again: all answers are right, whatever dies."""
    import psutil

    draws = np.random.default_rng(8).standard_normal((2000, 2, 16)).astype(np.float32)
    wrong: list[int] = []
    retried: list[str] = []
    done: list[int] = []
    killed: list[int] = []

    def work(i: int) -> None:
        for _ in range(60):
            try:
                found = infer(draws[i])
                break
            except Exception as e:
                retried.append(str(e)[:80])
                time.sleep(0.5)
        else:
            wrong.append(i)
            return
        if not np.allclose(found, expected(draws[i], 2), atol=1e-5):
            wrong.append(i)
        done.append(i)

    def kill() -> None:
        while len(done) < 600:
            time.sleep(0.01)
        for p in psutil.process_iter(["cmdline"]):
            if " ".join(p.info["cmdline"] or []).startswith("ray::ServeReplica:mgx"):
                killed.append(p.pid)
                os.kill(p.pid, signal.SIGKILL)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(work, range(2000)))
    killer.join(60)
    assert len(killed) == 1
    assert wrong == []
    assert len(set(done)) == 2000


def test_metrics(service: str) -> None:
    x = np.ones((2, 16), np.float32)
    infer(x)
    wanted = ["mgx_requests", "mgx_request_seconds_bucket", "mgx_batch_size_bucket",
              "mgx_compile_seconds", "mgx_cache_hits"]  # fmt: skip
    text = ""
    for _ in range(40):
        with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=20) as f:
            text = f.read().decode()
        if all(f"ray_{n}" in text for n in wanted[:4]):
            break
        time.sleep(1)
    for name in wanted[:4]:
        assert f"ray_{name}" in text, name
    assert 'model="rows"' in text


def test_the_command_on_a_cluster(tmp_path: Path) -> None:
    folder = write_models(tmp_path / "models")
    port, log = PORT + 10, tmp_path / "log"
    env = {**os.environ, "RAY_ADDRESS": "local"}  # a cluster of its own
    process = subprocess.Popen(
        [sys.executable, "-m", "mgx_mlir.tools.driver", "serve", folder, "--cpu", "--threads", "1",
         "--port", str(port), "--max-body", "1"],
        cwd=ROOT, env=env, stdout=log.open("w"), stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        for _ in range(300):
            try:
                url = f"http://127.0.0.1:{port}/v2/health/ready"
                with urllib.request.urlopen(url, timeout=5) as found:
                    if found.status == 200:
                        break
            except OSError:
                assert process.poll() is None, log.read_text()
                time.sleep(1)
        body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 16],
                                       "data": [1.0] * 16}]}).encode()  # fmt: skip
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v2/models/alone/infer", body,
                                         {"content-type": "application/json"})  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as found:
            [y] = json.loads(found.read())["outputs"]
        assert np.allclose(y["data"], expected(np.ones((1, 16)), 3)[0], atol=1e-5)
        for _ in range(120):  # the first answer comes a moment before the state "running"
            if "Serving: " in log.read_text():
                break
            time.sleep(0.5)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(90)
    said = log.read_text()
    assert process.returncode == 0, said
    assert f"Serving: 4 models at http://127.0.0.1:{port}/v2" in said


def test_the_pages_snippets(cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/serving.md").read_text()
    every = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    blocks = [b for b in every if re.search(r"\bMgxPredictor\b|\bserve_models\b", b)]
    assert len(blocks) == 2
    write_models(tmp_path / "models")
    (tmp_path / "m.onnx").write_bytes(model_bytes())
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(7).standard_normal((100, 16)).astype(np.float32)
    names: dict[str, Any] = {"images": x}
    exec(blocks[0], names)
    assert np.allclose(np.sort(np.array(names["scores"]), 0), np.sort(expected(x, 1), 0), atol=1e-5)
    exec(blocks[1].replace("8000", str(PORT)), names)
    assert np.allclose(infer(x[:3], "alone"), expected(x[:3], 3), atol=1e-5)
    ray.serve.shutdown()
