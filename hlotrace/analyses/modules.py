"""Which module is meant: the one that was asked for, or the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.errors import HlotraceError, unknown_name
from hlotrace.units import is_missing

if TYPE_CHECKING:
    import pandas as pd

SMALL_MODULE = 12
"""Up to so many instructions in one computation's worth of program is an eager primitive, not a model."""

_ACCELERATORS_FIRST = {"tpu": 2, "gpu": 1}


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain dicts, what is not known as None."""
    return [
        {str(name): _plain(value) for name, value in row.items()} for row in frame.astype(object).to_dict("records")
    ]


def _plain(value: Any) -> Any:
    if is_missing(value):
        return None
    return value.tolist() if hasattr(value, "tolist") else value


def by_size(modules: pd.DataFrame) -> list[dict[str, Any]]:
    """The modules, largest first, by instructions and then FLOPs; of one program's targets, accelerators first."""
    rows = records(modules)
    largest: dict[str, int] = {}
    for row in rows:
        largest[row["name"]] = max(largest.get(row["name"], 0), row["instruction_count"] or 0)
    return sorted(
        rows,
        key=lambda row: (
            largest[row["name"]],
            row["name"] or "",
            _ACCELERATORS_FIRST.get(row["platform"] or "", 0),
            row["instruction_count"] or 0,
            row["flops"] or 0,
        ),
        reverse=True,
    )


def chosen_module(modules: pd.DataFrame, wanted: str | None = None) -> dict[str, Any]:
    """The row of the module `wanted` (by `module`, or by `name` where only one has it); the largest for None.

    Raises:
        HlotraceError: there is no such module, several have the name, or there is none at all.
    """
    rows = by_size(modules)
    if not rows:
        raise HlotraceError(
            "there is no module in it",
            remedy="Give a bundle that `hlotrace capture` made, a directory that --xla_dump_to wrote, or one HLO file.",
        )
    if wanted is None:
        return rows[0]
    for row in rows:
        if row["module"] == wanted:
            return row
    named = [row for row in rows if row["name"] == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        raise HlotraceError(
            f"{len(named)} modules are named {wanted!r}",
            place="--module",
            remedy=f"Choose one: {', '.join(row['module'] for row in named)}.",
        )
    raise unknown_name("module", wanted, [row["module"] for row in rows], place="--module")


def is_small(module: dict[str, Any]) -> bool:
    """Whether it is as small as an eager primitive or a helper of a library, and no compile that failed."""
    return module["error"] is None and (module["instruction_count"] or 0) <= SMALL_MODULE
