"""What each computation is for, who calls it, and how often it runs in one run of the module.

Counts multiply along the calls: a loop's body runs its trip count for each run of the loop, its condition once more.
Each branch of a conditional counts as if it were taken. What a fusion, a reducer or an async start calls counts as
often as the instruction that calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _graph_kernels
from hlotrace.hlo.call_graph import BODY, CONDITION, ENTRY, UNUSED
from hlotrace.hlo.trip_counts import trip_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.module import HloModule

UNKNOWN = _graph_kernels.UNKNOWN


@dataclass(frozen=True)
class Execution:
    """One row a computation; `executions` and `trips` are -1 where not known.

    Attributes:
        role: into `call_graph.ROLES`.
        caller: the first instruction that calls it, -1 for none.
        trips: of the loop whose body it is, -1 also where it is none.
        executions: runs in one run of the module, 0 where nothing calls it.
    """

    role: NDArray[np.int32]
    caller: NDArray[np.int32]
    trips: NDArray[np.int64]
    executions: NDArray[np.int64]


def execution(hlo: HloModule, graph: CallGraph) -> Execution:
    """Roles, callers and counts of all computations of `hlo`."""
    role = np.full(hlo.computation_count, UNUSED, np.int32)
    caller = np.full(hlo.computation_count, -1, np.int32)
    bodies = np.full(hlo.computation_count, UNKNOWN, np.int64)
    times = np.ones(len(hlo.called), np.int64)
    trips = trip_counts(hlo, graph)
    for edge in np.flatnonzero((graph.role == BODY) | (graph.role == CONDITION)).tolist():
        count = trips.get(int(graph.caller[edge]), UNKNOWN)
        times[edge] = count if count == UNKNOWN or graph.role[edge] == BODY else count + 1
    edges = np.flatnonzero(hlo.called >= 0)[::-1]  # the first caller is written last, and stays
    role[hlo.called[edges]] = graph.role[edges]
    caller[hlo.called[edges]] = graph.caller[edges]
    bodies[hlo.called[edges]] = np.where(graph.role[edges] == BODY, times[edges], UNKNOWN)
    if hlo.entry >= 0:
        role[hlo.entry], caller[hlo.entry] = ENTRY, -1
    runs = np.zeros(hlo.computation_count, np.int64)
    if hlo.entry < 0:
        runs[:] = UNKNOWN
    else:
        runs[hlo.entry] = 1
        _graph_kernels.executions(graph.order, hlo.computation_start, hlo.called_start, hlo.called, times, runs)
    return Execution(role, caller, bodies, runs)
