"""Which instructions a device is asked to start.

Instructions of the entry and of what it enters (loop bodies, branches, called computations) are launches, except those
that start nothing: parameters, constants, tuples, their elements and bitcasts; the second half of an async pair; and
loops, conditionals and calls, which what they enter stands for. A loop's condition starts nothing either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.call_graph import CONDITION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.custom_calls import Targets
    from hlotrace.hlo.module import HloModule

_STARTS_NOTHING = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
_ENTERS = frozenset({"while", "conditional", "call"})
_SECOND_HALVES = ("-done", "-update")


def launches(hlo: HloModule, targets: Targets, graph: CallGraph) -> NDArray[np.bool_]:
    """Which instructions of `hlo` are launches."""
    starts = hlo.by_opcode(_starts, bool)
    ends = np.zeros(hlo.computation_count + 1, bool)
    ends[graph.computation[targets.calls("AsyncCollectiveDone")]] = True
    result: NDArray[np.bool_] = starts & _entered(hlo, graph)[graph.computation] & ~ends[graph.applied]
    return result


def _starts(opcode: str) -> bool:
    return opcode not in _STARTS_NOTHING | _ENTERS and not opcode.endswith(_SECOND_HALVES)


def _entered(hlo: HloModule, graph: CallGraph) -> NDArray[np.bool_]:
    """Which computations control flow reaches from the entry, conditions of loops left out."""
    reached = np.zeros(hlo.computation_count, bool)
    if hlo.entry < 0:
        return reached
    reached[hlo.entry] = True
    enters = hlo.has_opcode(*_ENTERS)[graph.caller]
    edges = np.flatnonzero(enters & (graph.role != CONDITION) & (hlo.called >= 0))
    place = np.empty(hlo.computation_count, np.int64)
    place[graph.order] = np.arange(hlo.computation_count)
    around = graph.computation[graph.caller[edges]]
    for edge in np.argsort(-place[around]).tolist():
        reached[hlo.called[edges[edge]]] |= reached[around[edge]]
    return reached
