"""Workers of test_pool.py: a body says whether to answer, to sleep, or to crash."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from mgx_mlir.runtime.workers import receive, send


def prepare(setup: Mapping[str, Any]) -> Callable[[socket.socket], None]:
    def serve(own: socket.socket) -> None:
        while (message := receive(own)) is not None:
            bodies = [bytes(b) for b in message[1]]
            for body in bodies:
                if body == b"crash":
                    os.abort()
                if body.startswith(b"sleep"):
                    time.sleep(float(body[5:]))
            heads = [{"status": 200, "headers": {}} for _ in bodies]
            send(own, {"answers": heads, "rows": [len(bodies)], "full": False}, bodies)

    return serve
