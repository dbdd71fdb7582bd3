"""onnxruntime as an exact oracle of 8-bit products, on every processor.

By default x86 processors without VNNI multiply u8 by i8 in pairs that saturate at 16 bits: hardly a
sum is right where the weights are large. An optimisation of graphs mends that for constant weights,
so that a session with few optimisations does not have it.
"""

from __future__ import annotations

from typing import Any

import onnxruntime


def exact_options() -> Any:
    """Session options of one thread without warnings; products with constant i8 are exact."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


__all__ = ["exact_options"]
