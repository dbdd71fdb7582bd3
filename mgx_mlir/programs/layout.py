"""Shapes as MIGraphX shows them: strides and ranges of every value, computed on request."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType, standard_strides
from mgx_mlir.programs.program_ir import DIMS
from mgx_mlir.programs.signature import DimRange

Strides = tuple[int, ...]


Dim = int | DimRange


def fixed_extent(d: Dim) -> int | None:
    """Return the extent of a dim that allows only one."""
    if isinstance(d, int):
        return d
    return d.min if d.is_fixed else None


@dataclass(frozen=True)
class Shape:
    """A tensor's element type, dims and strides (in elements) as MIGraphX sees them.

    `dims` and `strides` are those of the IR; a rank of 0 is shown as lens {1}, strides {0}.
    `strides` is () for a dynamic shape. A value whose dims are all known is static.
    """

    dtype: DType
    dims: tuple[Dim, ...]
    strides: Strides

    @staticmethod
    def standard(dtype: DType, dims: Sequence[Dim]) -> Shape:
        """Return the row-major shape."""
        extents = [fixed_extent(d) for d in dims]
        if all(e is not None for e in extents):
            known = [e for e in extents if e is not None]
            return Shape(dtype, tuple(known), standard_strides(known))
        return Shape(dtype, tuple(dims), ())

    @property
    def is_dynamic(self) -> bool:
        """True if a dim is a range."""
        return any(not isinstance(d, int) for d in self.dims)

    @property
    def lens(self) -> tuple[int, ...]:
        """Static extents as MIGraphX counts them: {1} for rank 0."""
        return tuple(d for d in self.dims if isinstance(d, int)) or (1,)

    @property
    def shown_strides(self) -> Strides:
        """Strides as MIGraphX shows them: {0} for rank 0."""
        return self.strides if self.dims else (0,)

    @property
    def elements(self) -> int:
        """Number of elements; ShapeError for a dynamic shape."""
        n = 1
        for d in self.dims:
            if not isinstance(d, int):
                raise ShapeError(f"the shape {self} is dynamic, its element count is not known")
            n *= d
        return n

    @property
    def element_space(self) -> int:
        """Number of elements of the buffer that the strides span."""
        if self.elements == 0:
            return 0
        pairs = zip(self.lens, self.shown_strides, strict=True)
        return 1 + sum((n - 1) * s for n, s in pairs)

    @property
    def is_packed(self) -> bool:
        """True if the elements fill their memory without gaps; false for a dynamic shape."""
        return not self.is_dynamic and self.elements == self.element_space

    @property
    def is_transposed(self) -> bool:
        """True if a stride exceeds the one before it; false for a dynamic shape."""
        if self.is_dynamic:
            return False
        strides = self.shown_strides
        if self.is_broadcasted:  # axes of stride 0 do not count in the order
            strides = tuple(s for s in strides if s)
        return any(a < b for a, b in itertools.pairwise(strides))

    @property
    def is_broadcasted(self) -> bool:
        """True if an axis has stride 0; false for a dynamic shape."""
        return not self.is_dynamic and 0 in self.shown_strides

    @property
    def is_scalar(self) -> bool:
        """True if all strides are 0; false for a dynamic shape."""
        return not self.is_dynamic and not any(self.shown_strides)

    @property
    def is_standard(self) -> bool:
        """True if the shape is packed and row-major."""
        return self.is_packed and not self.is_transposed

    def tensor_type(self) -> TensorType:
        """Return the type in a program, DYN for ranges."""
        return TensorType(self.dtype, tuple(d if isinstance(d, int) else DYN for d in self.dims))

    def __str__(self) -> str:
        if self.is_dynamic:
            return f"dynamic, {self.dtype.name}, {braces(self.dims)}"
        return f"{self.dtype.name}, {braces(self.lens)}, {braces(self.shown_strides)}"


@dataclass(frozen=True)
class TupleShape:
    """The shapes of an operator with several results."""

    parts: tuple[Shape | TupleShape, ...]

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.parts)) + "]"


AnyShape = Shape | TupleShape


def braces(values: Sequence[object]) -> str:
    """Format in MIGraphX's list form: `{1, 2}`."""
    return "{" + ", ".join(map(str, values)) + "}"


def dims_attribute(dims: Sequence[Dim]) -> ir.Attribute:
    """Return `migraphx.dims` of a function argument: an integer or {min, max?, ...} per dim."""
    i64 = ir.IntegerType.get_signless(64)

    def entry(d: Dim) -> ir.Attribute:
        if isinstance(d, int):
            return ir.IntegerAttr.get(i64, d)
        found: dict[str, ir.Attribute] = {"min": ir.IntegerAttr.get(i64, d.min)}
        if d.max is not None:
            found["max"] = ir.IntegerAttr.get(i64, d.max)
        if d.optimals:
            found["optimals"] = ir.DenseI64ArrayAttr.get(list(d.optimals))
        if d.symbol:
            found["symbol"] = ir.StringAttr.get(d.symbol)
        return ir.DictAttr.get(found)

    return ir.ArrayAttr.get([entry(d) for d in dims])


def read_dims(attributes: dict[str, ir.Attribute], t: TensorType) -> tuple[Dim, ...]:
    """Return the dims of an argument of type `t` with these argument attributes."""
    if t.is_static:
        return t.dims
    if DIMS not in attributes:
        return tuple(DimRange() if d == DYN else d for d in t.dims)
    out: list[Dim] = []
    entries = list(ir.ArrayAttr(attributes[DIMS]))
    for d, entry in zip(t.dims, entries, strict=True):
        if d != DYN:
            out.append(d)
            continue
        fields = {n.name: n.attr for n in ir.DictAttr(entry)}
        optimals = fields.get("optimals")
        symbol = fields.get("symbol")
        out.append(
            DimRange(
                ir.IntegerAttr(fields["min"]).value if "min" in fields else 0,
                ir.IntegerAttr(fields["max"]).value if "max" in fields else None,
                tuple(ir.DenseI64ArrayAttr(optimals)) if optimals is not None else (),
                ir.StringAttr(symbol).value if symbol is not None else None,
            )
        )
    return tuple(out)


def shape_of_parts(shape: AnyShape | None) -> list[Shape]:
    """Return the tensors of a shape, with tuples flattened."""
    if shape is None:
        return []
    if isinstance(shape, TupleShape):
        return [s for part in shape.parts for s in shape_of_parts(part)]
    return [shape]
