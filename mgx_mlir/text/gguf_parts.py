"""Models of several .gguf files, as llama.cpp's gguf-split writes them: one header for all."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from mgx_mlir.core.errors import FileError
from mgx_mlir.text.gguf_header import Entry, Header, read_header

_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})")
_MOST = 99999  # parts that a name has digits for


def read_parts(path: Path) -> tuple[Header, list[Path]]:
    """Return the header of a file, with the tensors of all parts of its model; and the files.

    Raises FileError for another part than the first, and for parts that are missing or mixed up.
    """
    first = read_header(path)
    count, number = first.values.get("split.count", 0), first.values.get("split.no", 0)
    if not isinstance(count, int) or not 0 <= count <= _MOST:
        raise FileError(f"'split.count' expected a number of files, got {count!r:.80}",
                        location=str(path))  # fmt: skip
    if count < 2:
        return first, [path]
    name = _NAME.fullmatch(path.stem)
    if name is None or int(name[3]) != count:
        raise FileError(f"a model of {count} files expected names as "
                        f"model-00001-of-{count:05}.gguf", location=str(path))  # fmt: skip
    paths = [path.with_name(f"{name[1]}-{i + 1:05}-of-{count:05}{path.suffix}")
             for i in range(count)]  # fmt: skip
    if number != 0:
        raise FileError(f"the file is part {number + 1} of {count}, expected the first",
                        location=str(path), notes=[f"give {paths[0].name}"])  # fmt: skip
    if missing := [p for p in paths if not p.is_file()]:
        raise FileError(f"{len(missing)} of {count} files are missing, such as '{missing[0].name}'",
                        location=str(path), notes=["download them into its folder"])  # fmt: skip
    tensors: dict[str, Entry] = dict(first.tensors)
    whole = hashlib.sha256(first.digest.encode())
    for i, part in enumerate(paths[1:], 1):
        found = read_header(part)
        stated = found.values.get("split.no"), found.values.get("split.count")
        if stated != (i, count):
            raise FileError(f"the file states part {stated[0]} of {stated[1]} (counted from 0), "
                            f"expected part {i} of {count}", location=str(part))  # fmt: skip
        if twice := tensors.keys() & found.tensors.keys():
            raise FileError(f"the tensor '{min(twice)}' is in two parts", location=str(part))
        tensors |= found.tensors
        whole.update(found.digest.encode())
    return replace(first, tensors=tensors, digest=whole.hexdigest()), paths
