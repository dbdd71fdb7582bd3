"""mgx-driver op: what is listed, and the defaults that are printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

import mgx_mlir as migraphx
from mgx_mlir.core.op import OPS
from mgx_mlir.tools.driver.commands.op import kernel_names
from tests.driver.conftest import Driver


def test_the_list(driver: Driver) -> None:
    ran = driver("op", "--list")
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines == sorted(set(ran.lines))
    assert ran.lines[:3] == ["@literal", "@param", "@return"]
    assert {"get_tuple_elem", "unknown:", "undefined", *OPS} - set(ran.lines) == {
        "literal", "yield", "unknown",  # printed as @literal, @return and unknown:NAME
    }  # fmt: skip
    assert {"cpu::convolution", "gpu::add", "ref::reshape", "ref::lstm"} <= set(ran.lines)
    # compiled programs have no views, no recurrent operators and nothing that is not lowered
    assert not {"cpu::reshape", "gpu::transpose", "cpu::lstm", "cpu::im2col"} & set(ran.lines)


def test_listed_kernels_are_those_of_compiled_programs(driver: Driver) -> None:
    """Every operator with an example, alone in a program: its kernel has a listed name."""
    listed = set(kernel_names())
    shown = set()
    for name, cls in OPS.items():
        for operands, attributes in getattr(cls, "examples", list)()[:1]:
            p = migraphx.program()
            m = p.get_main_module()
            flat = [a for o in operands for a in (o if isinstance(o, list | tuple) else [o])]
            args = [
                m.add_instruction(migraphx.op("undefined"), [])
                if a is None
                else m.add_literal(np.asarray(a))
                for a in flat
            ]
            m.add_instruction(migraphx.op(name, **attributes), args)
            p.compile(migraphx.get_target("ref"))
            shown |= set(re.findall(r"= (\w+::\w+)", repr(p)))
    assert len(shown) > 100
    assert shown <= listed


def test_the_defaults(driver: Driver) -> None:
    found = driver("op", "pooling").out
    assert found.startswith('pooling:\n{\n    "ceil_mode": false,\n    "count_include_pad": false,')
    values = json.loads(found.partition("\n")[2])
    assert list(values) == sorted(values)
    assert values["mode"] == 0  # enumerations are their numbers
    assert values["lengths"] == [1, 1]
    assert json.loads(driver("op", "convert").out.partition("\n")[2]) == {"target_type": 1}
    assert json.loads(driver("op", "transpose").out.partition("\n")[2]) == {"permutation": []}
    assert json.loads(driver("op", "quantizelinear").out.partition("\n")[2]) == {"out_type": None}
    assert driver("op", "cpu::add").out == "cpu::add:\n{}\n"
    assert driver("op", "@param").out == '@param:\n{\n    "parameter": ""\n}\n'


def test_wrong_names(driver: Driver, tmp_path: Path) -> None:
    ran = driver("op", "cpu::ad")
    assert (ran.status, ran.out) == (2, "")
    assert ran.errors[0] == "error: unknown operator 'cpu::ad'"
    assert driver("op", "literal").status == 2
