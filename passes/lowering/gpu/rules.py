"""The kernel rules of GPUs, in the order in which they are tried."""

from __future__ import annotations

from mgx_mlir.passes.lowering.gpu.attention import open_attention
from mgx_mlir.passes.lowering.gpu.products import gathered_convolution

KERNELS = (open_attention.RULE,)
# questions of passes about forms that are no rule of their own: the matmul of a kernel reads so
QUESTIONS = {"gathered_convolution": gathered_convolution.refusal}
