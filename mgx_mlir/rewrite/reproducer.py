"""Reproducers as MLIR writes them: a module, the failing pipeline, and its weights."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.files import atomic
from mgx_mlir.core.weight_files import weights_beside, write_weights

_SECTION = re.compile(r"\{-#(.*?)#-\}", re.DOTALL)
_ENTRY = re.compile(r'(\w+)\s*:\s*("(?:[^"\\]|\\.)*"|true|false)')


@dataclass(frozen=True)
class Reproducer:
    """Data beside the module in a reproducer.

    `weights` names the .npz beside the file, empty where the module has none. `disabled_passes`
    and `disabled_patterns` are comma-separated.
    """

    pipeline: str
    verify_each: bool = True
    weights: str = ""
    disabled_passes: str = ""
    disabled_patterns: str = ""

    def text(self) -> str:
        """Return the file's metadata section."""
        lines = [
            f"      pipeline: {json.dumps(self.pipeline)},",
            "      disable_threading: true,",
            f"      verify_each: {str(self.verify_each).lower()}",
            "    }",
        ]
        ours = {
            name: json.dumps(value)
            for name in ("weights", "disabled_passes", "disabled_patterns")
            if (value := getattr(self, name))
        }
        if ours:
            # a separate section: MLIR allows no other keys in its own
            entries = ",\n".join(f"      {name}: {value}" for name, value in ours.items())
            lines[-1:] = ["    },", "    mgx_reproducer: {", entries, "    }"]
        head = ["{-#", "  external_resources: {", "    mlir_reproducer: {"]
        return "\n".join([*head, *lines, "  }", "#-}", ""])


@dataclass
class Failing:
    """A module before a pipeline, and all data for a reproducer."""

    module: str
    how: Reproducer
    weights: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])

    def write(self, path: str, at: str | None = None) -> None:
        """Write PATH and, if there are weights, its .npz; `at` is the path stated in the file."""
        how = self.how
        if self.weights:
            how = dataclasses.replace(how, weights=Path(weights_beside(path)).name)
            write_weights(weights_beside(at or path), dict(self.weights))
        try:
            with atomic(at or path) as f:
                f.write(f"{self.module}\n{how.text()}".encode())
        except OSError as e:
            raise FileError(f"cannot write '{path}': {(e.strerror or str(e)).lower()}") from None


def is_reproducer(source: str) -> bool:
    """Return whether a text contains a pipeline to run on it."""
    return any("mlir_reproducer" in section[1] for section in _SECTION.finditer(source))


def read_reproducer(source: str) -> tuple[Reproducer, str]:
    """Parse a reproducer; return its data, and its text without them, line for line.

    UsageError if it is no reproducer.
    """
    entries: dict[str, str] = {}
    for section in reversed(list(_SECTION.finditer(source))):
        if "mlir_reproducer" in section[1]:
            for key, value in _ENTRY.findall(section[1]):
                entries[key] = value[1:-1] if value.startswith('"') else value
            blank = "\n" * section[0].count("\n")
            source = source[: section.start()] + blank + source[section.end() :]
    if "pipeline" not in entries:
        raise UsageError("expected a reproducer: the input names no pipeline to run")

    def plain(key: str) -> str:
        return re.sub(r"\\(.)", r"\1", entries.get(key, ""))

    found = Reproducer(
        plain("pipeline"),
        entries.get("verify_each", "true") == "true",
        plain("weights"),
        plain("disabled_passes"),
        plain("disabled_patterns"),
    )
    if found.weights != Path(found.weights).name:
        raise UsageError("expected the weights of a reproducer beside it, under a plain name")
    return found, source
