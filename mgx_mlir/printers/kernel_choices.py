"""Prints the rule that lowers each kernel, and why the rules before it refused:
--explain-kernels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from mgx_mlir.programs.lowered import KernelChoice

# a string of a location, and the line and column behind the name of a file
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"((?::\d+){2})?')


def explanation(
    choices: Sequence[KernelChoice], located: Callable[[str], str] | None = None
) -> Iterator[str]:
    """Yield a line for each kernel, its refusals below it, and the totals of the rules.

    located: function that formats a position "file:line:column"; without it the source nodes are
    named.
    """
    for c in choices:
        where = shown(c.location, located)
        name = f"{c.name}, {c.part}" if c.part else c.name
        yield f"{name}: {c.rule}" + (f" ({where})" if where else "")
        for rule, reason in c.refusals:
            yield f"    not {rule}: {reason}"
    counts = Counter(c.rule for c in choices)
    total = ", ".join(f"{rule} {n}" for rule, n in counts.most_common())
    yield f"{len(choices)} kernels and ops: {total}" if choices else "no kernels"


def shown(location: str, located: Callable[[str], str] | None = None) -> str:
    """Return the names of a location's source nodes, or with `located` its positions, each once."""
    strings = _STRING.findall(location)
    names = [text for text, place in strings if not place]
    places = [text + place for text, place in strings if place]
    if located is None:
        return ", ".join(dict.fromkeys(names or places))
    return ", ".join(dict.fromkeys(map(located, places or names)))
