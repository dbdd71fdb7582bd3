"""completion: what a shell needs to complete commands, options and files."""

from __future__ import annotations

from mgx_mlir.core.errors import UsageError
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.options import HELP
from mgx_mlir.tools.driver.shell_completion import SHELLS, script

USAGE = "bash | zsh | fish | powershell"
DESCRIPTION = """
bash:  source <(mgx-driver completion bash)

zsh:   source <(mgx-driver completion zsh)

fish:  mgx-driver completion fish | source

powershell:  mgx-driver completion powershell | Out-String | Invoke-Expression"""
OPTIONS = (HELP,)


def run(args: Arguments) -> int:
    """Print the completion script of a shell."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.tools.driver.main import command_table

    if args.file not in SHELLS:
        got = "nothing" if args.file is None else f"'{args.file}'"
        raise UsageError(f"expected a shell, {', '.join(SHELLS)}, got {got}")
    print(script(args.file, command_table()))
    return 0
