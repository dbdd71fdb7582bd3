"""The command line of mgx-reduce: its help text, and its options as values."""

from __future__ import annotations

from mgx_mlir.core.errors import UsageError
from mgx_mlir.rewrite.pipeline import did_you_mean

HELP = """\
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
  --weights=<f.npz>             the weights that `key` attributes of literals refer to (default:
                                INPUT.npz, if there); those of a form lie beside it, FORM.npz
  --allow-unregistered-dialect  accept ops of dialects that are not registered
  --help                        print this text

A reproducer of mgx-opt keeps its pipeline: --test 'mgx-opt --run-reproducer {}'.
Exit status: 0 success, even if nothing could be removed; 2 failure; 130 interrupted."""

_FLAGS = {"allow-unregistered-dialect": False, "help": False, "h": False, "test": True, "o": True,
          "interesting": True, "test-timeout": True, "timeout": True, "weights": True}  # fmt: skip


def parse_arguments(argv: list[str]) -> tuple[dict[str, str], str | None]:
    """Parse the options and the input file. Errors: UsageError."""
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


def seconds(values: dict[str, str], name: str, default: float) -> float:
    """Return the value of an option in seconds. Errors: UsageError."""
    text = values.get(name, str(default))
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise UsageError(f"option '--{name}' expected a number of seconds, got '{text}'")
    return found
