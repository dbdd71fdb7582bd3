"""Tokenizers and ends of answers that .gguf files state."""

# packages that need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core.errors import FileError
from mgx_mlir.text.gguf_config import Values, config_of
from mgx_mlir.text.gguf_header import read_header
from mgx_mlir.text.gguf_tokens import SPLITS, tokenizer_of
from mgx_mlir.text.tokens import Tokenizer

gguf = pytest.importorskip("gguf")
pytest.importorskip("tokenizers")

NORMAL, UNKNOWN, CONTROL, GIVEN, BYTE = 1, 2, 3, 4, 6
LETTERS = [chr(c) for c in range(33, 127)]


def file(
    path: Path, kind: str, tokens: dict[str, int], architecture: str = "llama", **more: Any
) -> Path:
    """Write a header with a tokenizer; `more` are values of the writer's methods `add_..`."""
    w = gguf.GGUFWriter(path, architecture)
    w.add_tokenizer_model(kind)
    w.add_token_list(list(tokens))
    w.add_token_types(list(tokens.values()))
    for name, value in more.items():
        getattr(w, f"add_{name}")(value)
    for i in range(more.get("block_count", 0)):  # a layer has a tensor
        w.add_tensor(f"blk.{i}.weight", np.zeros(1, np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path


def read(path: Path) -> Tokenizer:
    return tokenizer_of(Values(read_header(path), "llama"))


def parts(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.inner.id_to_token(t) for t in tokenizer.encode(text)]


def byte_level(path: Path, pre: str, merges: list[str], **more: Any) -> Tokenizer:
    made = dict.fromkeys([*LETTERS, "Ġ", "Ċ", "ĉ"], NORMAL)
    made |= dict.fromkeys([m.replace(" ", "") for m in merges], NORMAL)
    made |= more.pop("tokens", {})
    how = {"tokenizer_pre": pre, "token_merges": merges, **more}
    return read(file(path, "gpt2", made, **how))


@pytest.mark.parametrize(
    ("pre", "want"),
    [
        # a space goes with the number behind it, unless digits are split off first
        ("gpt-2", ["x", "Ġ", "Ġ1", "2", "3", "4"]),
        ("smollm", ["x", "ĠĠ", "1", "2", "3", "4"]),
        # no number begins with a space, and the last of several spaces is by itself
        ("llama-bpe", ["x", "Ġ", "Ġ", "1", "2", "3", "4"]),
        ("qwen2", ["x", "Ġ", "Ġ", "1", "2", "3", "4"]),
    ],
)
def test_texts_are_split_as_the_file_names_it(pre: str, want: list[str], tmp_path: Path) -> None:
    made = byte_level(tmp_path / "m.gguf", pre, ["Ġ Ġ", "Ġ 1"])
    assert parts(made, "x  1234") == want
    assert made.decode(made.encode("x  1234")) == "x  1234"


def test_digits_in_threes(tmp_path: Path) -> None:
    merges = ["1 2", "12 3", "123 4", "4 5"]
    for pre, want in (("gpt-2", ["1234", "5"]), ("llama-bpe", ["123", "45"]),
                      ("gpt-4o", ["123", "45"]), ("smollm", list("12345"))):  # fmt: skip
        made = byte_level(tmp_path / f"{pre}.gguf", pre, merges)
        assert parts(made, "12345") == want, pre


def test_each_split_keeps_each_byte(tmp_path: Path) -> None:
    """Pieces of all expressions make the text again."""
    from tokenizers.pre_tokenizers import ByteLevel

    text = "It's 12345,\t\tMÜLLER's naïve café\r\n\n  日本語 ＡＢ١٢ 😀 x=-1;  \n"
    tokens = dict.fromkeys(ByteLevel.alphabet(), NORMAL)
    for pre in SPLITS:
        path = file(tmp_path / "m.gguf", "gpt2", tokens, tokenizer_pre=pre, token_merges=[])
        made = read(path)
        found = made.encode(text)
        assert len(found) == len(text.encode()), pre
        assert made.decode(found) == text, pre


def test_words_that_are_tokens_are_taken_whole(tmp_path: Path) -> None:
    """Llama 3 has words that no merges lead to."""
    more = {"tokens": {"abc": NORMAL}}
    whole = byte_level(tmp_path / "a.gguf", "llama-bpe", ["a b"], **more)
    joined = byte_level(tmp_path / "b.gguf", "gpt-2", ["a b"], **more)
    assert parts(whole, "abc") == ["abc"]
    assert parts(joined, "abc") == ["ab", "c"]


def test_tokens_that_begin_and_end_a_text(tmp_path: Path) -> None:
    ends = {"tokens": {"<b>": CONTROL, "<e>": CONTROL}, "bos_token_id": 97, "eos_token_id": 98}
    plain = byte_level(tmp_path / "a.gguf", "gpt-2", [], **ends)
    assert parts(plain, "a") == ["a"]
    begun = byte_level(tmp_path / "b.gguf", "llama-bpe", [], **ends)
    assert parts(begun, "a") == ["<b>", "a"]
    assert begun.decode(begun.encode("a")) == "a"
    said = byte_level(tmp_path / "c.gguf", "llama-bpe", [], add_bos_token=False,
                      add_eos_token=True, **ends)  # fmt: skip
    assert parts(said, "a") == ["a", "<e>"]
    assert parts(plain, "a<e>b") == ["a", "<e>", "b"]


PIECES = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL, "<|user|>": CONTROL, "<t>": GIVEN,
          **{f"<0x{i:02X}>": BYTE for i in range(256)},
          **dict.fromkeys(["▁", "a", "b", "c", "ab", "bc", "▁a", "▁▁"], NORMAL)}  # fmt: skip


def pieces(path: Path, **more: Any) -> Tokenizer:
    scores = dict.fromkeys(PIECES, 0.0) | {"ab": -3.0, "bc": -2.0, "▁a": -4.0, "▁▁": -5.0}
    how = {"token_scores": list(scores.values()), "bos_token_id": 1, "eos_token_id": 2,
           "unk_token_id": 0, **more}  # fmt: skip
    return read(file(path, "llama", PIECES, **how))


def test_pieces_are_joined_by_scores(tmp_path: Path) -> None:
    made = pieces(tmp_path / "m.gguf")
    assert parts(made, "abc") == ["<s>", "▁a", "bc"]  # bc before ab
    assert parts(made, "a  b<t>c") == ["<s>", "▁a", "▁▁", "b", "<t>", "▁", "c"]
    assert parts(made, "é") == ["<s>", "▁", "<0xC3>", "<0xA9>"]
    for text in ("abc", " a", "é😀", "a  b"):
        tokens = made.encode(text)
        assert made.decode(tokens) == text
        stream = made.stream()
        assert "".join(map(stream.add, tokens)) + stream.rest() == text
    bare = pieces(tmp_path / "n.gguf", add_space_prefix=False, add_bos_token=False)
    assert parts(bare, "abc") == ["a", "bc"]


def test_a_stream_goes_on_behind_half_a_character(tmp_path: Path) -> None:
    made = pieces(tmp_path / "m.gguf")
    kanji, b = made.encode("日本", special=False)[1:], made.encode(" b", special=False)[-1:]
    for tokens, want in (
        ([*kanji[:-1], *b], "日\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"),
        (kanji[:-1], "日\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
        ([*kanji[:-1], *b, *made.encode(" a", special=False), *kanji], None),
    ):
        stream = made.stream()
        text = "".join(map(stream.add, tokens)) + stream.rest()
        assert text == (want or "日\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b  a日本")


def test_control_tokens_of_phi_3_take_spaces(tmp_path: Path) -> None:
    plain = pieces(tmp_path / "m.gguf")
    assert parts(plain, "<|user|>\n a") == ["<s>", "<|user|>", "▁", "<0x0A>", "▁a"]
    made = pieces(tmp_path / "n.gguf", name="Phi-3 mini")
    assert parts(made, "<|user|>\n a") == ["<s>", "<|user|>", "▁a"]


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"pre' expected one of default, .*, got 'none'"):
        byte_level(tmp_path / "a.gguf", "none", [])
    with pytest.raises(FileError, match="expected two tokens, got"):
        read(file(tmp_path / "b.gguf", "gpt2", {"a": 1}, token_merges=["a b"]))
    with pytest.raises(FileError, match="expected gpt2 or llama, got 'bert'"):
        read(file(tmp_path / "c.gguf", "bert", {"a": 1}))
    with pytest.raises(FileError, match="eos_token_id' expected a token below 1, got 7"):
        read(file(tmp_path / "d.gguf", "llama", {"a": 1}, eos_token_id=7))
    with pytest.raises(FileError, match="1 tokens and 2 scores"):
        read(file(tmp_path / "e.gguf", "llama", {"a": 1}, token_scores=[0.0, 1.0]))


SHAPE = {"embedding_length": 8, "head_count": 2, "feed_forward_length": 8, "context_length": 64,
         "block_count": 2, "layer_norm_rms_eps": 1e-5}  # fmt: skip


def test_tokens_that_end_an_answer(tmp_path: Path) -> None:
    """Stated ones, and control tokens that end a message by their text."""
    tokens = {"a": NORMAL, "<|im_end|>": CONTROL, "<|end|>": NORMAL, "<e>": CONTROL, "<m>": CONTROL}
    path = file(tmp_path / "m.gguf", "gpt2", tokens, eos_token_id=3, eot_token_id=4, **SHAPE)
    assert config_of(read_header(path), lambda _: None)["eos_token_id"] == [1, 3, 4]


def test_wrong_values_of_a_config(tmp_path: Path) -> None:
    def config(architecture: str = "llama", **more: Any) -> dict[str, Any]:
        path = file(tmp_path / "m.gguf", "gpt2", {"a": 1}, architecture, **{**SHAPE, **more})
        return config_of(read_header(path), lambda _: None)

    assert config(head_count_kv=[1, 1])["num_key_value_heads"] == 1
    wrong: list[tuple[dict[str, Any], str]] = [
        (
            {"head_count_kv": [1, 2]},
            r"head_count_kv' expected one number for all layers, got \[1, 2\]",
        ),
        ({"head_count_kv": 3}, "expected a divisor of 2, got 3"),
        ({"head_count": 0}, "at least one element a head, got 0"),
        ({"value_length": 3}, "value_length' expected 4, the length of keys, got 3"),
        ({"rope_freq_base": float("nan")}, "freq_base' expected a number above 0, got nan"),
        (
            {"rope_scaling_type": gguf.RopeScalingType.LONGROPE},
            "none, linear or yarn, got 'longrope'",
        ),
        (
            {"rope_scaling_type": gguf.RopeScalingType.YARN},
            r"states no 'llama\.rope\.scaling\.factor'",
        ),
    ]
    for more, why in wrong:
        with pytest.raises(FileError, match=why):
            config(**more)
    with pytest.raises(FileError, match="layer_norm_rms_epsilon"):
        config(layer_norm_rms_eps=-1.0)
    with pytest.raises(FileError, match="sliding_window_pattern' expected 2 layers, got 3"):
        config("gemma3", sliding_window=4, sliding_window_pattern=[True, True, False])
    made = config("gemma3", sliding_window=4, sliding_window_pattern=[False, True])
    assert made["layer_types"] == ["full_attention", "sliding_attention"]
    large = config("gemma2", block_count=46, key_length=8)
    assert large["query_pre_attn_scalar"] == 4  # not the head's size
