"""Convolutions of images of dynamic size, and of one axis, on GPUs: matmuls of image windows.

IREE copies the windows to the LDS, in runs along the channels. It makes such a matmul of other
convolutions by itself. IREE treats an image of one axis as an image of height 1, and stores its
partial last tile element by element, from scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.contraction import collapsed
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import CONVOLUTION, GemmShape
from mgx_mlir.passes.lowering.gpu.matmul.scalar_tiles import thread_windows
from mgx_mlir.passes.lowering.ops.linear import contract
from mgx_mlir.passes.lowering.scalar import constant, signless

_IM2COL = "iree_linalg_ext.im2col"
_USUAL_ROW = 128  # assumed windows of an image of one axis where their number is dynamic
# most vectors that a wave gathers in an iteration, each with an index and a mask: with more, scalar
# registers spill on CDNA, and the bound is 1.2 to 2.8 times as high
_GATHERED = 64
# rows and columns of padding before an image, and after it
Border = tuple[Sequence[Extent], Sequence[Extent]]


def _usual(op: Convolution | QuantConvolution) -> GemmShape | None:
    """Return the shape of a channels-last convolution of images of dynamic size, or of one axis, at
    their usual size; None for others."""
    x, w, out = (TensorType.of(v) for v in (op.input, op.weights, op.out))
    if x.rank not in (3, 4) or not op.channels_last or op.group != 1:
        return None
    if (x.rank == 4 and out.is_static) or 0 in out.dims:
        return None
    if DYN in w.dims or x.dtype is not w.dtype:
        return None
    *window, channels, filters = w.dims
    counts, stride = out.dims[1:-1], list(op.stride)
    if x.rank == 3:  # an image of height 1
        if counts[0] == 1:
            return None
        counts = (1, _USUAL_ROW if counts[0] == DYN else counts[0])
        window, stride = [1, *window], [1, *stride]
    dims = (out.dims[0], *counts, filters, *window, channels, *stride)
    return GemmShape(CONVOLUTION, w.dtype.name, dims).usual()


def takes(e: LoweringContext, op: Convolution | QuantConvolution) -> bool:
    """Return whether a convolution, whose weights are stored by row, becomes a matmul of
    windows."""
    if e.options.target != "gpu" or not e.options.tiles or op.padding_mode != "default_":
        return False
    usual, arch = _usual(op), e.options.arch
    if usual is None:
        return False
    return usual.intrinsic(arch) is not None or _is_plain(arch, op, usual)


def _is_plain(arch: str, op: Convolution | QuantConvolution, usual: GemmShape) -> bool:
    """Return whether threads multiply images of known height and width, of a dynamic number: lines
    of a tile divide those of an image (hazard 34)."""
    x = TensorType.of(op.input)
    known = x.rank == 4 and DYN not in x.dims[1:]
    return known and thread_windows(arch, usual) is not None


def lower(
    e: LoweringContext,
    op: Convolution | QuantConvolution,
    x: ir.Value,
    rows: ir.Value,
    counts: Sequence[Extent],
    border: Border,
    acc: DType,
) -> ir.Value:
    """Return the convolution of an image without its border; `counts` are its windows' numbers."""
    filters, *window, channels = ir.RankedTensorType(rows.type).shape
    own = [e.extents(x)[0], *counts]
    depth = prod(window) * channels
    element = dtypes.from_mlir(ir.RankedTensorType(x.type).element_type)
    flat = collapsed(e, rows, [filters, depth])
    usual = _usual(op)
    assert usual is not None, "`takes` holds"

    def build() -> list[ir.Value]:
        windows = _windows(e, op, x, own, [*window, channels], border)
        found = contract(e, windows, flat, [*own, filters], acc, by_row=True, element=element)
        ones = len(window) - 1
        compilation_info.give_form(
            e, found, compilation_info.IMAGE_WINDOWS, "convolution of windows",
            lambda arch: compilation_info.windows_info(arch, usual, ones, _GATHERED),
        )  # fmt: skip
        return [found]

    kind = ir.RankedTensorType.get(e.static_dims([*own, filters]), signless(acc))
    return index.alone(e, [kind], [[*own, filters]], build)[0]


def _windows(
    e: LoweringContext,
    op: Convolution | QuantConvolution,
    x: ir.Value,
    own: Sequence[Extent],
    window: Sequence[int],
    border: Border,
) -> ir.Value:
    """Return [n, oh, ow, depth]: the elements of each window [kh, kw, c], those of the border 0."""
    spatial = len(window) - 1
    element = dtypes.from_mlir(ir.RankedTensorType(x.type).element_type)
    init = e.empty([*own, prod(window)], element)
    low, high = (e.static_dims(ends) for ends in border)
    padded = any(low) or any(high)
    zero = [constant(0, element).value] if padded else []
    sizes = e.dynamic_values(own)
    i64 = ir.DenseI64ArrayAttr.get
    return ir.Operation.create(
        _IM2COL,
        results=[init.type],
        operands=[x, init, *sizes, *zero],
        attributes={
            "batch_pos": i64([]), "m_pos": i64(range(spatial + 1)), "k_pos": i64([spatial + 1]),
            "strides": i64([1, *op.stride]), "dilations": i64([1, *op.dilation]),
            "static_kernel_size": i64([1, *window[:-1]]),
            "static_offsets": i64([0] * (spatial + 2)),
            "static_output_sizes": ir.ArrayAttr.get(
                [*(i64([_size(d)]) for d in e.static_dims(own)), i64([1, *window])]
            ),
            "input_k_perm": i64(range(spatial + 2)), "output_perm": i64(range(spatial + 2)),
            "static_input_pad_low": i64([0, *low, 0] if padded else []),
            "static_input_pad_high": i64([0, *high, 0] if padded else []),
            "static_output_pad_low": i64([]), "static_output_pad_high": i64([]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
                [1, 1, 0, 0, len(sizes), 0, 0, 0, 0, len(zero)]
            ),
        },
    ).results[0]  # fmt: skip


def _size(d: int) -> int:
    return ir.ShapedType.get_dynamic_size() if d == DYN else d


__all__ = ["lower", "takes"]
