"""Fields of a request's JSON object: types, ranges, and unknown names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mgx_mlir.integrations.v2.errors import V2Error

_BIAS = 100  # OpenAI's largest bias of a token


class ApiError(V2Error):
    """An error answer in OpenAI's form: `param` is the field."""

    def __init__(
        self, message: str, status: int = 400, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, status)
        self.param, self.code = param, code


class Fields:
    """The fields of an object. Each is read once; `done` refuses fields that were not read.

    null is the same as a field that is missing. Errors: ApiError.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._left = {k: v for k, v in row.items() if v is not None}

    def take(self, name: str, default: Any = None) -> Any:
        """Return a field of any type."""
        return self._left.pop(name, default)

    def number(
        self, name: str, default: float, least: float, most: float, *, above: bool = False
    ) -> float:
        """Return a number from `least` to `most`; with `above`, larger than `least`."""
        found = self.take(name, default)
        right = isinstance(found, int | float) and not isinstance(found, bool)
        if not right or not least <= found <= most or (above and found == least):
            said = f"above {least:g} and at most {most:g}" if above else f"{least:g} to {most:g}"
            raise ApiError(f"'{name}' expected a number {said}, got {shown(found)}", param=name)
        return float(found)

    def integer(self, name: str, default: int | None, least: int, most: int) -> Any:
        """Return an integer from `least` to `most`."""
        found = self.take(name, default)
        if found is default:
            return default
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise ApiError(
                f"'{name}' expected an integer {least} to {most}, got {shown(found)}", param=name
            )
        return found

    def flag(self, name: str) -> bool:
        """Return true or false; false where it is missing."""
        found = self.take(name, False)
        if not isinstance(found, bool):
            raise ApiError(f"'{name}' expected true or false, got {shown(found)}", param=name)
        return found

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string. Errors: ApiError where it is missing, unless there is a default."""
        found = self.take(name, default)
        if not isinstance(found, str):
            raise ApiError(f"'{name}' expected a string, got {shown(found)}", param=name)
        return found

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """Return strings: one, or a list of at most `most`."""
        found = self.take(name, [])
        rows = [found] if isinstance(found, str) else found
        if not isinstance(rows, list) or not all(isinstance(x, str) and x for x in rows):
            raise ApiError(f"'{name}' expected strings, got {shown(found)}", param=name)
        if len(rows) > most:
            raise ApiError(f"'{name}' has {len(rows)} strings, {most} are the most", param=name)
        return tuple(rows)

    def biases(self, name: str, tokens: int) -> dict[int, float]:
        """Return numbers -100 to 100 by token, of an object whose keys are numbers of tokens."""
        found = self.take(name, {})
        if not isinstance(found, dict):
            raise ApiError(f"'{name}' expected an object, got {shown(found)}", param=name)
        rows = {}
        for key, bias in found.items():
            if not (key.isascii() and key.isdecimal() and len(key) < 20 and int(key) < tokens):
                raise ApiError(f"'{name}' expected tokens 0 to {tokens - 1}, got {shown(key)}",
                               param=name)  # fmt: skip
            right = isinstance(bias, int | float) and not isinstance(bias, bool)
            if not right or not -_BIAS <= bias <= _BIAS:
                raise ApiError(f"'{name}' expected numbers -{_BIAS} to {_BIAS}, got {shown(bias)}",
                               param=name)  # fmt: skip
            rows[int(key)] = float(bias)
        return rows

    def only(self, name: str, *allowed: Any, instead: str | None = None) -> None:
        """Refuse a field whose value asks for an unsupported feature; instead: a field that does
        the same.
        """
        found = self.take(name)
        if found is not None and found not in allowed:
            if instead is not None:
                raise ApiError(f"'{name}' is not supported, use '{instead}'", param=name)
            said = " or ".join(shown(x) for x in allowed)
            raise ApiError(f"'{name}' {shown(found)} is not supported, expected {said}", param=name)

    def rest(self) -> dict[str, Any]:
        """Return the fields that were not read."""
        return dict(self._left)

    def done(self) -> None:
        """Refuse fields that were not read."""
        if self._left:
            names = ", ".join(f"'{k[:60]}'" for k in sorted(self._left)[:8])
            raise ApiError(f"unknown fields: {names}", param=min(self._left)[:60])


def shown(value: object) -> str:
    """Return a value of a request as JSON, shortened."""
    words = {True: "true", False: "false"}
    text = words[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
