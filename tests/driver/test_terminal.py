"""Output on a terminal: help in its width, colours, hints, summaries, files named in time."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mgx_mlir.core.names import SafeStream
from mgx_mlir.debug.compare import compare
from mgx_mlir.debug.tolerances import Tolerances
from mgx_mlir.tools.driver import colour
from mgx_mlir.tools.driver.colour import write_in
from mgx_mlir.tools.driver.main import COMMANDS
from mgx_mlir.tools.driver.output_values import summary
from tests.driver.conftest import Driver
from tests.support.models import model_of

F32 = TensorProto.FLOAT


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_help_is_as_wide_as_the_terminal(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = [line for c in COMMANDS for line in driver(c, "--help").lines]
    lines += driver("--help").lines
    # a flag with its value, or a path, is not broken; usage and examples are typed as they stand
    wide = [x for x in lines if len(x) > columns and not x.startswith(("usage:", "  "))]
    assert wide == []
    assert max(map(len, lines)) > columns * 0.8


def test_words_of_help_are_whole(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for columns in (60, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        texts.append([driver(c, "--help").out.split() for c in ("perf", "verify", "compile")])
    assert texts[0] == texts[1]


# ---- colours -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "empty", "no colour", "dumb"],
)
def test_colours_are_for_terminals(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    terminal, plain = Terminal(), io.StringIO()
    write_in(SafeStream(terminal), "bad", "FAILED \x1b[2J")  # type: ignore[arg-type]
    write_in(plain, "bad", "FAILED")
    safe = "FAILED \\x1b[2J"
    assert terminal.getvalue() == (f"\x1b[31m{safe}\x1b[0m" if coloured else safe)
    assert plain.getvalue() == "FAILED"


@pytest.mark.parametrize(("session", "coloured"), [(None, False), ("1", True)])
def test_the_old_console_of_windows_has_no_colours(
    monkeypatch: pytest.MonkeyPatch, session: str | None, coloured: bool
) -> None:
    monkeypatch.setattr(colour.sys, "platform", "win32")
    for name in ("NO_COLOR", "TERM", "WT_SESSION"):
        monkeypatch.delenv(name, raising=False)
    if session is not None:
        monkeypatch.setenv("WT_SESSION", session)
    assert colour.is_coloured(Terminal()) is coloured  # type: ignore[arg-type]


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [None, b"", b"\x83 cut"], ids=["missing", "empty", "damaged"])
def test_no_advice_to_leave_out_code_of_what_is_no_program(
    driver: Driver, tmp_path: Path, data: bytes | None
) -> None:
    if data is not None:
        (tmp_path / "m.mxr").write_bytes(data)
    ran = driver("compile", "--cpu", tmp_path / "m.mxr")
    assert ran.status == 2
    assert "error:" in ran.errors[-1], "and no note behind it"


def test_a_saved_program_may_have_any_name(driver: Driver, models: Path, tmp_path: Path) -> None:
    assert driver("read", models / "wider.onnx", "-o", tmp_path / "m.mxr").status == 0
    shutil.copy(tmp_path / "m.mxr", tmp_path / "m.pt")
    assert driver("read", tmp_path / "m.pt").status == 0


@pytest.mark.parametrize(
    "options",
    [
        ("compile", "-o", "no/m.mxr"),
        ("run", "--save-outputs", "no/y.npz"),
        ("run", "--save-outputs", "y.txt"),
        ("run", "--load-arg", "@x", "no.npy"),
        ("perf", "--trace", "no/t.json"),
        ("perf", "--load-arg", "@x", "no.npy"),
        ("verify", "--load-arg", "@x", "no.npy"),
        ("report", "-o", "no/r.html"),
    ],
    ids=" ".join,
)
def test_places_are_looked_at_before_the_compile(
    driver: Driver, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    command, *more = options
    ran = driver(command, models / "wider.onnx", "--cpu", *more)
    assert ran.status == 2
    assert "Compiling" not in ran.err
    assert "Reading" not in ran.err


# ---- outputs -------------------------------------------------------------------------------------


def test_outputs_are_told_and_saved(driver: Driver, models: Path, tmp_path: Path) -> None:
    x = np.array([[-1, 2, 3, np.inf], [4, np.nan, 0, 1]], np.float32)
    np.save(tmp_path / "x.npy", x)
    for path in (tmp_path / "y.npz", tmp_path / "y.npy"):
        ran = driver("run", models / "wider.onnx", "--cpu", "--load-arg", "@x",
                     tmp_path / "x.npy", "--save-outputs", path)  # fmt: skip
        assert ran.status == 0
        found = np.load(path)
        np.testing.assert_array_equal(found["y"] if path.suffix == ".npz" else found,
                                      np.maximum(x, 0))  # fmt: skip
    [told] = [line for line in ran.errors if line.startswith("Output y: ")]
    assert told == (
        "Output y: float_type, {2, 4}; min 0, max 4, mean 1.66667; 1 NaN; 1 infinite; "
        "values 0, 2, 3, inf, ..."
    )


def test_saved_outputs_hold_numbers_that_numpy_knows(
    driver: Driver, tmp_path: Path, models: Path
) -> None:
    casts = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16),
             helper.make_node("Relu", ["x"], ["z"])]  # fmt: skip
    outputs = [("y", TensorProto.BFLOAT16, [3]), ("z", F32, [3])]
    onnx.save(model_of(casts, [("x", F32, [3])], outputs), tmp_path / "m.onnx")
    ran = driver("run", tmp_path / "m.onnx", "--ref", "--fill1", "x", "--save-outputs",
                 tmp_path / "y.npz")  # fmt: skip
    assert ran.status == 0
    with np.load(tmp_path / "y.npz", allow_pickle=False) as found:
        assert {k: (v.dtype, v.tolist()) for k, v in found.items()} == {
            "y": (np.float32, [1, 1, 1]), "z": (np.float32, [1, 1, 1]),
        }  # fmt: skip
    ran = driver("run", tmp_path / "m.onnx", "--ref", "--save-outputs", tmp_path / "y.npy")
    assert ran.status == 2
    assert "the model gave 2" in ran.err


def test_summaries_of_odd_arrays() -> None:
    assert summary(np.zeros((0, 3), np.float32)).endswith("no elements")
    assert summary(np.array(["a", "b"], object)) == "strings, 2 elements"
    assert "values 7" in summary(np.array(7))


# ---- NaN -----------------------------------------------------------------------------------------


def test_nan_that_the_reference_lacks_fails() -> None:
    got, wanted = np.array([1, np.nan], np.float32), np.array([1, 2], np.float32)
    assert not compare("y", got, wanted, Tolerances()).passed
    assert not compare("y", wanted, got, Tolerances()).passed


def test_nan_on_both_sides_is_undefined(driver: Driver, models: Path) -> None:
    both = np.array([1, np.nan, np.nan], np.float32)
    found = compare("y", both, both, Tolerances())
    assert found.passed
    assert found.warnings == ["undefined: 2 of 3 elements are NaN on both sides"]
    ran = driver("verify", models / "logs.onnx", "--cpu")
    assert ran.status == 1
    assert "undefined: 8 of 8 elements are NaN on both sides" in ran.out


# ---- perf ----------------------------------------------------------------------------------------


def test_perf_names_nodes_and_sorts_by_share(driver: Driver, models: Path) -> None:
    ran = driver("perf", models / "mnist.onnx", "--cpu", "-n", 3, "--warm-up", 2, "--concurrency",
                 2, "--duration", "0.05")  # fmt: skip
    assert ran.status == 0
    at = next(i for i, line in enumerate(ran.lines) if line.endswith("kernel"))
    rows = [line.split() for line in ran.lines[at + 1 : -1]]
    times = [float(r[0]) for r in rows]
    assert times == sorted(times, reverse=True)
    assert any(line.startswith("Concurrency: 2 callers, ") for line in ran.lines)
    nodes = {n.name for n in onnx.load(models / "mnist.onnx").graph.node}
    named = {w.strip(",") for r in rows for w in r[10:]}
    assert named & nodes if nodes != {""} else named
    ran = driver("perf", models / "mnist.onnx", "--cpu", "-n", 3, "--duration", "0.05", "--json")
    report = json.loads(ran.out)
    assert report["iterations"] > 3
    assert all(k["nodes"] for k in report["kernels"])


# ---- what was taken by default -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--gpu",), "Target: gpu, gfx942 by default"),
        (("--gpu", "--arch", "gfx1100"), "Target: gpu, gfx1100"),
        ((), "by default: no GPU is found"),
    ],
    ids=["architecture", "stated", "target"],
)
def test_defaults_are_told(
    driver: Driver, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...], said: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("mgx_mlir.tools.driver.target_choice.gpu_devices", lambda: ())
    if not options:
        monkeypatch.setattr("mgx_mlir.tools.driver.target_choice.default_target", lambda: "cpu")
    ran = driver("compile", models / "wider.onnx", *options, "-o", tmp_path / "m.mxr")
    assert ran.status == 0
    [told] = [line for line in ran.errors if line.startswith("Target: ")]
    assert told.endswith(said)
