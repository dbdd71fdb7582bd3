"""A pytest plugin: CPU seconds of the tests, and the files and tests that take most.

    python tests/run.py pytest --times
    python -m pytest -p tests.support.cpu_times tests/lowering

What compiles is a child process that lives on: /proc says what it has taken. Seconds by the clock
say little where several processes share the cores.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

SHOWN = 40
_spent: Counter[str] = Counter()
_start = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """Return what this process and its children have taken, the living ones where /proc is."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system + _living(os.getpid())


def _living(process: int) -> float:
    """Return what the living children of a process have taken."""
    found = 0.0
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = listed.read_text().split()
        except OSError:  # a thread that has ended
            continue
        for child in map(int, children):
            try:
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + _living(child)
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_start] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "teardown" and _start in item.stash:
        report.user_properties.append(("cpu", cpu_seconds() - item.stash[_start]))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Take what a worker sent."""
    if report.when == "teardown":
        _spent[report.nodeid] += dict(report.user_properties).get("cpu", 0.0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    files: Counter[str] = Counter()
    for test, seconds in _spent.items():
        files[test.partition("::")[0]] += seconds
    terminalreporter.section(f"{sum(_spent.values()):.0f} CPU seconds")
    for rows in (files, _spent):
        for name, seconds in rows.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:8.1f} {name}")
        terminalreporter.write_line("")
