"""cache: list, export, import and prune the compile cache."""

from __future__ import annotations

import time

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.targets.cache import Cache, default_cache, parse_size
from mgx_mlir.tools.driver.arguments import Arguments, Option
from mgx_mlir.tools.driver.options import HELP
from mgx_mlir.tools.driver.progress import say

ACTIONS = ("list", "export", "import", "prune")
USAGE = "list | export -o FILE | import -i FILE | prune"
DESCRIPTION = """
list prints a line per entry: its kind, size, days since its last use, key. export writes all
entries to a tar file, import adds those of one: entries are keyed by content, so that they fit on
every machine that compiles the same with the same versions. They hold machine code: import only
files that you trust. prune removes the least recently used entries until the cache is within the
limit."""
OPTIONS = (
    Option(("-o", "--output"), "export: the file to write", "FILE"),
    Option(("-i", "--input"), "import: the file to read", "FILE"),
    Option(
        ("--limit",), "prune: bytes that may stay, such as 2G (default: MGX_CACHE_LIMIT, or 10G)",
        "SIZE", parse=parse_size,
    ),
    HELP,
)  # fmt: skip
_OF = {"--output": "export", "--input": "import", "--limit": "prune"}


def run(args: Arguments) -> int:
    """Do what the word after `cache` says."""
    action = args.file
    if action not in ACTIONS:
        got = "nothing" if action is None else f"'{action}'"
        raise UsageError(f"expected one of {', '.join(ACTIONS)}, got {got}")
    for flag, of in _OF.items():
        if flag in args and action != of:
            raise UsageError(f"option '{flag}' is for cache {of}")
    store = default_cache()
    if store is None:
        raise FileError("there is no compile cache to use: it is off, or another user's")
    if action == "list":
        _list(store)
    elif action == "prune":
        store.limit = args.get("--limit", store.limit)
        before = store.size()
        removed = store.evict()
        print(f"removed {removed} entries, {(before - store.size()) / 1e6:.1f} MB")
    else:
        # start-up: only what the command asks for is loaded
        from mgx_mlir.targets.cache_archive import export_entries, import_entries

        flag = "--output" if action == "export" else "--input"
        path = args.get(flag)
        if path is None:
            raise UsageError(f"cache {action} expected a file, {flag} FILE")
        if action == "export":
            print(f"wrote {export_entries(store, path)} entries to {path}")
        else:
            added, known = import_entries(store, path)
            print(f"added {added} entries, {known} were there already")
    return 0


def _list(store: Cache) -> None:
    rows = sorted(store.entries(), key=lambda r: -r.used)
    for row in rows:
        days = max(time.time() - row.used, 0.0) / 86400
        print(f"{row.kind:8} {row.size / 1e6:10.3f} MB {days:8.1f} d  {row.key}")
    size = sum(r.size for r in rows)
    say(f"{len(rows)} entries, {size / 1e6:.1f} MB of {store.limit / 1e6:.0f} MB in {store.root}")
