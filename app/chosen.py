"""One selection, everywhere: what a chosen op, buffer, source line or scope means on each page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.op_counts import group_keys, scope_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from hlotrace.app.data import Module
    from hlotrace.app.state import Selection

MOST_ROWS = 20_000
"""More rows than this are not lit up one by one; their groups still are."""


@dataclass(frozen=True)
class Chosen:
    """What a selection reaches in the final program.

    Attributes:
        found: whether this module has it at all.
        ids: the rows to light up in any grid, as the selections that choosing them makes.
        fusions: the fusions that are, or contain, what was chosen.
        members: the instructions inside those fusions that are meant.
        spans: (first, last) schedule positions where its buffers live.
        positions: schedule positions of its instructions.
    """

    select: str
    found: bool = False
    ids: tuple[str, ...] = ()
    fusions: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    positions: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a browser's store."""
        return asdict(self)


def choose(module: Module, selection: Selection | None) -> Chosen | None:
    """Everything that a selection reaches in a module; None when nothing is selected."""
    if selection is None:
        return None
    rows = matching(module, selection)
    values = _values(module, selection, rows)
    found = bool(len(rows) or len(values))
    if selection.kind == "before":
        found = bool((module.before["instruction"] == selection.name).any())
    fusions = _fusions(module, rows)
    return Chosen(
        select=str(selection),
        found=found,
        ids=tuple(_ids(selection, rows, fusions, values))[:MOST_ROWS],
        fusions=tuple(fusions),
        members=tuple(rows["instruction"])[:MOST_ROWS],
        values=tuple(values["value"].dropna())[:MOST_ROWS],
        spans=tuple(_spans(values)),
        positions=tuple(sorted({int(position) for position in _positions(module, rows, fusions)})),
    )


def matching(module: Module, selection: Selection, stage: str = "after") -> pd.DataFrame:
    """The instructions of a stage (`after`: what runs; `before` optimisation) that a selection means.

    An op that was chosen in the other stage means those that carry its op_name and come from its source line.
    """
    frame = module.final if stage == "after" else module.before
    if selection.kind in ("op", "before"):
        if (selection.kind == "op") == (stage == "after"):
            return frame[_is(frame["instruction"], selection.name)]
        other = module.before if stage == "after" else module.final
        return _counterparts(frame, other[_is(other["instruction"], selection.name)])
    if selection.kind == "buffer":
        defining = module.buffers.loc[_is(module.buffers["value"], selection.name), "instruction"]
        return frame[frame["instruction"].isin(defining.dropna())]
    if selection.kind == "scope":
        names = frame["op_name"].astype("string")
        inside = (names == selection.name) | names.str.startswith(selection.name + "/")
        return frame[inside.fillna(False).astype(bool)]
    return frame[_is(group_keys(frame, selection.kind), selection.name)]


def _is(column: pd.Series, name: str) -> pd.Series:
    return (column == name).fillna(False).astype(bool)


def _counterparts(frame: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    named = rows.dropna(subset=["op_name"])
    same = frame["op_name"].isin(named["op_name"])
    lines = named["source_line"].dropna()
    if len(lines):
        same &= frame["source_line"].isin(lines)
    return frame[same.fillna(False).astype(bool)]


def _fusions(module: Module, rows: pd.DataFrame) -> list[str]:
    groups = module.fusions
    is_it = groups["fusion"].isin(rows["instruction"]) & groups["caller_computation"].isin(rows["computation"])
    holds_it = groups["computation"].isin(rows["computation"])
    return [str(name) for name in groups.loc[is_it | holds_it, "fusion"]]


def _values(module: Module, selection: Selection, rows: pd.DataFrame) -> pd.DataFrame:
    buffers = module.buffers
    if selection.kind == "buffer":
        return buffers[_is(buffers["value"], selection.name)]
    return buffers[buffers["instruction"].isin(rows["instruction"])]


def _ids(selection: Selection, rows: pd.DataFrame, fusions: list[str], values: pd.DataFrame) -> Iterable[str]:
    """The rows to light up: what was chosen, its instructions and buffers and, for a single op, its groups."""
    yield str(selection)
    yield from (f"op:{name}" for name in fusions)
    yield from (f"buffer:{value}" for value in values["value"].dropna())
    yield from (f"op:{name}" for name in rows["instruction"])
    if len(rows) == 1:
        yield from groups_of(rows.iloc[0].to_dict())


def groups_of(row: dict[str, Any]) -> Iterable[str]:
    """The selections that an instruction belongs to: its opcode, category, source line and scope."""
    for name in ("opcode", "category"):
        if isinstance(row[name], str):
            yield f"{name}:{row[name]}"
    if source := source_of(row):
        yield f"source:{source}"
    if isinstance(row["op_name"], str):
        yield f"scope:{scope_of(row['op_name'])}"


def source_of(row: dict[str, Any]) -> str | None:
    """`file:line` of a row that has both."""
    file, line = row["source_file"], row["source_line"]
    return f"{file}:{int(line)}" if isinstance(file, str) and line is not None and line == line else None


def _spans(values: pd.DataFrame) -> Iterable[tuple[int, int]]:
    known = values.dropna(subset=["live_from", "live_to"])
    pairs = zip(known["live_from"], known["live_to"], strict=True)
    return sorted({(int(first), int(last)) for first, last in pairs})


def _positions(module: Module, rows: pd.DataFrame, fusions: list[str]) -> Iterable[int]:
    yield from rows["schedule_index"].dropna()
    callers = module.final[module.final["instruction"].isin(fusions)]
    yield from callers["schedule_index"].dropna()
