"""Builds the site of these pages: `python docs/build_site.py [--notebooks] [FOLDER]`.

The pages stay plain Markdown that a forge shows; this gathers them with CONTRIBUTING.md and
others into a folder of its own, makes pages of the notebooks, and has zensical build the site,
in strict mode: a link to nothing is an error. `--notebooks` runs the notebooks first, so that
their pages have results and plots. The site is written to FOLDER/site; FOLDER is build/docs unless
it is given. Each step is printed as it begins, with the seconds until then.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# pages that stand beside docs/, and their names on the site
BESIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w+) (.*)$", re.MULTILINE)
FILE = re.compile(r"file=(\S+)")
# the menu: a heading, and pages by their place in docs/
MENU: list[tuple[str, list[str]]] = [
    ("Start", ["index.md", "install.md", "tutorial.md", "glossary.md", "migraphx.md"]),
    (
        "How to",
        [
            "howto/torch-model.md",
            "howto/onnxruntime-script.md",
            "howto/no-waiting.md",
            "howto/wrong-result.md",
            "howto/slow-kernel.md",
            "howto/own-operator.md",
            "howto/own-pass.md",
            "howto/mi300x.md",
            "howto/service.md",
        ],
    ),
    ("Notebooks", ["notebooks/first-model.md", "notebooks/precision.md"]),
]
REST = ("Guides", "Reference", "Inside", "Data")
REFERENCE = {
    "driver.md", "python-api.md", "reference/api.md", "onnx-operators.md", "passes.md",
    "formats.md", "quantization.md", "special-values.md", "tensorflow.md", "onnx.md",
}  # fmt: skip
INSIDE = {
    "architecture.md", "life-of-a-model.md", "kernels.md", "gpu-kernels.md",
    "nvidia-kernels.md", "iree-hazards.md",
    "contributing.md", "changelog.md", "benchmarks.md", "families.md",
}  # fmt: skip


def pages() -> dict[Path, str]:
    """Each page with its name on the site."""
    found = {
        p: p.relative_to(DOCS).as_posix().replace("/README.md", "/index.md")
        for p in sorted(DOCS.rglob("*.md"))
    }
    return found | {ROOT / name: on_site for name, on_site in BESIDE.items()}


def on_site(text: str, page: Path, known: dict[Path, str]) -> str:
    """A page with its links between pages of the site; what is not on it is named alone."""
    here = Path(known[page]).parent

    def link(m: re.Match[str]) -> str:
        mark, label, target = m.groups()
        if "://" in target or target.startswith("#"):
            return m[0]
        name, sharp, anchor = target.partition("#")
        other = (page.parent / name).resolve()
        if mark or other.suffix == ".ipynb":
            return m[0].replace(".ipynb", ".md")
        if other.is_dir() and other / "README.md" in known:
            other = other / "README.md"
        if other not in known:
            return label
        return f"[{label}]({os.path.relpath(known[other], here)}{sharp}{anchor})"

    def fence(m: re.Match[str]) -> str:
        named = FILE.search(m[2])
        return f"```{m[1]}" + (f' title="{named[1]}"' if named else "")

    # links in blocks of code are no links
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        FENCE.sub(fence, part) if part.startswith("```") else LINK.sub(link, part) for part in parts
    )


class Steps:
    """Prints each step as it begins, with the seconds since the first."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def begin(self, what: str) -> None:
        now = time.perf_counter()
        print(f"{now - self.start:5.1f} s  {what}", flush=True)


def gather(folder: Path, notebooks: bool, steps: Steps) -> list[str]:
    """Write the pages into a folder's `source`; their names."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    known = pages()
    for page, name in known.items():
        at = source / name
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(on_site(page.read_text(), page, known))
    shutil.copytree(DOCS / "images", source / "images")
    made = []
    for notebook in sorted(DOCS.rglob("*.ipynb")):
        if notebooks:
            steps.begin(f"running {notebook.relative_to(ROOT)}")
        made.append(write_notebook(notebook, source, notebooks))
    return [*known.values(), *made]


def write_notebook(path: Path, source: Path, run: bool) -> str:
    """Write a notebook's page, with results and plots if it is to run; the page's name."""
    at = source / path.relative_to(DOCS).with_suffix(".md")
    at.parent.mkdir(parents=True, exist_ok=True)
    if run:
        work = source.parent / "notebooks" / at.name
        work.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(DOCS / "run_notebook.py"), str(path), str(work)]
        subprocess.run(command, check=True)
        for made in (work, *work.parent.glob(f"{work.stem}-*.png")):
            shutil.copy(made, at.parent / made.name)
    else:
        cells = json.loads(path.read_text())["cells"]
        texts = [("".join(c["source"]), c["cell_type"] == "code") for c in cells]
        at.write_text("\n\n".join(f"```python\n{t}\n```" if code else t for t, code in texts))
    known = pages() | {path: at.relative_to(source).as_posix()}
    at.write_text(on_site(at.read_text(), path, known))
    return at.relative_to(source).as_posix()


def menu(names: list[str]) -> list[dict[str, list[str]]]:
    """The menu of the site: every page once."""
    taken = {n for _, listed in MENU for n in listed}
    rest: dict[str, list[str]] = {heading: [] for heading in REST}
    for name in names:
        if name in taken:
            continue
        if name.startswith("data/"):
            rest["Data"].append(name)
        elif name in REFERENCE:
            rest["Reference"].append(name)
        elif name in INSIDE or name.startswith("design/"):
            rest["Inside"].append(name)
        else:
            rest["Guides"].append(name)
    return [{heading: listed} for heading, listed in [*MENU, *rest.items()]]


def configuration(names: list[str]) -> dict[str, Any]:
    """Return zensical's configuration, as JSON, which is YAML."""
    python = {
        "paths": [str(ROOT)],
        "options": {
            "show_source": False,
            "show_root_heading": True,
            "show_root_full_path": False,
            "heading_level": 3,
            "docstring_style": None,
            "members_order": "source",
            "separate_signature": True,
            "line_length": 80,
        },
    }
    toggles = [
        {"media": f"(prefers-color-scheme: {a})", "scheme": scheme,
         "toggle": {"icon": f"lucide/{icon}", "name": f"Switch to {b} mode"}}
        for a, b, scheme, icon in (("light", "dark", "default", "sun"),
                                   ("dark", "light", "slate", "moon"))
    ]  # fmt: skip
    return {
        "site_name": "mgx_mlir",
        "site_description": "AMD MIGraphX on MLIR, in Python",
        "docs_dir": "source",
        "site_dir": "site",
        "use_directory_urls": False,
        "strict": True,
        "theme": {
            "palette": toggles,
            "font": False,  # nothing is fetched from elsewhere
            "features": [
                "navigation.tabs", "navigation.top", "navigation.footer", "content.code.copy",
                "search.highlight",
            ],
        },
        "plugins": ["search", {"mkdocstrings": {"handlers": {"python": python}}}],
        "markdown_extensions": [
            "admonition", "attr_list", "tables", {"toc": {"permalink": True}},
            "pymdownx.highlight", "pymdownx.superfences",
        ],
        "nav": menu(names),
    }  # fmt: skip


def problems(output: str) -> Iterator[str]:
    """The lines of zensical's output that say what is wrong, without a traceback."""
    lines = output.splitlines()
    end = next((i for i, line in enumerate(lines) if line.startswith("Traceback")), len(lines))
    return (line for line in lines[:end] if line.strip())


def main(given: list[str]) -> int:
    """Build the site; 1 where a page is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--notebooks", action="store_true", help="run the notebooks first")
    chosen = parser.parse_args(given)
    folder = chosen.folder.resolve()
    steps = Steps()
    steps.begin("gathering pages")
    names = gather(folder, chosen.notebooks, steps)
    steps.begin(f"building {len(names)} pages")
    settings = folder / "mkdocs.yml"
    settings.write_text(json.dumps(configuration(names), indent=1))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(
        [*command, "--config-file", str(settings)], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        print("\n".join(problems(done.stdout + done.stderr)), file=sys.stderr)
        return 1
    steps.begin(f"done: open {folder / 'site' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
