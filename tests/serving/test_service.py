"""`mgx-driver serve`: attacks on its HTTP, runs without end, workers that are killed."""

from __future__ import annotations

import contextlib
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

import mgx_mlir as mgx
from tests.serving import attack
from tests.serving.attack import Attack
from tests.serving.hostile import (
    ATTACKS,
    BODY,
    CHUNKED,
    LAST,
    PATH,
    binary_request,
    chunked,
    is_right,
    request,
)
from tests.serving.service import JSON, Service, endless_body, rows_body, write_all

pytest.importorskip("h11")
pytest.importorskip("prometheus_client")

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
        assert len(body) < 1 << 15
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


def test_a_connection_stays(service: Service) -> None:
    """Behind requests without a body, and behind errors that leave one unread."""
    own = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
    with contextlib.closing(own):
        own.connect()
        before = own.sock
        for method, path, status in (
            ("GET", "/v2", 200), ("HEAD", "/v2", 200), ("POST", "/v2/models/none/infer", 404),
            ("GET", "/metrics", 200), ("POST", PATH.decode(), 200), ("GET", PATH.decode(), 405),
            ("POST", PATH.decode(), 200),
        ):  # fmt: skip
            own.request(method, path, BODY if method == "POST" else None, JSON)
            answer = own.getresponse()
            answer.read()
            assert answer.status == status
            assert own.sock is before


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
    with socket.create_connection(("127.0.0.1", service.port), 10) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.sendall(binary_request(60_000))
        time.sleep(0.5)
        for _ in range(20):
            assert is_right(*service.ask(PATH.decode(), BODY, timeout=10))


def test_a_run_without_end(service: Service) -> None:
    """A long run is ended at its limit; meanwhile others are answered, and health is good."""
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
        seen, end = done["requests"], time.monotonic() + 60
        while done["requests"] < seen + 8 and time.monotonic() < end:
            time.sleep(0.1)
        stop.set()
        for t in tasks:
            t.result()
    assert wrong == []
    assert done["requests"] >= seen + 8, "it answers no more"
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


def test_good_clients_beside_slow_ones_and_endless_runs(service: Service) -> None:
    made = Attack(service, 8.0)
    made.run([(made.stall, 400), (made.endless, 4), (made.good, 8), (made.hostile, 2)])
    assert made.lost == {}
    assert made.found["right"] > 20, made.found
    assert made.found["endless 504"] > 0, made.found


@pytest.mark.slow
def test_an_attack_of_five_minutes() -> None:
    assert attack.main(300.0) == 0


@pytest.mark.slow
def test_few_descriptors_and_a_model_file_that_is_written_over(tmp_path: Path) -> None:
    """300 connections at 80 descriptors; all processes of workers end; the file is empty."""
    folder = write_all(tmp_path / "models")
    model = folder / "rows" / "1" / "model.mxr"
    mgx.save(mgx.compile(str(model.with_suffix(".onnx")), "cpu"), model)
    service = Service(folder, tmp_path / "log", "--run-timeout", "3", files=80)
    try:
        assert "connections at a time, not 1024" in service.log.read_text()
        model.write_bytes(b"")
        with contextlib.ExitStack() as stack:
            for _ in range(300):
                own = socket.create_connection(("127.0.0.1", service.port), 10)
                stack.enter_context(own)
            for _ in range(10):
                assert is_right(*service.ask(PATH.decode(), BODY, timeout=30))
            for pid in service.processes()[1:]:
                os.kill(pid, signal.SIGKILL)
            assert is_right(*service.ask(PATH.decode(), BODY))
            assert service.ask("/v2/models/endless/infer", endless_body())[0] == 504
        assert service.end() == 0
        assert "Too many open files" not in service.log.read_text()
    finally:
        service.process.kill()


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
