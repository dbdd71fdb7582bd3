"""Makes onnx.reference and onnxruntime raise in this process and in every Python it starts.

Put on PYTHONPATH for the workers of the backend suite: an answer that comes from another engine is
no answer of ours.
"""

import importlib.abc
import sys

BLOCKED = ("onnx.reference", "onnxruntime")


class Block(importlib.abc.MetaPathFinder):
    """A finder, first in line, that refuses the blocked packages."""

    def find_spec(self, fullname, path=None, target=None):
        if any(fullname == name or fullname.startswith(name + ".") for name in BLOCKED):
            raise ImportError(f"{fullname} is blocked while the backend suite runs")
        return None


sys.meta_path.insert(0, Block())
