"""Environments with plugins: wheels made from a folder, and a fresh one that they are put into."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
GROUP = "mgx_mlir.plugins"


def wheel_of(folder: Path, to: Path) -> Path:
    """Make the wheel of a pure Python project, as its build backend would.

    No backend is needed for that: one of them is not among the packages that tests need.
    """
    file = tomllib.loads((folder / "pyproject.toml").read_text())
    project = file["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    points = project["entry-points"][GROUP]
    info = dist_info(project["name"], project["version"], points)
    wheel = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    texts = {f"{stem}.dist-info/{name}": text for name, text in {**info, "WHEEL": wheel}.items()}
    for package in file["tool"]["setuptools"]["packages"]:
        for source in sorted((folder / package.replace(".", "/")).glob("*.py")):
            texts[source.relative_to(folder).as_posix()] = source.read_text()
    record = f"{stem}.dist-info/RECORD"
    texts[record] = "".join(f"{name},,\n" for name in [*texts, record])
    made = to / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return made


def dist_info(name: str, version: str, points: Mapping[str, str]) -> dict[str, str]:
    """State a package's name, version and plugins, as the files of its .dist-info do."""
    listed = "".join(f"{k} = {v}\n" for k, v in points.items())
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "entry_points.txt": f"[{GROUP}]\n{listed}",
    }


def fresh_environment(folder: Path, root: Path = ROOT, *, pip: bool = True) -> Path:
    """Make an environment with the packages of this one and the tree `root`; return its Python."""
    venv.create(folder, with_pip=pip, symlinks=os.name != "nt")
    python = folder / "bin" / "python"
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout
    shared = [str(root), *(p for p in sys.path if p.endswith("site-packages"))]
    (Path(where.strip()) / "shared.pth").write_text("\n".join(shared) + "\n")
    return python


def run(python: Path | str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[Any]:
    """Run Python with plugins on; `variables` are set in its environment."""
    environment = {k: v for k, v in os.environ.items() if k != "MGX_PLUGINS"}
    return subprocess.run(
        [str(python), *arguments],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


def fake_package(folder: Path, name: str, sources: Mapping[str, str], version: str = "1.0") -> str:
    """Write a package as pip would install it into `folder`; its first source is the plugin."""
    for file, text in sources.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    module = next(iter(sources)).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    for file, text in dist_info(name, version, {"fake": module}).items():
        (info / file).write_text(text)
    return str(folder)
