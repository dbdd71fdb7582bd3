"""The kernel rules of GPUs, in the order in which they are tried."""

from __future__ import annotations

from mgx_mlir.passes.lowering.gpu import gathered_concat
from mgx_mlir.passes.lowering.gpu.attention import (
    attention,
    block_attention,
    tiled_attention,
)
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info, gathered_convolution

ATTENTION = (  # rules of kernels that are one attention
    tiled_attention.PARTS,
    block_attention.RULE,
    tiled_attention.TILES,
    attention.RULE,
)
KERNELS = (gathered_concat.RULE,)  # rules of other kernels
# rules of the matmuls and convolutions inside of kernels, the last of which have one rule each
MATMULS = (*compilation_info.MATMULS, *compilation_info.FORMS)
# forms that passes ask about, which have no separate rule: layouts of a matmul's operands
QUESTIONS = {"gathered_convolution": gathered_convolution.refusal}
