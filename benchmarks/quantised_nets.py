"""Times convolution nets that onnxruntime's quantize_static made against onnxruntime, in 8 bits.

A ResNet and a MobileNet of fewer blocks with drawn weights, calibrated on drawn images, in both of
onnxruntime's forms (QDQ, QOperator), by tensor and by output channel, batch fixed or open.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.op_models import OpModel
from benchmarks.single_ops import interleaved, session
from tests.models.made import Graph

CALIBRATION = 3  # images
FORMS = {"qdq": QuantFormat.QDQ, "qoperator": QuantFormat.QOperator}
SIGNS = {"u8": QuantType.QUInt8, "s8": QuantType.QInt8}
