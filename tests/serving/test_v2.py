"""The protocol without a server: good requests, and bodies that are hostile."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import struct
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import FileError
from mgx_mlir.integrations.v2.batching import Call, Outputs, groups, run_together
from mgx_mlir.integrations.v2.datatypes import DTYPES, from_bytes, from_json, to_bytes, to_json
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Policy, Response
from mgx_mlir.integrations.v2.messages import HEADER, Limits
from mgx_mlir.integrations.v2.models import Models, ServedModel, find_models, load_models
from mgx_mlir.integrations.v2.origins import Origins
from mgx_mlir.integrations.v2.server import V2Server
from tests.serving.conftest import WEIGHTS, expected

LIMITS = Limits(body=1 << 20, json=1 << 18)
X = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def models(folder: Path) -> Models:
    found = load_models(find_models(folder), lambda e: mgx_mlir.compile(str(e.path), "cpu"))
    for m in found:
        m.warm_up()
    return Models(found)


async def pieces(data: bytes, size: int = 1 << 16) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def alone(call: Call) -> Outputs:
    [found] = run_together([call])
    if isinstance(found, Exception):
        raise found
    return found


Ask = Callable[..., Response]


@pytest.fixture
def ask(models: Models) -> Ask:
    server = V2Server(models, alone, Policy(LIMITS, queue=2, read_timeout=0.3, run_timeout=20))

    def answer(path: str, body: bytes = b"", method: str = "POST", **headers: str) -> Response:
        heads = {k.replace("_", "-"): v for k, v in headers.items()}
        return asyncio.run(server.handle(method, path, heads, pieces(body)))

    return answer


def infer(x: np.ndarray = X, **more: Any) -> dict[str, Any]:
    row = {"name": "x", "datatype": "FP32", "shape": list(x.shape), "data": x.ravel().tolist()}
    return {"inputs": [row], **more}


def test_health_and_metadata(ask: Ask) -> None:
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/rows/ready",
                 "/v2/models/rows/versions/1/ready"):  # fmt: skip
        assert ask(path, method="GET").status == 200
    assert json.loads(ask("/v2", method="GET").body)["name"] == "mgx_mlir"
    meta = json.loads(ask("/v2/models/rows", method="GET").body)
    assert meta["versions"] == ["1", "2"]
    assert meta["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 16]}]
    assert meta["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}]
    config = json.loads(ask("/v2/models/rows/config", method="GET").body)
    assert config["max_batch_size"] == 8
    assert config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [16]}]
    index = json.loads(ask("/v2/repository/index").body)
    assert {(m["name"], m["version"]) for m in index} == {
        ("rows", "1"), ("rows", "2"), ("alone", "1"), ("words", "1"),
    }  # fmt: skip


@pytest.mark.parametrize(("path", "version"), [("rows", 2), ("rows/versions/1", 1), ("alone", 3)])
def test_json_tensors(ask: Ask, path: str, version: int) -> None:
    for body in (infer(id="a"), infer(outputs=[{"name": "y"}])):
        found = ask(f"/v2/models/{path}/infer", json.dumps(body).encode())
        assert found.status == 200
        row = json.loads(found.body)
        [y] = row["outputs"]
        assert (y["name"], y["datatype"], y["shape"]) == ("y", "FP32", [3, 4])
        assert np.allclose(np.reshape(y["data"], (3, 4)), expected(X, version), atol=1e-5)
        assert row.get("id", "") == body.get("id", "")
        assert row["model_version"] == str(2 if path == "rows" else path.split("/")[-1]
                                           if "/" in path else 1)  # fmt: skip


def test_binary_tensors(ask: Ask) -> None:
    row = {"name": "x", "datatype": "FP32", "shape": [3, 16],
           "parameters": {"binary_data_size": X.nbytes}}  # fmt: skip
    for more in (
        {"outputs": [{"name": "y", "parameters": {"binary_data": True}}]},
        {"parameters": {"binary_data_output": True}},
    ):
        text = json.dumps({"inputs": [row], **more}).encode()
        head = {"inference_header_content_length": str(len(text))}
        body = text + X.tobytes()
        for data, coding in (
            (body, ""), (gzip.compress(body), "gzip"), (zlib.compress(body), "deflate"),
        ):  # fmt: skip
            found = ask("/v2/models/rows/infer", data, content_encoding=coding, **head)
            assert found.status == 200, found.body
            size = int(found.headers[HEADER])
            [y] = json.loads(found.body[:size])["outputs"]
            assert y["parameters"] == {"binary_data_size": 48}
            got = np.frombuffer(found.body[size:], np.float32).reshape(3, 4)
            assert np.allclose(got, expected(X, 2), atol=1e-5)


def test_strings(ask: Ask) -> None:
    rows = [{"name": "a", "datatype": "BYTES", "shape": [2], "data": ["é", "b"]},
            {"name": "b", "datatype": "BYTES", "shape": [1], "data": ["é"]}]  # fmt: skip
    found = ask("/v2/models/words/infer", json.dumps({"inputs": rows}).encode())
    [c] = json.loads(found.body)["outputs"]
    assert (c["datatype"], c["data"]) == ("BOOL", [True, False])
    texts = np.array(["é", ""], object)
    assert from_bytes("a", "BYTES", (2,), memoryview(to_bytes(texts))).tolist() == ["é", ""]


def test_infinity_and_nan_are_strings(ask: Ask) -> None:
    """JSON has no such numbers; the JSON mapping of protocol buffers writes these strings."""
    x = np.zeros((4, 16), np.float32)
    x[:3, 0] = np.inf, -np.inf, np.nan
    texts = ["Infinity", "-Infinity", "NaN"]
    assert to_json(x[:3, 0]) == texts
    words = x.ravel().tolist()
    for i, text in enumerate(texts):
        words[16 * i] = text
    stated = {"name": "x", "datatype": "FP32", "shape": [4, 16], "data": words}
    for body in (
        json.dumps({"inputs": [stated]}),
        json.dumps(infer(x)),  # Python's json writes NaN, Infinity
    ):
        found = ask("/v2/models/rows/infer", body.encode())
        assert found.status == 200
        [y] = json.loads(found.body, parse_constant=pytest.fail)["outputs"]
        got = np.array(y["data"], np.float32).reshape(4, 4)  # numpy reads the strings
        with np.errstate(invalid="ignore"):
            want = x @ WEIGHTS + 2
        assert np.array_equal(np.isnan(got), np.isnan(want))
        assert np.array_equal(np.isinf(got), np.isinf(want))
        assert np.allclose(got, want, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("datatype", DTYPES)
def test_every_type_in_both_forms(datatype: str) -> None:
    a = (np.arange(6) % 2).astype(DTYPES[datatype]).reshape(2, 3)
    assert np.array_equal(from_bytes("a", datatype, (2, 3), memoryview(to_bytes(a))), a)
    assert np.array_equal(from_json("a", datatype, (2, 3), to_json(a)), a)
    assert np.array_equal(from_json("a", datatype, (2, 3), a.astype(float).tolist())
                          if a.dtype.kind == "f" or a.dtype == ml_dtypes.bfloat16
                          else a, a)  # fmt: skip


def _hostile() -> Iterator[tuple[str, str, bytes, dict[str, str], int]]:
    rows = "/v2/models/rows/infer"

    def body(**change: Any) -> bytes:
        row = {"name": "x", "datatype": "FP32", "shape": [1, 16], "data": [0.0] * 16, **change}
        return json.dumps({"inputs": [{k: v for k, v in row.items() if v is not ...}]}).encode()

    giga = {"binary_data_size": 1 << 30}
    head = {"inference_header_content_length": str(len(body(data=..., parameters=giga)))}
    cases: dict[str, tuple[str, bytes, dict[str, str], int]] = {
        "no JSON": (rows, b"{", {}, 400),
        "a gzip body without its checksum": (
            rows, gzip.compress(body())[:-8], {"content_encoding": "gzip"}, 400,
        ),
        "a gzip body with a wrong checksum": (
            rows, gzip.compress(body())[:-8] + bytes(8), {"content_encoding": "gzip"}, 400,
        ),
        "a deflate body that is cut": (
            rows, zlib.compress(body())[:-4], {"content_encoding": "deflate"}, 400,
        ),
        "bytes behind a deflate body": (
            rows, zlib.compress(body()) + b"abc", {"content_encoding": "deflate"}, 400,
        ),
        "a gzip body of many members": (
            rows, gzip.compress(b"") * 1000, {"content_encoding": "gzip"}, 400,
        ),
        "an empty gzip body": (rows, b"", {"content_encoding": "gzip"}, 400),
        "a key twice": (rows, b'{"inputs": [], "inputs": []}', {}, 400),
        "half a surrogate pair in a name": (rows, body(name="\ud800"), {}, 400),
        "half a surrogate pair in an id": (rows, json.dumps(infer(id="\ud800")).encode(), {}, 400),
        "half a surrogate pair in a string": (
            "/v2/models/words/infer", json.dumps({"inputs": [
                {"name": n, "datatype": "BYTES", "shape": [1], "data": ["\udfff"]} for n in "ab"
            ]}).encode(), {}, 400,
        ),
        "NaN as a string": (
            "/v2/models/words/infer", b'{"inputs": [{"name": "a", "datatype": "BYTES", "shape": '
            b'[1], "data": [NaN]}]}', {}, 400,
        ),
        "a number beyond f64": (rows, body().replace(b"[0.0,", b"[1e999,"), {}, 400),
        "a number beyond f32": (rows, body().replace(b"[0.0,", b"[1e39,"), {}, 400),
        "an integer beyond f64": (rows, body(data=[10**400] + [0.0] * 15), {}, 400),
        "an integer of 5000 digits": (
            rows, body().replace(b"[0.0,", b"[1" + b"0" * 5000 + b","), {}, 400,
        ),
        "an empty shape beyond numpy": (
            rows, (none := body(data=..., shape=[0, 1 << 47, 1 << 47],
                                parameters={"binary_data_size": 0})),
            {"inference_header_content_length": str(len(none))}, 400,
        ),
        "an empty shape beyond numpy in JSON": (
            rows, body(data=[], shape=[0, 1 << 47, 1 << 47]), {}, 400,
        ),
        "an output twice": (
            rows, json.dumps(infer(outputs=[{"name": "y"}] * 2)).encode(), {}, 400,
        ),
        "text": (rows, body(), {"content_type": "text/plain"}, 415),
        "a form": (rows, body(), {"content_type": "application/x-www-form-urlencoded"}, 415),
        "a form of parts": (rows, body(), {"content_type": "multipart/form-data; boundary=a"}, 415),
        "a page of another origin": (
            rows, body(), {"origin": "http://evil.example", "host": "127.0.0.1:8000"}, 403,
        ),
        "a page of no origin": (rows, body(), {"origin": "null", "host": "127.0.0.1:8000"}, 403),
        "a page on another port": (
            rows, body(), {"origin": "http://127.0.0.1:80", "host": "127.0.0.1:8000"}, 403,
        ),
        "a page that a browser calls another's": (
            rows, body(), {"sec_fetch_site": "cross-site", "host": "127.0.0.1:8000"}, 403,
        ),
        "a name that was made to lead here": (rows, body(), {"host": "evil.example:8000"}, 403),
        "the same with its own origin": (
            rows, body(), {"host": "evil.example", "origin": "http://evil.example",
                           "sec_fetch_site": "same-origin"}, 403,
        ),
        "empty": (rows, b"", {}, 400),
        "not UTF-8": (rows, b'{"inputs": "\xff\xfe"}', {}, 400),
        "a list": (rows, b"[]", {}, 400),
        "deep": (rows, b"[" * 100_000, {}, 400),
        "deep data": (rows, body(data=json.loads("[" * 60 + "]" * 60)), {}, 400),
        "no inputs": (rows, b"{}", {}, 400),
        "inputs of another kind": (rows, b'{"inputs": {"x": 1}}', {}, 400),
        "an input that is a number": (rows, b'{"inputs": [1]}', {}, 400),
        "too many inputs": (rows, json.dumps({"inputs": [{"name": "x"}] * 300}).encode(), {}, 400),
        "twice": (rows, json.dumps({"inputs": infer()["inputs"] * 2}).encode(), {}, 400),
        "dims beyond the data": (rows, body(shape=[2, 16]), {}, 400),
        "1 TB of dims": (rows, body(shape=[1 << 40, 16]), {}, 400),
        "dims that overflow": (rows, body(shape=[1 << 47] * 32), {}, 400),
        "33 dims": (rows, body(shape=[1] * 33), {}, 400),
        "negative dims": (rows, body(shape=[-1, 16]), {}, 400),
        "dims of text": (rows, body(shape=["a"]), {}, 400),
        "a bool for a size": (rows, body(shape=[True, 16]), {}, 400),
        "another rank": (rows, body(shape=[16]), {}, 400),
        "another type": (rows, body(datatype="FP64"), {}, 400),
        "an unknown type": (rows, body(datatype="FP128"), {}, 400),
        "a type that is a list": (rows, body(datatype=[]), {}, 400),
        "strings for numbers": (rows, body(data=["0"] * 16), {}, 400),
        "null for numbers": (rows, body(data=[None] * 16), {}, 400),
        "mixed lists": (rows, body(data=[[0.0], 0.0]), {}, 400),
        "no data": (rows, body(data=...), {}, 400),
        "1 GB that does not follow": (rows, body(data=..., parameters=giga), head, 400),
        "a negative size": (rows, body(data=..., parameters={"binary_data_size": -1}), {}, 400),
        "bytes that nobody asked for": (
            rows, body() + b"1234", {"inference_header_content_length": str(len(body()))}, 400,
        ),
        "a header of text": (rows, body(), {"inference_header_content_length": "many"}, 400),
        "a header beyond": (rows, body(), {"inference_header_content_length": "9" * 12}, 400),
        "a claim of 1 GB": (rows, body(), {"content_length": str(1 << 30)}, 413),
        "a length of text": (rows, body(), {"content_length": "x"}, 400),
        "a length that is not so": (rows, body(), {"content_length": "3"}, 400),
        "too long": (rows, b" " * ((1 << 20) + 1), {}, 413),
        "JSON too long": (rows, b" " * ((1 << 18) + 1), {}, 413),
        "zip bomb": (rows, gzip.compress(b" " * (64 << 20)), {"content_encoding": "gzip"}, 413),
        "no zip": (rows, b"abc", {"content_encoding": "gzip"}, 400),
        "an unknown coding": (rows, body(), {"content_encoding": "br"}, 415),
        "an unknown input": (rows, body(name="q"), {}, 400),
        "an unknown output": (
            rows, json.dumps(infer(outputs=[{"name": "q"}])).encode(), {}, 400,
        ),
        "an id that is a list": (rows, json.dumps(infer(id=[])).encode(), {}, 400),
        "parameters of text": (rows, json.dumps(infer(parameters="a")).encode(), {}, 400),
        "an unknown model": ("/v2/models/none/infer", body(), {}, 404),
        "an unknown version": ("/v2/models/rows/versions/9/infer", body(), {}, 404),
        "an unknown path": ("/v3", b"", {}, 404),
        "a path upwards": ("/v2/models/..%2f..%2fetc/infer", body(), {}, 404),
        "strings cut short": (
            "/v2/models/words/infer",
            (cut := json.dumps({"inputs": [{"name": "a", "datatype": "BYTES", "shape": [1],
             "parameters": {"binary_data_size": 6}}]}).encode()) + struct.pack("<I", 999) + b"ab",
            {"inference_header_content_length": str(len(cut))}, 400,
        ),
    }  # fmt: skip
    for name, case in cases.items():
        yield (name, *case)


@pytest.mark.parametrize(("name", "path", "body", "headers", "status"), [*_hostile()],
                         ids=[c[0] for c in _hostile()])  # fmt: skip
def test_hostile_bodies(
    ask: Ask, name: str, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = ask(path, body, **headers)
    assert found.status == status, found.body
    text = json.loads(found.body)["error"]
    assert text
    assert "Traceback" not in text
    assert "internal error" not in text
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 32 << 10, f"{grown} kB"
    assert ask("/v2/models/rows/infer", json.dumps(infer()).encode()).status == 200


def test_a_slow_client_and_a_full_queue(models: Models) -> None:
    server = V2Server(models, alone, Policy(LIMITS, queue=2, read_timeout=0.3))

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    async def talk() -> list[int]:
        path = "/v2/models/rows/infer"
        waiting = [server.handle("POST", path, {}, slow()) for _ in range(2)]
        tasks = [asyncio.ensure_future(w) for w in waiting]
        await asyncio.sleep(0.05)
        third = await server.handle("POST", path, {}, pieces(json.dumps(infer()).encode()))
        first = await asyncio.gather(*tasks)
        last = await server.handle("POST", path, {}, pieces(json.dumps(infer()).encode()))
        return [third.status, *(r.status for r in first), last.status]

    # a place in the queue is taken behind the body: two slow clients fill none of two
    assert asyncio.run(talk()) == [200, 408, 408, 200]
    assert server.waiting == 0


def test_a_full_queue(models: Models) -> None:
    async def talk() -> list[int]:
        go = asyncio.Event()

        async def held(call: Call) -> Outputs:
            await go.wait()
            return await alone(call)

        server = V2Server(models, held, Policy(LIMITS, queue=2))
        path, body = "/v2/models/rows/infer", json.dumps(infer()).encode()
        tasks = [asyncio.ensure_future(server.handle("POST", path, {}, pieces(body)))
                 for _ in range(2)]  # fmt: skip
        await asyncio.sleep(0.05)
        third = await server.handle("POST", path, {}, pieces(body))
        go.set()
        return [third.status, *(r.status for r in await asyncio.gather(*tasks))]

    assert asyncio.run(talk()) == [429, 200, 200]


def test_bodies_that_stall_give_way(models: Models) -> None:
    """Ten clients stall behind 200 kB each; one that sends at once finds room for 300 kB."""
    body = json.dumps(infer(np.zeros((4000, 16), np.float32))).encode()
    assert len(body) > 300_000

    async def stalled() -> AsyncIterator[bytes]:
        yield b" " * 200_000
        await asyncio.sleep(30)

    async def talk() -> tuple[list[int], int]:
        limits = Limits(body=1 << 20, json=1 << 20)
        server = V2Server(models, alone, Policy(limits, read_timeout=1.0, held=1 << 20))
        path = "/v2/models/rows/infer"
        tasks = [asyncio.ensure_future(server.handle("POST", path, {}, stalled()))
                 for _ in range(10)]  # fmt: skip
        await asyncio.sleep(0.05)
        good = await server.handle("POST", path, {}, pieces(body))
        rest = await asyncio.gather(*tasks)
        assert server.room.held == 0
        return [r.status for r in rest], good.status

    found, good = asyncio.run(talk())
    assert good == 200
    assert set(found) == {408, 503}


def test_a_body_that_is_refused_is_read_and_dropped(models: Models) -> None:
    server = V2Server(models, alone, Policy(LIMITS))
    read: list[int] = []

    async def sending(count: int) -> AsyncIterator[bytes]:
        for i in range(count):
            read.append(i)
            yield b" " * (1 << 16)

    for count, most in ((40, 40), (4000, 90)):
        read.clear()
        path = "/v2/models/rows/infer"
        found = asyncio.run(server.handle("POST", path, {}, sending(count)))
        assert found.status == 413
        assert min(count, 17) < len(read) <= most


@pytest.mark.parametrize("heads", [
    {}, {"content_type": "application/json"}, {"content_type": "Application/JSON; charset=utf-8"},
    {"content_type": "application/octet-stream"}, {"host": "localhost:8000"}, {"host": "[::1]:80"},
    {"host": "10.1.2.3"}, {"host": "gpu-box:8000"}, {"host": "models.example.com"},
    {"origin": "http://localhost:8000", "host": "localhost:8000", "sec_fetch_site": "same-origin"},
    {"origin": "https://ours.example", "host": "localhost:8000", "sec_fetch_site": "cross-site"},
], ids=str)  # fmt: skip
def test_requests_that_may_come(models: Models, heads: dict[str, str]) -> None:
    origins = Origins(["https://ours.example"], ["models.example.com"])
    server = V2Server(models, alone, Policy(LIMITS, origins=origins))
    given = {k.replace("_", "-"): v for k, v in heads.items()}
    body = json.dumps(infer()).encode()
    found = asyncio.run(server.handle("POST", "/v2/models/rows/infer", given, pieces(body)))
    assert found.status == 200
    allowed = heads.get("origin", "").startswith("https:")
    assert ("access-control-allow-origin" in found.headers) == allowed
    asked = asyncio.run(server.handle("OPTIONS", "/v2/models/rows/infer", given, pieces(b"")))
    assert asked.status == (204 if allowed else 405)


def test_a_response_has_a_limit(models: Models) -> None:
    for more in ({}, {"parameters": {"binary_data_output": True}}):
        server = V2Server(models, alone, Policy(Limits(response=30)))
        body = json.dumps(infer(**more)).encode()
        found = asyncio.run(server.handle("POST", "/v2/models/rows/infer", {}, pieces(body)))
        assert found.status == 400
        assert "the limit is 30" in json.loads(found.body)["error"]


def test_gzip_bodies_of_several_members(ask: Ask) -> None:
    body = json.dumps(infer()).encode()
    data = gzip.compress(body[:100]) + gzip.compress(body[100:])
    assert ask("/v2/models/rows/infer", data, content_encoding="gzip").status == 200


def test_a_run_that_takes_too_long_or_fails(models: Models) -> None:
    async def never(_: Call) -> Outputs:
        await asyncio.sleep(30)
        return []

    async def broken(_: Call) -> Outputs:
        raise KeyError("secret")

    body = json.dumps(infer()).encode()
    for run, status, text in ((never, 504, "longer than 0.1 s"), (broken, 500, "KeyError")):
        server = V2Server(models, run, Policy(LIMITS, run_timeout=0.1))
        found = asyncio.run(server.handle("POST", "/v2/models/rows/infer", {}, pieces(body)))
        assert found.status == status
        assert text in json.loads(found.body)["error"]
        assert b"secret" not in found.body


def call(model: ServedModel, x: np.ndarray) -> Call:
    return Call(model, {"x": x}, len(x))


def test_joined_requests(models: Models) -> None:
    rows, older, single = (models.get(*m) for m in (("rows", None), ("rows", "1"), ("alone", None)))
    draw = np.random.default_rng(5)
    sizes = [1, 3, 5, 0, 2, 8, 4]
    calls = [call(m, draw.standard_normal((n, 16)).astype(np.float32))
             for n in sizes for m in (rows, older, single)]  # fmt: skip
    found = groups(calls)
    assert sorted(i for g in found for i in g) == list(range(len(calls)))
    for group in found:
        own = [calls[i] for i in group]
        assert len({(c.model.name, c.model.version) for c in own}) == 1
        assert len(group) == 1 or sum(c.rows for c in own) <= 8
        assert own[0].model is not single or len(group) == 1
        for c, result in zip(own, run_together(own), strict=True):
            assert not isinstance(result, Exception)
            version = 3 if c.model is single else int(c.model.version)
            assert np.allclose(result[0], expected(c.inputs["x"], version), atol=1e-5)
    assert any(len(g) > 1 for g in found)


def test_one_wrong_request_costs_the_others_nothing(models: Models) -> None:
    rows = models.get("rows", None)
    good, bad = call(rows, X), Call(rows, {"x": X.astype(np.float64)}, 3)
    first, second, third = run_together([good, bad, good])
    assert isinstance(second, Exception)
    for found in (first, third):
        assert not isinstance(found, Exception)
        assert np.allclose(found[0], expected(X, 2), atol=1e-5)


def test_directories(tmp_path: Path, models: Models) -> None:
    with pytest.raises(FileError, match="expected a directory"):
        find_models(tmp_path / "none")
    with pytest.raises(FileError, match="has no models"):
        find_models(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.onnx").write_bytes(b"")
    assert [(e.name, e.version) for e in find_models(tmp_path)] == [("m", "1")]
    for text, wrong in (("{", "expected JSON"), ('{"max_batch": 3}', "unknown or wrong entry"),
                        ('{"max_batch_size": 0}', "unknown or wrong entry")):  # fmt: skip
        (tmp_path / "m" / "config.json").write_text(text)
        with pytest.raises(FileError, match=wrong):
            find_models(tmp_path)
    with pytest.raises(V2Error, match="has no version '7'"):
        models.get("rows", "7")
