"""Which computation calls which, in an order that lets figures be summed from the leaves up or the entry down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule


def callees_first(hlo: HloModule) -> NDArray[np.int32]:
    """The computations in an order in which each stands after all that it calls. A call of itself is passed over."""
    return _callees_first(hlo.computation_start, hlo.called_start, hlo.called)


def computation_of(hlo: HloModule) -> NDArray[np.int32]:
    """For each instruction its computation."""
    return np.repeat(np.arange(hlo.computation_count, dtype=np.int32), np.diff(hlo.computation_start))


def first_caller(hlo: HloModule) -> NDArray[np.int32]:
    """For each computation the entry of `hlo.called` that names it first; -1 where none does."""
    found = np.full(hlo.computation_count, -1, np.int32)
    edges = np.flatnonzero(hlo.called >= 0).astype(np.int32)[::-1]
    found[hlo.called[edges]] = edges
    return found


def calling_rows(hlo: HloModule) -> NDArray[np.int32]:
    """For each entry of `hlo.called` the instruction that calls."""
    return np.repeat(np.arange(hlo.instruction_count, dtype=np.int32), np.diff(hlo.called_start))


@njit(cache=True)
def _callees_first(
    computation_start: NDArray[np.int32], called_start: NDArray[np.int32], called: NDArray[np.int32]
) -> NDArray[np.int32]:
    count = len(computation_start) - 1
    order = np.empty(count, np.int32)
    length = 0
    seen = np.zeros(count, np.bool_)
    stack = np.empty(count, np.int32)
    edge_of = np.empty(count, np.int32)
    for root in range(count):
        if seen[root]:
            continue
        seen[root] = True
        depth = 0
        stack[0] = root
        edge_of[0] = called_start[computation_start[root]]
        while depth >= 0:
            computation = stack[depth]
            if edge_of[depth] == called_start[computation_start[computation + 1]]:
                order[length] = computation
                length += 1
                depth -= 1
                continue
            target = called[edge_of[depth]]
            edge_of[depth] += 1
            if target >= 0 and not seen[target]:
                seen[target] = True
                depth += 1
                stack[depth] = target
                edge_of[depth] = called_start[computation_start[target]]
    return order
