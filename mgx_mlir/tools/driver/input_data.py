"""The inputs a program is run on, made as the options say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.files import read_bytes
from mgx_mlir.debug.inputs import make_inputs
from mgx_mlir.debug.purposes import Draw
from mgx_mlir.programs.signature import Signature
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.dims import by_name
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.progress import say, working


def allocate(
    args: Arguments, model: Model, signature: Signature, uses: Mapping[str, Draw]
) -> dict[str, np.ndarray]:
    """Make an array for every input; name on stderr the inputs with restricted values.

    uses: what each input is for.
    """
    _check_batch(args, model, signature)
    say("Allocating params ...")
    with working("Allocating params"):
        files = _files(args)
        chosen = {*args.get("--fill0", []), *args.get("--fill1", []), *files}
        for name, use in uses.items():
            if use.purpose != "any" and name not in chosen:
                say(f"{name}: {use}")
        return make_inputs(
            signature,
            uses,
            dims=model.input_dims,
            batch=model.batch,
            fill0=args.get("--fill0", []),
            fill1=args.get("--fill1", []),
            seed=args.get("--seed", 0),
            files=files,
        )


def _check_batch(args: Arguments, model: Model, signature: Signature) -> None:
    """Raise UsageError for --batch where the file states every dim, and no rate is printed."""
    dynamic_dims = not all(p.is_static for p in signature.inputs)
    if "--batch" in args and not (dynamic_dims or model.sets_batch or model.is_rated):
        raise UsageError(f"option '--batch' has no effect: {model.name} has no dynamic dimension")


def check_files(args: Arguments) -> None:
    """Raise FileError for an input's file that cannot be opened: a compile takes long."""
    for path in _files(args).values():
        read_bytes(path)


def _files(args: Arguments) -> dict[str, str]:
    """Return the file of each input that --load-arg names."""
    out = {}
    for name, words in by_name("--load-arg", args.get("--load-arg", [])).items():
        if len(words) != 1:
            raise UsageError(f"option '--load-arg' expected one file after @{name}, got {words}")
        out[name] = words[0]
    return out
