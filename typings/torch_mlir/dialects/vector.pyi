# What this project uses of the `vector` dialect.

from collections.abc import Sequence

from torch_mlir import ir

_Numbers = Sequence[int] | ir.DenseI64ArrayAttr
_Bools = Sequence[bool] | ir.ArrayAttr
_Map = ir.AffineMap | ir.AffineMapAttr

class BitCastOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        source: ir.Value,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class BroadcastOp(ir.OpView):
    def __init__(
        self,
        vector: ir.Type,
        source: ir.Value,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class CreateMaskOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        mask_dim_sizes: Sequence[ir.Value],
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ExtractOp(ir.OpView):
    def __init__(
        self,
        source: ir.Value,
        dynamic_position: Sequence[ir.Value],
        static_position: _Numbers,
        *,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ExtractStridedSliceOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        source: ir.Value,
        offsets: Sequence[int] | ir.ArrayAttr,
        sizes: Sequence[int] | ir.ArrayAttr,
        strides: Sequence[int] | ir.ArrayAttr,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class InsertOp(ir.OpView):
    def __init__(
        self,
        valueToStore: ir.Value,
        dest: ir.Value,
        dynamic_position: Sequence[ir.Value],
        static_position: _Numbers,
        *,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ReductionOp(ir.OpView):
    def __init__(
        self,
        dest: ir.Type,
        kind: ir.Attribute,
        vector: ir.Value,
        *,
        acc: ir.Value | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class FromElementsOp(ir.OpView):
    def __init__(
        self,
        dest: ir.Type,
        elements: Sequence[ir.Value],
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ShapeCastOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        source: ir.Value,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ShuffleOp(ir.OpView):
    def __init__(
        self,
        v1: ir.Value,
        v2: ir.Value,
        mask: _Numbers,
        *,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ToElementsOp(ir.OpView):
    def __init__(
        self,
        source: ir.Value,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class TransferReadOp(ir.OpView):
    def __init__(
        self,
        vector: ir.Type,
        base: ir.Value,
        indices: Sequence[ir.Value],
        permutation_map: _Map,
        padding: ir.Value,
        in_bounds: _Bools,
        *,
        mask: ir.Value | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class TransferWriteOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type | None,
        valueToStore: ir.Value,
        base: ir.Value,
        indices: Sequence[ir.Value],
        permutation_map: _Map,
        in_bounds: _Bools,
        *,
        mask: ir.Value | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class TransposeOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        vector: ir.Value,
        permutation: _Numbers,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
