# What this project uses of the `linalg` dialect.

from collections.abc import Sequence

from torch_mlir import ir

class GenericOp(ir.OpView):
    def __init__(
        self,
        result_tensors: Sequence[ir.Type],
        inputs: Sequence[ir.Value],
        outputs: Sequence[ir.Value],
        indexing_maps: Sequence[ir.AffineMapAttr] | ir.ArrayAttr,
        iterator_types: Sequence[ir.Attribute] | ir.ArrayAttr,
        *,
        doc: str | ir.StringAttr | None = None,
        library_call: str | ir.StringAttr | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class IndexOp(ir.OpView):
    def __init__(
        self,
        dim: int | ir.IntegerAttr,
        *,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class YieldOp(ir.OpView):
    def __init__(
        self,
        values: Sequence[ir.Value],
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

# the result of the one tensor in `outs`; of buffers there is none
def fill(*ins: ir.Value, outs: Sequence[ir.Value]) -> ir.OpResult: ...
def matmul(*ins: ir.Value, outs: Sequence[ir.Value]) -> ir.OpResult: ...
def batch_matmul(*ins: ir.Value, outs: Sequence[ir.Value]) -> ir.OpResult: ...
def conv_2d_nhwc_fhwc(
    *ins: ir.Value, outs: Sequence[ir.Value], strides: Sequence[int], dilations: Sequence[int]
) -> ir.OpResult: ...
def conv_2d_nhwc_hwcf(
    *ins: ir.Value, outs: Sequence[ir.Value], strides: Sequence[int], dilations: Sequence[int]
) -> ir.OpResult: ...
def depthwise_conv_2d_nhwc_hwc(
    *ins: ir.Value, outs: Sequence[ir.Value], strides: Sequence[int], dilations: Sequence[int]
) -> ir.OpResult: ...
