"""Facts about a compiled program that the driver prints, kept in the cache beside its code.

A program that was found is printed, and gets its inputs, without MLIR.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core import dtypes
from mgx_mlir.debug.purposes import Draw
from mgx_mlir.targets.cache import default_cache
from mgx_mlir.tools.driver.arguments import Arguments


def listing(args: Arguments, compiled: CompiledProgram) -> str:
    """Return a compiled program in the text form."""

    def make() -> str:
        # start-up: what the cache has needs no bindings
        from mgx_mlir.tools.driver.program_texts import program_text

        return program_text(args, compiled.program, "text", compiled.target)

    options = {
        "version": args.get("--text-version", "seed"),
        "copies": "--enable-offload-copy" in args,
    }
    return _kept(args, compiled, {"listing": options}, make)


def input_uses(args: Arguments, compiled: CompiledProgram) -> dict[str, Draw]:
    """Return how to draw each input of a compiled program."""
    inputs = compiled.signature.inputs
    if not any(dtypes.from_name(p.dtype).is_integer for p in inputs):
        return {p.name: Draw() for p in inputs}

    def make() -> str:
        # start-up: what the cache has needs no bindings
        from mgx_mlir.debug.draws import draws

        found = draws(compiled.program)
        return json.dumps({name: [use.purpose, use.bound] for name, use in found.items()})

    rows = json.loads(_kept(args, compiled, {"uses": 1}, make))
    return {name: Draw(*row) for name, row in rows.items()}


def _kept(
    args: Arguments, compiled: CompiledProgram, options: dict[str, Any], make: Callable[[], str]
) -> str:
    store = None if "--no-cache" in args else default_cache()
    if store is None or not isinstance(compiled, IreeProgram) or not compiled.module_text:
        return make()
    code = [compiled.target, compiled.module_text, compiled.executable.key]
    return store.text(code, options, make)


__all__ = ["input_uses", "listing"]
