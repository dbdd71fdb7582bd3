"""Bodies of inference requests and responses, with the extension for binary tensors."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgx_mlir.integrations.v2.datatypes import (
    BYTES,
    DTYPES,
    Constant,
    checked_shape,
    datatype_name,
    from_bytes,
    from_json,
    is_unicode,
    to_bytes,
    to_json,
)
from mgx_mlir.integrations.v2.errors import V2Error

HEADER = "inference-header-content-length"
_ZIPPED = {"gzip": 31, "deflate": 15}  # zlib's window sizes
_MOST_MEMBERS = 16  # members of a gzip body: the rest of the body is copied for each


@dataclass(frozen=True)
class Limits:
    """Limits of a request: bytes of a body, of its JSON, of a response; tensors in it."""

    body: int = 64 << 20
    json: int = 16 << 20
    tensors: int = 256
    response: int = 1 << 30


@dataclass(frozen=True)
class InferRequest:
    """A request: tensors by name; `outputs` is None for all; `binary` names those sent as bytes."""

    inputs: Mapping[str, np.ndarray]
    outputs: tuple[str, ...] | None = None
    binary: frozenset[str] = frozenset()
    all_binary: bool = False
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


def unpacked(body: bytes, encoding: str, limits: Limits) -> bytes:
    """Return a body without its compression.

    gzip may have several members, each with its checksum (RFC 1952). Errors: V2Error, 413 beyond
    the limit, for a truncated body, for a missing checksum, and for trailing bytes.
    """
    if encoding in ("", "identity"):
        return body
    window = _ZIPPED.get(encoding)
    if window is None:
        raise V2Error(f"unknown content encoding '{encoding[:40]}'", 415)
    found, rest = b"", body
    for _ in range(_MOST_MEMBERS):
        packed = zlib.decompressobj(window)
        try:
            found += packed.decompress(rest, limits.body + 1 - len(found))
        except zlib.error:
            raise V2Error(f"the body is not {encoding}") from None
        if len(found) > limits.body:
            raise too_large(limits)
        if not packed.eof:
            raise V2Error(f"the body is not {encoding}: it ends before its checksum")
        rest = packed.unused_data
        if encoding != "gzip" or not rest:
            break
    else:
        raise V2Error(f"the body expected at most {_MOST_MEMBERS} gzip members")
    if rest:
        raise V2Error(f"{len(rest)} bytes follow the {encoding} data of the body")
    return found


def too_large(limits: Limits) -> V2Error:
    """Return the error for a body beyond the limit."""
    return V2Error(f"the body is larger than {limits.body} bytes", 413)


def parse_request(body: bytes, header: str | None, limits: Limits) -> InferRequest:
    """Parse a request's body; `header` is the length of its JSON if binary tensors follow.

    Errors: V2Error for anything malformed.
    """
    size = len(body)
    if header is not None:
        if not header.isdecimal() or len(header) > 15 or int(header) > len(body):
            raise V2Error(f"{HEADER} expected at most {len(body)}, got '{header[:40]}'")
        size = int(header)
    if size > limits.json:
        raise V2Error(f"the JSON of the body is larger than {limits.json} bytes", 413)
    row = json_object(body[:size])
    inputs = _list(row, "inputs", limits)
    if "inputs" not in row:
        raise V2Error("the request has no 'inputs'")
    parameters = _parameters(row)
    rest, tensors = memoryview(body)[size:], dict[str, np.ndarray]()
    for each in inputs:
        name = _name(each, "an input")
        if name in tensors:
            raise V2Error(f"input '{name}' is given twice")
        tensors[name], rest = _tensor(name, each, rest)
    if len(rest):
        raise V2Error(f"{len(rest)} bytes follow the last tensor")
    all_binary = parameters.get("binary_data_output") is True
    outputs, binary = None, set[str]()
    if row.get("outputs") is not None and _list(row, "outputs", limits):
        outputs = []
        for each in _list(row, "outputs", limits):
            name = _name(each, "an output")
            if name in outputs:
                raise V2Error(f"output '{name}' is asked for twice")
            outputs.append(name)
            if _parameters(each).get("binary_data", all_binary) is True:
                binary.add(name)
    id_ = row.get("id", "")
    if not isinstance(id_, str) or len(id_) > 1000 or not is_unicode(id_):
        raise V2Error("'id' expected a text of at most 1000 characters")
    return InferRequest(
        tensors, None if outputs is None else tuple(outputs), frozenset(binary), all_binary, id_,
        parameters,
    )  # fmt: skip


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Errors: V2Error for a repeated key: parsers differ on it."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [k for k, _ in pairs]
        twice = next(k for k in names if names.count(k) > 1)
        raise V2Error(f"the JSON has the key {ascii(twice)[:80]} twice")
    return found


def json_object(text: bytes) -> dict[str, Any]:
    """Return the object that JSON in UTF-8 stands for. Errors: V2Error."""
    if text[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE) or b"\0" in text[:4]:
        raise V2Error("the JSON is not in UTF-8")
    try:
        # NaN and Infinity are no JSON, but Python's clients write them: the strings for them are
        # used
        found = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=Constant)
    except V2Error:
        raise
    except RecursionError:
        raise V2Error("the JSON nests too deep") from None
    except UnicodeDecodeError:
        raise V2Error("the JSON is not in UTF-8") from None
    except ValueError as e:
        raise V2Error(f"the body is no JSON: {str(e)[:200].lower()}") from None
    if not isinstance(found, dict):
        raise V2Error(f"the body expected an object, got {type(found).__name__}")
    return found


def _list(row: Mapping[str, Any], key: str, limits: Limits) -> list[Any]:
    found = row.get(key, [])
    if not isinstance(found, list) or len(found) > limits.tensors:
        raise V2Error(f"'{key}' expected a list of at most {limits.tensors} tensors")
    return found


def _parameters(row: Mapping[str, Any]) -> dict[str, Any]:
    found = row.get("parameters")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise V2Error("'parameters' expected an object")
    return found


def _name(row: object, what: str) -> str:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        raise V2Error(f"{what} expected an object with a 'name'")
    if not is_unicode(row["name"]):
        raise V2Error(f"{what} expected a 'name' of Unicode, got {ascii(row['name'])[:80]}")
    return row["name"]


def _tensor(name: str, row: Mapping[str, Any], rest: memoryview) -> tuple[np.ndarray, memoryview]:
    """Return a tensor of a request, and the bytes behind it."""
    datatype = row.get("datatype")
    if not isinstance(datatype, str) or datatype not in (*DTYPES, BYTES):
        known = ", ".join((*DTYPES, BYTES))
        raise V2Error(f"input '{name}': 'datatype' expected one of {known}")
    shape = checked_shape(name, row.get("shape"))
    size = _parameters(row).get("binary_data_size")
    if size is None:
        return from_json(name, datatype, shape, row.get("data")), rest
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(rest):
        raise V2Error(
            f"input '{name}': 'binary_data_size' expected at most the {len(rest)} bytes that "
            f"follow, got {str(size)[:40]}"
        )
    return from_bytes(name, datatype, shape, rest[:size]), rest[size:]


def _is_binary(request: InferRequest, name: str) -> bool:
    return name in request.binary or (request.outputs is None and request.all_binary)


def _least_bytes(request: InferRequest, name: str, array: np.ndarray) -> int:
    """Return the least number of bytes of an output in a response; JSON has at least `0, ` per
    value.
    """
    return array.nbytes if _is_binary(request, name) else 3 * array.size


def encode_response(
    request: InferRequest,
    model: str,
    version: str,
    outputs: Sequence[tuple[str, np.ndarray]],
    limits: Limits = Limits(),
) -> tuple[bytes, dict[str, str]]:
    """Return the body of a response, and its headers. Errors: V2Error if it is too large."""
    least = sum(_least_bytes(request, n, a) for n, a in outputs)
    if least > limits.response:
        raise V2Error(
            f"the response has at least {least} bytes, the limit is {limits.response}: ask for "
            "fewer outputs, or for binary tensors"
        )
    rows: list[dict[str, Any]] = []
    tensors: list[bytes] = []
    for name, array in outputs:
        row: dict[str, Any] = {
            "name": name, "datatype": datatype_name(array), "shape": list(array.shape),
        }  # fmt: skip
        if _is_binary(request, name):
            tensors.append(to_bytes(array))
            row["parameters"] = {"binary_data_size": len(tensors[-1])}
        else:
            row["data"] = to_json(array)
        rows.append(row)
    found: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": rows}
    if request.id:
        found["id"] = request.id
    text = json.dumps(found, allow_nan=False).encode()
    if not tensors:
        return text, {"content-type": "application/json"}
    headers = {"content-type": "application/octet-stream", HEADER: str(len(text))}
    return b"".join([text, *tensors]), headers
