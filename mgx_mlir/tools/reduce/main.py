"""mgx-reduce: shrinks a module or a model while a command goes on to find it interesting."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError, MgxError, UsageError
from mgx_mlir.core.names import safe_output
from mgx_mlir.rewrite.pipeline import did_you_mean

_HELP = """\
usage: mgx-reduce INPUT.mlir|INPUT.onnx --test 'COMMAND {}' [-o OUTPUT]

Makes a module or an ONNX model that shows a bug as small as it can while the bug shows: ops and
nodes are taken out (their users get inputs in their place), results are dropped, regions inlined,
literals made uniform, dims made small. Every form that is tried is valid. The best so far is in
OUTPUT at any time, so the tool can be interrupted.

The command is given to the shell; {} stands for the file to look at. By default a form is
interesting when the command ends with the same status as for the input itself, signals and
timeouts included: a compiler that crashes on the input has to crash. mlir-reduce's scripts, which
end with 1 for what is interesting, and llvm-reduce's, which end with 0, both work as they are.

  mgx-reduce bad.mlir --test 'mgx-opt {} --mgx-simplify-algebra'
  mgx-reduce bad.onnx --test 'mgx-driver verify {} --cpu' -o small.onnx
  mgx-reduce bad.mlir --test 'mgx-opt {} --cse 2>&1 | grep -q "not in the program"'

options:
  --test=<command>              what is run on every form
  -o=<file>                     the result (default: INPUT.reduced.mlir or .onnx)
  --interesting=<status>        same (default), nonzero (mlir-reduce), zero (llvm-reduce)
  --test-timeout=<seconds>      limit of one run of the command (default 60); a run that takes
                                longer is interesting where the input's own does as well
  --timeout=<seconds>           limit of everything (default 3600)
  --weights=<f.npz>             the weights that `key` attributes of literals refer to; those of a
                                form lie beside it, under its name with .npz
  --allow-unregistered-dialect  accept ops of dialects that are not registered
  --help                        print this text

A reproducer of mgx-opt keeps its pipeline: --test 'mgx-opt --run-reproducer {}'.
Exit status: 0 done, also where nothing could be taken out; 2 could not be done; 130 interrupted."""

_FLAGS = {"allow-unregistered-dialect": False, "help": False, "h": False, "test": True, "o": True,
          "interesting": True, "test-timeout": True, "timeout": True, "weights": True}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is returned. Messages go to stderr."""
    with safe_output():
        return _guarded(argv)


def _guarded(argv: Sequence[str] | None) -> int:
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except MgxError as e:
        say(f"mgx-reduce: error: {e}")
        return e.exit_code
    except KeyboardInterrupt:
        say("mgx-reduce: interrupted, the best form so far is kept")
        return 130


def say(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr, flush=True)


def _main(argv: list[str]) -> int:
    values, file = _arguments(argv)
    if "help" in values or "h" in values:
        print(_HELP)
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

    from mgx_mlir.debug.reduce import OutOfTime, Reduction, Tester

    tester = Tester(
        values["test"],
        f"case{path.suffix}",
        timeout=_seconds(values, "test-timeout", 60),
        interesting=values.get("interesting", "same"),
    )
    say(f"mgx-reduce: {start.describe()}; {tester.first(start)}")
    _keep(start, out)
    run: Reduction[Any] = Reduction(
        start, tester, lambda c: _keep(c, out), say, seconds=_seconds(values, "timeout", 3600)
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
        from mgx_mlir.tools.reduce.onnx_candidate import read_candidate, reduce_model

        return read_candidate(path), reduce_model
    from mgx_mlir.debug.reduce_mlir import read_candidate as read_mlir_candidate
    from mgx_mlir.debug.reduce_mlir import reduce_module

    weights = values.get("weights")
    unregistered = "allow-unregistered-dialect" in values
    return read_mlir_candidate(path, weights, unregistered=unregistered), reduce_module


def _keep(candidate: Any, out: Path) -> None:
    try:
        candidate.write(out)
    except OSError as e:
        raise FileError(f"cannot write '{out}': {(e.strerror or str(e)).lower()}") from None


def _arguments(argv: list[str]) -> tuple[dict[str, str], str | None]:
    values: dict[str, str] = {}
    file = None
    rest = iter(argv)
    for text in rest:
        if text == "-" or not text.startswith("-"):
            if file is not None:
                raise UsageError(f"expected one input file, got '{file}' and '{text}'")
            file = text
            continue
        name, equals, value = text.lstrip("-").partition("=")
        if name not in _FLAGS:
            close = did_you_mean(name, _FLAGS)
            raise UsageError(
                f"unknown option '{text.partition('=')[0]}'",
                notes=[*close, "mgx-reduce --help lists the options"],
            )
        if _FLAGS[name] and not equals:
            found = next(rest, None)
            if found is None:
                raise UsageError(f"option '--{name}' expected a value")
            value = found
        elif not _FLAGS[name] and equals:
            raise UsageError(f"option '--{name}' takes no value, got '{value}'")
        values[name] = value
    return values, file


def _seconds(values: dict[str, str], name: str, default: float) -> float:
    text = values.get(name, str(default))
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise UsageError(f"option '--{name}' expected a number of seconds, got '{text}'")
    return found


if __name__ == "__main__":
    sys.exit(main())
