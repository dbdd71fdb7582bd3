"""Answers of an engine in OpenAI's JSON: whole ones, and events of a stream."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Any

from mgx_mlir.integrations.openai.questions import Question
from mgx_mlir.integrations.v2.errors import V2Error, shortened
from mgx_mlir.text.requests import Handle, Piece
from mgx_mlir.text.tokens import Tokenizer

DONE = b"data: [DONE]\n\n"
# a comment, which clients skip, for those that are gone to be found
ALIVE = b": waiting\n\n"
_KINDS = {403: "permission_error", 429: "rate_limit_error"}
_CODES = {429: "rate_limit_exceeded", 503: "overloaded"}


class Choice:
    """One answer under way: pieces are added, and its parts can be written."""

    def __init__(self, index: int, handle: Handle, begin: str = "") -> None:
        self.index, self.handle = index, handle
        self.begin = begin
        self.texts: list[str] = [begin]
        self.shown: list[Piece] = []
        self.finish_reason: str | None = None

    def add(self, piece: Piece, ends: frozenset[int]) -> list[Piece]:
        """Note a piece; return it where its token is a part of the answer."""
        self.texts.append(piece.text)
        self.finish_reason = piece.finish_reason
        if piece.token in ends and piece.finish_reason == "stop":
            return []
        self.shown.append(piece)
        return [piece]


class Writer:
    """Writes the answers to one request. `ends`: tokens that end an answer and are not shown."""

    def __init__(self, question: Question, tokenizer: Tokenizer, ends: frozenset[int]) -> None:
        self.question, self._tokenizer, self._ends = question, tokenizer, ends
        kind = "chatcmpl" if question.chat else "cmpl"
        self._head: dict[str, Any] = {
            "id": f"{kind}-{secrets.token_hex(12)}", "created": int(time.time()),
            "model": question.model,
        }  # fmt: skip
        self._scored = question.requests[0].logprobs is not None

    # ---- whole -------------------------------------------------------------------------------

    def whole(self, choices: Sequence[Choice]) -> bytes:
        """Return all answers as one object."""
        chat = self.question.chat
        rows = []
        for c in choices:
            text = "".join(c.texts)
            row = {"index": c.index, "finish_reason": c.finish_reason,
                   "logprobs": self._scores(c.shown, len(c.begin))}  # fmt: skip
            if chat:
                row["message"] = {"role": "assistant", "content": text, "refusal": None}
            else:
                row["text"] = text
            rows.append(row)
        kind = "chat.completion" if chat else "text_completion"
        found = {**self._head, "object": kind, "choices": rows, "usage": self.usage(choices)}
        return json.dumps(found).encode()

    def usage(self, choices: Sequence[Choice]) -> dict[str, Any]:
        """Return the counts of tokens."""
        asked = self.question.prompt_tokens
        made = sum(len(c.handle.tokens) for c in choices)
        cached = sum(c.handle.cached_tokens for c in choices)
        return {
            "prompt_tokens": asked, "completion_tokens": made, "total_tokens": asked + made,
            "prompt_tokens_details": {"cached_tokens": min(cached, asked)},
        }  # fmt: skip

    # ---- streamed ----------------------------------------------------------------------------

    def begin(self, choice: Choice) -> bytes:
        """Return the event ahead of an answer's pieces."""
        if self.question.chat:
            return self._event(choice, {"role": "assistant", "content": ""}, None)
        return self._event(choice, choice.begin, None) if choice.begin else b""

    def piece(self, choice: Choice, piece: Piece) -> bytes:
        """Return the events of a piece, which has been taken from the answer."""
        at = sum(map(len, choice.texts))
        shown = choice.add(piece, self._ends)
        found = b""
        if piece.text or (shown and self._scored):
            scores = self._scores(shown, at)
            delta = {"content": piece.text} if self.question.chat else piece.text
            found = self._event(choice, delta, scores)
        if piece.finish_reason is not None:
            found += self._event(choice, {} if self.question.chat else "", None, ended=True)
        return found

    def end(self, choices: Sequence[Choice]) -> bytes:
        """Return the last events."""
        if not self.question.usage:
            return DONE
        row = {**self._head, "object": self._kind, "choices": [], "usage": self.usage(choices)}
        return _data(row) + DONE

    @property
    def _kind(self) -> str:
        return "chat.completion.chunk" if self.question.chat else "text_completion"

    def _event(self, choice: Choice, part: Any, scores: Any, *, ended: bool = False) -> bytes:
        row = {"index": choice.index, "logprobs": scores,
               "finish_reason": choice.finish_reason if ended else None}  # fmt: skip
        row["delta" if self.question.chat else "text"] = part
        found: dict[str, Any] = {**self._head, "object": self._kind, "choices": [row]}
        if self.question.usage:
            found["usage"] = None
        return _data(found)

    # ---- log-probabilities -------------------------------------------------------------------

    def _scores(self, pieces: Sequence[Piece], start: int) -> dict[str, Any] | None:
        if not self._scored:
            return None
        if self.question.chat:
            return {"content": [self._of_chat(p) for p in pieces], "refusal": None}
        texts = [self._text(p.token) for p in pieces]
        at = [start + sum(map(len, texts[:i])) for i in range(len(texts))]
        return {
            "tokens": texts, "token_logprobs": [p.logprob for p in pieces], "text_offset": at,
            "top_logprobs": [{self._text(t): s for t, s in reversed(p.top)} for p in pieces],
        }  # fmt: skip

    def _of_chat(self, piece: Piece) -> dict[str, Any]:
        top = [self._scored_token(t, s) for t, s in piece.top]
        return {**self._scored_token(piece.token, piece.logprob), "top_logprobs": top}

    def _scored_token(self, token: int, score: float | None) -> dict[str, Any]:
        text = self._text(token)
        whole = "\ufffd" not in text  # a part of a character has no text of its own
        return {"token": text, "logprob": score, "bytes": list(text.encode()) if whole else None}

    def _text(self, token: int) -> str:
        return self._tokenizer.piece(token)


def error_body(error: V2Error) -> bytes:
    """Return the body of an error, in OpenAI's form."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    row = {
        "message": shortened(error), "type": _KINDS.get(error.status, kind),
        "param": getattr(error, "param", None),
        "code": getattr(error, "code", None) or _CODES.get(error.status),
    }  # fmt: skip
    return json.dumps({"error": row}).encode()


def error_event(body: bytes) -> bytes:
    """Return the event of an error, in a stream that has begun."""
    return b"data: " + body + b"\n\n"


def _data(row: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(row).encode() + b"\n\n"
