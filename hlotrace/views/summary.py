"""What is it, does it fit, and what costs most?

jit_layer on v5e:2x2
layer of layer.py:12, captured with jax 0.10.2, libtpu 0.0.42.1
HBM needed 308.12 MiB, fits: 15.45 GiB left   predicted time of one run 1.84 ms, 1.51 ms to 2.20 ms
launches 21 (96 before optimisation)              compile time 8.20 s
Largest ops, by the compiler's cycles
…five of them
Largest buffers at the peak
…five of them
fusions      hlotrace show bundle fusions
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hlotrace.analyses import alive, costs, predicted
from hlotrace.analyses.findings import findings
from hlotrace.analyses.modules import by_size
from hlotrace.tables import LINES
from hlotrace.units import format_bytes, format_ns, is_missing
from hlotrace.views import memory, ops, times, traced
from hlotrace.views.blocks import Block, Figure, Figures, Grid, Note
from hlotrace.views.common import command, module_option, opening, problems_tail, rows_of, title
from hlotrace.views.view import MODULE, Parameter, Tables, View

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.bundle import Manifest, Program

QUESTION = "What is it, does it fit, and what costs most?"

PLURALS = {"temporary": "temporaries"}
LAUNCH_COLUMNS = ("instruction", "category", "cycles_total", "share", "source")
VALUE_COLUMNS = ("value", "role", "bytes", "source")

TOP = Parameter("top", "int", "how many ops and buffers to show; 0 shows all", default=5)

BUFFER_COLUMNS = (
    *("memory_space", "memory_space_name", "allocation", "allocation_bytes", "category", "value", "offset_bytes"),
    *("bytes", "padding_bytes", "shape", "live_from", "live_to", "op_name", "inherited_from"),
    *LINES,
)


@dataclass(frozen=True)
class Subject:
    """What a summary is of: a module's row, launches and times, its values in the main memory and those at the peak."""

    tables: Tables
    row: dict[str, Any]
    launched: pd.DataFrame
    predictions: pd.DataFrame
    prediction: predicted.Prediction | None
    peak: alive.Position | None
    at_peak: pd.DataFrame | None
    buffers: pd.DataFrame | None
    program: Program | None


def build(tables: Tables, *, module: str | None, top: int) -> list[Block]:
    """The headline of one module, with the command for each detail."""
    if tables.traces and tables["modules"].empty:
        return [*traced.of_trace(tables), *problems_tail(tables)]
    row, blocks = opening(tables, module, QUESTION)
    subject = subject_of(tables, row)
    option = module_option(tables, row)
    blocks += [
        *what(subject),
        *failure_notes(subject),
        headline(subject),
        *no_time(subject),
        *traced.in_summary(tables),
    ]
    blocks += finding_notes(subject)
    if module is None:
        blocks += other_targets(tables, row)
    if len(subject.launched):
        blocks.append(narrow(ops.launches_grid(subject.launched, top), LAUNCH_COLUMNS))
    if subject.at_peak is not None:
        held = subject.at_peak[subject.at_peak["counted_bytes"] > 0]
        grid = memory.alive_grid(held, "at the peak", top, memory.buffers_origin(row))
        blocks.append(narrow(grid, VALUE_COLUMNS))
    else:
        blocks.append(memory.missing(row))
    blocks += [Note("", command=command(tables, view, option)) for view in ("ops", "fusions", "memory", "roofline")]
    return [*blocks, *problems_tail(tables)]


def narrow(grid: Grid, names: tuple[str, ...]) -> Grid:
    """Only the columns that fit a line of any terminal; the view that the grid is of has the others."""
    return replace(grid, columns=tuple(column for column in grid.columns if column.name in names))


def subject_of(tables: Tables, row: dict[str, Any]) -> Subject:
    """What is needed to summarise the module of a row of `modules`."""
    name = str(row["module"])
    launched = costs.launches(rows_of(tables, "instructions", name, costs.COLUMNS), row["final_stage"])
    predictions, prediction = rows_of(tables, "predictions", name), times.prediction_of(tables, row)
    timeline = rows_of(tables, "memory_timeline", name)
    spaces = alive.spaces(timeline)
    peak = alive.position(timeline, spaces[0]) if spaces else None
    at_peak = buffers = None
    if peak is not None:
        buffers = rows_of(tables, "buffers", name, BUFFER_COLUMNS)
        buffers = buffers[buffers["memory_space"] == spaces[0]]
        at_peak = alive.alive(buffers, spaces[0], peak.index)
    program = _program(tables.manifest, name)
    return Subject(tables, row, launched, predictions, prediction, peak, at_peak, buffers, program)


def _program(manifest: Manifest | None, module: str) -> Program | None:
    programs = manifest.programs if manifest else []
    return next((program for program in programs if program.module == module), None)


def what(subject: Subject) -> list[Block]:
    """What was compiled, for what, with which versions."""
    manifest, program, row = subject.tables.manifest, subject.program, subject.row
    device = row["device_kind"] or row["target"] or row["platform"] or "an unknown device"
    words = [f"XLA's program {row['name']} for {device}"]
    if row["num_partitions"] and row["num_partitions"] > 1:
        words.append(f"{row['num_partitions']} partitions")
    if row["num_replicas"] and row["num_replicas"] > 1:
        words.append(f"{row['num_replicas']} replicas")
    if part := _part_of_topology(subject):
        words.append(part)
    if program is not None:
        words.append(f"compiled from {program.function}" + (f" ({program.defined_at})" if program.defined_at else ""))
    if manifest is None:
        return [Note(f"{', '.join(words)}; a dump without a manifest.")]
    versions = [f"{name} {manifest.versions[name]}" for name in ("jax", "libtpu") if name in manifest.versions]
    captured = f"captured {manifest.created[:10]}" + (f" with {', '.join(versions)}" if versions else "")
    partial = [Note("The capture was interrupted: only what had finished is here.", "warning")]
    return [Note(f"{', '.join(words)}; {captured}."), *(partial if manifest.status == "partial" else [])]


def _part_of_topology(subject: Subject) -> str:
    """That a program leaves devices of its target unused; empty where it uses all, or that is not known."""
    manifest, program = subject.tables.manifest, subject.program
    if manifest is None or program is None:
        return ""
    there = next((target.device_count for target in manifest.targets if target.target == program.target), 0)
    if not 0 < program.device_count < there:
        return ""
    used = "one" if program.device_count == 1 else f"{program.device_count:,}"
    return f"on {used} of the {there:,} devices of {program.target}"


def failure_notes(subject: Subject) -> list[Block]:
    """A compile that gave no executable: how much was needed, how much there is, and what holds it."""
    failure = subject.program.failure if subject.program else None
    if failure is None:
        return [Note(subject.row["error"], "warning")] if subject.row["error"] else []
    if failure.kind != "out_of_memory":
        return [Note(f"No executable, {failure.kind} failed: {failure.message.splitlines()[0]}", "warning")]
    space = (failure.memory_space or "hbm").upper()
    needed = failure.needed_bytes or subject.row["hbm_needed_bytes"]
    available = failure.available_bytes or subject.row["hbm_capacity_bytes"]
    text = f"Does not fit: it needs {format_bytes(needed)} of {space}, there are {format_bytes(available)}."
    return [Note(text + (_holders(subject) if space == "HBM" else ""), "warning")]


def _holders(subject: Subject) -> str:
    """What takes the memory that is missing: allocations by role."""
    if subject.buffers is None or subject.buffers.empty:
        return ""
    allocations = subject.buffers.drop_duplicates("allocation")
    held: dict[str, int] = {}
    for category, size in zip(allocations["category"], allocations["allocation_bytes"], strict=True):
        role = memory.ROLES.get(category)
        if role is not None and not is_missing(size):
            name = PLURALS.get(role, f"{role}s")
            held[name] = held.get(name, 0) + int(size)
    largest = sorted(((size, name) for name, size in held.items() if size), reverse=True)
    return f" Held by {', '.join(f'{name} {format_bytes(size)}' for size, name in largest)}." if largest else ""


def headline(subject: Subject) -> Figures:
    """Fit, time, launches, compile time: each with where it is from."""
    row = subject.row
    fusions = len(rows_of(subject.tables, "fusions", str(row["module"]), ("fusion",)))
    before, fused = _before(row["launches_before"]), f"{fusions:,} fusion{'s' if fusions != 1 else ''}"
    branch = "" if subject.launched["branch"].isna().all() else costs.BRANCH_WORDS
    return Figures(
        (
            *_memory_figures(subject),
            *_time_figures(subject),
            Figure("launches", row["launches"], "count", detail="; ".join(filter(None, (before, fused, branch)))),
            Figure("compile time", row["compile_ns"], "ns", "measured", _compile_detail(row)),
        ),
        _row_of(subject),
    )


def _row_of(subject: Subject) -> pd.DataFrame:
    modules = subject.tables["modules"]
    return modules[modules["module"] == subject.row["module"]]


def _memory_figures(subject: Subject) -> list[Figure]:
    row, peak = subject.row, subject.peak
    name = memory.main_name(row)
    figures = [memory.needed_figure(row, name)]
    if peak is not None:
        detail = f"at {peak.instruction or '?'} (position {peak.index})"
        figures.append(Figure(f"{name} alive at the peak", peak.live_bytes, "bytes", memory.alive_origin(row), detail))
    return figures


def _time_figures(subject: Subject) -> list[Figure]:
    row, found = subject.row, subject.prediction
    if found is not None:
        return [
            *times.time_figures(found, costs.chip_of(row)),
            times.floor_figure(found.floor, has_kernels=found.has_kernels),
        ]
    floor = costs.floor(subject.predictions, costs.chip_of(row))
    cycles = [Figure("cycles of one run", row["estimated_cycles"], "cycles")] if row["estimated_cycles"] else []
    return [*cycles, *([times.floor_figure(floor)] if floor is not None else [])]


def no_time(subject: Subject) -> list[Block]:
    """Why no time is known, and the command that would bring one; nothing where one is."""
    row = subject.row
    if subject.prediction is not None:
        return []
    capture = f"hlotrace capture {_script(subject)} --target {row['target'] or 'v5e'}"
    if row["platform"] not in ("tpu", None):
        text = f"No time: the compiler for {row['platform'].upper()} gives no cycles. The TPU's does, and needs no TPU:"
        return [Note(text, "missing", f"hlotrace capture {_script(subject)} --target v5e")]
    if row["error"] is not None:
        return []
    if row["estimated_cycles"] is not None and costs.chip_of(row) is None:
        return [Note("No time: these files do not say which chip it was compiled for.", "missing", capture)]
    if row["platform"] is None:
        return [Note("No time: the program carries no cycles of a TPU's compiler.", "missing", capture)]
    if subject.launched["estimated_cycles"].notna().any():
        return [Note("No time: how often a loop runs is not known, so cycles do not add up.", "missing")]
    if row["final_stage"] == "after_codegen":
        names = ", ".join(f"{opcode} x{count}" for opcode, count in costs.coverage(subject.launched).without[:3])
        return [Note(f"No time: the compiler gave no cycles for any launch ({names or 'there is none'}).", "missing")]
    text = "No time: the compiler's cycles stand in after_codegen, which is not among the files."
    return [Note(text, "missing", capture)]


def _script(subject: Subject) -> str:
    manifest = subject.tables.manifest
    if manifest and manifest.entry and ":" in manifest.entry:  # one from Python names a function alone
        return f"--entry {manifest.entry}"
    return manifest.argv[0] if manifest and manifest.argv else "MODEL.py"


def _before(value: int | None) -> str:
    return "" if value is None else f"{value:,} before optimisation"


def _compile_detail(row: dict[str, Any]) -> str:
    if row["compile_ns"] is None and row["error"] is not None:
        return "there is no executable"
    if row["compile_ns"] is None:
        return "not known: a raw dump does not say"
    parts = (("trace", row["trace_ns"]), ("lower", row["lower_ns"]))
    return ", ".join(f"{name} {format_ns(value)}" for name, value in parts if value is not None)


def other_targets(tables: Tables, row: dict[str, Any]) -> list[Block]:
    """The largest module of each other target that was compiled for, a line each: whether it fits, and its time."""
    largest: dict[str, dict[str, Any]] = {}
    for other in by_size(tables["modules"]):
        largest.setdefault(other["target"], other)
    shown = [other for target, other in largest.items() if target and target != row["target"]]
    return [Note(f"{title(other)}: {_in_short(tables, other)}.") for other in shown]


def _in_short(tables: Tables, row: dict[str, Any]) -> str:
    needed, capacity = row["hbm_needed_bytes"], row["hbm_capacity_bytes"]
    words = [] if needed is None else [f"{format_bytes(needed)} needed", memory.fits(needed, capacity)]
    if row["error"] is not None:
        words.append("no executable")
    found = times.prediction_of(tables, row)
    if found is not None:
        words.append(f"{format_ns(found.ns)} predicted for one run")
    return "; ".join(filter(None, words)) or "no figures"


def finding_notes(subject: Subject) -> list[Block]:
    """At most three sentences on what stands out."""
    return [Note(found.text, "finding") for found in findings(subject.row, subject.launched, subject.at_peak)]


VIEW = View("summary", "Summary", QUESTION, (MODULE, TOP), build)
