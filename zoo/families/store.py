"""Copies the models that CI checks into `stored/`, without names of source lines and the like.

python -m zoo.families.store DIR
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import onnx

STORED = Path(__file__).resolve().parents[2] / "tests/families/stored"
NAMES = (
    "bert.dynamo.18.dynamic",
    "bert_eager.ort_fused.17.dynamic",
    "gnn.script.17.dynamic",
    "gru_tagger_padded.script.17.dynamic",
    "llama.dynamo.18.dynamic",
    "lstm_tagger.script.17.dynamic",
    "resnet.qdq.17.dynamic",
    "t5_decoder.script.17.dynamic",
    "vae_decoder.dynamo.18.dynamic",
    "yolo.script.17.dynamic",
)


def main(folder: Path) -> None:
    STORED.mkdir(exist_ok=True)
    for name in NAMES:
        model = onnx.load(folder / f"{name}.onnx")
        model.doc_string = ""
        del model.metadata_props[:]
        del model.graph.metadata_props[:]
        del model.graph.value_info[:]
        for node in model.graph.node:
            node.doc_string = ""
            del node.metadata_props[:]
        onnx.save(model, STORED / f"{name}.onnx")
        for inputs in folder.glob(f"{name}.*.npz"):
            shutil.copy(inputs, STORED)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
