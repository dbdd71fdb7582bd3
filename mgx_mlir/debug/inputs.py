"""Inputs to try a program with: MIGraphX's pseudo-random numbers, in ranges that mean something.

MIGraphX draws each parameter from its name alone, integers far outside any table. Where an
integer input indexes a table, or becomes a mask, such numbers make every output NaN or an error,
and a comparison of two NaNs shows nothing. So what an input is for is read from the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mgx_mlir.api.data import generate_argument, random_words
from mgx_mlir.api.shape import shape
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, attributes_of, is_a, mnemonic, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.control import If
from mgx_mlir.frontends.argument_files import read_argument
from mgx_mlir.programs.layout import Shape
from mgx_mlir.programs.program_ir import ProgramIR, argument_names, entry_block
from mgx_mlir.programs.signature import Port, Signature
from mgx_mlir.rewrite.pipeline import did_you_mean

Purpose = Literal["any", "mask", "index", "size"]
_WORD = 0xFFFFFFFFFFFFFFFF
_WIDE = 4  # bytes from which MIGraphX's integers leave every sensible range

# ops whose result holds the operand's own values
_MOVES = {
    "identity", "contiguous", "layout", "transpose", "reshape", "reshape_lazy", "flatten",
    "squeeze", "unsqueeze", "broadcast", "multibroadcast", "scalar", "broadcast_with_dims",
    "broadcast_for_dot", "slice", "step", "reverse", "scan_slice", "concat", "where", "convert",
}  # fmt: skip
# operands that say how large something is
_SIZES = {
    "reshape": ("dims_tensor",), "broadcast_with_dims": ("dims",), "allocate": ("dims",),
    "slice": ("input_starts", "input_ends", "input_axes"), "resize": ("target",),
    "dynamic_range": ("start", "limit", "delta"), "onehot": ("depth_input",),
    "loop": ("iterations",),
}  # fmt: skip
_TRUTH = {"equal", "greater", "less", "not", "logical_and", "logical_or", "logical_xor"}


@dataclass(frozen=True)
class Draw:
    """Purpose of an input. index: values below `bound`; mask: 1 then 0; size: 1; any: all."""

    purpose: Purpose = "any"
    bound: int = 0

    def __str__(self) -> str:
        return {
            "any": "MIGraphX's numbers",
            "mask": "1 up to a point of the last dimension, then 0: it acts as a mask",
            "index": f"0 to {self.bound - 1}: it indexes {self.bound} entries",
            "size": "1: it is the size of something",
        }[self.purpose]


def draws(program: ProgramIR) -> dict[str, Draw]:
    """Return how to draw each integer input of a program; the default is `any`."""
    out = {}
    with program.ctx:
        main = program.main()
        for name, value in zip(argument_names(main), entry_block(main).arguments, strict=True):
            t = TensorType.of(value)
            wide = t.dtype.is_integer and t.dtype.size >= _WIDE
            out[name] = _Uses(value).draw(wide) if t.dtype.is_integer else Draw()
    return out


class _Uses:
    """Follows an integer value through a program to what it is used for."""

    def __init__(self, value: ir.Value) -> None:
        self.bounds: list[int] = []
        self.purposes: set[Purpose] = set()
        self.seen: set[tuple[ir.Value, bool]] = set()
        self.work: list[tuple[ir.Value, bool]] = [(value, True)]

    def draw(self, wide: bool) -> Draw:
        while self.work:
            value, exact = self.work.pop()
            if (value, exact) in self.seen:
                continue
            self.seen.add((value, exact))
            for use in value.uses:
                self._use(use.owner.operation, use.operand_number, exact)
        if "size" in self.purposes:
            return Draw("size")
        if self.bounds:
            return Draw("index", max(min(self.bounds), 1))
        return Draw("mask") if wide and "mask" in self.purposes else Draw()

    def _use(self, op: ir.Operation, number: int, exact: bool) -> None:
        name, cls = mnemonic(op), op_class(op)
        if name == "yield":
            self._leave(op, number, exact)
            return
        if cls is None:
            return
        if is_a(op, Kernel):
            self.work.append((op.regions[0].blocks[0].arguments[number], exact))
            return
        group = _group(cls, op, number)
        if group in _SIZES.get(name, ()):
            self.purposes.add("size")
            return
        bound = _index_bound(name, group, op)
        if bound is not None:
            # results of arithmetic on the input have their own range: small inputs keep it small
            if exact:
                self.bounds.append(bound)
            else:
                self.purposes.add("mask")
            return
        results = [(r, TensorType.of(r).dtype) for r in op.results]
        if name in _TRUTH or any(not d.is_integer for _, d in results):
            self.purposes.add("mask")
        kept = exact and name in _MOVES
        self.work += [(r, kept) for r, d in results if d.is_integer]

    def _leave(self, op: ir.Operation, number: int, exact: bool) -> None:
        parent = op.parent.operation
        if is_a(parent, (Kernel, If)):
            self.work.append((parent.results[number], exact))


def _group(cls: type, op: ir.Operation, number: int) -> str:
    """Return the name of the operand field that an operand belongs to."""
    at = 0
    for group, values in zip(cls.OPERANDS, cls.split_operands(op), strict=True):
        at += len(values)
        if number < at:
            return group.name
    return ""


def _index_bound(name: str, group: str, op: ir.Operation) -> int | None:
    """Return how many entries an index operand chooses from; None for other operands."""
    if group == "seqlens_k":
        table, axis = (op.operands[2], 2 if name == "concat_past_present" else 0)
        return _extent(table, axis)
    if group != "indices":
        return None
    dims = TensorType.of(op.operands[0]).dims
    if name == "gather" or name.startswith("scatter_"):
        return _extent(op.operands[0], int(attributes_of(op)["axis"]))
    if name == "gathernd" or name.startswith("scatternd"):
        first = int(attributes_of(op).get("batch_dims") or 0)
        last = TensorType.of(op.operands[1]).dims[-1]
        known = [d for d in dims[first : first + max(last, 1)] if d >= 0]
        return min(known, default=1)
    if name == "onehot":
        depth = attributes_of(op).get("depth")
        return int(depth) if depth else 2
    return None


def _extent(table: ir.Value, axis: int) -> int:
    dims = TensorType.of(table).dims
    found = dims[axis] if dims else 1
    return found if found >= 0 else 1


# ---- making them ---------------------------------------------------------------------------------


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
    """Draw an array for every input, seeded by its name: the same in every run.

    `dims` gives inputs whole shapes; else a dynamic dim is `batch`, or the nearest size in its
    range. `files` has inputs that are read. Errors: UsageError for a name that is no input, or dims
    that do not fit; FileError for files that are not what the input is.
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
    # inputs from files come first: they fix the dims that inputs share
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
    return generate_argument(shape.of(Shape.standard(dtype, extents)), word).array


def _mask(extents: tuple[int, ...], word: int) -> np.ndarray:
    """Return rows of 1 that become 0 somewhere in their second half: never all 0."""
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
