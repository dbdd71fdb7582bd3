"""An engine's answers in OpenAI's JSON: whole, or as events of a stream."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mgx_mlir.integrations.openai.questions import Question
from mgx_mlir.integrations.v2.errors import V2Error, shortened
from mgx_mlir.text.requests import Handle, Piece
from mgx_mlir.text.tokens import Tokenizer
from mgx_mlir.text.tools import Call, CallForm, Calls

DONE = b"data: [DONE]\n\n"
# an SSE comment, which clients skip: writing it detects a closed connection
ALIVE = b": waiting\n\n"
_KINDS = {403: "permission_error", 429: "rate_limit_error"}
_CODES = {429: "rate_limit_exceeded", 503: "overloaded"}


@dataclass(frozen=True)
class Added:
    """Text and tool calls that a piece adds, and the piece itself if its token is part of the
    answer.
    """

    text: str
    calls: Sequence[dict[str, Any]]
    pieces: Sequence[Piece]


class CallReader:
    """Parser of tool calls in an answer's pieces; the trigger may be a token without text."""

    def __init__(self, form: CallForm, tokenizer: Tokenizer) -> None:
        self._calls = Calls(form)
        marks = (form.trigger, form.end.strip())
        self._special = {tokenizer.special_token(mark): mark for mark in marks if mark}

    def add(self, piece: Piece) -> tuple[str, list[Call]]:
        """Return the text of a piece outside of calls, and the calls that the piece completes."""
        text, calls = self._calls.add(piece.text or self._special.get(piece.token, ""))
        if piece.finish_reason is not None:
            text += self._calls.rest()
        return text, calls


class Choice:
    """One answer under way: pieces are added, and its JSON can be written at any time."""

    def __init__(
        self, index: int, handle: Handle, begin: str = "", calls: CallReader | None = None
    ) -> None:
        self.index, self.handle = index, handle
        self.calls: list[dict[str, Any]] = []  # complete ones
        self._reader = calls
        self.begin = begin
        self.texts: list[str] = [begin]
        self.shown: list[Piece] = []
        self.finish_reason: str | None = None

    def add(self, piece: Piece, ends: frozenset[int]) -> Added:
        """Record a piece; return what it adds to the answer."""
        text, calls = piece.text, []
        if self._reader is not None:
            text, calls = self._reader.add(piece)
        self.texts.append(text)
        rows = [_call_row(call) for call in calls]
        self.calls += rows
        self.finish_reason = piece.finish_reason
        if self.calls and piece.finish_reason == "stop":
            self.finish_reason = "tool_calls"
        if piece.token in ends and piece.finish_reason == "stop":
            return Added(text, rows, [])
        self.shown.append(piece)
        return Added(text, rows, [piece])


class Writer:
    """Writer of the answers to one request. `ends`: tokens that end an answer and are not shown."""

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
            pieces, start = c.shown, len(c.begin)
            if c.handle.request.score_prompt:
                pieces, start = [*_prompt_pieces(c.handle), *pieces], 0
            row = {"index": c.index, "finish_reason": c.finish_reason,
                   "logprobs": self._scores(pieces, start)}  # fmt: skip
            if chat:
                message = {"role": "assistant", "content": text, "refusal": None}
                if c.calls:
                    message |= {"content": text or None, "tool_calls": c.calls}
                row["message"] = message
            else:
                row["text"] = text
            rows.append(row)
        kind = "chat.completion" if chat else "text_completion"
        found = {**self._head, "object": kind, "choices": rows, "usage": self.usage(choices)}
        return json.dumps(found).encode()

    def reader(self) -> CallReader | None:
        """Return the parser of tool calls of an answer, None if it may have no calls."""
        form = self.question.calls
        return None if form is None else CallReader(form, self._tokenizer)

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
        """Return the event before an answer's pieces."""
        if self.question.chat:
            return self._event(choice, {"role": "assistant", "content": ""}, None)
        return self._event(choice, choice.begin, None) if choice.begin else b""

    def piece(self, choice: Choice, piece: Piece) -> bytes:
        """Return the events of a piece that was already added to the answer."""
        at = sum(map(len, choice.texts))
        first = len(choice.calls)
        added = choice.add(piece, self._ends)
        found = b""
        if added.text or (added.pieces and self._scored):
            scores = self._scores(added.pieces, at)
            delta = {"content": added.text} if self.question.chat else added.text
            found = self._event(choice, delta, scores)
        for i, call in enumerate(added.calls, first):
            found += self._event(choice, {"tool_calls": [{"index": i, **call}]}, None)
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

    def error(self, body: bytes) -> bytes:
        """Return the event of an error in a stream that has started."""
        return error_event(body)

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
            "top_logprobs": [None if p.logprob is None else
                             {self._text(t): s for t, s in reversed(p.top)} for p in pieces],
        }  # fmt: skip

    def _of_chat(self, piece: Piece) -> dict[str, Any]:
        top = [self._scored_token(t, s) for t, s in piece.top]
        return {**self._scored_token(piece.token, piece.logprob), "top_logprobs": top}

    def _scored_token(self, token: int, score: float | None) -> dict[str, Any]:
        text = self._text(token)
        whole = "\ufffd" not in text  # a part of a multi-byte character has no text of its own
        return {"token": text, "logprob": score, "bytes": list(text.encode()) if whole else None}

    def _text(self, token: int) -> str:
        return self._tokenizer.piece(token)


def _prompt_pieces(handle: Handle) -> list[Piece]:
    """Return a prompt's tokens with their scores; the first has none."""
    first, *others = handle.request.tokens
    scored = zip(others, handle.prompt_scores, strict=True)
    return [Piece(first, ""), *(Piece(t, "", logprob, top) for t, (logprob, top) in scored)]


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
    """Return the event of an error in a stream that has started."""
    return b"data: " + body + b"\n\n"


def _data(row: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(row).encode() + b"\n\n"


def _call_row(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    # templates of Mistral take ids of nine letters and digits alone
    return {"id": secrets.token_hex(5)[:9], "type": "function", "function": function}
