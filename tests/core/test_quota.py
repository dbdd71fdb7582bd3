"""CPUs of a process whose container has a quota of CPU time."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgx_mlir.hardware import machine
from mgx_mlir.runtime.device import choose


def group(root: Path, name: str, text: str) -> None:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.max").write_text(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("max 100000\n", None), ("200000 100000\n", 2), ("150000 100000", 2), ("20000 100000", 1)],
)
def test_quotas_are_rounded_up(tmp_path: Path, text: str, count: int | None) -> None:
    group(tmp_path, "pod", text)
    assert machine.quota_of(tmp_path, "/pod") == count


def test_the_least_quota_of_a_group_and_its_parents(tmp_path: Path) -> None:
    group(tmp_path, "pod", "200000 100000")
    group(tmp_path, "pod/worker", "300000 100000")
    assert machine.quota_of(tmp_path, "/pod/worker") == 2


def test_no_control_groups_are_no_quota(tmp_path: Path) -> None:
    assert machine.quota_of(tmp_path / "none", "/") is None


def test_threads_of_a_run_stay_within_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_quota", lambda: 1)
    assert choose(None, None) == ("local-sync", 1)
    assert choose(None, 2) == ("local-task", 2)  # a number that is asked for stays
