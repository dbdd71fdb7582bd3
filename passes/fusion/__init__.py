"""Fusing groups of ops into kernels: what the fuse passes share. plan decides, build makes the kernels."""
