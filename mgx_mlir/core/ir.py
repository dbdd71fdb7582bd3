"""The one importer of the MLIR bindings; everything else takes them from here."""

from torch_mlir import ir, passmanager, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import affine, arith, ext, func, linalg, math, ml_program, scf, tensor

# Without a module of the dialect's name in a searched package the bindings retry the failing import
# at every OpView: 18 us per op instead of 0.6 us, in walks, patterns and verifiers alike.
_mlir.globals.append_dialect_search_prefix("mgx_mlir.dialects")

__all__ = [
    "affine",
    "arith",
    "ext",
    "func",
    "ir",
    "linalg",
    "math",
    "ml_program",
    "passmanager",
    "rewrite",
    "scf",
    "tensor",
]
