"""The protocol's server over a pool of workers: it reads bodies, workers parse and run them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mgx_mlir.core import freed_memory
from mgx_mlir.integrations.serve.pool import Pool, PoolSize
from mgx_mlir.integrations.serve.prepared import loaded
from mgx_mlir.integrations.serve.worker import HANDLER
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Policy, Response
from mgx_mlir.integrations.v2.models import Models, ServedModel
from mgx_mlir.integrations.v2.server import V2Server
from mgx_mlir.runtime.workers import Workers

_SHARE = 0.8  # share of the machine's memory, for all workers
# bytes of a body or an answer, from which on freed memory is returned to the system
_LARGE = 1 << 20


class PoolServer(V2Server):
    """A server whose requests are parsed and run by the workers of a pool."""

    def __init__(self, models: Models, pool: Pool, policy: Policy, metrics: Any) -> None:
        super().__init__(models, _nowhere, policy, metrics)
        self.pool, self._answer = pool, 0

    @classmethod
    def of(
        cls, rows: Sequence[Mapping[str, Any]], policy: Policy, size: PoolSize,
        memory: int | None, metrics: Any,
    ) -> PoolServer:  # fmt: skip
        """Return a server of prepared models, whose pool is not open yet.

        memory: bytes that a worker may allocate itself. metrics: observer of requests and runs.
        """
        setup = {"models": list(rows), "limits": asdict(policy.limits), "memory": memory}
        pool = Pool(lambda: Workers(HANDLER, setup), policy, size, metrics)
        return cls(Models(loaded(rows)), pool, policy, metrics)

    async def answered(
        self, model: ServedModel, headers: Mapping[str, str], data: bytes
    ) -> Response:
        """Return a worker's answer."""
        answer = await self.pool.answer(model, headers, data)
        self._answer = max(self._answer, len(answer.body))
        return answer

    async def open(self) -> None:
        """Start the workers. Errors: MgxError."""
        await self.pool.open()

    async def close(self) -> None:
        """End the workers; running requests are answered with 503."""
        await self.pool.close()

    def counts(self) -> Mapping[str, int]:
        """Return the counts of workers, and of waiting requests."""
        return self.pool.counts()

    def health(self, what: str) -> str:
        """Return why the workers are not "live" or "ready", "" if they are."""
        return self.pool.trouble(what)

    def trim(self, unread: int = 0) -> None:
        """Return memory of large bodies to the system, once none is held.

        unread: bytes of answers that clients have not read.
        """
        if self.room.held or unread or max(self.room.largest, self._answer) <= _LARGE:
            return
        self.room.largest = self._answer = 0
        freed_memory.give_back()


async def _nowhere(call: object) -> Any:
    raise V2Error("calls run in workers", 500)


def memory_share(workers: int) -> int | None:
    """Return the bytes that each worker may take, None if the machine's memory is unknown."""
    return int(_SHARE * machine_memory()) // workers or None


def machine_memory() -> int:
    """Return the bytes of memory that this process may use, 0 if unknown."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError, ValueError):  # limit of a container; "max" without one
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found, default=0)
