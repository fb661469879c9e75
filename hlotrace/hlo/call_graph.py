"""Which computation calls which, as what, and in an order that lets figures be summed up or handed down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _graph_kernels
from hlotrace.hlo.module import CALL_ROLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

ROLES = ("entry", "fusion", "while_body", "while_condition", "branch", "reducer", "called", "async", "unused")
"""What a computation is to the instruction that calls it."""

ENTRY, FUSION, BODY, CONDITION, BRANCH, REDUCER, CALLED, ASYNC, UNUSED = range(len(ROLES))

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
_ROLE_OF_CALL = np.array([_BY_CALL_ROLE.get(name, UNUSED) for name in CALL_ROLES], np.int32)
_CALLS = CALL_ROLES.index("calls")
_APPLY = frozenset({"map", "scatter", "sort", "select-and-scatter", "topk", "scan"})


@dataclass(frozen=True)
class CallGraph:
    """The calls of a module, one row an entry of `HloModule.called`, and what follows for its computations.

    Attributes:
        caller: the instruction that calls. role: into ROLES.
        order: the computations, each after all that it calls. A call of itself is passed over.
        computation: for each instruction the computation that it stands in.
        applied: for each instruction the computation that it runs as a part of itself, as a fusion and an async start
            do, and a call inside of what they run; -1 for others.
        in_kernel: for each computation whether it is part of an instruction: a fusion, async start or reduction.
    """

    caller: NDArray[np.int32]
    role: NDArray[np.int32]
    order: NDArray[np.int32]
    computation: NDArray[np.int32]
    applied: NDArray[np.int32]
    in_kernel: NDArray[np.bool_]


def call_graph(hlo: HloModule) -> CallGraph:
    """The calls of `hlo`."""
    caller = np.repeat(np.arange(hlo.instruction_count, dtype=np.int32), np.diff(hlo.called_start))
    role = _ROLE_OF_CALL[hlo.called_role]
    role = np.where(role == UNUSED, hlo.by_opcode(_role_for, np.int32)[caller], role)
    role[(role == REDUCER) & (hlo.called_role == _CALLS)] = ASYNC  # the short form of an async reduction
    computation = np.repeat(np.arange(hlo.computation_count, dtype=np.int32), np.diff(hlo.computation_start))
    known = hlo.called >= 0
    in_kernel = np.zeros(hlo.computation_count, bool)
    in_kernel[hlo.called[known & ((role == FUSION) | (role == ASYNC) | (role == REDUCER))]] = True
    while True:
        more = hlo.called[known & in_kernel[computation[caller]]]
        if in_kernel[more].all():
            break
        in_kernel[more] = True
    applies = known & ((role == FUSION) | (role == ASYNC))
    applies |= known & hlo.has_opcode("call")[caller] & in_kernel[computation[caller]]
    applied = np.full(hlo.instruction_count, -1, np.int32)
    applied[caller[applies]] = hlo.called[applies]
    return CallGraph(caller, role, _callees_first(hlo), computation, applied, in_kernel)


def _role_for(opcode: str) -> int:
    """What `calls`, `to_apply` and `called_computations` mean for an opcode."""
    if opcode == "fusion":
        return FUSION
    if opcode.startswith(("all-reduce", "reduce")) or opcode in _APPLY:
        return REDUCER
    if opcode.endswith(("-start", "-update", "-done")):
        return ASYNC
    return BRANCH if opcode == "conditional" else CALLED


def _callees_first(hlo: HloModule) -> NDArray[np.int32]:
    count = hlo.computation_count
    order, stack, edge_of = (np.empty(count, np.int32) for _ in range(3))
    seen = np.zeros(count, np.uint8)
    _graph_kernels.callees_first(hlo.computation_start, hlo.called_start, hlo.called, seen, stack, edge_of, order)
    return order
