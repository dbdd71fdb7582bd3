"""report: the page needs nothing else, and holds what perf and verify say; completion of shells."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mgx_mlir.tools.driver.main import COMMANDS, command_table
from mgx_mlir.tools.driver.page import page
from mgx_mlir.tools.driver.page.graph import graph
from mgx_mlir.tools.driver.shell_completion import SHELLS
from tests.driver.conftest import Driver


class Page(html.parser.HTMLParser):
    """The elements of a page, and the text of its data."""

    in_data = False

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.in_data = dict(attrs).get("id") == "data"

    def handle_data(self, data: str) -> None:
        if self.in_data:
            self.data += data
            self.in_data = False


def test_a_page(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    ran = driver("report", "--cpu", "--threads", 1, models / "mnist.onnx", "-n", 5, "-o", path)
    assert (ran.status, ran.out) == (0, "")
    assert ran.errors[-1] == f"Writing: {path}"
    text = path.read_text()
    found = Page(text)
    # nothing is loaded from anywhere
    assert not [a for _, a in found.tags if {"src", "href"} & set(a)]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src 'none'" in text
    data = json.loads(found.data)
    assert data["title"] == "mnist.onnx"
    assert ["verification", "pass", "good"] in data["cards"]
    assert [n["title"] for n in data["nodes"]] == [
        "x", "reshape", "cpu::dot_add_relu", "cpu::dot_add", "cpu::softmax", "return",
    ]  # fmt: skip
    assert data["edges"] == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    named = {k["text"].split(" ", 1)[-1]: k for k in data["kernels"]}
    first = named["cpu::dot_add_relu"]
    assert (first["id"], first["operations"]) == (2, 2 * 784 * 128 + 2 * 128)
    assert first["bytes"] == 4 * (784 + 784 * 128 + 128 + 128)
    assert first["ms"] > 0
    assert len(data["calls"]) == 5
    assert data["verify"]["outputs"][0]["passed"] is True
    assert ["--iterations", "5"] in data["versions"]
    assert ["kernels", "3", ""] in data["cards"]
    assert [k["rule"] for k in named.values()] == ["matmul", "matmul", "rows"]
    # each rule that was tried before, with its reason
    assert ["", "convolution", "it has no convolution"] in first["why"]
    assert "cpu::softmax" in data["text"]


def test_two_pages_are_compared(driver: Driver, models: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.html", tmp_path / "new.html"
    options = ("report", "--cpu", models / "mnist.onnx", "--no-verify", "-n", 2, "--threads", 1)
    assert driver(*options, "-o", old).status == 0
    data = json.loads(Page(old.read_text()).data)
    for kernel in data["kernels"]:
        kernel["ms"] *= 4
        kernel["rule"] = "linalg"
    data["kernels"].pop()
    old.write_text(page(data))
    ran = driver(*options, "-o", new, "--against", old)
    assert ran.status == 0
    assert re.match(r"Against old.html: [\d.e-]+ ms, [\d.e-]+ ms there, [\d.]+x$", ran.lines[0])
    assert ran.lines[-1] == "  1 kernels are in one of the two alone"
    assert all(", linalg -> matmul  " in line for line in ran.lines[1:-1])
    found = json.loads(Page(new.read_text()).data)["against"]
    assert [k["before_rule"] for k in found["kernels"]].count("linalg") == 2
    assert all(k["rule"] for k in found["kernels"])  # from the cache, and so asked again
    for text in (
        "",
        "<html>",
        page({**data, "calls": []}),
        page({**data, "kernels": [{"ms": -1}]}),
    ):
        old.write_text(text)
        ran = driver(*options, "-o", new, "--against", old)
        assert ran.status == 2
        assert "expected a page that mgx-driver report wrote" in ran.err


def test_a_model_that_fails(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    limits = ("--rms-tol", 0, "--atol", 0, "--rtol", 0)
    options = ("--cpu", "--threads", 1, "-n", 2, "-o", path)
    ran = driver("report", models / "mnist.onnx", *options, *limits)
    assert ran.status == 1
    assert ["verification", "FAIL", "bad"] in json.loads(Page(path.read_text()).data)["cards"]
    ran = driver("report", models / "mnist.onnx", *options, "--no-verify")
    assert ran.status == 0
    assert "not compared: --no-verify" in path.read_text()
    assert driver("report", "--test", "--no-verify", "--atol", 1).status == 2


def test_names_cannot_leave_their_place() -> None:
    evil = "</script><script>alert(1)</script>\u2028"
    data = {"title": evil, "text": evil}
    found = Page(page(data))
    assert [t for t, _ in found.tags].count("script") == 2
    assert json.loads(found.data) == data


def test_large_graphs_are_shown_in_parts(driver: Driver) -> None:
    import mgx_mlir as migraphx
    from mgx_mlir.printers.listing import list_program

    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[2]))
    for _ in range(100):  # diamonds: one value is alive between them
        a = m.add_instruction(migraphx.op("exp"), [x])
        b = m.add_instruction(migraphx.op("neg"), [x])
        x = m.add_instruction(migraphx.op("add"), [a, b])
    with p.weights():
        found = graph(list(list_program(p.program_ir).main.visible()), {})
    assert len(found["nodes"]) == 301
    groups = found["groups"]
    assert 30 <= len(groups) <= 120
    assert sorted(n for g in groups for n in g) == list(range(1, 301))
    kinds = {n["id"]: n["title"] for n in found["nodes"]}
    assert {kinds[g[-1]] for g in groups[:-1]} == {"add"}
    assert all(a < b for a, b in found["edges"])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
def test_a_browser_draws_it(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    options = ("--cpu", "--threads", 1, "-n", 2, "-o", path)
    assert driver("report", models / "mnist.onnx", *options).status == 0
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               "--virtual-time-budget=2000", path.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.count('class="node') == 6
    assert done.stdout.count('class="edge"') == 5
    assert "cpu::dot_add_relu" in done.stdout


# ---- completion ----------------------------------------------------------------------------------


def completed(script: str, *words: str) -> list[str]:
    """Return bash's completions of the last word."""
    line = " ".join(words)
    ask = (
        f"{script}\n"
        f"COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}\n"
        f"COMP_LINE={line!r}; _shtab_mgx_driver; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = driver("completion", "bash").out
    assert completed(script, "mgx-driver", "") == list(COMMANDS)
    assert completed(script, "mgx-driver", "ver") == ["verify"]
    options = completed(script, "mgx-driver", "verify", "--r")
    assert set(options) >= {"--ref", "--rms-tol", "--rtol", "--reduce", "--replace-literals"}
    assert "--iterations" not in completed(script, "mgx-driver", "read", "--i")
    assert completed(script, "mgx-driver", "run", "--kernel-boundaries", "o") == ["on", "off"]
    assert completed(script, "mgx-driver", "run", "--arch", "mi300x") == ["mi300x"]
    assert "simplify_algebra" in completed(script, "mgx-driver", "read", "-p", "simpl")
    assert completed(script, "mgx-driver", "perf", "--iterations", "") == []
    assert completed(script, "mgx-driver", "completion", "f") == ["fish"]
    given = ("mgx-driver", "run", "m.onnx", "--load-arg", "@x", "x.npy")
    assert completed(script, *given, "--save-o") == ["--save-outputs"]  # an option ends the list
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").touch()
    assert completed(script, "mgx-driver", "read", "mod") == ["model.onnx"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_is_completed(driver: Driver, tmp_path: Path, shell: str) -> None:
    script = driver("completion", shell).out
    for name, (_, options) in command_table().items():
        assert name in script
        for o in options:
            for flag in o.flags:
                spelled = flag
                if shell == "fish":
                    spelled = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                assert spelled in script
    if shell != "powershell" and shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_no_shell(driver: Driver) -> None:
    ran = driver("completion", "ksh")
    assert (ran.status, ran.errors) == (
        2,
        ["error: expected a shell, bash, zsh, fish, powershell, got 'ksh'"],
    )
