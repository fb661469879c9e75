"""The flattened schedule: every instruction that is scheduled, in the order in which it first runs.

It is the numbering that XLA's live ranges and buffer assignment use. A computation's instructions follow each other
as written; those of a computation that control flow enters (a loop's condition, then its body; branches; calls; what
an async start runs) stand before the instruction that enters it. Fusions and reducers have no schedule of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _graph_kernels
from hlotrace.hlo.call_graph import REDUCER, CallGraph, call_graph
from hlotrace.hlo.module import CALL_ROLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

_NEVER, _IN_ORDER, _FIRST = range(3)
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
    graph = graph or call_graph(hlo)
    enters = hlo.by_opcode(_enters, bool)[graph.caller]
    turn = np.where(enters & (graph.role != REDUCER), _IN_ORDER, _NEVER)
    turn[hlo.called_role == _CONDITION] = _FIRST
    count = hlo.computation_count
    order = np.empty(hlo.instruction_count, np.int32)
    length = _graph_kernels.flatten(
        hlo.entry,
        hlo.computation_start,
        hlo.called_start,
        hlo.called,
        turn.astype(np.int32),
        np.zeros(count, np.uint8),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.zeros(hlo.instruction_count, np.uint8),
        order,
    )
    return order[:length]


def schedule_index(hlo: HloModule, graph: CallGraph | None = None) -> NDArray[np.int64]:
    """For each instruction its position in the flattened schedule; -1 where it has none."""
    positions = np.full(hlo.instruction_count, -1, np.int64)
    if is_scheduled(hlo):
        order = flattened_schedule(hlo, graph)
        positions[order] = np.arange(len(order))
    return positions


def _enters(opcode: str) -> bool:
    """Whether control flow enters what an opcode calls; any `…-start` that calls a computation is an async start."""
    return opcode in ("while", "call", "conditional") or opcode.endswith("-start")
