"""Layers of GPTQ, AWQ and compressed-tensors, against (code - zero) * scale element by element."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir import text
from mgx_mlir.core.errors import FileError, UnsupportedModel
from mgx_mlir.text.packed_weights import Packing, block_weights, packing_of

ROWS, COLUMNS = 16, 64
AWQ = [0, 2, 4, 6, 1, 3, 5, 7]  # column of each code of a word
Layer = dict[str, np.ndarray]


def put(words: np.ndarray, at: tuple[int, int], place: int, bits: int, code: int) -> None:
    words[at] |= np.uint32(int(code) << (bits * place))


def drawn(
    method: str, bits: int, group: int, rows: int = ROWS, columns: int = COLUMNS, *,
    sorted_columns: bool = True, seed: int = 0, plus_one: bool = True, middle: bool = False,
) -> tuple[Layer, np.ndarray]:  # fmt: skip
    """Tensors of a layer, and its weights {outputs, inputs} in f64."""
    rng, per = np.random.default_rng([seed, rows, columns]), 32 // bits
    top, groups = 1 << bits, columns // group
    codes = rng.integers(0, top, (rows, columns))
    zeros = rng.integers(1, top, (rows, groups))
    if middle:
        zeros[:] = top // 2
    scales = (rng.uniform(0.5, 1.5, (rows, groups)) / top / 3).astype(np.float16)
    of = np.arange(columns) // group if sorted_columns else rng.permutation(columns) // group
    wanted = (codes - zeros[:, of]) * scales.astype(np.float64)[:, of]

    def words(a: int, b: int) -> np.ndarray:
        return np.zeros((a, b), np.uint32)

    if method == "compressed-tensors":
        layer = {"weight_packed": words(rows, columns // per), "weight_scale": scales,
                 "weight_shape": np.array([rows, columns])}  # fmt: skip
        for o, i in np.ndindex(rows, columns):
            put(layer["weight_packed"], (o, i // per), i % per, bits, codes[o, i])
        if not middle:
            layer["weight_zero_point"] = words(-(-rows // per), groups)
            for o, g in np.ndindex(rows, groups):
                put(layer["weight_zero_point"], (o // per, g), o % per, bits, zeros[o, g])
        return signed(layer), wanted
    layer = {"qzeros": words(groups, rows // per), "scales": scales.T}
    if method == "gptq":
        layer |= {"qweight": words(columns // per, rows), "g_idx": of.astype(np.int32)}
        for o, i in np.ndindex(rows, columns):
            put(layer["qweight"], (i // per, o), i % per, bits, codes[o, i])
        for o, g in np.ndindex(rows, groups):
            put(layer["qzeros"], (g, o // per), o % per, bits, zeros[o, g] - plus_one)
        return signed(layer), wanted
    layer["qweight"] = words(columns, rows // 8)
    for o, i in np.ndindex(rows, columns):
        put(layer["qweight"], (i, o // 8), AWQ.index(o % 8), 4, codes[o, i])
    for o, g in np.ndindex(rows, groups):
        put(layer["qzeros"], (g, o // 8), AWQ.index(o % 8), 4, zeros[o, g])
    return signed(layer), wanted


def signed(layer: Layer) -> Layer:
    return {k: v.view(np.int32) if v.dtype == np.uint32 else v for k, v in layer.items()}


@pytest.mark.parametrize("group", [16, 32, 64])
@pytest.mark.parametrize(
    ("method", "bits", "how"),
    [("gptq", 4, {}), ("gptq", 8, {}), ("gptq", 4, {"sorted_columns": False}),
     ("gptq", 4, {"plus_one": False}), ("gptq", 4, {"middle": True}), ("awq", 4, {}),
     ("compressed-tensors", 4, {}), ("compressed-tensors", 8, {"middle": True})],
)  # fmt: skip
def test_a_layer(method: str, bits: Any, how: dict[str, Any], group: int) -> None:
    layer, wanted = drawn(method, bits, group, **how)
    first = method == "gptq" and how.get("plus_one", True)
    form = Packing(method, bits, None if group == COLUMNS else group, first)
    found = block_weights(layer, form, (ROWS, COLUMNS))
    assert np.array_equal(found.floats(), wanted.astype(np.float32))
    assert (found.bits, found.block) == (bits, group)
    assert (found.zeros is None) is how.get("middle", False)
    assert (found.order is None) is (how.get("sorted_columns", True) or group == COLUMNS)


def test_large_groups_are_several_blocks() -> None:
    layer, wanted = drawn("awq", 4, 384, columns=768)
    found = block_weights(layer, Packing("awq", 4, 384), (ROWS, 768))
    assert found.block == 128
    assert np.array_equal(found.floats(), wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"qweight": None}, "'qweight' is missing"), ({"scales": None}, "'scales' is missing"),
     ({"qweight": np.zeros((7, 16), np.int32)}, "'qweight' is 7 x 16, expected 8 x 16"),
     ({"qweight": np.zeros((8, 16), np.int64)}, "words of 32 bits, got int64"),
     ({"scales": np.full((2, 16), np.nan, np.float16)}, "not finite"),
     ({"g_idx": np.full(64, 9, np.int32)}, "32 columns for each group"),
     ({"g_idx": np.full(64, -1, np.int32)}, "32 columns for each group")],
)  # fmt: skip
def test_tensors_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    layer, _ = drawn("gptq", 4, 32)
    own = {k: v for k, v in {**layer, **change}.items() if v is not None}
    with pytest.raises(FileError, match=message):
        block_weights(own, Packing("gptq", 4, 32, True), (ROWS, COLUMNS))
    with pytest.raises(FileError, match="64 columns are no multiple of the group of 48"):
        block_weights(layer, Packing("gptq", 4, 48, True), (ROWS, COLUMNS))
    with pytest.raises(UnsupportedModel, match="groups of 8 columns"):
        block_weights(drawn("gptq", 4, 8)[0], Packing("gptq", 4, 8, True), (ROWS, COLUMNS))


INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64}
PACKED = {"quant_method": "compressed-tensors", "format": "pack-quantized",
          "config_groups": {"group_0": {"weights": INT4}}}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "want"),
    [({"quant_method": "gptq", "bits": 4, "group_size": 32}, Packing("gptq", 4, 32, True)),
     ({"quant_method": "gptq", "bits": 8, "group_size": -1, "checkpoint_format": "gptq_v2"},
      Packing("gptq", 8, None)),
     ({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"},
      Packing("awq", 4, 64)),
     ({"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "version": "GEMM"},
      Packing("awq", 4, 128)),
     (PACKED, Packing("compressed-tensors", 4, 64))],
)  # fmt: skip
def test_forms(config: Any, want: Packing) -> None:
    assert packing_of(config, "config.json") == want


@pytest.mark.parametrize(
    ("config", "message"),
    [({"quant_method": "fp8"}, "quantised by 'fp8', read are gptq, awq, compressed-tensors"),
     ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "by 'bitsandbytes'"),
     ({"quant_method": "quark"}, "by 'quark'"), ({"bits": 4}, "by None"),
     ({"quant_method": "gptq", "bits": 3}, "gptq to 3 bits"),
     ({"quant_method": "awq", "bits": 8}, "awq to 8 bits"),
     ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "in the form 'gemv'"),
     ({**PACKED, "format": "float-quantized"}, "in the form 'float-quantized'"),
     ({**PACKED, "config_groups": {"g": {"weights": {**INT4, "type": "float"}}}}, "'float' by"),
     ({**PACKED, "config_groups": {"g": {"weights": INT4, "input_activations": {}, }}}, None),
     ({**PACKED, "config_groups": {"g": {"weights": INT4, "input_activations": {"a": 1}}}},
      "with activations"),
     (5, "expected an object, got 5"), ({"quant_method": "gptq", "group_size": 0}, "group_size"),
     ({"quant_method": "gptq", "group_size": "x"}, "group_size")],
)  # fmt: skip
def test_forms_that_are_not_read(config: Any, message: str | None) -> None:
    if message is None:
        assert packing_of(config, "config.json").bits == 4
        return
    with pytest.raises((FileError, UnsupportedModel), match=message) as found:
        packing_of(config, "config.json")
    assert "\n" not in found.value.message


def quantise(folder: Path, method: str, config: dict[str, Any], **how: Any) -> Any:
    """Replace the linear layers of a tiny model by drawn codes; return it with their weights."""
    import torch
    from safetensors.numpy import save_file
    from torch import nn

    from tests.text import tiny

    model = tiny.save(folder, tie_word_embeddings=False)
    kept = {n: p.detach().numpy() for n, p in model.state_dict().items()}
    for i, (name, layer) in enumerate(model.named_modules()):
        if not isinstance(layer, nn.Linear) or name == "lm_head":
            continue
        own, wanted = drawn(method, config.get("bits", 4), 32, *layer.weight.shape, seed=i, **how)
        del kept[f"{name}.weight"]
        kept |= {f"{name}.{k}": np.ascontiguousarray(v) for k, v in own.items()}
        layer.weight.data = torch.from_numpy(wanted.astype(np.float32))
    save_file(kept, str(folder / "model.safetensors"), {"format": "pt"})
    row = json.loads((folder / "config.json").read_text())
    row["quantization_config"] = {"quant_method": method, "group_size": 32, **config}
    (folder / "config.json").write_text(json.dumps(row))
    return model


SMALL = {"format": "pack-quantized",
         "config_groups": {"group_0": {"weights": {**INT4, "group_size": 32}}}}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "config", "how"),
    [("gptq", {"bits": 4, "sym": True}, {"middle": True}),
     ("gptq", {"bits": 4, "desc_act": True}, {"sorted_columns": False}),
     ("gptq", {"bits": 8}, {}), ("awq", {"bits": 4, "version": "gemm"}, {}),
     ("compressed-tensors", SMALL, {})],
)  # fmt: skip
def test_a_model(tmp_path: Path, method: str, config: Any, how: Any) -> None:
    """Tokens are those of transformers with the weights of the codes, which stay codes."""
    pytest.importorskip("transformers")
    from tests.text.test_models import greedy, request

    model = quantise(tmp_path, method, config, **how)
    loaded = text.load(tmp_path, slots=1)
    prompt = loaded.tokens("the quick brown fox")
    handle = loaded.engine().submit(request(prompt, 30))
    assert [p.token for p in handle] == greedy(model, prompt, 30)
    floats = sum(a.nbytes for a in loaded.decoder.program.params.values() if a.dtype.kind == "f")  # type: ignore[attr-defined]
    assert floats < sum(p.numel() for p in model.parameters()) * 4


@pytest.mark.slow
def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from safetensors.numpy import load_file, save_file

    quantise(tmp_path, "awq", {"bits": 4})
    path = tmp_path / "model.safetensors"
    tensors = load_file(str(path))
    name = "model.layers.1.mlp.up_proj"
    for change, message in (
        ({f"{name}.qzeros": None}, f"'{name}': 'qzeros' is missing"),
        ({"model.layers.9.odd.qweight": np.zeros((2, 2), np.int32)},
         r"'model\.layers\.9\.odd': the config's model has no such linear layer"),
        ({k: None for k in tensors if ".layers.1." in k and "self_attn" in k},
         "4 tensors of the config's model are not in the files"),
        ({k: None for k in tensors if k.endswith("qweight")}, "no layer has codes of awq"),
    ):  # fmt: skip
        own = {k: v for k, v in {**tensors, **change}.items() if v is not None}
        save_file(own, str(path), {"format": "pt"})
        with pytest.raises(FileError, match=message):
            text.load(tmp_path)
