"""Metrics of a replica for Ray, which Prometheus reads on each node."""

# ray is an optional dependency
# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

from ray.util.metrics import Counter, Gauge, Histogram

_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]
_ROWS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]


class Metrics:
    """Counts and times of requests, batches, compiles and cache hits."""

    def __init__(self) -> None:
        model, status = ("model",), ("model", "status")
        self._requests: Any = Counter("mgx_requests", "Requests for inference.", status)
        self._seconds: Any = Histogram(
            "mgx_request_seconds", "Seconds from a request to its answer.", _SECONDS, model
        )
        self._rows: Any = Histogram("mgx_batch_size", "Rows of a run.", _ROWS, model)
        self._compile: Any = Gauge("mgx_compile_seconds", "Seconds of a model's compile.", model)
        self._hits: Any = Counter("mgx_cache_hits", "Models that were not compiled.", model)
        self._timeouts: Any = Counter(
            "mgx_run_timeouts", "Runs that were ended at the time limit.", model
        )
        self._replaced: Any = Counter(
            "mgx_workers_replaced", "Workers that were ended, by reason.", ("reason",)
        )

    def request(self, model: str, status: int, seconds: float) -> None:
        """Record a request that was answered."""
        self._requests.inc(1, {"model": model, "status": str(status)})
        self._seconds.observe(seconds, {"model": model})

    def run(self, model: str, rows: int) -> None:
        """Record a run and its rows."""
        self._rows.observe(rows, {"model": model})

    def timeout(self, model: str) -> None:
        """Record a run that was ended at the time limit."""
        self._timeouts.inc(1, {"model": model})

    def replaced(self, why: str) -> None:
        """Record a worker that was ended."""
        self._replaced.inc(1, {"reason": why})

    def compiled(self, model: str, seconds: float | None) -> None:
        """Record a model that is ready, and its compile seconds; None: it was compiled before."""
        if seconds is None:
            self._hits.inc(1, {"model": model})
        self._compile.set(seconds or 0.0, {"model": model})
