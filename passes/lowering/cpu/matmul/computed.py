"""The operands of a matmul in a workgroup: rows of A, constant B and computed B."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.elements import Elements
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.byte_panels import ByteScratch
from mgx_mlir.passes.lowering.cpu.matmul.instructions import products
from mgx_mlir.passes.lowering.cpu.matmul.panel import Panel, Panels, Tiles

Scratch = list[tuple[tuple[int, int], DType]]


@dataclass(frozen=True)
class Part:
    """A panel's columns, and the current part of the depth."""

    number: Index  # index of the panel among all
    column: Index  # first column of the panel
    masked: bool  # panel may reach past the last column
    start: Index  # first element along the depth
    count: Index  # elements along the depth


def indices(
    lead: Sequence[Index], order: Sequence[int], row: Index, column: Index
) -> list[Index]:  # fmt: skip
    """Return the index of an operand's element in its tensor. order: as in DotShape."""
    at = [*lead, row, column]
    return [at[i] for i in order]


def widen_scalar(x: ir.Value) -> ir.Value:
    """Return a float of 16 bits as f32, f32 as it is."""
    f32 = ir.F32Type.get()
    return x if x.type == f32 else arith.ExtFOp(f32, x).result


@dataclass(frozen=True)
class Rows:
    """Rows of A, read through its transpose: a Reader with one loop over the depth."""

    k: WorkgroupBuilder
    source: ir.Value
    order: Sequence[int]  # dims of the tensor by their index in (lead.., row, depth)
    lead: Sequence[Index]
    rows: Sequence[Index]
    start: Index  # first element along the depth
    count: Index
    unit: int  # neighbours of a group
    is_float: bool  # scalars are read, not vectors

    @property
    def loops(self) -> list[tuple[Index, Index]]:
        """One loop."""
        return [(self.k.div(self.count, self.unit), self.unit)]

    @property
    def rest(self) -> Index:
        """Elements of the last, partial group."""
        return self.k.rem(self.count, self.unit)

    def values(self, at: Index, *, masked: bool) -> Iterator[ir.Value]:
        """Yield the element, or the neighbours, of each row at a depth."""
        k, edge = self.k, 0.0 if masked else None
        for row in self.rows:
            where = indices(self.lead, self.order, row, at)
            if self.is_float:
                yield widen_scalar(k.element(self.source, where))
            else:
                yield k.read(self.source, where, self.unit, masked=edge)


class SourceOfB(Protocol):
    """B as a source of panels."""

    @property
    def scratch(self) -> Scratch:
        """Dims and types of tensors on the stack: none, or one."""
        ...

    def panel(self, part: Part, scratch: Tiles) -> Panel:
        """Return a panel. With scratch the part is packed there first."""
        ...


@dataclass(frozen=True)
class ConstantB:
    """Weights that have been packed."""

    k: WorkgroupBuilder
    layout: Panels
    source: ir.Value

    @property
    def scratch(self) -> Scratch:
        return []

    def panel(self, part: Part, scratch: Tiles) -> Panel:
        """Return the panel as it is packed."""
        return self.layout.panel(self.k, self.source, part.number)


@dataclass(frozen=True)
class ComputedB:
    """A tensor, packed to scratch part by part; for a single row it is read in place."""

    k: WorkgroupBuilder
    isa: Isa
    dtype: DType  # type of A
    width: int  # columns of a panel
    block: int  # depth that is packed at a time, 0: B is read as it is
    source: ir.Value
    order: Sequence[int]  # dims of the tensor by their index in (lead.., depth, column)
    lead: Sequence[Index]
    columns: Index

    @property
    def bytes(self) -> ByteScratch | None:
        """The packing of bytes, None for f32."""
        if not self.dtype.is_integer:
            return None
        return ByteScratch(self.isa, self.dtype.is_signed, self.width, self.block)

    @property
    def scratch(self) -> Scratch:
        if self.bytes is not None:
            return [(self.bytes.shape, dtypes.INT8)]
        return [((self.block, self.width), dtypes.FLOAT)] if self.block else []

    def read(self, part: Part, d: Index, column: Index) -> ir.Value:
        """Return a register along the columns, from the start of a part."""
        k = self.k
        depth, at = k.add(part.start, d), k.add(part.column, column)
        where = indices(self.lead, self.order, depth, at)
        return k.read(self.source, where, self.isa.lanes, masked=0.0 if part.masked else None)

    def panel(self, part: Part, scratch: Tiles) -> Panel:
        """Return the panel in scratch, or in the tensor itself."""
        k, lanes, vectors = self.k, self.isa.lanes, self.width // self.isa.lanes
        if self.bytes is not None:
            return self.bytes.packed(
                k, lambda d, j: self.read(part, d, j), part.count, scratch[0]
            )  # fmt: skip
        multiply = products(k, self.isa, self.dtype)
        if not self.block:
            return _Unpacked(k, self.source, (), lanes, vectors, multiply, self, part)
        along_depth = self.order[-1] != len(self.lead) + 1
        packed = self.squares(part, scratch[0]) if along_depth else self.rows(part, scratch[0])
        return Panel(k, packed, (), lanes, vectors, multiply)

    def rows(self, part: Part, into: ir.Value) -> ir.Value:
        """Return scratch with the rows of a part."""
        k, lanes = self.k, self.isa.lanes

        def row(d: Index, carried: Tiles) -> Tiles:
            out = carried[0]
            for j in range(0, self.width, lanes):
                out = k.write(self.read(part, d, j), out, [d, j])
            return [out]

        return k.loop(0, part.count, 1, [into], row)[0]

    def squares(self, part: Part, into: ir.Value) -> ir.Value:
        """Return scratch with a part whose adjacent elements are along the depth, by
        transposing squares.
        """
        k, lanes = self.k, self.isa.lanes
        last = k.sub(self.columns, 1)

        def square(d: Index, ragged: bool, carried: Tiles) -> Tiles:
            out, edge = carried[0], 0.0 if ragged else None
            for j in range(0, self.width, lanes):
                rows: list[ir.Value] = []
                for i in range(lanes):
                    # past the end the last column is read again, and its sums are dropped
                    column = k.add(part.column, j + i)
                    column = k.min(column, last) if part.masked else column
                    at = indices(self.lead, self.order, k.add(part.start, d), column)
                    rows.append(k.read(self.source, at, lanes, masked=edge))
                for i, v in enumerate(Elements(k, {}).rows(rows)):
                    out = k.write(v, out, [k.add(d, i), j])
            return [out]

        return k.along(part.count, lanes, [into], square)[0]


@dataclass(frozen=True)
class _Unpacked(Panel):
    """A panel read from the tensor in place."""

    b: ComputedB
    part: Part

    def columns(self, group: Index) -> list[ir.Value]:
        """Return the registers of one depth."""
        return [self.b.read(self.part, group, j) for j in range(0, self.b.width, self.size)]
