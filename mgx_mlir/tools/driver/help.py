"""The help texts, made of the tables of commands and options."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping
from types import ModuleType

from mgx_mlir.tools.driver.arguments import Option
from mgx_mlir.tools.driver.options import options_of

WIDEST = 100  # columns; longer lines are hard to read
NARROWEST = 40
COLUMN = 34  # column of an option's explanation, on a terminal that is wide enough


def width() -> int:
    """Return the columns for a text: those of the terminal, from 40 to 100."""
    return max(min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST), NARROWEST)


def main_help(commands: Mapping[str, str]) -> str:
    """Return what `mgx-driver --help` prints."""
    column = max(map(len, commands)) + 4
    rows = [line for name, text in commands.items() for line in _row(f"  {name}", text, column)]
    return "\n".join(
        [
            "usage: mgx-driver COMMAND [OPTION...] [FILE]",
            "",
            "Reads, optimises, compiles, runs, verifies and times models.",
            "",
            "Commands:",
            *rows,
            "",
            *_filled(
                "mgx-driver COMMAND --help explains a command's options, --version prints "
                "versions.",
                "  ",
            ),
            "",
            "Examples:",
            "  mgx-driver read model.onnx",
            "  mgx-driver compile --gpu --arch mi300x model.onnx -o model.vmfb",
            "  mgx-driver verify --cpu model.onnx --ort",
            "  mgx-driver perf --cpu --threads 1 model.onnx --iterations 50",
            "",
            *_filled(
                "Programs and reports go to stdout, progress to stderr. Exit status: 0 success, 1 "
                "verify found a difference, 2 failure, 130 interrupted."
            ),
        ]
    )


def command_help(name: str, summary: str, command: ModuleType) -> str:
    """Return what `mgx-driver COMMAND --help` prints."""
    lines = [f"usage: mgx-driver {name} {command.USAGE}", ""]
    lines += _filled(f"{summary[0].upper()}{summary[1:]}.")
    text = textwrap.dedent(command.DESCRIPTION).strip()
    for paragraph in text.split("\n\n") if text else ():
        lines += ["", *_filled(paragraph)]
    groups: dict[str, list[Option]] = {}
    for option in options_of(command):
        groups.setdefault(option.group, []).append(option)
    for group, options in groups.items():
        lines += ["", f"{group}:"]
        for option in options:
            lines += _rows(option)
    return "\n".join(lines)


def _rows(option: Option) -> list[str]:
    head = "  " + ", ".join(sorted(option.flags, key=len))
    if option.value is not None:
        head += f" {option.value}"
    return _row(head, option.help, COLUMN if width() >= 2 * COLUMN else 8)


def _row(head: str, text: str, column: int) -> list[str]:
    """Write a head and its explanation, which starts at a column, below a head that is longer."""
    lines = textwrap.wrap(text, width() - column, break_long_words=False, break_on_hyphens=False)
    if len(head) + 2 > column:
        return [head, *(" " * column + line for line in lines)]
    first, *rest = lines
    return [f"{head:<{column}}{first}", *(" " * column + line for line in rest)]


def _filled(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width(), initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
