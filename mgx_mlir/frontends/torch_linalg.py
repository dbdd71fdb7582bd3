"""Matrix factorisations and linear solvers of torch, unrolled over the rows of a matrix.

Each takes its operator's own arguments. Sizes of matrices are static, and at most 64; batch dims
may be dynamic. Torch raises errors for singular matrices; here results are infinite or NaN, and
`info`, for operators that return it, is LAPACK's.
"""

from __future__ import annotations

import importlib
from typing import Any

from mgx_mlir.core.errors import UnsupportedModel

_MOST = 64  # largest matrix; each row is a step in the program, as for ONNX's Det


def inverse(a: Any, *, check_errors: bool = False) -> tuple[Any, Any]:
    """Return linalg.inv_ex: the inverse, and the index of a zero pivot."""
    factors, order, _, info = _lu("linalg_inv_ex", a)
    eye = _torch().eye(a.shape[-1], dtype=a.dtype).expand(a.shape)
    return _from_lu(factors, _rows(eye, order)), info


def plain_inverse(a: Any) -> Any:
    """Return linalg.inv, without the check for singular matrices."""
    return inverse(a)[0]


def plain_solution(a: Any, b: Any, *, left: bool = True) -> Any:
    """Return linalg.solve, without the check for singular matrices."""
    return solution(a, b, left=left)[0]


def solution(
    a: Any, b: Any, *, left: bool = True, check_errors: bool = False
) -> tuple[Any, Any, Any, Any]:
    """Return _linalg_solve_ex: the solution of a x = b, or x a = b, then a's factors."""
    torch = _torch()
    factors, order, pivots, info = _lu("linalg_solve_ex", a)
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    b = b.unsqueeze(-1) if vector else b
    if left:
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        b = b.expand(*batch, *b.shape[-2:])
        x = _from_lu(factors, _rows(b, order.expand(*batch, a.shape[-1])))
    else:
        b = b.expand(*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
        x = _from_transposed_lu(factors, order, b.mT).mT
    return (x.squeeze(-1) if vector else x), factors, pivots, info


def lu_factors(a: Any, *, pivot: bool = True, check_errors: bool = False) -> tuple[Any, Any, Any]:
    """Return linalg.lu_factor_ex: L and U in one matrix, the pivots, info."""
    factors, _, pivots, info = _lu("linalg_lu_factor_ex", a, pivot)
    return factors, pivots, info


def plain_lu_factors(a: Any, *, pivot: bool = True) -> tuple[Any, Any]:
    """Return linalg.lu_factor, without the check for singular matrices."""
    return lu_factors(a, pivot=pivot)[:2]


def lu(a: Any, *, pivot: bool = True) -> tuple[Any, Any, Any]:
    """Return linalg.lu: P, L and U with a = P L U."""
    factors, order, _, _ = _lu("linalg_lu", a, pivot)
    return _unpacked(factors, order)


def unpacked_lu(
    factors: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Any, Any, Any]:
    """Return lu_unpack: P, L and U from the result of lu_factor; unrequested ones are empty."""
    m, _ = _sizes("lu_unpack", factors)
    p, lower, upper = _unpacked(factors, _order_of(pivots, m))
    none = factors.new_zeros(0)
    lower, upper = (lower, upper) if unpack_data else (none, none)
    return (p if unpack_pivots else none), lower, upper


def _unpacked(factors: Any, order: Any) -> tuple[Any, Any, Any]:
    torch = _torch()
    m, n = factors.shape[-2:]
    least = min(m, n)
    lower = factors[..., :least].tril(-1) + torch.eye(m, least, dtype=factors.dtype)
    # row i of L U is row order[i] of the factored matrix
    places = order.unsqueeze(-2) == torch.arange(m).unsqueeze(-1)
    return places.to(factors.dtype), lower, factors[..., :least, :].triu()


def _order_of(pivots: Any, m: int) -> Any:
    """Return the order of rows after the exchanges in LAPACK's pivots."""
    at = _torch().arange(m)
    order = at.expand(*pivots.shape[:-1], m)
    for k in range(pivots.shape[-1]):
        other = pivots[..., k : k + 1].to(at.dtype) - 1
        order = order.gather(-1, _exchange(at, k, other))
    return order


def exponential(a: Any) -> Any:
    """Return linalg.matrix_exp: a Taylor series of a / 2^s, squared s times.

    The norm of a / 2^s is at most 1: the terms after the 18th are below 1e-17. Exponentials of
    norms beyond 2^20 are not finite in f64 unless a is far from normal.
    """
    torch = _torch()
    size = a.abs().sum(-2).amax(-1) if a.shape[-1] else a.sum((-2, -1))
    halvings = (
        torch.where(size > 1, size, 1).log2().ceil().clamp(max=20).unsqueeze(-1).unsqueeze(-1)
    )
    at = torch.arange(a.shape[-1])
    eye = (at.unsqueeze(-1) == at).to(a.dtype)
    a = a * torch.exp2(-halvings)
    found = eye + a / 18
    for k in range(17, 0, -1):
        found = eye + (a @ found) / k
    for k in range(20):
        found = torch.where(halvings > k, found @ found, found)
    return found


def sign_and_log_of_det(a: Any) -> tuple[Any, Any, Any, Any]:
    """Return _linalg_slogdet: the sign and the logarithm of |det|, then a's factors."""
    torch = _torch()
    factors, _, pivots, _ = _lu("linalg_slogdet", a)
    diagonal = factors.diagonal(dim1=-2, dim2=-1)
    swaps = (pivots != torch.arange(1, a.shape[-1] + 1)).sum(-1)
    sign = diagonal.sign().prod(-1) * (1 - 2 * (swaps % 2)).to(a.dtype)
    return sign, diagonal.abs().log().sum(-1), factors, pivots


def lu_solution(
    factors: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False
) -> Any:
    """Return linalg.lu_solve: the solution from the result of lu_factor."""
    torch = _torch()
    n = _size("linalg_lu_solve", factors)
    batch = torch.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    order, b = _order_of(pivots, n).expand(*batch, n), b.expand(*batch, *b.shape[-2:])
    given = b if left else b.mT
    if left != adjoint:
        x = _from_lu(factors, _rows(given, order))
    else:
        x = _from_transposed_lu(factors, order, given)
    return x if left else x.mT


def triangular_solution(
    a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Return linalg.solve_triangular; elements beyond the diagonal are not read."""
    _size("linalg_solve_triangular", a)
    if not left:
        return _substituted(a.mT, b.mT, not upper, unitriangular).mT
    return _substituted(a, b, upper, unitriangular)


def old_triangular_solution(
    b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Any, Any]:
    """Return torch.triangular_solve: the solution and a copy of the matrix."""
    _size("triangular_solve", a)
    given, up = (a.mT, not upper) if transpose else (a, upper)
    batch = _torch().broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _substituted(given, b, up, unitriangular), a.expand(*batch, *a.shape[-2:]).clone()


def cholesky(a: Any, *, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    """Return linalg.cholesky_ex: the factor, and the order of the first minor that is not
    positive.
    """
    torch = _torch()
    n = _size("linalg_cholesky_ex", a)
    a = a.mT if upper else a
    rows = torch.arange(n).unsqueeze(-1)
    info = torch.zeros(a.shape[:-2], dtype=torch.int32)
    columns = [torch.zeros_like(a[..., :0])]
    for k in range(n):
        pivot = a[..., k : k + 1, k : k + 1]
        bad = (pivot > 0).logical_not().squeeze(-1).squeeze(-1)
        info = torch.where(bad & (info == 0), k + 1, info)
        column = torch.where(rows < k, 0, a[..., k : k + 1] * pivot.rsqrt())
        a = a - column * column.mT
        columns.append(column)
    found = torch.cat(columns, -1)
    return (found.mT if upper else found), info.to(torch.int32)


def plain_cholesky(a: Any, upper: bool = False) -> Any:
    """Return linalg.cholesky or torch.cholesky, without the check for positive definiteness."""
    return cholesky(a, upper=upper)[0]


def cholesky_solution(b: Any, factor: Any, upper: bool = False) -> Any:
    """Return the solution of a x = b from a's Cholesky factor."""
    _size("cholesky_solve", factor)
    lower = factor.mT if upper else factor
    return _substituted(lower.mT, _substituted(lower, b, False, False), True, False)


def cholesky_inverse(factor: Any, upper: bool = False) -> Any:
    """Return the inverse of a matrix from its Cholesky factor."""
    n = _size("cholesky_inverse", factor)
    eye = _torch().eye(n, dtype=factor.dtype).expand(factor.shape)
    return cholesky_solution(eye, factor, upper)


def reflections(a: Any) -> tuple[Any, Any]:
    """Return geqrf: R with Householder vectors below its diagonal, and their factors."""
    torch = _torch()
    m, n = _sizes("geqrf", a)
    rows, columns = torch.arange(m).unsqueeze(-1), torch.arange(n)
    shares = [a[..., :0].sum(-2)]
    for k in range(min(m, n)):
        pivot = a[..., k : k + 1, k : k + 1]
        below = torch.where(rows > k, a[..., k : k + 1], 0)
        square = (below * below).sum(-2, keepdim=True)
        norm = (pivot * pivot + square).sqrt()
        end = torch.where(pivot < 0, norm, -norm)
        still = square == 0  # the column is already reduced
        share = torch.where(still, 0, (end - pivot) / torch.where(still, 1, end))
        vector = below / torch.where(still, 1, pivot - end)
        whole = torch.where(rows == k, 1, vector)
        a = torch.where(columns > k, a - share * whole * (whole.mT @ a), a)
        own = torch.where(rows == k, torch.where(still, pivot, end), vector)
        a = torch.where((columns == k) & (rows >= k), own, a)
        shares.append(share.squeeze(-1))
    return a, torch.cat(shares, -1)


def reflected(a: Any, shares: Any) -> Any:
    """Return linalg.householder_product: the first columns of the reflections' product."""
    m, n = _sizes("linalg_householder_product", a)
    eye = _torch().eye(m, n, dtype=a.dtype).expand(a.shape)
    return _product(a, shares, eye)


def reflected_other(a: Any, shares: Any, x: Any, left: bool = True, transpose: bool = False) -> Any:
    """Return ormqr: the product of reflections with x, or x with it."""
    _sizes("ormqr", a)
    if left:
        return _product(a, shares, x, transposed=transpose)
    return _product(a, shares, x.mT, transposed=not transpose).mT


def _product(a: Any, shares: Any, x: Any, *, transposed: bool = False) -> Any:
    """Return the product of reflections, the first one leftmost, times x."""
    torch = _torch()
    rows = torch.arange(a.shape[-2]).unsqueeze(-1)
    steps = range(shares.shape[-1])
    for k in steps if transposed else reversed(steps):
        vector = torch.where(rows > k, a[..., k : k + 1], torch.where(rows == k, 1, 0))
        vector = vector.to(a.dtype)
        x = x - shares[..., k : k + 1].unsqueeze(-1) * vector * (vector.mT @ x)
    return x


def qr(a: Any, mode: str = "reduced") -> tuple[Any, Any]:
    """Return linalg.qr: Q of orthonormal columns and R, with a = Q R."""
    torch = _torch()
    found, shares = reflections(a)
    m, n = a.shape[-2:]
    least = min(m, n)
    if mode == "r":
        return torch.zeros(0, dtype=a.dtype), found[..., :least, :].triu()
    width = m if mode == "complete" else least
    eye = torch.eye(m, width, dtype=a.dtype).expand(*a.shape[:-2], m, width)
    return _product(found, shares, eye), found[..., :width, :].triu()


def _lu(name: str, a: Any, pivot: bool = True) -> tuple[Any, Any, Any, Any]:
    """Return L and U in one matrix, the order of rows, LAPACK's pivots, and its info."""
    torch = _torch()
    m, n = _sizes(name, a)
    at = torch.arange(m)
    rows, columns = at.unsqueeze(-1), torch.arange(n)
    order = at.expand(*a.shape[:-2], m)
    info = torch.zeros(a.shape[:-2], dtype=torch.int32)
    pivots = [order[..., :0]]
    for k in range(min(m, n)):
        size = torch.where(at < k, -1, a[..., k].abs())
        best = size.argmax(-1, keepdim=True) if pivot else torch.full_like(order[..., :1], k)
        pivots.append(best + 1)
        places = _exchange(at, k, best)
        order = order.gather(-1, places)
        a = _rows(a, places)
        first = a[..., k : k + 1, k : k + 1]
        singular = first == 0
        info = torch.where(singular.squeeze(-1).squeeze(-1) & (info == 0), k + 1, info)
        share = a[..., k : k + 1] / torch.where(singular, 1, first)
        rest = torch.where(columns == k, share, a - share * a[..., k : k + 1, :])
        a = torch.where((rows > k) & (columns >= k), rest, a)
    return a, order, torch.cat(pivots, -1).to(torch.int32), info.to(torch.int32)


def _exchange(at: Any, k: int, other: Any) -> Any:
    """Return the row indices after row k was exchanged with another."""
    torch = _torch()
    return torch.where(at == k, other, torch.where(at == other, k, at))


def _rows(x: Any, places: Any) -> Any:
    """Return the rows of x in another order."""
    return x.gather(-2, places.unsqueeze(-1).expand(x.shape))


def _from_lu(factors: Any, b: Any) -> Any:
    return _substituted(factors, _substituted(factors, b, False, True), True, False)


def _from_transposed_lu(factors: Any, order: Any, b: Any) -> Any:
    """Return x of a^T x = b from a's LU factors; the row order is undone last."""
    x = _substituted(factors.mT, b, False, False)
    x = _substituted(factors.mT, x, True, True)
    return _rows(x, order.expand(*x.shape[:-1]).argsort(-1))


def _substituted(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    """Return x of a x = b for a triangular matrix, one row at a time."""
    torch = _torch()
    n = a.shape[-1]
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    b = b.expand(*batch, *b.shape[-2:])
    rows = torch.arange(n).unsqueeze(-1)
    found: list[Any] = []
    for k in reversed(range(n)) if upper else range(n):
        x = b[..., k : k + 1, :]
        x = x if unit else x / a[..., k : k + 1, k : k + 1]
        found.append(x)
        left = rows < k if upper else rows > k
        b = torch.where(left, b - a[..., k : k + 1] * x, b)
    if not found:
        return b.clone()
    return torch.cat(found[::-1] if upper else found, -2)


def _size(name: str, a: Any) -> int:
    return _sizes(name, a)[-1]


def _sizes(name: str, a: Any) -> tuple[int, int]:
    """Return the rows and columns of matrices. Raises UnsupportedModel if unknown or too large."""
    m, n = a.shape[-2:]
    if a.is_complex():
        raise UnsupportedModel(f"{name}: complex matrices")
    if not isinstance(m, int) or not isinstance(n, int):
        raise UnsupportedModel(f"{name}: matrices of dynamic size")
    if max(m, n) > _MOST:
        raise UnsupportedModel(f"{name}: matrices of more than {_MOST} rows or columns")
    return m, n


def _torch() -> Any:
    return importlib.import_module("torch")  # already imported: the program is torch's
