"""bundle: a model's code for several batch sizes and architectures, with its weights once."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import UsageError
from mgx_mlir.tools.driver.arguments import Arguments, Option, number
from mgx_mlir.tools.driver.compile_model import compile_model
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import HELP, LOADER, QUANTIZE, TARGET
from mgx_mlir.tools.driver.progress import say
from mgx_mlir.tools.driver.target_choice import choose_target

USAGE = "[OPTION...] FILE -o DIR | --triton DIR"
DESCRIPTION = """
Compiles the model for each batch size and architecture, and writes a folder: code/*.vmfb,
weights.irpa with every weight once, manifest.json, and SHA256SUMS for sha256sum -c. In Python
load_bundle(DIR, batch=N) runs it, without the compiler; docs/deploy.md has C and containers.
--triton writes a model repository for Triton's Python backend in place of that: one program, whose
dimensions stay dynamic unless an option gives them sizes (docs/serving.md)."""


def batches(text: str) -> tuple[int, ...]:
    """Parse `1,2,4`. ValueError for anything else."""
    found = text.split(",")
    is_size = all(n.isdecimal() and len(n) < 10 and int(n) for n in found)
    if not is_size or len(set(found)) < len(found):
        raise ValueError("different sizes from 1 on, such as 1,2,4,8")
    return tuple(map(int, found))


_REFUSED = (
    "--batch",
    "--strip-context",
    "--trust-code",
    "--emulate",
    "--graph",
    "--enable-offload-copy",
)
OPTIONS = (
    *(o for o in (*LOADER, *TARGET, *QUANTIZE) if o.key not in (*_REFUSED, "--ref")),
    Option(
        ("--batch",), "sizes of dimensions that the model leaves dynamic (default 1)", "N[,...]",
        parse=batches,
    ),
    Option(("-o", "--output"), "the folder to write", "DIR"),
    Option(("--triton",), "write a model repository for Triton's Python backend", "DIR"),
    Option(("--name",), "with --triton: the model's name (default: the file's)", "NAME"),
    Option(
        ("--max-batch-size",), "with --triton: rows that requests are joined to; rows of the model "
        "must be independent (default 0: not joined)", "N", parse=number(0),
    ),
    HELP,
)  # fmt: skip


def run(args: Arguments) -> int:
    """Compile the model for each size, and write the folder."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.compiler.bundle import Member, write_bundle

    folder = args.get("--output")
    if args.only_one("--output", "--triton") == "--triton":
        return _triton(args)
    for flag in ("--name", "--max-batch-size"):
        if flag in args:
            raise UsageError(f"option '{flag}' is for bundle --triton")
    if folder is None:
        raise UsageError("expected a folder to write", notes=["-o DIR"])
    sizes = args.get("--batch", (1,))
    found: list[Member] = []
    rest = {k: v for k, v in args.values.items() if k not in ("--output", "--batch")}
    for size in sizes:
        given = {**rest, "--batch": size} if "--batch" in args else rest
        own = replace(args, values=given)
        model = Model(own)
        choice = choose_target(own, runs=False, model=model)
        for arch in choice.archs:
            say(f"Batch {size}{f', {arch}' if arch else ''}:")
            made = compile_model(own, model, choice, arch)
            assert isinstance(made, IreeProgram)
            name = f"b{size}-{made.executable.arch}"
            found.append(Member(name, size, made))
    options: dict[str, Any] = {k: _plain(v) for k, v in rest.items() if k not in _NOT_OF_CODE}
    options |= {"batch": list(sizes), "target": found[0].program.target}
    write_bundle(folder, found, _digest(args), options)
    say(f"Writing: {folder}, {len(found)} programs")
    return 0


_TRITON = ("--triton", "--name", "--max-batch-size")
_SIZES = ("--batch", "--default-dyn-dim")


def _triton(args: Arguments) -> int:
    """Compile the model once, and write a repository."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.compiler.architectures import together
    from mgx_mlir.integrations.triton_repository import write_repository

    sizes = args.get("--batch", ())
    if len(sizes) > 1:
        raise UsageError(f"--triton expected one batch size, got {len(sizes)}")
    given = {k: v for k, v in args.values.items() if k not in _TRITON}
    if sizes:
        given["--batch"] = sizes[0]
    if not any(k in given for k in _SIZES):
        given["--dynamic-dims"] = True
    own = replace(args, values=given)
    model = Model(own)
    choice = choose_target(own, runs=False, model=model)
    made: list[IreeProgram] = []
    for arch in choice.archs:
        compiled = compile_model(own, model, choice, arch)
        assert isinstance(compiled, IreeProgram)
        made.append(compiled)
    program = made[0] if len(made) == 1 else together(made, None)
    name = args.get("--name", Path(args.file or "model").stem)
    at = write_repository(args.get("--triton"), name, program, args.get("--max-batch-size", 0))
    say(f"Writing: {at}")
    return 0


_NOT_OF_CODE = ("--threads", "--timeout", "--no-cache")


def _plain(value: Any) -> Any:
    """Return an option's value for the manifest."""
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _digest(args: Arguments) -> str:
    """Return the SHA-256 of the model's file; of a folder, or none, that of its name."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.core.files import file_sha256

    try:
        return file_sha256(args.file or "")
    except OSError:
        return hashlib.sha256((args.file or "").encode(errors="surrogateescape")).hexdigest()
