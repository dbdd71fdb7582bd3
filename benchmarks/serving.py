"""Times a service on this machine: p50 and p99 of requests, with and without joining them.

    pip install '.[ray]' 'tritonclient[http]'
    python benchmarks/serving.py --requests 2000 --clients 16

One replica, one thread; a transformer-sized stack of products of one row a request. Clients and
service share this machine's processors, so that the ratio says more than the times.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ["PYTHONPATH"] = str(ROOT)

WIDTH, LAYERS = 1024, 8


def write_models(folder: Path) -> None:
    """The same stack of products twice: `joined` and `alone`."""
    rng = np.random.default_rng(0)
    nodes, weights = [], []
    for i in range(LAYERS):
        w = (rng.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32)
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [f"x{i}" if i else "x", f"w{i}"], [f"p{i}"]))
        last = "y" if i == LAYERS - 1 else f"x{i + 1}"
        nodes.append(helper.make_node("Tanh", [f"p{i}"], [last]))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", WIDTH]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", [ends[0]], [ends[1]], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    for name in ("joined", "alone"):
        (folder / name / "1").mkdir(parents=True)
        onnx.save(model, folder / name / "1" / "model.onnx")
    (folder / "joined" / "config.json").write_text(json.dumps({"max_batch_size": 16}))


def measure(port: int, model: str, requests: int, clients: int) -> list[float]:
    """Seconds of each request, from clients that send one after another."""
    import tritonclient.http as triton

    found: list[float] = []
    rows = np.random.default_rng(1).standard_normal((1, WIDTH)).astype(np.float32)

    def work() -> None:
        client = triton.InferenceServerClient(f"127.0.0.1:{port}")
        tensor = triton.InferInput("x", [1, WIDTH], "FP32")
        tensor.set_data_from_numpy(rows)
        for _ in range(requests // clients):
            start = time.perf_counter()
            client.infer(model, [tensor])
            found.append(time.perf_counter() - start)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--port", type=int, default=18771)
    args = parser.parse_args()
    import ray

    from mgx_mlir.integrations.ray import ServeSettings, serve_models

    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
        serve_models(folder, ServeSettings("cpu", {"threads": 1}), port=args.port)
        for model in ("joined", "alone"):
            measure(args.port, model, 4 * args.clients, args.clients)
        rounds: dict[str, list[float]] = {"joined": [], "alone": []}
        took: dict[str, float] = {"joined": 0.0, "alone": 0.0}
        for _ in range(4):
            for model, times in rounds.items():
                start = time.perf_counter()
                times += measure(args.port, model, args.requests // 4, args.clients)
                took[model] += time.perf_counter() - start
        for model, times in rounds.items():
            p50, p99 = np.percentile(np.array(times) * 1000, [50, 99])
            rate = len(times) / took[model]
            print(
                f"{model:7} {len(times)} requests, p50 {p50:.1f} ms, p99 {p99:.1f} ms, {rate:.0f}/s"
            )
        ray.serve.shutdown()
        ray.shutdown()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
