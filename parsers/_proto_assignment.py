"""BufferAssignmentProto, read into a BufferAssignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.hlo.assignment import BufferAssignment, categorize
from hlotrace.parsers._wire import Message

if TYPE_CHECKING:
    from hlotrace.hlo.shape import Shape
    from hlotrace.parsers._proto_rows import ModuleRows


def read_assignment(proto: Message, rows: ModuleRows) -> BufferAssignment:
    """The allocations and values of a BufferAssignmentProto; `rows` are those of the module it belongs to.

    XLA calls an allocation that is neither parameter, result, constant nor thread-local a preallocated temporary.
    """
    values = {held.integer(1): held.message(3) for held in proto.messages(1)}
    allocations = list(proto.messages(3))
    assigned = [list(allocation.messages(9)) for allocation in allocations]
    problems: list[tuple[str, str, str]] = []
    places: list[tuple[str, str, str | None]] = []
    for allocation, held in zip(allocations, assigned, strict=True):
        for value in held:
            located = values.get(value.integer(1))
            if located is None:
                place = f"allocation {allocation.integer(1)}"
                problems.append((place, f"value {value.integer(1)} is not described", "its name and shape are missing"))
            places.append(_place(located, rows) if located is not None else ("", "{}", None))
    flat = [value for held in assigned for value in held]
    return BufferAssignment(
        index=_integers(allocations, 1),
        size=_integers(allocations, 2),
        color=_integers(allocations, 8),
        category=np.array([_category(item) for item in allocations], np.int32),
        parameter_number=np.array([item.integer(6) if item.integer(5) else -1 for item in allocations], np.int64),
        parameter_index=tuple(_index(item.integers(10)) if item.integer(5) else "" for item in allocations),
        value_start=np.cumsum([0, *map(len, assigned)], dtype=np.int64),
        value_id=_integers(flat, 1),
        instruction=pa.array([name for name, _, _ in places], pa.string()),
        shape_index=pa.array([index for _, index, _ in places], pa.string()),
        offset=_integers(flat, 2),
        value_size=_integers(flat, 3),
        shape=pa.array([shape for _, _, shape in places], pa.string()),
        problems=tuple(problems),
    )


def _integers(items: list[Message], number: int) -> np.ndarray:
    return np.array([item.integer(number) for item in items], np.int64)


def _category(allocation: Message) -> int:
    return categorize(
        parameter=bool(allocation.integer(5)),
        output=bool(allocation.integer(7)),
        thread_local=bool(allocation.integer(3)),
        constant=bool(allocation.integer(12)),
        preallocated=True,
    )


def _place(located: Message, rows: ModuleRows) -> tuple[str, str, str | None]:
    """Instruction, shape index and shape of a value; older protos name the instruction instead of numbering it."""
    row = rows.row_of.get(located.integer(4), -1) if 4 in located else -1
    index = located.integers(3)
    if row < 0:
        return located.text(2), _index(index), None
    shape: Shape | None = rows.shapes[rows.shape_numbers[row]]
    for at in index:
        shape = shape.elements[at] if shape is not None and 0 <= at < len(shape.elements) else None
    return rows.names[row], _index(index), shape.text if shape is not None else None


def _index(values: list[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"
