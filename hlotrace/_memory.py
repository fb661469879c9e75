"""What the side files of a module say about memory, as its tables and its columns of `modules`.

Where the compiler's live ranges are missing, our own model of the schedule stands in for them, and for the buffer
assignment too where that is missing; a row of `problems` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from hlotrace.devices import chip_of
from hlotrace.hlo.liveness import Liveness
from hlotrace.hlo.memory import HBM, buffers_table, memory_figures, timeline_table
from hlotrace.hlo.schedule import is_scheduled
from hlotrace.parsers.buffer_assignment import read_buffer_assignment
from hlotrace.parsers.live_range import read_live_ranges
from hlotrace.parsers.memory_usage_report import read_totals

if TYPE_CHECKING:
    from hlotrace._modules import Part, Problems, Stage
    from hlotrace._open import Tree
    from hlotrace.hlo.assignment import BufferAssignment
    from hlotrace.hlo.live_ranges import LiveRanges
    from hlotrace.hlo.module import HloModule
    from hlotrace.parsers.dump_directory import ModuleFiles

_Read = TypeVar("_Read", "BufferAssignment", "LiveRanges")


@dataclass(frozen=True)
class Memory:
    """What is known of a module's memory, and whether the compiler said so or our model does."""

    assignment: BufferAssignment | None
    ranges: LiveRanges | None
    buffers_from: Literal["compiler", "incomplete", "model"] = "compiler"
    live_ranges_from: Literal["compiler", "model"] = "compiler"


def read_memory(tree: Tree, files: ModuleFiles, stages: list[Stage], problems: Problems) -> Memory:
    """The buffer assignment and the live ranges that a dump has of a module, or our model of them."""
    assignment = _side(tree, files, "buffer-assignment", read_buffer_assignment, problems)
    ranges = _side(tree, files, "live-range", read_live_ranges, problems)
    assigned = next((stage for stage in reversed(stages) if stage.assignment), stages[-1])
    found = Memory(assignment or assigned.assignment, ranges)
    if assignment is not None:
        assigned = stages[-1]
        whole = _has_parameters(assigned, assignment, files.side["buffer-assignment"], problems)
        if not _adds_up(tree, files, assignment, problems) or not whole or assignment.problems:
            found = replace(found, buffers_from="incomplete")
    return modelled(assigned, found, problems)


def _has_parameters(stage: Stage, assignment: BufferAssignment, path: str, problems: Problems) -> bool:
    """Whether each of the entry's parameters has an allocation; a file that was cut between two lines lacks some."""
    hlo = stage.hlo
    if hlo.entry < 0:
        return True
    entry = slice(hlo.computation_start[hlo.entry], hlo.computation_start[hlo.entry + 1])
    wanted = {number for number in hlo.parameter_number[entry].tolist() if number >= 0}
    missing = sorted(wanted - set(assignment.parameter_number.tolist()))
    if missing:
        what = f"{len(missing)} of the program's {len(wanted)} parameters have no allocation in it"
        problems.add(path, "", what, "the file is cut short: sizes and what lives when are incomplete")
    return not missing


def _adds_up(tree: Tree, files: ModuleFiles, assignment: BufferAssignment, problems: Problems) -> bool:
    """Whether the allocations add up to the compiler's own totals, where it gave any."""
    path = files.side.get("memory-usage-report")
    if path is None:
        return True
    ours, agree = memory_figures(assignment).by_space, True
    for space, total in read_totals(tree.read(path).decode("utf-8", "replace")).items():
        if ours.get(space, 0) != total:
            agree = False
            problems.add(
                path,
                f"memory space {space}",
                f"the compiler's total is {total} bytes, its allocations add up to {ours.get(space, 0)}",
                "figures of this memory space may be incomplete",
            )
    return agree


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
        return replace(found, ranges=model.ranges(), live_ranges_from="model")
    return Memory(model.assignment(), model.ranges(), "model", "model")


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


def add_memory(part: Part, hlo: HloModule, memory: Memory) -> None:
    """Add `buffers`, `memory_timeline` and the memory columns of `modules`.

    Args:
        hlo: the final stage, whose names are those in `memory`.
    """
    instructions = part.tables["instructions"][-1]
    row, assignment = part.row, memory.assignment
    row["hbm_capacity_bytes"] = capacity(row["device_kind"], row["target"])
    if assignment is None:
        return
    row["buffers_from"] = memory.buffers_from
    names = {"module": row["module"], "platform": row["platform"] or ""}
    part.tables["buffers"] = [buffers_table(assignment, memory.ranges, hlo, instructions, **names)]
    if memory.ranges is not None:
        row["live_ranges_from"] = memory.live_ranges_from
        timeline = timeline_table(assignment, memory.ranges, instructions, module=row["module"])
        part.tables["memory_timeline"] = [timeline]
        live = timeline["live_bytes"].to_numpy()[timeline["memory_space"].to_numpy() == HBM]
        row["hbm_peak_bytes"] = int(live.max()) if len(live) else None
    if memory.buffers_from == "model":
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
