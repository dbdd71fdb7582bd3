"""A kernel for Triton, which reads the source of a function in a file."""

import triton.language as tl


def added_sum(a, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(a + i, mask=i < n)
    tl.store(a + i, tl.sum(x, 0) + x, mask=i < n)
