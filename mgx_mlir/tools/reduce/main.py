"""mgx-reduce: shrinks a module or a model while a command still finds it interesting."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.names import safe_output
from mgx_mlir.tools.ending import ended
from mgx_mlir.tools.reduce.arguments import HELP, parse_arguments, seconds

if TYPE_CHECKING:
    from mgx_mlir.debug.reduce import Candidate


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is returned. Messages go to stderr."""
    with safe_output():
        words = list(sys.argv[1:] if argv is None else argv)
        told = "interrupted, the best form so far is kept"
        return ended("mgx-reduce", lambda: _main(words), interrupted=told)


def say(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr, flush=True)


def _main(argv: list[str]) -> int:
    values, file = parse_arguments(argv)
    if "help" in values or "h" in values:
        print(HELP)
        return 0
    if file is None or "test" not in values:
        raise UsageError("expected a file and --test, see mgx-reduce --help")
    path = Path(file)
    if path.suffix not in (".mlir", ".onnx"):
        raise UsageError(f"expected a .mlir or .onnx file, got '{file}'")
    out = Path(values.get("o") or path.with_suffix(f".reduced{path.suffix}"))
    if out.suffix != path.suffix:
        raise UsageError(f"expected an output that ends in {path.suffix}, got '{out}'")
    start, shrink = _start(path, values)

    # start-up: --help and --version need none of it
    from mgx_mlir.debug.reduce import OutOfTime, Reduction, Tester

    tester = Tester(
        values["test"],
        f"case{path.suffix}",
        timeout=seconds(values, "test-timeout", 60),
        interesting=values.get("interesting", "same"),
    )
    say(f"mgx-reduce: {start.describe()}; {tester.first(start)}")
    _keep(start, out)
    run: Reduction[Any] = Reduction(
        start, tester, lambda c: _keep(c, out), say, seconds=seconds(values, "timeout", 3600)
    )
    try:
        shrink(run)
    except OutOfTime:
        say("mgx-reduce: time limit reached, the best form so far is kept")
    say(f"mgx-reduce: {run.best.describe()} after {tester.runs} runs: {out}")
    if run.best.is_empty:
        say(
            f"note: nothing is left: {tester.command!r} finds an empty program interesting; "
            "--interesting=zero or nonzero says which status to look for"
        )
    return 0


def _start(path: Path, values: dict[str, str]) -> tuple[Any, Any]:
    """Read the input as a candidate; return it and what reduces it."""
    if path.suffix == ".onnx":
        if "weights" in values or "allow-unregistered-dialect" in values:
            raise UsageError("--weights and --allow-unregistered-dialect are for .mlir files")
        # start-up: --help and --version need none of it
        from mgx_mlir.tools.reduce.onnx_candidate import read_candidate, reduce_model

        return read_candidate(path), reduce_model
    # start-up: --help and --version need none of it
    from mgx_mlir.debug.reduce_mlir import read_candidate as read_mlir_candidate
    from mgx_mlir.debug.reduce_mlir import reduce_module

    weights = values.get("weights")
    unregistered = "allow-unregistered-dialect" in values
    return read_mlir_candidate(path, weights, unregistered=unregistered), reduce_module


def _keep(candidate: Candidate, out: Path) -> None:
    try:
        candidate.write(out)
    except OSError as e:
        raise FileError(f"cannot write '{out}': {(e.strerror or str(e)).lower()}") from None


if __name__ == "__main__":
    sys.exit(main())
