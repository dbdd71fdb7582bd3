"""Results of a run: a line for each output, and a file of them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.compare import shape_text
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.program_texts import write_file
from mgx_mlir.tools.driver.progress import say

FLAG = "--save-outputs"
_FORMS = (".npz", ".npy")
_SHOWN = 4  # elements


def check_form(args: Arguments) -> None:
    """Raise UsageError for a file of outputs whose name is of no known form."""
    path = args.get(FLAG)
    if path is not None and Path(path).suffix.lower() not in _FORMS:
        raise UsageError(f"option '{FLAG}' expected a file {' or '.join(_FORMS)}, got '{path}'")


def tell(names: Sequence[str], values: Sequence[Any]) -> None:
    """Print each output's type and dims, its range, and its first elements."""
    for name, array in _arrays(names, values):
        say(f"Output {name}: {summary(array)}")


def summary(array: np.ndarray) -> str:
    """Write the type, dims, range, mean and first elements of an array, and counts of
    non-finite ones.
    """
    if array.dtype.kind in "OUS" or not array.size:
        kind = "strings" if array.dtype.kind in "OUS" else shape_text(array)
        return f"{kind}, {array.size} elements" if array.size else f"{kind}, no elements"
    wide = array.reshape(-1).astype(np.float64)
    finite = wide[np.isfinite(wide)]
    parts = [shape_text(array)]
    if finite.size:
        parts.append(f"min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}")
    for what, count in (("NaN", np.isnan(wide).sum()), ("infinite", np.isinf(wide).sum())):
        if count:
            parts.append(f"{count} {what}")
    more = ", ..." if wide.size > _SHOWN else ""
    parts.append(f"values {', '.join(f'{v:.6g}' for v in wide[:_SHOWN])}{more}")
    return "; ".join(parts)


def save_outputs(args: Arguments, names: Sequence[str], values: Sequence[Any]) -> None:
    """Write the outputs where --save-outputs says: all into an .npz, or the only one as .npy.

    Types that numpy's files have no name for (bf16, 8-bit floats) are written as f32. A list is
    written as NAME.0, NAME.1 and so on. Errors: UsageError, FileError.
    """
    path = args.get(FLAG)
    if path is None:
        return
    arrays = {name: _plain(a) for name, a in _arrays(names, values)}
    stream = io.BytesIO()
    if Path(path).suffix.lower() == ".npz":
        np.savez(stream, allow_pickle=False, **arrays)
    elif len(arrays) != 1:
        raise UsageError(
            f"option '{FLAG}' expected one output for an .npy file, the model gave {len(arrays)}",
            notes=["an .npz file takes all of them"],
        )
    else:
        np.save(stream, next(iter(arrays.values())), allow_pickle=False)
    write_file(path, stream.getvalue())
    say(f"Writing: {path}")


def _plain(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "O":
        return array.astype(np.str_)
    return array if dtypes.is_numpys(array.dtype) else array.astype(np.float32)


def _arrays(names: Sequence[str], values: Sequence[Any]) -> Iterator[tuple[str, np.ndarray]]:
    for name, value in zip(names, values, strict=True):
        if isinstance(value, list):
            for i, one in enumerate(value):
                yield f"{name}.{i}", np.asarray(one)
        else:
            yield name, np.asarray(value)
