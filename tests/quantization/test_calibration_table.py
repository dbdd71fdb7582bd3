"""onnxruntime's calibration tables: read into a quantised program, and written for onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.quantization.calibrate import (
    CalibrationDataReader,
    CalibrationMethod,
    TensorData,
    TensorsData,
    create_calibrator,
    load_tensors_data,
    save_tensors_data,
)
from onnxruntime.quantization.quant_utils import write_calibration_table

import mgx_mlir as migraphx
from mgx_mlir.core.errors import FileError
from mgx_mlir.quantization.tables import CalibrationTable, ModelTensors
from tests.quantization.test_eight_bits import INPUT, NET, SAMPLES, W0, W1, W2, W3, model, run

REF = migraphx.get_target("ref")
# the tensors that the products of NET read; `f` is a view of `p`
READ = ("x", "a1", "p", "h1")


def saved(folder: Path) -> Path:
    shapes = ("float[4,3,10,10] x", "float[4,5] y")
    path = folder / "net.onnx"
    path.write_bytes(model(NET, *shapes, w0=W0, w1=W1, w2=W2, w3=W3))
    return path


class _Samples(CalibrationDataReader):
    def __init__(self) -> None:
        self._left = iter(SAMPLES)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._left, None)


def of_onnxruntime(path: Path, folder: Path) -> TensorsData:
    """Return the ranges that onnxruntime's calibration finds."""
    made = create_calibrator(
        path, augmented_model_path=str(folder / "augmented.onnx"),
        calibrate_method=CalibrationMethod.MinMax,
    )  # fmt: skip
    made.collect_data(_Samples())
    return made.compute_data()


def quantised(path: Path, **options: Any) -> tuple[Any, Any]:
    program = migraphx.parse_onnx(str(path))
    found = migraphx.quantize_int8(program, REF, **options)
    return program, found


def test_a_table_of_onnxruntime_quantises_as_the_samples_do(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = of_onnxruntime(path, tmp_path)
    write_calibration_table(data, str(tmp_path))
    save_tensors_data(data, tmp_path / "saved.json")
    want, own = quantised(path, calibration=SAMPLES, method="minmax")
    assert all(r is not None for each in own.ranges.ranges.values() for r in each)
    for name in ("calibration.json", "saved.json"):
        table = CalibrationTable.load(tmp_path / name)
        got, found = quantised(path, ranges=table.for_model(path))
        assert found.ranges.ranges.keys() == own.ranges.ranges.keys()
        for site, each in own.ranges.ranges.items():
            np.testing.assert_allclose(found.ranges.ranges[site], each, rtol=1e-5)
        np.testing.assert_allclose(run(got, REF, INPUT), run(want, REF, INPUT), rtol=1e-3)
    text = CalibrationTable.load(tmp_path / "calibration.cache").ranges
    assert text["x"] == (-text["x"][1], text["x"][1])
    assert text.keys() >= set(READ)


def test_onnxruntime_reads_what_is_written(tmp_path: Path) -> None:
    path = saved(tmp_path)
    _, found = quantised(path, calibration=SAMPLES, method="minmax")
    table = CalibrationTable.of(found.ranges, path)
    table.save(tmp_path / "table.json")
    read = load_tensors_data(tmp_path / "table.json")
    want = of_onnxruntime(path, tmp_path)
    assert set(read.keys()) == set(READ)
    for name in READ:
        for got, own in zip(read[name].range_value, want[name].range_value, strict=True):
            np.testing.assert_allclose(got, own, rtol=1e-5)
    table.save(tmp_path / "table.cache")
    lines = dict(line.split() for line in (tmp_path / "table.cache").read_text().splitlines())
    assert float(lines["x"]) == pytest.approx(max(abs(SAMPLES[i]["x"]).max() for i in range(3)))


def test_a_tensor_that_the_program_has_no_more_is_not_taken(tmp_path: Path) -> None:
    """The factor ahead of a product is folded into its weights: its range is not the operand's."""
    body = "m = Mul(x,s)  n = Identity(m)  y = MatMul(n,w)"
    data = model(body, "float[2,12] x", "float[2,16] y", w=W2, s=np.float32(8))
    path = tmp_path / "scaled.onnx"
    path.write_bytes(data)
    table = CalibrationTable({"m": (-8.0, 8.0), "n": (-8.0, 8.0)})
    program = migraphx.parse_onnx(str(path))
    found = migraphx.quantize_int8(program, REF, ranges=table.for_model(path))
    ((own,),) = found.ranges.ranges.values()
    feeds = {"x": np.linspace(-1, 1, 24).reshape(2, 12).astype(np.float32)}
    want = 8 * feeds["x"] @ W2
    assert own in (None, (-8.0, 8.0))
    np.testing.assert_allclose(run(program, REF, feeds), want, atol=0.03 * np.abs(want).max())


def test_makers_are_followed_through_views(tmp_path: Path) -> None:
    tensors = ModelTensors.of(saved(tmp_path))
    matmul = next(n for n in tensors.inputs if n.startswith("MatMul"))
    pool = next(n for n in tensors.inputs if n.startswith("GlobalAveragePool"))
    assert tensors.names(matmul, [pool]) == ["p"]
    assert tensors.names(matmul, ["another"]) == [None]
    assert tensors.names("no such", [""]) == [None]


@pytest.mark.parametrize(
    "text",
    ['{"x": [1, 0]}', '{"x": [NaN, 1]}', '{"x": 3}', '{"x": [true, 2]}', "[]", "{", '{"x": []}',
     '{"x": {"lowest": {"CLS": "numpy.array", "data": []}, "highest": 1}}'],
)  # fmt: skip
def test_hostile_tables_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(FileError):
        CalibrationTable.load(path)


@pytest.mark.parametrize("text", ["x", "x y", "x nan", " 3\n", "x 1 2e999"])
def test_hostile_lines_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.cache"
    path.write_text(text)
    with pytest.raises(FileError):
        CalibrationTable.load(path)


def test_ranges_of_channels_are_one(tmp_path: Path) -> None:
    each = TensorData(lowest=np.float32([-1, -3]), highest=np.float32([2, 1]))
    save_tensors_data(
        TensorsData(CalibrationMethod.MinMax, {"t": each}), tmp_path / "channels.json"
    )
    assert CalibrationTable.load(tmp_path / "channels.json").ranges == {"t": (-3.0, 2.0)}


def test_the_driver_reads_and_writes_tables(tmp_path: Path, capsys: Any) -> None:
    from mgx_mlir.tools.driver.main import main

    path, samples = saved(tmp_path), tmp_path / "samples"
    samples.mkdir()
    for i, sample in enumerate(SAMPLES):
        np.save(samples / f"{i}.npy", sample["x"])
    table, out = tmp_path / "t.json", tmp_path / "small.mxr"
    given = ["quantize", str(path), "--int8", "-o", str(out)]
    assert main([*given, "--calibrate", str(samples), "--save-table", str(table)]) == 0
    assert set(CalibrationTable.load(table).ranges) == set(READ)
    assert main([*given, "--ranges", str(table)]) == 0
    assert main(["quantize", str(out), "--int8", "--ranges", str(table)]) == 2
    assert "names tensors of an ONNX file" in capsys.readouterr().err
