"""Keras models (.keras, .h5), exported by TensorFlow in a separate process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import FileError, ModelError
from mgx_mlir.core.files import noting_reads, temporary_folder
from mgx_mlir.frontends.files import open_regular

_EXPORT = """
import sys
import tensorflow as tf
model = tf.keras.models.load_model(sys.argv[1], compile=False)
if hasattr(model, "export"):  # Keras 3, whose export leaves random layers at work
    call = type(model).__call__
    type(model).__call__ = lambda *args, **given: call(*args, **{**given, "training": False})
    model.export(sys.argv[2], verbose=False)
else:
    tf.saved_model.save(model, sys.argv[2])
"""


@contextmanager
def exported(path: str) -> Iterator[str]:
    """Return the folder of a SavedModel that TensorFlow exports from a Keras file."""
    os.close(open_regular(path, "a Keras file"))
    if importlib.util.find_spec("tensorflow") is None:
        raise FileError(
            "a Keras file is read by TensorFlow, which is not installed",
            location=path,
            notes=["install tensorflow, or export the model: model.export('folder')"],
        )
    with temporary_folder("mgx-keras-") as folder:
        target = os.path.join(folder, "model")
        with interrupts.at_once():
            found = subprocess.run(
                [sys.executable, "-c", _EXPORT, path, target],
                capture_output=True,
                text=True,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
            )
        if found.returncode:
            lines = found.stderr.strip().splitlines() or ["no output"]
            raise ModelError(f"TensorFlow cannot export the model: {lines[-1]}", location=path)
        with noting_reads():  # the folder is temporary; the Keras file itself is recorded
            yield target
