"""Writes docs/tables.md from the declarations in hlotrace/tables.py: `python docs/make_tables.py`."""

from __future__ import annotations

from pathlib import Path

from hlotrace.tables import ALL_TABLES, Column, Table

INTRODUCTION = """\
# Tables

`hlotrace.load(path)["instructions"]` is a pandas frame with these columns, whatever was opened: a bundle, a dump
directory, one HLO file, a profiler's log directory, one trace. `hlotrace show PATH VIEW --format json` gives records
with the same names.

Bytes are bytes, times are integers with their unit in the name, counts are counts. `estimated_…` is what the compiler
said; where a model of ours stands behind a column, its text says so. A value that is not known is null, never 0.

`instructions` holds every stage of a module, and of a fusion both itself and its members. Sums over what runs are those
over the rows of the module's `final_stage` where `is_launch` holds, each times its `execution_count`.

A `category` is a string of which there are few: an Arrow dictionary, and pandas' `category`.

This page is made from `hlotrace/tables.py` by `docs/make_tables.py`.
"""


def _row(column: Column) -> str:
    kind = f"{column.dtype}, {column.unit}" if column.unit else column.dtype
    refers = f" (in `{column.references}`)" if column.references else ""
    return f"| `{column.name}` | {kind} | {column.doc}{refers} |"


def _section(table: Table) -> str:
    head = f"## {table.name}\n\nOne row is {table.row}.\n\n| column | type, unit | meaning |\n| --- | --- | --- |\n"
    return head + "\n".join(_row(column) for column in table.columns) + "\n"


def page() -> str:
    """The page's whole text."""
    return "\n".join([INTRODUCTION, *(_section(table) for table in ALL_TABLES.values())])


if __name__ == "__main__":
    Path(__file__).with_name("tables.md").write_text(page(), encoding="utf-8")
