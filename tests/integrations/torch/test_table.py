"""The table of torch's operators beside the installed libraries: what they drop is decided."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends import torch_routes, torch_scan
from mgx_mlir.frontends.objects import quiet
from tests import written

pytestmark = pytest.mark.slow
SPACES = ("aten", "prims", "quantized_decomposed", "torchvision")


def test_each_translation_has_a_row_and_each_dropped_argument_a_decision() -> None:
    """A newer release that drops another argument, or translates another operator, fails here."""
    rows = torch_routes.table()["operators"]
    general = torch_routes.table()["arguments"]
    missing, undecided = [], []
    for name in torch_scan.translations_of():
        if name.partition("::")[0] not in SPACES:
            continue
        if name not in rows:
            missing.append(name)
        elif rows[name]["route"] == "export":
            drops = rows[name].get("drops", {})
            _, dropped = torch_scan.arguments(name)
            undecided += [(name, a) for a in dropped if drops.get(a, general.get(a)) is None]
    assert not missing
    assert not undecided


def test_the_table_is_what_its_script_writes() -> None:
    """The releases that it is made with alone: others differ in rows."""
    if torch_routes.table()["made_with"] != torch_scan.installed():
        pytest.skip("the table is of other releases")
    with quiet():
        text = written.script("torch_routes").text()
    written.check(torch_routes.TABLE.name, text, "torch_routes", torch_routes.TABLE.parent)


# ---- the scan -----------------------------------------------------------------------------------


def _helper(x: Any, scale: float, unused: int) -> Any:
    return x * scale


_helper.__module__ = "onnxscript.example"


def _translation(
    x: Any, deleted: int, told: int, passed: int, kept: int, taken: float, asserted: int
) -> Any:
    del deleted
    if told != 0:
        warnings.warn("told is ignored", stacklevel=2)
    never = kept + 1  # noqa: F841
    assert asserted == 0
    scale = taken
    return _helper(x, scale, passed)


def test_the_scan_finds_what_decides_nothing() -> None:
    assert torch_scan.unread(_helper) == {"unused"}
    assert torch_scan.unread(_translation) == {"deleted", "told", "passed", "kept"}


def test_known_drops_of_the_library_are_found() -> None:
    assert "label_smoothing" in torch_scan.arguments("aten::cross_entropy_loss")[1]
    assert "quant_max" in torch_scan.arguments("quantized_decomposed::quantize_per_tensor")[1]
    read, dropped = torch_scan.arguments("aten::avg_pool2d")
    assert "ceil_mode" in read
    assert "divisor_override" in dropped


# ---- releases that the table is not of ----------------------------------------------------------


class Tall(torch.nn.Module):
    """A norm of groups, whose translation drops the name of a library."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.group_norm(x, 2)


def test_of_other_releases_the_translations_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument that nobody decided on is refused by name, unless it has its default."""
    exported = torch.export.export(Tall(), (torch.zeros(1, 4, 3),))
    table = {**torch_routes.table(), "made_with": {"torch": "0"}, "arguments": {}, "operators": {
        "aten::group_norm": {"route": "export"}
    }}  # fmt: skip
    monkeypatch.setattr(torch_routes, "table", lambda: table)
    torch_routes._dropped.cache_clear()
    try:
        (node,) = (n for n in exported.graph.nodes if "group_norm" in str(n.target))
        node.args = (*node.args[:5], True)
        torch_routes.refuse_dropped(exported)
        node.args = (*node.args[:5], False)
        with pytest.raises(
            UnsupportedModel,
            match=r"aten.group_norm.default: torch.onnx drops its 'cudnn_enabled' \(False\)",
        ):
            torch_routes.refuse_dropped(exported)
    finally:
        torch_routes._dropped.cache_clear()
