"""generate: continue a prompt by a language model."""

from __future__ import annotations

import sys

from mgx_mlir.core.errors import UsageError
from mgx_mlir.tools.driver.arguments import Arguments, Option, number
from mgx_mlir.tools.driver.options import HELP
from mgx_mlir.tools.driver.text_model import LOADING, SAMPLING, Answer, loaded, settings
from mgx_mlir.tools.ending import INTERRUPTED

USAGE = "MODEL -p PROMPT [OPTION...]"
DESCRIPTION = """
Loads a folder as transformers keeps it, or a .gguf file, and continues a text; it needs the
packages of the extra `text`. The text goes to stdout as it comes, tokens per second to stderr. The
first load compiles. docs/text.md has the same in Python."""
OPTIONS = (
    Option(("-p", "--prompt"), "text to continue; - reads it from stdin", "PROMPT", group="Answer"),
    Option(("--chat",), "answer the prompt as a message of a chat, by the model's template",
           group="Answer"),
    Option(("--num-beams",), "follow this many sequences, and answer with the likeliest of them "
           "(default 1)", "N", parse=number(1), group="Answer"),
    *SAMPLING,
    *LOADING,
    HELP,
)  # fmt: skip


def run(args: Arguments) -> int:
    """Write the continuation; 130 where it was interrupted."""
    prompt = args.get("--prompt")
    if prompt is None:
        raise UsageError("expected a prompt", notes=["-p PROMPT, or -p - for stdin"])
    if prompt == "-":
        prompt = sys.stdin.read()
    beams = args.get("--num-beams", 1)
    model = loaded(args, args.file, beams)
    asked = [{"role": "user", "content": prompt}] if "--chat" in args else prompt
    request = model.request(asked, num_beams=beams, **settings(args))
    with model.engine().start() as engine:
        answer = Answer(engine.submit(request))
        answer.say_speed()
    return INTERRUPTED if answer.interrupted else 0
