"""The checksum of checkpoints against published values and a byte at a time."""

from __future__ import annotations

import numpy as np
import pytest

from mgx_mlir.frontends.tf.crc32c import crc32c, masked


def one_by_one(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "wanted"),  # RFC 3720, B.4
    [
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"", 0),
    ],
)
def test_published_values(data: bytes, wanted: int) -> None:
    assert crc32c(data) == wanted


@pytest.mark.parametrize("size", [1, 511, 512, 513, 1024, 1025, 4096, 5000, 65536 + 700])
def test_sizes(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    assert crc32c(data) == one_by_one(data.tobytes())
    assert crc32c(data.tobytes()) == crc32c(data)


def test_the_mask() -> None:
    """LevelDB's: a checksum of data that holds checksums is weak."""
    assert masked(0) == 0xA282EAD8
    assert masked(1 << 15) == 0xA282EAD9
