"""`shape`, `shape.type_t` and `shape.dynamic_dimension` of MIGraphX's Python API."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DTYPES, DType
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.shapes import standard_strides
from mgx_mlir.programs.dims import dim_of, dynamic_dimension
from mgx_mlir.programs.layout import AnyShape, Shape, TupleShape

# made from a table, so a type checker sees no members
type_t: Any = enum.IntEnum("type_t", {d.name: d.number for d in DTYPES})
type_t.__doc__ = "The element types with MIGraphX's numbers."


class shape:
    """The element type, lengths and strides of a tensor; `dyn_dims` instead where they vary.

    All arguments are keywords. `type` is a name ("float", "float_type") or a `type_t`. Without
    `lens` it is a scalar: lens {1}, strides {0}. `permutation` lays the memory out in that order
    of axes. Errors: ShapeError.
    """

    type_t = type_t
    dynamic_dimension = dynamic_dimension

    def __init__(
        self,
        *,
        type: Any = "float",
        lens: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        permutation: Sequence[int] | None = None,
        dyn_dims: Sequence[Any] | None = None,
    ) -> None:
        dtype = dtype_of(type)
        if dyn_dims is not None:
            if lens is not None or strides is not None or permutation is not None:
                raise ShapeError("expected either dyn_dims or lens, strides and permutation")
            self._shape: AnyShape = Shape.standard(dtype, [dim_of(d) for d in dyn_dims])
            return
        if lens is None:
            if strides is not None or permutation is not None:
                raise ShapeError("strides and permutation require lens")
            self._shape = Shape(dtype, (), ())
            return
        extents = tuple(int(d) for d in lens)
        if any(d < 0 for d in extents):
            raise ShapeError(f"lens expected no negative length, got {list(extents)}")
        if strides is not None and permutation is not None:
            raise ShapeError("expected one of strides and permutation")
        if permutation is not None:
            strides = _permuted(extents, permutation)
        if strides is None:
            self._shape = Shape.standard(dtype, extents)
            return
        if len(strides) != len(extents):
            raise ShapeError(
                f"expected as many strides as lens ({len(extents)}), got {len(strides)}"
            )
        if any(s < 0 for s in strides):
            raise ShapeError(f"strides expected no negative stride, got {list(strides)}")
        given = tuple(int(s) for s in strides)
        scalar = extents == (1,) and given == (0,)
        self._shape = Shape(dtype, (), ()) if scalar else Shape(dtype, extents, given)

    @staticmethod
    def of(found: AnyShape) -> shape:
        """Wrap a shape of the core."""
        made = shape.__new__(shape)
        made._shape = found
        return made

    @property
    def core(self) -> Shape:
        """The shape of the core; ShapeError for a tuple."""
        if isinstance(self._shape, TupleShape):
            raise ShapeError("expected a tensor's shape, got a tuple's")
        return self._shape

    def _static(self) -> Shape:
        found = self.core
        if found.is_dynamic:
            raise ShapeError(f"the shape {found} is dynamic, it has no lens", notes=["dyn_dims()"])
        return found

    def type(self) -> Any:
        """Return the element type. Errors: ShapeError for a tuple."""
        if isinstance(self._shape, TupleShape):
            raise ShapeError("a tuple has no element type", notes=["see sub_shapes()"])
        return type_t(self._shape.dtype.number)

    def type_string(self) -> str:
        """Return the name of the element type, "tuple_type" for a tuple."""
        return "tuple_type" if isinstance(self._shape, TupleShape) else self._shape.dtype.name

    def type_size(self) -> int:
        """Return the bytes of one element."""
        return self.core.dtype.size

    def lens(self) -> list[int]:
        """Return the extents. Errors: ShapeError for a dynamic shape."""
        return list(self._static().lens)

    def strides(self) -> list[int]:
        """Return the strides in elements. Errors: ShapeError for a dynamic shape."""
        return list(self._static().shown_strides)

    def dyn_dims(self) -> list[dynamic_dimension]:
        """Return the dynamic dims; an empty list for a static shape."""
        found = self.core
        return [dynamic_dimension.of(d) for d in found.dims] if found.is_dynamic else []

    def sub_shapes(self) -> list[shape]:
        """Return the parts of a tuple; an empty list for a tensor."""
        parts = self._shape.parts if isinstance(self._shape, TupleShape) else ()
        return [shape.of(p) for p in parts]

    def ndim(self) -> int:
        """Return the rank."""
        found = self.core
        return len(found.dims) if found.is_dynamic else len(found.lens)

    def elements(self) -> int:
        """Return the number of elements. Errors: ShapeError for a dynamic shape."""
        return self._static().elements

    def bytes(self) -> int:
        """Return the size in bytes of the buffer that the strides span."""
        found = self._static()
        return found.element_space * found.dtype.size

    def packed(self) -> bool:
        """Return whether the elements fill their buffer, in any order."""
        return self.core.is_packed

    def transposed(self) -> bool:
        """Return whether the strides are out of order."""
        return self.core.is_transposed

    def broadcasted(self) -> bool:
        """Return whether a stride is 0."""
        return self.core.is_broadcasted

    def standard(self) -> bool:
        """Return whether the layout is row-major without gaps."""
        return self.core.is_standard

    def scalar(self) -> bool:
        """Return whether all strides are 0."""
        return self.core.is_scalar

    def dynamic(self) -> bool:
        """Return whether the shape is a tensor with a dynamic dim."""
        return isinstance(self._shape, Shape) and self._shape.is_dynamic

    def key_parts(self) -> tuple[object, ...]:
        """Return the parts that identify this shape, for cache keys."""
        dims = self.dyn_dims() if self.dynamic() else [self.lens(), self.strides()]
        return (self.type_string(), dims, self.sub_shapes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, shape) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return str(self._shape)


def dtype_of(kind: Any) -> DType:
    """Return the element type of a name, a type_t, a number or a numpy dtype."""
    if isinstance(kind, DType):
        return kind
    if isinstance(kind, str):
        return dtypes.from_name(kind)
    if isinstance(kind, int):
        return dtypes.from_number(kind)
    return dtypes.from_numpy(kind)


def _permuted(lens: Sequence[int], permutation: Sequence[int]) -> list[int]:
    if sorted(permutation) != list(range(len(lens))):
        raise ShapeError(
            f"permutation expected each of 0 to {len(lens) - 1} once, got {list(permutation)}"
        )
    ordered = standard_strides([lens[p] for p in permutation])
    out = [0] * len(lens)
    for place, axis in enumerate(permutation):
        out[axis] = ordered[place]
    return out
