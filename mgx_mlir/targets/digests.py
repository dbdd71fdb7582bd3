"""Keys of cache entries: digests of several parts."""

from __future__ import annotations

import hashlib

import numpy as np


def digest(*parts: bytes | str | np.ndarray) -> str:
    """Hash several parts to a key of 40 digits; the boundaries between the parts count."""
    # twice as fast as blake2b where the CPU has the instructions
    h = hashlib.sha256()
    for p in parts:
        if isinstance(p, np.ndarray):
            flat = np.ascontiguousarray(p).reshape(-1)
            view = flat.view(np.uint8).data if flat.size else memoryview(b"")
        else:
            # paths need not be UTF-8: keep Python's surrogates
            view = memoryview(p.encode(errors="surrogatepass") if isinstance(p, str) else p)
        h.update(view.nbytes.to_bytes(8, "little"))
        h.update(view)
    return h.hexdigest()[:40]
