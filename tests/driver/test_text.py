"""generate and chat over a decoder without a model."""

from __future__ import annotations

import io
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir.text import TextModel
from mgx_mlir.tools.driver import main as driver_main
from mgx_mlir.tools.driver.commands import chat, generate
from tests.text.fake import PRINTED, Fake, Tokenizer


class Interrupting(Fake):
    """A decoder in whose steps of these numbers a user presses Ctrl-C."""

    def __init__(self, *at: int) -> None:
        super().__init__(1, 64)
        self.at, self.steps = at, 0

    def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> np.ndarray:
        self.steps += 1
        time.sleep(0.02)  # pieces are shown meanwhile
        if self.steps in self.at:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return super().decode(tokens, starts)


def run(
    monkeypatch: pytest.MonkeyPatch, decoder: Fake, stdin: str, *argv: str
) -> tuple[int, TextModel]:
    model = TextModel(Tokenizer(), decoder, {}, frozenset())  # type: ignore[arg-type]
    for command in (chat, generate):
        monkeypatch.setattr(command, "loaded", lambda *_: model)
    monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    return driver_main.main([*argv, "MODEL"]), model


def expected(prompt: str, count: int) -> str:
    model = TextModel(Tokenizer(), Fake(1), {}, frozenset())  # type: ignore[arg-type]
    return str(model.generate(prompt, max_new_tokens=count))


def test_generate(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for stdin, prompt in (("", "AAA"), ("AAA", "-")):
        status, _ = run(monkeypatch, Fake(1), stdin, "generate", "-p", prompt,
                        "--max-new-tokens", "9")  # fmt: skip
        out, err = capsys.readouterr()
        assert (status, out) == (0, expected("AAA", 9) + "\n")
        assert "[3 tokens of prompt, 9 of answer" in err
        assert "tokens/s, first after 0." in err


def test_generate_follows_beams(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Slots are loaded for them."""
    asked: list[Any] = []

    def loaded(*args: Any) -> TextModel:
        asked.append(args[2])
        return TextModel(Tokenizer(), Fake(args[2]), {}, frozenset())  # type: ignore[arg-type]

    monkeypatch.setattr(generate, "loaded", loaded)
    for words, count in ((("--num-beams", "3"), 3), ((), 1)):
        argv = ["generate", "-p", "AAA", "--max-new-tokens", "9", *words, "MODEL"]
        assert driver_main.main(argv) == 0
        model = TextModel(Tokenizer(), Fake(count), {}, frozenset())  # type: ignore[arg-type]
        want = str(model.generate("AAA", max_new_tokens=9, num_beams=count))
        assert capsys.readouterr().out == want + "\n"
    assert asked == [3, 1]
    assert driver_main.main(["generate", "-p", "A", "--num-beams", "2", "--stop", "x", "M"]) == 2
    assert "beams take no stop strings" in capsys.readouterr().err


def test_generate_takes_options_of_the_api(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    how = {"temperature": 0.9, "top_k": 5, "top_p": 0.9, "min_p": 0.01, "seed": 3,
           "repetition_penalty": 1.2, "max_new_tokens": 9}  # fmt: skip
    words = [w for k, v in how.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    run(monkeypatch, Fake(1), "", "generate", "-p", "AAA", *words)
    model = TextModel(Tokenizer(), Fake(1), {}, frozenset())  # type: ignore[arg-type]
    text = str(model.generate("AAA", **how))
    assert capsys.readouterr().out == text + "\n"
    stop = text[3:5]
    run(monkeypatch, Fake(1), "", "generate", "-p", "AAA", *words, "--stop", stop, "??", "--cpu")
    assert capsys.readouterr().out == text[: text.index(stop)] + "\n"


def test_generate_in_a_form(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    pytest.importorskip("llguidance")
    letters = Tokenizer(PRINTED)

    def loaded(*_: Any) -> TextModel:
        return TextModel(letters, Fake(1, 99, letters.size), {}, frozenset([96]))  # type: ignore[arg-type]

    monkeypatch.setattr(generate, "loaded", loaded)
    (tmp_path / "g.gbnf").write_text('root ::= "x" | "y"')
    (tmp_path / "s.json").write_text('{"enum": [1, 2]}')
    for words, right in (
        (("--regex", "[ab]c"), ("ac", "bc")), (("--grammar", str(tmp_path / "g.gbnf")), "xy"),
        (("--json-schema", str(tmp_path / "s.json")), "12"),
    ):  # fmt: skip
        assert driver_main.main(["generate", "-p", "A", *words, "MODEL"]) == 0
        assert capsys.readouterr().out.strip() in right
    for words, message in (
        (("--regex", "("), "unclosed"), (("--grammar", "x.txt"), ".gbnf or .lark"),
        (("--json-schema", str(tmp_path / "none")), "cannot be read"),
        (("--regex", "a", "--json-schema", "-"), "--json-schema"),
    ):  # fmt: skip
        assert driver_main.main(["generate", "-p", "A", *words, "MODEL"]) == 2
        assert message in capsys.readouterr().err


def test_ctrl_c_ends_an_answer(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    decoder = Interrupting(5)
    status, _ = run(monkeypatch, decoder, "", "generate", "-p", "AAA", "--max-new-tokens", "60")
    out, err = capsys.readouterr()
    assert status == 130
    assert "interrupted]" in err
    assert 1 < len(out) < 60
    assert expected("AAA", 60).startswith(out[:-1])


def test_a_chat_keeps_its_prefix_and_outlives_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    decoder = Interrupting(3)
    status, model = run(monkeypatch, decoder, "AAA\nBB\n\n/reset\nAAA\n/exit\nC\n", "chat",
                        "--max-new-tokens", "8", "--system", "DD")  # fmt: skip
    out, err = capsys.readouterr()
    first, second, third = out.splitlines()
    assert status == 0
    assert expected("DDAAA", 8) == third
    assert third.startswith(first)
    assert len(first) < 8
    assert second == expected(f"DDAAA{first}BB", 8)
    assert "interrupted]" in err.splitlines()[0]
    asked = 5 + (5 + len(first) + 2) + 5
    engine = model.engine()
    assert engine.prompt_tokens + engine.cached_tokens == asked
    assert engine.cached_tokens >= 5 + len(first) - 1 + 4


def test_commands_of_a_chat(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A path is a message."""
    status, _ = run(monkeypatch, Fake(1), "/help\n/clear\n/a/b\n", "chat", "--max-new-tokens", "4")
    out, err = capsys.readouterr()
    assert status == 0
    assert len(out.splitlines()) == 1
    helped, unknown, *_ = err.splitlines()
    assert helped.startswith("/reset begins a new chat")
    assert unknown == f"unknown command /clear: {helped}"


def test_a_message_that_is_too_long_does_not_end_the_chat(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    status, _ = run(monkeypatch, Fake(1), f"{'A' * 70}\nAAA\n", "chat", "--max-new-tokens", "4")
    out, err = capsys.readouterr()
    assert (status, out) == (0, expected("AAA", 4) + "\n")
    assert "error: the prompt has 70 tokens" in err


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["generate", "m.gguf"], "expected a prompt"),
        (["generate", "nowhere.gguf", "-p", "A"], "there is no 'nowhere.gguf'"),
        (["chat"], "expected a model"),
        (["chat", ".", "--top-p", "2"], "a number from 0 to 1"),
        (["serve"], "either a directory of models or --text MODEL"),
        (["serve", ".", "--text", "m.gguf"], "either a directory of models or --text MODEL"),
        (["serve", "--text", "m.gguf", "--replicas", "2"], "--replicas: not an option of --text"),
        (["serve", ".", "--slots", "2"], "--slots expected --text"),
    ],
)
def test_wrong_command_lines(argv: list[str], why: str, capsys: Any) -> None:
    assert driver_main.main(argv) == 2
    assert why in capsys.readouterr().err
