"""Run-time inputs that do not fit: an error that names the node, never numbers or a crash."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.sizes.invalid import SETS

LIMIT = 12 << 30  # bytes of address space: an allocation that a value asks for is refused


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("ref", "sizes"),
        ("ref", "values"),
        ("cpu", "sizes"),
        ("cpu", "compiled"),
        ("saved", "compiled"),
        pytest.param("cpu", "values", marks=pytest.mark.slow),
    ],
)
def test_invalid_inputs(target: str, name: str) -> None:
    code = f"ulimit -v {LIMIT >> 10}; exec {sys.executable} -m tests.sizes.invalid {target} {name}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=600)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert done.returncode == 0, (
        f"status {done.returncode} after {rows[-1:]}: {done.stderr[-2000:]}"
    )
    ended = {(name, at): (what, *rest) for name, at, what, *rest in rows}
    wanted = {(m.name, at) for m in SETS[name] for at in range(len(m.wrong))}
    assert set(ended) == wanted
    silent = {k: v for k, v in ended.items() if v[0] != "error"}
    assert not silent, f"{len(silent)} of {len(ended)} gave numbers: {silent}"
    if target == "saved":  # nodes have no names in the format
        return
    # an allocation that the machine refuses knows no node
    named = [k for k, v in ended.items() if f"{k[0]}." in v[1] or "RESOURCE_EXHAUSTED" in v[1]]
    unnamed = {k: v[1] for k, v in ended.items() if k not in named}
    assert not unnamed, f"errors that do not name the node: {unnamed}"
