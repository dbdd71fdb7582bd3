"""Examples of every operator infer, verify, round-trip, evaluate and alias."""

import itertools
import re

import numpy as np
import pytest

from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.op import OPS, ViewOp
from mgx_mlir.core.operand_segments import asm, parse_module
from mgx_mlir.core.shapes import DYN, TensorType, compatible, standard_strides
from tests.support.ops import CONTEXT, Built, flat, type_of

CASES = [
    pytest.param(cls, operands, attributes, id=f"{name}-{i}")
    for name, cls in sorted(OPS.items())
    if hasattr(cls, "examples")  # test_completeness.py says which have none, and why
    for i, (operands, attributes) in enumerate(cls.examples())
]


@pytest.mark.parametrize(("cls", "operands", "attributes"), CASES)
def test_example(cls, operands, attributes):
    built = Built(cls, operands, attributes)
    check_printed(built)
    results = built.evaluate()
    if issubclass(cls, ViewOp):
        check_view(built, results[0])


def check_printed(built):
    """The printed form is read back as the same op; lit/dialect/forms.mlir lists the forms."""
    with CONTEXT:
        assert built.module.operation.verify()
        text = asm(built.module.operation)
        assert f'"migraphx.{built.cls.mnemonic}"' in text
        assert asm(parse_module(text, CONTEXT).operation) == text


def check_view(built, result):
    """A view's strides, laid over the first operand's buffer, show the result."""
    cls = built.cls
    o = cls.view(cls.split_operands(built.op), built.op.attributes)
    o.results = built.types
    strides = cls.strides(o, [standard_strides(a.shape) for a in built.arrays])
    assert len(strides) == result.ndim
    first = np.ascontiguousarray(built.arrays[0])
    if DYN in strides or not result.size or cls.mnemonic in ("load", "layout"):
        return
    offset = 0
    if cls.mnemonic == "slice":
        # the offset of the slice is not part of its strides
        index = np.arange(first.size).reshape(first.shape)
        attributes = {d.field: d.read(built.op.attributes) for d in cls.ATTRS.values()}
        arrays = iter(built.arrays[1:])
        rest = [next(arrays) if o.operands[g.name] else None for g in cls.OPERANDS[1:]]
        offset = int(cls.reference(index, *rest, **attributes).flat[0])
    seen = np.lib.stride_tricks.as_strided(
        first.reshape(-1)[offset:], result.shape, [s * first.itemsize for s in strides]
    )
    np.testing.assert_array_equal(seen, result)


@pytest.mark.parametrize(("cls", "operands", "attributes"), CASES)
def test_dynamic_dims(cls, operands, attributes):
    """With any one extent, or all, unknown, the result type still fits the true result."""
    arrays = flat(operands)
    if cls.mnemonic == "squeeze" and not attributes:
        pytest.skip("without axes only static extents of 1 are dropped: the rank differs")
    if cls.mnemonic == "reshape" and not arrays[0].size:
        pytest.skip("{?, 3} to {?, 6} is right for 0 rows alone, and is refused")
    truth = [type_of(a) for a in Built(cls, operands, attributes).evaluate()]
    places = [(i, axis) for i, a in enumerate(arrays) for axis in range(a.ndim)]
    for hidden in [*([p] for p in places), places]:
        types = []
        for i, a in enumerate(arrays):
            dims = [DYN if (i, axis) in hidden else d for axis, d in enumerate(a.shape)]
            types.append(TensorType(type_of(a).dtype, tuple(dims)))
        iterator = iter(types)
        groups = [
            None
            if g is None
            else [next(iterator) for _ in g]
            if isinstance(g, list)
            else next(iterator)
            for g in operands
        ]
        try:
            built = Built(cls, groups, attributes)
        except ShapeError as e:
            # a length that decides a rank, a condition's dims, those of packed weights
            if not re.search(r"expected (a )?(static|known|\d+ x \d+, got .*\?)", e.message):
                raise
            continue
        if hidden is places:
            check_printed(built)
        for have, want in zip(built.types, truth, strict=True):
            assert have.dtype is want.dtype
            assert have.rank == want.rank
            assert all(compatible(a, b) for a, b in itertools.zip_longest(have.dims, want.dims))
