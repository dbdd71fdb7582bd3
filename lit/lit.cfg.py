"""lit configuration: runs from a clone in any environment that has the test extras.

lit -v lit            # everything
lit -v lit/opt        # one folder
MGX_LIT_FORK=0 lit -v lit     # a Python for each mgx-opt and filecheck, instead of forks of one
"""

# ruff: noqa: F821  (lit defines config and lit_config)
import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import lit.formats
import lit.util

config.name = "mgx_mlir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".onnxtxt"]
config.excludes = ["Inputs", "Output", "lit.cfg.py"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = os.environ.get(
    "MGX_LIT_OUTPUT", str(Path(config.test_source_root) / "Output")
)
config.maxIndividualTestTime = 120

# the tools of the interpreter that runs lit, from this checkout
python = shlex.quote(sys.executable)
root = str(Path(__file__).resolve().parent.parent)
paths = [root, os.environ.get("PYTHONPATH", "")]
config.environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
config.environment["MGX_NO_PROGRESS"] = "1"
config.environment["MGX_PLUGINS"] = "0"
for name in ("MGX_CACHE_DIR", "HOME", "XDG_CACHE_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]


def forks() -> str | None:
    """Start the server of mgx-opt and filecheck, which ends with lit; the command that asks it."""
    if os.environ.get("MGX_LIT_FORK") == "0" or not hasattr(os, "pidfd_open"):
        return None
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # a kernel without it, or a container that forbids it
        return None
    here = Path(config.test_source_root)
    folder = Path(tempfile.mkdtemp(prefix="mgx-lit-"))
    environment = {**os.environ, **config.environment}
    server = subprocess.Popen(
        [sys.executable, str(here / "fork_server.py"), str(folder / "socket")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )

    def end() -> None:
        server.communicate()  # closes its stdin
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    assert server.stdout is not None
    if not server.stdout.readline():
        return None  # the server prints the reason on stderr
    client = shlex.quote(str(here / "fork_client.py"))
    return f"{python} -I -S {client} {shlex.quote(str(folder / 'socket'))}"


forked = forks()
config.substitutions += [
    (r"\bmgx-opt\b", f"{forked} mgx-opt" if forked else f"{python} -m mgx_mlir.tools.opt"),
    (r"\bmgx-reduce\b", f"{python} -m mgx_mlir.tools.reduce"),
    (r"\bmgx-driver\b", f"{python} -m mgx_mlir.tools.driver"),
    (r"\bfilecheck\b", f"{forked} filecheck" if forked else f"{python} -m filecheck"),
    (r"%python", python),
    (r"%root", root),
]
config.available_features.add(f"python-{sys.version_info[0]}.{sys.version_info[1]}")

# RUN lines are Python processes: two at a time, unless -j says otherwise
if not any(a.startswith(("-j", "--workers")) for a in sys.argv):
    lit_config.parallelism_groups[""] = 2
    config.parallelism_group = ""
