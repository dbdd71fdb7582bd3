#!/usr/bin/env bash
# A time limit that raises TimeoutError, Python's own class for it, is lost where its signal comes
# during an import: TimeoutError is an OSError, and importlib takes any OSError of its look at a
# source file as "no such file" and goes on with the import. The same limit with another class of
# exception comes out.
#
# Why it matters here: calls whose modules load lazily must hold signals back until an import has
# ended, and then run their handlers. Tests that interrupt drawn moments import beforehand what is
# not theirs.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check packaging==24.2

"$work/env/bin/python" - <<'PY'
import signal
import sys
from importlib import import_module

import packaging


class Limit(Exception):
    pass


def outcome(kind, module):
    """Import a module; a signal whose handler raises comes while importlib looks at the file."""

    called = []

    def handler(number, frame):
        called.append(number)
        raise kind("the time is up")

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_name == "path_stats":
            sys.setprofile(None)
            signal.raise_signal(signal.SIGALRM)

    signal.signal(signal.SIGALRM, handler)
    sys.setprofile(profile)
    try:
        import_module(module)
    except kind:
        return "raised"
    finally:
        sys.setprofile(None)
    return "lost" if called else "no signal came"


print("Python", sys.version.split()[0], "packaging", packaging.__version__)
found = [outcome(TimeoutError, "packaging.markers"), outcome(Limit, "packaging.metadata")]
print("TimeoutError of a handler in an import:", found[0])
print("another exception of a handler in an import:", found[1])
sys.exit(found != ["lost", "raised"])
PY
