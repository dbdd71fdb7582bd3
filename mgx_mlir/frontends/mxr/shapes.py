"""Shapes, dims and the data of literals and arguments, read from untrusted trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.frontends.mxr.checks import Tree, as_list, as_map, as_size, as_text, member, shortened
from mgx_mlir.printers.value_tree import UNBOUNDED
from mgx_mlir.programs.layout import AnyShape, Dim, Shape, TupleShape, shape_of_parts
from mgx_mlir.programs.signature import DimRange
from mgx_mlir.programs.strided import array_over

MAX_RANK = 64
MAX_TUPLE = 16  # tuples within tuples
MAX_EXTENT = 2**40  # no memory holds more
MAX_EXPANDED = 256 << 20  # most bytes of a file's broadcast data beyond its stored bytes


class Expansion:
    """Budget for a file's broadcast data: a few bytes can expand to terabytes."""

    def __init__(self) -> None:
        self.left = MAX_EXPANDED

    def take(self, shape: Shape) -> None:
        """Count the bytes of a broadcast `shape` beyond its stored memory. FileError."""
        self.left -= max(shape.elements - shape.element_space, 0) * shape.dtype.size
        if self.left < 0:
            raise FileError(f"data of {shape} is broadcast to a size beyond the limit")


def argument_of(tree: Tree, expansion: Expansion | None = None, depth: int = 0) -> Any:
    """Return the array of an argument object, or a tuple of arrays. FileError."""
    found = as_map(tree, "an argument")
    expansion = expansion or Expansion()
    if "sub" in found and "data" not in found:
        if depth > MAX_TUPLE:
            raise FileError("tuples nest too deep")
        parts = as_list(found["sub"], "'sub'")
        return tuple(argument_of(p, expansion, depth + 1) for p in parts)
    return literal_of(found, expansion)[0]


def literal_of(tree: Tree, expansion: Expansion) -> tuple[np.ndarray, Shape]:
    """Return the elements of a literal in logical order, and its shape. FileError."""
    found = as_map(tree, "a literal")
    shape = shape_of(member(found, "shape", "a literal"))
    if not isinstance(shape, Shape) or shape.is_dynamic:
        raise FileError(f"data expected a static shape, got {shape}")
    size = shape.element_space * shape.dtype.size
    data = found.get("data", b"" if not size else None)
    if data is None:
        raise FileError(f"a literal of {shape} has no 'data'")
    if data == []:
        data = b""
    if not isinstance(data, bytes | memoryview):
        raise FileError(f"'data' expected bytes, got {shortened(data)}")
    if size != len(data):
        raise FileError(f"data of {shape} expected {size} bytes, got {len(data)}")
    return _elements(data, shape, expansion), shape


def _elements(data: Any, shape: Shape, expansion: Expansion) -> np.ndarray:
    if not len(data):
        return np.zeros(shape.lens if shape.dims else (), shape.dtype.np)
    raw = np.frombuffer(data, np.uint8)
    flat = raw != 0 if shape.dtype.is_bool else raw.view(shape.dtype.np)
    expansion.take(shape)
    return np.ascontiguousarray(array_over(flat, shape)).reshape([*shape.dims])  # type: ignore[arg-type]


# ---- shapes ------------------------------------------------------------------------------------


def shape_of(tree: Tree, depth: int = 0) -> AnyShape | None:
    """Return the shape of a shape object; None for the one of operators without a result."""
    found = as_map(tree, "a shape")
    kind = as_text(member(found, "type", "a shape"), "'type'")
    if kind in ("tuple_type", "tuple"):
        if depth > MAX_TUPLE:
            raise FileError("tuple shapes nest too deep")
        parts = [shape_of(s, depth + 1) for s in as_list(found.get("sub_shapes"), "'sub_shapes'")]
        return TupleShape(tuple(p for p in parts if p is not None))
    try:
        dtype = dtypes.from_name(kind)
    except MgxError as e:
        raise FileError(e.message) from None
    dims = as_list(found.get("dynamic_dimensions"), "'dynamic_dimensions'")
    if dims:
        check_rank(len(dims))
        return Shape.standard(dtype, [dim_of(d) for d in dims])
    return _static_shape(dtype, found)


def _static_shape(dtype: DType, found: dict[str, Tree]) -> Shape | None:
    lens = [as_size(d, "'lens'") for d in as_list(found.get("lens"), "'lens'")]
    strides = [as_size(d, "'strides'") for d in as_list(found.get("strides"), "'strides'")]
    if not lens:
        return None
    check_rank(len(lens))
    if len(strides) != len(lens):
        raise FileError(f"a shape has {len(lens)} lens and {len(strides)} strides")
    if any(d >= MAX_EXTENT for d in (*lens, *strides)):
        raise FileError(f"a shape has lens {lens[:8]}, which exceed any memory")
    if lens == [1] and strides == [0]:
        return Shape(dtype, (), ())
    return Shape(dtype, tuple(lens), tuple(strides))


def check_rank(rank: int) -> None:
    """Raise FileError for a rank that no array has."""
    if rank > MAX_RANK:
        raise FileError(f"a shape has {rank} dimensions, expected at most {MAX_RANK}")


def dim_of(tree: Tree) -> Dim:
    """Return a dim: {range, optimals, sym}, or {min, max, optimals} in older files."""
    found = as_map(tree, "a dynamic dimension")
    span, symbol = found.get("range", found), None
    optimals = found.get("optimals")
    if span is None:
        sym = as_map(member(found, "sym", "a dynamic dimension"), "'sym'")
        kind = sym.get("type")
        if kind == "int":
            return _extent(member(sym, "value", "'sym'"))
        if kind != "sym":
            raise FileError(
                f"a dimension is the expression {shortened(kind)} of symbols, expected a symbol",
                notes=["save the model with ranges in place of symbols"],
            )
        symbol = as_text(member(sym, "name", "'sym'"), "'name'")
        span, optimals = sym, sym.get("optimals")
    span = as_map(span, "'range'")
    low = as_size(member(span, "min", "a dynamic dimension"), "'min'")
    high = as_size(member(span, "max", "a dynamic dimension"), "'max'")
    if high < low:
        raise FileError(f"a dynamic dimension has the range [{low}..{high}]")
    if low == high:
        return _extent(low)
    sizes = {as_size(o, "'optimals'") for o in as_list(optimals, "'optimals'")}
    if any(not low <= s <= high for s in sizes):
        raise FileError(f"a dynamic dimension has optimals outside [{low}..{high}]")
    upper = None if high >= UNBOUNDED // 2 else _extent(high)
    return DimRange(_extent(low), upper, tuple(sorted(sizes)), symbol)


def _extent(tree: Tree) -> int:
    found = as_size(tree, "a dimension")
    if found >= MAX_EXTENT:
        raise FileError(f"a dimension has the extent {found}, which exceeds any memory")
    return found


def result_types(shape: AnyShape | None, dynamic_dims: Tree) -> list[TensorType] | None:
    """Return the result types of a node; dims in `dynamic_dims` are dynamic whatever the shape
    says.
    """
    if shape is None:
        return None
    found = [s.tensor_type() for s in shape_of_parts(shape)]
    for i, axes in enumerate(as_list(dynamic_dims, "'dynamic_dims'")[: len(found)]):
        at = {as_size(a, "'dynamic_dims'") for a in as_list(axes, "'dynamic_dims'")}
        found[i] = found[i].with_dims(
            DYN if axis in at else d for axis, d in enumerate(found[i].dims)
        )
    return found
