"""Calibration data: samples of a model's inputs from memory, a loader, files or folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.frontends.argument_files import read_argument
from mgx_mlir.programs.signature import Port

Sample = dict[str, np.ndarray]
_ARRAYS = (".npy", ".pb", ".msgpack")
_NOTE = (
    "expected .npz files, one sample each; or a folder for each input with .npy or .pb files; "
    "or test_data_set_0, .. with input_0.pb, ..; or .npy or .pb files of the only input"
)


def samples(source: object, ports: Sequence[Port]) -> Iterator[Sample]:
    """List the samples of `source`, each with an array for each input.

    `source` is a mapping of arrays by name (one sample), or any iterable of such mappings, of
    sequences of arrays in order, or of single arrays; or the path of an .npz or a folder. In
    batches of torch's DataLoader, elements after the inputs, such as labels, are ignored. Errors:
    UsageError, FileError; both name the sample.
    """
    if isinstance(source, str | os.PathLike):
        yield from _files(Path(os.fspath(source)), ports)
        return
    each: Iterable[object]
    if isinstance(source, Mapping):
        each = [source]
    elif isinstance(source, Iterable) and not isinstance(source, np.ndarray):
        each = source
    else:
        raise UsageError(
            f"calibration data expected samples or a path, got {type(source).__name__}",
            notes=["a sample is a mapping from names of inputs to arrays"],
        )
    names = [p.name for p in ports]
    for number, one in enumerate(each):
        yield _sample(one, names, f"sample {number}")


def _sample(one: object, names: Sequence[str], where: str) -> Sample:
    if isinstance(one, Mapping):
        missing = [n for n in names if n not in one]
        if missing:
            raise UsageError(
                f"{where} of the calibration data has no {', '.join(missing)}",
                notes=[f"the inputs are {', '.join(names)}"],
            )
        return {n: _array(one[n]) for n in names}
    given: list[object] = list(one) if isinstance(one, list | tuple) else [one]
    if len(given) < len(names):
        raise UsageError(
            f"{where} of the calibration data has {len(given)} arrays, expected {len(names)}",
            notes=[f"the inputs are {', '.join(names)}"],
        )
    return {n: _array(a) for n, a in zip(names, given, strict=False)}


def _array(value: Any) -> np.ndarray:
    """Convert an array of numpy, torch or this API to numpy."""
    if hasattr(value, "detach"):  # a torch tensor, with or without gradients, on any device
        value = value.detach().cpu()
    return np.asarray(value)


# ---- files ---------------------------------------------------------------------------------------


def _files(path: Path, ports: Sequence[Port]) -> Iterator[Sample]:
    if path.is_dir():
        yield from _folder(path, ports)
    elif not path.exists():
        raise FileError("no such file or folder", location=str(path))
    elif path.suffix == ".npz":
        yield {p.name: read_argument(path, p) for p in ports}
    elif len(ports) == 1 and path.suffix in _ARRAYS:
        yield {ports[0].name: read_argument(path, ports[0])}
    else:
        raise FileError("unknown form of calibration data", location=str(path),
                        notes=[_NOTE])  # fmt: skip


def _folder(path: Path, ports: Sequence[Port]) -> Iterator[Sample]:
    packed, alone = _sorted(path, ".npz"), _sorted(path, *_ARRAYS)
    sets = sorted((p for p in path.iterdir() if (p / "input_0.pb").is_file()), key=_number)
    if packed:
        for file in packed:
            yield from _files(file, ports)
    elif sets:
        for folder in sets:
            each = enumerate(ports)
            yield {p.name: read_argument(folder / f"input_{i}.pb", p) for i, p in each}
    elif all((path / p.name).is_dir() for p in ports):
        yield from _columns([_sorted(path / p.name, *_ARRAYS) for p in ports], ports, path)
    elif len(ports) == 1 and alone:
        yield from _columns([alone], ports, path)
    else:
        raise FileError("no calibration data in this folder", location=str(path),
                        notes=[_NOTE])  # fmt: skip


def _columns(
    files: Sequence[Sequence[Path]], ports: Sequence[Port], path: Path
) -> Iterator[Sample]:
    if len({len(found) for found in files}) != 1 or not files[0]:
        told = ", ".join(f"{len(f)} of {p.name}" for p, f in zip(ports, files, strict=True))
        raise FileError(
            f"expected equally many files of each input, got {told}", location=str(path)
        )
    for row in zip(*files, strict=True):
        yield {p.name: read_argument(file, p) for p, file in zip(ports, row, strict=True)}


def _sorted(path: Path, *suffixes: str) -> list[Path]:
    """Return the files of these kinds in the order of the numbers in their names."""
    found = (p for p in path.iterdir() if p.is_file() and p.suffix in suffixes)
    return sorted(found, key=_number)


def _number(path: Path) -> tuple[list[int], str]:
    return [int(n) for n in re.findall(r"\d+", path.stem)], path.name
