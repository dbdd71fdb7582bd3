"""Tests of PyTorch are collected where it is installed: `python tests/run.py torch`."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
