"""CRC-32C (Castagnoli), of megabytes at numpy's speed: what checkpoints are checked by.

Large data is cut into lanes that are worked on side by side, two bytes a step. A lane's number is
then moved past the lanes behind it, which is a linear map of its 32 bits.
"""

from __future__ import annotations

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78  # reflected
_LENGTH = 512  # bytes of a lane
_LANES = 1 << 14  # at once, at the most


@functools.cache
def _table8() -> np.ndarray:
    """Return what a byte does to the number 0."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


@functools.cache
def _table16() -> np.ndarray:
    """Return what two bytes do to the number 0."""
    first = np.arange(1 << 16, dtype=np.uint32)
    table = _table8()
    once = first >> 8 ^ table[first & 0xFF]
    return once >> 8 ^ table[once & 0xFF]


def _stepped(state: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Numbers after two more bytes each."""
    return state >> 16 ^ _table16()[(state ^ words) & 0xFFFF]


@functools.cache
def _moves() -> tuple[np.ndarray, ...]:
    """Return maps past one lane, two, four, ..: the images of the 32 bits."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    for _ in range(_LENGTH // 2):
        bits = _stepped(bits, np.zeros_like(bits))
    maps = [bits]
    while 1 << len(maps) < _LANES:
        maps.append(_moved(maps[-1], maps[-1]))
    return tuple(maps)


def _moved(mapping: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Numbers under a linear map of their bits."""
    out = np.zeros_like(state)
    for i, image in enumerate(mapping):
        out ^= np.where(state >> np.uint32(i) & 1, image, np.uint32(0))
    return out


def _block(block: np.ndarray, before: int) -> int:
    """Return the number after a block whose lanes are a power of two."""
    lanes = len(block) // _LENGTH
    words = np.ascontiguousarray(block.view("<u2").reshape(lanes, _LENGTH // 2).T)
    state = np.zeros(lanes, np.uint32)
    state[0] = before
    for row in words:
        state = _stepped(state, row)
    for mapping in _moves()[: lanes.bit_length() - 1]:
        state = _moved(mapping, state[0::2]) ^ state[1::2]
    return int(state[0])


def crc32c(data: bytes | np.ndarray) -> int:
    """Return the checksum of bytes, a u8 array or a buffer."""
    array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    state, at = 0xFFFFFFFF, 0
    while (lanes := min((len(array) - at) // _LENGTH, _LANES)) > 1:
        size = _LENGTH << (lanes.bit_length() - 1)
        state = _block(array[at : at + size], state)
        at += size
    table = _table8().tolist()
    for byte in array[at:].tolist():
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """Return a checksum as tables store it."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
