"""Requests of /v1/completions and /v1/chat/completions, converted to an engine's requests."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mgx_mlir.core.errors import MgxError
from mgx_mlir.integrations.openai.fields import ApiError, Fields, shown
from mgx_mlir.integrations.openai.forms import format_field, of_caller, tool_fields
from mgx_mlir.text.messages import of_template, plain
from mgx_mlir.text.model import TextModel
from mgx_mlir.text.requests import Constraint, Request
from mgx_mlir.text.sampling import Sampling
from mgx_mlir.text.tools import CallForm

_STOPS = 16  # strings that end an answer
_LIKELIEST = 20  # OpenAI's limit of tokens listed per position
_CHOICES = 128  # OpenAI's limit of answers to one request
_TEMPERATURE = 2.0  # OpenAI's largest temperature
_PENALTY = 2.0  # OpenAI's largest penalty of frequency and of presence
_SHORT = 16  # OpenAI's default of tokens of a completion
_SEEDS = 1 << 63
# fields without effect on an answer
_IGNORED = (
    "user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "prediction", "service_tier",
)  # fmt: skip
# unsupported fields, with the values that have no effect
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "store": (False,),
}
_OF_CHAT: Mapping[str, tuple[Any, ...]] = {
    "functions": ([],), "function_call": ("none",), "modalities": (["text"],),
}  # fmt: skip
_GIVEN = ("messages", "tools", "add_generation_prompt")  # values that the server gives templates


@dataclass(frozen=True)
class Question:
    """A client's request, as an engine's request for each choice, in order."""

    chat: bool
    model: str
    requests: tuple[Request, ...]
    prompts: int  # number of prompts; `requests` has `n` for each prompt, one after the other
    stream: bool
    usage: bool  # stream ends with token counts
    echo: tuple[str, ...]  # prompts that the choices' texts begin with
    calls: CallForm | None = None  # tools that the answers may call

    @property
    def prompt_tokens(self) -> int:
        """Return the tokens of all prompts."""
        n = len(self.requests) // self.prompts
        return sum(len(r.tokens) for r in self.requests[::n])


def question(row: Mapping[str, Any], chat: bool, model: TextModel, name: str) -> Question:
    """Read a request for the model of this name. Errors: ApiError; MgxError for a prompt."""
    fields = Fields(row)
    asked = fields.text("model", name)
    if asked != name:
        raise ApiError(
            f"the model '{asked[:80]}' does not exist: '{name}' is served", 404, param="model",
            code="model_not_found",
        )  # fmt: skip
    for field in _IGNORED:
        fields.take(field)
    for field, allowed in _NEUTRAL.items():
        fields.only(field, *allowed)
    sampling = Sampling(
        fields.number("temperature", 1.0, 0, _TEMPERATURE),
        fields.integer("top_k", 0, 0, 1 << 31),
        fields.number("top_p", 1.0, 0, 1, above=True),
        fields.number("min_p", 0.0, 0, 1),
        fields.number("repetition_penalty", 1.0, 0.01, 100),
        _seed(fields),
        fields.number("frequency_penalty", 0.0, -_PENALTY, _PENALTY),
        fields.number("presence_penalty", 0.0, -_PENALTY, _PENALTY),
        fields.biases("logit_bias", model.vocabulary),
    )
    n = fields.integer("n", 1, 1, _CHOICES)
    if not chat:
        fields.only("best_of", n)
    stop = fields.texts("stop", _STOPS)
    ends = _stop_tokens(fields, model)
    stream = fields.flag("stream")
    usage = _usage(fields, stream)
    most = _most(fields, chat)
    least = fields.integer("min_tokens", 0, 0, 1 << 31)
    if most is not None and least > most:
        raise ApiError(f"'min_tokens' is {least}, and the most are {most}", param="min_tokens")
    asked_for = (_chat if chat else _completion)(fields, model)
    fields.done()
    prompts, logprobs = asked_for.prompts, asked_for.logprobs
    requests = []
    for tokens in prompts:
        if len(tokens) >= model.max_length:
            raise ApiError(
                f"the prompt has {len(tokens)} tokens, the model takes {model.max_length} with the "
                "answer", param="messages" if chat else "prompt", code="context_length_exceeded",
            )  # fmt: skip
        room = model.max_length - len(tokens)
        one = Request(
            tokens, min(most or room, room), sampling, stop, ends, logprobs=logprobs,
            constraint=asked_for.constraint,
            score_prompt=logprobs is not None and bool(asked_for.echo), min_new_tokens=least,
        )  # fmt: skip
        requests += [replace(one, sampling=replace(sampling, seed=(sampling.seed + i) % _SEEDS))
                     for i in range(n)]  # fmt: skip
    if stream and requests[0].score_prompt:
        raise ApiError("'echo' with 'logprobs' is not supported in a stream", param="echo")
    echoes = tuple(text for text in asked_for.echo for _ in range(n))
    return Question(
        chat, name, tuple(requests), len(prompts), stream, usage, echoes, asked_for.calls
    )


def _seed(fields: Fields) -> int:
    """Return the seed of a request, drawn if it states none."""
    found = fields.integer("seed", None, -_SEEDS, _SEEDS - 1)
    return secrets.randbelow(_SEEDS) if found is None else found % _SEEDS


def _stop_tokens(fields: Fields, model: TextModel) -> frozenset[int] | None:
    """Return the tokens that end an answer, by vLLM's fields; None: those of the model."""
    ignored = fields.flag("ignore_eos")
    more = fields.take("stop_token_ids", [])
    size = model.vocabulary
    if not isinstance(more, list) or not all(type(x) is int and 0 <= x < size for x in more):
        raise ApiError(f"'stop_token_ids' expected tokens 0 to {size - 1}, got {shown(more)}",
                       param="stop_token_ids")  # fmt: skip
    if not ignored and not more:
        return None
    return frozenset(more) | (frozenset() if ignored else model.stop_tokens)


def _usage(fields: Fields, stream: bool) -> bool:
    options = fields.take("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict) or not stream:
        why = "expected an object" if stream else "is for streams only"
        raise ApiError(f"'stream_options' {why}", param="stream_options")
    own = Fields(options)
    found = own.flag("include_usage")
    own.take("include_obfuscation")
    own.done()
    return found


def _most(fields: Fields, chat: bool) -> int | None:
    """Return an answer's largest number of tokens; None: as many as the model takes."""
    old = fields.integer("max_tokens", None, 1, 1 << 31)
    new = fields.integer("max_completion_tokens", None, 1, 1 << 31) if chat else None
    if old is None and new is None:
        return None if chat else _SHORT
    return min(x for x in (old, new) if x is not None)


@dataclass(frozen=True)
class RequestFields:
    """Fields that the two paths have in different forms."""

    prompts: list[list[int]]
    logprobs: int | None  # likeliest tokens to list
    echo: tuple[str, ...] = ()  # prompts that the answers begin with
    constraint: Constraint | None = None
    calls: CallForm | None = None


def _completion(fields: Fields, model: TextModel) -> RequestFields:
    fields.only("suffix", "")
    logprobs = fields.integer("logprobs", None, 0, _LIKELIEST)
    echo = fields.flag("echo")
    given = fields.take("prompt")
    if given is None:
        raise ApiError("expected a 'prompt'", param="prompt")
    texts = [given] if isinstance(given, str) or _is_tokens(given) else given
    if not isinstance(texts, list) or not 0 < len(texts) <= _CHOICES:
        raise ApiError(f"'prompt' expected 1 to {_CHOICES} texts, got {shown(given)}",
                       param="prompt")  # fmt: skip
    prompts = [list(_tokens(x, model)) for x in texts]
    begins = tuple(model.tokenizer.decode(p) for p in prompts) if echo else ()
    return RequestFields(prompts, logprobs, begins)


def _is_tokens(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(type(x) is int for x in value)


def _tokens(value: Any, model: TextModel) -> Sequence[int]:
    if isinstance(value, str):
        found = model.tokens(value)
        if not found:
            raise ApiError("'prompt' has no token", param="prompt")
        return found
    if not _is_tokens(value):
        raise ApiError(f"'prompt' expected a text or tokens, got {shown(value)}", param="prompt")
    size = model.vocabulary
    if wrong := [x for x in value if not 0 <= x < size]:
        raise ApiError(f"'prompt' has the token {wrong[0]}, the model has {size}", param="prompt")
    return value


def _chat(fields: Fields, model: TextModel) -> RequestFields:
    for field, allowed in _OF_CHAT.items():
        fields.only(field, *allowed, instead="tools" if field.startswith("function") else None)
    logprobs = fields.flag("logprobs")
    count = fields.integer("top_logprobs", 0, 0, _LIKELIEST)
    if count and not logprobs:
        raise ApiError("'top_logprobs' expected 'logprobs' to be true", param="top_logprobs")
    given = fields.take("messages")
    if not isinstance(given, list) or not given:
        raise ApiError("expected 'messages', a list that is not empty", param="messages")
    tools, calls, grammar = tool_fields(fields, model)
    form = format_field(fields)
    if form is not None and calls is not None:
        raise ApiError("'response_format' with 'tools' is not supported", param="response_format")
    values = _template_values(fields, model)
    if tools:
        values["tools"] = tools
    try:
        template = model.tokenizer.template_of(tools=bool(tools))
        tokens = model.tokens(of_template(plain(given), template), **values)
    except MgxError as e:
        raise ApiError(str(e), param="messages") from e
    constraint = None
    if found := form or grammar:
        param = "tools" if form is None else "response_format"
        constraint = of_caller(param, lambda: model.grammars.bound(found))
    return RequestFields([tokens], count if logprobs else None, constraint=constraint, calls=calls)


def _template_values(fields: Fields, model: TextModel) -> dict[str, Any]:
    """Return values for the template, such as Qwen's `enable_thinking`, which it must read."""
    given = fields.take("chat_template_kwargs", {})
    effort = fields.take("reasoning_effort")
    if not isinstance(given, dict):
        raise ApiError(f"'chat_template_kwargs' expected an object, got {shown(given)}",
                       param="chat_template_kwargs")  # fmt: skip
    place = "chat_template_kwargs"
    if effort is not None:
        given = {**given, "reasoning_effort": effort}
    if given:
        known = of_caller("messages", model.tokenizer.template_values) - {*_GIVEN}
        for name in given:
            if name not in known:
                raise ApiError(f"the model's template does not read {shown(name)}",
                               param=name if name == "reasoning_effort" else place)  # fmt: skip
    return given
