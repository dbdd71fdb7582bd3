"""serve: the models of a directory over HTTP, on this machine."""

# ray is an extra, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import signal
import sys
import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.core.extras import install_line
from mgx_mlir.tools.driver.arguments import Arguments, Option, number, tolerance
from mgx_mlir.tools.driver.options import HELP
from mgx_mlir.tools.driver.progress import say
from mgx_mlir.tools.driver.text_model import SERVING, loaded

if TYPE_CHECKING:
    from mgx_mlir.integrations.serve.metrics import Metrics
    from mgx_mlir.integrations.serve.service import Server
    from mgx_mlir.integrations.v2.front import Policy

USAGE = "[OPTION...] DIR | --text MODEL"
DESCRIPTION = """
Serves DIR/NAME/VERSION/model.onnx (or model.mxr) by the Open Inference Protocol, version 2; it
needs the packages of the extra `serve`. It is ready when all models are compiled and warm. SIGINT
or SIGTERM ends it. With RAY_ADDRESS in the environment it is Ray Serve on that cluster. With --text
it answers /v1/completions and /v1/chat/completions as OpenAI's clients ask. docs/serving.md has
directories, joined requests, limits, metrics, many machines."""


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
    Option(("--port",), "port to listen on (default 8000; 0: a free one)", "N", parse=number(0)),
    Option(("--cpu",), "compile for the CPU (default where there is no GPU)"),
    Option(("--gpu",), "compile for the AMD GPU"),
    Option(("--replicas",), "worker processes, or LEAST:MOST by load (default 1)", "N[:M]",
           parse=replicas),
    Option(("--threads",), "CPU threads of a run", "N", parse=number(1)),
    Option(("--batch-wait",), "milliseconds that a request waits for others (default 5)", "MS",
           parse=tolerance),
    Option(("--queue",), "requests that may wait or run at a time (default 64)", "N",
           parse=number(1)),
    Option(("--max-body",), "MiB of a request (default 64)", "N", parse=number(1)),
    Option(("--max-held",), "MiB of all requests together, and of all answers that are not read "
           "(default 512)", "N", parse=number(1)),
    Option(("--read-timeout",), "seconds to read a body (default 10)", "S",
           parse=tolerance),
    Option(("--wait-timeout",), "seconds until a run begins (default 120)", "S", parse=tolerance),
    Option(("--run-timeout",), "seconds of a run, whose process is ended then (default 60), or of "
           "an answer of --text (default 600)", "S", parse=tolerance),
    Option(("--long-runs",), ("concurrent runs of more than a second (default: the number of"
                             " replicas)"), "N",
           parse=number(1)),
    Option(("--run-memory",), "MiB that a process may take for its runs (default: its share of "
           "the machine's)", "N", parse=number(1)),
    Option(("--connections",), "connections at a time (default 1024)", "N", parse=number(1)),
    Option(("--allow-origin",), "web page whose scripts may send requests, such as "
           "https://a.example; * are all", "ORIGIN", "repeat"),
    Option(("--allow-host",), "name of this server, where it has dots, that requests may use",
           "NAME", "repeat"),
    Option(("--metrics-port",), "port for /metrics alone", "N", parse=number(1)),
    *SERVING,
    HELP,
)  # fmt: skip
# options of worker processes, which a language model has none of
_OF_WORKERS = ("--replicas", "--batch-wait", "--long-runs", "--run-memory")
_TEXT_RUN = 600.0  # seconds of an answer at most, where no option states them


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def run(args: Arguments) -> int:
    """Serve until a signal comes."""
    at = args.file
    if ("--text" in args) == (at is not None):
        raise UsageError("expected either a directory of models or --text MODEL")
    wrong = _OF_WORKERS if at is None else [o.key for o in SERVING]
    if given := [flag for flag in wrong if flag in args]:
        names = " and ".join(given)
        raise UsageError(
            f"{names}: not an option of --text" if at is None else f"{names} expected --text"
        )
    on_ray = "RAY_ADDRESS" in os.environ and at is not None
    missing = [m for m in (("ray",) if on_ray else ("h11", "prometheus_client"))
               if importlib.util.find_spec(m) is None]  # fmt: skip
    if missing:
        extra = "ray" if on_ray else "serve"
        raise UsageError(f"serve needs {' and '.join(missing)}", notes=[install_line(extra)])
    if at is None:
        return _text(args)
    return _on_ray(args, at) if on_ray else _here(args, at)


def _text(args: Arguments) -> int:
    """Serve a language model with this process."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.integrations.openai.server import TextServer
    from mgx_mlir.integrations.serve.metrics import TextMetrics

    path = args.get("--text")
    name = args.get("--model-name") or os.path.basename(os.path.abspath(path)).removesuffix(".gguf")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        model = loaded(args, path, args.get("--slots", 8))
        metrics = TextMetrics()
        policy = replace(_policy(args), run_timeout=args.get("--run-timeout", _TEXT_RUN))
        server = TextServer(model, name, policy, metrics)
        _serve(args, server, metrics, policy, name, "/v1")
    except KeyboardInterrupt:  # before it serves
        return 0
    return 0


def _policy(args: Arguments) -> Policy:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.integrations.v2.front import Policy
    from mgx_mlir.integrations.v2.messages import Limits
    from mgx_mlir.integrations.v2.origins import Origins

    body = args.get("--max-body", 64) << 20
    origins = Origins(
        [o.lower().rstrip("/") for o in args.get("--allow-origin", [])],
        [*(h.lower() for h in args.get("--allow-host", [])),
         args.get("--host", "127.0.0.1").lower()],
    )  # fmt: skip
    return Policy(
        Limits(body=body), args.get("--queue", 64), args.get("--read-timeout", 10.0),
        args.get("--run-timeout", 60.0), args.get("--wait-timeout", 120.0),
        max(_held(args), body), origins,
    )  # fmt: skip


def _held(args: Arguments) -> int:
    return args.get("--max-held", 512) << 20


def _target(args: Arguments) -> tuple[str | None, dict[str, Any]]:
    target = "gpu" if "--gpu" in args else "cpu" if "--cpu" in args else None
    return target, {"threads": args.get("--threads")} if "--threads" in args else {}


def _here(args: Arguments, at: str) -> int:
    """Serve with processes of this machine."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.integrations.serve.metrics import Metrics
    from mgx_mlir.integrations.serve.pool import PoolSize
    from mgx_mlir.integrations.serve.prepared import prepared
    from mgx_mlir.integrations.serve.service import pool_server

    count = args.get("--replicas", 1)
    least, most = (count, count) if isinstance(count, int) else count
    target, options = _target(args)
    memory = args.get("--run-memory")
    size = PoolSize(
        least, most, args.get("--long-runs", least),
        # each process takes memory of a GPU for its weights
        spare=0 if target == "gpu" else 4, batch_wait=args.get("--batch-wait", 5.0) / 1000,
    )  # fmt: skip
    signal.signal(signal.SIGTERM, _interrupt)
    with ExitStack() as ends:
        try:
            rows = prepared(at, target, options, ends)
            metrics, policy = Metrics(), _policy(args)
            server = pool_server(
                rows, policy, size, None if memory is None else memory << 20, metrics
            )
            _serve(args, server, metrics, policy, f"{len(rows)} models", "/v2")
        except KeyboardInterrupt:  # before it serves
            return 0
    return 0


def _serve(
    args: Arguments, server: Server, metrics: Metrics, policy: Policy, what: str, path: str
) -> None:
    """Serve until a signal comes; what, path: of the line that says that it is ready."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.integrations.serve.http import HttpLimits
    from mgx_mlir.integrations.serve.service import ServiceSettings, serve

    host, read = args.get("--host", "127.0.0.1"), args.get("--read-timeout", 10.0)
    settings = ServiceSettings(
        host, args.get("--port", 8000), policy,
        HttpLimits(args.get("--connections", 1024), head=read, write=read, unread=_held(args)),
        args.get("--metrics-port"),
    )  # fmt: skip

    def ready(port: int) -> None:
        with contextlib.suppress(BrokenPipeError):  # stdout is closed: clients are still served
            say(f"Serving: {what} at http://{_shown(host)}:{port}{path}")

    async def main() -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        work = asyncio.ensure_future(serve(server, metrics, settings, ready=ready, ended=ended))
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, ended.set)
        stop = asyncio.ensure_future(ended.wait())
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        await work

    asyncio.run(main())


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _on_ray(args: Arguments, at: str) -> int:
    """Serve on the cluster that RAY_ADDRESS names."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.integrations.v2.models import find_models

    entries = find_models(at)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported
    import ray
    from ray import serve

    from mgx_mlir.integrations.ray.deployment import ServeSettings, serve_models

    target, options = _target(args)
    settings = ServeSettings(
        target, options, args.get("--replicas", 1), args.get("--batch-wait", 5.0) / 1000,
        _policy(args), num_gpus=1.0 if "--gpu" in args else 0.0,
    )  # fmt: skip
    host, port = args.get("--host", "127.0.0.1"), args.get("--port", 8000)
    how: dict[str, Any] = {}
    if "--metrics-port" in args:
        how["_metrics_export_port"] = args.get("--metrics-port")
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
