"""The `buffers` and `memory_timeline` tables of a module, and its memory figures, from what the compiler assigned.

Figures that equal the compiler's own exactly: the total of each memory space (its memory-usage report), arguments,
outputs and aliases (`memory_analysis()`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.devices import memory_space_name
from hlotrace.errors import ParseError
from hlotrace.hlo._occupied import sweep
from hlotrace.hlo.assignment import (
    ALIAS,
    ARGUMENT,
    CATEGORIES,
    OUTPUT,
    PREALLOCATED,
    TEMP,
    THREAD_LOCAL,
    BufferAssignment,
)
from hlotrace.hlo.producers import Producers
from hlotrace.hlo.shape_text import parse_shape
from hlotrace.hlo.tiling import logical_bytes
from hlotrace.tables import BUFFERS, MEMORY_TIMELINE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.live_ranges import LiveRanges
    from hlotrace.hlo.module import HloModule

HBM = 0
"""XLA's number of the device's main memory; the host's on CPU."""

_SOURCE = ("op_name", "source_file", "source_line", "user_file", "user_line")


@dataclass(frozen=True)
class MemoryFigures:
    """Bytes of one device, in memory space 0 unless said otherwise."""

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temp_bytes: int
    hbm_total_bytes: int
    by_space: dict[int, int]
    """All allocations of each memory space."""


def memory_figures(assignment: BufferAssignment) -> MemoryFigures:
    """What the allocations add up to; donated inputs count as arguments and as outputs, and as aliases."""

    def total(*categories: int) -> int:
        return int(assignment.size[(assignment.color == HBM) & np.isin(assignment.category, categories)].sum())

    spaces = {int(color): int(assignment.size[assignment.color == color].sum()) for color in set(assignment.color)}
    return MemoryFigures(
        argument_bytes=total(ARGUMENT, ALIAS),
        output_bytes=total(OUTPUT, ALIAS),
        alias_bytes=total(ALIAS),
        temp_bytes=total(TEMP, PREALLOCATED),
        hbm_total_bytes=spaces.get(HBM, 0),
        by_space=spaces,
    )


def buffers_table(
    assignment: BufferAssignment,
    ranges: LiveRanges | None,
    hlo: HloModule,
    instructions: pa.Table,
    *,
    module: str,
    platform: str,
) -> pa.Table:
    """One row a value of an allocation.

    Args:
        ranges: None leaves `live_from` and `live_to` null.
        hlo: the stage that was assigned (after_optimizations, or after_codegen, which keeps its names).
        instructions: of the same stage, `op_name` and the columns of sources.
    """
    owner = assignment.value_allocation
    logical = _logical_bytes(assignment)
    found = _positions(assignment, ranges)
    color = assignment.color[owner]
    source = _sources(assignment, hlo, instructions)
    columns = {
        "module": pa.repeat(pa.scalar(module), len(owner)),
        "memory_space": color,
        "memory_space_name": _space_names(color, platform),
        "allocation": assignment.index[owner],
        "allocation_bytes": assignment.size[owner],
        "category": pa.array(CATEGORIES).take(pa.array(assignment.category[owner])),
        "value": pc.binary_join_element_wise(assignment.instruction, assignment.shape_index, ""),
        "instruction": assignment.instruction,
        "offset_bytes": assignment.offset,
        "bytes": assignment.value_size,
        "logical_bytes": logical,
        "padding_bytes": pc.subtract(pa.array(assignment.value_size), logical),
        "shape": assignment.shape,
        "live_from": found[0],
        "live_to": found[1],
        **source,
    }
    schema = BUFFERS.arrow_schema()
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _logical_bytes(assignment: BufferAssignment) -> pa.Array:
    """Bytes without padding of each value; a tuple's value is its table of pointers, which has none."""
    encoded = assignment.shape.dictionary_encode()
    sizes = pa.array([_array_bytes(text) for text in encoded.dictionary.to_pylist()], pa.int64())
    sizes = sizes.take(encoded.indices)
    return pc.if_else(pc.equal(pc.fill_null(sizes, 0), -1), pa.array(assignment.value_size), sizes)


def _array_bytes(text: str) -> int | None:
    """-1 for a tuple, None for a shape that cannot be read."""
    try:
        shape = parse_shape(text)
    except ParseError:
        return None
    return -1 if shape.is_tuple else logical_bytes(shape)


def _positions(assignment: BufferAssignment, ranges: LiveRanges | None) -> tuple[pa.Array, pa.Array]:
    """The first and last position of each value, null where the compiler gave none (thread-local values)."""
    if ranges is None:
        missing = pa.nulls(len(assignment.value_id), pa.int64())
        return missing, missing
    separator = "\0"
    keys = pa.array(
        [name + separator + index for name, index in zip(ranges.instruction, ranges.shape_index, strict=True)]
    )
    wanted = pc.binary_join_element_wise(assignment.instruction, assignment.shape_index, separator)
    rows = pc.index_in(wanted, keys.cast(pa.string()))
    return pa.array(ranges.start).take(rows), pa.array(ranges.end).take(rows)


def _sources(assignment: BufferAssignment, hlo: HloModule, instructions: pa.Table) -> dict[str, pa.Array]:
    """op_name and source of each defining instruction, or of what produced a value that has none."""
    rows = pc.index_in(assignment.instruction, hlo.names).fill_null(-1).to_numpy(zero_copy_only=False)
    named = pc.or_(instructions["op_name"].is_valid(), instructions["source_file"].is_valid())
    origin = _origins(assignment, hlo, rows, named.to_numpy(zero_copy_only=False))
    taken = pa.array(origin, mask=origin < 0)
    inherited = pa.array(origin, mask=(origin < 0) | (origin == rows))
    columns = {name: instructions[name].combine_chunks().take(taken) for name in _SOURCE}
    return {**columns, "inherited_from": hlo.names.take(inherited)}


def _origins(
    assignment: BufferAssignment, hlo: HloModule, rows: NDArray[np.int32], is_named: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """For each value the row that says where it is from; -1 for none. `rows` are those of what defines them."""
    unnamed = np.flatnonzero((rows >= 0) & ~is_named[rows])
    if not len(unnamed):
        return rows
    producers = Producers(hlo, is_named)
    indices = assignment.shape_index.take(pa.array(unnamed)).to_pylist()
    origin = rows.copy()
    for at, text in zip(unnamed.tolist(), indices, strict=True):
        origin[at] = producers.producer(int(rows[at]), _index(text))
    return origin


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.strip("{}").split(",") if number)


def _space_names(color: NDArray[np.int64], platform: str) -> pa.Array:
    numbers = pa.array(color).dictionary_encode()
    return pa.array(
        [memory_space_name(platform, number) for number in numbers.dictionary.to_pylist()], pa.string()
    ).take(numbers.indices)


def timeline_table(
    assignment: BufferAssignment, ranges: LiveRanges, instructions: pa.Table, *, module: str
) -> pa.Table:
    """One row a schedule position and memory space that has a value living somewhere.

    At a position the bytes of an allocation that some value uses count once, however many values share them.
    Thread-local values live in called computations, outside the schedule, and are not counted.
    """
    series = _by_space_and_category(assignment, ranges)
    schedule = pa.array(ranges.schedule, pa.string())
    rows = pc.index_in(schedule, instructions["instruction"].combine_chunks())
    computation = instructions["computation"].combine_chunks().take(rows)
    schema = MEMORY_TIMELINE.arrow_schema()
    tables = []
    for space, by_category in sorted(series.items()):
        columns: dict[str, object] = {
            "module": pa.repeat(pa.scalar(module), len(schedule)),
            "memory_space": np.full(len(schedule), space),
            "schedule_index": np.arange(len(schedule)),
            "instruction": schedule,
            "computation": computation,
            "live_bytes": np.sum(list(by_category.values()), axis=0),
        }
        for number, category in enumerate(CATEGORIES[:THREAD_LOCAL]):
            columns[f"{category}_bytes"] = by_category.get(number, np.zeros(len(schedule), np.int64))
        tables.append(pa.table([columns[name] for name in schema.names], schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _by_space_and_category(assignment: BufferAssignment, ranges: LiveRanges) -> dict[int, dict[int, NDArray[np.int64]]]:
    """Bytes in use at each position, by memory space and by category."""
    first, last = (column.fill_null(-1).to_numpy(zero_copy_only=False) for column in _positions(assignment, ranges))
    series: dict[int, dict[int, NDArray[np.int64]]] = {}
    for row, (color, category) in enumerate(zip(assignment.color.tolist(), assignment.category.tolist(), strict=True)):
        values = np.arange(assignment.value_start[row], assignment.value_start[row + 1])
        values = values[(first[values] >= 0) & (assignment.value_size[values] > 0)]
        if category == THREAD_LOCAL or not len(values):
            continue
        by_category = series.setdefault(color, {})
        occupied = by_category.setdefault(category, np.zeros(len(ranges.schedule), np.int64))
        add_occupied(assignment.offset[values], assignment.value_size[values], first[values], last[values], occupied)
    return series


def add_occupied(
    offset: NDArray[np.int64],
    size: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    occupied: NDArray[np.int64],
) -> None:
    """Add to `occupied`, position by position, the bytes of one allocation that its values use there.

    Value v holds bytes offset[v] to offset[v] + size[v] from position first[v] to last[v], both included.
    """
    cuts = np.unique(np.concatenate([offset, offset + size]))
    begins = np.searchsorted(cuts, offset)
    ends = np.searchsorted(cuts, offset + size)
    when = np.column_stack([first, last + 1]).ravel()
    events = np.argsort(when, kind="stable")
    users = np.zeros(len(cuts), np.int64)
    sweep(
        events,
        np.diff(cuts, append=cuts[-1:]),
        begins,
        ends,
        np.ascontiguousarray(first),
        np.ascontiguousarray(last),
        users,
        occupied,
    )
