"""The declared tables, and the page made from them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pyarrow as pa
import pytest

from hlotrace.tables import ALL_TABLES, Column, Table

DOCS = Path(__file__).parent.parent / "docs"
COLUMNS = [(table, column) for table in ALL_TABLES.values() for column in table.columns]
named = pytest.mark.parametrize(("table", "column"), COLUMNS, ids=[f"{t.name}.{c.name}" for t, c in COLUMNS])


@named
def test_a_column_says_what_it_means_and_in_which_unit(table: Table, column: Column) -> None:
    assert column.doc
    suffixes = {"_bytes": "bytes", "_ns": "ns", "_ps": "ps", "_cycles": "cycles", "_count": "count"}
    for suffix, unit in suffixes.items():
        if column.name.endswith(suffix):
            assert column.unit == unit


@named
def test_what_a_column_refers_to_exists(table: Table, column: Column) -> None:
    if column.references:
        name, field = column.references.split(".")
        assert field in ALL_TABLES[name].column_names


@pytest.mark.parametrize("table", ALL_TABLES.values(), ids=lambda table: table.name)
def test_a_table_gives_an_arrow_schema_with_its_columns_once_each(table: Table) -> None:
    schema = table.arrow_schema()
    assert isinstance(schema, pa.Schema)
    assert schema.names == table.column_names
    assert len(set(schema.names)) == len(schema.names)


def test_the_reference_page_is_up_to_date() -> None:
    page = runpy.run_path(str(DOCS / "make_tables.py"))["page"]()
    assert (DOCS / "tables.md").read_text(encoding="utf-8") == page, "run python docs/make_tables.py"
