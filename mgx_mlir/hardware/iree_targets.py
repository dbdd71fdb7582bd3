"""Targets of AMD GPUs that IREE 3.13 has no name for, as attributes of a module.

IREE's `--iree-rocm-target` knows some chips. Its code generator accepts any LLVM target described
by `#iree_gpu.target`. A module that states its target needs no such flag.

Sources: what IREE prints for gfx1100 and gfx908 (`--compile-to=preprocessing`), without matrix
instructions where the chip has none; LLVM's AMDGPUUsage and its GPU definitions for dot
products of bytes and the sizes of waves.
"""

from __future__ import annotations

_TYPES = "compute = fp64|fp32|fp16|int64|int32|int16|int8, storage = b64|b32|b16|b8"
_LIMITS = (
    "max_workgroup_sizes = [1024, 1024, 1024], max_thread_count_per_workgroup = 1024, "
    "max_workgroup_memory_bytes = 65536, "
    "max_workgroup_counts = [2147483647, 2147483647, 2147483647], "
    "max_load_instruction_bits = 128, simds_per_wgp = 4, vgpr_space_bits = {bits}, "
    "workgroup_memory_bank_count = {banks}"
)
_WMMA = (
    "<WMMAR3_F32_16x16x16_F16>, <WMMAR3_F16_16x16x16_F16>, <WMMAR3_F32_16x16x16_BF16>, "
    "<WMMAR3_BF16_16x16x16_BF16>, <WMMAR3_I32_16x16x16_I8>"
)


def _described(mma: str, waves: str, banks: int) -> str:
    """Return IREE's description of a WGP of RDNA; a lane has 256 registers of 32 bits."""
    limits = _LIMITS.format(bits=256 * 32, banks=banks)
    return (
        f"<{_TYPES}, subgroup = shuffle|arithmetic, dot = dp4xi8toi32, mma = [{mma}], "
        f"subgroup_size_choices = [{waves}], {limits}>"
    )


_RDNA2 = _described("", "32, 64", 64)
_RDNA3 = _described(_WMMA, "32, 64", 64)
_VEGA = _described("", "64", 32)
_PROCESSORS = {
    "gfx906": _VEGA,
    **{f"gfx103{n}": _RDNA2 for n in range(7)},
    "gfx1102": _RDNA3,
    "gfx1152": _RDNA3,
    "gfx1153": _RDNA3,
}


def stated_target(arch: str) -> str | None:
    """Return the value of a module's `hal.device.targets`, None where IREE has a flag for it."""
    processor = _PROCESSORS.get(arch)
    if processor is None:
        return None
    return (
        '[#hal.device.target<"hip", [#hal.executable.target<"rocm", "rocm-hsaco-fb", '
        '{abi = "hip", iree.encoding.resolver = #iree_gpu.gpu_encoding_resolver<>, '
        f'iree_codegen.target_info = #iree_gpu.target<arch = "{arch}", features = "", '
        f'wgp = {processor}>, ukernels = "none"}}>]> : !hal.device]'
    )


__all__ = ["stated_target"]
