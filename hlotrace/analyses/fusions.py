"""Fusion groups with what they save, and the members of one of them as a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.modules import records
from hlotrace.tables import LINES

if TYPE_CHECKING:
    import pandas as pd

PLUMBING = ("bitcast", "get-tuple-element", "tuple")
"""Instructions that pass a value on without touching it: edges run through them."""


def fusion_groups(fusions: pd.DataFrame) -> pd.DataFrame:
    """The fusions of one module, the costliest first.

    Returns:
        The rows of `fusions` with `cycles_total`, `launches_saved_total` and `internal_bytes_total` added: one
        execution times its count, null where either is unknown.
    """
    count = fusions["execution_count"]
    groups = fusions.assign(
        cycles_total=fusions["estimated_cycles"] * count,
        launches_saved_total=fusions["launches_saved"] * count,
        internal_bytes_total=fusions["internal_bytes"] * count,
        moved=(fusions["operand_bytes"] + fusions["output_bytes"]) * count,
    )
    order = ["cycles_total", "moved", "fusion"]
    ordered = groups.sort_values(order, ascending=[False, False, True], kind="stable", na_position="last")
    return ordered.drop(columns="moved")


def joined_sources(source_lines: object) -> str:
    """Source lines grouped by file, without their directories: `layer.py:12,14; nn.py:88`."""
    lines: dict[str, list[str]] = {}
    for place in source_lines if source_lines is not None else ():  # type: ignore[attr-defined]
        file, _, line = str(place).rpartition(":")
        if file:
            lines.setdefault(PurePosixPath(file).name, []).append(line)
        else:
            lines.setdefault(line, [])
    return "; ".join(f"{file}:{','.join(numbers)}" if numbers else file for file, numbers in lines.items())


@dataclass
class Members:
    """The inside of a fusion: `nodes` maps an id to the row it stands for and its kind (input, member, output)."""

    nodes: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)
    edges: list[tuple[str, str, int | None, bool]] = field(default_factory=list)
    """(from, to, bytes, whether the value goes through memory)."""
    frame: pd.DataFrame | None = None


MEMBER_COLUMNS = (
    "stage",
    "computation",
    "instruction",
    "opcode",
    "category",
    "is_root",
    "shape",
    "bytes",
    "memory_space",
    "memory_space_name",
    "operands",
    "called",
    "parameter_number",
    "literal",
    "flops",
    "op_name",
    *LINES,
)
"""The columns of `instructions` that `members` reads."""


def members(instructions: pd.DataFrame, fusion: dict[str, Any], stage: str | None) -> Members:
    """The inside of one fusion, in the order of the file; `frame` has all that `member_count` counts.

    A nested fusion is one node; in `frame` its members stand in its place. Scalar constants and inputs that no member
    reads are no nodes, and edges run through bitcasts, tuples and their elements. Inputs carry the names of the
    fusion's operands.
    """
    final = instructions[instructions["stage"] == stage]
    inside = final[final["computation"] == fusion["computation"]]
    caller = final[(final["instruction"] == fusion["fusion"]) & (final["computation"] == fusion["caller_computation"])]
    operands = _names(caller["operands"].iloc[0]) if len(caller) else []
    rows = {row["instruction"]: row for row in records(inside)}
    result = Members(frame=_all_members(final, inside))
    for name, row in rows.items():
        if row["opcode"] == "parameter":
            number = row["parameter_number"]
            outer = operands[number] if number is not None and number < len(operands) else name
            result.nodes[name] = ({**row, "operand": outer}, "input")
        elif row["opcode"] not in PLUMBING and not _is_scalar_constant(row):
            result.nodes[name] = (row, "member")
    _connect(result, rows)
    return result


def _all_members(final: pd.DataFrame, inside: pd.DataFrame) -> pd.DataFrame:
    """The rows that compute something, those of nested fusions in their place."""
    import pandas as pd

    pieces, start = [], 0
    working = inside[~inside["opcode"].isin(("parameter", "constant", *PLUMBING))]
    for place in (working["opcode"] == "fusion").to_numpy().nonzero()[0].tolist():
        nested = working["called"].iloc[place]
        pieces += [working.iloc[start:place], _all_members(final, final[final["computation"].isin(list(nested))])]
        start = place + 1
    return pd.concat([*pieces, working.iloc[start:]]) if pieces else working


def without_passing(inside: Members) -> tuple[Members, int]:
    """The same without what goes from an input straight to an output, and how many values do.

    Fusions around an asynchronous collective hand its state on; a graph of them would be mostly that.
    """
    kinds = {name: kind for name, (_, kind) in inside.nodes.items()}
    passing = {end for start, end, *_ in inside.edges if kinds[start] == "input" and kinds[end] == "output"}
    edges = [edge for edge in inside.edges if edge[1] not in passing]
    used = {name for start, end, *_ in edges for name in (start, end)}
    nodes = {name: node for name, node in inside.nodes.items() if node[1] == "member" or name in used}
    return (Members(nodes, edges, inside.frame), len(passing)) if nodes else (inside, 0)


def _connect(result: Members, rows: dict[str, dict[str, Any]]) -> None:
    for name, (row, kind) in list(result.nodes.items()):
        if kind == "member":
            for source in _through(row, rows):
                _edge(result, source, name, result.nodes.get(source, ({}, ""))[1] == "input")
    for root in (row for row in rows.values() if row["is_root"]):
        sources = [root["instruction"]] if root["instruction"] in result.nodes else list(_through(root, rows))
        for number, source in enumerate(sources):
            # An input that leaves as it came is no work of the fusion.
            if result.nodes.get(source, ({}, ""))[1] == "member":
                output = f"output {number}" if len(sources) > 1 else "output"
                result.nodes[output] = ({**rows[source], "instruction": output}, "output")
                _edge(result, source, output, True)
    used = {edge[0] for edge in result.edges}
    result.nodes = {name: node for name, node in result.nodes.items() if node[1] != "input" or name in used}


def _edge(result: Members, source: str, target: str, through_memory: bool) -> None:
    if source in result.nodes:
        result.edges.append((source, target, result.nodes[source][0]["bytes"], through_memory))


def _through(row: dict[str, Any], rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The operands of a row, each once and in order, seen through plumbing."""
    seen: set[str] = set()
    waiting = _names(row["operands"])[::-1]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        source = rows.get(name)
        if source is not None and source["opcode"] in PLUMBING:
            waiting += _names(source["operands"])[::-1]
        else:
            yield name


def _names(operands: object) -> list[str]:
    return [str(name).partition("#")[0] for name in operands] if operands is not None else []  # type: ignore[attr-defined]


def _is_scalar_constant(row: dict[str, Any]) -> bool:
    return row["opcode"] == "constant" and "[]" in (row["shape"] or "")
