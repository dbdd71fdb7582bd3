"""Files of a tokenizer beside tokenizer.json, read as transformers reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.text.tokens import Tokenizer

pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")
from tests.text import tiny

SAID = "the quick brown fox jumps over the lazy dog, twice. " * 9
CHAT = [{"role": "user", "content": "hey"}, {"role": "assistant", "content": "yo"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
BY_NAME = [
    {"name": "default", "template": "D"},
    {"name": "tool_use", "template": "T{{ tools|length }}"},
]


def read(folder: Path, files: dict[str, Any], inner: Any = None) -> Tokenizer:
    (inner or tiny.tokenizer()).save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        said = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(said)
    return Tokenizer.of_folder(folder)


def test_a_prompt_is_neither_cut_nor_filled_up(tmp_path: Path) -> None:
    """A tokenizer.json may keep the length of its training."""
    inner = tiny.tokenizer()
    want = inner.encode(SAID).ids
    inner.enable_truncation(16)
    assert read(tmp_path, {}, inner).encode(SAID) == want
    inner = tiny.tokenizer()
    inner.enable_padding(length=1000, pad_id=1, pad_token="</s>")
    found = read(tmp_path, {}, inner)
    assert found.encode(SAID) == want
    row = json.loads(found.inner.to_str())
    assert row["truncation"] is row["padding"] is None


def test_marks_of_answers_in_a_template(tmp_path: Path) -> None:
    """Templates of trainers mark them, such as SmolLM 3's; names set inside stay there."""
    template = (
        "{% set a = 1 %}{% for m in messages %}{% if m.role == 'assistant' %}"
        "{%- generation -%}{% set a = 2 %}<{{ m.content }}{{ a }}>{%- endgeneration -%}"
        "{% else %}{{ m.content }}{% endif %}{% endfor %}{{ a }}"
    )
    found = read(tmp_path, {"chat_template.jinja": template})
    assert found.chat_text(CHAT) == "hey<yo2>1"
    assert found.template_values() == {"messages"}
    with pytest.raises(UsageError, match="the template refuses"):
        read(tmp_path, {"chat_template.jinja": "{% generation %}a"}).chat_text(CHAT)


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config.json": {"chat_template": BY_NAME}},
        {"chat_template.jinja": "D",
         "additional_chat_templates/tool_use.jinja": "T{{ tools|length }}"},
    ],
)  # fmt: skip
def test_a_template_of_its_own_for_tools(files: dict[str, Any], tmp_path: Path) -> None:
    found = read(tmp_path, files)
    assert found.chat_text(CHAT) == found.chat_text(CHAT, tools=[]) == "D"
    assert found.chat_text(CHAT, tools=[TOOL]) == "T1"
    assert found.template_values() == {"tools"}
    assert found.template_of(tools=True) == "T{{ tools|length }}"


def test_special_texts_in_a_file_of_their_own(tmp_path: Path) -> None:
    """Older folders have special_tokens_map.json; tokenizer_config.json comes first."""
    config = {"bos_token": "<s>", "extra_special_tokens": {"image_token": "<i>"}}
    older = {"bos_token": {"content": "<b>"}, "eos_token": "</b>"}
    files = {"special_tokens_map.json": older, "tokenizer_config.json": config}
    found = read(tmp_path, files)
    assert found.special == {"bos_token": "<s>", "eos_token": "</b>", "image_token": "<i>"}


def test_added_tokens_that_tokenizer_json_lacks(tmp_path: Path) -> None:
    row = {"content": "fox", "special": True, "lstrip": True}
    size = tiny.tokenizer().get_vocab_size()
    rows = {str(size + 1): row, "0": {"content": "<s>"}, str(size): {"content": "dog"}}
    found = read(tmp_path, {"tokenizer_config.json": {"added_tokens_decoder": rows}})
    assert found.token("dog") == size
    tokens = found.encode("a fox, a dog")
    assert tokens[-1] == size
    assert size + 1 in tokens
    assert found.decode(tokens) == "a, a dog"  # special, and the space ahead of it
    with pytest.raises(FileError, match=f"'cat' expected the token {size + 5}, and is {size}"):
        read(tmp_path, {"tokenizer_config.json": {}, "added_tokens.json": {"cat": size + 5}})


@pytest.mark.parametrize("kind", ["added_tokens_decoder", "extra_special_tokens"])
@pytest.mark.parametrize("value", [5, ["a"], {"x": 5}, {"1": {"content": 5}}, {"-1": None}])
def test_entries_of_other_forms_are_refused_or_left_out(
    kind: str, value: Any, tmp_path: Path
) -> None:
    try:
        found = read(tmp_path, {"tokenizer_config.json": {kind: value}})
    except FileError as e:
        assert kind in str(e)  # noqa: PT017  (one of the two)
    else:
        assert found.encode(SAID) == tiny.tokenizer().encode(SAID).ids
