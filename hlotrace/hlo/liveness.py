"""Our own model of a scheduled module's memory, for modules that come without the compiler's side files.

Values live from the instruction that defines them to the last one that uses them; arguments and results to the end.
The numbering and the rules are those of XLA's live ranges (xla/hlo/utils/hlo_live_range.cc), the sizes those of the
layouts' tiles. What it lacks: tables of pointers, which a tuple has, take nothing; every buffer has a place of its own,
where the compiler may let values that do not live at once share one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.hlo._dataflow import Dataflow
from hlotrace.hlo.assignment import ALIAS, ARGUMENT, CONSTANT, OUTPUT, TEMP, BufferAssignment
from hlotrace.hlo.call_graph import BODY, call_graph
from hlotrace.hlo.live_ranges import LiveRanges
from hlotrace.hlo.schedule import is_scheduled
from hlotrace.hlo.tiling import allocated_bytes

if TYPE_CHECKING:
    from hlotrace.hlo.module import HloModule

_NO_USE = frozenset({"tuple", "domain"})
_USES_TOP = frozenset({"get-tuple-element", "copy"})


class Liveness:
    """Live ranges and buffers of a scheduled module, by our own model.

    Raises:
        ValueError: the module states no schedule, so nothing lives from one position to another.
    """

    def __init__(self, hlo: HloModule) -> None:
        if not is_scheduled(hlo):
            raise ValueError(f"module {hlo.name} states no schedule")
        self._hlo = hlo
        self._graph = call_graph(hlo)
        self._flow = Dataflow(hlo, self._graph)
        self._end = self._last_uses()
        self._defined = sorted(self._end)
        self._start = self._beginnings()
        self._part_in_time()

    def ranges(self) -> LiveRanges:
        """The live range of every value, tuples' own tables of pointers included, as XLA names them."""
        flow = self._flow
        rows = [int(flow.slot_row[slot]) for slot in self._defined]
        names = self._hlo.names.take(pa.array(rows, pa.int64())).to_pylist()
        schedule = self._hlo.names.take(pa.array(flow.order)).to_pylist()
        return LiveRanges(
            schedule=tuple(schedule),
            instruction=tuple(names),
            shape_index=tuple(_text(flow.slot_index(slot)) for slot in self._defined),
            start=np.array([self._start[slot] for slot in self._defined], np.int64),
            end=np.array([self._end[slot] for slot in self._defined], np.int64),
        )

    def assignment(self) -> BufferAssignment:
        """Every buffer as an allocation of its own; tuples' tables of pointers and tokens have none."""
        flow = self._flow
        groups: dict[int, list[int]] = {}
        for slot in self._defined:
            shape = flow.slot_shape(slot)
            if not shape.is_tuple and shape.dtype != "token":
                groups.setdefault(self._buffer(slot), []).append(slot)
        categories = self._categories()
        flat = [slot for group in groups.values() for slot in group]
        sizes = np.array([allocated_bytes(flow.slot_shape(slot)) or 0 for slot in flat], np.int64)
        starts = np.cumsum([0, *map(len, groups.values())])
        colors = [flow.slot_shape(group[0]).memory_space for group in groups.values()]
        rows = pa.array([int(flow.slot_row[slot]) for slot in flat], pa.int64())
        return BufferAssignment(
            index=np.arange(len(groups)),
            size=np.maximum.reduceat(sizes, starts[:-1]) if len(groups) else sizes,
            color=np.array(colors, np.int64),
            category=np.array([categories.get(buffer, TEMP) for buffer in groups], np.int32),
            parameter_number=np.full(len(groups), -1, np.int64),
            parameter_index=("",) * len(groups),
            value_start=starts,
            value_id=np.arange(len(flat)),
            instruction=self._hlo.names.take(rows),
            shape_index=pa.array([_text(flow.slot_index(slot)) for slot in flat], pa.string()),
            offset=np.zeros(len(flat), np.int64),
            value_size=sizes,
            shape=pa.array([flow.slot_shape(slot).text for slot in flat], pa.string()),
        )

    def _buffer(self, slot: int) -> int:
        return self._flow.buffers.find(self._flow.values.find(slot))

    def _categories(self) -> dict[int, int]:
        """The category of each buffer that is more than a temporary."""
        flow, hlo = self._flow, self._hlo
        inputs = {self._buffer(slot) for row in flow.parameters(hlo.entry).values() for slot in flow.slots(row)}
        root = int(hlo.computation_root[hlo.entry])
        outputs = {self._buffer(slot) for slot in flow.slots(root)} if root >= 0 else set()
        found = {
            self._buffer(flow.slot[row]): CONSTANT
            for row in np.flatnonzero(hlo.has_opcode("constant")).tolist()
            if flow.position[row] >= 0
        }
        found |= dict.fromkeys(outputs, OUTPUT)
        return found | {buffer: ALIAS if buffer in outputs else ARGUMENT for buffer in inputs}

    def _beginnings(self) -> dict[int, int]:
        """Where each value begins to live; a computation's parameters do as it begins."""
        flow, hlo = self._flow, self._hlo
        start = flow.position.copy()
        for row in np.flatnonzero((hlo.parameter_number >= 0) & (flow.position >= 0)).tolist():
            computation = int(self._graph.computation[row])
            rows = slice(hlo.computation_start[computation], hlo.computation_start[computation + 1])
            start[row] = flow.position[rows].min()
        return {slot: int(start[flow.slot_row[slot]]) for slot in self._defined}

    def _part_in_time(self) -> None:
        """Let the values of one buffer follow each other: one that begins while another lives takes over from it."""
        groups: dict[int, list[int]] = {}
        for slot in self._defined:
            groups.setdefault(self._buffer(slot), []).append(slot)
        for group in groups.values():
            group.sort(key=lambda slot: (self._start[slot], self._end[slot]))
            for earlier, later in pairwise(group):
                if self._end[earlier] >= self._start[later]:
                    self._end[later] = max(self._end[earlier], self._end[later])
                    self._end[earlier] = self._start[later]

    def _last_uses(self) -> dict[int, int]:
        """For each value, by the slot that defines it, the last position at which it lives."""
        flow, hlo = self._flow, self._hlo
        opcodes = [hlo.opcodes[number] for number in hlo.opcode.tolist()]
        find = flow.values.find
        end = {find(slot): int(flow.position[flow.slot_row[find(slot)]]) for slot in range(flow.slot[-1])}
        for row in flow.order.tolist():
            if opcodes[row] in _NO_USE:
                continue
            at = self._position_of_use(row, opcodes[row])
            for first, count in flow.operands(row):
                for slot in range(first, first + (min(count, 1) if opcodes[row] in _USES_TOP else count)):
                    value = find(slot)
                    end[value] = max(end[value], at)
        for computation in range(hlo.computation_count):
            self._keep_results(computation, end)
        self._keep_arguments(end)
        return end

    def _keep_arguments(self, end: dict[int, int]) -> None:
        """Arguments stay to the end of the module, unless a result takes their place."""
        flow, hlo = self._flow, self._hlo
        root = int(hlo.computation_root[hlo.entry])
        results = {self._buffer(slot) for slot in flow.slots(root)} if root >= 0 else set()
        for row in flow.parameters(hlo.entry).values():
            for slot in flow.slots(row):
                if self._buffer(slot) not in results:
                    end[flow.values.find(slot)] = len(flow.order)

    def _position_of_use(self, row: int, opcode: str) -> int:
        """Where a use counts: a loop uses what it is given as its body begins."""
        if opcode == "while":
            for edge in range(self._hlo.called_start[row], self._hlo.called_start[row + 1]):
                if self._graph.role[edge] == BODY:
                    parameter = self._flow.parameters(int(self._hlo.called[edge])).get(0)
                    if parameter is not None and self._flow.position[parameter] >= 0:
                        return int(self._flow.position[parameter])
        return int(self._flow.position[row])

    def _keep_results(self, computation: int, end: dict[int, int]) -> None:
        """What a computation gives lives to its end."""
        flow = self._flow
        root = int(self._hlo.computation_root[computation])
        first, last = self._hlo.computation_start[computation], self._hlo.computation_start[computation + 1]
        if root < 0 or flow.position[root] < 0:
            return
        over = int(flow.position[first:last].max()) + 1
        for slot in flow.slots(root):
            value = flow.values.find(slot)
            end[value] = max(end[value], over)


def _text(index: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, index)) + "}"
