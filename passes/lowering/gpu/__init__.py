"""Lowerings for GPUs: GEMM shapes, matrix instructions, tiles and attention."""
