"""serve: the models of a directory over HTTP, on this machine."""

# ray is an extra, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import importlib.util
import logging
import os
import signal
import sys
import threading
from typing import Any

from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.tools.driver.arguments import Arguments, Option, number, tolerance
from mgx_mlir.tools.driver.options import HELP
from mgx_mlir.tools.driver.progress import say

USAGE = "[OPTION...] DIR"
DESCRIPTION = """
Serves DIR/NAME/VERSION/model.onnx (or model.mxr) by the Open Inference Protocol, version 2, with
Ray Serve: pip install 'mgx-mlir[ray]'. It is ready when all models are compiled and warm. SIGINT
or SIGTERM ends it. docs/serving.md has directories, joined requests, metrics, many machines."""


def replicas(text: str) -> int | tuple[int, int]:
    """Parse `2` or `1:4`. ValueError for anything else."""
    parts = text.split(":")
    if not all(p.isdecimal() and 0 < int(p) < 10_000 for p in parts) or len(parts) > 2:
        raise ValueError("a number from 1 on, or LEAST:MOST")
    if len(parts) == 1:
        return int(parts[0])
    least, most = map(int, parts)
    if least > most:
        raise ValueError("LEAST:MOST")
    return least, most


OPTIONS = (
    Option(("--host",), "address to listen on (default 127.0.0.1)", "NAME"),
    Option(("--port",), "port to listen on (default 8000)", "N", parse=number(1)),
    Option(("--cpu",), "compile for the CPU (default where there is no GPU)"),
    Option(("--gpu",), "compile for the AMD GPU"),
    Option(("--replicas",), "processes that answer, or LEAST:MOST by load (default 1)", "N[:M]",
           parse=replicas),
    Option(("--threads",), "CPU threads of a run", "N", parse=number(1)),
    Option(("--batch-wait",), "milliseconds that a request waits for others (default 5)", "MS",
           parse=tolerance),
    Option(("--queue",), "requests that may wait in a replica (default 64)", "N",
           parse=number(1)),
    Option(("--max-body",), "MiB of a request (default 64)", "N", parse=number(1)),
    Option(("--read-timeout",), "seconds to read a body (default 10)", "S",
           parse=tolerance),
    Option(("--run-timeout",), "seconds to answer (default 60)", "S", parse=tolerance),
    Option(("--metrics-port",), "port of the Prometheus metrics (default: Ray's choice)", "N",
           parse=number(1)),
    HELP,
)  # fmt: skip


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def run(args: Arguments) -> int:
    """Serve until a signal comes."""
    at = args.file
    if at is None:
        raise UsageError("expected a directory of models")
    if importlib.util.find_spec("ray") is None:
        raise UsageError("serve needs Ray", notes=["pip install 'mgx-mlir[ray]'"])
    # start-up: only what the command asks for is loaded
    from mgx_mlir.integrations.v2.messages import Limits
    from mgx_mlir.integrations.v2.models import find_models
    from mgx_mlir.integrations.v2.server import Policy

    entries = find_models(at)
    limits = Limits(body=args.get("--max-body", 64) << 20)
    policy = Policy(
        limits, args.get("--queue", 64), args.get("--read-timeout", 10.0),
        args.get("--run-timeout", 60.0),
    )  # fmt: skip
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    import ray
    from ray import serve

    from mgx_mlir.integrations.ray.deployment import ServeSettings, serve_models

    gpu = "--gpu" in args
    count = args.get("--replicas", 1)
    settings = ServeSettings(
        "gpu" if gpu else "cpu" if "--cpu" in args else None,
        {"threads": args.get("--threads")} if "--threads" in args else {},
        count, args.get("--batch-wait", 5.0) / 1000, policy, num_gpus=1.0 if gpu else 0.0,
    )  # fmt: skip
    host, port = args.get("--host", "127.0.0.1"), args.get("--port", 8000)
    most = count if isinstance(count, int) else count[1]
    how: dict[str, Any] = {}
    if "--metrics-port" in args:
        how["_metrics_export_port"] = args.get("--metrics-port")
    if "RAY_ADDRESS" not in os.environ:
        how |= {"num_cpus": max(os.cpu_count() or 1, most + 1), "include_dashboard": False}
    ended = threading.Event()
    for name in ("ray", "ray.serve"):
        logging.getLogger(name).setLevel(logging.ERROR)
    ray.init(log_to_driver=False, logging_level=logging.ERROR, **how)
    try:
        for each in (signal.SIGINT, signal.SIGTERM):  # now: Ray sets its own when it starts
            signal.signal(each, _interrupt)
        serve_models(at, settings, host=host, port=port)
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda *_: ended.set())
        say(f"Serving: {len(entries)} models at http://{host}:{port}/v2")
        sys.stdout.flush()
        ended.wait()
        return 0
    except RuntimeError as e:
        raise MgxError(f"the service does not start: {str(e).splitlines()[-1]}") from e
    finally:
        serve.shutdown()
        ray.shutdown()
