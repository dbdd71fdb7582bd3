"""The README's commands and snippets run as written after its demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.models import model_of, node

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCREEN = 40  # lines
RUN = 240  # seconds that a command may take at most
# commands that are not run: they make the environment that the tests run in
INSTALLS = re.compile(r"pip install")


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(README) if found == language]


def commands() -> list[str]:
    lines = [line for block in blocks("") for line in block.splitlines()]
    return [line for line in lines if line and not INSTALLS.search(line)]


def stand_in(path: Path) -> None:
    """A model of a few layers with ResNet-50's inputs and outputs."""
    r = np.random.default_rng(0)
    held = {"w": r.standard_normal((8, 3, 3, 3)), "f": r.standard_normal((8, 1000))}
    nodes = [
        node("Conv", "gpu_0/data_0 w", "c", name="conv1", strides=[4, 4]),
        node("Relu", "c", "r", name="relu1"),
        node("GlobalAveragePool", "r", "p", name="pool5"),
        node("Flatten", "p", "q", name="flat"),
        node("MatMul", "q f", "m", name="fc"),
        node("Softmax", "m", "gpu_0/softmax_1", name="prob"),
    ]
    ends = {"gpu_0/data_0": [1, 3, 224, 224]}, {"gpu_0/softmax_1": [1, 1000]}
    path.parent.mkdir(exist_ok=True)
    onnx.save(model_of(nodes, *ends, held), path)


def environment(home: Path, **more: str) -> dict[str, str]:
    """The commands of this environment on the path, and a cache of their own."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("MIGRAPHX_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{found.get('PATH', '')}"
    return {**found, "PATH": path, "MGX_CACHE_DIR": str(home / "cache"), **more}


def ran(command: list[str], home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=home, env=environment(home, **more), capture_output=True, text=True,
        timeout=RUN, check=False,
    )  # fmt: skip


def run_readme(home: Path) -> None:
    for line in commands():
        done = ran(["bash", "-euc", line], home)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    for text in blocks("python"):
        done = ran([sys.executable, "-c", text], home)
        assert done.returncode == 0, f"{text}\n{done.stderr}"
        assert done.stdout.strip()


def run_suggestions(screen: str, home: Path) -> None:
    """Run the commands that the demo suggests at its end."""
    suggested = re.findall(r"^(?:Next:)? +(mgx-driver .*)$", screen, re.MULTILINE)
    assert len(suggested) == 3
    for line in suggested:
        done = ran(["bash", "-euc", line], home)
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr}"


def test_everything_is_taken_out() -> None:
    assert len(commands()) >= 3
    assert all(line.startswith("mgx-driver ") for line in commands())
    assert blocks("python")
    assert {found for found, _ in BLOCK.findall(README)} == {"", "python"}


def test_the_first_screen_says_what_the_words_mean() -> None:
    screen = "\n".join(README.splitlines()[:SCREEN])
    for word in ("MIGraphX", "HIP", "target", "`.mxr`"):
        assert f"| {word} | " in screen, word


def test_the_demo_fits_a_terminal_and_what_follows_it_runs(tmp_path: Path) -> None:
    stand_in(tmp_path / "models/light_resnet50.onnx")
    done = ran([sys.executable, str(ROOT / "benchmarks/demo.py")], tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 13
    assert max(map(len, lines)) <= 80
    assert [line[:3] for line in lines[1:6]] == [f"{i}/5" for i in range(1, 6)]
    assert done.stdout.count("PASS") == 2
    assert "\x1b" not in done.stdout
    assert "conv1" in lines[7]
    for name in ("resnet50.mxr", "resnet50.html", "resnet50.txt"):
        assert name in lines[8]
        assert (tmp_path / "models" / name).stat().st_size
    run_readme(tmp_path)
    run_suggestions(done.stdout, tmp_path)


@pytest.mark.slow
def test_the_readme_with_its_own_demo(tmp_path: Path) -> None:
    done = ran([sys.executable, str(ROOT / "benchmarks/demo.py")], tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 13
    # one number of kernels: of the demo, the README, and the report's page
    [kernels] = re.findall(r"(\d+) kernels", done.stdout)
    assert f"the demo's ResNet-50 is {kernels}" in README
    assert f'["kernels", "{kernels}", ""]' in (tmp_path / "models/resnet50.html").read_text()
    assert re.search(r"slowest: block\d+\.conv\d", done.stdout)
    run_readme(tmp_path)
    run_suggestions(done.stdout, tmp_path)
