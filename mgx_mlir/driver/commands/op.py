"""op: the operators of the dialect."""

from __future__ import annotations

import json

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.op import OPS
from mgx_mlir.core.pipeline import did_you_mean
from mgx_mlir.driver.arguments import Arguments
from mgx_mlir.driver.options import HELP, LIST

USAGE = "[--list | NAME]"
DESCRIPTION = "Without a name every operator is listed, one per line, sorted."
OPTIONS = (LIST, HELP)

BUILTINS = ("@literal", "@param", "@return")
_NOT_LISTED = ("literal", "yield", "unknown")  # @literal, @return, unknown:NAME


def run(args: Arguments) -> int:
    names = sorted({*BUILTINS, "unknown:", *(n for n in OPS if n not in _NOT_LISTED)})
    if args.file is None or "--list" in args:
        if args.file is not None:
            raise UsageError(f"expected --list or an operator, got both: '{args.file}'")
        print("\n".join(names))
        return 0
    if args.file not in names:
        raise UsageError(f"unknown operator '{args.file}'", notes=did_you_mean(args.file, names))
    print(f"{args.file}:")
    print(json.dumps(_defaults(args.file), indent=4))
    return 0


def _defaults(name: str) -> dict[str, object]:
    if name in BUILTINS or name == "unknown:":
        return {}
    from mgx_mlir.api.op import op

    return op(name).values()
