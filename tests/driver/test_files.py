"""Files in and out: outputs of each form, and every way an input file can be wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.driver.conftest import Driver


def test_output_forms(driver: Driver, models: Path, tmp_path: Path) -> None:
    text = driver("read", models / "mnist.onnx").out
    ran = driver("read", models / "mnist.onnx", "-o", tmp_path / "p.txt")
    assert (ran.status, ran.out) == (0, "")
    assert (tmp_path / "p.txt").read_text() == text
    for name in ("p.mxr", "p.json"):
        assert driver("read", models / "mnist.onnx", "-o", tmp_path / name).status == 0
        assert driver("read", tmp_path / name).out == text
    assert driver("read", "--test", "-o", tmp_path / "p.mlir").status == 0
    assert "migraphx.dot" in (tmp_path / "p.mlir").read_text()
    assert driver("read", tmp_path / "p.mlir").out == driver("read", "--test").out
    assert driver("read", "--test", "--json").out.startswith("{")
    assert driver("read", "--test", "-o", tmp_path / "odd", "--text").status == 0
    assert (tmp_path / "odd").read_text() == driver("read", "--test").out
    assert driver("read", tmp_path / "odd", "--migraphx").status == 2
    assert sorted(os.listdir(tmp_path)) == ["odd", "p.json", "p.mlir", "p.mxr", "p.txt"]


def test_code_and_graphs(driver: Driver, models: Path, tmp_path: Path) -> None:
    assert "add_parameter" in driver("read", "--test", "--cpp").out
    assert driver("read", "--test", "-g").out.startswith("digraph")
    brief = driver("read", "--test", "--graphviz", "--brief").out
    assert 'label="dot"' in brief
    assert driver("read", "--test", "--brief").status == 2
    assert driver("read", "--test", "--json", "--text-version", "2.16").status == 2
    path = tmp_path / "build.py"
    assert driver("read", "--test", "-o", path).status == 0
    built: dict = {}
    exec(path.read_text(), built)
    assert repr(built["p"]) == driver("read", "--test").out
    for _ in range(2):  # also where the compiled program is in the cache
        ran = driver("compile", "--cpu", models / "mnist.onnx", "--py")
        assert ran.status == 0
        assert "main.add_return(" in ran.out


def test_a_compiled_file_is_used_as_it_is(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.mxr"
    made = driver("compile", "--cpu", models / "mnist.onnx", "-o", path)
    assert (made.status, made.out) == (0, "")
    ran = driver("run", "--cpu", path)
    assert "Compiled: the file holds code for cpu" in ran.errors
    assert ran.out == driver("run", "--cpu", models / "mnist.onnx").out
    ran = driver("verify", "--cpu", path)
    assert ran.status == 2
    assert "without its weights" in ran.errors[-2]
    driver("compile", "--cpu", models / "mnist.onnx", "--with-source", "-o", path)
    assert driver("verify", "--cpu", path).status == 0
    ran = driver("compile", "--ref", path)
    assert "The file's code for cpu is not used: the target is ref" in ran.errors
    ran = driver("compile", "--cpu", path, "--strip-context")
    assert not any("holds code" in line for line in ran.errors)


def test_code_for_gpus(driver: Driver, tmp_path: Path) -> None:
    ran = driver("compile", "--gpu", "--arch", "mi300x", "--test", "-o", tmp_path / "m.vmfb")
    assert ran.status == 0
    assert ran.errors[0] == "Target: gpu, gfx942"
    assert re.search(r"^vgprs +agprs +sgprs +spills", ran.err, re.M)
    assert re.search(
        r"^dispatches: 1, code objects: 1, kernels: 1, not on the GPU: 0$", ran.err, re.M
    )
    assert b"gfx942" in (tmp_path / "m.vmfb").read_bytes()
    ran = driver(
        "compile", "--gpu", "--arch", "gfx942,gfx1100", "--test", "-o", tmp_path / "m.vmfb"
    )
    assert ran.status == 0
    assert b"gfx1100" in (tmp_path / "m.gfx1100.vmfb").read_bytes()
    assert (tmp_path / "m.gfx942.vmfb").exists()


def test_wrong_outputs(driver: Driver, tmp_path: Path) -> None:
    def failed(*options: object) -> str:
        ran = driver("compile", "--test", *options)
        assert (ran.status, ran.out) == (2, "")
        return ran.err

    assert "would not be a .onnx file" in failed("--cpu", "-o", tmp_path / "x.onnx")
    assert "no such file or directory" in failed("--cpu", "-o", tmp_path / "no" / "x.txt")
    assert "ref has no code to write" in failed("--ref", "-o", tmp_path / "x.vmfb")
    (tmp_path / "d.txt").mkdir()
    assert "got a directory" in failed("--cpu", "-o", tmp_path / "d.txt")
    assert "expected one of" in failed("--cpu", "--json", "--text")
    assert "unknown GPU architecture 'gfx9422'" in failed("--gpu", "--arch", "gfx9422")
    assert "--threads" in failed("--gpu", "--threads", 2)
    assert "--arch" in failed("--ref", "--arch", "x")
    assert os.listdir(tmp_path) == ["d.txt"]


def test_wrong_modules(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "deep.mlir").write_text("{" * 20000)
    (tmp_path / "code.mlir").write_bytes(b"ML\xefR" + bytes(40))
    (tmp_path / "nothing.mlir").write_text("module {}\n")
    (tmp_path / "declared.mlir").write_text("func.func private @main()\n")
    for name in [*sorted(os.listdir(tmp_path)), "missing.xyz", "."]:
        ran = driver("read", tmp_path / name)
        assert (ran.status, ran.out) == (2, ""), name
        said = [line for line in ran.errors if not line.startswith(("Reading: ", "note: "))]
        assert len(said) == 1, said
        assert said[0].startswith(str(tmp_path / name)), said
        assert ": error: " in said[0], said


def test_a_reader_that_goes_away(models: Path) -> None:
    code = "import sys; from mgx_mlir.tools.driver.main import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, "read", str(models / "mnist.onnx")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        child.stdout.close()
        err = child.stderr.read()
        assert child.wait() == 2
    assert err.splitlines() == [f"Reading: {models / 'mnist.onnx'}"]
