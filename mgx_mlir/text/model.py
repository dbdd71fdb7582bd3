"""A language model that is loaded: texts in, texts out."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.freed_memory import give_back
from mgx_mlir.text.beams import Beams
from mgx_mlir.text.checkpoint import Checkpoint, checkpoint_of
from mgx_mlir.text.drafts import Drafter, DraftModel, Lookup
from mgx_mlir.text.engine import Decoder, Engine
from mgx_mlir.text.grammar import Grammar, Grammars
from mgx_mlir.text.messages import Message, plain
from mgx_mlir.text.onnx_folder import OnnxFolder
from mgx_mlir.text.program import CacheShape, ProgramDecoder, batch_sizes, cached, keep
from mgx_mlir.text.requests import Constraint, Handle, Request
from mgx_mlir.text.sampling import Sampling, is_whole
from mgx_mlir.text.tokens import Tokenizer

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram
    from mgx_mlir.compiler.options import CompileOptions

_LENGTH = 4096  # default length of a sequence in tokens, if the model allows it
_BITS: Mapping[str, Literal[4, 8]] = {"int4": 4, "int8": 8}
_HALVES = ("f16", "bf16")
WEIGHTS = (*_BITS, *_HALVES)
TARGETS = ("cpu", "gpu", "ref")
Prompt = str | Sequence[Message] | Sequence[int]


class TextModel:
    """A tokenizer and a decoder, used by `generate` and engines."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        decoder: Decoder,
        config: Mapping[str, Any] | None = None,
        stop_tokens: frozenset[int] = frozenset(),
        drafter: Drafter | None = None,
    ) -> None:
        self._drafter = drafter
        self.tokenizer, self.decoder = tokenizer, decoder
        self.config, self.stop_tokens = dict(config or {}), stop_tokens
        self._engine: Engine | None = None
        self._grammars: Grammars | None = None
        self._lock = threading.Lock()

    @property
    def grammars(self) -> Grammars:
        """Return the object that binds grammars to the model's tokens. Raises UsageError."""
        with self._lock:
            if self._grammars is None:
                self._grammars = Grammars(self.tokenizer, self.vocabulary, self.stop_tokens)
            return self._grammars

    @property
    def vocabulary(self) -> int:
        """Return the number of tokens that the model has, which its tokenizer may not all use."""
        own = _own(self.config)
        return int(own.get("vocab_size") or self.tokenizer.size)

    @property
    def max_length(self) -> int:
        """Return the most tokens of a sequence, prompt and answer."""
        return self.decoder.rows

    def engine(self) -> Engine:
        """Return the model's engine, shared by all callers; its cache is the model's."""
        with self._lock:
            if self._engine is None:
                self._engine = Engine(
                    self.decoder, self.tokenizer.stream, stop_tokens=self.stop_tokens,
                    drafter=self._drafter,
                )  # fmt: skip
            return self._engine

    def request(
        self,
        prompt: Prompt,
        *,
        max_new_tokens: int = 256,
        min_new_tokens: int = 0,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        logit_bias: Mapping[int, float] | None = None,
        stop: str | Sequence[str] | None = (),
        seed: int = 0,
        logprobs: int | None = None,
        constraint: Constraint | Grammar | None = None,
        num_beams: int = 1,
        length_penalty: float = 1.0,
        early_stopping: bool | Literal["never"] = False,
    ) -> Request:
        """Return the request of a prompt (a text, tokens, or messages of a chat).

        constraint: a grammar of the answer, such as `Grammar.json(schema)`. Temperature 0 takes the
        likeliest token. frequency_penalty, presence_penalty, logit_bias: as OpenAI defines them.
        num_beams: sequences that a beam search follows; the other two are its settings, as in
        transformers. Raises UsageError for wrong values.
        """
        beams = Beams(num_beams, length_penalty, early_stopping)
        if beams.count == 1 and beams != Beams(1):
            raise UsageError("length_penalty and early_stopping are settings of a beam search",
                             notes=["give num_beams, 2 or more"])  # fmt: skip
        sampling = Sampling(
            temperature, top_k, top_p, min_p, repetition_penalty, seed, frequency_penalty,
            presence_penalty, {} if logit_bias is None else logit_bias,
        )  # fmt: skip
        self._known(list(sampling.logit_bias), "logit_bias")
        stops: tuple[Any, ...] = tuple(stop) if isinstance(stop, list | tuple) else (stop,)
        if stop is None:
            stops = ()
        if isinstance(constraint, Grammar):
            constraint = self.grammars.bound(constraint)
        return Request(
            self.tokens(prompt), max_new_tokens, sampling, stops, logprobs=logprobs,
            constraint=constraint, beams=beams if beams.count > 1 else None,
            min_new_tokens=min_new_tokens,
        )  # fmt: skip

    def tokens(self, prompt: Prompt, **values: Any) -> list[int]:
        """Return the tokens of a text, of messages ({"role": .., "content": ..}), or as given.

        values: additional values for the chat template, such as `tools`. Raises UsageError.
        """
        if isinstance(prompt, str):
            return self._known(self.tokenizer.encode(prompt))
        if isinstance(prompt, np.ndarray):
            prompt = prompt.tolist()
        rows = list(prompt) if isinstance(prompt, list | tuple) else [None]
        if all(is_whole(x) for x in rows):
            return self._known([int(x) for x in rows if is_whole(x)])
        if not all(isinstance(x, Mapping) for x in rows):
            raise UsageError("expected a text, a list of messages, or a list of tokens")
        return self._known(self.tokenizer.chat(plain(rows), **values))

    def _known(self, tokens: list[int], place: str = "the prompt") -> list[int]:
        if tokens and not 0 <= min(tokens) <= max(tokens) < self.vocabulary:
            wrong = next(x for x in tokens if not 0 <= x < self.vocabulary)
            raise UsageError(f"{place} has the token {wrong}, the model has {self.vocabulary}")
        return tokens

    @overload
    def generate(self, prompt: Prompt, *, stream: Literal[False] = False, **how: Any) -> str: ...
    @overload
    def generate(self, prompt: Prompt, *, stream: Literal[True], **how: Any) -> Iterator[str]: ...
    def generate(self, prompt: Prompt, *, stream: bool = False, **how: Any) -> str | Iterator[str]:
        """Continue a prompt: a text, or the answer to messages of a chat.

        stream: return an iterator of pieces of the text as they come; those of a beam search come
        at its end. The other keywords are those of `request`. Raises UsageError.
        """
        _check_options(how)
        handle = self.engine().submit(self.request(prompt, **how))
        return _texts(handle) if stream else handle.text()


def _check_options(how: Mapping[str, Any]) -> None:
    """Refuse keywords that `request` does not have."""
    takes = sorted(TextModel.request.__kwdefaults__ or {})
    if unknown := sorted(set(how) - set(takes)):
        raise UsageError(f"unknown option '{unknown[0]}'", notes=[f"options: {', '.join(takes)}"])


def _texts(handle: Handle) -> Iterator[str]:
    try:
        for piece in handle:
            if piece.text:
                yield piece.text
    finally:
        handle.cancel()  # the caller stopped iterating


def load(
    path: str | os.PathLike[str] | Checkpoint,
    target: str | None = "cpu",
    *,
    weights: Literal["int4", "int8", "f16", "bf16"] | None = None,
    dtype: Literal["f16", "bf16"] | None = None,
    max_length: int | None = None,
    slots: int = 8,
    draft: Literal["lookup"] | TextModel | None = None,
    **options: Any,
) -> TextModel:
    """Load a folder as transformers, optimum or onnxruntime-genai write it, or a .gguf file.

    weights: round linear layers to "int4" or "int8", a scale for 32 weights, or to "f16" or "bf16";
    None keeps what the files have. dtype: type of 16 bits of activations, caches, and weights
    outside of blocks; None is f32. max_length: tokens of a sequence, by default what the model
    takes, at most 4096. slots: sequences at once. options: of `mgx_mlir.compile`. The first load
    exports and compiles, later ones find the program in the compile cache. Raises FileError,
    UsageError, UnsupportedModel.
    """
    # not imported at start-up: only `load` needs it
    from mgx_mlir.compiler.options import KEYWORDS, CompileOptions

    if weights is not None and weights not in WEIGHTS:
        raise UsageError(f"unknown weights '{weights}', expected {', '.join(WEIGHTS)} or None")
    if dtype is not None and dtype not in _HALVES:
        raise UsageError(f"unknown dtype '{dtype}', expected {', '.join(_HALVES)} or None")
    if dtype is not None and weights in _HALVES and weights != dtype:
        raise UsageError(f"expected one type, got weights '{weights}' and dtype '{dtype}'",
                         notes=["a dtype is that of the weights, too"])  # fmt: skip
    takes = [name for name in KEYWORDS if name not in ("background", "sizes")]
    if unknown := sorted(set(options) - set(takes)):
        raise UsageError(f"unknown option '{unknown[0]}'", notes=[f"options: {', '.join(takes)}"])
    how = CompileOptions.of(target, None, options)
    if how.target not in TARGETS:
        raise UsageError(f"unknown target {target!r}, expected {' or '.join(TARGETS)}")
    if isinstance(path, str | os.PathLike):
        made = checkpoint_of(Path(path))
    elif hasattr(path, "tokenizer"):
        made = path
    else:
        raise UsageError(f"expected the path of a model, got {path!r}")
    rows = _rows(made.config, max_length)
    if not is_whole(slots) or slots < 1:
        raise UsageError(f"slots expected an integer, 1 or more, got {slots!r}")
    tokenizer = made.tokenizer()
    drafter = _drafter(draft, tokenizer)
    if isinstance(made, OnnxFolder):
        decoder = made.decoder(_of_file(made, weights or dtype, how), slots, rows)
    else:
        is_gpu = how.target == "gpu"
        if how.target != "ref":  # ProgramDecoder's values are valid by construction
            how = replace(how, trusts_values=True)
        form = _Form(
            weights, dtype, _long_context(made.config, rows), rows if is_gpu else None,
            batch_sizes(slots) if is_gpu else (),
        )  # fmt: skip
        key = _key(made, form, how)
        program, shape = cached(key, how) or _compiled(made, form, how, key)
        decoder = ProgramDecoder(program, shape, slots, rows)
    ends = _stop_tokens(made, tokenizer)
    give_back()  # parts of tokenizer.json, and what a compile has freed
    return TextModel(tokenizer, decoder, made.config, ends, drafter)


def _drafter(draft: object, tokenizer: Tokenizer) -> Drafter | None:
    """Return the object that guesses tokens. Raises UsageError."""
    if draft is None:
        return None
    if draft == "lookup":
        return Lookup()
    if not isinstance(draft, TextModel):
        raise UsageError(f"draft expected 'lookup' or a TextModel, got {draft!r}")
    if draft.tokenizer.size != tokenizer.size:
        raise UsageError(f"the draft model has {draft.tokenizer.size} tokens, and the model has "
                         f"{tokenizer.size}")  # fmt: skip
    return DraftModel(draft.decoder)


def _of_file(path: OnnxFolder, weights: str | None, how: CompileOptions) -> CompiledProgram:
    """Compile an ONNX decoder. Raises UsageError if it should be rounded to a type."""
    # not imported at start-up: a cached checkpoint does not need it
    from mgx_mlir.compiler.compile import compile

    if weights is not None:
        raise UsageError(f"'{weights}' rounds checkpoints, and an ONNX file has types of its own",
                         location=str(path.file))  # fmt: skip
    return compile(str(path.file), options=how)


def _own(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the text model, of a config that has other models', too."""
    found = config.get("text_config")
    return found if isinstance(found, Mapping) and found else config


def _rows(config: Mapping[str, Any], asked: int | None) -> int:
    own = _own(config)
    most = own.get("max_position_embeddings")
    if most is not None and (not is_whole(most) or most < 2):
        raise FileError("max_position_embeddings of the config expected an integer, 2 or more, "
                        f"got {most!r}")  # fmt: skip
    if asked is None:
        return min(int(most or _LENGTH), _LENGTH)
    if not is_whole(asked) or asked < 2:
        raise UsageError(f"max_length expected an integer, 2 or more, got {asked!r}")
    if most is not None and asked > most:
        raise UsageError(f"max_length expected at most {most}, the model's limit, got {asked}")
    return int(asked)


def _long_context(config: Mapping[str, Any], rows: int) -> bool:
    """Return whether `rows` tokens exceed the context that RoPE's factors of a model extend."""
    own = _own(config)
    rope = own.get("rope_parameters") or own.get("rope_scaling")
    if not isinstance(rope, Mapping):
        return False
    name = "original_max_position_embeddings"
    found = rope.get(name) or own.get(name)
    return "long_factor" in rope and is_whole(found) and rows > found


def _stop_tokens(made: Checkpoint | OnnxFolder, tokenizer: Tokenizer) -> frozenset[int]:
    """Return the tokens that end an answer, from generation_config.json, else from the model's
    config.
    """
    for place in (made.generation, made.config):
        found = place.get("eos_token_id")
        if found is not None:
            ends = found if isinstance(found, list) else [found]
            if not all(is_whole(x) for x in ends):
                raise FileError(f"eos_token_id of the config expected integers, got {found!r}")
            return frozenset(ends)
    end = tokenizer.token(tokenizer.special.get("eos_token", ""))
    return frozenset() if end is None else frozenset([end])


@dataclass(frozen=True)
class _Form:
    """Choices of a checkpoint's graph. rows: of the caches, where the graph has their number."""

    weights: Literal["int4", "int8", "f16", "bf16"] | None
    dtype: Literal["f16", "bf16"] | None
    long: bool
    rows: int | None
    batches: tuple[int, ...]  # numbers of sequences of steps with known sizes


def _key(made: Checkpoint, form: _Form, how: CompileOptions) -> str | None:
    """Return the cache key of a checkpoint's compiled program; None without a cache."""
    from mgx_mlir.targets.cache import default_cache
    from mgx_mlir.targets.flags import host_cpu
    from mgx_mlir.targets.toolchain import tracers

    store = default_cache() if how.cache else None
    if store is None:
        return None
    files = [store.file_digest(f) for f in made.files()] + tracers(store.memos)
    try:
        row = {"host": host_cpu(), **asdict(form), **how.key()}
    except TypeError:  # an option without a text form
        return None
    return store.program_key(files, row)


def _compiled(
    made: Checkpoint, form: _Form, options: CompileOptions, key: str | None
) -> tuple[Any, CacheShape]:
    """Export and compile a checkpoint, and add it to the cache."""
    # only the first load of a model needs torch, transformers and MLIR
    from mgx_mlir.compiler.backend import backend_of
    from mgx_mlir.compiler.compile import compile
    from mgx_mlir.compiler.program_cache import program_cache_key
    from mgx_mlir.compiler.sources import fixed
    from mgx_mlir.text.packages import imported

    for name in ("torch", "transformers"):
        imported(name)
    from mgx_mlir.frontends.dims import DynamicDim
    from mgx_mlir.programs.program_ir import ProgramIR, set_distinct
    from mgx_mlir.text.graph import KEEP, names_of_dims, onnx_of_model, rounded_blocks
    from mgx_mlir.text.probe import cache_shape

    model = made.model()
    blocks = dict(made.blocks())
    if form.weights == "int4" or form.weights == "int8":
        blocks = rounded_blocks(model, blocks, _BITS[form.weights])
    halves = form.weights if form.weights == "f16" or form.weights == "bf16" else None
    dims = cache_shape(model)
    shape = CacheShape(*dims)
    onnx = onnx_of_model(model, blocks, dims, halves, form.dtype, long=form.long)
    sizes = {}
    if form.rows is not None:  # kernels of known sizes for steps
        names = zip(names_of_dims(onnx), (form.batches, (1,), (1,), (form.rows,)), strict=True)
        sizes = {name: DynamicDim(0, None, n) for name, n in names}
    step = fixed(onnx, {"dim_params": sizes})
    assert isinstance(step, ProgramIR)
    with step.ctx:
        set_distinct(step.main(), KEEP)
    del model, blocks, onnx
    program_key = None
    if options.target != "ref":  # numpy has no code to keep
        program_key = program_cache_key(step, options, backend_of(options))
    found = compile(step, options=options)
    keep(key, program_key, shape)
    return found, shape
