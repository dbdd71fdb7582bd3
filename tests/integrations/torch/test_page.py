"""docs/pytorch.md: its blocks of Python run, and the backend is found by its name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
# an installed package brings this; in a tree that is not installed it stands beside the modules
ENTRY = "[torch_dynamo_backends]\nmgx = mgx_mlir.integrations.torch.backend:mgx\n"


def test_the_page_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs/pytorch.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    info = tmp_path / "found/mgx_page-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mgx-page\nVersion: 0\n")
    (info / "entry_points.txt").write_text(ENTRY)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    path = os.pathsep.join([str(ROOT), str(info.parent)])
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
