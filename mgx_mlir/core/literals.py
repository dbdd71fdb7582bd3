"""Constants beside the IR: a content-addressed store of weights, and literals that refer to it."""

from __future__ import annotations

import contextvars
import hashlib
import math
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from mgx_mlir.core import attrs, dtypes
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType

LITERAL = "migraphx.literal"
INLINE_ELEMENTS = 16  # up to this many elements (or a splat) a constant stays in the IR
LEFT_OUT = "left-out-"  # prefix of keys of weights that a compiled file omits
_REORDERED = 64 << 10  # bytes of an array that is not copied for its order's sake
ALIGNMENT = 64  # bytes; the runtime uses arrays of this alignment in place

_ACTIVE: contextvars.ContextVar[WeightStore | None] = contextvars.ContextVar(
    "mgx_weight_store", default=None
)


class Shared:
    """Memory of another library that must not change while a program uses it.

    address, nbytes: the memory; owner: the object that keeps it alive. `np.asarray` of it is a
    read-only array
    of bytes without a copy, which a store keeps as it is.
    """

    def __init__(self, owner: object, address: int, nbytes: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, True),
            "version": 3,
        }


class WeightStore:
    """Arrays by the hash of their dtype, dims and bytes; equal weights are kept once.

    Arrays are immutable: writable ones are copied. An array whose elements lie in another order
    than its indices is copied when it is read, unless by `seen`. The store is passed around by
    `with store.active():`, so that patterns and passes need no extra argument.
    """

    def __init__(self, arrays: dict[str, np.ndarray] | None = None) -> None:
        self._arrays: dict[str, np.ndarray] = dict(arrays or {})
        # digests of the bytes of kept arrays: a reshaped weight is not read again
        self._digests: dict[tuple[int, int], bytes] = {}

    def add(self, array: np.ndarray, digest: bytes | None = None) -> str:
        """Keep `array`, or a copy if it is writable, and return its key.

        digest: `bytes_digest` of it, where it is known.
        """
        array = _frozen(array)
        place = _place(array)
        digest = digest or self._digests.get(place) or bytes_digest(array)
        key = content_key(array, digest)
        if key not in self._arrays:
            self._arrays[key] = array
            self._digests[place] = digest
        return key

    def add_reordered(self, array: np.ndarray) -> str | None:
        """Keep the elements of a kept array in another order, without a copy, and return the key.

        None where the array is none of that. The key follows from the order and from the digest of
        the array that is kept.
        """
        digest = self._digests.get(_place(array))
        if digest is None or array.flags.c_contiguous or not _is_reordered(array):
            return None
        # order says more than elements: equal ones in other orders are kept twice
        head = f"{array.dtype}{array.shape}{array.strides}".encode()
        key = hashlib.sha256(head + digest).hexdigest()[:32]
        self._arrays.setdefault(key, array)
        return key

    def put(self, key: str, array: np.ndarray) -> None:
        """Keep `array` under the key that a file gives it."""
        view = np.ascontiguousarray(array).reshape(np.shape(array)).view()
        view.flags.writeable = False
        self._arrays[key] = view

    def get(self, key: str) -> np.ndarray:
        """Return the array of a key; ModelError where the store has none."""
        found = self.seen(key)
        if not found.flags.c_contiguous:
            found = self._arrays[key] = own(aligned_copy(found))
        return found

    def seen(self, key: str) -> np.ndarray:
        """Return the array of a key as `get`, whose elements may lie in any order in memory."""
        found = self._arrays.get(key)
        if found is None and key.startswith(LEFT_OUT):
            raise ModelError(
                "the program was saved as compiled code, without its weights",
                notes=["save with source=True (mgx-driver: --with-source) keeps them"],
            )
        if found is None:
            raise ModelError(
                f"weight '{key}' is not in the program's weight store",
                notes=["pass the weights that belong to this module (mgx-opt: --weights f.npz)"],
            )
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def items(self) -> Iterable[tuple[str, np.ndarray]]:
        """List the keys and their arrays."""
        return {key: self.get(key) for key in self._arrays}.items()

    def copy(self) -> WeightStore:
        """Return a store with the same arrays (shared, they are read-only)."""
        twin = WeightStore(self._arrays)
        twin._digests = dict(self._digests)
        return twin

    def digest(self) -> str:
        """Return the digest of all keys and of the arrays that are kept under them."""
        found = hashlib.sha256()
        for key, array in sorted(self.items()):
            # a key from a file does not identify the array
            known = self._digests.get(_place(array))
            found.update(f"{key} {content_key(array, known)}\n".encode())
        return found.hexdigest()

    def keep_only(self, keys: Iterable[str]) -> None:
        """Drop every array whose key is not among `keys`."""
        wanted = set(keys)
        self._arrays = {k: v for k, v in self._arrays.items() if k in wanted}
        # freed memory may be reused by another array
        places = {_place(a) for a in self._arrays.values()}
        self._digests = {p: d for p, d in self._digests.items() if p in places}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(a.nbytes for a in self._arrays.values())

    @contextmanager
    def active(self) -> Generator[WeightStore]:
        """Make this the store that literals use, within the block."""
        token = _ACTIVE.set(self)
        try:
            yield self
        finally:
            _ACTIVE.reset(token)


def content_key(array: np.ndarray, digest: bytes | None = None) -> str:
    """Return the key of an array: a hash of dtype, dims and the digest of its bytes."""
    head = f"{array.dtype}{array.shape}".encode()
    return hashlib.sha256(head + (digest or bytes_digest(array))).hexdigest()[:32]


def bytes_digest(array: np.ndarray) -> bytes:
    """Return the digest of an array's elements in row-major order."""
    # twice as fast as blake2b where the CPU has the instructions
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.sha256(raw.data).digest()


def own(array: np.ndarray) -> np.ndarray:
    """Make `array` and its bases read-only, and return it: a store then keeps it without a
    copy. Not for arrays that a user passed.
    """
    found: object = array
    while isinstance(found, np.ndarray):
        found.flags.writeable = False
        found = _below(found)  # pyright: ignore[reportUnknownArgumentType]  (its dtype)
    return array


def _frozen(array: np.ndarray) -> np.ndarray:
    """Return the array row-major and immutable: itself, or a copy."""
    array = np.asarray(array)
    if array.flags.c_contiguous and _is_frozen(array):
        return array
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return own(copy)


def _is_frozen(array: np.ndarray) -> bool:
    """Return whether the memory of an array is immutable, also for its creator."""
    found: object = array
    while isinstance(found, np.ndarray):
        if found.flags.writeable:
            return False
        found = _below(found)  # pyright: ignore[reportUnknownArgumentType]  (its dtype)
    return found is None or isinstance(found, bytes | Shared)


def _is_reordered(array: np.ndarray) -> bool:
    """Return whether an array has all elements of the memory that it begins on, in any order."""
    return _in_memory(array).flags.c_contiguous and _is_frozen(array)


def _in_memory(array: np.ndarray) -> np.ndarray:
    """Return a view of an array whose axes are in the order of its memory."""
    return array.transpose(sorted(range(array.ndim), key=lambda i: -array.strides[i]))


def _below(array: np.ndarray) -> object:
    """Return the object whose memory an array views; None where it owns it."""
    found = cast(object, array.base)
    return cast(Any, found).obj if isinstance(found, memoryview) else found


def _place(array: np.ndarray) -> tuple[int, int]:
    """Return the address of a contiguous array's bytes."""
    return array.__array_interface__["data"][0], array.nbytes


def current_store() -> WeightStore:
    """Return the active store. ModelError where weights are needed and none is active."""
    store = _ACTIVE.get()
    if store is None:
        raise ModelError("no weight store is active, expected `with program.store.active():`")
    return store


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an uninitialised array whose first byte is aligned for use in place by the runtime."""
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes].view(dtype).reshape(shape)


def is_aligned(a: np.ndarray) -> bool:
    """Return whether a device can read the array in place: contiguous, aligned to 64 bytes.

    Compiled kernels load with aligned vector instructions: an unaligned array would crash the
    process.
    """
    return a.flags.c_contiguous and _place(a)[0] % ALIGNMENT == 0


def aligned(a: np.ndarray) -> np.ndarray:
    """Return the array itself if it is aligned, else an aligned copy."""
    return a if is_aligned(a) else aligned_copy(a)


def aligned_copy(a: np.ndarray) -> np.ndarray:
    """Return a copy that the runtime can use in place."""
    out = aligned_empty(a.shape, a.dtype)
    out[...] = a
    return out


def is_inline(array: np.ndarray) -> bool:
    """Return whether a constant is small or uniform enough to be kept in the IR."""
    return array.size <= INLINE_ELEMENTS or is_uniform(array)


def is_uniform(array: np.ndarray) -> bool:
    """Return whether an array is not empty and all elements have the same bits.

    A broadcast scalar is not scanned.
    """
    if not any(array.strides) or array.size == 1:
        return True
    raw = np.ascontiguousarray(_in_memory(array)).reshape(-1).view(f"u{array.dtype.itemsize}")
    return bool(raw[0] == raw[-1] and (raw == raw[0]).all())


def literal_attributes(
    array: np.ndarray, digest: bytes | None = None
) -> tuple[TensorType, dict[str, ir.Attribute]]:
    """Return the type and attributes of a literal of `array`. Large ones go into the store."""
    kind = TensorType(dtypes.from_numpy(array.dtype), tuple(array.shape))
    if is_inline(array):
        return kind, {"value": attrs.dense(array)}
    return kind, {"key": ir.StringAttr.get(current_store().add(array, digest))}


def create_reordered(array: np.ndarray) -> ir.Value:
    """Build a `migraphx.literal` of the elements of others, in another order as a rule.

    A large one is kept without a copy where it can be. What is given may not change any more.
    """
    large = array.nbytes >= _REORDERED and not is_inline(own(array))
    key = current_store().add_reordered(array) if large else None
    if key is None:
        return create(own(array))  # the address matters where the array becomes a parameter
    kind = TensorType(dtypes.from_numpy(array.dtype), tuple(array.shape))
    attributes = {"key": ir.StringAttr.get(key)}
    return ir.Operation.create(LITERAL, results=[kind.mlir()], attributes=attributes).result


def create(
    array: np.ndarray,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
    digest: bytes | None = None,
) -> ir.Value:
    """Build a `migraphx.literal` of `array`. digest: `bytes_digest` of it, where it is known."""
    kind, attributes = literal_attributes(np.asarray(array), digest)
    op = ir.Operation.create(LITERAL, results=[kind.mlir()], attributes=attributes, loc=loc, ip=ip)
    return op.result


def create_left_out(kind: TensorType, key: str, *, ip: ir.InsertionPoint | None = None) -> ir.Value:
    """Build a `migraphx.literal` of a weight whose data is omitted."""
    attributes = {"key": ir.StringAttr.get(LEFT_OUT + key)}
    return ir.Operation.create(LITERAL, results=[kind.mlir()], attributes=attributes, ip=ip).result


def is_literal(x: ir.Value | ir.Operation | ir.OpView | ir.Block) -> bool:
    """Return whether a value is a literal's result, or an operation a literal."""
    owner = x.owner if isinstance(x, ir.Value) else x
    return getattr(owner, "name", None) == LITERAL


def seen_of(value: ir.Value | ir.Operation | ir.OpView) -> np.ndarray:
    """Return the array of a literal; elements of a large one may lie in any order in memory."""
    op = value.owner if isinstance(value, ir.Value) else value
    if "key" in op.attributes:
        return current_store().seen(ir.StringAttr(op.attributes["key"]).value)
    return attrs.array_of(op.attributes["value"])


def array_of(value: ir.Value | ir.Operation | ir.OpView) -> np.ndarray:
    """Return the array of a literal (its value, or its op). Read-only where it is stored."""
    op = value.owner if isinstance(value, ir.Value) else value
    attributes = op.attributes
    if "key" in attributes:
        return current_store().get(ir.StringAttr(attributes["key"]).value)
    return attrs.array_of(attributes["value"])
