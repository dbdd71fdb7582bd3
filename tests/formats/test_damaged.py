"""Files that once ended in an exception of another kind, or in no end at all."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import mgx_mlir as migraphx
from mgx_mlir.core.errors import FileError, MgxError, ModelError, UsageError
from mgx_mlir.core.names import natural
from mgx_mlir.debug.peaks import _read as read_peaks
from mgx_mlir.frontends.argument_files import read_argument
from mgx_mlir.frontends.mlir_files import read_mlir
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf
from mgx_mlir.frontends.tf.saved_model import _natural
from mgx_mlir.programs.signature import Port
from mgx_mlir.rewrite.reproducer import read_reproducer
from mgx_mlir.tools.driver.main import main
from mgx_mlir.tools.driver.perf_report import REPORT, read_report
from tests.formats.corpora import graphs
from tests.formats.greedy import long_line, model, n


def test_text_graphs_whose_constants_begin_with_any_byte(tmp_path: Path) -> None:
    graph = schema.Graph.FromString(min(graphs(), key=len))
    node = graph.node.add(name="constant_of_this_test", op="Const")
    node.attr["dtype"].type = 1
    tensor = node.attr["value"].tensor
    tensor.dtype = 1
    tensor.tensor_shape.dim.add(size=1)
    path = tmp_path / "g.pbtxt"
    for first in (0x2D, 0x2E, 0x00, 0x22, 0x5C, 0xFF):
        tensor.tensor_content = bytes([first, 0, 0, 64])
        path.write_text(text_format.MessageToString(graph))
        options = TfOptions(output_names=["constant_of_this_test"])
        found = migraphx.program.of(parse_tf(path, options))
        found.compile(migraphx.get_target("ref"))
        given = {k: np.zeros(s.lens(), "f4") for k, s in found.get_parameter_shapes().items()}
        [got] = (np.asarray(r) for r in found.run(given))
        assert got.tobytes() == tensor.tensor_content


def test_names_with_digits_of_any_script_or_length() -> None:
    names = ["x²", "x٣", "x" + "9" * 5000, "x10", "x2", "x" + "9" * 5001, "x007"]
    for key in (natural, _natural):
        found = sorted(names, key=key)
        order = ["x2", "x007", "x10", "x" + "9" * 5000, "x" + "9" * 5001]
        assert [name for name in found if name in order] == order


@pytest.mark.parametrize("total", ["9" * 400, "9" * 5000, "1e999", "-1", '"x"', "[]", "null"])
def test_reports_with_other_totals(total: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(f'{{"report": {json.dumps(REPORT)}, "total_ms": {total}, "kernels": []}}')
    with pytest.raises(FileError):
        read_report(str(path))


@pytest.mark.parametrize("threads", ["9" * 400, "1e999", "-1", "[]", "[" * 100_000])
def test_peaks_of_other_kinds(threads: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(f'{{"threads": {threads}, "gb_s": 1e999, "gflop_s": 1}}')
    assert read_peaks(path, 1) == (None, 0)


def test_arrays_cut_anywhere(tmp_path: Path) -> None:
    port = Port("x", "float_type", (3, 4))
    for suffix in (".npy", ".npz"):
        out = io.BytesIO()
        array = np.zeros((3, 4), "f4")
        (np.save if suffix == ".npy" else np.savez)(out, array)
        whole = out.getvalue()
        path = tmp_path / f"a{suffix}"
        for cut in range(len(whole)):
            path.write_bytes(whole[:cut])
            with pytest.raises(FileError):
                read_argument(path, port)
        for at in range(128):  # each byte of the head
            path.write_bytes(whole[:at] + b"(" + whole[at + 1 :])
            try:
                read_argument(path, port)
            except FileError:
                continue


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """A pipe that nobody writes to blocks whoever opens it."""
    pipe, module = tmp_path / "pipe.mlir", tmp_path / "m.mlir"
    os.mkfifo(pipe)
    module.write_text("module {}")
    commands = [
        ["mgx_mlir.tools.opt", pipe],
        ["mgx_mlir.tools.opt", module, "--weights", pipe],
        ["mgx_mlir.tools.reduce", pipe, "--test", "true"],
        ["mgx_mlir.tools.driver", "read", pipe],
    ]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", *map(str, command)],
            capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 2, command
        assert "regular file" in done.stderr, command
    os.rename(pipe, tmp_path / "m.mlir.npz")
    with pytest.raises(FileError, match="regular file"):
        read_mlir(module)


def test_a_module_is_written_with_its_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out, again = (tmp_path / name for name in ("m.onnx", "m.mlir", "n.mlir"))
    a = long_line(30, 1)
    source.write_bytes(model([n("Add", "a,x")], a=a))
    assert main(["read", str(source), "-o", str(out)]) == 0
    assert f"the weights are in {out}.npz" in capsys.readouterr().err
    assert main(["read", str(out), "-o", str(again)]) == 0
    assert again.read_text() == out.read_text()
    p = migraphx.program.of(read_mlir(out))
    p.compile(migraphx.get_target("ref"))
    np.testing.assert_array_equal(np.asarray(p.run({"x": np.float32([2])})[0]), a + 2)
    small = tmp_path / "small.mlir"
    source.write_bytes(model([n("Add", "a,x")], a=long_line(3)))
    assert main(["read", str(source), "-o", str(small)]) == 0
    assert not (tmp_path / "small.mlir.npz").exists()


def test_a_reproducer_names_no_weights_elsewhere() -> None:
    text = 'module {{}}\n{{-# mlir_reproducer: {{ pipeline: "", weights: "{}" }} #-}}'
    assert read_reproducer(text.format("w.npz"))[0].weights == "w.npz"
    for name in ("../w.npz", "/etc/w.npz", "a/w.npz"):
        with pytest.raises(UsageError, match="beside it"):
            read_reproducer(text.format(name))


def test_a_node_that_no_importer_expects_is_an_error_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The net below the importers' own checks: every such exception found gets its own check."""
    import mgx_mlir.frontends.onnx.importer as importer

    def fails(*_: object, **__: object) -> None:
        raise IndexError("list index out of range\nsecond line")

    monkeypatch.setattr(importer.Importer, "_call", fails)
    with pytest.raises(ModelError, match="it cannot be imported: IndexError: list index") as e:
        migraphx.parse_onnx_buffer(model([n("Relu", "x")]))
    assert "second" not in str(e.value)
    assert isinstance(e.value, MgxError)


def test_an_extent_that_is_not_there_is_an_error_of_shape() -> None:
    from mgx_mlir.core.errors import ShapeError
    from mgx_mlir.programs.build import Dims

    dims = Dims((2, 3))
    assert (dims[1], dims[-2], dims[1:], dims == (2, 3)) == (3, 2, (3,), True)
    for at, wanted in ((2, 3), (-3, 3)):
        with pytest.raises(ShapeError, match=f"expected rank {wanted} or more, got 2"):
            dims[at]
    with pytest.raises(ModelError, match="rank"):
        migraphx.parse_onnx_buffer(model([n("Conv", "x,x")]))
