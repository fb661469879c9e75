"""Search: ops, opcodes, categories, source lines, named scopes and buffers of a module, the closest first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from hlotrace.analyses.op_counts import group_keys
from hlotrace.app.state import Selection

if TYPE_CHECKING:
    import pandas as pd

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
    final, buffers = module.final, module.buffers
    hits = []
    for name in _closest(final["instruction"], wanted):
        row = final[final["instruction"] == name].iloc[0]
        hits.append(Hit("Ops", Selection("op", name), f"{row['opcode']}  {_text(row['op_name'])}"))
    for kind, title in GROUPS:
        counts = _group_counts(module, kind)
        found = _closest(counts.index.to_series(), wanted)
        hits += [Hit(title, Selection(kind, name), f"{counts[name]:,} ops") for name in found]
    for name in _closest(buffers["value"], wanted):
        row = buffers[buffers["value"] == name].iloc[0]
        hits.append(Hit("Buffers", Selection("buffer", name), f"{row['category']}  {_text(row['shape'])}"))
    return hits


@lru_cache(maxsize=64)
def _group_counts(module: Module, kind: str) -> pd.Series:
    counts: pd.Series = group_keys(module.final, kind).dropna().astype(str).value_counts()
    return counts


def _closest(names: pd.Series, wanted: str) -> list[str]:
    """The names that hold `wanted`: equal ones first, then those that begin with it, then short before long."""
    found = names[names.str.lower().str.contains(wanted, regex=False).fillna(False).astype(bool)].unique()
    lowered = ((str(name).lower(), str(name)) for name in found)
    ordered = sorted(
        lowered, key=lambda pair: (pair[0] != wanted, not pair[0].startswith(wanted), len(pair[0]), pair[0])
    )
    return [name for _, name in ordered[:MOST_HITS]]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
