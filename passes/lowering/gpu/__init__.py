"""Lowerings for AMD GPUs: shapes of matrix products, matrix instructions, tiles and attention."""
