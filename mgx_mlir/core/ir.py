"""The one importer of the MLIR bindings; everything else takes them from here."""

from torch_mlir import ir, passmanager, rewrite
from torch_mlir.dialects import affine, arith, ext, func, linalg, math, ml_program, scf, tensor

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
