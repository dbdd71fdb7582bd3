"""Dispatch: help, versions, unknown commands, and failures that are nobody's fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgx_mlir.tools.driver import main as driver_main
from mgx_mlir.tools.driver.commands import read
from tests.driver.conftest import Driver


def test_help(driver: Driver) -> None:
    ran = driver()
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == driver("--help").out == driver("-h").out
    for name in driver_main.COMMANDS:
        assert f"\n  {name} " in ran.out
        told = driver(name, "--help")
        assert told.status == 0
        assert told.lines[0].startswith(f"usage: mgx-driver {name} ")
        assert all(len(line) <= 100 for line in told.lines)
        assert told.out == driver(name, "missing.onnx", "-h").out


def test_every_option_is_in_the_help_of_its_command(driver: Driver) -> None:
    text = driver("verify", "--help").out
    for flag in ("--rms-tol X", "--against FILE", "--fill0 NAME...", "-o, --output FILE", "--gpu"):
        assert flag in text
    assert "--iterations N" in driver("perf", "--help").out
    assert "--iterations" not in text


def test_version(driver: Driver) -> None:
    from mgx_mlir import __version__

    ran = driver("--version")
    assert ran.status == 0
    assert ran.lines[0] == f"mgx-driver {__version__}"
    assert "torch-mlir" in ran.out


def test_unknown_commands(driver: Driver) -> None:
    ran = driver("veryfy", "m.onnx")
    assert (ran.status, ran.out) == (2, "")
    assert ran.errors[:2] == ["error: unknown command 'veryfy'", "note: did you mean 'verify'?"]
    ran = driver("--cpu", "run", "m.onnx")
    assert ran.errors[1] == "note: the command must be the first argument: mgx-driver run ..."


def test_no_input(driver: Driver, models: Path) -> None:
    assert driver("read").errors == ["error: expected an input file, or --test"]
    path = models / "mnist.onnx"
    ran = driver("run", "--fill1", "x", path)
    assert ran.errors[1] == f"note: '{path}' was read as a value of --fill1: put the file before it"
    assert driver("read", path, "--test").status == 2
    assert driver("read", "--test", "--batch", 2).status == 2
    ran = driver("read", path, "--batch", 2)
    assert "the model has no dynamic dimension" in ran.errors[0]
    ran = driver("run", path, "--ref", "--fill1", "xx")
    assert ran.status == 2
    assert "the model has no input 'xx', it has: x" in ran.err


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (MemoryError(), 2, "error: out of memory\n"),
        (ValueError("odd\nlines"), 2, "error: internal error: ValueError: odd\n"),
        (OSError(28, "No space left on device"), 2, "error: no space left on device\n"),
    ],
)
def test_failures_have_no_traceback(
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    text: str,
) -> None:
    def fail(args: object) -> int:
        raise error

    monkeypatch.setattr(read, "run", fail)
    ran = driver("read", "--test")
    assert ran.status == status
    assert ran.err.startswith(text)


def test_gpu_without_a_device(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgx_mlir.targets.devices.gpu_devices", lambda: ())
    for command in ("run", "perf", "verify"):
        ran = driver(command, "--gpu", "--test", "--arch", "gfx942")
        assert ran.status == 2
        assert ran.errors[0] == "Target: gpu, gfx942"
        assert ran.errors[1].startswith("error: no GPU is found")
