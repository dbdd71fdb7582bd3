"""Blocks of the pages: each runs here or in a test that is named, or its page says what it needs.

README, tutorial, howto pages, installing, PyTorch, contributing and the life of a model have tests
of their own: test_readme, test_site, test_install, torch/test_page, test_contributing, test_docs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TESTED = {"tutorial.md", "install.md", "pytorch.md", "life-of-a-model.md"}
PAGES = [p for p in sorted((ROOT / "docs").glob("*.md")) if p.name not in TESTED]
SHOWN = {"text", "mermaid", "json", "yaml", "toml", "mlir"}  # shows a form, runs nothing
RUN = {  # numbers of the blocks that run, in order
    "caches.md": [0],
    "deploy.md": [0],
    "formats.md": [0],
    "onnx.md": [0],
    "onnxruntime.md": [0, 1, 2],
    "python-api.md": [0, 1, 2, 4, 5],
    "quantization.md": [0],
}
# the test that runs what a block has; or words of the page that say what the block needs
OTHERWISE = {
    "debugging.md": {0: "tests/debug/test_reduce.py", 1: "tests/plugins/test_plugins.py"},
    "deploy.md": {
        1: "tests/api/test_runtime_alone.py", 2: "tests/driver/test_bundle.py",
        3: "tests/driver/test_bundle.py", 4: "tests/driver/test_code.py",
        5: "needs Docker", 6: "tests/api/test_runtime_alone.py",
    },
    "emulator.md": {
        0: "tests/emulator/test_emulate.py",
        1: "from a clone of tinygrad",
    },
    "families.md": {0: "needs torch, transformers, onnxscript"},
    "gpu.md": {0: "on a machine with a GPU"},
    "hip.md": {0: "machine with an AMD GPU"},
    "nvidia-kernels.md": {0: "with the GPU"},
    "plugins.md": {1: "tests/plugins/test_plugins.py", 2: "tests/plugins/test_plugins.py"},
    "python-api.md": {
        3: "tests/emulator/test_device_api.py", 6: "tests/frontends/test_sequences.py",
    },
    "quantization.md": {
        1: "tests/driver/test_quantize.py", 3: "tests/runtime/test_caches_in_place.py",
    },
    "serving.md": {
        0: "tests/serving/test_ray.py", 1: "tests/serving/test_service.py",
        2: "tests/serving/test_service.py", 3: "tests/serving/test_v2.py",
        4: "tests/serving/test_ray.py", 5: "tests/serving/test_openai.py",
        6: "tests/serving/test_openai_client.py", 7: "tests/serving/test_ray_text.py",
        8: "tests/serving/test_adapters.py", 10: "-m slow",
    },
    "tensorflow.md": {0: "tests/driver/test_tf_sessions.py", 1: "tests/driver/test_tf_sessions.py"},
    "text.md": {
        0: "in a clone", 1: "tests/text/test_models.py", 2: "tests/emulator/test_text.py",
        3: "tests/text/test_grammar.py", 4: "tests/text/test_models.py",
        5: "tests/text/test_drafts.py", 6: "tests/text/test_gguf_models.py",
        7: "tests/driver/test_text.py",
    },
}  # fmt: skip
PREAMBLE = """
import numpy as np, onnx
from onnx import TensorProto, helper
w = helper.make_tensor("w", TensorProto.FLOAT, [8, 3], np.arange(24.0) / 10)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["NAME", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
    "g", [helper.make_tensor_value_info("NAME", TensorProto.FLOAT, [2, 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])], [w])
model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
onnx.save(model, "m.onnx")
onnx.save(model, "model.onnx")
x = array = np.ones((2, 8), np.float32)
batches = [x, 2 * x]
y = np.zeros((2, 3), np.float32)
"""
SHELL = """
mgx-driver() { "$PYTHON" -m mgx_mlir.tools.driver "$@"; }
mgx-driver compile model.onnx --cpu > /dev/null
"""


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_each_block_runs_somewhere_or_says_what_it_needs(page: Path) -> None:
    found, otherwise = blocks(page), OTHERWISE.get(page.name, {})
    shown = {i for i, (language, _) in enumerate(found) if language in SHOWN}
    run = {*RUN.get(page.name, []), *otherwise}
    missing = [text.split("\n", 1)[0] for i, (_, text) in enumerate(found) if i not in shown | run]
    assert not missing, f"run them in RUN, or name what does in OTHERWISE: {missing}"
    assert run <= set(range(len(found)))
    text = page.read_text()
    for where in otherwise.values():
        if where.startswith("tests/"):
            assert (ROOT / where).is_file(), where
        else:
            assert where in text, f"the page does not say: {where}"


@pytest.mark.parametrize("page", RUN)
def test_blocks_run(page: str, tmp_path: Path) -> None:
    found = blocks(ROOT / "docs" / page)
    name = "input" if page == "quantization.md" else "x"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    env["MGX_CACHE_DIR"] = str(tmp_path / "cache")
    script, shell = PREAMBLE.replace("NAME", name), SHELL
    for number in RUN[page]:
        language, text = found[number]
        if language == "python":
            script += text
        else:
            shell += text
    commands = [[sys.executable, "-c", script]]
    if shell != SHELL:
        commands.append(["bash", "-ec", shell])
    for command in commands:
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]


def test_pages_that_are_listed_exist() -> None:
    assert {*RUN, *OTHERWISE} <= {p.name for p in PAGES}
