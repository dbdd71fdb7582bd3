"""The list of onnxruntime's public names is that of the installed onnxruntime, and is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

import mgx_mlir.onnxruntime as ours
from mgx_mlir.integrations.onnxruntime.names import MEMBERS, MODULE, REFUSED
from mgx_mlir.onnxruntime.capi import onnxruntime_pybind11_state as state

ROOT = Path(__file__).resolve().parents[2]
# modules and strings of theirs that come with their imports
_OTHER = {"contextlib", "cuda_version", "import_capi_exception", "onnxruntime_validation",
          "package_name", "version", "experimental", "backend", "datasets", "tools",
          "quantization", "transformers"}  # fmt: skip


def public(of: object) -> set[str]:
    return {n for n in dir(of) if not n.startswith("_")}


def test_the_modules_names() -> None:
    assert public(onnxruntime) - _OTHER == set(MODULE)
    for name, meaning in MODULE.items():
        assert hasattr(ours, name), name
        if meaning.status == REFUSED and name[0].isupper():
            with pytest.raises(state.NotImplemented, match=name):
                getattr(ours, name)()


@pytest.mark.parametrize("kind", sorted(MEMBERS))
def test_the_members_of(kind: str) -> None:
    theirs = public(getattr(onnxruntime, kind))
    assert theirs == set(MEMBERS[kind])
    made = getattr(ours, kind)() if kind.endswith("Options") else getattr(ours, kind)
    assert theirs <= public(made)
    if kind.endswith("Options"):
        defaults = getattr(onnxruntime, kind)()
        for name in theirs:
            value = getattr(defaults, name)
            if not callable(value):
                assert getattr(made, name) == (int(value) if hasattr(value, "name") else value)


def test_the_enumerations() -> None:
    for name in MODULE:
        members = getattr(getattr(onnxruntime, name), "__members__", None)
        mine = getattr(ours, name)
        if members is None or MODULE[name].status == REFUSED:
            continue
        assert {k: int(v) for k, v in members.items()} == {
            k: int(v) for k, v in mine.__members__.items()
        }, name


def test_the_error_classes() -> None:
    import onnxruntime.capi.onnxruntime_pybind11_state as theirs

    for name in public(theirs):
        kind = getattr(theirs, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            mine = getattr(state, name)
            assert mine.__module__ == state.__name__
            assert issubclass(mine, Exception)


def test_the_page_has_the_lists() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs/onnxruntime.py"], capture_output=True, text=True, check=True
    )
    page = (ROOT / "docs/onnxruntime.md").read_text()
    assert done.stdout == page, "python docs/onnxruntime.py --write"
