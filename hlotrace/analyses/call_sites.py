"""The names of called functions from the places that call them: before optimisation they are relative to these.

`up/dot_general` in a function that `jit(f)/block0/jit(mlp)` and `jit(f)/block1/jit(mlp)` call is one op in each of
the two blocks: XLA copies it into both, and only so do scopes before and after optimisation meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.modules import records
from hlotrace.units import is_missing

if TYPE_CHECKING:
    import pandas as pd

MOST_SITES = 256
"""Functions that call functions multiply; from so many places on, the first stands for all."""


@dataclass(frozen=True)
class Site:
    """One way to come to a computation: the names of the calls on it, and its part of the computation's executions."""

    name: str = ""
    part: Fraction = Fraction(1)


def at_call_sites(rows: pd.DataFrame, instructions: pd.DataFrame, computations: pd.DataFrame) -> pd.DataFrame:
    """The rows of one stage, those in called functions once for each place that calls, with names from the entry.

    Args:
        rows: instructions, with `op_name`, `execution_count` and `computation`.
        instructions: all of the stage, those that call among them.
        computations: of the stage.
    """
    import pandas as pd

    sites = _sites(instructions, computations)
    pieces = []
    for computation, inside in rows.groupby("computation", sort=False):
        for site in sites.get(str(computation), [Site()]):
            names = inside["op_name"].where(inside["op_name"].map(lambda name, site=site: _is_whole(name, site)), None)
            names = names.fillna(f"{site.name}/" + inside["op_name"]) if site.name else inside["op_name"]
            runs = inside["execution_count"] * site.part.numerator // site.part.denominator
            pieces.append(inside.assign(op_name=names, execution_count=runs))
    return pd.concat(pieces) if pieces else rows


def _is_whole(name: Any, site: Site) -> bool:
    """Whether a name already begins at the entry, as those of loop bodies do, and of all after optimisation."""
    root = site.name.partition("/")[0]
    return isinstance(name, str) and (name == root or name.startswith(f"{root}/"))


def _sites(instructions: pd.DataFrame, computations: pd.DataFrame) -> dict[str, list[Site]]:
    """For each computation the ways to come to it."""
    home: dict[str | None, str] = dict(zip(instructions["instruction"], instructions["computation"], strict=True))
    calls: dict[str, list[dict[str, Any]]] = {}
    for call in records(instructions[instructions["opcode"] == "call"]):
        for called in call["called"]:
            calls.setdefault(str(called), []).append(call)
    caller: dict[str, str | None] = dict(zip(computations["computation"], computations["caller"], strict=True))
    found: dict[str, list[Site]] = {}
    for computation in caller:
        for waiting in _outermost_first(str(computation), calls, caller, home, found):
            if waiting in calls:
                found[waiting] = _of_calls(calls[waiting], found)
            else:
                found[waiting] = found.get(str(home.get(caller.get(waiting))), [Site()])
    return found


def _outermost_first(
    computation: str,
    calls: dict[str, list[dict[str, Any]]],
    caller: dict[str, str | None],
    home: dict[str | None, str],
    found: dict[str, list[Site]],
) -> Iterator[str]:
    """The computations on all ways to one that are not found yet, each after those it is called from."""
    stack, seen = [computation], set()
    while stack:
        at = stack[-1]
        outer = [str(call["computation"]) for call in calls[at]] if at in calls else [str(home.get(caller.get(at)))]
        ahead = [name for name in outer if name in caller and name not in found and name not in seen]
        if at in found or (at in seen and not ahead):
            stack.pop()
            if at not in found:
                yield at
            continue
        seen.add(at)
        stack += ahead


def _of_calls(calls: list[dict[str, Any]], found: dict[str, list[Site]]) -> list[Site]:
    counts = [1 if is_missing(call["execution_count"]) else int(call["execution_count"]) for call in calls]
    total = sum(counts) or 1
    sites = [
        Site(_joined(site.name, call["op_name"]), site.part * Fraction(count, total))
        for call, count in zip(calls, counts, strict=True)
        for site in found.get(str(call["computation"]), [Site()])
    ]
    return sites if len(sites) <= MOST_SITES else [Site(sites[0].name)]


def _joined(outer: str, op_name: Any) -> str:
    if not isinstance(op_name, str):
        return outer
    return op_name if not outer or _is_whole(op_name, Site(outer)) else f"{outer}/{op_name}"
