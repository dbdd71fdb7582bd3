"""What a target asks of the lowering."""

from __future__ import annotations

from dataclasses import dataclass

from mgx_mlir.passes.lower.gpu.gemm_shape import Choice, Choices, Product, default


@dataclass(frozen=True)
class LowerOptions:
    """How a target wants its kernels: `regions` off leaves the fusion to IREE.

    arch: the processor, `host` or a name of LLVM's, or the gfx name of a GPU. vector_kernels: our
    own loops on processors. tiles: sizes of our own for the tiles of GPU products; choices: what a
    search found for some of them.
    """

    target: str = "cpu"
    regions: bool = True
    arch: str = "host"
    vector_kernels: bool = True
    tiles: bool = True
    choices: Choices | None = None

    def choice_for(self, product: Product, function: str = "main") -> Choice:
        """Return a found choice, else the bound's; the compiler's own without tiles."""
        if not self.tiles or self.target != "gpu" or product.kind(self.arch) is None:
            return Choice(None)
        found = self.choices(product, function) if self.choices is not None else None
        return found or default(self.arch, product)
