"""What the side files of a module say about memory, as its tables and its columns of `modules`.

Where the compiler's live ranges are missing, our own model of the schedule stands in for them, and for the buffer
assignment too where that is missing; a row of `problems` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hlotrace.devices import chip_of
from hlotrace.hlo.liveness import Liveness
from hlotrace.hlo.memory import HBM, buffers_table, memory_figures, timeline_table
from hlotrace.hlo.schedule import is_scheduled
from hlotrace.parsers.buffer_assignment import read_buffer_assignment
from hlotrace.parsers.live_range import read_live_ranges
from hlotrace.parsers.memory_usage_report import read_totals

if TYPE_CHECKING:
    import pyarrow as pa

    from hlotrace._modules import Part, Problems, Stage
    from hlotrace._open import Tree
    from hlotrace.hlo.assignment import BufferAssignment
    from hlotrace.hlo.live_ranges import LiveRanges
    from hlotrace.parsers.dump_directory import ModuleFiles

_Read = TypeVar("_Read", "BufferAssignment", "LiveRanges")


@dataclass(frozen=True)
class Memory:
    """What is known of a module's memory; `is_assigned`: whether the compiler assigned the buffers, or we did."""

    assignment: BufferAssignment | None
    ranges: LiveRanges | None
    is_assigned: bool = True


def read_memory(tree: Tree, files: ModuleFiles, stages: list[Stage], problems: Problems) -> Memory:
    """The buffer assignment and the live ranges that a dump has of a module, or our model of them."""
    assignment = _side(tree, files, "buffer-assignment", read_buffer_assignment, problems)
    ranges = _side(tree, files, "live-range", read_live_ranges, problems)
    assigned = next((stage for stage in reversed(stages) if stage.assignment), stages[-1])
    if assignment is not None:
        assigned = stages[-1]
        _compare_totals(tree, files, assignment, problems)
    return modelled(assigned, Memory(assignment or assigned.assignment, ranges), problems)


def _compare_totals(tree: Tree, files: ModuleFiles, assignment: BufferAssignment, problems: Problems) -> None:
    """Say where the allocations do not add up to the compiler's own totals."""
    path = files.side.get("memory-usage-report")
    if path is None:
        return
    ours = memory_figures(assignment).by_space
    for space, total in read_totals(tree.read(path).decode("utf-8", "replace")).items():
        if ours.get(space, 0) != total:
            problems.add(
                path,
                f"memory space {space}",
                f"the compiler's total is {total} bytes, its allocations add up to {ours.get(space, 0)}",
                "figures of this memory space may be incomplete",
            )


def modelled(stage: Stage, found: Memory, problems: Problems) -> Memory:
    """What was found, and our model of what a scheduled module lacks."""
    if found.ranges is not None or not is_scheduled(stage.hlo) or stage.hlo.entry < 0:
        return found
    model = Liveness(stage.hlo)
    lacking = "live ranges" if found.assignment else "live ranges and no buffer assignment"
    problems.add(
        stage.path,
        "",
        f"there are no {lacking} of the compiler beside it",
        "what lives when is our own model of the schedule"
        + ("" if found.assignment else ", and each buffer has a place of its own"),
    )
    if found.assignment is not None:
        return Memory(found.assignment, model.ranges())
    return Memory(model.assignment(), model.ranges(), is_assigned=False)


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


def add_memory(part: Part, instructions: pa.Table, memory: Memory) -> None:
    """Add `buffers`, `memory_timeline` and the memory columns of `modules`.

    Args:
        instructions: of the stage that the names in `memory` belong to.
    """
    row, assignment = part.row, memory.assignment
    row["hbm_capacity_bytes"] = capacity(row["device_kind"], row["target"])
    if assignment is None:
        return
    names = {"module": row["module"], "platform": row["platform"] or ""}
    part.tables["buffers"] = [buffers_table(assignment, memory.ranges, instructions, **names)]
    if memory.ranges is not None:
        timeline = timeline_table(assignment, memory.ranges, instructions, module=row["module"])
        part.tables["memory_timeline"] = [timeline]
        live = timeline["live_bytes"].to_numpy()[timeline["memory_space"].to_numpy() == HBM]
        row["hbm_peak_bytes"] = int(live.max()) if len(live) else None
    if not memory.is_assigned:
        return
    figures = memory_figures(assignment)
    for name in ("argument_bytes", "output_bytes", "alias_bytes", "temp_bytes", "hbm_total_bytes"):
        row[name] = getattr(figures, name)
    if row.get("code_bytes") is not None:
        row["hbm_needed_bytes"] = figures.hbm_total_bytes + row["code_bytes"]


def capacity(device_kind: str | None, target: str | None) -> int | None:
    """Usable HBM of one device in bytes; None when the chip is not known."""
    chip = chip_of(target, device_kind)
    return int(chip.hbm_usable.value) if chip is not None else None
