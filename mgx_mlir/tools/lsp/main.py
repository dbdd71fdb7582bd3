"""mgx-lsp-server: the command line, which starts the server on stdin and stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mgx_mlir.core import plugins
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.extras import install_line

USAGE = """\
usage: mgx-lsp-server [--load-plugin=FILE[,...]]

Answers editors' questions about .mlir files on stdin and stdout, by the Language Server Protocol:
hover, diagnostics, definitions, completion. docs/debugging.md says how editors start it."""
_PLUGIN = "--load-plugin="


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the client ends it; the exit status is returned."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "-h" in arguments or "--help" in arguments:
        print(USAGE)
        return 0
    # options that clients add to say that they use pipes
    unknown = [a for a in arguments if a != "--stdio" and not a.startswith(_PLUGIN)]
    if unknown:
        print(f"mgx-lsp-server: error: unknown option '{unknown[0]}'\n{USAGE}", file=sys.stderr)
        return 2
    try:
        from mgx_mlir.tools.lsp.server import make_server  # a package that a user may not have
    except ModuleNotFoundError as e:
        package = (e.name or "").partition(".")[0]
        if package not in ("pygls", "lsprotocol"):
            raise
        print(
            f"mgx-lsp-server: error: {package} is not installed\n"
            f"note: {install_line('lsp')} installs it",
            file=sys.stderr,
        )
        return 2
    try:
        for argument in arguments:
            if argument.startswith(_PLUGIN):
                for source in argument.removeprefix(_PLUGIN).split(","):
                    plugins.add(source)
        plugins.load()
    except MgxError as e:
        print(f"mgx-lsp-server: error: {e}", file=sys.stderr)
        return e.exit_code
    make_server().start_io()
    return 0
