"""What each computation is for, who calls it, and how often it runs in one run of the module.

Counts multiply along the calls: a loop's body runs its trip count for each run of the loop, its condition once more.
Each branch of a conditional counts as if it were taken. What a fusion, a reducer or an async start calls counts as
often as the instruction that calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from hlotrace.hlo.call_graph import callees_first, calling_rows, first_caller
from hlotrace.hlo.module import CALL_ROLES
from hlotrace.hlo.trip_counts import trip_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

ROLES = ("entry", "fusion", "while_body", "while_condition", "branch", "reducer", "called", "async", "unused")
"""What `Execution.role` indexes."""

ENTRY, FUSION, BODY, CONDITION, BRANCH, REDUCER, CALLED, ASYNC, UNUSED = range(len(ROLES))

UNKNOWN = -1
_APPLY = ("map", "scatter", "sort", "select-and-scatter", "topk", "scan")
_MOST = 1 << 62

_BY_CALL_ROLE = {
    "body": BODY,
    "condition": CONDITION,
    "branch_computations": BRANCH,
    "true_computation": BRANCH,
    "false_computation": BRANCH,
    "select": REDUCER,
    "scatter": REDUCER,
    "comparator": REDUCER,
    "async": ASYNC,
}


@dataclass(frozen=True)
class Execution:
    """One row a computation; `executions` and `trips` are -1 where not known.

    Attributes:
        role: into ROLES.
        caller: the first instruction that calls it, -1 for none.
        trips: of the loop whose body it is, -1 also where it is none.
        executions: runs in one run of the module, 0 where nothing calls it.
    """

    role: NDArray[np.int32]
    caller: NDArray[np.int32]
    trips: NDArray[np.int64]
    executions: NDArray[np.int64]


def execution(hlo: HloModule) -> Execution:
    """Roles, callers and counts of all computations of `hlo`."""
    rows = calling_rows(hlo)
    edge_role = edge_roles(hlo, rows)
    first = first_caller(hlo)
    role = np.where(first >= 0, edge_role[first], UNUSED) if len(hlo.called) else np.full(len(first), UNUSED, np.int32)
    caller = np.where(first >= 0, rows[first], -1) if len(rows) else first
    if hlo.entry >= 0:
        role[hlo.entry], caller[hlo.entry] = ENTRY, -1
    times = np.ones(len(hlo.called), np.int64)
    loops = (edge_role == BODY) | (edge_role == CONDITION)
    trips = trip_counts(hlo)
    for edge in np.flatnonzero(loops).tolist():
        count = trips.get(int(rows[edge]), UNKNOWN)
        times[edge] = count if count == UNKNOWN or edge_role[edge] == BODY else count + 1
    bodies = np.full(hlo.computation_count, UNKNOWN, np.int64)
    of_body = np.flatnonzero(role == BODY)
    bodies[of_body] = times[first[of_body]]
    runs = _executions(callees_first(hlo), hlo.entry, hlo.computation_start, hlo.called_start, hlo.called, times)
    return Execution(role.astype(np.int32), caller.astype(np.int32), bodies, runs)


def edge_roles(hlo: HloModule, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """For each entry of `hlo.called` what the computation is to the instruction that calls it."""
    by_call = np.array([_BY_CALL_ROLE.get(name, UNUSED) for name in CALL_ROLES], np.int32)
    by_opcode = np.array([_role_for(opcode) for opcode in hlo.opcodes], np.int32)
    roles = by_call[hlo.called_role]
    roles = np.where(roles == UNUSED, by_opcode[hlo.opcode[rows]], roles)
    started = (roles == REDUCER) & (hlo.called_role == CALL_ROLES.index("calls"))
    return np.where(started, ASYNC, roles).astype(np.int32)


def _role_for(opcode: str) -> int:
    """What `calls`, `to_apply` and `called_computations` mean for an opcode."""
    if opcode == "fusion":
        return FUSION
    if opcode in ("call", "custom-call"):
        return CALLED
    if opcode.startswith(("all-reduce", "reduce")) or opcode in _APPLY:
        return REDUCER
    if opcode.endswith(("-start", "-update", "-done")):
        return ASYNC
    return BRANCH if opcode == "conditional" else CALLED


@njit(cache=True)
def _executions(
    order: NDArray[np.int32],
    entry: int,
    computation_start: NDArray[np.int32],
    called_start: NDArray[np.int32],
    called: NDArray[np.int32],
    times: NDArray[np.int64],
) -> NDArray[np.int64]:
    runs = np.zeros(len(order), np.int64)
    if entry < 0:
        runs[:] = UNKNOWN
        return runs
    runs[entry] = 1
    for at in range(len(order) - 1, -1, -1):
        computation = order[at]
        own = runs[computation]
        if own == 0:
            continue
        first, last = called_start[computation_start[computation]], called_start[computation_start[computation + 1]]
        for edge in range(first, last):
            target = called[edge]
            if target < 0 or runs[target] == UNKNOWN:
                continue
            if own == UNKNOWN or times[edge] == UNKNOWN or (times[edge] and own > _MOST // times[edge]):
                runs[target] = UNKNOWN
            else:
                runs[target] = min(runs[target] + own * times[edge], _MOST)
    return runs
