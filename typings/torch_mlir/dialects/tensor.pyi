# What this project uses of the `tensor` dialect.

from collections.abc import Sequence

from torch_mlir import ir

_Numbers = Sequence[int] | ir.DenseI64ArrayAttr
_Groups = Sequence[Sequence[int]] | ir.ArrayAttr

class CastOp(ir.OpView):
    def __init__(
        self,
        dest: ir.Type,
        source: ir.Value,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class CollapseShapeOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        src: ir.Value,
        reassociation: _Groups,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class DimOp(ir.OpView):
    def __init__(
        self,
        source: ir.Value,
        index: ir.Value,
        *,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class EmptyOp(ir.OpView):
    def __init__(
        self,
        sizes: Sequence[int | ir.Value],
        element_type: ir.Type,
        *,
        encoding: ir.Attribute | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ExpandShapeOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        src: ir.Value,
        reassociation: _Groups,
        output_shape: Sequence[ir.Value],
        static_output_shape: _Numbers,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ExtractOp(ir.OpView):
    def __init__(
        self,
        tensor: ir.Value,
        indices: Sequence[ir.Value],
        *,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ExtractSliceOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        source: ir.Value,
        offsets: Sequence[ir.Value],
        sizes: Sequence[ir.Value],
        strides: Sequence[ir.Value],
        static_offsets: _Numbers,
        static_sizes: _Numbers,
        static_strides: _Numbers,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class FromElementsOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        elements: Sequence[ir.Value],
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class InsertOp(ir.OpView):
    def __init__(
        self,
        scalar: ir.Value,
        dest: ir.Value,
        indices: Sequence[ir.Value],
        *,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class InsertSliceOp(ir.OpView):
    def __init__(
        self,
        source: ir.Value,
        dest: ir.Value,
        offsets: Sequence[ir.Value],
        sizes: Sequence[ir.Value],
        strides: Sequence[ir.Value],
        static_offsets: _Numbers,
        static_sizes: _Numbers,
        static_strides: _Numbers,
        *,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class PadOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        source: ir.Value,
        low: Sequence[ir.Value],
        high: Sequence[ir.Value],
        static_low: _Numbers,
        static_high: _Numbers,
        *,
        nofold: bool | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class YieldOp(ir.OpView):
    def __init__(
        self,
        value: ir.Value,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
