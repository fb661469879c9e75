"""What was fused, what does each fusion save, and where does it come from?

jit_layer on v5e:2x2
fusions 17   launches saved 61   bytes kept out of memory 312.00 MiB
fusion     kind     category  members              in (MiB)  out (MiB)  kept out  saved  cycles (k)  source
fusion.12  kOutput  matmul    convolution, add x2     24.00       8.00     16.00      2      362.10  layer.py:20,21
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.analyses import fusions as analysis
from hlotrace.analyses.modules import records
from hlotrace.errors import unknown_name
from hlotrace.units import format_bytes
from hlotrace.views.blocks import Block, Figure, Figures, Graph, Grid, Heading, Note, ShownColumn, Treemap
from hlotrace.views.common import (
    SOURCE,
    command,
    cut,
    module_option,
    opening,
    problems_tail,
    rows_of,
    telling,
    with_source,
)
from hlotrace.views.view import MODULE, TOP, Parameter, Tables, View

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.tables import Unit

QUESTION = "What was fused, what does each fusion save, and where does it come from?"
HAD_EACH = "had every member been a kernel"
COPIES = "copies that XLA made of a member count each time, so it can exceed the launches before"
MOST_TILES = 300
MOST_NODES = 120

FUSION = Parameter("fusion", "string", "one fusion, with its members as a graph")


def build(tables: Tables, *, module: str | None, fusion: str | None, top: int) -> list[Block]:
    """All fusions of a module as a table and a treemap, or one of them with its members."""
    row, blocks = opening(tables, module, QUESTION)
    groups = analysis.fusion_groups(rows_of(tables, "fusions", str(row["module"])))
    if fusion is not None:
        return [*blocks, *_one(tables, row, groups, fusion), *problems_tail(tables)]
    if groups.empty:
        return [*blocks, Note("Nothing is fused in this module.", "missing"), *problems_tail(tables)]
    blocks += [figures_of(groups, row), fusions_grid(groups, top), treemap(groups)]
    first = str(groups["fusion"].iloc[0])
    next_command = command(tables, "fusions", module_option(tables, row), fusion=first)
    blocks.append(Note("One fusion with its members:", command=next_command))
    return [*blocks, *problems_tail(tables)]


def _joined(texts: object) -> str:
    return ", ".join(str(text) for text in texts) if texts is not None else ""  # type: ignore[attr-defined]


def figures_of(groups: pd.DataFrame, row: dict[str, Any]) -> Figures:
    """How many fusions there are, what they save in one run, and the launches that there were and are."""
    before = row["launches_before"]
    words = "" if before is None else f"{before:,} before optimisation"
    saved, kept = (_total(groups[f"{name}_total"]) for name in ("launches_saved", "internal_bytes"))
    return Figures(
        (
            Figure("fusions", len(groups), "count"),
            Figure("launches", row["launches"], "count", detail=words),
            Figure("launches saved, all trips", saved, "count", "predicted", f"{HAD_EACH}; {COPIES}"),
            Figure("bytes kept out of memory, all trips", kept, "bytes", "predicted", HAD_EACH),
        )
    )


def _total(column: pd.Series) -> int | None:
    return int(column.sum()) if column.notna().any() else None


def fusions_grid(groups: pd.DataFrame, top: int) -> Grid:
    """The fusions, the costliest first; figures that are known of none are left out."""
    frame = groups.assign(
        members=groups["member_opcodes"].map(_joined), sources=groups["source_lines"].map(analysis.joined_sources)
    )
    figures = (
        ShownColumn("operand_bytes", "bytes in", "bytes"),
        ShownColumn("output_bytes", "bytes out", "bytes"),
        ShownColumn("internal_bytes", "kept out", "bytes", "predicted"),
        ShownColumn("launches_saved", "saved", "count", "predicted"),
        ShownColumn("execution_count", "runs", "count", "predicted"),
        ShownColumn("cycles_total", "cycles", "cycles", emphasis="bar"),
    )
    columns = (
        ShownColumn("fusion", "fusion", emphasis="code"),
        ShownColumn("kind", "kind"),
        ShownColumn("category", "category"),
        ShownColumn("members", "members", emphasis="code"),
        *telling(frame, figures),
        ShownColumn("sources", "source", emphasis="places"),
    )
    note = "Bytes and launches saved are of one execution, cycles of one run of the module."
    if frame["cycles_total"].isna().all():
        note = "Bytes and launches saved are of one execution. The compiler gave no cycles for these."
    return Grid("Fusions", cut(frame, top), columns, len(frame), note, "fusion")


AREAS: dict[str, tuple[str, Unit]] = {
    "time": ("the compiler's cycles", "cycles"),
    "bytes": ("bytes in and out", "bytes"),
    "count": ("instructions fused", "count"),
}
"""What the areas of the treemap may mean: words and unit. All count one run of the module."""


def areas_of(groups: pd.DataFrame) -> dict[str, pd.Series]:
    """The areas that are known for these fusions, by the names in AREAS."""
    count = groups["execution_count"]
    areas = {
        "time": groups["cycles_total"],
        "bytes": (groups["operand_bytes"] + groups["output_bytes"]) * count,
        "count": groups["member_count"] * count,
    }
    return {name: values for name, values in areas.items() if (values.fillna(0) > 0).any()}


def treemap(groups: pd.DataFrame, area: str | None = None) -> Treemap:
    """The largest fusions as tiles; `area` is one of AREAS, the compiler's cycles where it gave any for None."""
    areas = areas_of(groups)
    chosen = area if area in areas else next(iter(areas), "count")
    words, unit = AREAS[chosen]
    values = areas.get(chosen, groups["member_count"]).fillna(0)
    shown = groups[values > 0].assign(area=values).sort_values("area", ascending=False).head(MOST_TILES)
    cut_off = f", the largest {MOST_TILES}" if int((values > 0).sum()) > MOST_TILES else ""
    hover = tuple(
        f"{members}\n{sources}"
        for members, sources in zip(
            shown["member_opcodes"].map(_joined), shown["source_lines"].map(analysis.joined_sources), strict=True
        )
    )
    return Treemap(
        f"Fusions by {words}{cut_off}",
        tuple(shown["fusion"]),
        tuple(shown["category"].fillna("unknown")),
        tuple(float(value) for value in shown["area"]),
        unit,
        "compiler" if chosen == "time" else "predicted",
        hover,
    )


def _one(tables: Tables, row: dict[str, Any], groups: pd.DataFrame, name: str) -> list[Block]:
    found = groups[groups["fusion"] == name]
    if found.empty:
        raise unknown_name("fusion", name, groups["fusion"].tolist(), place="--fusion")
    fusion = records(found)[0]
    instructions = rows_of(tables, "instructions", str(row["module"]), analysis.MEMBER_COLUMNS)
    inside, passed = analysis.without_passing(analysis.members(instructions, fusion, row["final_stage"]))
    blocks: list[Block] = [Heading(f"{name}: {fusion['category']}"), fusion_figures(fusion)]
    if len(inside.nodes) <= MOST_NODES:
        blocks.append(members_graph(name, inside))
    else:
        blocks.append(Note(f"{len(inside.nodes)} members are too many for a graph; the table has them all."))
    if passed:
        blocks.append(Note(passed_words(passed)))
    if nested := nested_words(inside):
        blocks.append(Note(nested))
    if inside.frame is not None:
        blocks.append(members_grid(with_source(inside.frame)))
    return blocks


def passed_words(count: int) -> str:
    """What is left out of a fusion's graph."""
    return f"{count:,} {'input goes to an output' if count == 1 else 'inputs go to outputs'} untouched, not drawn."


def nested_words(inside: analysis.Members) -> str:
    """What a fusion's graph draws as one; empty where it draws each member."""
    count = sum(row["opcode"] == "fusion" for row, kind in inside.nodes.values() if kind == "member")
    if not count:
        return ""
    which = (
        "1 nested fusion is drawn as one node, its members are"
        if count == 1
        else f"{count} nested fusions are drawn as one node each, their members are"
    )
    return f"{which} in the table."


def fusion_figures(fusion: dict[str, Any]) -> Figures:
    """What is known of one fusion."""
    return Figures(
        (
            Figure("kind", fusion["kind"]),
            Figure("members", fusion["member_count"], "count", detail=_joined(fusion["member_opcodes"])),
            Figure("bytes in", fusion["operand_bytes"], "bytes"),
            Figure("bytes out", fusion["output_bytes"], "bytes"),
            Figure("kept out a trip", fusion["internal_bytes"], "bytes", "predicted"),
            Figure("saved a trip", fusion["launches_saved"], "count", "predicted"),
            Figure("cycles a run", fusion["estimated_cycles"], "cycles"),
            Figure("executions", fusion["execution_count"], "count", "predicted"),
        )
    )


def members_graph(name: str, inside: analysis.Members) -> Graph:
    """The members of a fusion with bytes on the edges."""
    nodes = {key: (_label(row, kind), kind) for key, (row, kind) in inside.nodes.items()}
    edges = tuple(
        (start, end, f"{format_bytes(size)}{_space(inside, start, end) if memory else ''}", memory)
        for start, end, size, memory in inside.edges
    )
    return Graph(f"Inside {name}", nodes, edges)


def _space(inside: analysis.Members, start: str, end: str) -> str:
    """Which memory a value goes through, where it is not the main one."""
    row = inside.nodes[start if inside.nodes[start][1] == "input" else end][0]
    return f" {row['memory_space_name']}" if row["memory_space"] else ""


def _label(row: dict[str, Any], kind: str) -> str:
    shape = (row["shape"] or "").partition("{")[0]
    if kind == "input":
        return f"{row['operand']}\n{shape}"
    if kind == "output":
        return f"{row['instruction']}\n{shape}"
    source = f"\n{row['user_file'].rpartition('/')[2]}:{row['user_line']}" if row["user_file"] else ""
    return f"{row['opcode']}\n{shape}{source}"


def members_grid(frame: pd.DataFrame) -> Grid:
    """The members of a fusion, in the order of the file."""
    columns = (
        ShownColumn("instruction", "member", emphasis="code"),
        ShownColumn("opcode", "opcode"),
        ShownColumn("shape", "shape", emphasis="code"),
        ShownColumn("bytes", "bytes", "bytes"),
        ShownColumn("flops", "FLOPs", "flop", "predicted"),
        ShownColumn("op_name", "op name", emphasis="path"),
        SOURCE,
    )
    return Grid("Members", frame, columns, len(frame), selects="instruction")


VIEW = View("fusions", "Fusions", QUESTION, (MODULE, FUSION, TOP), build)
