"""A program from the cache, or compiled. A cache hit loads neither IREE's compiler nor
importers.
"""

from __future__ import annotations

import logging
import time

from mgx_mlir.compiler.backend import backend_of
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.program_cache import find_program, program_cache_key
from mgx_mlir.compiler.sources import ModelSource
from mgx_mlir.compiler.stats import summary
from mgx_mlir.core import collector
from mgx_mlir.programs.program_ir import ProgramIR

log = logging.getLogger(__name__)


def compile_once(model: ModelSource, options: CompileOptions) -> IreeProgram:
    """Take the program from the cache, or compile the model. Raises MgxError."""
    start = time.perf_counter()
    backend = backend_of(options)
    key = program_cache_key(model, options, backend)
    found = find_program(key, options, model) if key is not None else None
    if found is None:
        with collector.resting():
            backend.begin()
            # start-up: a cache hit needs none of it
            from mgx_mlir.compiler.compilation import Compilation

            made = Compilation(options, backend).run(model, key)
        made.stats.total_s = time.perf_counter() - start
        log.info("%s", summary(made.stats))
        return made
    if isinstance(model, ProgramIR):
        source = model.clone()  # the caller may change the original

        def after_passes() -> ProgramIR:
            from mgx_mlir.compiler.compilation import Compilation

            return Compilation(options, backend).after_passes(source)

        found.after_passes = after_passes
    found.stats.total_s = time.perf_counter() - start
    log.info("%s", summary(found.stats))
    return found
