"""The text of a buffer assignment and of live ranges: what is read, and what is said of what cannot be."""

from __future__ import annotations

import numpy as np

from hlotrace.hlo.assignment import CATEGORIES
from hlotrace.parsers.buffer_assignment import read_buffer_assignment
from hlotrace.parsers.live_range import read_live_ranges

ASSIGNMENT = """BufferAssignment:
allocation 0: size 512, thread-local:
 value: <2 reduce_sum.5 @0> (size=512,offset=0): f32[]{:T(128)}
allocation 1: size 4096, color 1, preallocated-temp:
 value: <9 copy-start.1{} @1> (size=16,offset=4080): (f32[8]{0}, f32[8]{0:S(1)}, u32[]{:S(2)})
 value: <7 wide.arg.5{4,1} (phi) @1> (size=2048,offset=1024): bf16[12,4]{1,0:T(8,128)(2,1)S(1)}
allocation 7: size 64, parameter 3, shape |(f32[4], s32[])| at ShapeIndex {1}, maybe-live-out:
 value: <11 p.1{1} @0> (size=64,offset=0): s32[]
allocation 8: size 32, output shape is |bf16[4]|, maybe-live-out:
allocation 9: size 8, constant:
allocation 10: size 24, parameter 1, shape |f32[6]| at ShapeIndex {}:

Total bytes used: 8736 (8.5KiB)

Used values:
<2 reduce_sum.5 @0>
 positions:
  reduce_sum.5
"""

RANGES = """HloLiveRange (max 3):
  InstructionSequence:
    0:p.1
    1:copy-start.1
    2:copy-done.1
  BufferLiveRange:
    p.1{}:0-3
    copy-start.1{0,1}:1-2
  Live ranges at 2 (peak):
    p.1{}: 512 bytes (cumulative: 512 bytes)
  Stack trace breakdown for peak usage: 512 bytes
    main.8 (100.0%, total: 512 bytes, current: 0 bytes, remaining: 512 bytes)
"""


def test_allocations_and_their_values_are_read() -> None:
    found = read_buffer_assignment(ASSIGNMENT)
    assert found.index.tolist() == [0, 1, 7, 8, 9, 10]
    assert found.size.tolist() == [512, 4096, 64, 32, 8, 24]
    assert found.color.tolist() == [0, 1, 0, 0, 0, 0]
    assert [CATEGORIES[i] for i in found.category] == [
        "thread_local", "preallocated", "alias", "output", "constant", "argument",
    ]  # fmt: skip
    assert found.parameter_number.tolist() == [-1, -1, 3, -1, -1, 1]
    assert found.parameter_index == ("", "", "{1}", "", "", "{}")
    assert found.value_start.tolist() == [0, 1, 3, 4, 4, 4, 4]
    assert found.value_allocation.tolist() == [0, 1, 1, 2]
    assert found.instruction.to_pylist() == ["reduce_sum.5", "copy-start.1", "wide.arg.5", "p.1"]
    assert found.shape_index.to_pylist() == ["{}", "{}", "{4,1}", "{1}"]
    assert found.offset.tolist() == [0, 4080, 1024, 0]
    assert found.value_size.tolist() == [512, 16, 2048, 64]
    assert found.shape[2].as_py() == "bf16[12,4]{1,0:T(8,128)(2,1)S(1)}"
    assert found.problems == ()


def test_a_cut_assignment_keeps_the_whole_lines_before_the_cut() -> None:
    full = read_buffer_assignment(ASSIGNMENT)
    for cut in range(ASSIGNMENT.index("Total bytes")):
        found = read_buffer_assignment(ASSIGNMENT[:cut])
        lines = ASSIGNMENT[:cut].split("\n")[:-1]
        assert len(found.index) == sum(line.startswith("allocation ") for line in lines)
        assert len(found.value_id) == sum(line.startswith(" value: ") for line in lines)
        assert np.all(np.diff(found.value_start) >= 0)
        assert found.shape.to_pylist() == full.shape.to_pylist()[: len(found.value_id)]


def test_a_line_of_no_known_kind_is_a_problem_with_its_place() -> None:
    text = ASSIGNMENT.replace("allocation 9: size 8, constant:", "<<<<<<< HEAD")
    ((place, what, _),) = read_buffer_assignment(text).problems
    assert place == "line 10"
    assert "<<<<<<< HEAD" in what


def test_something_else_is_a_problem() -> None:
    assert read_buffer_assignment("hello").problems


def test_live_ranges_are_read() -> None:
    found = read_live_ranges(RANGES)
    assert found.schedule == ("p.1", "copy-start.1", "copy-done.1")
    assert (found.instruction, found.shape_index) == (("p.1", "copy-start.1"), ("{}", "{0,1}"))
    assert (found.start.tolist(), found.end.tolist()) == ([0, 1], [3, 2])
    assert found.peak == 2
    assert found.problems == ()


def test_a_cut_live_range_file_is_a_problem_and_keeps_the_schedule_before_the_cut() -> None:
    for cut in range(RANGES.index("BufferLiveRange")):
        found = read_live_ranges(RANGES[:cut])
        assert found.problems
        assert found.schedule == ("p.1", "copy-start.1", "copy-done.1")[: len(found.schedule)]


def test_positions_that_do_not_count_up_are_a_problem() -> None:
    assert read_live_ranges(RANGES.replace("1:copy-start", "5:copy-start")).problems
