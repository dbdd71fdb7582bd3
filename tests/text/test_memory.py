"""Memory of caches: what was written, and no more."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from mgx_mlir.text.slots import _zeros


def _held() -> int:
    """Bytes of this process that no file backs."""
    text = Path("/proc/self/status").read_text()
    return sum(int(n) << 10 for n in re.findall(r"^Rss(?:Anon|Shmem):\s*(\d+)", text, re.M))


def test_a_row_takes_a_page_and_not_a_large_one() -> None:
    """Eight slots, three heads of 4096 rows: a row of each head is 24 pages of 4 KB."""
    before = _held()
    cache = _zeros((8, 3, 4096, 64), np.dtype(np.float32))
    cache[:, :, 7] = 1
    assert cache.sum() == 8 * 3 * 64
    assert cache.ctypes.data % 64 == 0
    # reading the zeros of the others takes none either
    assert _held() - before < 4 << 20
