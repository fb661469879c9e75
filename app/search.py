"""Search: ops, opcodes, categories, source lines, named scopes and buffers of a module, the closest first."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlotrace.app.state import Selection

if TYPE_CHECKING:
    from hlotrace.app.data import Module
    from hlotrace.app.state import SelectionKind

MOST_HITS = 7
"""Of each kind."""

GROUPS: tuple[tuple[SelectionKind, str], ...] = (
    ("opcode", "Opcodes"),
    ("category", "Categories"),
    ("source", "Source lines"),
    ("scope", "Named scopes"),
)


@dataclass(frozen=True)
class Hit:
    """Something found: what choosing it selects, and a few words beside it."""

    title: str
    selection: Selection
    detail: str


def search(module: Module, text: str) -> list[Hit]:
    """What a text finds, at most MOST_HITS of each kind; nothing for an empty text."""
    wanted = text.strip().lower()
    if not wanted:
        return []
    hits = []
    names = module.lookup.groups("instruction")
    for name in _closest(names.names, wanted):
        row = module.final.iloc[int(names.rows(name)[0])]
        hits.append(Hit("Ops", Selection("op", name), f"{row['opcode']}  {_text(row['op_name'])}"))
    for kind, title in GROUPS:
        groups = module.lookup.all_by(kind)
        found = _closest(groups.names, wanted)
        hits += [Hit(title, Selection(kind, name), f"{groups.count(name):,} ops") for name in found]
    values = module.buffer_groups("value")
    for name in _closest(values.names, wanted):
        row = module.buffers.iloc[int(values.rows(name)[0])]
        hits.append(Hit("Buffers", Selection("buffer", name), f"{row['category']}  {_text(row['shape'])}"))
    return hits


def _closest(names: list[str], wanted: str) -> list[str]:
    """The names that hold `wanted`: equal ones first, then those that begin with it, then short before long."""
    lowered = ((name.lower(), name) for name in names)
    found = ((low != wanted, not low.startswith(wanted), len(low), low, name) for low, name in lowered if wanted in low)
    return [name for *_, name in heapq.nsmallest(MOST_HITS, found)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
