"""How much memory does it need, when is the peak, and what is alive then?

jit_layer on v5e:2x2
HBM needed 308.12 MiB of 15.75 GiB   alive at the peak 289.40 MiB, at fusion.31 (position 44 of 97)
By role at the peak
role       alive (MiB)  share
temporary       240.10  83.0%
Alive at the peak
value       role       size (MiB)  padding  shape                       live    source
fusion.9    temporary      128.00      0.0  f32[4,16,1024,1024]{…}     31–47   …/layer.py:18
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.analyses import alive as analysis
from hlotrace.errors import HlotraceError, unknown_name
from hlotrace.units import format_bytes
from hlotrace.views.blocks import Block, Figure, Figures, Grid, Note, Origin, ShownColumn, StackedArea
from hlotrace.views.common import SOURCE, command, cut, module_option, opening, problems_tail, rows_of, with_source
from hlotrace.views.view import MODULE, TOP, Parameter, Tables, View

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.bundle import Manifest

QUESTION = "How much memory does it need, when is the peak, and what is alive then?"

ROLES = {
    "argument": "argument",
    "alias": "donated argument",
    "output": "output",
    "temp": "temporary",
    "preallocated": "temporary",
    "constant": "constant",
}
"""What XLA's categories of allocations hold. A TPU's compiler puts its temporaries into one preallocated block."""
OTHER_ROLE = "other"
INCOMPLETE = "at least: the buffer assignment is incomplete"
INHERITED = " *"
INHERITED_NOTE = "* The source of what produced the value, which has none of its own."

AT = Parameter("at", "int", "a schedule position; the peak when not given")
SPACE = Parameter(
    "memory_space", "string", "a memory space by name or number, such as vmem or 1; the main memory when not given"
)


def build(tables: Tables, *, module: str | None, memory_space: str | None, at: int | None, top: int) -> list[Block]:
    """Totals, the timeline, and what is alive at the peak or at a position."""
    row, blocks = opening(tables, module, QUESTION)
    name = str(row["module"])
    buffers, timeline = rows_of(tables, "buffers", name), rows_of(tables, "memory_timeline", name)
    names = space_names(buffers, timeline)
    peak = compiler_peak(tables.manifest, row)
    if not names:
        return [*blocks, totals(row, None, main_name(row), peak=peak), missing(row), *problems_tail(tables)]
    space = chosen_space(names, memory_space)
    where = analysis.position(timeline, space, at)
    if where is None and at is not None:
        raise _outside(timeline, space, at)
    blocks.append(totals(row, where, names[space], space, buffers, peak))
    origin = buffers_origin(row)
    if where is None:
        blocks += [missing(row), allocations_grid(buffers, space, top, origin)]
        return [*blocks, *problems_tail(tables)]
    capacity = row["hbm_capacity_bytes"] if space == 0 else None
    blocks.append(timeline_area(timeline, space, names[space], where.index, capacity, alive_origin(row)))
    blocks += [
        roles_grid(where, _moment(at), alive_origin(row)),
        alive_grid(analysis.alive(buffers, space, where.index), _moment(at), top, origin),
    ]
    blocks += _other_spaces(tables, row, names, space)
    return [*blocks, *problems_tail(tables)]


def buffers_origin(row: dict[str, Any]) -> Origin:
    """Where figures of a module's buffers are from; those of half a file are no more certain than a model's."""
    return "compiler" if row["buffers_from"] == "compiler" else "predicted"


def alive_origin(row: dict[str, Any]) -> Origin:
    """Where figures of what lives when are from: the compiler's only if both buffers and live ranges are."""
    return buffers_origin(row) if row["live_ranges_from"] == "compiler" else "predicted"


def main_name(row: dict[str, Any]) -> str:
    """What the main memory is called on a module's platform."""
    return "HBM" if row["platform"] == "tpu" else "memory"


def compiler_peak(manifest: Manifest | None, row: dict[str, Any]) -> int | None:
    """`peak_memory_in_bytes` as `memory_analysis()` gave it; None where no capture kept it."""
    programs = manifest.programs if manifest else []
    program = next((program for program in programs if program.module == row["module"]), None)
    return (program.memory_analysis or {}).get("peak_memory_in_bytes") if program else None


def _moment(at: int | None) -> str:
    return "at the peak" if at is None else f"at position {at}"


def space_names(buffers: pd.DataFrame, timeline: pd.DataFrame) -> dict[int, str]:
    """The memory spaces of a module that hold anything, by number, with the name each has on its platform."""
    numbers = {*analysis.spaces(timeline), *analysis.spaces(buffers)}
    named = buffers.drop_duplicates("memory_space").set_index("memory_space")["memory_space_name"].to_dict()
    return {number: str(named.get(number, f"S({number})")) for number in sorted(numbers)}


def chosen_space(names: dict[int, str], wanted: str | None) -> int:
    """The number of the memory space `wanted` names; the first (HBM, or the host's memory on CPU) for None.

    Raises:
        HlotraceError: there is no such memory space here.
    """
    if wanted is None:
        return min(names)
    for number, name in names.items():
        if wanted.lower() in (str(number), name.lower(), f"s({number})"):
            return number
    known = [f"{name} ({number})" for number, name in names.items()]
    raise unknown_name("memory space", wanted, known, place="--memory-space")


def _outside(timeline: pd.DataFrame, space: int, at: int) -> HlotraceError:
    known = timeline.loc[timeline["memory_space"] == space, "schedule_index"]
    remedy = "This module has no timeline."
    if len(known):
        end = f" A live range that ends at {at} reaches the end of the program." if at == known.max() + 1 else ""
        remedy = f"Positions go from {known.min()} to {known.max()}.{end}"
    return HlotraceError(f"there is no schedule position {at}", place="--at", remedy=remedy)


def missing(row: dict[str, Any]) -> Note:
    """Why there is no timeline, and what would bring one."""
    if row["is_scheduled"] is False:
        text = "No timeline: the final program is not scheduled, so there is no order in which values live and die."
    else:
        text = "No timeline: neither a buffer assignment nor a schedule is among the files."
    return Note(text, "missing", "hlotrace capture MODEL.py")


def totals(
    row: dict[str, Any],
    where: analysis.Position | None,
    name: str,
    space: int = 0,
    buffers: pd.DataFrame | None = None,
    peak: int | None = None,
) -> Figures:
    """What is alive at a position, needed in all (for the main memory), and allocated in a space.

    Args:
        peak: the compiler's own figure (`compiler_peak`).
    """
    items = []
    if where is not None:
        at = f"at {where.instruction or '?'} (position {where.index})"
        items.append(Figure(f"alive in {name}", where.live_bytes, "bytes", alive_origin(row), at))
    items += main_figures(row) if space == 0 else []
    if buffers is not None and (space != 0 or row["hbm_needed_bytes"] is not None):
        allocated = _allocated(row, space, buffers)
        items.append(Figure(f"allocated in {name}", allocated, "bytes", buffers_origin(row)))
    if space == 0 and peak is not None:
        beside = "peak_memory_in_bytes" + (", which counts VMEM too" if row["platform"] == "tpu" else "")
        items.append(Figure("the compiler's peak", peak, "bytes", "compiler", beside))
    return Figures(tuple(items))


def _allocated(row: dict[str, Any], space: int, buffers: pd.DataFrame) -> int:
    if space == 0 and row["hbm_total_bytes"] is not None:
        return int(row["hbm_total_bytes"])
    allocations = buffers[(buffers["memory_space"] == space) & (buffers["category"] != "thread_local")]
    return int(allocations.drop_duplicates("allocation")["allocation_bytes"].sum())


def main_figures(row: dict[str, Any]) -> list[Figure]:
    """Memory needed and its parts, those that are known."""
    figures, origin = [needed_figure(row, main_name(row))], buffers_origin(row)
    parts = (
        ("arguments", "argument_bytes"),
        ("outputs", "output_bytes"),
        ("donated", "alias_bytes"),
        ("code", "code_bytes"),
    )
    figures += [Figure(label, row[column], "bytes", origin) for label, column in parts if row[column] is not None]
    figures += [Figure("temporaries", row["temp_bytes"], "bytes", "predicted", _temporaries(row))]
    return [figure for figure in figures if figure.value is not None]


def _temporaries(row: dict[str, Any]) -> str:
    ours, theirs = row["temp_bytes"], row["compiler_temp_bytes"]
    if ours is None or theirs is None:
        return ""
    if ours == theirs:
        return "as the compiler says"
    words = f"as allocated; the compiler's temp_size_in_bytes is {format_bytes(theirs)}"
    return words + (", on TPUs that is no sum of allocations" if row["platform"] == "tpu" else "")


def needed_figure(row: dict[str, Any], name: str) -> Figure:
    """What a module needs of the main memory, and whether that fits; without its code where that is not known."""
    needed, capacity, origin = row["hbm_needed_bytes"], row["hbm_capacity_bytes"], buffers_origin(row)
    incomplete = INCOMPLETE if row["buffers_from"] == "incomplete" else ""
    if needed is None and row["hbm_total_bytes"] is not None:
        total = row["hbm_total_bytes"]
        words = "; ".join(filter(None, (incomplete or fits(total, capacity), "code not counted")))
        return Figure(f"{name} allocated", total, "bytes", origin, words, capacity)
    return Figure(f"{name} needed", needed, "bytes", origin, incomplete or fits(needed, capacity), capacity)


def fits(needed: int | None, capacity: int | None) -> str:
    """Whether that much fits, in words; empty where it cannot be said."""
    if needed is None or capacity is None:
        return ""
    if needed > capacity:
        return f"does not fit: {format_bytes(needed - capacity)} too much"
    return f"fits: {format_bytes(capacity - needed)} left"


def timeline_area(
    timeline: pd.DataFrame,
    space: int,
    name: str,
    marked: int,
    capacity: int | None,
    origin: Origin = "compiler",
) -> StackedArea:
    """The timeline of a memory space, stacked by role; roles that hold nothing are left out."""
    rows = timeline[timeline["memory_space"] == space].sort_values("schedule_index")
    series: dict[str, pd.Series] = {}
    for category in analysis.CATEGORIES:
        series[ROLES[category]] = series.get(ROLES[category], 0) + rows[f"{category}_bytes"].fillna(0)
    return StackedArea(
        f"Alive in {name} over the schedule",
        tuple(int(index) for index in rows["schedule_index"]),
        "schedule position",
        {role: tuple(float(v) for v in values) for role, values in series.items() if (values > 0).any()},
        "bytes",
        origin,
        capacity=capacity,
        peak_x=marked,
        hover=tuple(rows["instruction"].fillna("").astype(str)),
    )


def by_role(where: analysis.Position) -> list[tuple[str, int]]:
    """Bytes alive at a position by what they hold, most first."""
    found: dict[str, int] = {}
    for category, size in where.by_category.items():
        found[ROLES[category]] = found.get(ROLES[category], 0) + size
    return sorted(found.items(), key=lambda item: -item[1])


def roles_grid(where: analysis.Position, moment: str, origin: Origin) -> Grid:
    """Bytes alive at a position by what they hold."""
    import pandas as pd

    rows = by_role(where)
    frame = pd.DataFrame(
        {
            "role": [name for name, _ in rows],
            "live_bytes": [size for _, size in rows],
            "share": [size / where.live_bytes for _, size in rows],
        }
    )
    columns = (
        ShownColumn("role", "role"),
        ShownColumn("live_bytes", "alive", "bytes", origin),
        ShownColumn("share", "share", "share", origin, "bar"),
    )
    return Grid(f"By role {moment}", frame, columns, len(frame), is_records=False)


def alive_grid(alive: pd.DataFrame, moment: str, top: int, origin: Origin = "compiler") -> Grid:
    """What is alive at a position, largest first, with source lines."""
    frame = _named_sources(alive).assign(
        live=alive["live_from"].astype("string") + "–" + alive["live_to"].astype("string")
    )
    columns = (
        *_value_columns(frame, top, origin),
        ShownColumn("live", "live"),
        SOURCE,
    )
    shared = int((alive["counted_bytes"] == 0).sum())
    note = f"{shared} of them share their place with a larger one and add nothing. " if shared else ""
    shown = cut(frame, top)
    return Grid(f"Alive {moment}", shown, columns, len(frame), (note + _inherited_note(shown)).strip(), "buffer")


def _inherited_note(shown: pd.DataFrame) -> str:
    return INHERITED_NOTE if shown["inherited_from"].notna().any() else ""


def _named_sources(buffers: pd.DataFrame) -> pd.DataFrame:
    """With `role` and `source`; arguments have no line in a program: theirs is the name that the framework gave.

    What a value has from what produced it is marked with INHERITED.
    """
    frame = with_source(buffers)
    origin = frame["inherited_from"]
    source, detail = (frame[name].fillna(frame["op_name"]) for name in ("source", "source_detail"))
    return frame.assign(
        source=(source + INHERITED).where(origin.notna(), source),
        source_detail=(detail + "\ninherited from " + origin).where(origin.notna(), detail),
        role=roles_of(buffers),
    )


def roles_of(buffers: pd.DataFrame) -> pd.Series:
    """What each value's allocation holds."""
    return buffers["category"].map(ROLES).fillna(OTHER_ROLE)


def _value_columns(frame: pd.DataFrame, top: int, origin: Origin) -> tuple[ShownColumn, ...]:
    return (
        ShownColumn("value", "value", emphasis="code"),
        ShownColumn("role", "role"),
        ShownColumn("bytes", "size", "bytes", origin, "bar"),
        *_padding(cut(frame, top), origin),
        ShownColumn("shape", "shape", emphasis="code"),
    )


def _padding(frame: pd.DataFrame, origin: Origin) -> list[ShownColumn]:
    """The column of padding, where any is to be seen."""
    return (
        [ShownColumn("padding_bytes", "padding", "bytes", origin)]
        if (frame["padding_bytes"].fillna(0) > 0).any()
        else []
    )


def allocations_grid(buffers: pd.DataFrame, space: int, top: int, origin: Origin) -> Grid:
    """The largest values of a memory space, where there is no timeline."""
    frame = _named_sources(buffers[buffers["memory_space"] == space].sort_values("bytes", ascending=False))
    columns = (
        *_value_columns(frame, top, origin),
        SOURCE,
    )
    shown = cut(frame, top)
    return Grid("Largest values", shown, columns, len(frame), _inherited_note(shown), "buffer")


def _other_spaces(tables: Tables, row: dict[str, Any], names: dict[int, str], space: int) -> list[Block]:
    others = [number for number in names if number != space]
    if not others:
        return []
    words = ", ".join(f"{names[number]} ({number})" for number in others)
    example = command(tables, "memory", module_option(tables, row), memory_space=others[0])
    return [Note(f"Also in {words}.", command=example)]


VIEW = View("memory", "Memory", QUESTION, (MODULE, SPACE, AT, TOP), build)
