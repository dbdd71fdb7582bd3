"""PyTorch: the backend `mgx` of torch.compile, and modules compiled ahead of time.

Needs torch; nothing else of mgx_mlir imports it.
"""
