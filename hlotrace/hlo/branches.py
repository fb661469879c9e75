"""Conditionals in totals: one run takes one branch, and totals take the costliest, as HloCostAnalysis does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.hlo.call_graph import BRANCH

if TYPE_CHECKING:
    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.execution import Execution
    from hlotrace.hlo.module import HloModule

_INSIDE, _NUMBER = "/", "#"


def branches(hlo: HloModule, graph: CallGraph, runs: Execution) -> pa.StringArray:
    """For each computation the branches it stands in, outermost first, as `conditional.3#1/conditional.9#0`."""
    found: list[str | None] = [None] * hlo.computation_count
    if BRANCH not in runs.role:
        return pa.array(found, pa.string())
    number = _branch_numbers(hlo, graph)
    for computation in graph.order[::-1].tolist():
        caller = int(runs.caller[computation])
        if caller < 0:
            continue
        outer = found[graph.computation[caller]]
        if runs.role[computation] != BRANCH:
            found[computation] = outer
            continue
        own = f"{hlo.names[caller].as_py()}{_NUMBER}{number[caller, computation]}"
        found[computation] = own if outer is None else f"{outer}{_INSIDE}{own}"
    return pa.array(found, pa.string())


def _branch_numbers(hlo: HloModule, graph: CallGraph) -> dict[tuple[int, int], int]:
    """Which branch of its caller a computation is, from 0."""
    edges = np.flatnonzero((graph.role == BRANCH) & (hlo.called >= 0))[::-1]  # of several the first stays
    first = hlo.called_start[graph.caller[edges]]
    return {
        (int(graph.caller[edge]), int(hlo.called[edge])): int(edge - start)
        for edge, start in zip(edges.tolist(), first.tolist(), strict=True)
    }


def costliest(amounts: Iterable[tuple[str | None, float]]) -> float:
    """The sum of amounts that stand in branches, of each conditional the branch in which the sum is largest."""
    totals: dict[tuple[str, ...], float] = {(): 0}
    for branch, amount in amounts:
        path = tuple(branch.split(_INSIDE)) if branch else ()
        totals[path] = totals.get(path, 0) + amount
    while len(totals) > 1:
        depth = max(map(len, totals))
        largest: dict[tuple[tuple[str, ...], str], float] = {}
        for path in [path for path in totals if len(path) == depth]:
            conditional = path[:-1], path[-1].rpartition(_NUMBER)[0]
            largest[conditional] = max(largest.get(conditional, 0), totals.pop(path))
        for (outer, _), amount in largest.items():
            totals[outer] = totals.get(outer, 0) + amount
    return totals[()]
