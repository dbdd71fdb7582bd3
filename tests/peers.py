"""Versions of the packages that tests compare with, and reports of newer ones."""

from __future__ import annotations

import warnings
from importlib.metadata import version

# the versions whose operators the importers were read against
KNOWN = {"onnxruntime": "1.32.0", "onnx": "1.23.2"}


def differs(package: str, differences: list[str]) -> None:
    """Fail with the differences where the package is the known version; else only tell of them."""
    if not differences:
        return
    installed, text = version(package), "; ".join(differences)
    assert installed != KNOWN[package], text
    warnings.warn(f"{package} {installed}, the tests know {KNOWN[package]}: {text}", stacklevel=2)
