"""`mgx-driver serve`: attacks on its HTTP, runs without end, workers that are killed."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.serving.conftest import expected
from tests.serving.service import JSON, Service, endless_body, rows_body, write_all

pytest.importorskip("h11")
pytest.importorskip("prometheus_client")

PATH = b"/v2/models/rows/infer"
X = np.random.default_rng(3).standard_normal((2, 16)).astype(np.float32)
BODY = rows_body(X)
RUN_LIMIT = 3  # seconds


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    at = tmp_path_factory.mktemp("service")
    found = Service(
        write_all(at / "models"), at / "log", "--run-timeout", str(RUN_LIMIT), "--read-timeout",
        "2", "--max-body", "40", "--connections", "450",
    )  # fmt: skip
    yield found
    try:
        assert found.end() == 0, found.log.read_text()
        assert "Traceback" not in found.log.read_text()
    finally:
        found.process.kill()


def is_right(status: int, body: bytes, x: np.ndarray = X) -> bool:
    """Whether an answer is that of model `rows`."""
    if status != 200:
        return False
    [y] = json.loads(body)["outputs"]
    return np.allclose(np.reshape(y["data"], (-1, 4)), expected(x, 2), atol=1e-5)


def request(head: bytes = b"", body: bytes = BODY, *, length: bool = True) -> bytes:
    """A request with more headers, each with its end of line."""
    own = b"Content-Length: %d\r\n" % len(body) if length else b""
    begin = b"POST " + PATH + b" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    return begin + own + head + b"\r\n" + body


def chunked(body: bytes, size: int) -> bytes:
    """A body in chunks."""
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


CHUNKED = b"Transfer-Encoding: chunked\r\nConnection: close\r\n"
LAST = b"Connection: close\r\n"
ATTACKS: dict[str, tuple[bytes, int]] = {
    "no HTTP": (b"hello\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "both lengths": (request(b"Transfer-Encoding: chunked\r\n", chunked(BODY, 50)), 400),
    "two lengths": (request(b"Content-Length: 5\r\n"), 400),
    "two lengths in one": (request(b"Content-Length: 5, 6\r\n", length=False), 400),
    "a negative length": (request(b"Content-Length: -5\r\n", length=False), 400),
    "a length with a sign": (request(b"Content-Length: +5\r\n", length=False), 400),
    "a length with a gap": (request(b"Content-Length: 1 0\r\n", length=False), 400),
    "a huge length": (request(b"Content-Length: " + b"9" * 18 + b"\r\n", length=False), 413),
    "a length of 200 digits": (
        request(b"Content-Length: " + b"9" * 200 + b"\r\n", length=False), 400,
    ),
    "an unknown coding": (request(b"Transfer-Encoding: gzip\r\n", length=False), 501),
    "a coding that ends otherwise": (
        request(b"Transfer-Encoding: chunked, identity\r\n", length=False), 501,
    ),
    "a chunk size that is none": (request(CHUNKED, b"zz\r\n", length=False), 400),
    "a negative chunk": (request(CHUNKED, b"-5\r\nabcde\r\n", length=False), 400),
    "a huge chunk size": (request(CHUNKED, b"f" * 40 + b"\r\n", length=False), 400),
    "a chunk longer than stated": (request(CHUNKED, b"2\r\nabcdef\r\n", length=False), 400),
    "a million small chunks": (request(CHUNKED, chunked(b" " * 100_000, 1), length=False), 400),
    "chunks beyond the limit": (
        request(CHUNKED, chunked(b" " * (41 << 20), 1 << 20), length=False), 413,
    ),
    "two hosts": (request(b"Host: b\r\n"), 400),
    "two types": (request(b"Content-Type: text/plain\r\n"), 400),
    "two origins": (request(b"Origin: http://a\r\nOrigin: http://b\r\n"), 400),
    "two sizes of the JSON": (
        request(b"Inference-Header-Content-Length: 1\r\n" * 2), 400,
    ),
    "no host": (b"GET /v2 HTTP/1.1\r\n\r\n", 400),
    "a page of another origin": (request(LAST + b"Origin: http://evil.example\r\n"), 403),
    "a header of 1 MB": (request(b"X: " + b"a" * (1 << 20) + b"\r\n"), 431),
    "100,000 headers": (request(b"X: a\r\n" * 100_000), 431),
    "500 headers": (request(b"X: a\r\n" * 500), 431),
    "a folded header": (request(b"X: a\r\n b\r\n" + LAST), 200),
    "a gap before the colon": (request(b"X : a\r\n"), 400),
    "a zero byte in a header": (request(b"X: a\0b\r\n"), 400),
    "a bare line feed in a header": (request(b"X: a\nY: b\r\n" + LAST), 200),
    "a target of 1 MB": (b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
    "a whole address as target": (b"GET http://b/v2 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a path upwards": (
        b"GET /v2/models/../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404,
    ),
    "a path upwards in code": (
        b"GET /v2/models/..%2f..%2fetc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404,
    ),
    "a name with a zero": (
        b"GET /v2/models/rows%00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404,
    ),
    "another method": (
        b"DELETE /v2/models/rows HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 405,
    ),
    "TRACE": (b"TRACE /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 405),
    "CONNECT": (b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "OPTIONS *": (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a load of a model": (
        b"POST /v2/repository/models/rows/load HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        b"Connection: close\r\n\r\n{}", 404,
    ),
    "HTTP/1.0": (b"GET /v2 HTTP/1.0\r\n\r\n", 200),
    "HTTP/1.0 with chunks": (
        b"POST " + PATH + b" HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
    ),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "an upgrade": (request(LAST + b"Upgrade: websocket\r\n"), 200),
    "a zip bomb": (
        request(LAST + b"Content-Encoding: gzip\r\n", gzip.compress(bytes(200 << 20))), 413,
    ),
    "deep JSON": (request(LAST, b"[" * 1_000_000), 400),
    "an integer of 10^6 digits": (request(LAST, BODY.replace(b"2,", b"1" * 10**6 + b",", 1)), 400),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_http_attacks(service: Service, name: str) -> None:
    data, status = ATTACKS[name]
    found = service.talk(data)
    line = found.partition(b"\r\n")[0]
    assert re.fullmatch(rb"HTTP/1\.1 %d [A-Za-z ]+" % status, line), found[:300]
    body = found.partition(b"\r\n\r\n")[2]
    assert b"\r\nHTTP/1.1" not in body, "what follows a request was taken for another one"
    if status >= 400:
        assert json.loads(body)["error"]
        assert b"Traceback" not in body
    assert is_right(*service.ask(PATH.decode(), BODY))


def test_a_body_that_is_cut_has_an_answer(service: Service) -> None:
    cut = request(CHUNKED, chunked(BODY, 50)[:120], length=False)
    for data in (cut, request(body=BODY)[:-20]):
        found = service.talk(data, half_close=True)
        assert found.startswith(b"HTTP/1.1 400 "), found[:200]
        assert b"without sending" in found or b"has " in found or b"http" in found


def test_a_client_that_closes_its_side_has_an_answer(service: Service) -> None:
    found = service.talk(request(), half_close=True)
    assert is_right(200, found.partition(b"\r\n\r\n")[2])


def test_requests_behind_each_other(service: Service) -> None:
    """Eight at once on one connection (pipelining), answered in order; then it goes on."""
    draws = [np.full((1, 16), i, np.float32) for i in range(8)]
    data = b"".join(request(body=rows_body(x)) for x in draws[:-1])
    found = service.talk(data + request(LAST, rows_body(draws[-1])))
    bodies = re.findall(rb"\r\n\r\n(\{.*?\})(?=HTTP/1\.1|$)", found, re.DOTALL)
    assert len(bodies) == 8
    for x, body in zip(draws, bodies, strict=True):
        assert is_right(200, body, x)


def test_a_client_that_waits_to_be_asked(service: Service) -> None:
    """Expect: 100-continue; a body that is refused is not asked for."""
    with socket.create_connection(("127.0.0.1", service.port), 10) as own:
        own.sendall(request(b"Expect: 100-continue\r\n" + LAST)[: -len(BODY)])
        assert own.recv(1000).startswith(b"HTTP/1.1 100 ")
        own.sendall(BODY)
        assert own.recv(1000).startswith(b"HTTP/1.1 200 ")
    head = request(b"Expect: 100-continue\r\n" + LAST).replace(b"rows", b"none")
    assert service.talk(head[: -len(BODY)]).startswith(b"HTTP/1.1 404 ")


def test_head_has_no_body(service: Service) -> None:
    found = service.talk(b"HEAD /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body == b""


def test_slow_heads_and_bodies_end(service: Service) -> None:
    begin = time.monotonic()
    with ThreadPoolExecutor(4) as clients:
        found = list(clients.map(service.talk, [b"", b"POST ", request()[:60], request()[:-5]]))
    assert time.monotonic() - begin < 10
    statuses = [f.split(b" ")[1] if f else b"" for f in found]
    assert statuses == [b"", b"408", b"408", b"408"]


def test_a_client_that_does_not_read(service: Service) -> None:
    """An answer of 10 MB stays with its connection; others are served."""
    x = np.zeros((60_000, 16), np.float32)
    row = {"name": "x", "datatype": "FP32", "shape": [60_000, 16],
           "parameters": {"binary_data_size": x.nbytes}}  # fmt: skip
    head = json.dumps({"inputs": [row]}).encode()
    size = b"Inference-Header-Content-Length: %d\r\n" % len(head)
    with socket.create_connection(("127.0.0.1", service.port), 10) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.sendall(request(size, head + x.tobytes()).replace(b"/rows/", b"/alone/"))
        time.sleep(0.5)
        for _ in range(20):
            assert is_right(*service.ask(PATH.decode(), BODY, timeout=10))


def test_a_run_without_end(service: Service) -> None:
    """It is ended at its limit; meanwhile others are answered, and health is good."""
    name = 'mgx_run_timeouts_total{model="endless"}'
    before = service.metric(name)
    pids = set(service.processes())
    with ThreadPoolExecutor(3) as clients:
        begin = time.monotonic()
        ends = [clients.submit(service.ask, "/v2/models/endless/infer", endless_body())
                for _ in range(3)]  # fmt: skip
        time.sleep(0.2)
        while not all(e.done() for e in ends):
            assert is_right(*service.ask(PATH.decode(), BODY, timeout=30))
            assert service.ask("/v2/health/ready")[0] == 200
            time.sleep(0.05)
        for e in ends:
            status, body = e.result()
            assert status == 504
            assert f"longer than {RUN_LIMIT} s" in json.loads(body)["error"]
    assert time.monotonic() - begin < 60
    assert service.metric(name) == before + 3
    assert service.metric('mgx_workers_replaced_total{reason="timeout"}') >= 3
    time.sleep(0.5)
    left = set(service.processes()) - pids
    assert len(left) <= 3, "processes of runs that were ended stay"
    assert service.ask("/v2/models/endless/infer", endless_body(1 << 20))[0] == 200


def test_workers_that_are_killed_lose_no_request(service: Service) -> None:
    """SIGKILL to each worker in turn, and to the process that forks them; clients try once."""
    wrong: list[object] = []
    stop = threading.Event()
    done = Counter[str]()

    def work(_: int) -> None:
        while not stop.is_set():
            found = service.ask(PATH.decode(), BODY)
            done["requests"] += 1
            if not is_right(*found):
                wrong.append(found)

    with ThreadPoolExecutor(4) as clients:
        tasks = [clients.submit(work, i) for i in range(4)]
        for k in range(12):
            time.sleep(0.25)
            first, *rest = service.processes()
            assert first == service.process.pid
            victims = rest[:1] if k in (5, 9) else rest[1:]
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(1.0)
        stop.set()
        for t in tasks:
            t.result()
    assert wrong == []
    assert done["requests"] > 50
    assert service.metric('mgx_workers_replaced_total{reason="crash"}') >= 3


def test_memory_of_large_bodies_comes_back(service: Service) -> None:
    """Bodies of 2 MB in JSON and 38 MB in bytes; afterwards as much as before, and 40 MiB."""
    is_right(*service.ask(PATH.decode(), BODY))
    before = service.resident()
    text = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [20_000, 16],
                                   "data": [0.25] * 320_000}]}).encode()  # fmt: skip
    x = np.zeros((600_000, 16), np.float32)
    head = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": list(x.shape),
                                   "parameters": {"binary_data_size": x.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()  # fmt: skip
    for _ in range(2):
        assert service.ask("/v2/models/alone/infer", text)[0] == 200
        size = {"inference_header_content_length": str(len(head))}
        assert service.ask("/v2/models/alone/infer", head + x.tobytes(), **size)[0] == 200
    for _ in range(100):
        grown = service.resident() - before
        if grown < 40 << 20:
            break
        time.sleep(0.1)
    assert grown < 40 << 20, f"{grown >> 20} MiB"


def crowd(service: Service, slow: int, endless: int, good: int, seconds: float) -> Counter[str]:
    """Count what clients got: `slow` connections that stall, runs without end, and good ones."""
    found: Counter[str] = Counter()
    stop = time.monotonic() + seconds
    begins = [b"", b"POST " + PATH, request()[:-5], request(CHUNKED, b"5\r\nab", length=False)]

    def stall(i: int) -> None:
        while time.monotonic() < stop:
            with contextlib.suppress(OSError):
                service.talk(begins[i % 4], timeout=1.5)

    def never(_: int) -> None:
        while time.monotonic() < stop:
            status, _ = service.ask("/v2/models/endless/infer", endless_body(), timeout=300)
            found[f"endless {status}"] += 1

    def ask(i: int) -> None:
        own = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        with contextlib.closing(own):
            while time.monotonic() < stop:
                if i % 2:
                    own.close()  # every other client connects anew
                own.request("POST", PATH.decode(), BODY, JSON)
                answer = own.getresponse()
                data = answer.read()
                found["right" if is_right(answer.status, data) else f"{answer.status}"] += 1
                time.sleep(0.01)

    threads = [threading.Thread(target=f, args=(i,), daemon=True)
               for f, n in ((stall, slow), (never, endless)) for i in range(n)]  # fmt: skip
    for t in threads:
        t.start()
    time.sleep(0.5)
    with ThreadPoolExecutor(good) as clients:
        for each in [clients.submit(ask, i) for i in range(good)]:
            each.result()
    return found


def test_good_clients_beside_slow_ones_and_endless_runs(service: Service) -> None:
    found = crowd(service, slow=400, endless=4, good=8, seconds=8)
    assert found["right"] > 20, found
    assert {k for k in found if k != "right"} <= {"endless 504"}, found


@pytest.mark.slow
def test_good_clients_in_a_crowd_for_long(service: Service) -> None:
    """400 slow connections, 12 runs without end, 8 good clients, for five minutes."""
    held: list[int] = []
    for _ in range(5):
        found = crowd(service, slow=400, endless=12, good=8, seconds=60)
        assert found["right"] > 200, found
        assert {k for k in found if k != "right"} <= {"endless 504"}, found
        time.sleep(5)
        held.append(service.resident())
    assert held[-1] - held[1] < 32 << 20, [h >> 20 for h in held]


def test_the_end_of_the_service_loses_no_request(tmp_path: Path) -> None:
    service = Service(write_all(tmp_path / "models"), tmp_path / "log")
    try:
        with ThreadPoolExecutor(4) as clients:
            runs = [clients.submit(service.ask, "/v2/models/endless/infer", endless_body(1 << 33))
                    for _ in range(2)]  # fmt: skip
            more = [clients.submit(service.ask, PATH.decode(), BODY) for _ in range(2)]
            time.sleep(0.3)
            pids = service.processes()
            assert service.end() == 0, service.log.read_text()
            assert [r.result()[0] for r in runs] == [200, 200]
            assert all(is_right(*m.result()) for m in more)
        time.sleep(0.2)
        assert not [p for p in pids if Path(f"/proc/{p}").exists()]
        assert "Traceback" not in service.log.read_text()
    finally:
        service.process.kill()
