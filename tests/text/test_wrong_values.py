"""Values that no answer can be made of: one line, and an error of ours."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir import text
from mgx_mlir.core.errors import FileError, MgxError, UnsupportedModel, UsageError
from mgx_mlir.text.messages import plain
from mgx_mlir.text.sampling import Sampling, choose
from tests.text.fake import WORDS, Fake, Tokenizer

NAN = math.nan
WRONG = {
    "max_new_tokens": (0, -1, 1.5, "5", None, True, NAN),
    "min_new_tokens": (-1, 1.5, "5", None, True, NAN),
    "temperature": (-1, NAN, math.inf, "1", None, True),
    "top_k": (-1, 1.5, "3", None, NAN),
    "top_p": (0, 1.1, NAN, "x", None),
    "min_p": (-1, 2, NAN, "x"),
    "repetition_penalty": (0, -1, NAN, 1e300, 1e-300, "x"),
    "frequency_penalty": (-2.1, 3, NAN, "1", None, True),
    "presence_penalty": (-2.1, 3, NAN, "1", None, True),
    "logit_bias": ({-1: 1}, {0: 101}, {0: NAN}, {"0": 1}, {0: "x"}, [(0, 1)], 5, {True: 1}),
    "seed": (-1, 2**64, 1.5, "x", None, True),
    "stop": (5, [5], b"x", [None]),
    "logprobs": (-1, 1.5, "x"),
}


@pytest.fixture
def model() -> text.TextModel:
    return text.TextModel(Tokenizer(), Fake())  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, vs in WRONG.items() for v in vs])
def test_options(model: text.TextModel, name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^{name} expected [^\n]*, got [^\n]*$"):
        model.generate("A", **{name: value})


def test_a_bias_of_a_token_that_the_model_does_not_have(model: text.TextModel) -> None:
    with pytest.raises(UsageError, match=f"^logit_bias has the token {WORDS}, the model has"):
        model.generate("A", logit_bias={WORDS: 1})


def test_options_that_are_not_there(model: text.TextModel) -> None:
    with pytest.raises(UsageError, match=r"^unknown option 'do_sample'") as found:
        model.generate("A", do_sample=4)
    assert any("temperature, top_k" in note for note in found.value.notes)


@pytest.mark.parametrize(
    "prompt",
    [None, 5, b"abc", {"role": "user"}, ["a"], [True], [-1], [WORDS], [1, 2.5], "", [],
     [{"role": "user"}], [{"content": "x"}], [{"role": "user", "content": 5}],
     [{"role": "user", "content": [{"type": "image_url"}]}], [{"role": "user", "content": "A"}, 5],
     [{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f",
       "arguments": "{"}}]}]],
)  # fmt: skip
def test_prompts(model: text.TextModel, prompt: Any) -> None:
    with pytest.raises(UsageError) as found:
        model.generate(prompt, max_new_tokens=2)
    assert "\n" not in str(found.value)


def test_prompts_of_other_types(model: text.TextModel) -> None:
    want = model.generate([1, 2], max_new_tokens=3)
    for prompt in ((1, 2), np.array([1, 2]), [np.int64(1), np.int32(2)]):
        assert model.generate(prompt, max_new_tokens=3) == want  # type: ignore[call-overload]
    parts = [{"role": "user", "content": [{"type": "text", "text": "B"}] * 2}]
    assert model.generate(parts, max_new_tokens=3, stop=None) == model.generate(
        "BB", max_new_tokens=3
    )


def test_arguments_of_calls_are_objects() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    [found] = plain([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert found["content"] == ""
    assert found["tool_calls"][0]["function"] == {"name": "f", "arguments": {"x": 1}}


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-9])
def test_the_least_temperatures_take_the_likeliest(temperature: float) -> None:
    logits = np.array([1, 30, 29.999], np.float32)
    assert choose(logits, Sampling(temperature, seed=3), 0) == 1


def test_the_largest_temperatures_draw_evenly() -> None:
    logits = np.array([-1000, 30, 1000], np.float32)
    drawn = [choose(logits, Sampling(1e300, seed=3), i) for i in range(600)]
    assert min(np.bincount(drawn)) > 150


class Files:
    """A checkpoint without weights: what is wrong is said before they are read."""

    def __init__(self, config: dict[str, Any], generation: dict[str, Any] | None = None) -> None:
        self.config, self.generation = config, generation or {}

    def tokenizer(self) -> Any:
        return Tokenizer()


@pytest.mark.parametrize(
    ("how", "message"),
    [({"slots": 0}, "slots .*got 0"), ({"slots": "x"}, "slots .*'x'"), ({"slots": 1.5}, "slots"),
     ({"max_length": "5"}, "max_length .*'5'"), ({"max_length": NAN}, "max_length .*nan"),
     ({"max_length": 97}, "at most 96"), ({"weights": "int3"}, "unknown weights 'int3'"),
     ({"dtype": "f64"}, "unknown dtype 'f64'"),
     ({"dtype": "f16", "weights": "bf16"}, "one type, got weights 'bf16' and dtype 'f16'"),
     ({"target": "xpu"}, "unknown target 'xpu'"), ({"thread": 1}, "unknown option 'thread'"),
     ({"background": True}, "unknown option 'background'")],
)  # fmt: skip
def test_options_of_load(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        text.load(Files({"max_position_embeddings": 96}), **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [None, 5, b"x"])
def test_paths(path: Any) -> None:
    with pytest.raises(UsageError, match="expected the path of a model"):
        text.load(path)


@pytest.mark.parametrize("value", [-1, "x", 1, 2.5])
def test_a_config_with_a_wrong_length(value: Any) -> None:
    with pytest.raises(FileError, match="max_position_embeddings of the config expected"):
        text.load(Files({"max_position_embeddings": value}))  # type: ignore[arg-type]


FILES = {
    "config.json": json.dumps({"model_type": "llama"}),
    "model.safetensors": "\x02" + "\0" * 7 + "{}",
    "tokenizer.json": "{}",
}
DAMAGED: list[tuple[str, bytes | None]] = [
    *((name, b) for name in ("config.json", "tokenizer.json")
      for b in (b"", b"[]", b"{", b"\xff", b"[" * 50000)),
    ("generation_config.json", b'{"a":' * 50000),
    ("config.json", None), ("tokenizer.json", None), ("model.safetensors", None),
    ("generation_config.json", b"["), ("tokenizer_config.json", b"5"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content"), DAMAGED)
def test_damaged_files(tmp_path: Path, name: str, content: bytes | None) -> None:
    pytest.importorskip("tokenizers")
    for file, written in FILES.items():
        (tmp_path / file).write_text(written)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(MgxError) as found:
        text.load(tmp_path)
    assert str(tmp_path) in str(found.value)


def test_an_adapter_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    for name, written in FILES.items():
        with pytest.raises(UnsupportedModel, match="has an adapter") as found:
            text.load(tmp_path)
        assert any("merge_and_unload" in note for note in found.value.notes)
        (tmp_path / name).write_text(written)  # beside a whole model, too


def test_a_config_of_more_layers_than_there_are_tensors(tmp_path: Path) -> None:
    """Before transformers makes each of them."""
    for name, written in FILES.items():
        (tmp_path / name).write_text(written)
    for row in ({"num_hidden_layers": 10**9}, {"text_config": {"n_layer": 10**9}}):
        (tmp_path / "config.json").write_text(json.dumps(row))
        with pytest.raises(FileError, match=r"is 1000000000, and the files have 0 tensors"):
            text.load(tmp_path)


HEADER = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
WHOLE = len(HEADER).to_bytes(8, "little") + HEADER + bytes(8)
PARTS = {"weight_map": {"w": "a.safetensors", "v": "b.safetensors"}}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.safetensors", WHOLE[:-1], "has 69 bytes, and its header states 70"),
        ("a.safetensors", WHOLE[:40], "the file of 40 bytes is cut"),
        ("a.safetensors", b"", "the file of 0 bytes is cut"),
        ("a.safetensors", (300001).to_bytes(8, "little") + b'{"a":' * 60020, "the file of .* cut"),
        ("a.safetensors", b"version https://git-lfs.github.com/spec/v1", "a pointer of Git LFS"),
        ("a.safetensors.index.json", json.dumps(PARTS).encode(), "1 of 2 files .* 'b.safetensors'"),
    ],
)
def test_half_a_download(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """The error names the file, before packages of models are imported."""
    for file, written in FILES.items():
        (tmp_path / file).write_text(written)
    (tmp_path / "a.safetensors").write_bytes(WHOLE)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=message) as found:
        text.load(tmp_path)
    assert str(tmp_path / name) in str(found.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("chat_template.jinja", b"\xff", "cannot be read"),
     ("tokenizer_config.json", b'{"chat_template": 5}', "expected a text as chat_template")],
)  # fmt: skip
def test_damaged_templates(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    pytest.importorskip("tokenizers")
    from mgx_mlir.text.tokens import Tokenizer as Own
    from tests.text import tiny

    tiny.tokenizer().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=message):
        Own.of_folder(tmp_path)
    (tmp_path / name).write_text('{"chat_template": [{"x": 1}, 5]}')
    if name == "tokenizer_config.json":
        assert Own.of_folder(tmp_path).template is None


def test_text_that_is_no_utf8() -> None:
    from mgx_mlir.text.tokens import Tokenizer as Own

    pytest.importorskip("tokenizers")
    from tests.text import tiny

    with pytest.raises(UsageError, match="no UTF-8 at character 2"):
        Own(tiny.tokenizer()).encode(b"ab\xff".decode("utf-8", "surrogateescape"))


LOOP = "{% for i in range(99999) %}"
ENDLESS = {
    "loops": (LOOP * 3 + "{% endfor %}" * 3, "ran for more than 0.5 s"),
    "product": ("{{ 'x' * 10**10 }}", "more than 16777216 elements"),
    "power": ("{{ 10 ** (10 ** 9) }}", "more than 16777216 elements"),
    "range": ("{% for i in range(10 ** 9) %}{% endfor %}", "Range too big"),
    "doubling": ("{% set n = namespace(x='xxxxxxxx') %}" + LOOP + "{% set n.x = n.x ~ n.x %}"
                 "{% endfor %}", "took more than 64 MiB"),
    "recursion": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
    "escape": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
}  # fmt: skip


@pytest.mark.parametrize(("template", "message"), ENDLESS.values(), ids=ENDLESS)
def test_templates_without_end(
    template: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time and memory are bounded, and the error is one line."""
    from mgx_mlir.text import templates
    from mgx_mlir.text.tokens import Tokenizer as Own

    pytest.importorskip("jinja2")
    monkeypatch.setattr(templates, "_SECONDS", 0.5)
    monkeypatch.setattr(templates, "_BYTES", 64 << 20)
    with pytest.raises(UsageError, match=f"the template refuses the messages: .*{message}") as e:
        Own(None, template).chat_text([{"role": "user", "content": "a"}])
    assert "\n" not in str(e.value)


def test_templates_that_are_no_jinja() -> None:
    pytest.importorskip("jinja2")
    from mgx_mlir.text.tokens import Tokenizer as Own

    with pytest.raises(UsageError, match="the template refuses"):
        Own(None, "{% if %}").chat_text([{"role": "user", "content": "A"}])
