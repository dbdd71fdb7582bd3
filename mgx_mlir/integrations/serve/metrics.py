"""Metrics of the server for Prometheus: requests, runs, workers that were replaced, connections."""

# prometheus_client is an optional dependency
# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0]
_ROWS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]
_REASONS = ("timeout", "long", "left", "crash", "memory")


class Metrics:
    """Counters of one server; `text` returns them in Prometheus's format."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        make: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "mgx_requests", "Requests for inference.", ["model", "status"], **make
        )
        self._seconds = Histogram(
            "mgx_request_seconds", "Seconds from a request to its answer.", ["model"],
            buckets=_SECONDS, **make,
        )  # fmt: skip
        self._rows = Histogram("mgx_batch_size", "Rows of a run.", ["model"], buckets=_ROWS, **make)
        self._compile = Gauge(
            "mgx_compile_seconds", "Seconds of a model's compile.", ["model"], **make
        )
        self._hits = Counter("mgx_cache_hits", "Models that were not compiled.", ["model"], **make)
        self._timeouts = Counter(
            "mgx_run_timeouts", "Runs that were ended at the time limit.", ["model"], **make
        )
        self._replaced = Counter(
            "mgx_workers_replaced", "Workers that were ended, by reason.", ["reason"], **make
        )
        for reason in _REASONS:
            self._replaced.labels(reason)
        self._now = Gauge("mgx_now", "Workers, requests, connections, bytes.", ["what"], **make)

    def request(self, model: str, status: int, seconds: float) -> None:
        """Record a request that was answered."""
        self._requests.labels(model, str(status)).inc()
        self._seconds.labels(model).observe(seconds)

    def run(self, model: str, rows: int) -> None:
        """Record a run and its rows."""
        self._rows.labels(model).observe(rows)

    def timeout(self, model: str) -> None:
        """Record a run that was ended at the time limit."""
        self._timeouts.labels(model).inc()

    def replaced(self, why: str) -> None:
        """Record a worker that was ended."""
        self._replaced.labels(why).inc()

    def compiled(self, model: str, seconds: float | None) -> None:
        """Record a model that is ready, and its compile seconds; None: it was compiled before."""
        if seconds is None:
            self._hits.labels(model).inc()
        self._compile.labels(model).set(seconds or 0.0)

    def now(self, what: str, count: Callable[[], float]) -> None:
        """Register a function that Prometheus reads a number from."""
        self._now.labels(what).set_function(count)

    def text(self) -> bytes:
        """Return all numbers in Prometheus's text format."""
        return generate_latest(self._registry)


class TextMetrics(Metrics):
    """Counters of a server of text generation."""

    def __init__(self) -> None:
        super().__init__()
        make: dict[str, Any] = {"registry": self._registry}
        self._first = Histogram(
            "mgx_first_token_seconds", "Seconds from a request to its first token.", ["model"],
            buckets=_SECONDS, **make,
        )  # fmt: skip
        self._tokens = Counter(
            "mgx_tokens", "Tokens of prompts, of prompts found in the cache, of answers.",
            ["model", "kind"], **make,
        )  # fmt: skip

    def begun(self, model: str, seconds: float) -> None:
        """Record the seconds to the first token of an answer."""
        self._first.labels(model).observe(seconds)

    def tokens(self, model: str, prompt: int, cached: int, made: int) -> None:
        """Record the tokens of a request that has ended."""
        for kind, count in (("prompt", prompt), ("cached", cached), ("answer", made)):
            self._tokens.labels(model, kind).inc(count)
