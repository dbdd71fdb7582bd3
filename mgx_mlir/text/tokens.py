"""Text to tokens and back: a tokenizer of `tokenizers`, with the template of a chat."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError, MgxError, UsageError
from mgx_mlir.text.messages import Message
from mgx_mlir.text.packages import imported, quiet
from mgx_mlir.text.templates import environment, rendered

_SURROGATE = re.compile("[\ud800-\udfff]")  # Python's form of bytes that are no UTF-8
# files of tokenizers that transformers converts
_OLDER = ("tokenizer.model", "spiece.model", "vocab.json", "tokenizer.tiktoken")


class Tokenizer:
    """Encode, decode, and format a chat as one prompt.

    `inner`: a tokenizers.Tokenizer. `template`: Jinja, as transformers keeps it in
    tokenizer_config.json. `special`: the texts by name, such as bos_token.
    """

    def __init__(
        self, inner: Any, template: str | None = None, special: Mapping[str, str] | None = None
    ) -> None:
        self.inner, self.template, self.special = inner, template, dict(special or {})
        self._compiled: Any = None

    @staticmethod
    def of_folder(folder: Path) -> Tokenizer:
        """Read tokenizer.json and the files beside it. Raises FileError."""
        path = folder / "tokenizer.json"
        try:
            inner = (
                imported("tokenizers").Tokenizer.from_file(str(path))
                if path.is_file()
                else _converted(folder)
            )
        except MgxError:
            raise
        except Exception as e:  # tokenizers raises plain Exceptions
            raise FileError(f"not a tokenizer: {e}", location=str(path)) from e
        config = read_json(folder / "tokenizer_config.json", missing={})
        template = config.get("chat_template")
        beside = folder / "chat_template.jinja"
        if beside.is_file():
            try:
                template = beside.read_text(encoding="utf-8")
            except (OSError, ValueError) as e:
                raise FileError(f"cannot be read: {e}", location=str(beside)) from e
        if isinstance(template, list):  # several templates, by name
            rows = [t for t in template if isinstance(t, dict)]
            template = next((t.get("template") for t in rows if t.get("name") == "default"), None)
        if not isinstance(template, str | None):
            raise FileError(f"expected a text as chat_template, got {type(template).__name__}",
                            location=str(folder / "tokenizer_config.json"))  # fmt: skip
        special = {}
        for name, value in config.items():
            if name.endswith("_token"):
                text = value.get("content") if isinstance(value, dict) else value
                if isinstance(text, str):
                    special[name] = text
        return Tokenizer(inner, template, special)

    @property
    def size(self) -> int:
        """Return the number of tokens."""
        return int(self.inner.get_vocab_size())

    def plain_json(self) -> str:
        """Return tokenizer.json without truncation and padding."""
        row = json.loads(self.inner.to_str())
        return json.dumps({**row, "truncation": None, "padding": None})

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the tokens of a text; `special` adds the initial tokens of a prompt."""
        if (at := _SURROGATE.search(text)) is not None:
            raise UsageError(f"the text is no UTF-8 at character {at.start()}")
        try:
            return list(self.inner.encode(text, add_special_tokens=special).ids)
        except Exception as e:  # tokenizers raises plain Exceptions
            raise UsageError(f"the text cannot be written as tokens: {e}") from e

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        return str(self.inner.decode(list(tokens), skip_special_tokens=True))

    def piece(self, token: int) -> str:
        """Return the text of one token, special or not."""
        return str(self.inner.decode([token], skip_special_tokens=False))

    def token(self, text: str) -> int | None:
        """Return the number of a token by its text, None if there is none."""
        return self.inner.token_to_id(text)

    def special_token(self, text: str) -> int | None:
        """Return the number of a special token, which `decode` leaves out; None if it is none."""
        added = self.inner.get_added_tokens_decoder()
        return next((i for i, t in added.items() if t.special and t.content == text), None)

    def chat(
        self, messages: Sequence[Message], *, add_generation_prompt: bool = True, **values: Any
    ) -> list[int]:
        """Return the tokens of a chat, formatted by the template. Raises UsageError."""
        text = self.chat_text(messages, add_generation_prompt=add_generation_prompt, **values)
        return self.encode(text, special=False)

    def chat_text(self, messages: Sequence[Message], **values: Any) -> str:
        """Return a chat formatted by the template. Raises UsageError."""
        if self.template is None:
            raise UsageError(
                "the model has no template of a chat", notes=["give a prompt instead of messages"]
            )
        try:
            if self._compiled is None:
                self._compiled = environment().from_string(self.template)
            given = {**self.special, **values, "messages": list(messages)}
            return rendered(self._compiled, given)
        except Exception as e:  # templates can raise any exception
            raise UsageError(f"the template refuses the messages: {e}") from e

    def template_values(self) -> frozenset[str]:
        """Return the names of values that the template reads; none without a template."""
        if self.template is None:
            return frozenset()
        found = imported("jinja2.meta").find_undeclared_variables
        try:
            return frozenset(found(environment().parse(self.template)))
        except Exception as e:  # templates can raise any exception
            raise UsageError(f"the template cannot be read: {e}") from e

    def stream(self) -> TextStream:
        """Return an incremental decoder of tokens."""
        return TextStream(self)


class TextStream:
    """Text of one answer; `add` returns complete characters, which stay.

    tokenizers makes replacement characters of a whole run of byte tokens that breaks off, also of
    characters that the stream has returned. Then the tokens behind those are decoded alone.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._begin([])

    def _begin(self, tokens: list[int]) -> None:
        """Start behind tokens whose text has been returned."""
        decoders = imported("tokenizers.decoders")
        self._stream = decoders.DecodeStream(ids=list(tokens), skip_special_tokens=True)
        self._tokens, self._returned = tokens, len(tokens)
        self._text = self._tokenizer.decode(tokens)

    def add(self, token: int) -> str:
        """Return the text that a token completes."""
        self._tokens.append(token)
        try:
            text = self._stream.step(self._tokenizer.inner, token) or ""
        except Exception as e:  # tokenizers raises plain Exceptions
            if "prefix" not in str(e):
                raise
            text = self._tokenizer.decode(self._tokens[self._returned :])
            self._begin([token])
            return text
        if text:
            self._text, self._returned = self._text + text, len(self._tokens)
        return text

    def rest(self) -> str:
        """Return the remaining text, such as half of a character."""
        text = self._tokenizer.decode(self._tokens)
        if text.startswith(self._text):
            return text[len(self._text) :]
        return self._tokenizer.decode(self._tokens[self._returned :])


def _converted(folder: Path) -> Any:
    """Return the tokenizer of a folder's older files, which transformers converts.

    Raises FileError where there is none, or transformers or sentencepiece cannot read it.
    """
    if not any((folder / name).is_file() for name in _OLDER):
        raise FileError("expected a tokenizer: the folder has no tokenizer.json, nor "
                        f"{', '.join(_OLDER)}", location=str(folder))  # fmt: skip
    transformers = imported("transformers")
    try:
        with quiet():
            found = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
            return found.backend_tokenizer
    except Exception as e:  # transformers raises exceptions of many kinds
        why = " ".join(str(e).split())[:200] or type(e).__name__
        raise FileError(
            f"the folder has no tokenizer.json, and transformers cannot make one: {why}",
            location=str(folder), notes=["pip install sentencepiece protobuf for tokenizer.model"],
        ) from e  # fmt: skip


def read_json(path: Path, missing: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an object of a JSON file. Raises FileError."""
    if missing is not None and not path.is_file():
        return missing
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise FileError(f"cannot be read as JSON: {e}", location=str(path)) from e
    except RecursionError:
        raise FileError("cannot be read as JSON: it nests too deep", location=str(path)) from None
    if not isinstance(found, dict):
        raise FileError("expected a JSON object", location=str(path))
    return found
