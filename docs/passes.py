"""Writes docs/passes.md: every pass, every rewrite. `python docs/passes.py > docs/passes.md`"""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import mgx_mlir.dialects
from mgx_mlir.passes import PASSES
from mgx_mlir.passes.pipelines import PIPELINES, pipeline
from mgx_mlir.rewrite.names import pipeline_name
from mgx_mlir.rewrite.registry import Pass, option_docs, rewrites_of

WIDTH = 120  # columns of a line outside of tables
NAMES = Path(__file__).with_name("migraphx-passes.txt")

HEAD = """\
# Passes

<!-- written by `python docs/passes.py > docs/passes.md` -->

Passes and rewrites have MIGraphX's names. `mgx-opt --mgx-simplify-algebra` runs one pass, and
`--pass-pipeline='builtin.module(mgx-simplify-algebra{fast-math=true},cse)'` several, MLIR's own
among them. `--disable-pattern=find_unit_ops` leaves a rewrite out, `--explain=find_unit_ops` says
at each candidate why it does not apply, and `--mlir-pass-statistics` counts what did. Each rewrite
has a file `lit/<pass>/<rewrite>.mlir` with programs that it changes and programs that it must not.
"""

ABSENT_HEAD = """\
## MIGraphX's other passes

These passes and rewrites of MIGraphX are for memory, for streams and for its libraries. On tensors,
which are values, they have no meaning or another form.

| MIGraphX | here |
|---|---|
"""


def migraphx_names() -> dict[str, str | None]:
    """MIGraphX's names; for one that is not ours what it means, else None."""
    out: dict[str, str | None] = {}
    for line in NAMES.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, bar, text = line.partition(" | ")
            out[name.strip()] = text.strip() if bar else None
    return out


def is_ours(name: str) -> bool:
    """Return whether a name (`pass`, `pass/rewrite`, `gpu::pass`) is a pass or rewrite of ours."""
    owner, _, rewrite = name.partition("/")
    owner = owner.rpartition("::")[2]  # the target whose pass it is
    if owner not in PASSES:
        return False
    return not rewrite or any(r.name == rewrite for r in rewrites_of(PASSES[owner]))


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def document(cls: type[Pass]) -> Iterator[str]:
    """One pass: its docstring, options, targets and rewrites."""
    yield f"## {cls.name}"
    yield ""
    yield inspect.cleandoc(cls.__doc__ or "")
    yield ""
    targets = [t for t in PIPELINES if any(_is(step, cls.name) for step in pipeline(t))]
    where = f"In the pipeline of {', '.join(f'`{t}`' for t in targets)}." if targets else ""
    yield f"`{pipeline_name(cls.name)}`. {where}".rstrip()
    options = option_docs(cls)
    if options:
        yield from ("", "| option | type | default | |", "|---|---|---|---|")
        for name, kind, default, doc in options:
            yield f"| `{name}` | {kind} | {f'`{default}`' if default else ''} | {cell(doc)} |"
    rewrites = rewrites_of(cls)
    if rewrites:
        yield from ("", "| rewrite | before -> after |", "|---|---|")
        for r in rewrites:
            yield f"| {r.name} | {cell(r.summary)} |"
    yield ""


def _is(step: str, name: str) -> bool:
    return step.split("{")[0] in (name, pipeline_name(name))


def text() -> str:
    """The whole document."""
    mgx_mlir.dialects.load()
    lines = [HEAD, "## Pipelines", ""]
    for target in PIPELINES:
        steps = pipeline(target, fast_math=False)
        item = f"* `{target}`: {', '.join(f'`{s}`' for s in steps)}"
        kept = re.sub(r"`[^`]*`", lambda m: m[0].replace(" ", "\0"), item)  # a name on one line
        wrapped = textwrap.wrap(kept, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        lines += [line.replace("\0", " ") for line in wrapped]
    lines += ["", "## All", "", "| pass | |", "|---|---|"]
    lines += [f"| [{n}](#{n}) | {cell(PASSES[n]().summary)} |" for n in sorted(PASSES)]
    lines.append("")
    for name in sorted(PASSES):
        lines += document(PASSES[name])
    absent = [(n, why) for n, why in migraphx_names().items() if why is not None]
    lines.append(ABSENT_HEAD + "\n".join(f"| {n} | {cell(why)} |" for n, why in absent))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    os.environ["MGX_PLUGINS"] = "0"  # the document is of this tree
    print(text(), end="")
