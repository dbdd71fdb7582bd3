"""Make onnx.reference and onnxruntime raise in this process and in every Python it starts.

The folder is on PYTHONPATH of the backend suite's workers, so that no result comes from another
engine.
"""

import importlib.abc
import sys

BLOCKED = ("onnx.reference", "onnxruntime")


class Block(importlib.abc.MetaPathFinder):
    """Import finder, first in sys.meta_path, that refuses the blocked packages."""

    def find_spec(self, fullname, path=None, target=None):
        if any(fullname == name or fullname.startswith(name + ".") for name in BLOCKED):
            raise ImportError(f"{fullname} is blocked while the backend suite runs")
        return None


sys.meta_path.insert(0, Block())
