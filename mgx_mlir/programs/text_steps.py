"""Operators on strings that run before the program, in numpy, on a call's inputs.

A program computes with numbers. Operators from strings to strings, or to numbers, depend only on
the inputs. Their results are inputs of the program, hidden from the user.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field
from functools import cache, lru_cache
from typing import Any

import numpy as np

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass

STEPS = "migraphx.text_steps"  # function attribute: the steps as JSON
_MARKS = ("\x02", "\x03")  # marks that a Tokenizer with `mark` adds at both ends of a row
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7f", "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": "!-/:-@\\[-`{-~", "space": "\\t\\n\\v\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip


@dataclass(frozen=True)
class TextStep:
    """One operator: its name, the values that it reads and writes, and its attributes as JSON."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> TextStep:
        """Return the step that dataclasses.asdict wrote. ValueError for an unknown operator."""
        if row["op"] not in _STEPS:
            raise ValueError(f"unknown operator {row['op']}")
        names = (tuple(map(str, row["inputs"])), tuple(map(str, row["outputs"])))
        return TextStep(str(row["op"]), *names, dict(row["attributes"]))


def set_steps(function: ir.OpView, steps: Sequence[TextStep]) -> None:
    """Set the steps that run before an entry function."""
    if steps:
        text = json.dumps([asdict(s) for s in steps], ensure_ascii=True)
        function.attributes[STEPS] = ir.StringAttr.get(text)


def steps_of(function: ir.OpView) -> tuple[TextStep, ...]:
    """Return the steps that run before an entry function."""
    if STEPS not in function.attributes:
        return ()
    rows = json.loads(ir.StringAttr(function.attributes[STEPS]).value)
    return tuple(map(TextStep.from_json, rows))


@interrupts.held
def run_steps(steps: Sequence[TextStep], given: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Return the results of steps on the inputs that they read.

    Raises RunError, which names the operator, for values that it does not accept.
    """
    values: dict[str, np.ndarray] = {}
    for step in steps:
        for name in step.inputs:
            if name and name not in values:
                values[name] = _given(name, given[name])
        operands = [values[n] if n else None for n in step.inputs]
        try:
            made = _STEPS[step.op](*operands, **step.attributes)
        except (ValueError, IndexError, TypeError, OverflowError) as e:
            raise RunError(f"{step.op} of '{step.outputs[0]}': {e}") from None
        results: list[Any] = list(made) if isinstance(made, tuple) else [made]  # pyright: ignore
        values.update(zip(step.outputs, results, strict=False))
    return values


def sources(steps: Sequence[TextStep]) -> set[str]:
    """Return the model's inputs that steps read."""
    made = {o for s in steps for o in s.outputs}
    return {n for s in steps for n in s.inputs if n} - made


def _given(name: str, value: object) -> np.ndarray:
    array = np.asarray(value) if hasattr(value, "__array__") else np.array(value)
    if array.dtype.kind in "UT":
        return array.astype(object)
    if array.dtype.kind == "O":
        wrong = next((e for e in array.reshape(-1) if not isinstance(e, str)), None)
        if wrong is not None:
            raise RunError(f"input '{name}' expected strings, got {type(wrong).__name__}")
    return array


_STEPS: dict[str, Callable[..., Any]] = {}


def _step(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__.strip("_").title().replace("_", "")
    _STEPS[{"Tfidfvectorizer": "TfIdfVectorizer"}.get(name, name)] = function
    return function


def _each(function: Callable[[str], Any], x: np.ndarray, dtype: Any = object) -> np.ndarray:
    made = np.empty(x.size, dtype)
    made[:] = [function(s) for s in x.reshape(-1).tolist()]
    return made.reshape(x.shape)


# ---- moves of strings ----------------------------------------------------------------------------


@_step
def _constant(*, dtype: str, dims: Sequence[int], values: Sequence[Any]) -> np.ndarray:
    return np.array(values, object if dtype == "string" else dtype).reshape(tuple(dims))


@_step
def _identity(x: np.ndarray) -> np.ndarray:
    return x


@_step
def _reshape(x: np.ndarray, dims: np.ndarray, *, allowzero: int = 0) -> np.ndarray:
    kept = dims.tolist()
    if not allowzero:
        kept = [x.shape[i] if d == 0 else d for i, d in enumerate(kept)]
    return x.reshape(kept)


@_step
def _flatten(x: np.ndarray, *, axis: int = 1) -> np.ndarray:
    axis = axis + x.ndim if axis < 0 else axis
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    return x.reshape(rows, int(np.prod(x.shape[axis:], dtype=np.int64)))


@_step
def _squeeze(x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    return x.squeeze(None if axes is None else tuple(axes.tolist()))


@_step
def _unsqueeze(x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return np.expand_dims(x, tuple(axes.tolist()))


@_step
def _gather(x: np.ndarray, index: np.ndarray, *, axis: int = 0) -> np.ndarray:
    return np.take(x, index, axis)


@_step
def _concat(*xs: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate(xs, axis)


@_step
def _transpose(x: np.ndarray, *, perm: Sequence[int] | None = None) -> np.ndarray:
    return x.transpose(perm)


# ---- strings to strings
# ---------------------------------------------------------------------------


def _cased(text: str, action: str) -> str:
    """Change the case of each character separately, as the C library does."""
    if action == "NONE":
        return text
    change = str.lower if action == "LOWER" else str.upper
    if text.isascii():
        return change(text)
    return "".join(c2 if len(c2 := change(c)) == 1 else c for c in text)


def normalized(text: str, action: str) -> str:
    """Normalize a string as StringNormalizer does without stop words."""
    return _cased(text, action)


@_step
def _string_normalizer(
    x: np.ndarray,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    stopwords: Sequence[str] = (),
) -> np.ndarray:
    made = _each(lambda s: _cased(s, case_change_action), x)
    if not stopwords:
        return made
    if x.ndim != 1 and (x.ndim != 2 or x.shape[0] != 1):
        raise ValueError(f"expected one row of strings, got {list(x.shape)}")
    compared = "NONE" if is_case_sensitive else "LOWER"
    stop = {_cased(s, compared) for s in stopwords}
    words = zip(x.reshape(-1).tolist(), made.reshape(-1).tolist(), strict=True)
    kept = [new for old, new in words if _cased(old, compared) not in stop]
    found = np.array(kept or [""], object)
    return found if x.ndim == 1 else found[None]


@_step
def _string_concat(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.add(x.astype(object), y.astype(object)), object)


def _padded(rows: Sequence[Sequence[str]], dims: Sequence[int], fill: str) -> np.ndarray:
    most = max(map(len, rows), default=0)
    made = np.full((len(rows), most), fill, object)
    for row, words in zip(made, rows, strict=True):
        row[: len(words)] = words
    return made.reshape(*dims, most)


@_step
def _string_split(
    x: np.ndarray, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    most = -1 if maxsplit is None else maxsplit
    words = x.reshape(-1).tolist()
    if delimiter:
        rows: list[list[str]] = [s.split(delimiter, most) if s else [] for s in words]
    else:
        rows = [s.strip().split(None, most) for s in words]
    counts = np.array([len(r) for r in rows], np.int64).reshape(x.shape)
    return _padded(rows, x.shape, ""), counts


@lru_cache(64)
def pattern(text: str) -> re.Pattern[str]:
    """Convert a regular expression of RE2's syntax to Python's. Raises ValueError."""
    written = re.sub(r"\[:(\w+):\]", lambda m: _CLASSES.get(m[1], m[0]), text)
    written = re.sub(r"(?<!\\)((?:\\\\)*)\\z", r"\1\\Z", written)
    try:
        return re.compile(written, re.ASCII)
    except (re.error, RecursionError, OverflowError) as e:
        raise ValueError(f"the regular expression '{text}' is not supported: {e}") from None


@_step
def _regex_full_match(x: np.ndarray, *, pattern: str) -> np.ndarray:
    matches = _pattern(pattern).fullmatch
    return _each(lambda s: matches(s) is not None, x, np.bool_)


_pattern = pattern  # attributes of operators are also called `pattern`


@_step
def _tokenizer(
    x: np.ndarray,
    *,
    mark: int,
    pad_value: str,
    mincharnum: int = 1,
    separators: Sequence[str] | None = None,
    tokenexp: str | None = None,
) -> np.ndarray:
    if tokenexp is not None:
        expression = pattern(tokenexp)
        rows = [_matches(expression, s, mincharnum) for s in x.reshape(-1).tolist()]
    elif list(separators or ()) == [""]:
        rows = [list(s) for s in x.reshape(-1).tolist()]
    else:
        found = [pattern(s) for s in separators or ()]
        rows = [_separated(found, s, mincharnum) for s in x.reshape(-1).tolist()]
    if mark:
        rows = [[_MARKS[0], *r, _MARKS[1]] for r in rows]
    return _padded(rows, x.shape, pad_value)


def _matches(expression: re.Pattern[str], text: str, least: int) -> list[str]:
    """Return the matches that are long enough; after a shorter one, search from its second
    character on.
    """
    found: list[str] = []
    at = 0
    while (m := expression.search(text, at)) is not None:
        token = m[0]
        if token and len(token) >= least:
            found.append(token)
            at = m.end()
        else:
            at = m.start() + 1
        if at > len(text):
            break
    return found


def _separated(expressions: Sequence[re.Pattern[str]], text: str, least: int) -> list[str]:
    """Split by one expression after the other; drop parts that are too short."""
    row = [text]
    for expression in expressions:
        parts: list[str] = []
        for s in row:
            at = 0
            while at <= len(s) and (m := expression.search(s, at)) is not None:
                parts.append(s[at : m.start()])
                at = m.end() if m[0] else m.start() + 1
            parts.append(s[at:])
        row = [p for p in parts if len(p) >= least]
    return row


# ---- strings to numbers
# ---------------------------------------------------------------------------


@_step
def _cast(x: np.ndarray, *, to: str) -> np.ndarray:
    if to == "string":
        return x if x.dtype.kind == "O" else _each_number(x)
    if x.dtype.kind != "O":
        return x.astype(to)
    return _each(lambda s: number_of(s, to), x, np.dtype(to))


_INTEGER = re.compile(r"\s*[+-]?\d+", re.ASCII)
_FLOAT = re.compile(r"\s*[+-]?(nan|inf(inity)?|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)", re.ASCII | re.I)


def number_of(text: str, to: str) -> Any:
    """Parse the number at a string's begin, as Cast does. Raises ValueError."""
    kind = np.dtype(to)
    found = (_FLOAT if kind.kind == "f" else _INTEGER).match(text)
    if found is None:
        raise ValueError(f"expected a number, got '{text[:40]}'")
    return kind.type(float(found[0]) if kind.kind == "f" else int(found[0]))


def _each_number(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "iub":
        words = [str(int(v)) for v in x.reshape(-1).tolist()]
    else:
        words = [_float_text(float(v)) for v in x.reshape(-1)]
    made = np.empty(x.size, object)
    made[:] = words
    return made.reshape(x.shape)


def _float_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (np.inf, -np.inf):
        return "INF" if value > 0 else "-INF"
    return f"{value:.8g}"


@cache
def _grams(pool: tuple[str, ...], counts: tuple[int, ...], least: int, most: int) -> dict[Any, int]:
    """Return the counts of n-grams, by the tuple of their items."""
    found: dict[Any, int] = {}
    ends, number = [*counts[1:], len(pool)], 0
    for size, (begin, end) in enumerate(zip(counts, ends, strict=True), 1):
        for at in range(begin, end, size):
            if least <= size <= most:
                found[pool[at : at + size]] = number
            number += 1
    return found


@_step
def _tfidfvectorizer(
    x: np.ndarray,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_strings: Sequence[str],
    weights: Sequence[float] | None = None,
) -> np.ndarray:
    grams = _grams(tuple(pool_strings), tuple(ngram_counts), min_gram_length, max_gram_length)
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    out = np.zeros((len(rows), max(ngram_indexes, default=-1) + 1), np.float32)
    for row, words in zip(out, rows.tolist(), strict=True):
        counted = Counter[int]()
        for size in range(min_gram_length, max_gram_length + 1):
            for step in range(1, 2 if size == 1 else max_skip_count + 2):
                parts = [words[i * step :] for i in range(size)]
                counted.update(
                    n for g in zip(*parts, strict=False) if (n := grams.get(g)) is not None
                )
        for n, count in counted.items():
            row[ngram_indexes[n]] += count
    if mode == "IDF":
        out = np.minimum(out, np.float32(1))
    if mode != "TF" and weights:
        scales = np.ones(out.shape[1], np.float32)
        scales[list(ngram_indexes)] = np.array(weights, np.float32)
        out = out * scales
    return out[0] if x.ndim < 2 else out
