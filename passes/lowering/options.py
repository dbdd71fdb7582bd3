"""What a target asks of the lowering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mgx_mlir.passes.lowering.gpu.products.gemm_shape import (
    GemmConfig,
    GemmConfigs,
    GemmShape,
    default,
)


@dataclass(frozen=True)
class LowerOptions:
    """How a target wants its kernels: `regions` off leaves the fusion to IREE."""

    target: str = "cpu"
    regions: bool = True
    arch: str = "host"  # the processor, `host` or a name of LLVM's, or the gfx name of a GPU
    vector_kernels: bool = True  # our own loops on processors
    tiles: bool = True  # sizes of our own for the tiles of GPU products
    gemm_configs: GemmConfigs | None = None  # what a search found for some of them
    fast_math: bool = True  # kernels that round in another order
    # source locations whose kernels were refused, and how often: 1, no vector loops and no tiles;
    # 2, no region
    plainer: Mapping[str, int] = field(default_factory=dict[str, int])

    def gemm_config(self, product: GemmShape, function: str = "main") -> GemmConfig:
        """Return a found choice, else the bound's; the compiler's own without tiles."""
        if not self.tiles or self.target != "gpu" or product.intrinsic(self.arch) is None:
            return GemmConfig(None)
        found = self.gemm_configs(product, function) if self.gemm_configs is not None else None
        return found or default(self.arch, product)
