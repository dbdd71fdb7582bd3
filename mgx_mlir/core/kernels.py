"""The names of the ops whose region is one kernel's body."""

from __future__ import annotations

# dialects/migraphx/fused.py defines them; tests/test_completeness.py holds both together
KERNELS = ("pointwise", "fused_reduce", "fused_concat", "split_fused_reduce", "group")

# patterns for whole tensors have no business inside of them
KERNEL_BODIES = frozenset(f"migraphx.{name}" for name in KERNELS)
