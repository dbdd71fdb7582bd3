"""Templates of chats: Jinja in its sandbox, with limits of time and memory.

A template comes with a model's files, and is as little trusted as they are.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sized
from types import FrameType
from typing import Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text.packages import imported

_SECONDS = 10.0  # longest run; templates of models take milliseconds
_BYTES = 1 << 30  # most memory that the process may grow by meanwhile
_FREE = 0.05  # seconds without checks of memory
_MOST = 1 << 24  # elements of a repeated sequence, and bits of a power
_STATM = "/proc/self/statm"  # Linux alone has it
_PAGE = 4096  # bytes


def environment() -> Any:
    """Return Jinja's environment with the settings that templates of transformers expect."""
    sandbox: Any = imported("jinja2.sandbox").ImmutableSandboxedEnvironment

    class Bounded(sandbox):
        """A sandbox without products and powers of any size."""

        intercepted_binops = frozenset(["*", "**"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            check_size(operator, left, right)
            return super().call_binop(context, operator, left, right)

    made = Bounded(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _marks()]
    )

    def refuse(message: str) -> None:
        raise UsageError(message)

    def to_json(value: Any, ensure_ascii: bool = False, **more: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **more)

    def now(form: str) -> str:
        from datetime import datetime

        return datetime.now().strftime(form)

    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = now
    return made


def _marks() -> type:
    """Return Jinja's extension of the tags `generation` and `endgeneration`.

    They mark what a model writes, for its training, and print what is between them.
    """
    nodes: Any = imported("jinja2.nodes")
    extension: Any = imported("jinja2.ext").Extension

    class Marks(extension):
        tags = frozenset(["generation"])

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    return Marks


def check_size(operator: str, left: Any, right: Any) -> None:
    """Raise UsageError for a product or a power that may take all memory."""
    size = 0
    if operator == "**" and isinstance(left, int) and isinstance(right, int):
        size = left.bit_length() * right
    for a, b in ((left, right), (right, left)):
        if operator == "*" and isinstance(b, int) and isinstance(a, Sized):
            size = len(a) * b
    if size > _MOST:
        raise UsageError(f"a result of '{operator}' has more than {_MOST} elements")


def rendered(template: Any, values: Mapping[str, Any]) -> str:
    """Return the text of a compiled template. Raises UsageError beyond the limits.

    Other errors are the template's own, of any kind.
    """
    begin, before = time.monotonic(), _memory()

    def check(frame: FrameType, event: str, arg: Any) -> Any:
        passed = time.monotonic() - begin
        if passed > _SECONDS:
            raise UsageError(f"it ran for more than {_SECONDS:g} s")
        if passed > _FREE and _memory() - before > _BYTES:
            raise UsageError(f"it took more than {_BYTES >> 20} MiB of memory")
        return check

    traced = sys.gettrace()
    sys.settrace(check)  # traces this thread alone, line by line
    try:
        return str(template.render(**values))
    finally:
        sys.settrace(traced)


def _memory() -> int:
    """Return the bytes that the process holds, 0 where the system does not say it."""
    try:
        with open(_STATM, encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0
