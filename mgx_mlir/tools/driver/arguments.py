"""The command line grammar: MIGraphX's rules for flags, values and greedy lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mgx_mlir.core.errors import UsageError
from mgx_mlir.rewrite.pipeline import did_you_mean


@dataclass(frozen=True)
class Option:
    """An option of a command.

    `value` is what follows it in the help (None: nothing). `many` "greedy" takes every token up
    to the next flag, "repeat" one comma-separated list each time it is given, "optional" the next
    word if `parse` takes it, else the value is True. `parse` makes the value of a token, raising
    ValueError with what was expected.
    """

    flags: tuple[str, ...]
    help: str
    value: str | None = None
    many: Literal["", "greedy", "repeat", "optional"] = ""
    parse: Callable[[str], Any] = str
    group: str = ""

    @property
    def key(self) -> str:
        """The name that values are kept under: the first long flag."""
        return next(f for f in self.flags if f.startswith("--"))


@dataclass
class Arguments:
    """A parsed command line: values by long flag, and the positional file.

    `compiled` gets the programs that the command compiles.
    """

    command: str
    values: dict[str, Any] = field(default_factory=dict)
    file: str | None = None
    compiled: list[Any] = field(default_factory=list)

    def __contains__(self, flag: str) -> bool:
        return flag in self.values

    def get(self, flag: str, default: object = None) -> Any:
        """Return the value of a flag, `default` where it was not given."""
        return self.values.get(flag, default)

    def only_one(self, *flags: str) -> str | None:
        """Return which of these flags was given, None for none. Errors: UsageError for several."""
        given = [f for f in flags if f in self.values]
        if len(given) > 1:
            raise UsageError(f"expected one of {', '.join(flags)}, got {' and '.join(given)}")
        return given[0] if given else None


def number(least: int) -> Callable[[str], int]:
    """Make a parser of integers from `least` on."""

    def parse(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if found < least:
            raise ValueError(f"an integer from {least} on")
        return found

    return parse


def tolerance(text: str) -> float:
    """Parse a float that is not negative, infinite or NaN."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ValueError("a number that is not negative")
    return found


def positive(text: str) -> float:
    """Parse a float above 0 that is finite."""
    try:
        found = tolerance(text)
    except ValueError:
        found = 0.0
    if not found:
        raise ValueError("a number above 0")
    return found


LEVELS = ("none", "error", "warn", "info", "debug", "trace")


def level(text: str) -> int:
    """Parse a log level: its name or its number."""
    if text in LEVELS:
        return LEVELS.index(text)
    if text.isdecimal() and int(text) < len(LEVELS):
        return int(text)
    raise ValueError(f"{', '.join(LEVELS)} or 0 to {len(LEVELS) - 1}")


def choice(*words: str) -> Callable[[str], str]:
    """Make a parser of one of some words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(" or ".join(words))
        return text

    return parse


def parse_arguments(
    command: str,
    tokens: Sequence[str],
    options: Sequence[Option],
    refused: Mapping[str, str],
) -> Arguments:
    """Parse the tokens after the command's name.

    `refused` are known flags that this command does not take, with the reason. A scalar given
    twice, a missing value, a second file and an unknown option raise UsageError.
    """
    return _Parser(command, tokens, options, refused).run()


class _Parser:
    def __init__(
        self,
        command: str,
        tokens: Sequence[str],
        options: Sequence[Option],
        refused: Mapping[str, str],
    ) -> None:
        self.known = {f: o for o in options for f in o.flags}
        self.refused = refused
        self.tokens = list(tokens)
        self.found = Arguments(command)
        self.last_list = ""

    def run(self) -> Arguments:
        at = 0
        while at < len(self.tokens):
            at = self._token(at)
        return self.found

    def _token(self, at: int) -> int:
        token = self.tokens[at]
        name, equals, attached = token.partition("=")
        if token in self.known:
            return self._option(self.known[token], token, at + 1, None)
        if equals and name in self.known:
            return self._option(self.known[name], name, at + 1, attached)
        if self._is_flag(name):
            raise self._unknown(name)
        if self.found.file is not None:
            raise UsageError(f"expected one input file, got '{self.found.file}' and '{token}'")
        self.found.file = token
        return at + 1

    def _is_flag(self, token: str) -> bool:
        if token in self.known or token in self.refused or token.startswith("--"):
            return True
        return len(token) > 1 and token[0] == "-" and not _is_number(token)

    def _unknown(self, name: str) -> UsageError:
        if name in self.refused:
            return UsageError(f"option '{name}' {self.refused[name]}")
        return UsageError(
            f"unknown option '{name}'",
            notes=did_you_mean(name, self.known)
            or [f"mgx-driver {self.found.command} --help lists the options"],
        )

    def _option(self, option: Option, name: str, at: int, attached: str | None) -> int:
        if option.value is None:
            if attached is not None:
                raise UsageError(f"option '{name}' takes no value, got '{attached}'")
            self.found.values[option.key] = True
            return at
        given = [] if attached is None else [attached]
        if option.many == "greedy":
            while at < len(self.tokens) and not self._ends_list(self.tokens[at]):
                given.append(self.tokens[at])
                at += 1
        elif attached is None and self._is_value(option, at):
            given.append(self.tokens[at])
            at += 1
        if not given and option.many != "optional":
            raise UsageError(f"option '{name}' expected {option.value}, got nothing")
        if option.many == "repeat":
            given = [part.strip() for part in given[0].split(",") if part.strip()]
        values = [_parsed(option, name, text) for text in given]
        if option.many in ("greedy", "repeat"):
            self.found.values.setdefault(option.key, []).extend(values)
        elif option.key in self.found.values:
            raise UsageError(f"option '{name}' is given twice")
        else:
            self.found.values[option.key] = values[0] if values else True
        return at

    def _is_value(self, option: Option, at: int) -> bool:
        """Return whether the word at an index is an option's value."""
        if at >= len(self.tokens) or self._ends_list(self.tokens[at]):
            return False
        return option.many != "optional" or _is_parsed(option, self.tokens[at])

    def _ends_list(self, token: str) -> bool:
        return self._is_flag(token.partition("=")[0])


def _parsed(option: Option, name: str, text: str) -> Any:
    try:
        return option.parse(text)
    except ValueError as e:
        raise UsageError(f"option '{name}' expected {e}, got '{text}'") from None


def _is_parsed(option: Option, text: str) -> bool:
    try:
        option.parse(text)
    except ValueError:
        return False
    return True


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True
