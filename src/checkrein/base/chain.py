"""The chain that a policy makes of states: (I - P) x = b and its transpose, solved for as many b as are asked for."""

from typing import Any, Protocol

import numpy as np
import scipy  # its parts are loaded when first used
from scipy import sparse

from checkrein.base.arrays import FloatArray

DENSE_STATES = 1500  # up to here a dense factorisation is fastest
PRECISE = 1e-13  # relative residual of an iterative solution
MAX_SWEEPS = 2000


class Chain(Protocol):
    """A matrix I - P, where P (S, S) says where each state leads, times the continuation."""

    def solve(self, right: FloatArray) -> FloatArray:
        """Return x (S,) or (S, k) with (I - P) x = right."""
        ...

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """Return x (S,) or (S, k) with x (I - P) = right."""
        ...


def chain_of(moves: sparse.csr_array) -> Chain:
    """Return the chain of moves P (S, S): factorised where there are few states, else solved by iteration."""
    return DenseChain(moves) if moves.shape[0] <= DENSE_STATES else SparseChain(moves)


class DenseChain:
    """Factorised once."""

    def __init__(self, moves: sparse.csr_array) -> None:
        self.factors: Any = scipy.linalg.lu_factor(np.eye(moves.shape[0]) - moves.toarray())

    def solve(self, right: FloatArray) -> FloatArray:
        """(S,) or (S, k)."""
        return np.asarray(scipy.linalg.lu_solve(self.factors, right))

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """(S,) or (S, k)."""
        return np.asarray(scipy.linalg.lu_solve(self.factors, right, trans=1))


class SparseChain:
    """Solved by iteration, which random graphs do not fill in; factorised where that fails."""

    def __init__(self, moves: sparse.csr_array) -> None:
        self.matrix = sparse.eye_array(moves.shape[0], format="csr") - moves

    def solve(self, right: FloatArray) -> FloatArray:
        """(S,) or (S, k)."""
        return solve_sparse(self.matrix, right)

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """(S,) or (S, k)."""
        return solve_sparse(self.matrix.T, right)


def solve_sparse(matrix: sparse.csr_array | sparse.csc_array, right: FloatArray) -> FloatArray:
    """Solve for right (S,) or (S, k), column by column by iteration; factorise where that fails."""
    from scipy.sparse import linalg  # noqa: PLC0415  # slow to import

    if right.ndim == 1:
        return solve_sparse(matrix, right[:, None])[:, 0]
    solved = np.empty(right.shape)
    for column in range(right.shape[1]):
        solution, failed = linalg.bicgstab(matrix, right[:, column], rtol=PRECISE, maxiter=MAX_SWEEPS)
        residual = np.abs(matrix @ solution - right[:, column]).max()
        if failed or not residual <= 100 * PRECISE * (1 + np.abs(right[:, column]).max()):
            return np.asarray(linalg.splu(matrix.tocsc()).solve(right))
        solved[:, column] = solution
    return solved
