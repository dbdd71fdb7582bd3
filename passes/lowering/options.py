"""Options of a target for the lowering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import (
    GemmConfig,
    GemmConfigs,
    GemmShape,
    default,
)


class Apart(Protocol):
    """Compiles kernels apart from the module that launches them."""

    @property
    def salt(self) -> str:
        """Text in each kernel's name: what its code follows from beside its description."""
        ...

    @property
    def holds(self) -> bool:
        """Say whether the module may leave its kernels out: all of them are here by name."""
        ...

    def known(self, name: str) -> bool:
        """Say whether a kernel is compiled already, so that none need be built."""
        ...

    def add(self, name: str, module: bytes) -> None:
        """Take a kernel as soon as it is built, a module of one flow.executable."""
        ...


@dataclass(frozen=True)
class LowerOptions:
    """Options of a target for the lowering of its kernels."""

    target: str = "cpu"
    regions: bool = True  # kernels are dispatch regions; without them, IREE decides the fusion
    arch: str = "host"  # CPU, by LLVM's name or as `host`, or gfx name of a GPU
    vector_kernels: bool = True  # CPU kernels are vector loops of this package where possible
    tiles: bool = True  # tiles of GPU matmuls and attentions are chosen here, not by IREE
    gemm_configs: GemmConfigs | None = None  # configs that a search found for some matmuls
    fast_math: bool = True  # kernels may round in another order
    row_bits: int = 16  # bits of many rows by 4-bit weights, 16 or 8; 8: of attention, too
    # refusals by the backend for a kernel's source location: from 1 on, no vector loops and no
    # tiles; from 2 on, no region
    plainer: Mapping[str, int] = field(default_factory=dict[str, int])
    apart: Apart | None = None  # takes vector kernels, None: they are compiled with their module

    def gemm_config(self, product: GemmShape, function: str = "main") -> GemmConfig:
        """Return the searched choice, else that of the bound; IREE's default without tiles."""
        if not self.tiles or self.target != "gpu" or product.intrinsic(self.arch) is None:
            return GemmConfig(None)
        found = self.gemm_configs(product, function) if self.gemm_configs is not None else None
        return found or default(self.arch, product)
