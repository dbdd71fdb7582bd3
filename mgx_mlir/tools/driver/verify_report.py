"""Report of verify on each output: its own lines, MIGraphX's lines, and a JSON object."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any

import numpy as np

from mgx_mlir.debug.compare import Comparison
from mgx_mlir.debug.conditioning import Conditioning
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.program_texts import write_file

DUMP = "MIGRAPHX_VERIFY_DUMP_DIFF"
_SHORT = 32  # elements below which both sides are printed, as in MIGraphX
_FALSE = ("", "0", "false", "off", "no")


def row(c: Comparison, sides: tuple[str, str], moves: Conditioning | None = None) -> str:
    """Write an output's line, and its remarks. `moves`: it is ill-conditioned."""
    verdict = "pass" if c.passed else "FAIL" if moves is None else "ill-conditioned"
    lines = [f"{c.name}: {figures(c)}: {verdict}"]
    lines += [] if moves is None else [f"  {moves}"]
    lines += [f"  {text}" for text in c.problems]
    for index, a, b in c.different:
        where = ", ".join(map(str, index))
        lines.append(f"  at {{{where}}}: {sides[0]} {a:.7g}, {sides[1]} {b:.7g}")
    lines += [f"  warning: {text}" for text in c.warnings]
    return "\n".join(lines)


def figures(c: Comparison) -> str:
    """Write how far an output is off; of strings, how many differ."""
    if c.strings:
        return f"{c.count} of {c.elements} strings differ"
    return f"max abs diff {c.max_abs:.3g}, max rel diff {c.max_rel:.3g}, rms {c.rms:.3g}"


def failure_lines(
    c: Comparison, model: str, got: np.ndarray | None, wanted: np.ndarray | None
) -> list[str]:
    """Write MIGraphX's lines for an output that fails, in its order and spelling."""
    lines = [f"FAILED: {model}"]
    if c.shapes is not None:
        return [*lines, f"Shape mismatch {{{c.shapes[1]}}} != {{{c.shapes[0]}}}"]
    if got is None or wanted is None or c.strings:
        return lines
    lines.append(f"RMS Error: {c.rms:g}")
    dump = os.environ.get(DUMP, "").lower() not in _FALSE
    if dump or c.elements < _SHORT:
        lines += [f"ref: {_elements(wanted)}", f"target: {_elements(got)}"]
    target, ref = c.sides
    for side, name in ((ref, "Ref"), (target, "Target")):
        if side in c.zero:
            lines.append(f"{name} data is all zeros")
    lines.append(f"Max diff: {c.max_abs:g}")
    if c.mismatch is not None:
        at, a, b = c.mismatch
        lines.append(f"Mismatch at {at}: {b:g} != {a:g}")
    for side, name in ((ref, "ref"), (target, "target")):
        if side in c.odd:
            at, value = c.odd[side]
            lines.append(f"Non finite number found in {name} at {at}: {value:g}")
    return lines


def _elements(a: np.ndarray) -> str:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.printers.text import element_texts

    return ", ".join(element_texts(np.asarray(a)))


# ---- JSON ----------------------------------------------------------------------------------------


def output_json(c: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON object; docs/verify.md lists the keys."""
    found: dict[str, Any] = {
        "name": c.name,
        "passed": c.passed,
        "elements": c.elements,
        "max_abs": plain(c.max_abs),
        "max_rel": plain(c.max_rel),
        "rms": plain(c.rms),
        "worst": list(c.worst),
        "differing": c.count,
        "mismatch": None,
        "non_finite": {s: {"index": i, "value": plain(v)} for s, (i, v) in c.odd.items()},
        "all_zero": list(c.zero),
        "shapes": None if c.shapes is None else dict(zip(c.sides, c.shapes, strict=True)),
        "limits": None,
        "problems": list(c.problems),
        "warnings": list(c.warnings),
    }
    if c.mismatch is not None:
        at, a, b = c.mismatch
        found["mismatch"] = {"index": at, "target": plain(a), "reference": plain(b)}
    if c.limits is not None:
        t = c.limits
        found["limits"] = {
            "rms": t.rms, "atol": t.atol, "rtol": t.rtol, "integer": t.integer,
            "scaled": t.scaled, "elementwise": t.elementwise,
        }  # fmt: skip
    return found


def conditioning_json(c: Conditioning) -> dict[str, Any]:
    """Return how an ill-conditioned output moves, as a JSON object."""
    return {
        "name": c.name,
        "moved_rms": plain(c.moved_rms),
        "moved_max_abs": plain(c.moved_max),
        "double_rms": plain(c.double_rms),
        "double_max_abs": plain(c.double_max),
    }


def plain(value: float) -> float | str:
    """Convert a number to JSON's; NaN and infinities, which it lacks, become text."""
    return value if math.isfinite(value) else str(value)


def write_json(args: Arguments, report: dict[str, Any]) -> None:
    """Print a report, or write it to --output."""
    text = json.dumps(report, indent=1, allow_nan=False) + "\n"
    path = args.get("--output")
    if path is None:
        sys.stdout.write(text)
    else:
        write_file(path, text.encode(errors="surrogatepass"))
