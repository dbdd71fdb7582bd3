"""Test inputs of a program: MIGraphX's pseudo-random numbers, in ranges that the program can use.

MIGraphX seeds each parameter's numbers by its name, and its integers exceed the rows of any table.
For an integer input that indexes a table, or becomes a mask, such numbers make every output NaN or
an error, and comparing NaNs proves nothing. So the range of each input follows from its use in the
program (`debug.draws`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import ShapeError, UsageError
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.core.random_numbers import random_elements, random_words
from mgx_mlir.debug.purposes import Draw
from mgx_mlir.frontends.argument_files import read_argument
from mgx_mlir.programs.signature import Port, Signature
from mgx_mlir.rewrite.pipeline import did_you_mean

_WORD = 0xFFFFFFFFFFFFFFFF
_MOST = 1 << 62  # bytes of an array


def make_inputs(
    signature: Signature,
    uses: Mapping[str, Draw],
    *,
    dims: Mapping[str, Sequence[int]] | None = None,
    batch: int = 1,
    fill0: Iterable[str] = (),
    fill1: Iterable[str] = (),
    seed: int = 0,
    files: Mapping[str, str] | None = None,
) -> dict[str, np.ndarray]:
    """Draw an array for every input, seeded by its name, so that every run has the same inputs.

    `dims` sets the shapes of inputs; other dynamic dims are `batch`, or the nearest size in their
    range. `files` names files of inputs. Errors: UsageError for a name that is no input, or dims
    that do not fit; FileError for files that do not fit the input.
    """
    read = dict(files or {})
    given = {**(dims or {}), **dict.fromkeys(read, ())}
    zeros, ones = set(fill0), set(fill1)
    known = [p.name for p in signature.inputs]
    for name in [*zeros, *ones, *given]:
        if name not in known:
            raise UsageError(
                f"the model has no input '{name}', it has: {', '.join(known) or 'none'}",
                notes=did_you_mean(name, known),
            )
    both = sorted(zeros & ones)
    if both:
        raise UsageError(f"input '{both[0]}' is in both --fill0 and --fill1")
    filled = sorted((zeros | ones) & set(read))
    if filled:
        raise UsageError(f"input '{filled[0]}' is in both --load-arg and --fill0 or --fill1")
    out = {p.name: read_argument(read[p.name], p) for p in signature.inputs if p.name in read}
    given = {**(dims or {}), **{name: array.shape for name, array in out.items()}}
    sizes: dict[str, int] = {}
    # files come first: they set the dims that inputs share
    for p in sorted(signature.inputs, key=lambda p: p.name not in out):
        extents = _extents(p, given.get(p.name), batch, sizes)
        dtype = dtypes.from_name(p.dtype)
        if p.name in out:
            continue
        if p.name in zeros or p.name in ones:
            out[p.name] = np.full(extents, p.name in ones).astype(dtype.np)
        else:
            out[p.name] = _drawn(p.name, extents, dtype, uses.get(p.name, Draw()), seed)
    return out


def _extents(
    p: Port, given: Sequence[int] | None, batch: int, sizes: dict[str, int]
) -> tuple[int, ...]:
    if given is not None:
        fits = len(given) == len(p.dims) and all(
            d in (-1, n) for d, n in zip(p.dims, given, strict=True)
        )
        if not fits:
            raise UsageError(f"input '{p.name}' is {p}, got {{{', '.join(map(str, given))}}}")
        for r, n in zip(p.ranges, given, strict=False):
            if r.symbol:
                sizes.setdefault(r.symbol, n)
        return tuple(given)
    found = []
    for i, d in enumerate(p.dims):
        r = p.ranges[i] if i < len(p.ranges) else None
        if d >= 0:
            found.append(d)
        elif r is None:
            found.append(batch)
        else:
            size = max(batch, r.min) if r.max is None else min(max(batch, r.min), r.max)
            found.append(sizes.setdefault(r.symbol, size) if r.symbol else size)
    return tuple(found)


def _drawn(
    name: str, extents: tuple[int, ...], dtype: dtypes.DType, use: Draw, seed: int
) -> np.ndarray:
    word = (name_hash(name) + seed * 0x9E3779B97F4A7C15) & _WORD
    if use.purpose == "size":
        return np.ones(extents, dtype.np)
    if use.purpose == "index":
        count = int(np.prod(extents, dtype=np.int64))
        below = np.uint64(min(use.bound, int(dtype.highest()) + 1))
        return (random_words(count, word) % below).astype(dtype.np).reshape(extents)
    if use.purpose == "mask":
        return _mask(extents, word).astype(dtype.np)
    count = math.prod(extents)
    if count * dtype.size > _MOST:
        raise ShapeError(
            f"input '{name}' of dims {list(extents)} has more elements than an array can hold"
        )
    out = aligned_empty(extents, dtype.np)
    out[...] = random_elements(count, dtype, word).reshape(extents)
    return out


def _mask(extents: tuple[int, ...], word: int) -> np.ndarray:
    """Return a mask of rows of 1 that become 0 somewhere in their second half, never all 0."""
    if not extents or not extents[-1]:
        return np.ones(extents, np.bool_)
    rows = int(np.prod(extents[:-1], dtype=np.int64))
    last = extents[-1]
    half = (last + 1) // 2
    lengths = half + (random_words(rows, word) % np.uint64(last - half + 1)).astype(np.int64)
    return (np.arange(last) < lengths[:, None]).reshape(extents)


def name_hash(name: str) -> int:
    """Return MIGraphX's seed of a parameter: libstdc++'s std::hash of its name."""
    mix, data = 0xC6A4A7935BD1E995, name.encode(errors="surrogatepass")
    value = 0xC70F6907 ^ (len(data) * mix & _WORD)
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * mix & _WORD
        value = (value ^ (word ^ word >> 47) * mix & _WORD) * mix & _WORD
    if len(data) > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * mix & _WORD
    value = (value ^ value >> 47) * mix & _WORD
    return value ^ value >> 47
