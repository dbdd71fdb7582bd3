"""Two spellings of a pass's name: MIGraphX's, and that of pipelines."""

from __future__ import annotations

PREFIX = "mgx-"


def pipeline_name(name: str) -> str:
    """Return a pass's name in pipelines: `simplify_algebra` -> `mgx-simplify-algebra`."""
    return PREFIX + name.replace("_", "-")


def pass_name(text: str) -> str:
    """Return a pass's name in MIGraphX: `mgx-simplify-algebra` -> `simplify_algebra`."""
    return text.removeprefix(PREFIX).replace("-", "_")
