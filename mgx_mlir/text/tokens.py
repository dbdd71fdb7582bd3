"""Text to tokens and back: a tokenizer of `tokenizers`, with the template of a chat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError, MgxError, UsageError
from mgx_mlir.text.files import add_tokens, converted, read_json, special_texts, templates_of
from mgx_mlir.text.messages import Message
from mgx_mlir.text.packages import imported
from mgx_mlir.text.templates import environment, rendered

_SURROGATE = re.compile("[\ud800-\udfff]")  # Python's form of bytes that are no UTF-8


class Tokenizer:
    """Encode, decode, and format a chat as one prompt.

    `inner`: a tokenizers.Tokenizer. `template`: Jinja, as transformers keeps it in
    tokenizer_config.json. `special`: the texts by name, such as bos_token. `of_tools`: the template
    of chats with tools, where it is another.
    """

    def __init__(
        self,
        inner: Any,
        template: str | None = None,
        special: Mapping[str, str] | None = None,
        of_tools: str | None = None,
    ) -> None:
        self.inner, self.template, self.special = inner, template, dict(special or {})
        self.of_tools = of_tools
        self._compiled: dict[str, Any] = {}  # template's text -> template

    @staticmethod
    def of_folder(folder: Path) -> Tokenizer:
        """Read tokenizer.json and the files beside it. Raises FileError."""
        path = folder / "tokenizer.json"
        try:
            inner = (
                imported("tokenizers").Tokenizer.from_file(str(path))
                if path.is_file()
                else converted(folder)
            )
            inner.no_truncation()  # lengths are those of a training
            inner.no_padding()
            config = read_json(folder / "tokenizer_config.json", missing={})
            add_tokens(inner, folder, config)
        except MgxError:
            raise
        except Exception as e:  # tokenizers raises plain Exceptions
            raise FileError(f"not a tokenizer: {e}", location=str(path)) from e
        templates = templates_of(folder, config)
        return Tokenizer(inner, templates.get("default"), special_texts(folder, config),
                         templates.get("tool_use"))  # fmt: skip

    @property
    def size(self) -> int:
        """Return the number of tokens."""
        return int(self.inner.get_vocab_size())

    def template_of(self, *, tools: bool) -> str | None:
        """Return the template of a chat with tools, or without."""
        return self.of_tools if tools and self.of_tools is not None else self.template

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
        template = self.template_of(tools=bool(values.get("tools")))
        if template is None:
            raise UsageError(
                "the model has no template of a chat", notes=["give a prompt instead of messages"]
            )
        try:
            if template not in self._compiled:
                self._compiled[template] = environment().from_string(template)
            given = {**self.special, **values, "messages": list(messages)}
            return rendered(self._compiled[template], given)
        except Exception as e:  # templates can raise any exception
            raise UsageError(f"the template refuses the messages: {e}") from e

    def template_values(self) -> frozenset[str]:
        """Return the names of values that the templates read; none without a template."""
        own = [text for text in (self.template, self.of_tools) if text is not None]
        found: set[str] = set()
        for text in own:
            read = imported("jinja2.meta").find_undeclared_variables
            try:
                found |= read(environment().parse(text))
            except Exception as e:  # templates can raise any exception
                raise UsageError(f"the template cannot be read: {e}") from e
        return frozenset(found)

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
