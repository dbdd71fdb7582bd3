"""Damaged files: bits, lengths, order and values changed, as raw bytes or within the tree."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

from mgx_mlir.frontends.mxr.decode import decode_json, decode_msgpack
from mgx_mlir.printers.tree_files import Binary, json_text, msgpack_bytes

Tree = Any
HEAD = struct.Struct("<8sQI32s")  # blob file: magic, length, sum and signature of the header

# msgpack heads that state lengths which are not there, and ends of what numbers can be
HEADS = (
    b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xf0", b"\xdc\xff\xff", b"\xde\xff\xff", b"\xc5\xff\xff", b"\xc1", b"\x80",
    b"\x90", b"\xc0", b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", b"\xd3\x80" + bytes(7),
    b"\xcb\x7f\xf0" + bytes(6), b"\xc7\x05\x01",
)  # fmt: skip
WORDS = (
    b"9" * 30, b"-1", b"1e999", b"NaN", b"null", b"[[[[", b"{}", b'"\\ud800"', b'"', b"\xff",
    b"0x10", b'{"bytes":[300]}', b"]", b"}}", b"1.5",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, 7, 63, 64, 65, 255, 2**31 - 1, 2**31, 2**40 - 1, 2**40, 2**62, 2**63 - 1,
           2**63, 2**64 - 1, -(2**63), 1.5, 1e300, float("inf"), float("nan"))  # fmt: skip
TEXTS = ("", "x", "main", "@0", "@param", "@literal", "@return", "if", "loop", "pointwise",
         "select_module", "get_tuple_elem", "unknown:x", "float_type", "tuple_type", "fp4x2_type",
         "a\0b", "a\nb", "\u00e4" * 300, "z" * 100_000)  # fmt: skip


def damaged(data: bytes, rng: random.Random, donors: list[bytes], *, trees: bool = True) -> bytes:
    """A file with one to eight changes, never as it was; within its tree where it has one."""
    found = data
    while found == data:
        found = _changed(data, rng, donors, trees)
    return found


def _changed(data: bytes, rng: random.Random, donors: list[bytes], trees: bool) -> bytes:
    is_json = data[:1] == b"{"
    if trees and rng.random() < 0.55:
        return _within_tree(data, rng, is_json)
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        rng.choice(RAW)(raw, rng, donors, WORDS if is_json else HEADS)
    return bytes(raw)


def damaged_header(data: bytes, rng: random.Random) -> bytes:
    """A blob file whose header says other things, with a sum that fits."""
    magic, length, _, signature = HEAD.unpack_from(data)
    header = _within_tree(data[HEAD.size : HEAD.size + length], rng, True)
    start = -(-(HEAD.size + length) // 4096) * 4096
    head = HEAD.pack(magic, len(header), zlib.crc32(signature + header), signature) + header
    return head + bytes(-len(head) % 4096) + data[start:]


# ---- of bytes ----------------------------------------------------------------------------------


def _at(raw: bytearray, rng: random.Random) -> int:
    return rng.randrange(len(raw) + 1)


def _flip(raw: bytearray, rng: random.Random, _d: Any, _h: Any) -> None:
    if raw:
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)


def _byte(raw: bytearray, rng: random.Random, _d: Any, _h: Any) -> None:
    if raw:
        raw[rng.randrange(len(raw))] = rng.randrange(256)


def _cut(raw: bytearray, rng: random.Random, _d: Any, _h: Any) -> None:
    del raw[_at(raw, rng) :]


def _drop(raw: bytearray, rng: random.Random, _d: Any, _h: Any) -> None:
    start = _at(raw, rng)
    del raw[start : start + rng.choice((1, 4, 40, 400))]


def _repeat(raw: bytearray, rng: random.Random, _d: Any, _h: Any) -> None:
    start = _at(raw, rng)
    part = raw[start : start + rng.choice((1, 8, 100, 1000))]
    raw[start:start] = part * rng.choice((1, 2, 50))


def _swap(raw: bytearray, rng: random.Random, _d: Any, _h: Any) -> None:
    size = rng.choice((1, 4, 16, 64))
    a, b = sorted((_at(raw, rng), _at(raw, rng)))
    if a + size <= b:
        raw[a : a + size], raw[b : b + size] = raw[b : b + size], raw[a : a + size]


def _head(raw: bytearray, rng: random.Random, _d: Any, heads: tuple[bytes, ...]) -> None:
    start, head = _at(raw, rng), rng.choice(heads)
    raw[start : start + rng.choice((0, 1, len(head)))] = head


def _deep(raw: bytearray, rng: random.Random, _d: Any, heads: tuple[bytes, ...]) -> None:
    start, count = _at(raw, rng), rng.choice((10, 300, 20_000))
    opening = rng.choice((b"[", b'{"a":') if heads is WORDS else (b"\x91", b"\x81\xa1a"))
    raw[start:start] = opening * count


def _splice(raw: bytearray, rng: random.Random, donors: list[bytes], _h: Any) -> None:
    donor = rng.choice(donors)
    start, at = _at(raw, rng), rng.randrange(len(donor) + 1)
    raw[start : start + rng.choice((0, 30, 500))] = donor[at : at + rng.choice((30, 500))]


RAW: tuple[Callable[..., None], ...] = (
    _flip, _flip, _byte, _byte, _cut, _drop, _repeat, _swap, _head, _head, _deep, _splice,
)  # fmt: skip


# ---- of the tree -------------------------------------------------------------------------------


def _within_tree(data: bytes, rng: random.Random, is_json: bool) -> bytes:
    tree = _plain(decode_json(data) if is_json else decode_msgpack(data))
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        places: list[tuple[Any, Any]] = []
        _places(tree, places)
        if not places:
            break
        container, key = rng.choice(places)
        rng.choice(TREE)(container, key, rng, places)
    if is_json:
        return json_text(tree).encode(errors="surrogatepass")
    return msgpack_bytes(tree)


def _plain(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {k: _plain(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [_plain(v) for v in tree]
    return Binary(bytes(tree)) if isinstance(tree, memoryview) else tree


def _places(tree: Tree, found: list[tuple[Any, Any]]) -> None:
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        found.append((tree, key))
        if isinstance(tree[key], dict | list):
            _places(tree[key], found)


def _value(rng: random.Random) -> Tree:
    return rng.choice((
        rng.choice(NUMBERS), rng.choice(NUMBERS), rng.choice(TEXTS), None, True, [], {},
        Binary(b""), Binary(bytes(8)), [rng.choice(NUMBERS)] * rng.choice((1, 2, 70)),
        {"min": 1, "max": rng.choice(NUMBERS)}, [rng.choice(TEXTS)], {rng.choice(TEXTS): 1},
    ))  # fmt: skip


def _replace(container: Any, key: Any, rng: random.Random, _p: Any) -> None:
    container[key] = _value(rng)


def _number(container: Any, key: Any, rng: random.Random, places: list[tuple[Any, Any]]) -> None:
    numbers = [(c, k) for c, k in places if k in _there(c) and type(c[k]) in (int, float)]
    if numbers:
        c, k = rng.choice(numbers)
        near = (c[k] + 1, c[k] - 1, c[k] * 2)
        c[k] = rng.choice((*NUMBERS, *(v for v in near if -(2**63) <= v < 2**64)))


def _text(container: Any, key: Any, rng: random.Random, places: list[tuple[Any, Any]]) -> None:
    texts = [(c, k) for c, k in places if k in _there(c) and isinstance(c[k], str)]
    if texts:
        (c, k), (d, n) = rng.choice(texts), rng.choice(texts)
        c[k] = rng.choice((d[n], rng.choice(TEXTS), c[k] + "x", c[k][:-1]))


def _remove(container: Any, key: Any, _rng: random.Random, _p: Any) -> None:
    del container[key]


def _other(container: Any, key: Any, rng: random.Random, places: list[tuple[Any, Any]]) -> None:
    """Another part of the tree in its place: values swapped between keys, nodes within nodes."""
    c, k = rng.choice(places)
    if k in _there(c) and key in _there(container):
        copied = _plain(json.loads(json.dumps(c[k], default=lambda b: None)))
        container[key] = copied


def _double(container: Any, key: Any, rng: random.Random, _p: Any) -> None:
    if isinstance(container, list):
        container[key:key] = [container[key]] * rng.choice((1, 3, 100))
    else:
        container[f"{key}2"] = container.pop(key)


def _order(container: Any, key: Any, rng: random.Random, _p: Any) -> None:
    if isinstance(container, list):
        rng.shuffle(container)
    else:
        items = list(container.items())
        rng.shuffle(items)
        container.clear()
        container.update(items)


def _nest(container: Any, key: Any, rng: random.Random, _p: Any) -> None:
    value = container[key]
    for _ in range(rng.choice((1, 2, 30, 150))):
        value = [value] if rng.random() < 0.5 else {"sub": [value]}
    container[key] = value


def _bits(container: Any, key: Any, rng: random.Random, places: list[tuple[Any, Any]]) -> None:
    blobs = [(c, k) for c, k in places if k in _there(c) and isinstance(c[k], Binary)]
    if blobs:
        c, k = rng.choice(blobs)
        raw = bytearray(c[k].data)
        rng.choice((_flip, _byte, _cut, _drop, _repeat))(raw, rng, [], HEADS)
        c[k] = Binary(bytes(raw))


def _there(container: Any) -> Any:
    return container if isinstance(container, dict) else range(len(container))


TREE: tuple[Callable[..., None], ...] = (
    _replace, _number, _number, _text, _text, _remove, _other, _double, _order, _nest, _bits,
)  # fmt: skip
