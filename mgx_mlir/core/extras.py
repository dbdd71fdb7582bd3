"""The pip command that installs an extra's packages, for errors about a missing one."""

from __future__ import annotations

import re
import shlex

DISTRIBUTION = "mgx-mlir"
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_OWN = re.compile(r"mgx[-_]mlir\[([\w, -]+)\]")


def install_line(extra: str) -> str:
    """Return the pip command for the packages of an extra, by name.

    It works however this package was installed: from a clone, a wheel file or an index.
    """
    # lazy: slow to load, and rarely needed
    from importlib.metadata import PackageNotFoundError, requires

    try:
        every = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from a folder that is not installed
        every = []
    found = dict.fromkeys(_packages(extra, every))
    return "pip install " + (shlex.join(found) if found else f"'.[{extra}]' (in a clone)")


def _packages(extra: str, every: list[str]) -> list[str]:
    found: list[str] = []
    for text in every:
        package, _, marker = text.partition(";")
        named = _EXTRA.search(marker)
        if named is None or named[1] != extra:
            continue
        own = _OWN.match(package.strip())
        if own is None:
            found.append(package.strip().replace(" ", ""))
        else:
            for inner in own[1].split(","):
                found += _packages(inner.strip(), every)
    return found
