"""Bounded reader of protobuf's wire format, which finds large tensor payloads and cuts them out.

A model of N bytes of weights is parsed without holding them: every large tensor payload stays in
the file, known by offset and length, and a copy of the model without those bytes goes to the
protobuf parser. A WireSchema says where a format keeps its tensors.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import read_at

LARGE = 4096  # smaller payloads stay in the message
MAX_NESTING = 64  # nesting limit of messages; protobuf's own is 100
_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
_FIXED = {_I64: 8, _I32: 4}


@dataclass(frozen=True)
class WireSchema:
    """The field numbers by which a format's protobuf messages hold tensors."""

    what: str  # name of the format in messages
    root: str  # name of the outermost message in `inside`
    # message -> {field: message to look into}, from `root` to "tensor"
    inside: Mapping[str, Mapping[int, str]]
    dtype: int  # field of a tensor with its element type
    raw: int  # field of a tensor with a payload of any type
    typed: Mapping[int, int]  # fields of a tensor with a payload of one type: field -> type
    mark: int  # text or bytes field of a tensor that takes the mark of a cut payload


@dataclass(frozen=True)
class Extent:
    """Location of a tensor's little-endian bytes in the source, and their field."""

    offset: int
    length: int
    number: int


@dataclass
class Stripped:
    """A model without its large payloads; `extent_of` returns the location of a tensor's bytes."""

    data: bytes
    mark: str
    extents: list[Extent] = field(default_factory=list)

    def extent_of(self, note: str | bytes) -> Extent | None:
        """Return the extent for a tensor's mark, which only the scan can have written."""
        mark = self.mark.encode() if isinstance(note, bytes) else self.mark
        if not self.extents or not note.startswith(mark):  # type: ignore[arg-type]
            return None
        return self.extents[int(note[len(mark) :])]


class Source:
    """Random access to a file descriptor or a buffer; small reads go through a window."""

    WINDOW = 1 << 16

    def __init__(
        self, name: str, size: int, read: Callable[[int, int], bytes], what: str = "ONNX model"
    ) -> None:
        self.name, self.size, self._read, self.what = name, size, read, what
        self._start, self._data = 0, b""

    @staticmethod
    def of_file(name: str, fd: int) -> Source:
        """Return the source of an open file."""
        return Source(name, os.fstat(fd).st_size, lambda at, n: read_at(fd, n, at))

    @staticmethod
    def of_bytes(name: str, data: bytes | memoryview) -> Source:
        """Return the source of bytes in memory."""
        view = memoryview(data).cast("B")
        return Source(name, len(view), lambda at, n: bytes(view[at : at + n]))

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes; FileError if the source ends before."""
        if offset + length > self.size:
            raise self.error(f"is cut short: {length} bytes expected at offset {offset}")
        end = self._start + len(self._data)
        if not (self._start <= offset and offset + length <= end):
            if length > self.WINDOW:
                return self._exactly(offset, length)
            self._start = offset
            self._data = self._exactly(offset, min(self.WINDOW, self.size - offset))
        at = offset - self._start
        return self._data[at : at + length]

    def _exactly(self, offset: int, length: int) -> bytes:
        parts, have = [], 0
        while have < length:
            part = self._read(offset + have, length - have)
            if not part:
                raise self.error(f"is cut short: {length} bytes expected at offset {offset}")
            parts.append(part)
            have += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def error(self, message: str) -> FileError:
        """Return the error for a file that is damaged in its wire format."""
        return FileError(f"not a readable {self.what}: the file {message}", location=self.name)


def strip(source: Source, layout: WireSchema) -> Stripped:
    """Cut the large tensor payloads out of a serialized message, the layout's root.

    Raises FileError where the bytes are not a protobuf message, or end too early.
    """
    source.what = layout.what
    out = Stripped(b"", f"{secrets.token_hex(16)}:")
    out.data = b"".join(_message(source, layout, layout.root, 0, source.size, out, 0))
    return out


def _message(
    source: Source, layout: WireSchema, kind: str, start: int, end: int, out: Stripped, depth: int
) -> list[bytes]:
    """Return the bytes of one message; nested ones are rebuilt if a payload was cut out."""
    if depth > MAX_NESTING:
        raise source.error(f"nests messages deeper than {MAX_NESTING}")
    if kind == "tensor":
        return _tensor(source, layout, start, end, out)
    inside = layout.inside[kind]
    chunks: list[bytes] = []
    kept, at = start, start  # [kept, at) is copied unchanged
    while at < end:
        number, wire, value, head, after = _field(source, at, end)
        if wire == _LEN and value >= LARGE and number in inside:
            chunks.append(_copy(source, kept, at))
            part = _message(source, layout, inside[number], head, after, out, depth + 1)
            chunks += [_varint(number << 3 | _LEN), _varint(sum(map(len, part))), *part]
            kept = after
        at = after
    chunks.append(_copy(source, kept, end))
    return chunks


def _tensor(source: Source, layout: WireSchema, start: int, end: int, out: Stripped) -> list[bytes]:
    data_type, payloads, at = 0, [], start
    while at < end:
        number, wire, value, head, after = _field(source, at, end)
        if number == layout.dtype and wire == _VARINT:
            data_type = value
        elif wire == _LEN and value >= LARGE and (number == layout.raw or number in layout.typed):
            payloads.append((number, at, head, after))
        at = after
    if len(payloads) != 1:
        return [_copy(source, start, end)]
    number, at, head, after = payloads[0]
    if number != layout.raw and layout.typed[number] != data_type:
        return [_copy(source, start, end)]
    mark = f"{out.mark}{len(out.extents)}".encode()
    out.extents.append(Extent(head, after - head, number))
    # the last of a repeated singular field wins, so the mark follows the tensor's own value
    note = _varint(layout.mark << 3 | _LEN) + _varint(len(mark)) + mark
    return [_copy(source, start, at), _copy(source, after, end), note]


def _field(source: Source, at: int, end: int) -> tuple[int, int, int, int, int]:
    """Parse the field at `at`: number, wire type, value or length, start of payload, end of
    field.
    """
    tag, head = _read_varint(source, at, end)
    number, wire = tag >> 3, tag & 7
    if number == 0 or number > 0x1FFFFFFF:
        raise source.error(f"has field number {number} at offset {at}")
    if wire == _VARINT:
        value, after = _read_varint(source, head, end)
        return number, wire, value, head, after
    if wire == _LEN:
        value, head = _read_varint(source, head, end)
    elif wire in _FIXED:
        value = _FIXED[wire]
    else:
        raise source.error(f"has a field of unknown wire type {wire} at offset {at}")
    if head + value > end:
        raise source.error(
            f"is cut short or damaged: a field of {value} bytes at offset {head} passes the end "
            f"of its message at {end}"
        )
    return number, wire, value, head, head + value


def _read_varint(source: Source, at: int, end: int) -> tuple[int, int]:
    data = source.bytes_at(at, min(10, end - at))
    value = 0
    for i, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + i + 1
    raise source.error(f"has no valid number at offset {at}")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _copy(source: Source, start: int, end: int) -> bytes:
    return source.bytes_at(start, end - start) if end > start else b""
