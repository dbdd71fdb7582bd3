"""mgx-driver explain: each pair that stays is told with its reason, and no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.debug.quantised_pairs import quantised_pairs
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.tools.driver.main import main
from tests.quantization import test_makers as makers


def lines(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[str]:
    assert main(["explain", str(path), *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_reasons_on_a_processor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    net, _ = makers.nncf_convolutions()
    path.write_bytes(net.proto().SerializeToString())
    first, *stay = lines(capsys, path, "--cpu")
    assert first == "2 matmuls in 8 bits, 4 pairs that stay"
    said = "\n".join(stay)
    # activations of a scale by channel, ahead of a depthwise convolution
    assert said.count("read by convolution") == 2
    assert "values of ui8" in said
    assert "weights of i8" in said
    assert said.count("the input's scale is not one number") == 2
    assert said.count("read by add") == 2


def test_all_products_are_in_8_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    net, _ = makers.nncf_attention()
    path.write_bytes(net.proto().SerializeToString())
    assert lines(capsys, path, "--cpu") == ["4 matmuls in 8 bits, 0 pairs that stay"]


def test_a_program_stays_as_it_is_and_targets_differ() -> None:
    net, _ = makers.tflite_activations()
    program = parse_onnx_buffer(net.proto().SerializeToString())
    before = program.text()
    # a processor that looks no bytes up: others have tables in place of mul and sigmoid
    found = quantised_pairs(program, CompileOptions("cpu", "generic"))
    assert program.text() == before
    assert not found.products
    whys = {s.kind: s.why for s in found.stayed}
    assert whys["pooling"] == "mode average gives values between the quantised steps"
    assert whys["return"] == "results are floats"
    assert {s.kind for s in found.stayed} == {"mul", "sigmoid", "pooling", "return"}
    # pairs that follow each other become clips for a GPU
    net, _ = makers.nncf_convolutions()
    program = parse_onnx_buffer(net.proto().SerializeToString())
    on_gpu = quantised_pairs(program, CompileOptions("gpu", "gfx942"))
    assert len(on_gpu.products) == 3
    assert all(s.reader != s.node for s in on_gpu.stayed)


def few_bits(path: Path, block: int) -> None:
    """Write a product by weights of 4 bits."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (64, 128 // block, block // 2), dtype=np.uint8)
    scales = rng.random(64 * (128 // block), np.float32)
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20, "com.microsoft" : 1]> g (float[n,128] x) => '
        "(float[n,64] y) { y = com.microsoft.MatMulNBits "
        f"<K = 128, N = 64, bits = 4, block_size = {block}>(x, codes, scales) }}"
    )
    model.graph.node[0].name = "head"
    for name, array in (("codes", codes), ("scales", scales)):
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("target", [["--cpu"], ["--gpu", "--arch", "gfx942"]])
def test_weights_of_4_bits(
    target: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few_bits(path := tmp_path / "net.onnx", 32)
    assert lines(capsys, path, *target) == [
        "0 matmuls in 8 bits, 0 pairs that stay",
        "1 float matmuls with weights of 4 bits, widened in their kernels",
    ]
