"""BufferAssignmentProto, read into a BufferAssignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.hlo.assignment import BufferAssignment, categorize
from hlotrace.parsers._proto_text import ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.shape import Shape
    from hlotrace.parsers._proto_rows import ModuleRows
    from hlotrace.parsers._wire_columns import Fields


def read_assignment(proto: Fields, rows: ModuleRows) -> BufferAssignment:
    """The allocations and values of a BufferAssignmentProto; `rows` are those of the module it belongs to.

    XLA calls an allocation that is neither parameter, result, constant nor thread-local a preallocated temporary.
    """
    _, buffers = proto.children(1)
    _, allocations = proto.children(3)
    owner, assigned = allocations.children(9)
    identities = assigned.integers(1)
    places, problems = _places(buffers, identities.tolist(), rows)
    is_parameter = allocations.integers(5) > 0
    start, indices = allocations.lists(10)
    return BufferAssignment(
        index=allocations.integers(1),
        size=allocations.integers(2),
        color=allocations.integers(8),
        category=_categories(allocations),
        parameter_number=np.where(is_parameter, allocations.integers(6), -1),
        parameter_index=tuple(
            ints(indices[start[at] : start[at + 1]].tolist()) if is_parameter[at] else ""
            for at in range(allocations.count)
        ),
        value_start=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=allocations.count))]).astype(np.int64),
        value_id=identities,
        instruction=pa.array([name for name, _, _ in places], pa.string()),
        shape_index=pa.array([index for _, index, _ in places], pa.string()),
        offset=assigned.integers(2),
        value_size=assigned.integers(3),
        shape=pa.array([shape for _, _, shape in places], pa.string()),
        problems=tuple(problems),
    )


def _categories(allocations: Fields) -> NDArray[np.int32]:
    flags = zip(*(allocations.integers(number).astype(bool).tolist() for number in (5, 7, 3, 12)), strict=True)
    found = [
        categorize(parameter=parameter, output=output, thread_local=local, constant=constant, preallocated=True)
        for parameter, output, local, constant in flags
    ]
    return np.array(found, np.int32)


def _places(
    buffers: Fields, wanted: list[int], rows: ModuleRows
) -> tuple[list[tuple[str, str, str | None]], list[tuple[str, str, str]]]:
    """Instruction, shape index and shape of each value; and a problem for each that is not described."""
    at = {identity: number for number, identity in enumerate(buffers.integers(1).tolist())}
    located = buffers.child(3)
    instruction, older_names = located.integers(4, -1).tolist(), located.texts(2)
    start, indices = located.lists(3)
    places: list[tuple[str, str, str | None]] = []
    problems = []
    for identity in wanted:
        number = at.get(identity)
        if number is None:
            problems.append((f"value {identity}", "the value is not described", "its name and shape are missing"))
            places.append(("", "{}", None))
            continue
        index = indices[start[number] : start[number + 1]].tolist()
        places.append(_place(instruction[number], older_names[number], index, rows))
    return places, problems


def _place(identity: int, name: str, index: list[int], rows: ModuleRows) -> tuple[str, str, str | None]:
    """Older protos name the instruction instead of numbering it."""
    row = rows.row_of(identity) if identity >= 0 else -1
    if row < 0:
        return name, ints(index), None
    shape: Shape | None = rows.shapes[rows.shape_numbers[row]]
    for at in index:
        shape = shape.elements[at] if shape is not None and 0 <= at < len(shape.elements) else None
    return rows.names[row], ints(index), shape.text if shape is not None else None
