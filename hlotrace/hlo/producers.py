"""What produced a value that has no name of its own: copies, tuples, loops and calls hand on what others made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from hlotrace.hlo.attributes import number as attribute_number
from hlotrace.hlo.call_graph import ASYNC, BODY, BRANCH, CALLED, CONDITION, FUSION, call_graph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

Part = tuple[int, tuple[int, ...]]
"""An instruction's row, and where in its result."""

_MOVES = frozenset({"copy", "bitcast", "bitcast-convert", "reshape", "transpose", "slice", "dynamic-slice", "convert"})
_WHOLE = frozenset({"opt-barrier", "domain", "add-dependency", "async-update"})


class Producers:
    """Follows values of a module to what made them.

    Args:
        is_named: for each instruction whether it says where it is from: there the way ends.
    """

    def __init__(self, hlo: HloModule, is_named: NDArray[np.bool_]) -> None:
        self._hlo = hlo
        self._is_named = is_named
        self._graph = call_graph(hlo)

    def producer(self, row: int, index: tuple[int, ...]) -> int:
        """The first instruction with a name on the way back from a part of a result; -1 where there is none.

        What a loop's body makes of its state comes before what the loop begins with; state that it hands on as it is
        has only the latter.
        """
        seen: set[Part] = set()
        waiting: list[Part] = [(row, index)]
        while waiting:
            part = waiting.pop()
            if part in seen or part[0] < 0:
                continue
            seen.add(part)
            if self._is_named[part[0]]:
                return part[0]
            waiting += [*self._sources(*part)][::-1]
        return -1

    def _sources(self, row: int, index: tuple[int, ...]) -> Iterator[Part]:
        """Where a part of a result has its value from, the likeliest first."""
        opcode = self._hlo.opcodes[self._hlo.opcode[row]]
        if opcode == "parameter":
            yield from self._arguments(row, index)
        elif opcode == "tuple":
            yield from self._operand(row, index[0], index[1:]) if index else ()
        elif opcode == "get-tuple-element":
            element = attribute_number(self._hlo.raw_attributes[row].as_py() or "", "index", 0)
            yield from self._operand(row, 0, (element, *index))
        elif opcode == "while":
            yield from self._roots(row, BODY, index)
            yield from self._operand(row, 0, index)
        elif opcode in ("fusion", "call", "conditional"):
            yield from self._roots(row, {"fusion": FUSION, "call": CALLED}.get(opcode, BRANCH), index)
        elif opcode in _MOVES or opcode in _WHOLE:
            yield from self._operand(row, 0, index)
        elif opcode.endswith("-done"):
            yield from self._operand(row, 0, (0 if opcode == "copy-done" else 1, *index))
        elif opcode.endswith("-start"):
            yield from self._roots(row, ASYNC, index[1:])
            yield from self._operand(row, 0, ())

    def _operand(self, row: int, number: int, index: tuple[int, ...]) -> Iterator[Part]:
        hlo = self._hlo
        edge = int(hlo.operand_start[row]) + number
        if edge < hlo.operand_start[row + 1]:
            element = int(hlo.operand_element[edge])
            yield int(hlo.operand[edge]), (index if element < 0 else (element, *index))

    def _roots(self, row: int, role: int, index: tuple[int, ...]) -> Iterator[Part]:
        for edge in range(self._hlo.called_start[row], self._hlo.called_start[row + 1]):
            if self._graph.role[edge] == role and self._hlo.called[edge] >= 0:
                yield int(self._hlo.computation_root[self._hlo.called[edge]]), index

    def _arguments(self, row: int, index: tuple[int, ...]) -> Iterator[Part]:
        """What the callers of a computation give for one of its parameters."""
        number = int(self._hlo.parameter_number[row])
        for edge in self._calls.get(int(self._graph.computation[row]), ()):
            caller, role = int(self._graph.caller[edge]), self._graph.role[edge]
            if role in (BODY, CONDITION):
                yield from self._roots(caller, BODY, index)
                yield from self._operand(caller, 0, index)
            elif role == BRANCH:
                yield from self._operand(caller, 1 + edge - int(self._hlo.called_start[caller]), index)
            elif role in (FUSION, CALLED, ASYNC):
                yield from self._operand(caller, number, index)

    @cached_property
    def _calls(self) -> dict[int, list[int]]:
        """For each computation the places in `called` that name it."""
        calls: dict[int, list[int]] = {}
        for edge, computation in enumerate(self._hlo.called.tolist()):
            calls.setdefault(computation, []).append(edge)
        return calls
