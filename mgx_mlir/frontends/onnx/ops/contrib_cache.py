"""com.microsoft: quantised key-value caches, and caches of only the latest rows."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import FLOAT, INT8, INT64, UINT8, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.records import dataclass
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    compare,
    convert,
    extent_as,
    less_equal,
    number,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.casts import cast_to
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_BITS = {INT8: 8, UINT8: 4, dtypes.FP8E4M3FN: 8}  # bits of an element, by the type of a cache


@dataclass(frozen=True)
class Format:
    """Storage of a cache's rows: `scale` times i8, f8E4M3FN, or 4-bit numbers, two per byte.

    The lower half of a byte comes first; it stores the number + 8.
    """

    scale: Value
    held: DType

    def numbers(self, b: Builder, x: Value) -> Value:
        """Quantise floats; one element per number."""
        ratio = b.div(convert(b, x, FLOAT), convert(b, self.scale, FLOAT))
        if self.held.is_float:
            return cast_to(b, ratio, self.held, True)
        half = 1 << (_BITS[self.held] - 1)
        bounds = number(b, -half, ratio), number(b, half - 1, ratio)
        return convert(b, b.clip(b.nearbyint(ratio), *bounds), INT8)

    def opened(self, b: Builder, cache: Value) -> Value:
        """Unpack a cache; one element per number."""
        if self.held is not UINT8:
            return cache
        return b.sub(convert(b, b.unpack_int4(cache, axis=-1), INT8), 8)

    def closed(self, b: Builder, numbers: Value) -> Value:
        """Pack numbers into the cache's storage."""
        if self.held is not UINT8:
            return numbers
        pairs = b.reshape(numbers, dims=[0, 0, 0, b.dims(numbers)[3] // 2, 2])
        low, high = (
            convert(b, b.add(squeeze(b, slice_(b, pairs, [4], [i], [i + 1]), [4]), 8), UINT8)
            for i in (0, 1)
        )
        return b.add(low, b.mul(high, 16))

    def floats(self, b: Builder, numbers: Value, dtype: DType) -> Value:
        """Return the numbers of a cache times its scale in `dtype`."""
        return convert(b, b.mul(convert(b, numbers, FLOAT), convert(b, self.scale, FLOAT)), dtype)


def format_of(
    b: Builder, kinds: tuple[str, str], bits: int, scale: Value | None, cache: Value | None
) -> Format | None:
    """Return the format of the key or value cache; `kinds` are their types of quantisation. None:
    floats.

    The scale may be one number or one for each channel: it is broadcast.
    """
    known = ("NONE", "PER_TENSOR", "PER_CHANNEL")
    if any(k not in known for k in kinds):
        raise ModelError(f"k_quant_type and v_quant_type expected {', '.join(known)}, got {kinds}")
    if kinds == ("NONE", "NONE"):
        return None
    if "NONE" in kinds:
        raise NotSupported("key and value cache must both be quantised, or neither")
    if cache is None or scale is None:
        raise ModelError("expected past_key, past_value, k_scale and v_scale with k_quant_type")
    held = b.dtype(cache)
    if held not in _BITS:
        raise ModelError(f"a quantised cache expected int8, uint8 or float8e4m3fn, got {held}")
    if bits not in (0, _BITS[held]):
        raise ModelError(f"kv_cache_bit_width {bits} does not fit a cache of {held}")
    return Format(scale, held)


class Window:
    """A cache that holds only the latest rows, with the new rows after them.

    `lengths`: all rows of an entry, minus 1. A cache of C rows and a window of W holds, of T rows,
    all T if they fit, else the last T - G ceil((T - C) / G) with G = C - W + 1.
    """

    def __init__(self, b: Builder, cache: Value, new: Value, lengths: Value, window: int) -> None:
        if window < 1:
            raise ModelError(f"local_window_size expected 1 or more, got {window}")
        self.b, self.cache, self.window = b, cache, window
        self.capacity = extent_as(b, cache, 2, INT64)
        known = b.const(self.capacity)
        if known is not None and int(known) < window:
            raise ModelError(f"a window of {window} rows does not fit a cache of {int(known)}")
        rows = convert(b, lengths, INT64)
        rows = squeeze(b, rows, [1]) if len(b.dims(rows)) == 2 else rows
        self.total = b.add(rows, 1)  # {batch}
        self.before = b.max(b.sub(self.total, extent_as(b, new, 2, INT64)), 0)
        self.held_before, self.held = self._held(self.before), self._held(self.total)
        self.fresh = axis_range(b, new, 2)

    def _held(self, total: Value) -> Value:
        b = self.b
        step = b.add(b.sub(self.capacity, self.window), 1)
        beyond = b.max(b.sub(total, self.capacity), 0)
        times = b.div(b.sub(b.add(beyond, step), 1), step)
        return b.sub(total, b.mul(times, step))

    def _column(self, v: Value) -> Value:
        return unsqueeze(self.b, v, [1])

    def joined(self, cache: Value, new: Value) -> tuple[Value, Value]:
        """Return the rows that queries read, {batch, heads, C + new, size}, and the updated
        cache.
        """
        b = self.b
        both = b.concat([cache, new], axis=2)
        place = b.add(self._column(b.sub(self.total, self.held)), axis_range(b, cache, 2))
        # values of rows after them do not matter
        place = b.min(place, self._column(b.sub(self.total, 1)))
        before = self._column(self.before)
        old = b.sub(place, self._column(b.sub(self.before, self.held_before)))
        late = b.add(b.sub(place, before), self.capacity)
        index = b.where(compare(b, "less", place, before), old, late)
        rows = b.gathernd(transpose(b, both, [0, 2, 1, 3]), unsqueeze(b, index, [2]), batch_dims=1)
        return both, transpose(b, rows, [0, 2, 1, 3])

    def positions(self) -> tuple[Value, Value]:
        """Return the sequence positions of the rows that queries read, and which rows are valid."""
        b = self.b
        row = axis_range(b, self.cache, 2)
        old = b.add(self._column(b.sub(self.before, self.held_before)), row)
        new = b.add(self._column(self.before), self.fresh)
        counts = compare(b, "less", row, self._column(self.held_before))
        always = b.not_(compare(b, "less", new, 0))
        return b.concat([old, new], axis=1), b.concat([counts, always], axis=1)

    def seen(self) -> Value:
        """Return whether each query may see each row: {batch, 1, queries, C + new}."""
        b = self.b
        place, counts = (unsqueeze(b, v, [1, 2]) for v in self.positions())
        query = unsqueeze(b, b.add(self._column(self.before), self.fresh), [1, 3])
        near = compare(b, "greater", place, b.sub(query, self.window))
        return b.logical_and(b.logical_and(less_equal(b, place, query), near), counts)

    def bias(self, given: Value) -> Value:
        """Return the part of a bias {batch or 1, heads or 1, queries, all rows so far} for the read
        rows.
        """
        b = self.b
        place, _ = self.positions()
        last = b.sub(extent_as(b, given, 3, INT64), 1)
        place = b.min(b.max(place, 0), last)
        entry = unsqueeze(b, arange(b, extent_as(b, place, 0, INT64)), [1])
        if b.dims(given)[0] == 1:
            entry = b.mul(entry, 0)
        index = b.concat([unsqueeze(b, v, [2]) for v in b.broadcast(entry, place)], axis=2)
        found = b.gathernd(transpose(b, given, [0, 3, 1, 2]), index)
        return transpose(b, found, [0, 2, 3, 1])
