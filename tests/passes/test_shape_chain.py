"""Maps of view chains: composed, and built again as a short chain, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgx_mlir.passes.analysis.view_chains import Step, extents, start, steps_for
from mgx_mlir.passes.simplify_reshapes.pointwise import inverse


def run(steps, x):
    for s in steps:
        if s.kind == "reshape":
            x = x.reshape(s.dims)
        elif s.kind == "transpose":
            x = x.transpose(s.dims)
        elif s.kind == "multibroadcast":
            x = np.broadcast_to(x, s.dims)
        else:
            x = np.broadcast_to(x.reshape(x.shape + (1,) * (len(s.dims) - s.axis - x.ndim)), s.dims)
    return x


@st.composite
def chains(draw):
    """Dims and steps that are valid on them."""
    dims = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=0, max_size=4)))
    have, steps = dims, []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(
            st.sampled_from(["reshape", "reshape", "transpose", "multibroadcast", "broadcast"])
        )
        if kind == "transpose":
            steps.append(Step(kind, tuple(draw(st.permutations(range(len(have)))))))
            have = tuple(have[p] for p in steps[-1].dims)
        elif kind == "multibroadcast":
            lead = draw(st.lists(st.sampled_from([1, 2]), max_size=1))
            have = (*lead, *(draw(st.sampled_from([1, 2, 3])) if d == 1 else d for d in have))
            steps.append(Step(kind, have))
        elif kind == "broadcast":
            lead, trail = (draw(st.lists(st.sampled_from([1, 2]), max_size=1)) for _ in range(2))
            have = (*lead, *have, *trail)
            steps.append(Step(kind, have, len(lead)))
        else:
            n, new = int(np.prod(have)), []
            while n > 1 and len(new) < 5:
                d = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
                new.append(d)
                n //= d
            have = (*new, n) if n > 1 or draw(st.booleans()) else tuple(new)
            steps.append(Step(kind, have))
        if np.prod(have) > 2000:
            break
    return dims, steps


@settings(max_examples=600, deadline=None)
@given(chains())
def test_the_short_chain_computes_the_same(chain):
    dims, steps = chain
    x = np.arange(np.prod(dims), dtype=int).reshape(dims)
    m = start(dims)
    for s in steps:
        m = s.apply(m)
        if m is None:
            return
    want = run(steps, x)
    assert extents(m) == want.shape
    short = steps_for(dims, m)
    np.testing.assert_array_equal(run(short, x), want)
    assert len(short) <= 5


@pytest.mark.parametrize(
    ("dims", "steps", "short"),
    [
        # back and forth is nothing
        ((2, 3), [Step("transpose", (1, 0)), Step("transpose", (1, 0))], []),
        ((2, 3), [Step("reshape", (6,)), Step("reshape", (2, 3))], []),
        # one reshape for many
        (
            (2, 3, 4),
            [Step("reshape", (6, 4)), Step("reshape", (24, 1))],
            [Step("reshape", (24, 1))],
        ),
        # transposes through a reshape that keeps the borders
        (
            (2, 3, 4),
            [Step("transpose", (2, 0, 1)), Step("reshape", (4, 6)), Step("transpose", (1, 0))],
            [Step("reshape", (6, 4))],
        ),
        ((1, 3), [Step("reshape", (3, 1)), Step("transpose", (1, 0))], []),
        # reshape to insert an axis, then broadcast
        (
            (3,),
            [Step("reshape", (1, 3)), Step("multibroadcast", (2, 3))],
            [Step("multibroadcast", (2, 3))],
        ),
        (
            (3,),
            [Step("reshape", (3, 1, 1)), Step("multibroadcast", (2, 3, 4, 5))],
            [Step("broadcast", (2, 3, 4, 5), 1)],
        ),
        # attention heads
        (
            (2, 8, 12),
            [
                Step("reshape", (2, 8, 3, 4)),
                Step("transpose", (0, 2, 1, 3)),
                Step("reshape", (6, 8, 4)),
            ],
            [
                Step("reshape", (2, 8, 3, 4)),
                Step("transpose", (0, 2, 1, 3)),
                Step("reshape", (6, 8, 4)),
            ],
        ),
    ],
)
def test_known_chains(dims, steps, short):
    m = start(dims)
    for s in steps:
        m = s.apply(m)
    assert steps_for(dims, m) == short


def test_a_reshape_across_a_transposed_border_has_no_map():
    m = Step("transpose", (1, 0)).apply(start((2, 3)))
    assert Step("reshape", (2, 3)).apply(m) is None
    assert Step("reshape", (6,)).apply(m) is not None


@settings(max_examples=200, deadline=None)
@given(chains())
def test_the_inverse_of_a_permutation_leads_back(chain):
    dims, steps = chain
    m = start(dims)
    for s in steps:
        m = None if m is None else s.apply(m)
    back = None if m is None else inverse(dims, m)
    if back is None:
        return
    x = np.arange(np.prod(dims, dtype=int)).reshape(dims)
    y = run(steps, x)
    np.testing.assert_array_equal(run(steps_for(y.shape, back), y), x)


def test_the_inverse_is_found_where_nothing_is_repeated():
    m = Step("transpose", (2, 0, 1)).apply(start((2, 3, 4)))
    m = Step("reshape", (8, 3)).apply(m)
    assert m is not None
    assert inverse((2, 3, 4), m) is not None
    assert inverse((2, 3), Step("multibroadcast", (5, 2, 3)).apply(start((2, 3)))) is None
