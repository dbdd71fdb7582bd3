"""The target of a compile, from its options and the environment."""

from __future__ import annotations

from mgx_mlir.compiler import environment
from mgx_mlir.compiler.dump_files import dump_flags
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.targets.base import Target, get_target


def backend_of(options: CompileOptions) -> Target:
    """Return the target that the options and the environment select."""
    level = environment.level(options.target, options.tuning.opt_level)
    extra = (*environment.backend_flags(options.target), *dump_flags())
    if options.target == "gpu":
        return get_target("gpu", architecture=options.one_arch, opt_level=level, extra_flags=extra)
    if options.target == "cpu":
        tiling = options.tuning.data_tiling
        cpu = options.one_arch or "host"
        return get_target(
            "cpu",
            threads=options.threads,
            cpu=cpu,
            opt_level=level,
            data_tiling=tiling,
            extra_flags=extra,
        )
    return get_target(options.target)


def processor_of(options: CompileOptions) -> str:
    """Return the CPU that kernels are made for."""
    return (options.one_arch or "host") if options.target == "cpu" else "host"
