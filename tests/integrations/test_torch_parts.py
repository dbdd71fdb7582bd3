"""Parts of the PyTorch integration without torch: options, the entry point, late imports."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from mgx_mlir.core.errors import UsageError
from mgx_mlir.integrations.torch.options import TorchOptions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "mgx_mlir/integrations/torch"


def test_the_options_are_read() -> None:
    made = TorchOptions.of({"target": "gpu", "arch": "gfx942", "fp16": True, "fallback": "eager"})
    assert made == TorchOptions("gpu", "gfx942", fp16=True, fallback="eager")
    assert TorchOptions.of(None, "default") == TorchOptions()
    assert made.compile_options() == {"threads": None, "exhaustive_tune": False, "arch": "gfx942"}


@pytest.mark.parametrize(
    ("given", "mode", "text"),
    [
        ({"thread": 1}, None, "did you mean 'threads'?"),
        ({"zzz": 1}, None, "its options: target, arch, threads"),
        ({"fp16": True, "bf16": True}, None, "expected one of fp16 and bf16"),
        ({"fp16": 1}, None, "fp16 expected True or False, got 1"),
        ({"threads": 0}, None, "threads expected a positive number, got 0"),
        ({"fallback": "silent"}, None, "fallback expected 'error' or 'eager', got 'silent'"),
        ({}, "max-autotune", "backend 'mgx' has no mode 'max-autotune'"),
    ],
)
def test_a_wrong_option_is_an_error_with_its_fix(given: dict, mode: str | None, text: str) -> None:
    with pytest.raises(UsageError) as e:
        TorchOptions.of(given, mode)
    assert text in str(e.value)


def test_the_entry_point_names_a_function_that_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    place = project["entry-points"]["torch_dynamo_backends"]["mgx"]
    module, _, name = place.partition(":")
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    found = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert [a.arg for a in found[name].args.kwonlyargs] == ["options", "mode"]
    assert len(found[name].args.args) == 2


def test_nothing_imports_torch_but_what_traces_its_modules() -> None:
    """mgx_mlir/text loads its modules of torch where a checkpoint is traced, and not before."""
    text = [ROOT / f"mgx_mlir/text/{name}.py" for name in ("graph", "probe")]
    traces = [HERE / "__init__.py", ROOT / "mgx_mlir/torch.py", *text]
    assert all(path.exists() for path in traces)
    found: list[str] = []
    for folder in ("mgx_mlir", "dialects", "passes"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if HERE in path.parents or path in traces or path.is_symlink():
                continue
            for node in ast.parse(path.read_text()).body:  # imports at the top of a file
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                found += [str(path) for n in names if n.split(".")[0] == "torch"]
                found += [str(path) for n in names if n.startswith("mgx_mlir.integrations.torch")]
    assert found == []
