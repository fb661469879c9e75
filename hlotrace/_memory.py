"""What the side files of a module say about memory, as its tables and its columns of `modules`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.devices import chip_by_device_kind, chip_by_target
from hlotrace.hlo.memory import HBM, buffers_table, memory_figures, timeline_table
from hlotrace.parsers.buffer_assignment import read_buffer_assignment
from hlotrace.parsers.live_range import read_live_ranges

if TYPE_CHECKING:
    from hlotrace._modules import Part, Problems, Stage
    from hlotrace._open import Tree
    from hlotrace.hlo.assignment import BufferAssignment
    from hlotrace.hlo.live_ranges import LiveRanges
    from hlotrace.parsers.dump_directory import ModuleFiles

_Read = TypeVar("_Read", "BufferAssignment", "LiveRanges")


def read_memory(
    tree: Tree, files: ModuleFiles, stages: list[Stage], problems: Problems
) -> tuple[BufferAssignment | None, LiveRanges | None]:
    """The buffer assignment and the live ranges that a dump has of a module."""
    assignment = _side(tree, files, "buffer-assignment", read_buffer_assignment, problems)
    ranges = _side(tree, files, "live-range", read_live_ranges, problems)
    if assignment is None:
        assignment = next((stage.assignment for stage in reversed(stages) if stage.assignment), None)
    return assignment, ranges


def _side(
    tree: Tree, files: ModuleFiles, name: str, reader: Callable[[str], _Read], problems: Problems
) -> _Read | None:
    path = files.side.get(name)
    if path is None:
        return None
    data = tree.read(path)
    if not data:
        problems.add(path, "", "an empty file (0 bytes)", "it adds nothing")
        return None
    read = reader(data.decode("utf-8", "replace"))
    problems.add_all(path, read.problems)
    return read


def add_memory(
    part: Part, instructions: pa.Table, assignment: BufferAssignment | None, ranges: LiveRanges | None
) -> None:
    """Add `buffers`, `memory_timeline` and the memory columns of `modules`.

    Args:
        instructions: of the stage that the names in `assignment` and `ranges` belong to.
    """
    row = part.row
    row["hbm_capacity_bytes"] = capacity(row["device_kind"], row["target"])
    if assignment is None:
        return
    names = {"module": row["module"], "platform": row["platform"] or ""}
    part.tables["buffers"] = [buffers_table(assignment, ranges, instructions, **names)]
    if ranges is not None:
        timeline = timeline_table(assignment, ranges, instructions, module=row["module"])
        part.tables["memory_timeline"] = [timeline]
        row["hbm_peak_bytes"] = pc.max(timeline.filter(pc.field("memory_space") == HBM)["live_bytes"]).as_py()
    figures = memory_figures(assignment)
    for name in ("argument_bytes", "output_bytes", "alias_bytes", "temp_bytes", "hbm_total_bytes"):
        row[name] = getattr(figures, name)
    if row.get("code_bytes") is not None:
        row["hbm_needed_bytes"] = figures.hbm_total_bytes + row["code_bytes"]


def capacity(device_kind: str | None, target: str | None) -> int | None:
    """Usable HBM of one device in bytes; None when the chip is not known."""
    chip = chip_by_target(target) or chip_by_device_kind(device_kind)
    return int(chip.hbm_usable.value) if chip is not None else None
