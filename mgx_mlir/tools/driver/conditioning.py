"""verify: decide whether outputs that differ are ill-conditioned, with nothing wrong by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mgx_mlir.core.errors import MgxError
from mgx_mlir.debug.blame import Case
from mgx_mlir.debug.compare import Comparison, compare
from mgx_mlir.debug.conditioning import Conditioning, conditioning, redrawn
from mgx_mlir.debug.examine import Examined
from mgx_mlir.debug.extract import alone
from mgx_mlir.debug.tolerances import Tolerances, output_tolerances
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from mgx_mlir.tools.driver.progress import say, step

_MOST = 8  # most instructions that are compiled and checked alone


def ill_conditioned(
    case: Case, found: Sequence[Comparison], wanted: Sequence[np.ndarray], least: float = 0.0
) -> dict[str, Conditioning]:
    """Return how each failing output moves; empty where one of them fails for another reason.

    Each failing output's error must be within the effect of one ulp in an intermediate value, and
    no instruction, kernel or pass may be wrong by itself. `least`:
    the relative step of the type that the target computes in, where that is coarser.
    """
    failed = [c for c in found if not c.passed]
    with step("Running ref with numbers changed by one ulp ..."):
        try:
            each = conditioning(
                case.program, case.arrays, wanted, _limits(case), least=least, seed=case.seed
            )
        except MgxError as e:
            say(f"note: cannot determine the conditioning of the outputs: {e.message}")
            return {}
    by_name = {c.name: c for c in each}
    moves = {c.name: by_name[c.name] for c in failed if c.name in by_name}
    if len(moves) < len(failed) or not all(moves[c.name].explains(c) for c in failed):
        return {}
    return moves if _nothing_is_wrong(case, moves) else {}


def _nothing_is_wrong(case: Case, moves: Mapping[str, Conditioning]) -> bool:
    """Return whether every instruction, every kernel and all passes are right by themselves."""
    with step("Running every instruction, every kernel and what the passes made ..."):
        try:
            case = replace(case, keep=_MOST)
            if not _excused(case, case.program, case.instructions()):
                return False
            fused = case.fused()
            return _excused(case, fused, case.kernels(fused)) and _passes_keep(case, moves)
        except MgxError as e:
            say(f"note: cannot determine what is wrong by itself: {e.message}")
            return False


def _excused(case: Case, program: ProgramIR, found: Examined) -> bool:
    """Return whether what is wrong is itself ill-conditioned: a kernel may subtract what it sums.

    Each alone is off by no more than one ulp makes it, and with other weights and inputs it agrees.
    """
    if len(found.wrong) > _MOST:
        return False
    for f in found.wrong:
        one, inputs = alone(program, f.position, f.inputs)
        arrays = [inputs[p.name] for p in Signature.of(one.main()).inputs]
        part = replace(case, program=one, arrays=arrays)
        each = conditioning(one, arrays, _in_double(one, arrays), _limits(part), seed=case.seed)
        bad = [(m, c) for m, c in zip(each, f.own, strict=True) if not c.passed]
        if not all(m.explains(c) for m, c in bad) or case.differences(redrawn(one, case.seed)):
            return False
    return True


def _passes_keep(case: Case, moves: Mapping[str, Conditioning]) -> bool:
    """Return whether the passes keep the reference's results, computed in f64.

    For ill-conditioned outputs it must hold with other weights too.
    """
    other = replace(case, program=redrawn(case.program, case.seed))
    own = _in_double(other.program, case.arrays)
    each = conditioning(other.program, case.arrays, own, _limits(other), seed=case.seed)
    return _agree(case, moves) and _agree(other, {c.name: c for c in each})


def _agree(case: Case, moves: Mapping[str, Conditioning]) -> bool:
    after, before = (_in_double(p, case.arrays) for p in (case.fused(), case.program))
    outputs = Signature.of(case.program.main()).outputs
    for port, a, b, limit in zip(outputs, after, before, _limits(case), strict=True):
        c = compare(port.name, a, b, limit)
        if not c.passed and not (port.name in moves and moves[port.name].explains(c)):
            return False
    return True


def _limits(case: Case) -> list[Tolerances]:
    return [case.limits(t) for t in output_tolerances(case.program, low=case.low)]


def _in_double(program: ProgramIR, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    names = [p.name for p in Signature.of(program.main()).inputs]
    with program.ctx:
        run = Interpreter(program.module, program.store, compute="f64")
        return run.run(dict(zip(names, arrays, strict=True)))
