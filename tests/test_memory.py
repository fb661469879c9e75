"""Bytes in use over the schedule, against brute force; figures and tables of an assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.hlo.memory import add_occupied, buffers_table, memory_figures, timeline_table
from hlotrace.parsers.buffer_assignment import read_buffer_assignment
from hlotrace.parsers.hlo_text import read_modules
from hlotrace.parsers.live_range import read_live_ranges
from hlotrace.tables import BUFFERS, MEMORY_TIMELINE

if TYPE_CHECKING:
    from hlotrace.hlo.module import HloModule

POSITIONS = 12
VALUES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(0, POSITIONS), st.integers(0, 6)), min_size=1
)

ASSIGNMENT = """BufferAssignment:
allocation 0: size 4096, parameter 0, shape |f32[8,128]| at ShapeIndex {}, maybe-live-out:
 value: <0 p @0> (size=4096,offset=0): f32[8,128]{1,0:T(8,128)}
 value: <3 inplace @0> (size=4096,offset=0): f32[8,128]{1,0:T(8,128)}
allocation 1: size 4096, parameter 1, shape |f32[3,128]| at ShapeIndex {}:
 value: <1 q @0> (size=2048,offset=0): f32[3,128]{1,0:T(4,128)}
allocation 2: size 512, output shape is |f32[]|, maybe-live-out:
 value: <4 sum @0> (size=512,offset=0): f32[]{:T(128)}
allocation 3: size 8192, preallocated-temp:
 value: <5 tuple{} @0> (size=16,offset=4096): (f32[8,128]{1,0}, f32[])
 value: <6 temp @0> (size=4096,offset=0): f32[8,128]{1,0:T(8,128)}
allocation 4: size 2048, color 1, preallocated-temp:
 value: <7 fast @1> (size=2048,offset=0): bf16[8,128]{1,0:T(8,128)(2,1)S(1)}
allocation 5: size 512, thread-local:
 value: <8 add @0> (size=512,offset=0): f32[]{:T(128)}

"""
RANGES = """HloLiveRange (max 6):
  InstructionSequence:
    0:p
    1:q
    2:temp
    3:fast
    4:tuple
    5:inplace
  BufferLiveRange:
    p{}:0-5
    inplace{}:5-6
    q{}:0-6
    sum{}:5-6
    tuple{}:4-5
    temp{}:2-4
    fast{}:3-4
"""


def instructions() -> pa.Table:
    names = ["p", "q", "temp", "fast", "tuple", "inplace", "sum"]
    return pa.table(
        {
            "instruction": names,
            "computation": ["main"] * len(names),
            "op_name": [None if name == "fast" else f"jit(f)/{name}" for name in names],
            "source_file": [None if name == "fast" else "f.py" for name in names],
            "source_line": pa.array(range(len(names)), pa.int64()),
            "user_file": ["g.py"] * len(names),
            "user_line": pa.array(range(10, 10 + len(names)), pa.int64()),
        }
    )


def program() -> HloModule:
    """A module with the instructions of the assignment, where `fast` is a copy of `temp`."""
    lines = [f"  {name} = f32[8,128] parameter({n})" for n, name in enumerate(("p", "q", "temp"))]
    lines += ["  fast = f32[8,128] copy(temp)"]
    lines += [f"  {name} = f32[8,128] negate(fast)" for name in ("tuple", "inplace", "sum")]
    return next(read_modules("HloModule m\nENTRY main {\n" + "\n".join(lines) + "\n}\n"))


def brute_force(values: list[tuple[int, int, int, int]]) -> list[int]:
    used = [set() for _ in range(POSITIONS)]
    for offset, size, first, length in values:
        for position in range(first, min(first + length + 1, POSITIONS)):
            used[position].update(range(offset, offset + size))
    return [len(addresses) for addresses in used]


@given(VALUES)
def test_each_address_in_use_counts_once(values: list[tuple[int, int, int, int]]) -> None:
    offset, size, first, length = np.array(values, np.int64).T
    occupied = np.zeros(POSITIONS, np.int64)
    add_occupied(offset, size, first, first + length, occupied)
    assert occupied.tolist() == brute_force(values)


def test_figures_add_up_by_what_an_allocation_holds() -> None:
    figures = memory_figures(read_buffer_assignment(ASSIGNMENT))
    assert figures.argument_bytes == 8192
    assert figures.output_bytes == 4096 + 512
    assert figures.alias_bytes == 4096
    assert figures.temp_bytes == 8192
    assert figures.by_space == {0: 4096 + 4096 + 512 + 8192 + 512, 1: 2048}
    assert figures.hbm_total_bytes == figures.by_space[0]


def test_buffers_say_where_how_large_how_long_and_from_which_line() -> None:
    assignment, ranges = read_buffer_assignment(ASSIGNMENT), read_live_ranges(RANGES)
    table = buffers_table(assignment, ranges, program(), instructions(), module="m", platform="tpu")
    assert table.schema == BUFFERS.arrow_schema()
    rows = {row["value"]: row for row in table.to_pylist()}
    assert rows["q{}"]["padding_bytes"] == 2048 - 3 * 128 * 4
    assert rows["tuple{}"]["padding_bytes"] == 0
    assert (rows["fast{}"]["memory_space_name"], rows["fast{}"]["live_from"], rows["fast{}"]["live_to"]) == (
        "VMEM",
        3,
        4,
    )
    assert rows["p{}"]["category"] == "alias"
    assert (rows["temp{}"]["op_name"], rows["temp{}"]["source_line"]) == ("jit(f)/temp", 2)
    assert (rows["temp{}"]["user_file"], rows["temp{}"]["user_line"]) == ("g.py", 12)
    assert (rows["fast{}"]["op_name"], rows["fast{}"]["source_line"]) == ("jit(f)/temp", 2)
    assert (rows["fast{}"]["inherited_from"], rows["temp{}"]["inherited_from"]) == ("temp", None)
    assert (rows["add{}"]["op_name"], rows["add{}"]["inherited_from"]) == (None, None)
    assert rows["add{}"]["category"] == "thread_local"
    assert rows["add{}"]["live_from"] is None


def test_the_timeline_counts_an_address_once_by_space_and_category() -> None:
    table = timeline_table(read_buffer_assignment(ASSIGNMENT), read_live_ranges(RANGES), instructions(), module="m")
    assert table.schema == MEMORY_TIMELINE.arrow_schema()
    rows = [row for row in table.to_pylist() if row["memory_space"] == 0]
    assert [row["alias_bytes"] for row in rows] == [4096] * 6
    assert [row["argument_bytes"] for row in rows] == [2048] * 6
    assert [row["preallocated_bytes"] for row in rows] == [0, 0, 4096, 4096, 4112, 16]
    assert [row["output_bytes"] for row in rows] == [0, 0, 0, 0, 0, 512]
    assert [row["live_bytes"] for row in rows] == [6144, 6144, 10240, 10240, 10256, 6672]
    assert [row["live_bytes"] for row in table.to_pylist() if row["memory_space"] == 1] == [0, 0, 0, 2048, 2048, 0]


def test_without_live_ranges_buffers_have_no_positions() -> None:
    table = buffers_table(
        read_buffer_assignment(ASSIGNMENT), None, program(), instructions(), module="m", platform="cpu"
    )
    assert table["live_from"].null_count == len(table)
