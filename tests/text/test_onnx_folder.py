"""ONNX decoders of one layer, with a cache that stays and one that grows, against numpy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import mgx_mlir
from mgx_mlir.core.errors import FileError, MgxError, UnsupportedModel
from mgx_mlir.text import Engine, Request, Sampling
from mgx_mlir.text.onnx_folder import OnnxFolder, has_decoder
from tests.text.fake import Letters

WORDS, SIZE, HEADS, ROWS = 24, 8, 2, 40
PORTS = (
    "int64[b, t] input_ids, int64[b, total] attention_mask, {more}"
    "float[b, 1, past, 8] past_k, float[b, 1, past, 8] past_v"
)
OUTPUTS = "float[b, t, 24] logits, float[b, 1, {rows}, 8] now_k, float[b, 1, {rows}, 8] now_v"
HEAD = """
    x = Gather(table, input_ids)
    q = MatMul(x, wq)
    k = MatMul(x, wk)
    v = MatMul(x, wv)
"""
# the form of onnxruntime-genai's builder
STAYS = (
    HEAD
    + """
    sums = ReduceSum(attention_mask, axis)
    less = Sub(sums, axis)
    last = Cast <to = 6> (less)
    dims = Shape <start = 1, end = 2> (attention_mask)
    total = Cast <to = 6> (dims)
    y, now_k, now_v = com.microsoft.GroupQueryAttention <num_heads = 2,
        kv_num_heads = 1> (q, k, v, past_k, past_v, last, total)
    logits = MatMul(y, out)
"""
)
# the form of optimum
GROWS = (
    HEAD
    + """
    k4 = Unsqueeze(k, axis)
    v4 = Unsqueeze(v, axis)
    now_k = Concat <axis = 2> (past_k, k4)
    now_v = Concat <axis = 2> (past_v, v4)
    split = Constant <value_ints = [0, 0, 2, 8]> ()
    q4 = Reshape(q, split)
    qt = Transpose <perm = [0, 2, 1, 3]> (q4)
    kt = Transpose <perm = [0, 1, 3, 2]> (now_k)
    products = MatMul(qt, kt)
    scale = Constant <value_float = 0.35355339059327373> ()
    scores = Mul(products, scale)
    dims = Shape(attention_mask)
    count = Gather(dims, axis)
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    end = Squeeze(count)
    places = Range(zero, end, one)
    final = Constant <value_ints = [-1]> ()
    ends = Unsqueeze(position_ids, final)
    causal = LessOrEqual(places, ends)
    right = Unsqueeze(causal, axis)
    none = Constant <value_float = -1e30> ()
    held = Where(right, scores, none)
    p = Softmax <axis = -1> (held)
    y4 = MatMul(p, now_v)
    yt = Transpose <perm = [0, 2, 1, 3]> (y4)
    joined = Constant <value_ints = [0, 0, 16]> ()
    y = Reshape(yt, joined)
    logits = MatMul(y, out)
"""
)


# the parser of texts takes no dots
NAMES = {
    "past_k": "past_key_values.0.key", "past_v": "past_key_values.0.value",
    "now_k": "present.0.key", "now_v": "present.0.value",
}  # fmt: skip


def parsed(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    for node in model.graph.node:
        node.input[:] = [NAMES.get(x, x) for x in node.input]
        node.output[:] = [NAMES.get(x, x) for x in node.output]
    for port in (*model.graph.input, *model.graph.output):
        port.name = NAMES.get(port.name, port.name)
    return model


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    dims = {"table": (WORDS, 12), "wq": (12, 16), "wk": (12, 8), "wv": (12, 8), "out": (16, WORDS)}
    return {k: rng.standard_normal(d).astype(np.float32) for k, d in dims.items()}


def reference(tokens: list[int]) -> np.ndarray:
    """Logits {tokens, words} of the layer."""
    w = weights()
    x = w["table"][tokens].astype(np.float64)
    q, k, v = (x @ w[name] for name in ("wq", "wk", "wv"))
    scores = np.einsum("ihd,jd->hij", q.reshape(-1, HEADS, SIZE), k) / np.sqrt(SIZE)
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("hij,jd->ihd", p / p.sum(-1, keepdims=True), v)
    return y.reshape(len(tokens), -1) @ w["out"]


def write(folder: Path, form: str, *, merged: bool = False, genai: bool = False) -> None:
    more = "int64[b, t] position_ids, " if form is GROWS else ""
    ports = PORTS.format(more=more)
    outputs = OUTPUTS.format(rows="total" if form is GROWS else "past")
    text = f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        decoder ({ports}) => ({outputs}) {{{form}}}"""
    model = parsed(text)
    for name, array in {**weights(), "axis": np.array([1])}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    if merged:
        merge(model)
    name = "decoder_model_merged.onnx" if merged else "model.onnx"
    onnx.save(model, folder / name)
    if genai:
        decoder = {
            "filename": name, "head_size": SIZE, "num_key_value_heads": 1,
            "inputs": {"input_ids": "input_ids"}, "outputs": {"logits": "logits"},
        }  # fmt: skip
        row = {"context_length": ROWS, "vocab_size": WORDS, "eos_token_id": [1], "decoder": decoder}
        (folder / "genai_config.json").write_text(json.dumps({"model": row}))
    else:
        (folder / "config.json").write_text(json.dumps({"max_position_embeddings": ROWS}))


def merge(model: onnx.ModelProto) -> None:
    """Make two graphs of one: without a cache, which starts from none, and with one."""
    graph = model.graph
    first, second = onnx.GraphProto(), onnx.GraphProto()
    empty = onnx.parser.parse_graph("""g (int64[b, t] input_ids) => (float[b, 1, p, 8] start) {
        size = Shape <start = 0, end = 1> (input_ids)
        rest = Constant <value_ints = [1, 0, 8]> ()
        form = Concat <axis = 0> (size, rest)
        start = ConstantOfShape(form)
    }""")
    first.node.extend(empty.node)
    for i, branch in enumerate((first, second)):
        branch.name = f"branch{i}"
        branch.node.extend(graph.node)
        branch.output.extend(graph.output)
        names = {o: f"{o}_{i}" for n in branch.node for o in n.output}
        if branch is first:
            names |= {p.name: "start_0" for p in graph.input if p.name.startswith("past")}
        for node in branch.node:
            node.input[:] = [names.get(x, x) for x in node.input]
            node.output[:] = [names[x] for x in node.output]
        for out in branch.output:
            out.name = names[out.name]
    node = onnx.helper.make_node(
        "If", ["use_cache_branch"], [o.name for o in graph.output],
        then_branch=second, else_branch=first,
    )  # fmt: skip
    del graph.node[:]
    graph.node.append(node)
    flag = onnx.helper.make_tensor_value_info("use_cache_branch", onnx.TensorProto.BOOL, [1])
    graph.input.append(flag)


@pytest.mark.parametrize("form", ["genai", "optimum", "merged"])
def test_a_decoder(tmp_path: Path, form: str) -> None:
    """Chunks of prompts, steps alone and together, and rows that other answers left."""
    stays = form == "genai"
    write(tmp_path, STAYS if stays else GROWS, merged=form == "merged", genai=stays)
    assert has_decoder(tmp_path)
    folder = OnnxFolder(tmp_path)
    program = mgx_mlir.compile(str(folder.file), "cpu")
    decoder = folder.decoder(program, 3, ROWS)
    assert len(program.signature.in_place) == (2 if stays else 0)
    tokens = list(range(3, 14))
    want = reference(tokens)
    decoder.prefill(1, [9] * 20, 0)
    near: Any = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(decoder.scores(1, tokens[:5], 0), want[:5], **near)
    np.testing.assert_allclose(decoder.scores(1, tokens[5:], 5), want[5:], **near)
    rows = [tokens[:5], tokens[:3]]
    for got, row in zip(decoder.prefill_together(1, rows, [0, 0]), rows, strict=True):
        np.testing.assert_allclose(got, reference(row)[-1], **near)
    with Engine(decoder, Letters, chunk=4) as engine:
        made = [Request([i + 2] * (3 * i + 1), 12, Sampling(0.8 * i, seed=i)) for i in range(3)]
        alone = [[p.token for p in engine.submit(r)] for r in made]
        together = [engine.submit(r) for r in made]
        assert [[p.token for p in h] for h in together] == alone
    tokens = [2]
    for _ in range(12):
        tokens.append(int(np.argmax(reference(tokens)[-1])))
    assert alone[0] == tokens[1:]


def halved(model: onnx.ModelProto) -> None:
    """Give caches the type f16."""
    graph = model.graph
    for port in (*graph.input, *graph.output):
        if "key" in port.name or "value" in port.name:
            port.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    for part in ("key", "value"):
        past, now = f"past_key_values.0.{part}", f"present.0.{part}"
        for node in graph.node:
            node.input[:] = [{past: f"wide_{part}", now: f"all_{part}"}.get(x, x)
                             for x in node.input]  # fmt: skip
            node.output[:] = [f"all_{part}" if x == now else x for x in node.output]
        cast = onnx.helper.make_node
        graph.node.insert(0, cast("Cast", [past], [f"wide_{part}"], to=onnx.TensorProto.FLOAT))
        graph.node.append(cast("Cast", [f"all_{part}"], [now], to=onnx.TensorProto.FLOAT16))


def test_caches_of_16_bits_and_weights_beside_the_file(tmp_path: Path) -> None:
    """One file of another name, in the folder `onnx`, given by the folder or by itself."""
    write(tmp_path, GROWS)
    model = onnx.load(tmp_path / "model.onnx")
    (tmp_path / "model.onnx").unlink()
    halved(model)
    (tmp_path / "onnx").mkdir()
    file = tmp_path / "onnx" / "model_fp16.onnx"
    onnx.save(model, file, save_as_external_data=True, location="weights", size_threshold=0)
    for folder in (OnnxFolder(tmp_path), OnnxFolder.of_file(file)):
        assert (folder.file, folder.path) == (file, tmp_path)
        decoder = folder.decoder(mgx_mlir.compile(str(folder.file), "cpu"), 2, ROWS)
        tokens = list(range(3, 14))
        got = [decoder.scores(1, tokens[:5], 0), decoder.scores(1, tokens[5:], 5)]
        # keys and values are rounded to 11 bits
        np.testing.assert_allclose(np.concatenate(got), reference(tokens), atol=0.05)
    (tmp_path / "onnx" / "model_q4.onnx").write_bytes(b"")
    refused(tmp_path, UnsupportedModel, r"several decoders: onnx/model_fp16\.onnx, onnx/model_q4")


def refused(folder: Path, kind: type[MgxError], message: str) -> None:
    def load() -> None:
        made = OnnxFolder(folder)
        made.decoder(mgx_mlir.compile(str(made.file), "ref"), 1, ROWS)

    with pytest.raises(kind, match=message):
        load()


def test_decoders_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "decoder_model.onnx").write_bytes(b"")
    assert has_decoder(tmp_path)
    refused(tmp_path, UnsupportedModel, "in two files, without a cache and with one")
    head, _, tail = PORTS.partition("{more}")
    for ports, message in (
        (head.rstrip(", "), "has no cache"),
        (f"{head}{tail}", r"no output 'present\.0\.key'"),
    ):
        text = f"""<ir_version: 8, opset_import: ["" : 17]>
            d ({ports}) => (float[b, t] logits) {{ logits = Cast <to = 1> (input_ids) }}"""
        onnx.save(parsed(text), tmp_path / "model.onnx")
        refused(tmp_path, UnsupportedModel, message)
    write(tmp_path, STAYS)
    model = onnx.load(tmp_path / "model.onnx")
    model.graph.input.append(onnx.helper.make_tensor_value_info("odd", 1, [1]))
    onnx.save(model, tmp_path / "model.onnx")
    refused(tmp_path, UnsupportedModel, "an input that is not known: 'odd'")


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [({}, FileError, "a 'model' with a 'decoder'"),
     ({"model": {"decoder": {}, "vision": {}}}, UnsupportedModel, "has the parts vision"),
     ({"model": {"decoder": {"inputs": {"past_names": "past_%d"}}}}, UnsupportedModel,
      "keys and values in one cache"),
     ({"model": {"decoder": {"pipeline": []}}}, UnsupportedModel, "a pipeline"),
     ({"model": {"decoder": {"filename": 5}}}, FileError, "expected a filename"),
     ({"model": {"decoder": {"filename": "../no.onnx", "inputs": {}, "outputs": {}}}},
      FileError, "no such file")],
)  # fmt: skip
def test_configs_of_genai_that_do_not_fit(
    tmp_path: Path, row: Any, kind: type[MgxError], message: str
) -> None:
    (tmp_path / "genai_config.json").write_text(json.dumps(row))
    refused(tmp_path, kind, message)
