"""Requests that are wrong as HTTP, or as what they ask for, with the status of each answer."""

from __future__ import annotations

import gzip
import json

import numpy as np

from tests.serving.conftest import expected
from tests.serving.service import rows_body

PATH = b"/v2/models/rows/infer"
X = np.random.default_rng(3).standard_normal((2, 16)).astype(np.float32)
BODY = rows_body(X)


def is_right(status: int, body: bytes, x: np.ndarray = X) -> bool:
    """True where an answer is that of model `rows`."""
    if status != 200:
        return False
    [y] = json.loads(body)["outputs"]
    return np.allclose(np.reshape(y["data"], (-1, 4)), expected(x, 2), atol=1e-5)


def request(head: bytes = b"", body: bytes = BODY, *, length: bool = True) -> bytes:
    """A request with more headers, each with its end of line."""
    own = b"Content-Length: %d\r\n" % len(body) if length else b""
    begin = b"POST " + PATH + b" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    return begin + own + head + b"\r\n" + body


def binary_request(rows: int) -> bytes:
    """A request of model `alone` with so many rows of bytes, whose answer is JSON."""
    x = np.zeros((rows, 16), np.float32)
    row = {"name": "x", "datatype": "FP32", "shape": [rows, 16],
           "parameters": {"binary_data_size": x.nbytes}}  # fmt: skip
    head = json.dumps({"inputs": [row]}).encode()
    size = b"Inference-Header-Content-Length: %d\r\n" % len(head)
    return request(size, head + x.tobytes()).replace(b"/rows/", b"/alone/")


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
    "metrics for a name that was made to lead here": (
        b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403,
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
    "a whole address as target": (request(LAST).replace(b"POST /", b"POST http://b:80/"), 200),
    "a whole address of another host": (
        request(LAST).replace(b"POST /", b"POST http://evil.example/"), 403,
    ),
    "an address without a host": (request().replace(b"POST /", b"POST http:///"), 400),
    "an address of another scheme": (request().replace(b"POST /", b"POST ftp://a/"), 400),
    "a host that is none": (request().replace(b"Host: a", b"Host: a/b"), 400),
    "a host with an open bracket": (request().replace(b"Host: a", b"Host: [::1"), 400),
    "an origin with an open bracket": (request(LAST + b"Origin: http://[::1\r\n"), 403),
    "an origin of no page without a host": (
        request(b"Origin: null\r\n").replace(b"HTTP/1.1\r\nHost: a", b"HTTP/1.0"), 403,
    ),
    "trailers": (
        request(CHUNKED, chunked(BODY, 50)[:-2] + b"X: y\r\nContent-Length: 3\r\n\r\n",
                length=False), 200,
    ),
    "100,000 trailers": (
        request(CHUNKED, chunked(BODY, 50)[:-2] + b"X: y\r\n" * 100_000, length=False), 400,
    ),
    "an extension of 1 MB": (request(CHUNKED, b"5;a=" + b"b" * (1 << 20), length=False), 400),
    "a version by its code": (
        b"GET /v2/models/%72ows/versions/%31/ready HTTP/1.1\r\nHost: a\r\nConnection: close"
        b"\r\n\r\n", 200,
    ),
    "a name of 1 MB": (request(LAST, BODY.replace(b'"x"', b'"' + b"x" * (1 << 20) + b'"')), 400),
    "parameters that are a list": (
        request(LAST, BODY[:-1] + b', "parameters": []}'), 400,
    ),
    "outputs that are false": (request(LAST, BODY[:-1] + b', "outputs": false}'), 400),
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
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "an upgrade": (request(LAST + b"Upgrade: websocket\r\n"), 200),
    "a zip bomb": (
        request(LAST + b"Content-Encoding: gzip\r\n", gzip.compress(bytes(200 << 20))), 413,
    ),
    "deep JSON": (request(LAST, b"[" * 1_000_000), 400),
    "an integer of 10^6 digits": (request(LAST, BODY.replace(b"2,", b"1" * 10**6 + b",", 1)), 400),
}  # fmt: skip
