"""Signatures of importers: operands, attributes, groups of attributes, legacy attributes."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from mgx_mlir.core.dtypes import FLOAT, DType
from mgx_mlir.frontends.importer import GraphImporter
from mgx_mlir.frontends.onnx import registry
from mgx_mlir.frontends.signatures import REQUIRED, Attributes, signature_of
from mgx_mlir.frontends.tf import schema


@dataclass(frozen=True)
class Window(Attributes):
    """A group of attributes."""

    size: int
    stride: int = 1


def pool(
    b: object, node: object, x: object, y: object = None, *, window: Window, type_: DType = FLOAT
) -> Window:
    """Return the window."""
    return window


def test_a_group_counts_as_its_fields() -> None:
    found = signature_of(pool)
    assert (found.required, found.most) == (1, 2)
    assert found.attributes == {"size": REQUIRED, "stride": 1, "type": FLOAT}
    given = found.arguments({"size": 3, "stride": 2, "type": FLOAT})
    assert given == {"window": Window(3, 2), "type_": FLOAT}
    assert pool(None, None, None, **given) == Window(3, 2)


def test_a_dataclass_that_is_no_group_is_one_attribute() -> None:
    assert signature_of(pool).groups == {"window": Window}
    assert signature_of(pool).kinds["type"] == "DType"


def test_legacy_attributes_are_those_of_opset_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_OPS", {})

    @registry.onnx_op("Soft", since=6, legacy={"consumed_inputs": None})
    def soft(b: object, node: object, x: object, *, alpha: float = 1.0) -> object:
        return x

    old, new = registry.find("", "Soft", 5), registry.find("", "Soft", 6)
    assert old is not None
    assert new is not None
    assert (old.since, old.attributes) == (1, {"alpha": 1.0, "consumed_inputs": None})
    assert (new.since, new.attributes) == (6, {"alpha": 1.0})
    assert old.arguments({"alpha": 2.0, "consumed_inputs": [0]}) == {"alpha": 2.0}


def test_the_importers_share_one_walk() -> None:
    from mgx_mlir.frontends.onnx.importer import Importer as Onnx
    from mgx_mlir.frontends.tf.importer import Importer as Tf

    for importer in (Onnx, Tf):
        assert issubclass(importer, GraphImporter)
        for shared in ("program", "attempt", "check_operands", "folded", "stop"):
            assert shared not in vars(importer)


def test_the_stub_of_the_messages_is_their_table() -> None:
    stub = ast.parse(Path(schema.__file__).with_suffix(".pyi").read_text())
    classes = {c.name: c for c in stub.body if isinstance(c, ast.ClassDef)}
    stated = {n: c for n, c in classes.items() if not n.startswith("_")}
    assert set(stated) == set(schema._MESSAGES)
    for name, c in stated.items():
        fields = [
            f.target.id
            for f in c.body
            if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)
        ]
        assert fields == [f.name for f in getattr(schema, name).DESCRIPTOR.fields]
