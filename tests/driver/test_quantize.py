"""quantize: the program that is written, the report against numpy and onnxruntime, and errors."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from examples.mnist import weights
from mgx_mlir.tools.driver.page import page
from tests.driver.conftest import Driver
from tests.driver.test_report import Page
from tests.support.oracle import ort_session

RNG = np.random.default_rng(7)
INPUTS = [RNG.random((1, 28, 28)).astype(np.float32) for _ in range(4)]
METRIC = """
import numpy as np

def data():
    return [{"x": a} for a in np.load(__file__[:-2] + "npy")]

def metric(outputs):
    return np.mean([o[0].max() for o in outputs])

def broken(outputs):
    return outputs["y"]
"""


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder with samples, and a script with a metric."""
    (tmp_path / "x").mkdir()
    for i, a in enumerate(INPUTS):
        np.save(tmp_path / "x" / f"{i}.npy", a)
    np.save(tmp_path / "m.npy", np.stack(INPUTS))
    (tmp_path / "m.py").write_text(METRIC)
    return tmp_path


def rows(lines: list[str], start: str) -> dict[str, list[str]]:
    """The rows of a table of the report by their first word."""
    found: dict[str, list[str]] = {}
    at = next(i for i, line in enumerate(lines) if line.startswith(start))
    for line in lines[at + 1 :]:
        if not line:
            break
        cells = re.split(r"\s{2,}", line)
        found[cells[0]] = cells[1:]
    return found


def first_product() -> tuple[float, float]:
    """Return the 8-bit error of the first dot, against f64: decibels, cosine."""
    w = weights()["w0"].astype(np.float64)
    x = np.stack(INPUTS).reshape(-1, len(w)).astype(np.float64)
    steps, step = np.abs(w).max(0) / 127, np.abs(x).max() / 127
    want, got = x @ w, (np.rint(x / step) * step) @ (np.rint(w / steps) * steps)
    noise = 10 * np.log10((want**2).sum() / ((want - got) ** 2).sum())
    return noise, (want * got).sum() / np.sqrt((want**2).sum() * (got**2).sum())


def test_a_report(driver: Driver, models: Path, given: Path) -> None:
    path, html, ranges = given / "q.mxr", given / "q.html", given / "r.json"
    mnist = models / "mnist.onnx"
    ran = driver(
        "quantize", mnist, "--cpu", "--threads", 1, "--int8", "--calibrate", given / "x",
        "--calibration-method", "minmax", "--report", html, "-o", path, "-n", 3,
        "--save-ranges", ranges, "--metric", given / "m.py", "--evaluate", given / "x",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert [e for e in ran.errors if e.startswith("Writing")] == [
        f"Writing: {f}" for f in (ranges, path, html)
    ]
    layers = rows(ran.lines, "layer")
    assert list(layers) == ["fc0", "fc1"]
    noise, cosine = first_product()
    assert layers["fc0"][:2] == ["dot", "int8"]
    assert abs(float(layers["fc0"][2]) - noise) < 0.2
    assert abs(float(layers["fc0"][3]) - cosine) < 1e-5
    # outputs and metric, against the model in onnxruntime
    session = ort_session(mnist)
    wants = [np.asarray(session.run(None, {"x": a})[0]) for a in INPUTS]
    figures = rows(ran.lines, "   ")
    assert abs(float(figures["metric"][0]) - np.mean([w.max() for w in wants])) < 1e-5
    size = sum(w.nbytes for w in weights().values())
    assert figures["weights of the program"][0] == f"{size / 1e3:.3g} kB"
    assert float(figures["weights of the program"][2].removesuffix(" x")) < 0.26
    data = json.loads(Page(html.read_text()).data)
    assert [(r["name"], r["type"], r["why"]) for r in data["layers"]] == [
        ("fc0", "int8", ""), ("fc1", "int8", ""),
    ]  # fmt: skip
    # the program that was written gives what the report says of its outputs
    import mgx_mlir as migraphx

    saved = migraphx.load(str(path))
    saved.compile(migraphx.get_target("cpu"))
    gots = [np.asarray(saved.run({"x": a})[0]) for a in INPUTS]
    off = np.stack(gots).astype(np.float64) - np.stack(wants)
    want = 10 * np.log10((np.stack(wants).astype(np.float64) ** 2).sum() / (off**2).sum())
    assert abs(float(rows(ran.lines, "output")["y"][0]) - want) < 0.2
    # the same ranges from their file make the same program
    again = driver("quantize", mnist, "--int8", "--ranges", ranges, "--json")
    before = driver("quantize", mnist, "--int8", "--calibrate", given / "x",
                    "--calibration-method", "minmax", "--json")  # fmt: skip
    assert (again.status, again.out) == (0, before.out)


@pytest.mark.parametrize(
    ("kind", "types"),
    [("--fp16", "half"), ("--int4-weights", "int4"), ("--fp8", "fp8")],
)
def test_other_types(driver: Driver, models: Path, given: Path, kind: str, types: str) -> None:
    """Samples come from the metric's script; a limit that is not reached is the answer no."""
    ran = driver(
        "quantize", models / "mnist.onnx", "--ref", kind, "--report", given / "q.html", "-n", 1,
        "--metric", f"{given / 'm.py'}:metric", *(["--least", 2] if kind != "--fp8" else []),
    )  # fmt: skip
    assert ran.status == (1 if kind != "--fp8" else 0), ran.err
    assert ran.lines[0].endswith("measured on 4 samples of the script of --metric")
    layers = rows(ran.lines, "layer")
    assert {r[1] for r in layers.values()} == {types}
    low, high = {"half": (60, 80), "int4": (10, 30), "fp8": (24, 34)}[types]
    assert all(low < float(r[2]) < high for r in layers.values())


def test_weights_in_4_bits_by_samples(driver: Driver, models: Path, given: Path) -> None:
    """On the samples that the codes were chosen by a product loses a bit less, and more."""
    found: list[float] = []
    for more in ([], ["--calibrate", given / "x"]):
        ran = driver(
            "quantize", models / "mnist.onnx", "--ref", "--int4-weights", *more, "--evaluate",
            given / "x", "--report", given / "p.html", "-n", 1,
        )  # fmt: skip
        assert ran.status == 0, ran.err
        assert any(e.startswith("weights of 2 matmuls in int4") for e in ran.errors) == bool(more)
        found.append(float(rows(ran.lines, "layer")["fc0"][2]))
    assert found[1] > found[0] + 6


def test_what_is_kept(
    driver: Driver, models: Path, given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(given)
    base = ("quantize", "--ref", models / "mnist.onnx", "--int8", "--calibrate", given / "x")
    ran = driver(*base, "--keep", "fc1", "--max-error", 0, "-n", 1, "--report")
    assert ran.status == 0
    assert (given / "mnist.quantized.html").exists()
    layers = rows(ran.lines, "layer")
    assert layers["fc1"] == ["dot", "as it was", "-", "-", "kept: --keep names it"]
    assert layers["fc0"][1] == "as it was"
    assert layers["fc0"][4] == "kept: --max-error 0.0 needs it"
    assert "int8: no matmul is quantised: the outputs would change too much" in ran.errors
    assert rows(ran.lines, "output")["y"] == ["exact", "1.000000", "0"]
    # without a report: the metric decides, and the program is printed
    ran = driver(*base, "--metric", given / "m.py", "--least", 0)
    assert ran.status == 0
    assert ran.out.count("quantizelinear") > 0


def test_errors(driver: Driver, models: Path, given: Path) -> None:
    mnist, metric = models / "mnist.onnx", given / "m.py"
    (given / "none.py").write_text("x = 1")
    int8 = ["--int8", "--calibrate", given / "x"]
    report = [*int8, "--report", given / "e.html", "--ref", "-n", 1]
    for options, message in (
        ([], "expected one of --fp16, --bf16, --int8, --fp8, --int4-weights"),
        (["--fp16", "--int8"], "got --fp16 and --int8"),
        (["--fp16", "--keep", "fc0"], "option '--keep' needs --int8 or --fp8"),
        (["--fp8", "--smooth", "0.5"], "option '--smooth' needs --int8"),
        ([*int8, "--smooth", "2"], "option '--smooth' expected a number from 0 to 1, got '2'"),
        ([*int8, "--group-size", 32], "option '--group-size' needs --int4-weights"),
        (["--int8", "--save-ranges", "r"], "option '--save-ranges' needs --calibrate"),
        (["--fp16", "--calibrate", "x"], "needs --int8, --fp8 or --int4-weights"),
        (["--int4-weights", "--samples", 2], "option '--samples' needs --calibrate"),
        (["--int8", "--least", "1"], "option '--least' needs --metric"),
        ([*int8, "--percentile", "99"], "needs --calibration-method percentile"),
        ([*int8, "--ranges", "r"], "options '--ranges' and '--calibrate' exclude each other"),
        ([*int8, "--metric", metric], "'--metric' needs --report, --max-error or --least"),
        ([*int8, "--iterations", 3], "option '--iterations' needs --report"),
        ([*int8, "--fill0", "x"], "option '--fill0' needs --report"),
        ([*report, "--mlir"], "option '--mlir' needs --output: stdout has the report"),
        ([*int8, "--report=page.txt"], "expected a file whose name ends in .html, got 'page.txt'"),
        ([*report, "--metric", given / "none.py"], "the script has no function 'metric'"),
        ([*report, "--metric", f"{metric}:broken"], f"{metric}:11: error: 'broken' failed: Type"),
        ([*report, "--evaluate", given / "nothing"], "no such file or folder"),
        (["--int8", "--max-error", "0.1"], "max_error or metric need calibration data"),
    ):
        ran = driver("quantize", mnist, *options)
        assert ran.status == 2, options
        assert message in ran.err
        assert not (given / "e.html").exists()


def test_the_word_behind_report(driver: Driver, models: Path, given: Path) -> None:
    """The word after --report is the page if its suffix is .html, else the model."""
    page_ = given / "a.html"
    ran = driver("quantize", "--ref", "--fp16", "--report", page_, models / "mnist.onnx", "-n", 1)
    assert (ran.status, page_.exists()) == (0, True)
    assert ran.lines[0].startswith("mnist.onnx in half, on ref; measured on inputs drawn")


def test_the_page_needs_nothing() -> None:
    evil = "</script><script>alert(1)</script>\u2028"
    text = page({"title": evil}, "quantize")
    found = Page(text)
    assert not [a for _, a in found.tags if {"src", "href"} & set(a)]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src 'none'" in text
    assert [t for t, _ in found.tags].count("script") == 2
    assert json.loads(found.data) == {"title": evil}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
def test_a_browser_draws_it(driver: Driver, models: Path, given: Path) -> None:
    path = given / "r.html"
    options = ("--ref", "--fp16", "--report", path, "-n", 1)
    assert driver("quantize", models / "mnist.onnx", *options).status == 0
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               "--virtual-time-budget=2000", path.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.count("<rect") == 2
