"""roctx: a model run once between the markers that ROCm's profilers show."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.ref_program import RefProgram
from mgx_mlir.core.errors import TargetError
from mgx_mlir.core.ir import ir
from mgx_mlir.runtime.graphs import mark
from mgx_mlir.runtime.trace_eval import Stepping
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.compile_model import compile_model, emit_compiled, limited_first_call
from mgx_mlir.tools.driver.emit import form_of
from mgx_mlir.tools.driver.input_data import allocate
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import HELP, RUNNERS
from mgx_mlir.tools.driver.progress import say, step
from mgx_mlir.tools.driver.shown import input_uses
from mgx_mlir.tools.driver.target_choice import choose_target

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
Run it under rocprof --roctx-trace. The compiled program is printed; after a call without markers
one is made in a range named 0. For --ref each instruction has a range 'Marker start: NAME', for
--gpu each launch one with the kernel's name, while the host hands it over. Needs libroctx64.so,
which is part of ROCm, and for --gpu a C++ compiler, once."""
OPTIONS = (*RUNNERS, HELP)

LIBRARY = "libroctx64.so"
_LITERAL = "migraphx.literal"


def run(args: Arguments) -> int:
    """Run the model under rocTX markers."""
    model = Model(args)
    form_of(args)
    choice = choose_target(args, runs=True, model=model)
    markers = Markers()
    compiled = compile_model(args, model, choice)
    emit_compiled(args, model, choice, compiled)
    sys.stdout.write("\n")
    compiled.can_mark = choice.target == "gpu"
    inputs = allocate(args, model, compiled.signature, input_uses(args, compiled))
    arrays = compiled.signature.check_inputs(inputs)
    limited_first_call(compiled, arrays)
    with step("Running ..."):
        compiled.execute(arrays)
        started = markers.start("0")
        if isinstance(compiled, RefProgram):
            _instructions(compiled, arrays, markers)
        elif isinstance(compiled, IreeProgram) and compiled.can_mark:
            with mark(compiled.load(), *markers.functions):
                compiled.execute(arrays)
        else:
            compiled.execute(arrays)
        markers.stop(started)
    if choice.target == "cpu":
        say("One range: the runtime runs all kernels in one call")
    return 0


def _instructions(compiled: RefProgram, arrays: Sequence[np.ndarray], markers: Markers) -> None:
    """Run the reference, each instruction in a range of its own."""
    program = compiled.program

    def before(op: ir.Operation) -> None:
        if op.name != _LITERAL:
            markers.push(f"Marker start: {op.name.replace('migraphx.', 'ref::')}")

    def after(op: ir.Operation, results: Sequence[np.ndarray]) -> None:
        if op.name != _LITERAL:
            markers.pop()

    with program.ctx:
        stepping = Stepping(program, before, after)
        stepping.begin()
        compiled.execute(arrays, trace=stepping.trace)


class Markers:
    """The library's ranges. TargetError where it cannot be loaded, or is another library."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(LIBRARY)
            self._push, self._pop = library.roctxRangePushA, library.roctxRangePop
            self._start, self._stop = library.roctxRangeStartA, library.roctxRangeStop
        except (OSError, AttributeError) as e:
            raise TargetError(
                f"{LIBRARY} cannot be loaded: {e}",
                notes=["it is part of ROCm's roctracer; perf --trace needs no library"],
            ) from None
        self._push.argtypes = self._start.argtypes = [ctypes.c_char_p]
        self._start.restype = ctypes.c_uint64
        self._stop.argtypes = [ctypes.c_uint64]
        self._stop.restype = None

    @property
    def functions(self) -> tuple[Any, Any]:
        """The C functions that begin and end a range."""
        return self._push, self._pop

    def push(self, name: str) -> None:
        """Begin a range inside of the one that this thread began last."""
        self._push(name.encode(errors="replace"))

    def pop(self) -> None:
        """End the range that was pushed last."""
        self._pop()

    def start(self, name: str) -> int:
        """Begin a range; the number that ends it."""
        return self._start(name.encode(errors="replace"))

    def stop(self, number: int) -> None:
        """End a range that was begun by `start`."""
        self._stop(number)
