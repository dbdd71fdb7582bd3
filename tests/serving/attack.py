"""An hour of attacks on `mgx-driver serve`, beside clients whose requests must all be right.

    python -m tests.serving.attack 3600

Slow connections, runs without end, hostile and mutated HTTP, large bodies, answers that nobody
reads, clients that leave, workers that are killed.
It prints a line a minute, and ends with 1 where a good request was lost, a process broke, or memory
grew.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tests.serving.hostile import (
    ATTACKS,
    BODY,
    CHUNKED,
    PATH,
    X,
    binary_request,
    is_right,
    request,
)
from tests.serving.service import JSON, Service, endless_body, rows_body, write_all

_GROWTH = 64 << 20  # bytes that the service may hold beyond what it held after the first minute


class Attack:
    """Clients of all kinds, each in threads of its own; `found` counts what they got."""

    def __init__(self, service: Service, seconds: float) -> None:
        self.service, self.found = service, Counter[str]()
        self.seconds_of_good: list[float] = []
        self._stop = time.monotonic() + seconds
        self._lock = threading.Lock()

    def note(self, what: str) -> None:
        with self._lock:
            self.found[what] += 1

    def _is_over(self) -> bool:
        return time.monotonic() > self._stop

    def stall(self, i: int) -> None:
        """Begin a request, and never end it: the service ends the connection."""
        begins = [b"", b"POST " + PATH, request()[:-5], request(CHUNKED, b"5\r\nab", length=False)]
        while not self._is_over():
            with contextlib.suppress(OSError):
                self.service.talk(begins[i % 4], timeout=20)

    def endless(self, _: int) -> None:
        """Ask for runs that do not end."""
        while not self._is_over():
            status, _ = self.service.ask("/v2/models/endless/infer", endless_body(), timeout=300)
            self.note(f"endless {status}")

    def good(self, i: int) -> None:
        """Ask, once for each answer, on one connection or on a new one each time."""
        own = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=120)
        draw = np.random.default_rng(i)
        with contextlib.closing(own):
            while not self._is_over():
                if i % 2:
                    own.close()
                x = draw.standard_normal((1 + i % 3, 16)).astype(np.float32)
                begin = time.monotonic()
                try:
                    own.request("POST", PATH.decode(), rows_body(x), JSON)
                    answer = own.getresponse()
                    data = answer.read()
                except OSError as e:
                    own.close()
                    self.note(f"lost: {type(e).__name__}")
                    continue
                self.seconds_of_good.append(time.monotonic() - begin)
                right = is_right(answer.status, data, x)
                self.note("right" if right else f"lost: {answer.status} {data[:200]!r}")
                time.sleep(0.01)

    def hostile(self, i: int) -> None:
        """Send requests that are wrong, as they stand or with bytes changed."""
        draw = random.Random(i)
        cases = [data for data, _ in ATTACKS.values() if len(data) < 1 << 17]
        while not self._is_over():
            data = bytearray(draw.choice(cases))
            for _ in range(draw.choice([0, 1, 3, 20])):
                at = draw.randrange(len(data))
                data[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
            with contextlib.suppress(OSError):
                answer = self.service.talk(bytes(data), half_close=draw.random() < 0.8, timeout=5)
                self.note(f"hostile {answer[9:12].decode('latin-1')}")

    def large(self, _: int) -> None:
        """Send bodies at the limit, and beyond it."""
        while not self._is_over():
            for size in (30 << 20, 50 << 20):
                with contextlib.suppress(OSError):
                    status, _ = self.service.ask(PATH.decode(), b" " * size, timeout=60)
                    self.note(f"large {status}")
            time.sleep(1)

    def unread(self, _: int) -> None:
        """Ask for answers of 10 MB, and read nothing of them."""
        data = binary_request(600_000)
        while not self._is_over():
            with contextlib.suppress(OSError), self._connected() as own:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                own.sendall(data)
                time.sleep(2)

    def leave(self, i: int) -> None:
        """Close or reset connections amid a head, a body, a run that does not end, an answer."""
        draw = random.Random(i)
        endless = request(body=endless_body()).replace(b"/rows/", b"/endless/")
        while not self._is_over():
            with contextlib.suppress(OSError), self._connected() as own:
                data = draw.choice([request(), endless])
                own.sendall(data[: draw.choice([20, len(data) - 20, len(data)])])
                time.sleep(draw.uniform(0, 0.3))
                if draw.random() < 0.5:
                    own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.note("left")
            time.sleep(0.5)

    def _connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.service.port), 20)

    def kill(self, i: int) -> None:
        """Kill a worker now and then, and at times the process that forks them."""
        draw = random.Random(i)
        while not self._is_over():
            time.sleep(draw.uniform(2, 8))
            _, *rest = self.service.processes()
            victims = rest[:1] if draw.random() < 0.02 else rest[1:]
            if victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(victims), signal.SIGKILL)
                self.note("killed")

    def run(self, kinds: Sequence[tuple[Callable[[int], None], int]]) -> None:
        """Run so many threads of each kind until the time is over."""
        threads = [threading.Thread(target=f, args=(i,), daemon=True)
                   for f, n in kinds for i in range(n)]  # fmt: skip
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    @property
    def lost(self) -> dict[str, int]:
        """Wrong answers that good clients got."""
        return {k: n for k, n in self.found.items() if k.startswith("lost")}


def main(seconds: float) -> int:
    with tempfile.TemporaryDirectory() as at:
        log = Path(at, "log")
        service = Service(
            write_all(Path(at, "models")), log, "--run-timeout", "5", "--read-timeout", "3",
            "--max-body", "40", "--max-held", "120",
        )  # fmt: skip
        end, held, lost = time.monotonic() + seconds, list[int](), 0
        while (rest := end - time.monotonic()) > 0:
            attack = Attack(service, min(60.0, rest))
            attack.run([(attack.stall, 400), (attack.endless, 12), (attack.good, 8),
                        (attack.hostile, 4), (attack.large, 2), (attack.kill, 1),
                        (attack.unread, 4), (attack.leave, 2)])  # fmt: skip
            time.sleep(6)
            held.append(service.resident())
            lost += sum(attack.lost.values())
            took = np.quantile(attack.seconds_of_good, [0.5, 0.99, 1.0])
            print(dict(sorted(attack.found.items())), f"{held[-1] >> 20} MiB, p50, p99, max:",
                  took.round(3).tolist(), flush=True)  # fmt: skip
        good = is_right(*service.ask(PATH.decode(), BODY))
        status, text = service.end(), log.read_text()
        print(f"lost {lost}, answers at the end: {good}, status {status}\n{text}")
        grown = held[-1] - held[0]
        return 0 if good and not lost and not status and grown < _GROWTH and len(X) else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
