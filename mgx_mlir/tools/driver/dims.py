"""Dimensions on the command line: `@name d1 d2 ...` and MIGraphX's loose JSON of ranges."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.frontends.dims import Dim, DynamicDim

_COMMENT = re.compile(r"(#|//)[^\n]*")
_BARE = re.compile(r"([{,\[]\s*)([A-Za-z_]\w*)(\s*:)")


_EXAMPLES = {"--load-arg": "@x x.npy", "--dim-param": "@batch 4"}


def by_name(option: str, tokens: Sequence[str]) -> dict[str, list[str]]:
    """Parse `@a 1 2 @b 3` to {"a": ["1", "2"], "b": ["3"]}."""
    found: dict[str, list[str]] = {}
    for token in tokens:
        if token.startswith("@") and len(token) > 1:
            if token[1:] in found:
                raise UsageError(f"option '{option}' names '{token[1:]}' twice")
            last = found[token[1:]] = []
        elif not found:
            raise UsageError(
                f"option '{option}' expected @name first, got '{token}'",
                notes=[f"for example {option} {_EXAMPLES.get(option, '@x 1 3 224 224')}"],
            )
        else:
            last.append(token)
    return found


def static_dims(option: str, tokens: Sequence[str]) -> dict[str, list[int]]:
    """Parse the dims of named inputs, `@x 1 3 @y 2`; no number means rank 0."""
    out = {}
    for name, words in by_name(option, tokens).items():
        for word in words:
            if not word.isdecimal():
                raise UsageError(
                    f"option '{option}' expected dimensions after @{name}, got '{word}'"
                )
        out[name] = [int(w) for w in words]
    return out


def dynamic_dims(option: str, tokens: Sequence[str]) -> dict[str, list[Dim]]:
    """Parse the dims of named inputs, `@x "[{min:1, max:4}, 3]"`."""
    out = {}
    for name, words in by_name(option, tokens).items():
        value = _loose(option, " ".join(words))
        if not isinstance(value, list):
            raise UsageError(f"option '{option}' expected a list after @{name}, got {value!r}")
        out[name] = [_dim(option, d) for d in value]
    return out


def symbol_dims(option: str, tokens: Sequence[str]) -> dict[str, Dim]:
    """Parse the dims of named symbols, `@batch 4 @seq "{min:1, max:128}"`."""
    out = {}
    for name, words in by_name(option, tokens).items():
        value = _loose(option, " ".join(words))
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        out[name] = _dim(option, value)
    return out


def sizes(option: str, tokens: Sequence[str]) -> Sequence[int] | dict[str, Sequence[int]]:
    """Parse sizes of a dimension, `1 8` or with the dimension's name `@batch 1 8`."""
    if not tokens or not tokens[0].startswith("@"):
        return _sizes(option, tokens)
    return {name: _sizes(option, words) for name, words in by_name(option, tokens).items()}


def _sizes(option: str, words: Sequence[str]) -> list[int]:
    wrong = [w for w in words if not (w.isdecimal() and len(w) < 10 and int(w))]
    if wrong or not words or len(set(words)) < len(words):
        raise UsageError(
            f"option '{option}' expected different sizes from 1 on, got '{' '.join(words)}'",
            notes=[f"{option} 1 8, or {option} @batch 1 8 where several dimensions are dynamic"],
        )
    return list(map(int, words))


def one_dim(option: str, text: str) -> Dim:
    """Parse a dim, written by itself or as a list of one."""
    value = _loose(option, text)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return _dim(option, value)


def _loose(option: str, text: str) -> Any:
    """Parse JSON with comments, whose keys need no quotes."""
    plain = _COMMENT.sub("", text)
    try:
        return json.loads(_BARE.sub(r'\1"\2"\3', plain))
    except (ValueError, RecursionError):
        raise UsageError(
            f"option '{option}' cannot be read: '{text}'",
            notes=["a dimension is a number or {min:1, max:8, optimals:[1, 4]}"],
        ) from None


def _dim(option: str, value: object) -> Dim:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, Mapping):
        return _range(option, value)
    raise UsageError(f"option '{option}' expected a dimension, got {json.dumps(value)}")


def _range(option: str, value: Mapping[str, Any]) -> DynamicDim:
    entries = dict(value)
    inner = entries.pop("range", None)
    if isinstance(inner, Mapping):
        entries.update(inner)
    low, high = entries.pop("min", None), entries.pop("max", None)
    optimals = entries.pop("optimals", None) or []
    symbol = entries.pop("sym", None)
    fits = (
        isinstance(low, int)
        and isinstance(high, int | None)
        and isinstance(optimals, list)
        and all(isinstance(o, int) for o in optimals)
        and isinstance(symbol, str | None)
    )
    if not fits or entries:
        raise UsageError(
            f"option '{option}' expected {{min, max, optimals}}, got {json.dumps(dict(value))}"
        )
    return DynamicDim(low, high, tuple(optimals), symbol)
