"""Which values a scheduled module has, which positions hold the same value, and which values share a buffer.

A *slot* is an instruction's result or a part of it (an element of a tuple, at any depth). Instructions that only pass
on what they are given (tuples, elements of tuples, bitcasts, the second halves of async pairs, calls) put one value in
several slots. Loops, branches and updates in place make several values share one buffer. The rules follow XLA's
dataflow and alias analyses (xla/hlo/analysis/hlo_dataflow_analysis.h).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import attributes
from hlotrace.hlo.call_graph import ASYNC, BODY, BRANCH, CALLED, CONDITION, FUSION, CallGraph
from hlotrace.hlo.schedule import flattened_schedule

if TYPE_CHECKING:
    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape import Shape

_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{([\d,\s]*)\}")
_ALIASING = re.compile(r"output_to_operand_aliasing=\{((?:[^{}]|\{[^{}]*\})*)\}")
_THROUGH = frozenset({"bitcast", "opt-barrier", "domain", "add-dependency", "async-update"})
_INSIDE = frozenset({"bitcast", "copy", "convert", "reshape"})
"""What may stand between a fused update in place and the parameter that it updates."""

_FIRST_ELEMENT = frozenset({"copy-done", "recv-done"})


class _Sets:
    """Disjoint sets of slots; the representative is the slot that others were joined to."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))

    def find(self, slot: int) -> int:
        """The representative of a slot's set."""
        parent = self.parent
        while parent[slot] != slot:
            parent[slot] = parent[parent[slot]]
            slot = parent[slot]
        return slot

    def join(self, slot: int, to: int) -> None:
        """Put the set of `slot` into that of `to`."""
        self.parent[self.find(slot)] = self.find(to)


class Dataflow:
    """The values and buffers of a scheduled module.

    Attributes:
        order: the flattened schedule.
        position: for each instruction its place in it, -1 for none.
        values: slots that hold the same value; the representative is where it is defined.
        buffers: of the values' representatives, those that share a buffer.
        slot_row: for each slot its instruction. Of an instruction the first slot is the whole result.
    """

    def __init__(self, hlo: HloModule, graph: CallGraph) -> None:
        self.hlo = hlo
        self.order = flattened_schedule(hlo, graph)
        self.position = np.full(hlo.instruction_count, -1, np.int64)
        self.position[self.order] = np.arange(len(self.order))
        parts = [_parts(shape) for shape in hlo.shapes]
        self._indices = [index for index, _ in parts]
        self._shapes = [shapes for _, shapes in parts]
        sizes = np.array([len(shapes) for shapes in self._shapes] or [0])[hlo.shape]
        sizes[self.position < 0] = 0
        self.slot: list[int] = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        self.slot_row = np.repeat(np.arange(hlo.instruction_count), sizes)
        self.values = _Sets(self.slot[-1])
        self._shared: list[tuple[int, int]] = []
        self._opcodes = [hlo.opcodes[number] for number in hlo.opcode.tolist()]
        self._called_start = hlo.called_start.tolist()
        self._called = hlo.called.tolist()
        self._roles = graph.role.tolist()
        self._raw = hlo.raw_attributes
        for computation in graph.order.tolist():
            for row in range(hlo.computation_start[computation], hlo.computation_start[computation + 1]):
                if self.position[row] >= 0:
                    self._link(row)
        self._donate()
        self.buffers = _Sets(self.slot[-1])
        for one, other in self._shared:
            self.buffers.join(self.values.find(one), self.values.find(other))

    def slots(self, row: int) -> range:
        """The slots of an instruction's result and its parts."""
        return range(self.slot[row], self.slot[row + 1])

    def slot_shape(self, slot: int) -> Shape:
        """The shape of what stands in a slot."""
        row = int(self.slot_row[slot])
        return self._shapes[int(self.hlo.shape[row])][slot - self.slot[row]]

    def slot_index(self, slot: int) -> tuple[int, ...]:
        """Where in its instruction's result a slot stands."""
        row = int(self.slot_row[slot])
        return self._indices[int(self.hlo.shape[row])][slot - self.slot[row]]

    def operands(self, row: int) -> list[tuple[int, int]]:
        """First slot and number of slots of each operand that is scheduled; 0 slots where it is not."""
        hlo = self.hlo
        found = []
        for edge in range(hlo.operand_start[row], hlo.operand_start[row + 1]):
            source = int(hlo.operand[edge])
            if source < 0 or self.position[source] < 0:
                found.append((0, 0))
                continue
            element = int(hlo.operand_element[edge])
            found.append(self._element(source, () if element < 0 else (element,)))
        return found

    def parameters(self, computation: int) -> dict[int, int]:
        """The row of each of a computation's parameters, by number."""
        rows = range(self.hlo.computation_start[computation], self.hlo.computation_start[computation + 1])
        numbers = self.hlo.parameter_number
        return {int(numbers[row]): row for row in rows if numbers[row] >= 0}

    def _element(self, row: int, index: tuple[int, ...]) -> tuple[int, int]:
        """First slot and number of slots of a part of a result; 0 slots where there is no such part."""
        indices = self._indices[self.hlo.shape[row]]
        for at, candidate in enumerate(indices):
            if candidate == index:
                depth = len(index)
                inside = 1
                while at + inside < len(indices) and indices[at + inside][:depth] == index:
                    inside += 1
                return self.slot[row] + at, inside
        return 0, 0

    def _forward(self, to: tuple[int, int], source: tuple[int, int]) -> None:
        for step in range(min(to[1], source[1])):
            self.values.join(to[0] + step, source[0] + step)

    def _share(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        self._shared += [(one[0] + step, other[0] + step) for step in range(min(one[1], other[1]))]

    def _whole(self, row: int) -> tuple[int, int]:
        return self.slot[row], self.slot[row + 1] - self.slot[row]

    def _root(self, computation: int) -> tuple[int, int]:
        row = int(self.hlo.computation_root[computation])
        return self._whole(row) if row >= 0 else (0, 0)

    def _calls(self, row: int, role: int) -> list[int]:
        edges = range(self._called_start[row], self._called_start[row + 1])
        return [self._called[edge] for edge in edges if self._roles[edge] == role and self._called[edge] >= 0]

    def _link(self, row: int) -> None:
        """Say where an instruction's slots have their values from."""
        opcode = self._opcodes[row]
        if opcode == "tuple":
            for number, operand in enumerate(self.operands(row)):
                self._forward(self._element(row, (number,)), operand)
        elif opcode == "get-tuple-element":
            self._link_element(row)
        elif opcode in _THROUGH:
            self._forward(self._whole(row), self.operands(row)[0])
        elif opcode == "while":
            self._link_while(row)
        elif opcode == "call":
            for computation in self._calls(row, CALLED):
                self._link_call(row, computation, self.operands(row))
        elif opcode == "conditional":
            self._link_conditional(row)
        elif opcode.endswith("-done"):
            self._link_done(row, opcode)
        elif opcode.endswith("-start") or opcode == "send":
            self._link_start(row, opcode)
        self._link_in_place(row, opcode)

    def _link_element(self, row: int) -> None:
        source = int(self.hlo.operand[self.hlo.operand_start[row]])
        if source >= 0 and self.position[source] >= 0:
            index = attributes.number(self._raw[row].as_py(), "index", 0)
            self._forward(self._whole(row), self._element(source, (index,)))

    def _link_call(self, row: int, computation: int, operands: list[tuple[int, int]]) -> None:
        for number, parameter in self.parameters(computation).items():
            if number < len(operands):
                self._forward(self._whole(parameter), operands[number])
        self._forward(self._whole(row), self._root(computation))

    def _link_while(self, row: int) -> None:
        """A part of the loop's state that the body passes on unchanged stays one value; another shares its buffer."""
        (initial, count), result = self.operands(row)[0], self.slot[row]
        for body in self._calls(row, BODY):
            inside, root = self.parameters(body).get(0), self._root(body)
            if inside is None:
                continue
            inputs = [self.slot[inside]]
            for condition in self._calls(row, CONDITION):
                tested = self.parameters(condition).get(0)
                inputs += [self.slot[tested]] if tested is not None else []
            for step in range(min(count, root[1])):
                if self.values.find(root[0] + step) == self.values.find(inputs[0] + step):
                    for begin in [*inputs, result]:
                        self.values.join(begin + step, initial + step)
                else:
                    self._shared += [(begin + step, initial + step) for begin in [*inputs, result, root[0]]]

    def _link_conditional(self, row: int) -> None:
        operands = self.operands(row)
        branches = self._calls(row, BRANCH)
        for number, branch in enumerate(branches):
            parameter = self.parameters(branch).get(0)
            if parameter is not None and number + 1 < len(operands):
                self._forward(self._whole(parameter), operands[number + 1])
            self._share(self._whole(row), self._root(branch))

    def _link_start(self, row: int, opcode: str) -> None:
        """The first element of an async start's result is what it was given, the second what it computes."""
        operands = self.operands(row)
        if opcode == "copy-start":
            self._forward(self._element(row, (1,)), operands[0])
            return
        given = self._element(row, (0,))
        nested = given[1] > 1
        for number, operand in enumerate(operands):
            to = self._element(row, (0, number)) if nested else given if number == 0 else (0, 0)
            if to[1] and self.slot_shape(to[0]).dims == self.slot_shape(operand[0]).dims:
                self._forward(to, operand)
        for computation in self._calls(row, ASYNC):
            for number, parameter in self.parameters(computation).items():
                if number < len(operands):
                    self._forward(self._whole(parameter), operands[number])
            self._forward(self._element(row, (1,)), self._root(computation))

    def _link_done(self, row: int, opcode: str) -> None:
        edge = self.hlo.operand_start[row]
        source = int(self.hlo.operand[edge])
        if source < 0 or self.position[source] < 0 or self.hlo.operand_element[edge] >= 0:
            return
        if self.hlo.shape[source] == self.hlo.shape[row]:
            self._forward(self._whole(row), self._whole(source))
        elif opcode == "recv-done":
            self._forward(self._element(row, (0,)), self._element(source, (0,)))
        elif opcode != "send-done":
            self._forward(self._whole(row), self._element(source, (0,) if opcode in _FIRST_ELEMENT else (1,)))

    def _link_in_place(self, row: int, opcode: str) -> None:
        """Results that must stand where an operand stood."""
        operands = self.operands(row)
        if opcode == "dynamic-update-slice":
            self._share(self._whole(row), operands[0])
            return
        if opcode not in ("fusion", "custom-call", "async-start"):
            return
        stated = _ALIASING.search(self._raw[row].as_py())
        for output, number, inner in _ALIAS.findall(stated[1]) if stated else ():
            source = int(self.hlo.operand[self.hlo.operand_start[row] + int(number)])
            if int(number) < len(operands) and source >= 0 and self.position[source] >= 0:
                held = operands[int(number)] if not inner.strip() else self._element(source, _index(inner))
                self._share(self._element(row, _index(output)), held)
        for computation in self._calls(row, FUSION):
            for index, number in self._updates(computation):
                if number < len(operands):
                    self._share(self._element(row, index), operands[number])

    def _updates(self, computation: int) -> list[tuple[tuple[int, ...], int]]:
        """Results of a fused computation that update a parameter in place: where in the result, which parameter."""
        root = int(self.hlo.computation_root[computation])
        if root < 0:
            return []
        rows: list[tuple[tuple[int, ...], int]] = [((), root)]
        if self._opcodes[root] == "tuple":
            edges = range(self.hlo.operand_start[root], self.hlo.operand_start[root + 1])
            rows = [((number,), int(self.hlo.operand[edge])) for number, edge in enumerate(edges)]
        found = [(index, self._updated_parameter(row)) for index, row in rows]
        return [(index, number) for index, number in found if number >= 0]

    def _updated_parameter(self, row: int) -> int:
        """The parameter that a fused row updates in place, -1 for none."""
        row = self._back(row, frozenset({"bitcast"}))
        if row < 0 or self._opcodes[row] != "dynamic-update-slice":
            return -1
        row = self._back(int(self.hlo.operand[self.hlo.operand_start[row]]), _INSIDE)
        return int(self.hlo.parameter_number[row]) if row >= 0 else -1

    def _back(self, row: int, passing: frozenset[str]) -> int:
        while row >= 0 and self._opcodes[row] in passing:
            row = int(self.hlo.operand[self.hlo.operand_start[row]])
        return row

    def _donate(self) -> None:
        """Parameters that the module's header gives to results."""
        root = int(self.hlo.computation_root[self.hlo.entry]) if self.hlo.entry >= 0 else -1
        if root < 0:
            return
        parameters = self.parameters(self.hlo.entry)
        for output, number, inner in _ALIAS.findall(self.hlo.attributes.get("input_output_alias", "")):
            if int(number) in parameters:
                held = self._element(parameters[int(number)], _index(inner))
                self._share(self._element(root, _index(output)), held)


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _parts(shape: Shape) -> tuple[list[tuple[int, ...]], list[Shape]]:
    """A shape and all that is nested in it, each before its own elements: where, and what."""
    indices: list[tuple[int, ...]] = [()]
    shapes = [shape]
    for number, element in enumerate(shape.elements if shape.is_tuple else ()):
        inner_indices, inner_shapes = _parts(element)
        indices += [(number, *index) for index in inner_indices]
        shapes += inner_shapes
    return indices, shapes
