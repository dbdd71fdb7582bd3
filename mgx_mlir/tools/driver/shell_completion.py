"""Completion scripts of shells: shtab's, of a parser made of the tables of options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from mgx_mlir.tools.driver.arguments import LEVELS, Option

SHELLS = ("bash", "zsh", "fish", "powershell")
Commands = Mapping[str, tuple[str, Sequence[Option]]]  # help of each command, and its options
FILES = ("FILE", "[FILE]", "FILE...", "FILE[,...]", "@NAME FILE", "PREFIX", "PATH")
_COUNTS = {"greedy": "+", "optional": "?"}


def script(shell: str, commands: Commands) -> str:
    """Return the completion script of a shell."""
    import shtab  # start-up: only completion needs it

    root = argparse.ArgumentParser("mgx-driver", add_help=False)
    each = root.add_subparsers()
    words = {"--log-level": LEVELS, "--arch": _archs(), "--apply-pass": _passes()}
    for name, (text, options) in commands.items():
        parser = each.add_parser(name, help=text, add_help=False)
        for option in options:
            added = parser.add_argument(*option.flags, **_form(option, words))
            if option.value in FILES:
                # bash's would offer files in place of the options that end a list; without one
                # bash itself offers files
                left = ("bash",) if option.many == "greedy" else ()
                ways = {shell: way for shell, way in shtab.FILE.items() if shell not in left}
                added.complete = ways  # type: ignore[attr-defined]
        if name == "completion":
            parser.add_argument("shell", choices=SHELLS)
        else:
            file = parser.add_argument("file", nargs="?", help="a model")
            file.complete = shtab.FILE  # type: ignore[attr-defined]
    return shtab.complete(root, shell)


def _form(option: Option, words: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return argparse's arguments for an option."""
    found: dict[str, Any] = {"help": option.help.replace("%", "%%")}
    if option.value is None:
        return {**found, "action": "store_true"}
    known = words.get(option.key) or (option.value.split("|") if "|" in option.value else None)
    return {**found, "metavar": option.value, "choices": known, "nargs": _COUNTS.get(option.many)}


def _archs() -> tuple[str, ...]:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.hardware.architectures import ARCHITECTURES

    return tuple(n for a in ARCHITECTURES.values() for n in (a.name, *a.products))


def _passes() -> tuple[str, ...]:
    import mgx_mlir.passes  # noqa: F401  (declares the passes)
    from mgx_mlir.rewrite.registry import PASSES

    return tuple(sorted(PASSES))
