"""Files of the .gguf form: codes and scales beside gguf's own numbers, and headers that lie."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.core.errors import FileError
from mgx_mlir.text.gguf_blocks import blocks_of
from mgx_mlir.text.gguf_header import SIZES, read_header

gguf = pytest.importorskip("gguf")


KINDS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")


def drawn(kind: str, rows: int = 3, columns: int = 512) -> np.ndarray:
    """Rows of random bytes, whose scales are numbers, some of them 0 or negative."""
    rng = np.random.default_rng(4)
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    blocks = rng.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    places = {"Q6_K": [208], "Q4_0": [0], "Q5_0": [0], "Q8_0": [0]}.get(kind, [0, 2])
    for at in places:
        halves = rng.standard_normal(len(blocks)).astype(np.float16)
        halves[::3] = 0
        blocks[:, at : at + 2] = halves[:, None].view(np.uint8)
    return blocks.reshape(rows, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_codes_and_scales_are_those_of_gguf(kind: str) -> None:
    raw = drawn(kind)
    want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind])
    found = blocks_of(raw, kind)
    assert found.bits == (4 if "4_" in kind else 8)
    assert found.codes.shape == (3, 512 // found.block, found.block * found.bits // 8)
    made = found.floats()
    if found.zeros is None:
        assert np.array_equal(made, want)
        return
    # with codes of 0 a weight is its block's minimum
    minima = replace(found, codes=np.zeros_like(found.codes)).floats()
    # a zero point, its difference from a code and the product of both are rounded
    largest = np.maximum(np.abs(want), np.abs(minima))
    assert (np.abs(made - want) <= 2 * np.spacing(largest)).all()


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def file(
    tensors: int = 1, pairs: int = 1, *, version: int = 3, dims: tuple[int, ...] = (64, 2),
    kind: int = 8, offset: int = 0, key: bytes = text("a"), value: bytes = struct.pack("<II", 4, 7),
    data: int = 136,
) -> bytes:  # fmt: skip
    """One value `a` and one tensor `w`: Q8_0, 2 x 64."""
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, pairs) + key + value
    head += text("w") + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
    return head + bytes(-len(head) % 32) + bytes(data)


def test_a_header(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(file())
    found = read_header(tmp_path / "m.gguf")
    assert found.values == {"a": 7}
    [entry] = found.tensors.values()
    assert (entry.name, entry.dims, entry.size) == ("w", (2, 64), 136)
    assert entry.start + entry.size == (tmp_path / "m.gguf").stat().st_size


def test_sizes_of_blocks() -> None:
    """The table is that of the package, which a warm load does not import."""
    assert {int(k): v for k, v in gguf.GGML_QUANT_SIZES.items()} == SIZES


HUGE = 1 << 60
HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "fewer than 24 bytes"),
    "another kind": (b"PK" + bytes(30), "begins with GGUF"),
    "version": (file(version=1), "version 1"),
    "other byte order": (file(version=3 << 24), "big-endian"),
    "cut in the data": (file()[:-1], "'w' ends at byte"),
    "cut in the head": (file()[:60], "are left"),
    "tensors": (file(tensors=HUGE), f"{HUGE} tensors do not fit"),
    "values": (file(pairs=HUGE), f"{HUGE} values do not fit"),
    "string": (file(value=struct.pack("<IQ", 8, HUGE)), f"expected {HUGE} bytes"),
    "array": (file(value=struct.pack("<IIQ", 9, 4, HUGE)), f"{HUGE} elements of 'a'"),
    "strings": (file(value=struct.pack("<IIQ", 9, 8, HUGE)), f"{HUGE} elements of 'a'"),
    "arrays in arrays": (file(value=struct.pack("<IIQ", 9, 9, 1)), "elements of the type 9"),
    "type of a value": (file(value=struct.pack("<II", 99, 0)), "unknown type 99"),
    "no text": (file(key=text(b"\xff\xfe")), "no UTF-8"),
    "type of a tensor": (file(kind=200), "unknown type 200"),
    "rank": (file(dims=()), "rank 0"),
    "extent": (file(dims=(32, HUGE, HUGE)), "'w' ends at byte"),
    "rows that are no blocks": (file(dims=(33, 2)), "a multiple of 32"),
    "place": (file(offset=1 << 63), "'w' ends at byte"),
    "twice": (file(pairs=2, value=struct.pack("<II", 4, 7) + text("a") + struct.pack("<II", 4, 7)),
              "'a' comes twice"),
    "alignment": (file(key=text("general.alignment"), value=struct.pack("<II", 4, 3)),
                  "a power of 2"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_header_that_lies(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(data)
    with pytest.raises(FileError) as e:
        read_header(tmp_path / "m.gguf")
    assert why in str(e.value)
    assert len(str(e.value).splitlines()) == 1


def test_no_cut_is_taken(tmp_path: Path) -> None:
    """A shorter file is refused."""
    whole = file()
    for size in range(0, len(whole), 7):
        (tmp_path / "m.gguf").write_bytes(whole[:size])
        with pytest.raises(FileError):
            read_header(tmp_path / "m.gguf")
