"""Alignment of operand addresses that CPU kernels assume, stated in the module."""

from __future__ import annotations

import io

from mgx_mlir.core.ir import ir

# Alignment of numpy arrays, so that inputs are not copied before a call. Sizes are rounded up to
# cache lines, so computed tensors are still aligned to those.
_OF_ARRAYS = 16
_LINE = 64  # alignment that IREE assumes by itself
_MOST = (1 << 63) - 1  # IREE's default, as are the index bits


def written(module: ir.Module, target: str) -> tuple[bytes, int]:
    """Return the module as bytecode, and what its kernels assume of the address of an input."""
    alignment = _OF_ARRAYS if target == "cpu" else _LINE
    if alignment != _LINE:
        module.operation.attributes["stream.resources"] = ir.Attribute.parse(
            f"#stream.resource_config<{{max_allocation_size = {_MOST}, "
            f"min_buffer_offset_alignment = {alignment}, max_buffer_range = {_MOST}, "
            f"min_buffer_range_alignment = {_LINE}, index_bits = 64, "
            "alias_mutable_bindings = false, memory_model = Unified}>"
        )
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue(), alignment
