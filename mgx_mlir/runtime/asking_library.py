"""A shared object that asks Linux for AMX's registers where it is loaded.

A program that another one starts has none until it asks, and IREE's tools do not
(`hardware/machine.py`). In `LD_PRELOAD` the object asks for them. It has one function, which the
loader calls, and is the same bytes everywhere.
"""

from __future__ import annotations

import struct
from pathlib import Path

from mgx_mlir.hardware.machine import TILE_REQUEST

_PAGE = 0x1000
_HEADER, _SEGMENT, _SYMBOL = 64, 56, 24  # bytes
_CODE, _TABLES, _LIST = 0x200, 0x240, _PAGE  # offsets in the file and in memory
# tags of the list that the loader reads
_HASH, _STRINGS, _SYMBOLS, _STRINGS_SIZE, _SYMBOL_SIZE, _INIT = 4, 5, 6, 10, 11, 12


def library() -> bytes:
    """Return the file (ELF, x86-64)."""
    number, request, feature = TILE_REQUEST
    # mov eax, number; mov edi, request; mov esi, feature; syscall; ret
    code = struct.pack(
        "<BIBIBIHB", 0xB8, number, 0xBF, request, 0xBE, feature, 0x050F, 0xC3
    )  # fmt: skip
    hashes, symbols = _TABLES, _TABLES + 16
    strings = symbols + _SYMBOL
    entries = (
        (_HASH, hashes), (_STRINGS, strings), (_SYMBOLS, symbols), (_STRINGS_SIZE, 1),
        (_SYMBOL_SIZE, _SYMBOL), (_INIT, _CODE), (0, 0),
    )  # fmt: skip
    listed = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    shared, x86_64, count = 3, 62, 3
    header = identity + struct.pack(
        "<HHIQQQIHHHHHH", shared, x86_64, 1, 0, _HEADER, 0, 0, _HEADER, _SEGMENT, count, 0, 0, 0
    )
    load, dynamic, can_run, can_write = 1, 2, 5, 6
    end = strings + 1
    segments = (
        (load, can_run, 0, 0, 0, end, end, _PAGE),
        (load, can_write, _LIST, _LIST, _LIST, len(listed), len(listed), _PAGE),
        (dynamic, can_write, _LIST, _LIST, _LIST, len(listed), len(listed), 8),
    )
    found = bytearray(_LIST + len(listed))
    found[:_HEADER] = header
    for i, segment in enumerate(segments):
        struct.pack_into("<IIQQQQQQ", found, _HEADER + i * _SEGMENT, *segment)
    found[_CODE : _CODE + len(code)] = code
    struct.pack_into("<IIII", found, hashes, 1, 1, 0, 0)  # one list of symbols, which is empty
    found[_LIST:] = listed
    return bytes(found)


def environment(folder: Path) -> dict[str, str]:
    """Return variables with which a program that is started asks; writes the object there."""
    file = folder / "asks.so"
    file.write_bytes(library())
    return {"LD_PRELOAD": str(file)}
