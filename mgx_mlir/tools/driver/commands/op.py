"""op: the operators of the dialect and the kernels of the targets."""

from __future__ import annotations

import json

import mgx_mlir.dialects
from mgx_mlir.core.attrs import REQUIRED
from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.op import OPS, HostOp, ViewOp
from mgx_mlir.rewrite.pipeline import did_you_mean
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.options import HELP, LIST

USAGE = "[--list | NAME]"
DESCRIPTION = """
Without a name every operator is listed, one per line, sorted: those of programs, and as
TARGET::NAME those that a target has a kernel for. A kernel of several operators is named by
all of them. With a name its attributes are printed with their defaults."""
OPTIONS = (LIST, HELP)

# operators without a class in the dialect, with their attributes
BUILTINS: dict[str, dict[str, object]] = {
    "@literal": {}, "@param": {"parameter": ""}, "@return": {}, "get_tuple_elem": {"index": 0},
    "unknown:": {"op": ""},
}  # fmt: skip
_NOT_LISTED = ("literal", "yield", "unknown")  # @literal, @return, unknown:NAME


def run(args: Arguments) -> int:
    """List the operators, or describe one."""
    mgx_mlir.dialects.load()
    names = sorted({*BUILTINS, *(n for n in OPS if n not in _NOT_LISTED), *kernel_names()})
    if args.file is None or "--list" in args:
        if args.file is not None:
            raise UsageError(f"expected --list or an operator, got both: '{args.file}'")
        print("\n".join(names))
        return 0
    if args.file not in names:
        notes = did_you_mean(args.file, names, listed_by="mgx-driver op")
        raise UsageError(f"unknown operator '{args.file}'", notes=notes)
    print(f"{args.file}:")
    print(json.dumps(defaults(args.file.rpartition("::")[2]), indent=4, sort_keys=True))
    return 0


def kernel_names() -> list[str]:
    """Return the names under which compiled programs show single operators, by target."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.passes.lowering.families import load
    from mgx_mlir.passes.lowering.registry import REFUSED

    load()
    plain = {n: cls for n, cls in OPS.items() if n not in _NOT_LISTED and not cls.REGIONS}
    lowered = [
        n for n, cls in plain.items() if not issubclass(cls, (ViewOp, HostOp)) and n not in REFUSED
    ]
    return [f"{target}::{n}" for target in ("cpu", "gpu") for n in lowered] + [
        f"ref::{n}" for n in plain if n != "undefined"
    ]


def defaults(name: str) -> dict[str, object]:
    """Return the attributes of an operator with their defaults; null where there is none."""
    if name in BUILTINS:
        return BUILTINS[name]
    from mgx_mlir.api.op import op  # start-up: only what the command asks for is loaded

    found = op(name).values()
    for key, definition in OPS[name].ATTRS.items():
        if definition.default is REQUIRED and definition.what.startswith("an array"):
            found[key] = []
    return found
