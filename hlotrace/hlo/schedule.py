"""The flattened schedule: every instruction that is scheduled, in the order in which it first runs.

It is the numbering that XLA's live ranges and buffer assignment use. A computation's instructions follow each other
as written; those of a computation that control flow enters (a loop's condition, then its body; branches; calls; what
an async start runs) stand before the instruction that enters it. Fusions and reducers have no schedule of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from hlotrace.hlo.call_graph import REDUCER, CallGraph, call_graph
from hlotrace.hlo.module import CALL_ROLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

_NEVER, _IN_ORDER, _CONDITION_FIRST = 0, 1, 2
_CONDITION = CALL_ROLES.index("condition")


def is_scheduled(hlo: HloModule) -> bool:
    """Whether the module says that the order of its instructions is their schedule."""
    return hlo.attributes.get("is_scheduled") == "true"


def flattened_schedule(hlo: HloModule, graph: CallGraph | None = None) -> NDArray[np.int32]:
    """The instruction rows of `hlo` in the order of its flattened schedule; empty where it has no entry computation.

    It is meaningful for scheduled modules only (`is_scheduled`).
    """
    if hlo.entry < 0:
        return np.empty(0, np.int32)
    role = (graph or call_graph(hlo)).role
    called = np.where(role == REDUCER, np.int32(-1), hlo.called)
    enters = np.array([_enters(opcode) for opcode in hlo.opcodes], np.int32)
    return _flatten(hlo.entry, hlo.computation_start, enters[hlo.opcode], hlo.called_start, called, hlo.called_role)


def schedule_index(hlo: HloModule, graph: CallGraph | None = None) -> NDArray[np.int64]:
    """For each instruction its position in the flattened schedule; -1 where it has none."""
    positions = np.full(hlo.instruction_count, -1, np.int64)
    if is_scheduled(hlo):
        order = flattened_schedule(hlo, graph)
        positions[order] = np.arange(len(order))
    return positions


def _enters(opcode: str) -> int:
    """How control flow enters what an opcode calls; any `…-start` that calls a computation is an async start."""
    if opcode == "while":
        return _CONDITION_FIRST
    return _IN_ORDER if opcode in ("call", "conditional") or opcode.endswith("-start") else _NEVER


@njit(cache=True)
def _flatten(
    entry: int,
    computation_start: NDArray[np.int32],
    enters: NDArray[np.int32],
    called_start: NDArray[np.int32],
    called: NDArray[np.int32],
    called_role: NDArray[np.int32],
) -> NDArray[np.int32]:
    computations = len(computation_start) - 1
    order = np.empty(len(enters), np.int32)
    length = 0
    entered = np.zeros(computations, np.bool_)
    row_of = np.empty(computations, np.int32)
    end_of = np.empty(computations, np.int32)
    waits = np.zeros(len(enters), np.bool_)
    depth = 0
    entered[entry] = True
    row_of[0], end_of[0] = computation_start[entry], computation_start[entry + 1]
    while depth >= 0:
        row = row_of[depth]
        if row == end_of[depth]:
            depth -= 1
            continue
        if enters[row] != _NEVER and not waits[row]:
            waits[row] = True
            pushed = depth
            for turn in range(2):
                for edge in range(called_start[row + 1] - 1, called_start[row] - 1, -1):
                    target = called[edge]
                    last = enters[row] != _CONDITION_FIRST or called_role[edge] != _CONDITION
                    if target < 0 or entered[target] or last != (turn == 0):
                        continue
                    entered[target] = True
                    pushed += 1
                    row_of[pushed], end_of[pushed] = computation_start[target], computation_start[target + 1]
            if pushed > depth:
                depth = pushed
                continue
        order[length] = row
        length += 1
        row_of[depth] = row + 1
    return order[:length]
