"""The help texts, made of the tables of commands and options."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from types import ModuleType

from mgx_mlir.tools.driver.arguments import Option
from mgx_mlir.tools.driver.options import options_of

WIDTH = 100
COLUMN = 34  # where the explanation of an option starts


def main_help(commands: Mapping[str, str]) -> str:
    """Return what `mgx-driver --help` prints."""
    width = max(map(len, commands))
    rows = [f"  {name:<{width}}  {text}" for name, text in commands.items()]
    return "\n".join(
        [
            "usage: mgx-driver COMMAND [OPTION...] [FILE]",
            "",
            "Reads, optimises, compiles, runs, verifies and times models.",
            "",
            "Commands:",
            *rows,
            "",
            "  mgx-driver COMMAND --help explains a command's options, --version prints versions.",
            "",
            "Examples:",
            "  mgx-driver read model.onnx",
            "  mgx-driver compile --gpu --arch mi300x model.onnx -o model.vmfb",
            "  mgx-driver verify --cpu model.onnx --ort",
            "  mgx-driver perf --cpu --threads 1 model.onnx --iterations 50",
            "",
            "Programs and reports go to stdout, progress to stderr. Exit status: 0 done, 1 the",
            "answer is no (verify found a difference), 2 it could not be done, 130 interrupted.",
        ]
    )


def command_help(name: str, summary: str, command: ModuleType) -> str:
    """Return what `mgx-driver COMMAND --help` prints."""
    lines = [f"usage: mgx-driver {name} {command.USAGE}", "", f"{summary[0].upper()}{summary[1:]}."]
    text = textwrap.dedent(command.DESCRIPTION).strip()
    if text:
        lines += ["", text]
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
    text = textwrap.wrap(option.help, WIDTH - COLUMN)
    if len(head) + 2 > COLUMN:
        return [head, *(" " * COLUMN + line for line in text)]
    first, *rest = text
    return [f"{head:<{COLUMN}}{first}", *(" " * COLUMN + line for line in rest)]
