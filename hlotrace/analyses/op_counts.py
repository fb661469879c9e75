"""Op counts before and after optimisation, side by side, in groups: opcode, category, source line, named scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.analyses.call_sites import at_call_sites
from hlotrace.analyses.costs import with_totals
from hlotrace.analyses.sources import users_lines

if TYPE_CHECKING:
    import pandas as pd

GROUPINGS = ("opcode", "category", "source", "scope")
BEFORE = "before_optimizations"

COLUMNS = (
    "stage",
    "computation",
    "instruction",
    "called",
    "opcode",
    "category",
    "is_launch",
    "op_name",
    "user_file",
    "user_line",
    "execution_count",
    "estimated_cycles",
    "flops",
    "hbm_read_bytes",
    "hbm_write_bytes",
)
"""The columns of `instructions` that this reads."""


def op_counts(
    instructions: pd.DataFrame, computations: pd.DataFrame, *, after: str | None, by: str, depth: int = 0
) -> pd.DataFrame:
    """Counts of one module in groups, those with the most instructions first.

    Left out, since they are bindings and no work: parameters other than the entry's, and the bodies of reducers
    and comparators.

    Args:
        instructions, computations: of one module, all stages.
        after: the final stage.
        by: one of GROUPINGS.
        depth: how many levels of a scope make a group; 0 takes all. By scope a function that several places call
            counts in each of them.

    Returns:
        Columns: the grouping's name; `before`, `after`, `after_fused` (of these inside fusions); `launches_before`,
        `launches_after` (null where a trip count is unknown); `cycles_total` and `flops_total` of the launches after,
        in one run of the module. Where a stage is missing its columns are null.
    """
    import pandas as pd

    counted = _counted(instructions, computations)
    if by == "scope":
        counted = _with_whole_names(counted, instructions, computations)
    counted = counted.assign(group=group_keys(counted, by, depth).fillna(""))
    groups = pd.Index(counted["group"].drop_duplicates(), name=by)
    stages = {"before": BEFORE, "after": after if after != BEFORE else None}
    columns: dict[str, pd.Series] = {}
    for name, stage in stages.items():
        rows = counted[(counted["stage"] == stage).fillna(False)] if stage else counted.iloc[:0]
        columns |= _stage_columns(name, rows, groups)
    columns |= _work(counted[(counted["stage"] == after).fillna(False)], groups)
    table = pd.DataFrame(columns, index=groups).drop(columns="before_fused")
    order = table[["before", "after"]].max(axis=1).sort_values(ascending=False, kind="stable")
    table = table.loc[order.index].reset_index()
    table[by] = table[by].where(table[by] != "", None)
    return table


def _counted(instructions: pd.DataFrame, computations: pd.DataFrame) -> pd.DataFrame:
    rows = instructions.assign(role=_roles(instructions, computations))
    return rows[~_binds(rows)]


def bindings(instructions: pd.DataFrame, computations: pd.DataFrame) -> pd.Series:
    """Which instructions no count has: parameters other than the entry's, the bodies of reducers and comparators."""
    return _binds(instructions.assign(role=_roles(instructions, computations)))


def _roles(instructions: pd.DataFrame, computations: pd.DataFrame) -> pd.Series:
    roles = computations[["stage", "computation", "role"]].drop_duplicates(["stage", "computation"])
    found = instructions[["stage", "computation"]].merge(roles, on=["stage", "computation"], how="left")
    return found["role"].set_axis(instructions.index)


def _binds(rows: pd.DataFrame) -> pd.Series:
    inner = (rows["opcode"] == "parameter") & (rows["role"] != "entry")
    return (inner | (rows["role"] == "reducer")).fillna(False).astype(bool)


def _with_whole_names(counted: pd.DataFrame, instructions: pd.DataFrame, computations: pd.DataFrame) -> pd.DataFrame:
    """With op_names from the entry on; only those before optimisation are relative to calls."""
    import pandas as pd

    def of_stage(frame: pd.DataFrame) -> pd.Series:
        return (frame["stage"] == BEFORE).fillna(False)

    before = at_call_sites(
        counted[of_stage(counted)], instructions[of_stage(instructions)], computations[of_stage(computations)]
    )
    return pd.concat([before, counted[~of_stage(counted)]])


def group_keys(instructions: pd.DataFrame, by: str, depth: int = 0) -> pd.Series:
    """The group of each instruction; null where it has none (no metadata)."""
    if by == "source":
        return users_lines(instructions)
    if by == "scope":
        names = instructions["op_name"]
        scopes = {name: scope_of(name, depth) if is_scoped(name) else None for name in names.dropna().unique()}
        return names.map(scopes, na_action="ignore").astype(names.dtype)
    return instructions[by]


def scope_of(op_name: str, depth: int = 0) -> str:
    """The named scope of an op: its op_name without the last part, at most `depth` levels."""
    scope = _parts(op_name)[:-1] or [op_name]
    return "/".join(scope[:depth] if depth else scope)


def is_scoped(op_name: str) -> bool:
    """Whether an op_name has a scope; the bare names of primitives and arguments have none."""
    return len(_parts(op_name)) > 1


def _parts(op_name: str) -> list[str]:
    """A name at its slashes; those inside parentheses, as in `jvp(a/b)`, do not separate."""
    parts, level, start = [], 0, 0
    for position, character in enumerate(op_name):
        if character in "([{":
            level += 1
        elif character in ")]}":
            level = max(0, level - 1)
        elif character == "/" and level == 0:
            parts.append(op_name[start:position])
            start = position + 1
    return [*parts, op_name[start:]]


def _stage_columns(name: str, rows: pd.DataFrame, groups: pd.Index) -> dict[str, pd.Series]:
    import pandas as pd

    labels = (name, f"{name}_fused", f"launches_{name}")
    if rows.empty:
        unknown = pd.Series(pd.NA, index=groups, dtype="Int64")
        return dict.fromkeys(labels, unknown)
    launches = rows["execution_count"].where(rows["is_launch"].fillna(False).astype(bool), 0)
    grouped = rows.assign(fused=(rows["role"] == "fusion"), launches=launches).groupby("group", sort=False)
    found = (grouped.size(), grouped["fused"].sum(), grouped["launches"].sum(skipna=False))
    return {
        label: series.reindex(groups, fill_value=0).astype("Int64") for label, series in zip(labels, found, strict=True)
    }


def _work(rows: pd.DataFrame, groups: pd.Index) -> dict[str, pd.Series]:
    launched = with_totals(rows[rows["is_launch"].fillna(False).astype(bool)])
    grouped = launched.groupby("group", sort=False)
    return {name: grouped[name].sum(min_count=1).reindex(groups) for name in ("cycles_total", "flops_total")}
