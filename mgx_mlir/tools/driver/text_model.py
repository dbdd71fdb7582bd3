"""Language models on the command line: options, loading, and an answer as it comes."""

from __future__ import annotations

import math
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.tools.driver.arguments import Arguments, Option, choice, number, positive, tolerance
from mgx_mlir.tools.driver.progress import say, working

if TYPE_CHECKING:
    from mgx_mlir.text import Grammar, Handle, TextModel

MODEL = "a folder in transformers' format, an ONNX decoder, or a .gguf file"


def share(text: str) -> float:
    """Parse a number from 0 to 1. ValueError for anything else."""
    found = tolerance(text)
    if found > 1:
        raise ValueError("a number from 0 to 1")
    return found


def penalty(text: str) -> float:
    """Parse a number from -2 to 2. ValueError for anything else."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not -2 <= found <= 2:
        raise ValueError("a number from -2 to 2")
    return found


_WEIGHTS = (
    Option(("--weights",), "int4 or int8: round linear layers, with a scale per 32 weights; f16 or "
           "bf16: to that type (default: the file's types)", "TYPE",
           parse=choice("int4", "int8", "f16", "bf16"), group="Model"),
    Option(("--dtype",), "f16 or bf16: type of activations, caches and weights outside of blocks "
           "(default: f32)", "TYPE", parse=choice("f16", "bf16"), group="Model"),
    Option(("--max-length",), "tokens of a prompt and its answer (default: the model's, at most "
           "4096)", "N", parse=number(2), group="Model"),
    Option(("--draft",), "guess tokens that one run checks, the answer stays as it is: lookup "
           "(repeated text), or a smaller model of the same tokens", "MODEL", group="Model"),
)  # fmt: skip
LOADING = (
    Option(("--cpu",), "compile for the CPU (default where there is no GPU)", group="Model"),
    Option(("--gpu",), "compile for the GPU", group="Model"),
    Option(("--threads",), "CPU threads of a run", "N", parse=number(1), group="Model"),
    *_WEIGHTS,
)  # fmt: skip
SERVING = (
    Option(("--text",), f"serve one language model in place of DIR: {MODEL}", "MODEL",
           group="Text"),
    Option(("--model-name",), "name of the language model (default: the file's)", "NAME",
           group="Text"),
    Option(("--slots",), "answers computed at once (default 8)", "N", parse=number(1),
           group="Text"),
    *(replace(o, group="Text") for o in _WEIGHTS),
)  # fmt: skip
SAMPLING = (
    Option(("--max-new-tokens",), "tokens of an answer (default 256)", "N", parse=number(1),
           group="Answer"),
    Option(("--min-new-tokens",), "tokens before one that ends the answer (default 0)", "N",
           parse=number(0), group="Answer"),
    Option(("--temperature",), "0 takes the likeliest token (the default), more draws", "T",
           parse=tolerance, group="Answer"),
    Option(("--top-k",), "draw from this many likeliest tokens (default 0: all)", "N",
           parse=number(0), group="Answer"),
    Option(("--top-p",), "draw from the likeliest tokens of this probability together (default 1)",
           "P", parse=share, group="Answer"),
    Option(("--min-p",), "leave out tokens less likely than this share of the likeliest's (default "
           "0)", "P", parse=share, group="Answer"),
    Option(("--repetition-penalty",), "divide the scores of tokens that occurred (default 1)", "R",
           parse=positive, group="Answer"),
    Option(("--frequency-penalty",), "subtract from a token's score for each time that the answer "
           "has it, -2 to 2 (default 0)", "R", parse=penalty, group="Answer"),
    Option(("--presence-penalty",), "subtract once from scores of tokens that the answer has, -2 "
           "to 2 (default 0)", "R", parse=penalty, group="Answer"),
    Option(("--stop",), "texts before which an answer ends", "TEXT...", "greedy", group="Answer"),
    Option(("--json-schema",), "a file: the answer is JSON by its schema; - is any object", "FILE",
           group="Answer"),
    Option(("--regex",), "the answer matches this regular expression, whole", "PATTERN",
           group="Answer"),
    Option(("--grammar",), "a file: the answer follows its grammar, .gbnf or .lark", "FILE",
           group="Answer"),
    Option(("--seed",), ("seed of random draws (default 0): the same seed gives the same "
                        "tokens"), "N",
           parse=number(0), group="Answer"),
)  # fmt: skip
_NAMES = (
    "max_new_tokens", "min_new_tokens", "temperature", "top_k", "top_p", "min_p",
    "repetition_penalty", "frequency_penalty", "presence_penalty", "seed",
)  # fmt: skip


def loaded(args: Arguments, path: str | None, slots: int = 1) -> TextModel:
    """Load a model, for `slots` answers at a time, by options of `LOADING`. Errors: MgxError."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.targets import default_target
    from mgx_mlir.text import load

    if path is None:
        raise UsageError("expected a model", notes=[MODEL])
    if not os.path.exists(path):
        raise UsageError(f"there is no '{path}'", notes=[MODEL])
    options: dict[str, Any] = {"threads": args.get("--threads")} if "--threads" in args else {}
    target = args.only_one("--cpu", "--gpu")
    place = target.removeprefix("--") if target else default_target()
    draft: Any = args.get("--draft")
    with working("Loading the model"):
        if draft not in (None, "lookup"):
            draft = load(draft, place, slots=slots, **options)
        return load(
            path, place, weights=args.get("--weights"), dtype=args.get("--dtype"),
            max_length=args.get("--max-length"), slots=slots, draft=draft, **options,
        )  # fmt: skip


def settings(args: Arguments) -> dict[str, Any]:
    """Return the keywords of `TextModel.request` that a command line states."""
    found = {n: args.get(f) for n in _NAMES if (f := f"--{n.replace('_', '-')}") in args}
    return {**found, "stop": args.get("--stop", []), "constraint": _constraint(args)}


def _constraint(args: Arguments) -> Grammar | None:
    """Return the constraint of the answer. Errors: UsageError, FileError."""
    from mgx_mlir.text import Grammar  # start-up: only what the command asks for is loaded

    flag = args.only_one("--json-schema", "--regex", "--grammar")
    if flag is None:
        return None
    value = str(args.get(flag))
    if flag == "--regex":
        return Grammar.regex(value)
    if flag == "--json-schema":
        return Grammar.json(None if value == "-" else _read(value))
    forms = {".gbnf": Grammar.gbnf, ".lark": Grammar.lark}
    make = forms.get(os.path.splitext(value)[1])
    if make is None:
        raise UsageError(f"--grammar expected a file .gbnf or .lark, got '{value}'")
    return make(_read(value))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as e:
        raise FileError(f"cannot be read: {e}", location=path) from e


class Answer:
    """An answer that was written to stdout as it came."""

    def __init__(self, handle: Handle) -> None:
        """Write it; the engine is driven by a thread, so that an interrupt cuts no step in two."""
        self.text, self.interrupted = "", False
        self._handle, self._begin = handle, time.perf_counter()
        self._first = self._last = 0.0
        try:
            for piece in handle:
                self._last = time.perf_counter()
                self._first = self._first or self._last
                self.text += piece.text
                sys.stdout.write(piece.text)
                sys.stdout.flush()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            handle.cancel()
        sys.stdout.write("\n")
        sys.stdout.flush()

    def say_speed(self) -> None:
        """Print tokens per second after the first, and the seconds to the first one."""
        handle, count = self._handle, len(self._handle.tokens)
        seconds = self._last - self._first
        speed = f", {(count - 1) / seconds:.1f} tokens/s" if count > 1 and seconds else ""
        kept = f" ({handle.cached_tokens} kept)" if handle.cached_tokens else ""
        first = f", first after {self._first - self._begin:.2f} s" if count else ""
        end = ", interrupted" if self.interrupted else ""
        say(
            f"[{handle.prompt_tokens} tokens of prompt{kept}, {count} of answer{speed}{first}{end}]"
        )
