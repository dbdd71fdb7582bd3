"""chat: talk with a language model."""

from __future__ import annotations

import contextlib
import re
import sys
from typing import Any

from mgx_mlir.core.errors import MgxError
from mgx_mlir.tools.driver.arguments import Arguments, Option
from mgx_mlir.tools.driver.options import HELP
from mgx_mlir.tools.driver.progress import say
from mgx_mlir.tools.driver.text_model import LOADING, SAMPLING, Answer, loaded, settings

USAGE = "MODEL [OPTION...]"
DESCRIPTION = """
Loads a folder as transformers keeps it, or a .gguf file, and answers a line at a time by the
model's template; it needs the packages of the extra `text`. Ctrl-C ends an answer, Ctrl-D or /exit
the chat, /reset begins a new one, /help lists these. Keys and values of earlier messages stay: only
new tokens are computed. Lines may come from a pipe."""
OPTIONS = (
    Option(("--system",), "message of the system, ahead of the first one", "TEXT", group="Answer"),
    *SAMPLING,
    *LOADING,
    HELP,
)  # fmt: skip
_COMMANDS = "/reset begins a new chat, /exit (or Ctrl-D) ends it"


def run(args: Arguments) -> int:
    """Answer lines until they end."""
    model = loaded(args, args.file)
    _edit_lines()
    begin = [{"role": "system", "content": args.get("--system")}] if "--system" in args else []
    messages: list[dict[str, Any]] = list(begin)
    with model.engine().start() as engine:
        while (line := _line()) is not None:
            if line == "/reset":
                messages = list(begin)
            elif line == "/exit":
                break
            elif re.fullmatch(r"/\w+", line):
                say(_COMMANDS if line == "/help" else f"unknown command {line}: {_COMMANDS}")
            elif line:
                asked = [*messages, {"role": "user", "content": line}]
                try:
                    answer = Answer(engine.submit(model.request(asked, **settings(args))))
                except MgxError as e:  # too long, or refused by the template: the chat continues
                    say(f"error: {e}")
                    continue
                answer.say_speed()
                messages = [*asked, {"role": "assistant", "content": answer.text}]
    return 0


def _edit_lines() -> None:
    """Let a terminal edit lines: alone it cuts them at 4096 bytes, and a paste has several."""
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):  # Windows has none
            import readline

            readline.parse_and_bind("set enable-bracketed-paste on")


def _line() -> str | None:
    """Return the next line, None where no more comes."""
    shown = sys.stdin.isatty()
    while True:
        try:
            return input("> " if shown else "").strip()
        except EOFError:
            if shown:
                sys.stdout.write("\n")
            return None
        except KeyboardInterrupt:
            say("\nCtrl-D ends the chat")
