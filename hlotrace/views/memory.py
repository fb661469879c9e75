"""How much memory does it need, when is the peak, and what is alive then?

jit_layer on v5e:2x2
HBM needed 308.12 MiB of 15.75 GiB   alive at the peak 289.40 MiB, at fusion.31 (position 44 of 97)
At the peak, by category
category  alive (MiB)  share
temp           240.10  83.0%
Alive at the peak
value       category  size (MiB)  padding  shape                       live    source
fusion.9    temp          128.00      0.0  f32[4,16,1024,1024]{…}     31–47   …/layer.py:18
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.analyses import alive as analysis
from hlotrace.errors import HlotraceError, unknown_name
from hlotrace.units import format_bytes
from hlotrace.views.blocks import Block, Figure, Figures, Grid, Note, ShownColumn, StackedArea
from hlotrace.views.common import command, cut, module_option, opening, problems_tail, rows_of, with_source
from hlotrace.views.view import MODULE, TOP, Parameter, Tables, View

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "How much memory does it need, when is the peak, and what is alive then?"

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
    if not names:
        return [*blocks, totals(row, None, "memory"), missing(row), *problems_tail(tables)]
    space = chosen_space(names, memory_space)
    where = analysis.position(timeline, space, at)
    if where is None and at is not None:
        raise _outside(timeline, space, at)
    blocks.append(totals(row, where, names[space], space, buffers))
    if where is None:
        blocks += [missing(row), allocations_grid(buffers, space, top)]
        return [*blocks, *problems_tail(tables)]
    capacity = row["hbm_capacity_bytes"] if space == 0 else None
    blocks.append(timeline_area(timeline, space, names[space], where.index, capacity))
    blocks += [
        categories_grid(where, _moment(at)),
        alive_grid(analysis.alive(buffers, space, where.index), _moment(at), top),
    ]
    blocks += _other_spaces(tables, row, names, space)
    return [*blocks, *problems_tail(tables)]


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
) -> Figures:
    """What is needed in all (for the main memory), allocated in a space, and alive at a position."""
    items = []
    if where is not None:
        at = f"at {where.instruction or '?'} (position {where.index})"
        items.append(Figure(f"alive in {name}", where.live_bytes, "bytes", detail=at))
    items += main_figures(row) if space == 0 else []
    if buffers is not None and (space != 0 or row["hbm_needed_bytes"] is not None):
        items.append(Figure(f"allocated in {name}", _allocated(row, space, buffers), "bytes"))
    return Figures(tuple(items))


def _allocated(row: dict[str, Any], space: int, buffers: pd.DataFrame) -> int:
    if space == 0 and row["hbm_total_bytes"] is not None:
        return int(row["hbm_total_bytes"])
    allocations = buffers[(buffers["memory_space"] == space) & (buffers["category"] != "thread_local")]
    return int(allocations.drop_duplicates("allocation")["allocation_bytes"].sum())


def main_figures(row: dict[str, Any]) -> list[Figure]:
    """Memory needed and its parts, those that are known."""
    figures = [needed_figure(row, "memory")]
    parts = (
        ("arguments", "argument_bytes"),
        ("outputs", "output_bytes"),
        ("donated", "alias_bytes"),
        ("code", "code_bytes"),
    )
    figures += [Figure(label, row[column], "bytes") for label, column in parts if row[column] is not None]
    figures += [Figure("temporaries", row["temp_bytes"], "bytes", detail=_temporaries(row))]
    return [figure for figure in figures if figure.value is not None]


def _temporaries(row: dict[str, Any]) -> str:
    ours, theirs = row["temp_bytes"], row["compiler_temp_bytes"]
    if ours is None or theirs is None:
        return ""
    if ours == theirs:
        return "as the compiler says"
    difference = f"{format_bytes(abs(ours - theirs))} {'less' if theirs < ours else 'more'}"
    return f"the compiler says {format_bytes(theirs)}, {difference}"


def needed_figure(row: dict[str, Any], name: str) -> Figure:
    """What a module needs of the main memory, and whether that fits; without its code where that is not known."""
    needed, capacity = row["hbm_needed_bytes"], row["hbm_capacity_bytes"]
    if needed is None and row["hbm_total_bytes"] is not None:
        total = row["hbm_total_bytes"]
        words = "; ".join(filter(None, (fits(total, capacity), "code not counted")))
        return Figure(f"{name} allocated", total, "bytes", detail=words, capacity=capacity)
    return Figure(f"{name} needed", needed, "bytes", detail=fits(needed, capacity), capacity=capacity)


def fits(needed: int | None, capacity: int | None) -> str:
    """Whether that much fits, in words; empty where it cannot be said."""
    if needed is None or capacity is None:
        return ""
    if needed > capacity:
        return f"does not fit: {format_bytes(needed - capacity)} too much"
    return f"fits: {format_bytes(capacity - needed)} left"


def timeline_area(timeline: pd.DataFrame, space: int, name: str, marked: int, capacity: int | None) -> StackedArea:
    """The timeline of a memory space, stacked by category; categories that hold nothing are left out."""
    rows = timeline[timeline["memory_space"] == space].sort_values("schedule_index")
    series = {category: rows[f"{category}_bytes"].fillna(0) for category in analysis.CATEGORIES}
    return StackedArea(
        f"Alive in {name} over the schedule",
        tuple(int(index) for index in rows["schedule_index"]),
        "schedule position",
        {category: tuple(float(v) for v in values) for category, values in series.items() if (values > 0).any()},
        "bytes",
        capacity=capacity,
        peak_x=marked,
        hover=tuple(rows["instruction"].fillna("").astype(str)),
    )


def categories_grid(where: analysis.Position, moment: str) -> Grid:
    """Bytes alive at a position by the category of their allocation."""
    import pandas as pd

    rows = sorted(where.by_category.items(), key=lambda item: -item[1])
    frame = pd.DataFrame(
        {
            "category": [name for name, _ in rows],
            "live_bytes": [size for _, size in rows],
            "share": [size / where.live_bytes for _, size in rows],
        }
    )
    columns = (
        ShownColumn("category", "category"),
        ShownColumn("live_bytes", "alive", "bytes"),
        ShownColumn("share", "share", "share", emphasis="bar"),
    )
    return Grid(f"By category {moment}", frame, columns, len(frame))


def alive_grid(alive: pd.DataFrame, moment: str, top: int) -> Grid:
    """What is alive at a position, largest first, with source lines."""
    frame = _named_sources(alive).assign(
        live=alive["live_from"].astype("string") + "–" + alive["live_to"].astype("string")
    )
    columns = (
        ShownColumn("value", "value", emphasis="code"),
        ShownColumn("category", "category"),
        ShownColumn("bytes", "size", "bytes", emphasis="bar"),
        *_padding(cut(frame, top)),
        ShownColumn("shape", "shape", emphasis="code"),
        ShownColumn("live", "live"),
        ShownColumn("source", "source", emphasis="path"),
    )
    shared = int((alive["counted_bytes"] == 0).sum())
    note = f"{shared} of them share their place with a larger one and add nothing." if shared else ""
    return Grid(f"Alive {moment}", cut(frame, top), columns, len(frame), note, "buffer")


def _named_sources(buffers: pd.DataFrame) -> pd.DataFrame:
    """With `source`; arguments have no line in a program, so theirs is the name that the framework gave them."""
    frame = with_source(buffers)
    return frame.assign(source=frame["source"].fillna(frame["op_name"]))


def _padding(frame: pd.DataFrame) -> list[ShownColumn]:
    """The column of padding, where any is to be seen."""
    return [ShownColumn("padding_bytes", "padding", "bytes")] if (frame["padding_bytes"].fillna(0) > 0).any() else []


def allocations_grid(buffers: pd.DataFrame, space: int, top: int) -> Grid:
    """The largest values of a memory space, where there is no timeline."""
    frame = _named_sources(buffers[buffers["memory_space"] == space].sort_values("bytes", ascending=False))
    columns = (
        ShownColumn("value", "value", emphasis="code"),
        ShownColumn("category", "category"),
        ShownColumn("bytes", "size", "bytes", emphasis="bar"),
        *_padding(cut(frame, top)),
        ShownColumn("shape", "shape", emphasis="code"),
        ShownColumn("source", "source", emphasis="path"),
    )
    return Grid("Largest values", cut(frame, top), columns, len(frame), selects="buffer")


def _other_spaces(tables: Tables, row: dict[str, Any], names: dict[int, str], space: int) -> list[Block]:
    others = [number for number in names if number != space]
    if not others:
        return []
    words = ", ".join(f"{names[number]} ({number})" for number in others)
    example = command(tables, "memory", module_option(tables, row), memory_space=others[0])
    return [Note(f"Also in {words}.", command=example)]


VIEW = View("memory", "Memory", QUESTION, (MODULE, SPACE, AT, TOP), build)
