"""One selection, everywhere: what a chosen op, buffer, source line or scope means on each page."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hlotrace.analyses.modules import records
from hlotrace.analyses.op_counts import scope_of
from hlotrace.units import is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from hlotrace.app.data import Module
    from hlotrace.app.state import Selection

MOST_LEVELS = 12
"""Scopes nested deeper than this are lit up at their full depth only."""

MOST_ROWS = 20_000
"""More rows than this are not lit up one by one; their groups still are."""


@dataclass(frozen=True)
class Chosen:
    """What a selection reaches in the final program.

    Attributes:
        found: whether this module has it at all.
        ids: the rows to light up in any grid, as the selections that choosing them makes.
        fusions: the fusions that are, or contain, what was chosen, the costliest first.
        count: the instructions that are meant.
        values: the buffers that are meant.
        spans: (first, last) schedule positions where they live.
        positions: schedule positions of the instructions.
    """

    select: str
    found: bool = False
    ids: tuple[str, ...] = ()
    fusions: tuple[str, ...] = ()
    count: int = 0
    values: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    positions: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a browser's store."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def choose(module: Module, selection: Selection | None) -> Chosen | None:
    """Everything that a selection reaches in a module; None when nothing is selected."""
    if selection is None:
        return None
    rows = matching(module, selection)
    values = _values(module, selection, rows)
    found = bool(len(rows) or len(values))
    if selection.kind == "before":
        found = module.before_lookup.groups("instruction").count(selection.name) > 0
    fusions = _fusions(module, rows)
    buffers = module.buffers.iloc[values]
    names = [name for name in buffers["value"].tolist() if isinstance(name, str)]
    return Chosen(
        select=str(selection),
        found=found,
        ids=tuple(dict.fromkeys(_ids(module, selection, rows, fusions, names)))[:MOST_ROWS],
        fusions=tuple(fusions),
        count=len(rows),
        values=tuple(names[:MOST_ROWS]),
        spans=tuple(_spans(buffers["live_from"].tolist(), buffers["live_to"].tolist())),
        positions=tuple(_positions(module, rows, fusions)),
    )


def matching(module: Module, selection: Selection, stage: str = "after") -> NDArray[np.int64]:
    """The rows of a stage (`after`: what runs; `before` optimisation) that a selection means.

    An op that was chosen in the other stage means those that carry its op_name and come from its source line.
    """
    lookup = module.lookup if stage == "after" else module.before_lookup
    if selection.kind in ("op", "before"):
        if (selection.kind == "op") == (stage == "after"):
            return lookup.groups("instruction").rows(selection.name)
        return _counterparts(module, selection.name, stage)
    if selection.kind == "buffer":
        defining = module.buffer_groups("value").rows(selection.name)
        names = [name for name in module.buffers["instruction"].iloc[defining].tolist() if isinstance(name, str)]
        return lookup.groups("instruction").rows_of(names)
    if selection.kind == "scope":
        return lookup.scope(selection.name)
    return lookup.all_by(selection.kind).rows(selection.name)


def _counterparts(module: Module, name: str, stage: str) -> NDArray[np.int64]:
    """The rows of a stage with the op_name, and the source line where there is one, of an op of the other stage."""
    here, other = (module.lookup, module.before_lookup) if stage == "after" else (module.before_lookup, module.lookup)
    rows = other.groups("instruction").rows(name)
    op_names = {found for row in rows if (found := other.groups("op_name").name_of(int(row)))}
    lines = {found for row in rows if (found := other.groups("source").name_of(int(row)))}
    same = here.groups("op_name").rows_of(sorted(op_names))
    return np.intersect1d(same, here.groups("source").rows_of(sorted(lines))) if lines else same


def _fusions(module: Module, rows: NDArray[np.int64]) -> list[str]:
    computations = module.lookup.groups("computation")
    codes = np.unique(computations.codes[rows])
    inside = {computations.names[code] for code in codes if code >= 0}
    names = set(module.lookup.names[rows])
    groups = module.fusions
    columns = (groups[name].tolist() for name in ("fusion", "computation", "caller_computation"))
    return [
        fusion
        for fusion, computation, caller in zip(*columns, strict=True)
        if computation in inside or (fusion in names and caller in inside)
    ]


def _values(module: Module, selection: Selection, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    if selection.kind == "buffer":
        return module.buffer_groups("value").rows(selection.name)
    return module.buffer_groups("instruction").rows_of(list(dict.fromkeys(module.lookup.names[rows])))


def _ids(
    module: Module, selection: Selection, rows: NDArray[np.int64], fusions: list[str], values: list[str]
) -> Iterable[str]:
    """The rows to light up: what was chosen, its instructions and buffers and, for a single op, its groups."""
    yield str(selection)
    yield from (f"op:{name}" for name in fusions)
    yield from (f"buffer:{value}" for value in values)
    yield from (f"op:{name}" for name in module.lookup.names[rows])
    if len(rows) == 1:
        yield from groups_of(records(module.final.iloc[rows[:1]])[0])


def groups_of(row: dict[str, Any]) -> Iterable[str]:
    """The selections that an instruction belongs to: its opcode, category, source line and scopes."""
    for name in ("opcode", "category"):
        if isinstance(row[name], str):
            yield f"{name}:{row[name]}"
    if source := source_of(row):
        yield f"source:{source}"
    if isinstance(row["op_name"], str):
        scopes = dict.fromkeys(scope_of(row["op_name"], depth) for depth in range(MOST_LEVELS))
        yield from (f"scope:{scope}" for scope in scopes)


def source_of(row: dict[str, Any], whose: Literal["user", "source"] = "user") -> str | None:
    """`file:line` of a row that has both: the user's own, or (`source`) that of the innermost frame."""
    file, line = row[f"{whose}_file"], row[f"{whose}_line"]
    return f"{file}:{int(line)}" if isinstance(file, str) and not is_missing(line) else None


def places_of(row: dict[str, Any]) -> str:
    """The user's own line of a row, and under it the innermost frame's where that is another; empty for none."""
    own, innermost = source_of(row), source_of(row, "source")
    return own or "" if innermost in (own, None) else f"{own}\ninnermost frame: {innermost}"


def _spans(first: list[Any], last: list[Any]) -> list[tuple[int, int]]:
    pairs = {(int(a), int(b)) for a, b in zip(first, last, strict=True) if not is_missing(a) and not is_missing(b)}
    return sorted(pairs)


def _positions(module: Module, rows: NDArray[np.int64], fusions: list[str]) -> list[int]:
    """Where the instructions stand in the schedule; those inside a fusion stand where it does."""
    callers = module.lookup.groups("instruction").rows_of(fusions)
    found = module.lookup.schedule[np.concatenate([rows, callers])]
    return [int(position) for position in np.unique(found[~np.isnan(found)])]
