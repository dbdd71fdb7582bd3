"""problems: files of tuning solutions, listed, checked, merged, taken to another IREE version."""

from __future__ import annotations

from pathlib import Path

from mgx_mlir.core.errors import UsageError
from mgx_mlir.tools.driver.arguments import Arguments, Option
from mgx_mlir.tools.driver.options import HELP

ACTIONS = ("list", "validate", "merge", "convert")
USAGE = "list | validate | merge | convert [-i FILE...] [-o FILE]"
DESCRIPTION = """
list prints the files that compiles look into: one's own (MIGRAPHX_PROBLEM_CACHE, else tuning.json
in the cache's folder), which --exhaustive-tune writes, and below it those that MGX_PROBLEM_CACHES
names, which are only read. validate counts the rows that this version can use; exit status 1 where
a row is unknown or there twice. merge writes the rows of several files to one: the first of a
problem stays, unless a later one was timed and it was not. convert converts matmuls of another IREE
version to this one, as choices of a bound, which a search replaces."""
OPTIONS = (
    Option(("-i", "--input"), "the files to read", "FILE...", "greedy"),
    Option(("-o", "--output"), "merge, convert: the file to write", "FILE"),
    HELP,
)


def run(args: Arguments) -> int:
    """Do what the word after `problems` says; return 1 where validate finds a problem."""
    action = args.file
    if action not in ACTIONS:
        got = "nothing" if action is None else f"'{action}'"
        raise UsageError(f"expected one of {', '.join(ACTIONS)}, got {got}")
    paths = [Path(p) for p in args.get("--input", [])]
    writes = action in ("merge", "convert")
    if (action != "list") != bool(paths) or (action == "convert" and len(paths) > 1):
        wanted = {"list": "no file", "convert": "one file"}.get(action, "files")
        raise UsageError(f"problems {action} expected {wanted}, by --input")
    if writes != ("--output" in args):
        raise UsageError(
            f"problems {action} expected {'--output FILE' if writes else 'no --output'}"
        )
    # start-up: only what the command asks for is loaded
    from mgx_mlir.compiler.tuning import problem_files, solutions

    if action == "list":
        for at, path in enumerate(solutions.layers()):
            count = f"{len(solutions.read_rows(path))} rows" if path.is_file() else "not there"
            print(f"{path}: {count}{', read only' if at else ''}")
        return 0
    if action == "validate":
        problems = 0
        for path in paths:
            found = problem_files.check(path)
            counts = ", ".join(f"{n} {kind}" for kind, n in found.counts.items()) or "no rows"
            print("\n".join([f"{path}: {counts}", *(f"  {p}" for p in found.problems)]))
            problems += len(found.problems)
        return 1 if problems else 0
    target = Path(args.get("--output"))
    if action == "merge":
        rows, said = problem_files.merge(paths), f"of {len(paths)} files"
    else:
        rows, taken = problem_files.convert(paths[0])
        said = f"{taken} of another IREE version"
    problem_files.write(target, rows)
    print(f"wrote {len(rows)} rows to {target}, {said}")
    return 0
