"""Small models of many families against onnxruntime: stored ones, and (slow) all that are exported.

The whole table is docs/data/model-families.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.families import check
from zoo.families import store

# kernels of two layers, so that lost fusions of dynamic dims are noticed. BERT has seven a layer:
# its rows become contiguous by facts that the pass that names sizes has learned
KERNELS = {"bert.dynamo.18.dynamic": 20, "llama.dynamo.18.dynamic": 34}


@pytest.mark.parametrize("name", store.NAMES)
def test_stored(name: str) -> None:
    """One program, every size; shapes are those of onnxruntime, the kept boxes of NMS included."""
    path = store.STORED / f"{name}.onnx"
    assert len(check.inputs_of(path)) == 2
    row = check.check(path)
    assert not row.failure
    assert row.error <= check.limit_of(name)
    assert row.kernels <= KERNELS.get(name, row.kernels)


def test_a_changed_weight_is_seen(tmp_path: Path) -> None:
    """The comparison can fail: one weight of the last layer with its sign changed is past it."""
    name = "gnn.script.17.dynamic"
    path = store.STORED / f"{name}.onnx"
    model = onnx.load(path)
    weight = next(t for t in model.graph.initializer if t.name == "head.weight")
    array = numpy_helper.to_array(weight).copy()
    array.flat[np.abs(array).argmax()] *= -1
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    (inputs, _) = check.inputs_of(path)
    onnx.save(model, tmp_path / path.name)
    changed = check.reference(tmp_path / path.name, inputs)
    assert check.error_of(changed, check.reference(path, inputs)) > check.limit_of(name)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("exporter", "opset"), [("script", 17), ("dynamo", 18)])
def test_exported(exporter: str, opset: int, dynamic: bool, tmp_path: Path) -> None:
    """Every family, from torch: hours on a small machine."""
    pytest.importorskip("torch")
    from zoo.families import export

    wrong = []
    for name in export.FAMILIES:
        path = export.write(name, exporter, opset, dynamic, tmp_path)
        row = check.check(path) if path else None
        if row is not None and not row.passed:
            wrong.append(f"{row.name}: {row.error:.1e} {row.failure}")
    assert not wrong, "\n".join(wrong)
