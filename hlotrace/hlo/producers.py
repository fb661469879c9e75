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
        graph = call_graph(hlo)
        self._is_named = is_named.tolist()
        self._opcode = [hlo.opcodes[number] for number in hlo.opcode.tolist()]
        self._attributes = hlo.raw_attributes
        self._operand_start = hlo.operand_start.tolist()
        self._operands = list(zip(hlo.operand.tolist(), hlo.operand_element.tolist(), strict=True))
        self._parameter_number = hlo.parameter_number.tolist()
        self._computation = graph.computation.tolist()
        self._root = hlo.computation_root.tolist()
        self._called_start = hlo.called_start.tolist()
        self._called = list(zip(hlo.called.tolist(), graph.role.tolist(), strict=True))
        self._caller = graph.caller.tolist()

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
        opcode = self._opcode[row]
        if opcode == "parameter":
            yield from self._arguments(row, index)
        elif opcode == "tuple":
            yield from self._operand(row, index[0], index[1:]) if index else ()
        elif opcode == "get-tuple-element":
            element = attribute_number(self._attributes[row].as_py() or "", "index", 0)
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
        edge = self._operand_start[row] + number
        if edge < self._operand_start[row + 1]:
            source, element = self._operands[edge]
            yield source, (index if element < 0 else (element, *index))

    def _roots(self, row: int, role: int, index: tuple[int, ...]) -> Iterator[Part]:
        for called, called_as in self._called[self._called_start[row] : self._called_start[row + 1]]:
            if called_as == role and called >= 0:
                yield self._root[called], index

    def _arguments(self, row: int, index: tuple[int, ...]) -> Iterator[Part]:
        """What the callers of a computation give for one of its parameters."""
        number = self._parameter_number[row]
        for edge in self._calls.get(self._computation[row], ()):
            caller, role = self._caller[edge], self._called[edge][1]
            if role in (BODY, CONDITION):
                yield from self._roots(caller, BODY, index)
                yield from self._operand(caller, 0, index)
            elif role == BRANCH:
                yield from self._operand(caller, 1 + edge - self._called_start[caller], index)
            elif role in (FUSION, CALLED, ASYNC):
                yield from self._operand(caller, number, index)

    @cached_property
    def _calls(self) -> dict[int, list[int]]:
        """For each computation the places in `called` that name it."""
        calls: dict[int, list[int]] = {}
        for edge, (computation, _) in enumerate(self._called):
            calls.setdefault(computation, []).append(edge)
        return calls
