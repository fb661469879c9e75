"""A scanned module before it becomes columns: tables of spans, to which names and rows can still be added."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_gather import lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.shape import Shape
    from hlotrace.parsers._hlo_arrays import Found, Ints

LINE = a.NAME_HASH
"""The column of `rows` that holds the instruction's line; while scanning it holds the hash of its name."""
C_LINE = a.C_PLACE
_LONGEST_INDENT = 1000


class Draft:
    """The tables of `Found`, with lines instead of places; spans past the text stand in `added`.

    Attributes:
        place: the file.
        state: what the scanner met.
        shapes, opcodes: the distinct ones.
    """

    def __init__(
        self, text: NDArray[np.uint8], found: Found, shapes: list[Shape], place: str, start: int, line: int
    ) -> None:
        self.text = text
        self.place = place
        self.state = found.state
        self.added = bytearray()
        self.rows, self.operands, self.calls = found.rows, found.operands, found.calls
        self.pieces, self.computations = found.pieces, found.computations
        self.shapes = shapes
        self.opcodes = [self.string(first, last) for first, last, _ in found.opcodes.tolist()]
        places = np.maximum.accumulate(np.maximum(self.rows[:, a.NAME], start))
        self.rows[:, LINE] = lines(text, places, start, line)
        self.computations[:, C_LINE] = lines(text, self.computations[:, a.C_PLACE], start, line)

    def string(self, start: int, end: int) -> str:
        """The text of a span."""
        if start < len(self.text):
            return self.text[start:end].tobytes().decode()
        return self.added[start - len(self.text) : end - len(self.text)].decode()

    def add(self, text: str) -> tuple[int, int]:
        """The span of a text that is added."""
        start = len(self.text) + len(self.added)
        self.added += text.encode()
        return start, len(self.text) + len(self.added)

    def where(self, row: int) -> str:
        """`place:line:column` of an instruction."""
        start = int(self.rows[row, a.NAME])
        before = self.text[max(start - _LONGEST_INDENT, 0) : start].tobytes() if 0 <= start < len(self.text) else b""
        column = len(before) - before.rfind(b"\n") if before else 1
        return f"{self.place}:{self.rows[row, LINE]}:{column}"

    def whole_text(self) -> NDArray[np.uint8]:
        """The text and what was added."""
        if not self.added:
            return self.text
        return np.concatenate([self.text, np.frombuffer(bytes(self.added), np.uint8)])

    @property
    def is_bare(self) -> bool:
        """Whether the instructions stood without a computation around them."""
        return bool(self.state[a.BARE])

    @cached_property
    def _shape_numbers(self) -> dict[str, int]:
        return {shape.text: number for number, shape in enumerate(self.shapes)}

    def shape_number(self, shape: Shape) -> int:
        """The number of a shape, which is added where it is new."""
        number = self._shape_numbers.setdefault(shape.text, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
        return number

    def opcode_number(self, opcode: str) -> int:
        """The number of an opcode, which is added where it is new."""
        if opcode not in self.opcodes:
            self.opcodes.append(opcode)
        return self.opcodes.index(opcode)

    def put_in_order(self) -> None:
        """Sort computations by where they end, and instructions, within theirs, by the same: callees stand first."""
        order = np.argsort(self.computations[:, a.C_DONE], kind="stable")
        rank = _inverse(order)
        self.computations = self.computations[order]
        self.rows[:, a.COMPUTATION] = rank[self.rows[:, a.COMPUTATION]]
        self.calls[:, a.STOP] = rank[self.calls[:, a.STOP]]
        rows = np.lexsort((self.rows[:, a.DONE], self.rows[:, a.COMPUTATION]))
        moved = _inverse(rows)
        self.rows = self.rows[rows]
        self.computations[:, a.C_ROOT] = moved[self.computations[:, a.C_ROOT]]
        resolved = self.operands[:, a.TARGET] >= 0
        self.operands[resolved, a.TARGET] = moved[self.operands[resolved, a.TARGET]]
        self.operands, self.calls, self.pieces = (
            _by_owner(table, moved) for table in (self.operands, self.calls, self.pieces)
        )

    def append(self, table: str, entries: Ints) -> None:
        """Add entries at the end of a table."""
        setattr(self, table, np.concatenate([getattr(self, table), entries]))


def _inverse(order: Ints) -> Ints:
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def _by_owner(table: Ints, moved: Ints) -> Ints:
    """A table whose owners have moved, sorted by them."""
    table[:, a.OWNER] = moved[table[:, a.OWNER]]
    return table[np.argsort(table[:, a.OWNER], kind="stable")]


class Owned:
    """Finds the entries of a table that an instruction owns."""

    def __init__(self, table: Ints) -> None:
        self._order = np.argsort(table[:, a.OWNER], kind="stable")
        self._owners = table[self._order, a.OWNER]

    def __call__(self, row: int) -> Ints:
        """The numbers of its entries, in their order."""
        first, last = np.searchsorted(self._owners, [row, row + 1])
        return self._order[first:last]
