"""Axis and extent arithmetic shared by the operators' inference, without operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.op import check
from mgx_mlir.core.shapes import DYN, TensorType, is_multiple, product, same_count, show_dims


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front; ShapeError where it is outside of [-rank, rank)."""
    check(
        -rank <= axis < rank,
        lambda: (
            f"{what} ({axis}) is out of range for rank {rank}, "
            + (f"expected {-rank} to {rank - 1}" if rank else "a scalar has no axis")
        ),
    )
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Iterable[int], rank: int, what: str = "axis") -> tuple[int, ...]:
    """normalize_axis for each of `axes`, which must be distinct."""
    found = tuple(normalize_axis(a, rank, what) for a in axes)
    check(len(set(found)) == len(found), lambda: f"axes {show_list(found)} are not distinct")
    return found


def axis_of(axis: int, rank: int) -> int:
    """normalize_axis without the check, for references whose op is verified."""
    return axis + rank if axis < 0 else axis


def ceil_div(a: int, b: int) -> int:
    """Return a / b rounded up."""
    return -(-a // b)


def show_list(values: Iterable[object]) -> str:
    """Return a list as messages show it: `[1, 2]`."""
    return "[" + ", ".join(str(v) for v in values) + "]"


def check_index_type(t: TensorType | None, what: str) -> None:
    """Verify that an index operand has integers, of any width."""
    if t is not None:
        check(t.dtype.is_integer, lambda: f"{what} expected an integer type, got {t.dtype.mlir}")


def check_same_dtype(types: Sequence[TensorType]) -> DType:
    """Return the common dtype of these types; ShapeError if they differ."""
    first = types[0].dtype
    for t in types[1:]:
        check(
            t.dtype is first,
            lambda t=t: f"expected operands of one type, got {first.mlir} and {t.dtype.mlir}",
        )
    return first


def check_rank(t: TensorType, rank: int, what: str) -> None:
    """Raise ShapeError unless the operand `what` has this rank."""
    check(t.rank == rank, lambda: f"{what} expected rank {rank}, got rank {t.rank}")


def out_dims(out_lens: Sequence[int], out_dyn_dims: Sequence[int]) -> tuple[int, ...] | None:
    """Return result dims from the broadcasts' attributes; None if neither is set.

    `out_dyn_dims` holds min, max pairs, one pair per dimension.
    """
    if out_lens:
        check(
            all(d >= 0 for d in out_lens),
            lambda: f"out_lens expected no negative extent, got {show_list(out_lens)}",
        )
        return tuple(out_lens)
    if out_dyn_dims:
        check(
            len(out_dyn_dims) % 2 == 0,
            lambda: f"out_dyn_dims expected min, max pairs, got {len(out_dyn_dims)} numbers",
        )
        pairs = zip(out_dyn_dims[::2], out_dyn_dims[1::2], strict=True)
        return tuple(low if low == high else DYN for low, high in pairs)
    return None


def run_time_dims(
    dims: Sequence[int], source: Sequence[int], *, allowzero: bool = False
) -> tuple[int, ...]:
    """Return the result dims of a reshape with dynamic dims.

    As `reshape_dims`, except that 0 is an extent with `allowzero`. It is also an extent if the
    input is empty and the copied extent is not 0, because computed extents are 0 for empty tensors.
    """
    if allowzero and 0 in dims:
        return tuple(0 if d == -1 else d for d in dims)
    if 0 in source and 0 in dims and -1 not in dims:
        copied = [
            source[i] if d == 0 and i < len(source) else max(d, 1) for i, d in enumerate(dims)
        ]
        if 0 not in copied:
            return tuple(dims)
    return reshape_dims(dims, source)


def reshape_dims(dims: Sequence[int], source: Sequence[int]) -> tuple[int, ...]:
    """Return the result dims of a reshape: 0 copies the extent of `source`, one -1 is inferred.

    Extents that both sides share by copying cancel, so that -1 can be known although `source`
    has dynamic extents. Raises ShapeError where the element counts cannot agree.
    """
    check(
        all(d >= -1 for d in dims),
        lambda: f"dims expected extents, 0 or -1, got {show_list(dims)}",
    )
    check(list(dims).count(-1) <= 1, lambda: f"dims expected at most one -1, got {show_list(dims)}")
    out: list[int] = []
    left = list(source)
    rest: list[int] = []
    for i, d in enumerate(dims):
        if d == 0:
            check(
                i < len(source),
                lambda i=i: f"dims has 0 at {i}, beyond the input rank ({len(source)})",
            )
            out.append(source[i])
            left[i] = 1
        else:
            out.append(d)
            if d > 0:
                rest.append(d)
    have = product(left)
    want = product(rest)
    copied = [source[i] for i, d in enumerate(dims) if d == 0]
    if 0 in copied and -1 not in dims:
        # a copied 0 makes both counts zero whatever the other extents are
        return tuple(out)
    if -1 in dims:
        at = list(dims).index(-1)
        check(
            is_multiple(have, want),
            lambda: f"dims {show_list(dims)} do not divide the elements of {show_dims(source)}",
        )
        out[at] = DYN if have == DYN else have // want
        return tuple(out)
    check(
        same_count(have, want, copied),
        lambda: (
            f"dims {show_list(dims)} expected {have * _known(copied)} elements as in "
            f"{show_dims(source)}, got {want * _known(copied)}"
        ),
    )
    return tuple(out)


def _known(values: Iterable[int]) -> int:
    return int(np.prod([v for v in values if v != DYN], dtype=np.int64))
