"""The table of torch's operators, without torch: decisions, reasons, and functions that exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
from typing import Any

import pytest

from mgx_mlir.frontends.torch_routes import TABLE, table

DECISIONS: dict[str, Any] = json.loads(
    TABLE.with_name("torch_decisions.json").read_text(encoding="utf-8")
)
ROWS: dict[str, Any] = table()["operators"]
ROUTES = {"export", "decompose", "write", "translate", "refuse"}


def _is_decided(decision: str) -> bool:
    """Harmless with a reason of some words, or what becomes of a value that is no default."""
    reason = decision.removeprefix("harmless: ")
    return decision in ("decompose", "refuse") or (reason != decision and len(reason.split()) > 2)


def test_every_row_has_a_route() -> None:
    assert len(ROWS) > 900
    assert {r["route"] for r in ROWS.values()} <= ROUTES


def test_every_dropped_argument_is_decided() -> None:
    dropped = {(n, a): d for n, r in ROWS.items() for a, d in r.get("drops", {}).items()}
    assert len(dropped) > 100
    assert not {k: d for k, d in dropped.items() if not _is_decided(d)}
    assert not {a: d for a, d in DECISIONS["arguments"].items() if not _is_decided(d)}


def test_decisions_are_in_the_table() -> None:
    assert table()["arguments"] == DECISIONS["arguments"]
    for name, decision in DECISIONS["operators"].items():
        assert (
            ROWS[name].items() >= {k: v for k, v in decision.items() if k != "arguments"}.items()
        ), name
        assert ROWS[name].get("drops", {}).items() >= decision.get("arguments", {}).items(), name
    for name, row in ROWS.items():
        assert (
            row["route"] in ("export", "decompose", "translate") or name in DECISIONS["operators"]
        )


def _function(place: str) -> Any:
    module, _, name = place.partition(".")
    return getattr(importlib.import_module(f"mgx_mlir.frontends.{module}"), name)


@pytest.mark.parametrize("name", [n for n, r in ROWS.items() if r["route"] == "write"])
def test_what_is_written_out_has_a_function_that_needs_no_torch_to_import(name: str) -> None:
    function = _function(ROWS[name]["function"])
    assert inspect.getdoc(function)
    source = inspect.getsource(inspect.getmodule(function))  # type: ignore[arg-type]
    imports = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
    assert "torch" not in {a.name for n in imports for a in n.names}


def test_a_refused_operator_has_a_reason() -> None:
    refused = {n: r for n, r in ROWS.items() if r["route"] == "refuse"}
    assert all(r.get("why") for r in refused.values())
