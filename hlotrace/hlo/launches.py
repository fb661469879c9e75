"""Which instructions a device is asked to start.

Instructions of the entry and of what it enters (loop bodies, branches, called computations) are launches, except those
that start nothing: parameters, constants, tuples, their elements and bitcasts; the second half of an async pair; and
loops, conditionals and calls, which what they enter stands for. A loop's condition starts nothing either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.call_graph import calling_rows, computation_of
from hlotrace.hlo.execution import BODY, BRANCH, CALLED, edge_roles

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

_STARTS_NOTHING = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
_ENTERS = frozenset({"while", "conditional", "call"})
_SECOND_HALVES = ("-done", "-update")


def launches(
    hlo: HloModule, applied: NDArray[np.int32], custom_call_target: pa.StringArray, order: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Which instructions of `hlo` are launches.

    Args:
        applied: for each instruction the computation that it applies as a fusion, -1 for none.
        custom_call_target: for each instruction, null where it is no custom call.
        order: the computations, each after what it calls.
    """
    starts = np.array([_starts(opcode) for opcode in hlo.opcodes], bool)[hlo.opcode]
    computation = computation_of(hlo)
    ends = np.zeros(hlo.computation_count + 1, bool)
    targets = custom_call_target.dictionary_encode()
    if "AsyncCollectiveDone" in targets.dictionary.to_pylist():
        done = targets.dictionary.to_pylist().index("AsyncCollectiveDone")
        ends[computation[targets.indices.fill_null(-1).to_numpy(zero_copy_only=False) == done]] = True
    result: NDArray[np.bool_] = starts & _entered(hlo, computation, order)[computation] & ~ends[applied]
    return result


def _starts(opcode: str) -> bool:
    return opcode not in _STARTS_NOTHING | _ENTERS and not opcode.endswith(_SECOND_HALVES)


def _entered(hlo: HloModule, computation: NDArray[np.int32], order: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which computations control flow reaches from the entry, conditions of loops left out."""
    reached = np.zeros(hlo.computation_count, bool)
    if hlo.entry < 0:
        return reached
    reached[hlo.entry] = True
    rows = calling_rows(hlo)
    enters = np.array([opcode in _ENTERS for opcode in hlo.opcodes], bool)[hlo.opcode[rows]]
    edges = np.flatnonzero(enters & np.isin(edge_roles(hlo, rows), (BODY, BRANCH, CALLED)) & (hlo.called >= 0))
    depth = np.empty(hlo.computation_count, np.int64)
    depth[order] = np.arange(hlo.computation_count)
    for edge in edges[np.argsort(-depth[computation[rows[edges]]])].tolist():
        reached[hlo.called[edge]] |= reached[computation[rows[edge]]]
    return reached
