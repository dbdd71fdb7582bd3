"""A language model on two Ray nodes. Slow: `pytest tests/serving -m slow` (docs/serving.md)."""

# packages that need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import http.client
import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir.text import Sampling, TextModel
from tests.serving.test_openai import END, expected
from tests.text.fake import Fake, Tokenizer

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray")

PORT = 18451
ROOT = Path(__file__).resolve().parents[2]
PROMPTS = ["AAA", "AAB", "BAC", "CCC", "DEF", "GHI", "JKL", "MNO"]


class Slow(Fake):
    """A decoder whose step takes 20 ms."""

    def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> np.ndarray:
        time.sleep(0.02)
        return super().decode(tokens, starts)


def slow_model(_: str) -> TextModel:
    return TextModel(Tokenizer(), Slow(8, 512), {}, frozenset([END]))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def service() -> Iterator[None]:
    from ray.cluster_utils import Cluster

    from mgx_mlir.integrations.ray.text import TextSettings, serve_text

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "include_dashboard": False,
                        "object_store_memory": 200 << 20},
    )  # fmt: skip
    cluster.add_node(num_cpus=1, object_store_memory=200 << 20)
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    ray.init(address=cluster.address, log_to_driver=False,
             runtime_env={"env_vars": {"PYTHONPATH": paths}})  # fmt: skip
    serve_text("none", TextSettings("fake", slow_model, replicas=2), port=PORT)
    yield
    ray.serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


def asked(prompt: str, seed: int, stream: bool) -> str:
    """The text of one answer of 100 tokens at most."""
    own = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
    row = {"prompt": prompt, "max_tokens": 100, "seed": seed, "temperature": 0.8, "stream": stream}
    own.request("POST", "/v1/completions", json.dumps(row), {"content-type": "application/json"})
    found = own.getresponse()
    data = found.read()
    assert found.status == 200, data
    if not stream:
        return json.loads(data)["choices"][0]["text"]
    rows = [r for r in data.decode().split("\n\n") if r.startswith("data: {")]
    assert data.endswith(b"data: [DONE]\n\n")
    return "".join(json.loads(r[6:])["choices"][0]["text"] for r in rows)


def replicas() -> list[int]:
    """The processes of replicas, all of which this test began."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                line = (each / "cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(b"ray::ServeReplica:text:replica"):
                found.append(int(each.name))
    return found


def test_a_killed_replica_loses_no_request(service: None) -> None:
    assert len(replicas()) == 2
    with ThreadPoolExecutor(16) as pool:
        jobs: list[Any] = [
            pool.submit(asked, prompt, seed, seed % 2 == 0)
            for seed in range(2) for prompt in PROMPTS
        ]  # fmt: skip
        time.sleep(0.8)
        os.kill(replicas()[0], signal.SIGKILL)
        texts = [job.result(120) for job in jobs]
    wanted = [expected(prompt, 100, Sampling(0.8, seed=seed))
              for seed in range(2) for prompt in PROMPTS]  # fmt: skip
    assert texts == wanted
    assert max(map(len, texts)) > 40  # long enough to be cut


def test_errors_and_models(service: None) -> None:
    own = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    own.request("GET", "/v1/models")
    assert json.loads(own.getresponse().read())["data"][0]["id"] == "fake"
    own.request("POST", "/v1/completions", "{", {"content-type": "application/json"})
    found = own.getresponse()
    assert found.status == 400
    assert json.loads(found.read())["error"]["type"] == "invalid_request_error"
