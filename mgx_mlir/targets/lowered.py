"""What the lowering hands to a target (see core/lowered.py)."""

from mgx_mlir.core.lowered import IOSpec, KernelInfo, Lowered, io_specs, kernel_infos

__all__ = ["IOSpec", "KernelInfo", "Lowered", "io_specs", "kernel_infos"]
