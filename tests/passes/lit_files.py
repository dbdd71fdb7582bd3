"""Runs the RUN lines of lit files in this process: mgx-opt, and FileCheck on what it prints."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from mgx_mlir.core.context import new_context
from mgx_mlir.tools.opt import session
from mgx_mlir.tools.opt.main import main

LIT = Path(__file__).resolve().parent.parent.parent / "lit"
CONTEXT = new_context()  # one for all runs: to make it takes longer than to run a file
_RUN = re.compile(r"^// RUN: (mgx-opt .*?)(?:\| (filecheck .*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """One RUN line: mgx-opt's exit status, what it printed, and what FileCheck says to that."""

    status: int
    output: str
    errors: str
    matches: bool


def run_lines(file: Path) -> list[tuple[list[str], list[str]]]:
    """(arguments of mgx-opt, of filecheck) of each RUN line that is such a pair."""
    found = []
    for opt, check in _RUN.findall(file.read_text()):
        pair = [shlex.split(part.replace("%s", str(file)))[1:] for part in (opt, check)]
        found.append((pair[0], pair[1]))
    return found


def run(file: Path, more: Iterable[str] = ()) -> list[Outcome]:
    """The RUN lines of a file, with `more` arguments for mgx-opt."""
    return [_run(opt, check, more) for opt, check in run_lines(file)]


def _run(opt: list[str], check: list[str], more: Iterable[str]) -> Outcome:
    out = io.StringIO()
    errors = out if "2>&1" in opt else io.StringIO()
    opt = [argument for argument in opt if argument != "2>&1"]
    shared = patch.object(session, "new_context", lambda: CONTEXT)
    with shared, redirect_stdout(out), redirect_stderr(errors):
        status = main([*opt, *more])
    text, said = out.getvalue(), io.StringIO()
    if not check:
        return Outcome(status, text, errors.getvalue(), status == 0)
    with redirect_stdout(said), redirect_stderr(said):
        options = parse_argv_options(["filecheck", *check])
        matches = Matcher(options, FInput("-", text), Parser.from_opts(options)).run() == 0
    return Outcome(status, text, errors.getvalue() + said.getvalue(), matches and status == 0)
